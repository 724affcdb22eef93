"""One module per command: its arguments, and how it assembles a pipeline and prints.

More than 14 modules: there are as many commands.
"""
