"""Meaning to tables of the trace."""
