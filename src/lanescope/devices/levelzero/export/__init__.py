"""Level Zero formats of other tools."""
