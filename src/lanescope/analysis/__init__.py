"""Analyses: pure functions from a Trace to Tables. They read no files and change nothing."""
