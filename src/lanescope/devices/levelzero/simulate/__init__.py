"""Simulated Level Zero programs with known ground truth."""
