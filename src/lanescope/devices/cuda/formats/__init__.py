"""Layouts of CUDA marker buffers, readers and writers."""
