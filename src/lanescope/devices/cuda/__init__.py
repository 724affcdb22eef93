"""Markers that GPU kernels store into a buffer of their own: begin, end, instant, finalize; one writer a lane."""
