"""Huawei Ascend: swimlane captures of the task runtime (AI cores, their schedulers, the orchestrator)."""
