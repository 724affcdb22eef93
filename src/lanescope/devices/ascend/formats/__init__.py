"""Ascend swimlane files and device dumps as data, readers and writers."""
