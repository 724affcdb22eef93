"""Probes: what a kernel calls to leave markers, and what the host does before and after it.

The functions that kernels call are in ``triton`` and ``numba``, which import those packages; nothing else here does.
"""
