"""Readers and writers of general formats."""
