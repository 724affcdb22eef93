"""Show the tasks around a task."""

from __future__ import annotations

from lanescope.families.command import Argument, CommandContext, Values
from lanescope.families.options import non_negative_int


def run(context: CommandContext, values: Values) -> int:
    """Show the tasks that an Ascend task waits for, and those that wait for it, to a depth."""
    from lanescope.devices.ascend.analysis.dependency_walk import fan

    task = values["task"]
    table = fan(context.open(values["input"]), task, values["depth"], values["direction"])
    rows = list(table.rows())
    columns = [name for name in table.spec.names if name != "id"]
    if values["json"]:
        listed = [{**row, "task_id": str(row["task_id"])} for row in rows]
        context.json("lanescope.ascend-deps/1", task=task, rows=listed)
    else:
        context.show(columns, [[row[name] for name in columns] for row in rows], title=f"tasks around {task}")
    return 0


ARGUMENTS = (
    Argument("task", "task id: a number, or r2t5 for task 5 of ring 2"),
    Argument("--depth", "how many edges away", non_negative_int, 1, "N"),
    Argument("--direction", "producers, consumers, both", default="both", choices=("in", "out", "both")),
    Argument("--json", "one JSON document, schema lanescope.ascend-deps/1", bool),
)
