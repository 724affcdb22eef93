"""Records of a simulated recorder, collected as columns of the event model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events, table_of
from lanescope.devices.levelzero.formats.event_tables import EVENTS
from lanescope.trace import Column, Dictionary

Codes = npt.NDArray[np.int32]


class EventWriter:
    """Columns by table; each record has a number, from which its place among all follows."""

    def __init__(self) -> None:
        self._parts: dict[str, list[dict[str, Any]]] = {spec.name: [] for spec in EVENTS}
        self._dictionaries = {(s.name, c.name): Dictionary() for s in EVENTS for c in s.columns if c.type == "text"}
        self._times: list[Int64] = []
        self._count = 0

    def codes(self, table: str, column: str, texts: list[str]) -> Codes:
        """Return the codes of texts of a column, int32 [n]."""
        return self._dictionaries[table, column].codes(texts)

    def number(self, ts: Int64) -> Int64:
        """Return numbers for new records at times ``ts``, int64 [n]; of equal times the earlier number comes first."""
        self._times.append(ts)
        self._count += len(ts)
        return np.arange(self._count - len(ts), self._count)

    def add(self, table: str, ts: Any, thread: int, numbers: Int64 | None = None, **columns: Any) -> Int64:
        """Add records; columns are arrays, texts or numbers for all, None where unknown.

        Args:
            table: one of the event model's.
            ts: int64 [n], or one time.
            thread: whose.
            numbers: of the records, when they stand in the stream already as records of another table.
            **columns: the others.

        Returns:
            Numbers of the records.
        """
        ts = np.atleast_1d(np.asarray(ts, np.int64))
        if numbers is None:
            numbers = self.number(ts)
        self._parts[table].append({"seq": numbers, "ts": ts, "thread_id": thread, **columns})
        return numbers

    def call(
        self, function: Any, entry: Any, exit: Any, thread: int, result: Any = layout.SUCCESS, **columns: Any
    ) -> tuple[Int64, Int64]:
        """Add calls of a function; return the numbers of their entries and exits."""
        entries = self.add("calls", entry, thread, function=function, is_exit=False, **columns)
        exits = self.add("calls", exit, thread, function=function, is_exit=True, result=result)
        return entries, exits

    def finish(self, processes: list[tuple[str, int]], threads: list[tuple[int, int]]) -> tuple[Events, Int64]:
        """Return the event model, and the place in the stream of each number, int64 [numbers]."""
        ts = np.concatenate(self._times)
        place = np.empty(len(ts), np.int64)
        place[np.argsort(ts, kind="stable")] = np.arange(1, len(ts) + 1)
        tables = {}
        for spec in EVENTS:
            parts = self._parts[spec.name]
            if not parts:
                continue
            lengths = [len(part["seq"]) for part in parts]
            columns: dict[str, Any] = {}
            seq = place[np.concatenate([part["seq"] for part in parts])]
            order = np.argsort(seq, kind="stable")
            for column in spec.columns:
                values = [part.get(column.name) for part in parts]
                columns[column.name] = self._column(spec.name, column.name, column.type, values, lengths, order)
            columns["seq"] = seq[order]
            tables[spec.name] = table_of(spec, columns)
        specs = {spec.name: spec for spec in EVENTS}
        tables["processes"] = table_of(
            specs["processes"], {"host": [host for host, _ in processes], "pid": [pid for _, pid in processes]}
        )
        tables["threads"] = table_of(
            specs["threads"], {"process_id": [process for process, _ in threads], "tid": [tid for _, tid in threads]}
        )
        return Events(tables), place

    def _column(self, table: str, name: str, type_: str, values: list[Any], lengths: list[int], order: Int64) -> Column:
        dictionary = self._dictionaries.get((table, name))
        if all(value is None for value in values):
            return Column.null(sum(lengths), np.int32 if dictionary else np.int64, dictionary=dictionary)
        arrays, masks = [], []
        for value, length in zip(values, lengths, strict=True):
            masks.append(np.full(length, value is not None))
            if isinstance(value, tuple):
                value, masks[-1] = value
            elif value is None:
                value = 0
            elif isinstance(value, str) and dictionary is not None:
                value = dictionary.code(value)
            arrays.append(np.broadcast_to(np.asarray(value, object if type_ == "utf8" else None), (length,)))
        valid = np.concatenate(masks)[order]
        joined = np.concatenate(arrays)[order]
        wanted = {"text": np.int32, "utf8": object}.get(type_, type_)
        return Column.array(joined.astype(wanted), valid=None if valid.all() else valid, dictionary=dictionary)
