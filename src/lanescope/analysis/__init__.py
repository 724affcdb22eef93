"""Analyses: pure functions from a trace to tables.

More than 14 modules: one for each question that is asked of a trace, and what their answers share.
"""
