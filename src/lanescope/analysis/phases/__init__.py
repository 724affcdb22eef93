"""Phases: where the time of each lane went, to the last unit of it, and the longest stretches without work."""
