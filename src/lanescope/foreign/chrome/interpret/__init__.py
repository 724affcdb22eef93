"""Meaning of events: who they belong to, which belong together."""
