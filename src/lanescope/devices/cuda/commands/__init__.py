"""Commands that only the CUDA family has."""
