"""Everybody's formats: what other tools read and write."""
