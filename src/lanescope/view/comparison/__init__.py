"""Comparisons of runs as text and as a page."""
