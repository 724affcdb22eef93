"""From decoded CUDA markers to trace tables."""
