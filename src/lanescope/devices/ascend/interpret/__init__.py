"""From Ascend records to tasks, executions and their causes.

More than 14 modules: each answers one question about all records.
"""
