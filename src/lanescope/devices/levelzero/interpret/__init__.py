"""From Level Zero calls to device operations: attribution, clocks, memory."""
