"""Analyses: pure functions from a trace to tables."""
