"""Ascend formats of other tools."""
