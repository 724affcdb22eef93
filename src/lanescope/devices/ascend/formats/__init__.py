"""Ascend swimlane files and device dumps as data, readers and writers.

More than 14 modules: a reader and a writer for each of the forms in which the same records come.
"""
