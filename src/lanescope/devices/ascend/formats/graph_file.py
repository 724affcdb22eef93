"""What a task graph file tells beside tasks and edges: arguments, tensors, and why each edge exists.

Decoding needs none of it, so it is read only on request.
"""

from __future__ import annotations

import msgspec

from lanescope.errors import InputError

Number = int | str


class Argument(msgspec.Struct):
    """An argument of a task."""

    idx: int = -1
    type: str = ""
    tensor_id: Number | None = None
    dtype: str = ""
    shape: list[int] = []


class Task(msgspec.Struct):
    """A task with its arguments."""

    task_id: Number
    scope: str = ""
    args: list[Argument] = []


class Tensor(msgspec.Struct):
    """A version of a tensor."""

    tensor_id: Number
    version: int = 0
    dtype: str = ""
    buffer_numel: Number | None = None


class Edge(msgspec.Struct):
    """One reason why a task needs another."""

    pred: Number
    succ: Number
    arg: int = -1
    source: str = ""
    tensor_id: Number | None = None
    consumer_dtype: str = ""
    consumer_shape: list[int] = []


class GraphFile(msgspec.Struct):
    """A task graph file."""

    tasks: list[Task] = []
    tensors: list[Tensor] = []
    edges: list[Edge] = []


def parse(content: bytes, path: str) -> GraphFile:
    """Parse a task graph file.

    Args:
        content: the file.
        path: for messages.

    Raises:
        InputError: it is not of the form that the runtime writes.
    """
    try:
        return msgspec.json.decode(content, type=GraphFile)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: invalid task graph: {error}") from None


def number(value: Number | None) -> int | None:
    """Return a 64-bit id that may be written as a text; None if it is none."""
    if value is None:
        return None
    try:
        return int(value) & (1 << 64) - 1
    except ValueError:
        return None
