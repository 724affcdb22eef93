"""Simulated files of the profiler, with the truth and faults that can be planted."""
