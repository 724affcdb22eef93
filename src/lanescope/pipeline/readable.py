"""Refusal of captures of which nothing could be decoded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from lanescope.errors import InputError
from lanescope.pipeline.detection import capture, detect
from lanescope.pipeline.sources import CaptureSource
from lanescope.trace import Trace
from lanescope.trace.streams import Progress, StreamInfo, bare


class Readable:
    """A capture that is refused after its last batch if all of it is lost, before a sink commits its file.

    Args:
        source: the opened capture.
        path: its path, for the message.
    """

    def __init__(self, source: CaptureSource, path: str) -> None:
        self._source = source
        self._path = path

    @property
    def info(self) -> StreamInfo:
        """Properties of the batches."""
        return self._source.info

    def batches(self, progress: Progress | None = None) -> Iterator[Trace]:
        """Decode the capture from the start.

        Raises:
            InputError: nothing but padding and lost units was found.
        """
        last: Trace | None = None
        for batch in self._source.batches(progress):
            last = bare(batch)
            yield batch
            del batch
        if last is not None:
            refuse_unreadable(last, self._path)


def refuse_unreadable(trace: Trace, path: str) -> None:
    """Refuse a trace, or the last batch of a decode, in which every unit of the capture is lost.

    Raises:
        InputError: nothing but padding and lost units was found; the hint says what the file may be.
    """
    inputs = trace.inputs
    main = set(inputs.values("id")[inputs.values("role") == "main"].tolist())
    deepest: dict[int, dict[str, Any]] = {}
    for row in trace.accounting.rows():
        number = row["input_id"]
        if row["scope"] == "input" and number in main and row["layer"] >= deepest.get(number, row)["layer"]:
            deepest[number] = row
    rows = list(deepest.values())
    if any(row["decoded"] for row in rows) or not any(row["lost"] for row in rows):
        return
    row = max(rows, key=lambda row: row["lost"])
    family = inputs.values("family").tolist()[0]
    units = row["unit"] if row["total"] == 1 else f"{row['unit']}s"
    raise InputError(
        f"{path}: cannot decode any of {row['total']:,} {units} as {family}",
        hint=_what_else(path, family),
    )


def _what_else(path: str, family: str) -> str:
    """Return what to do with a file of which a family has read nothing."""
    from lanescope.io import other_formats as known

    if os.path.isfile(path):  # noqa: PTH113
        candidates = [found.family for found in detect(path) if found.is_recognized]
        if candidates and candidates[0] != family:
            return f"remove --family {family}: the file looks like {candidates[0]}"
        with capture(path) as opened:
            found = known.what_is(opened.main.head().data, opened.main.name)
        if found is not None:
            return f"{found.hint} (the file is {found.what})"
    return "check the file and --family"
