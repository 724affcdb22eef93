"""From attributed operations to trace tables."""
