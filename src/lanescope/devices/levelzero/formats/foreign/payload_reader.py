"""Records whose fields are written as a text has them -> rows, by the readers of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Rows
from lanescope.devices.levelzero.formats.fields import BadField
from lanescope.devices.levelzero.formats.text_cells import RECORDS
from lanescope.devices.levelzero.formats.text_records import Handler
from lanescope.devices.levelzero.formats.text_scanner import ScannerRecorder
from lanescope.devices.levelzero.formats.text_shapes import Shapes


class Records(NamedTuple):
    """Records whose times and threads are known, in their order.

    Attributes:
        names: what the kinds are called, ``PROVIDER:EVENT``.
        handlers: what reads the records of each kind.
        kinds: int32 [n], index into ``names``.
        rows: int64 [n], row among the payloads of the kind; None: its place among all records.
        seq: int64 [n], position in the order of all records.
        ts: int64 [n], ns.
        threads: int32 [n], row of threads.
        payloads: the fields of each kind.
    """

    names: Sequence[str]
    handlers: Sequence[Handler]
    kinds: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int64] | None
    seq: npt.NDArray[np.int64]
    ts: npt.NDArray[np.int64]
    threads: npt.NDArray[np.int32]
    payloads: Sequence[core.LevelZeroColumns]


class PayloadReader:
    """Reads records that have the fields of a text, natively as far as they leave no doubt.

    Args:
        rows: rows by table; calls under way are kept from ``read`` to ``read``.
        processes: process of each thread.
    """

    def __init__(self, rows: Mapping[str, Rows], processes: list[int]) -> None:
        self._rows = rows
        self._shapes = Shapes(rows, 1, 0)
        self._recorder = ScannerRecorder(rows, processes, self._shapes)
        self._told: set[bytes] = set()
        self._calls = list(rows).index("calls")

    def read(self, records: Records) -> dict[int, int]:
        """Read records; return by kind how many have fields that are not what they have to be."""
        bad: dict[int, int] = {}
        place, columns = 0, (records.kinds, records.rows, records.seq, records.ts, records.threads)
        counts = core.ctf_counts(records.kinds.view(np.uint32), len(records.names)).tolist()
        again = -1
        while True:
            place = self._shapes.scanner.take_records(records.names, *columns, records.payloads, counts, place)
            if place == len(records.seq):
                return bad
            group = int(records.kinds[place])
            stamp = int(records.seq[place]), int(records.ts[place]), int(records.threads[place])
            before = [rows.loose() for rows in self._rows.values()]
            self._recorder.has_moved = False
            is_read = True
            try:
                of_kind = place if records.rows is None else int(records.rows[place])
                payload = records.payloads[group].payload(of_kind)
                records.handlers[group](self._recorder, stamp, payload)
            except BadField:
                bad[group] = bad.get(group, 0) + 1
                is_read = False
            has_learned = self._learn(records.names[group])
            if has_learned and is_read and place != again and not self._recorder.has_moved:
                # The scanner can take this one too: a table whose rows all stand in one place is never put in order.
                for rows, count in zip(self._rows.values(), before, strict=True):
                    rows.withdraw(count)
                again = place
                continue
            calls = self._rows["calls"]
            for row in self._shapes.keep_calls(calls.withdraw(before[self._calls])):
                calls.add(row)
            place += 1

    def _learn(self, name: str) -> bool:
        """Tell the scanner what a record taught; return whether it may take another one that it could not."""
        self._shapes.tell_texts()
        kind = name.encode()
        if kind not in self._told and self._shapes.tell_kind(kind):
            self._told.add(kind)
            # Others keep more than rows.
            return name in RECORDS or name.partition(":")[0] in layout.APIS
        return False

    def finish(self) -> Mapping[int, int]:
        """Add all rows; return the lanes beside threads that were made, and the thread of each."""
        self._recorder.finish()
        self._shapes.gather()
        return self._recorder.lane_threads
