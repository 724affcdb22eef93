"""Simulated CUDA kernels with known ground truth."""
