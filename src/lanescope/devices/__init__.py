"""Device families in the tree, one folder each; nothing outside of a folder knows that family's formats."""
