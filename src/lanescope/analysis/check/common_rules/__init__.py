"""Rules for the traces of all families, one module per group of codes."""
