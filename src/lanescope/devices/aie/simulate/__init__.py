"""Simulated AIE trace units and programs with known ground truth."""
