"""What things are called: functions, tasks, bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.trace import Column

#: Name of a task whose function is unknown.
UNRESOLVED = "task"
_SPMD = "spmd"


def letters(number: int) -> str:
    """Return a number as letters: 0 is a, 25 z, 26 aa."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


def function_name(function: int, names: Mapping[int, str], *, is_spmd: bool) -> str:
    """Return the name of a function as bars show it.

    Args:
        function: its number, negative when it is not known.
        names: the name map.
        is_spmd: the task runs as several blocks.
    """
    name = UNRESOLVED if function < 0 else names.get(function) or f"func_{function}_{letters(function)}"
    return f"{name}_{_SPMD}" if is_spmd and _SPMD not in name.lower() else name


def task_name(task_id: int) -> str:
    """Return a task id as people write it: ``t5`` in ring 0, else ``r2t5``."""
    ring, number = task_id >> 32 & 0xFF, task_id & 0xFFFFFFFF
    return f"r{ring}t{number}" if ring else f"t{number}"


def ring_name(task_id: int) -> str:
    """Return a task id of v4 with rings: always with its ring."""
    return f"r{task_id >> 32 & 0xFF}t{task_id & 0xFFFFFFFF}"


def space_name(task_id: int) -> str:
    """Return a task id of v4 where the host builds the graph: ``t5``, ``g2t5`` inside of task 2, ``p5`` a parameter."""
    space, parent, number = task_id >> 62, task_id >> 32 & 0xFFFFF, task_id & 0xFFFFFFFF
    return {0: f"t{number}", 1: f"g{parent}t{number}", 2: f"p{number}"}.get(space, f"s{space}t{number}")


def task_names(task_ids: npt.NDArray[np.uint64], naming: Callable[[int], str] = task_name) -> npt.NDArray[np.object_]:
    """Return the names of tasks, object [n]."""
    if naming is not task_name:
        return _texts(map(naming, task_ids.tolist()))
    return _texts(core.ascend_task_names(np.ascontiguousarray(task_ids, np.uint64)))


class TaskTexts:
    """The ids of tasks as they are written; made at the first use, once for all columns that show them.

    Args:
        ids: uint64 [tasks].
        naming: writes one.
    """

    def __init__(self, ids: npt.NDArray[np.uint64], naming: Callable[[int], str]) -> None:
        self._ids = ids
        self._naming = naming

    @cached_property
    def all(self) -> npt.NDArray[np.object_]:
        """The texts, object [tasks]."""
        return task_names(self._ids, self._naming)

    def column(self, task: npt.NDArray[np.int64]) -> Column:
        """Return the texts of tasks (int64 [n], by their index) as a column."""
        column = Column.derived(len(task), lambda: self.all[task])
        if self._naming is task_name:
            column.encode = lambda: core.ascend_encoded_names(np.ascontiguousarray(self._ids[task]))
        return column


def labels(names: npt.NDArray[np.object_], tasks: npt.NDArray[np.object_]) -> npt.NDArray[np.object_]:
    """Return names with their task, as in ``matmul(r2t5)``, object [n]."""
    return _texts([f"{name}({task})" for name, task in zip(names.tolist(), tasks.tolist(), strict=True)])


def _texts(texts: Iterable[str]) -> npt.NDArray[np.object_]:
    return np.fromiter(texts, object)
