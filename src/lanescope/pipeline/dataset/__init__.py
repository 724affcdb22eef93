"""Captures into datasets, side by side, and what datasets answer."""
