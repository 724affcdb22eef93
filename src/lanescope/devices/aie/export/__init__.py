"""AIE formats of other tools."""
