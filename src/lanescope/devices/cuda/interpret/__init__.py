"""From CUDA markers to clocks and names."""
