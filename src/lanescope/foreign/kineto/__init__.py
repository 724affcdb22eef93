"""Traces of the PyTorch profiler, as its Kineto library writes them."""
