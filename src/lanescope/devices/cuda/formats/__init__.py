"""Layouts of CUDA marker buffers, readers and writers.

For speed the native decoders apply the rules of lanes (pairing, gaps, wraps) while they read the records.
More than 14 modules: a reader for each layout, and what the readers share.
"""
