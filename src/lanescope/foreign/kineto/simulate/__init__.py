"""Simulated files of the profiler, with the truth, and with faults on request."""
