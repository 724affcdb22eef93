"""One module per command: its arguments, and how it assembles a pipeline and prints."""
