"""From Ascend records to tasks, executions and their causes."""
