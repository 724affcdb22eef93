"""What the native scanner is told of a text: which fields of which records it reads, and what its rows mean.

The scanner takes lines of kinds it was told, with texts it was told; a kind or a text is told once the reference reader
has read it. So texts get their codes in the order in which they come, whoever reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Rows
from lanescope.devices.levelzero.formats.host_apis import HOST_APIS, OPENMP, HostApi, is_sized, written_as
from lanescope.devices.levelzero.formats.text_calls import REMEMBERED
from lanescope.devices.levelzero.formats.text_cells import (
    APIS,
    APPEND_COLUMNS,
    CREATIONS,
    ENDPOINTS,
    EXIT,
    HANDLES,
    LAUNCH_RECORDS,
    NUMBERS,
    OP_COLUMNS,
    RECORDS,
    RESULTS,
    ROW_TABLES,
    SCOPE,
    SHEETS,
    SUCCESSES,
    TABLES,
    TASKS,
    TEXTS,
    TICKS,
    WORDS,
    Cell,
    append_cells,
    cell_of,
    optional_cells,
)
from lanescope.devices.levelzero.formats.text_itt import LANES
from lanescope.devices.levelzero.formats.text_launches import (
    CUDA_API,
    OPENCL_API,
    entry_part,
    exit_part,
    is_launch,
    is_shaped,
    queue_fields,
)
from lanescope.devices.levelzero.formats.text_scopes import ENDS
from lanescope.devices.levelzero.formats.text_sheets import Sheet, Values, cleared, filled
from lanescope.trace.column import Array

UInt64 = npt.NDArray[np.uint64]

#: What the cell of sizes of a call holds, where it is not what the call waits for.
_SIZED, _FENCED = -1, -2
#: Names of scopes that are told, at most.
_MOST_SCOPES = 1000


class Shapes:
    """Tells a scanner what it may take, and makes its rows those of the event model.

    Args:
        rows: rows by table; their dictionaries are the texts.
        shrink: what fractions of a second are divided by.
        shift_ns: what to add to times in fields, ns.

    Attributes:
        scanner: the scanner.
    """

    def __init__(self, rows: Mapping[str, Rows], shrink: int, shift_ns: int) -> None:
        self.scanner = core.LevelZeroScanner(shrink, list(SHEETS.values()), TABLES)
        for number, api in enumerate(SUCCESSES, len(TEXTS) + len(APIS)):
            for written in (api.success, "0"):
                self.scanner.add_text(number, written, 0)
        for written, ends in ENDS.items():
            self.scanner.add_text(ENDPOINTS, written, sum(1 << is_exit for is_exit in ends))
        #: Names of scopes by event and word, as the reference reader knows them; numbers of words.
        self.scopes: Mapping[tuple[str, str], str] = {}
        self._words: dict[str, int] = {"": 0}
        self._rows, self._shift_ns = rows, shift_ns
        self._dictionaries = [rows[table].dictionary(column) for table, column in TEXTS]
        self._told = [0] * len(TEXTS)

    def append_count(self) -> int:
        """Return how many rows of ``appends`` the scanner has made."""
        return self.scanner.count(NUMBERS["appends"]) + self.scanner.count(NUMBERS["ops"])

    # --- what it may take -----------------------------------------------------------------------------------------

    def tell_texts(self) -> None:
        """Tell the texts that are new."""
        for table, dictionary in enumerate(self._dictionaries):
            texts = dictionary.texts
            for code in range(self._told[table], len(texts)):
                self._tell_text(table, texts[code], code)
            self._told[table] = len(texts)

    def _tell_text(self, table: int, text: str, code: int) -> None:
        name, column = TEXTS[table]
        names = [text]
        if column in RESULTS:
            # Names of another API's numbers do not occur in Level Zero's fields.
            names = [text] if " " not in text else []
            names += [str(number) for number, result in layout.RESULTS.items() if result == text]
        for written in names:
            self.scanner.add_text(table, written, code, name == "calls" and text == layout.SUCCESS)
        if (name, column) == ("calls", "result"):
            for number, api in enumerate(APIS, len(TEXTS)):
                for written in written_as(api, text):
                    self.scanner.add_text(number, written, code)

    def tell_kind(self, kind: bytes) -> bool:
        """Tell how records of a kind are read, as far as that is known; return whether it is known whole."""
        provider, _, event = kind.decode().partition(":")
        if provider in HOST_APIS:
            return self._tell_host_call(kind, HOST_APIS[provider], event)
        if provider not in layout.APIS:
            name = f"{provider}:{event}"
            if provider == OPENMP:
                return self._tell_scope(kind, event)
            if name in TASKS:
                cells, lanes, is_end, is_strict = TASKS[name]
                self.scanner.add_task(kind, NUMBERS["calls"], cells, LANES.index(lanes), is_end, is_strict)
            if name in LAUNCH_RECORDS:
                return self._tell_launch_record(kind, *LAUNCH_RECORDS[name])
            if name in RECORDS:
                sheet, cells = RECORDS[name]
                self.scanner.add_record(kind, (NUMBERS[sheet], 0), cells)
            return True
        function, _, end = event.rpartition("_")
        code = self._code("calls", "function", function)
        if code is None:
            return False
        if end == "entry":
            return self._tell_entry(kind, function, code)
        return self._tell_exit(kind, function, code | EXIT)

    def _tell_host_call(self, kind: bytes, api: HostApi, event: str) -> bool:
        function, _, end = event.rpartition("_")
        code = self._code("calls", "function", function)
        if code is None:
            return False
        # What is kept from an entry to its exit, and structures, are rare: they stay with the reference.
        if (entry_part if end == "entry" else exit_part)(api, function) is not None:
            return True
        if end == "entry" and is_shaped(function):
            return True
        if end == "entry" and is_launch(api, function):
            return self._tell_launch(kind, api, function, code)
        if end == "entry":
            cells = optional_cells(api.size) if is_sized(api, function) else ()
            self.scanner.add_entry(
                kind, (NUMBERS["calls"], code), cells, -1, always_appends=False, append=None, append_cells=()
            )
        else:
            cells = (cell_of(api.result, "text", required=False, texts=len(TEXTS) + APIS.index(api)),)
            self.scanner.add_exit(kind, (NUMBERS["calls"], code | EXIT), cells, -1, "unknown", None)
        return True

    def _tell_scope(self, kind: bytes, event: str) -> bool:
        """Tell the words that a callback was seen with; there may always be another."""
        if len(self.scopes) > _MOST_SCOPES:
            return True
        functions = {}
        for (of, word), name in self.scopes.items():
            code = self._code("calls", "function", name)
            if of != event or code is None:
                continue
            if word not in self._words:
                self._words[word] = len(self._words)
                self.scanner.add_text(WORDS, word, self._words[word])
            functions[self._words[word]] = code + 1
        if functions:
            listed = [functions.get(number, 0) for number in range(max(functions) + 1)]
            self.scanner.add_scope(kind, NUMBERS["calls"], SCOPE, listed)
        return False

    def _tell_launch(self, kind: bytes, api: HostApi, function: str, code: int) -> bool:
        launched = self._code("launches", "function", function)
        if launched is None:
            return False
        queue, kernel = queue_fields(api)
        size = optional_cells(api.size if is_sized(api, function) else "")
        cells = (cell_of(queue, required=api is OPENCL_API), *optional_cells(kernel), *size)
        sheet = NUMBERS[f"{api.title.lower()}_launches"]
        self.scanner.add_launch(kind, (NUMBERS["calls"], code), cells, (sheet, launched))
        return True

    def _tell_launch_record(self, kind: bytes, sheet: str, api: HostApi, cells: tuple[Cell, ...]) -> bool:
        constant = 0
        if sheet.endswith("_results"):
            # Rows of the scanner are of successes.
            code = self._code("launch_results", "status", api.success)
            if code is None:
                return False
            constant = code
        self.scanner.add_record(kind, (NUMBERS[sheet], constant), cells)
        return True

    def _code(self, table: str, column: str, text: str) -> int | None:
        texts = self._rows[table].dictionary(column).texts
        return texts.index(text) if text in texts else None

    def _tell_entry(self, kind: bytes, function: str, code: int) -> bool:
        number = REMEMBERED.get(function, -1)
        appended = self._code("appends", "function", function)
        cells: tuple[Cell, ...] = ()
        if function in HANDLES:
            cells = (cell_of(HANDLES[function][0]),)
        elif function in CREATIONS:
            cells = CREATIONS[function][2]
        elif function in layout.EXECUTES:
            queue, lists = layout.EXECUTES[function]
            cells = (cell_of(queue), *optional_cells(lists, kind="integers"))
            if function == layout.FENCED[0]:
                cells = (*cells, *optional_cells(layout.FENCED[1]))
        elif function in layout.WAITS:
            cells = optional_cells(layout.WAITS[function][1])
        elif "Memory" in function:
            cells = optional_cells("size")
        append = None if appended is None else (NUMBERS["appends"], appended)
        self.scanner.add_entry(
            kind,
            (NUMBERS["calls"], code),
            cells,
            number,
            function in layout.APPENDS,
            append,
            append_cells(function) if append else (),
            function in CREATIONS,
        )
        return append is not None or number >= 0

    def _tell_exit(self, kind: bytes, function: str, code: int) -> bool:
        number = REMEMBERED.get(function, -1)
        cells: tuple[Cell, ...] = (cell_of("zeResult", "text", required=False),)
        conclusion, made = "unknown", None
        if function in layout.EXECUTES:
            conclusion, made = "execution", (NUMBERS["executions"], 0)
        elif function in CREATIONS:
            sheet, _, _, field = CREATIONS[function]
            cells = (*cells, *optional_cells(field))
            constant = 0 if sheet == "created_queues" else self._code("lists", "action", "create")
            conclusion, made = "creation", None if constant is None else (NUMBERS[sheet], constant)
        elif function in HANDLES:
            _, conclusion, sheet, column, text = HANDLES[function]
            table = ROW_TABLES.get(sheet, sheet)
            constant = self._code(table, column, text) if column else 0
            # A row of allocations needs the text of its action too.
            actions = {"allocated": "alloc", "freed": "free"}
            if sheet in actions and self._code(table, "action", actions[sheet]) is None:
                constant = None
            made = None if constant is None else (NUMBERS[sheet], constant)
            if conclusion == "allocation":
                cells = (*cells, *optional_cells("pptr_val"))
        self.scanner.add_exit(kind, (NUMBERS["calls"], code), cells, number, conclusion, made)
        return made is not None or function not in (*HANDLES, *CREATIONS)

    def keep_calls(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Give rows of calls that one record has, read elsewhere, to the scanner, so that all stand in one order.

        Returns:
            All that it cannot hold: sizes mean something else there where a function waits, and rows of one record stay
            together.
        """
        if any(size is not None for *_, size in rows):
            return rows
        for seq, ts, thread, function, is_exit, result, _ in rows:
            self.scanner.add_call(NUMBERS["calls"], seq, ts, thread, function, is_exit, result)
        return []

    # --- what its rows mean ---------------------------------------------------------------------------------------

    def gather(self) -> None:
        """Take all rows out of the scanner and add them to the tables."""
        self._gather_appends()
        for name in SHEETS:
            if name in ("appends", "ops"):
                continue
            sheet = Sheet(*self.scanner.take(NUMBERS[name]))
            if len(sheet):
                getattr(self, f"_gather_{name}")(sheet)

    def _add(self, table: str, sheet: Sheet, columns: Mapping[str, Values], *, is_cleared: bool = False) -> None:
        """Add rows to a table; ``is_cleared``: the values are those of cells, which are 0 where they are unknown."""
        self._rows[table].add_block({**sheet.head(), **columns}, len(sheet), is_cleared=is_cleared)

    def _gather_appends(self) -> None:
        ops = Sheet(*self.scanner.take(NUMBERS["ops"]))
        entries = Sheet(*self.scanner.take(NUMBERS["appends"]))
        if not len(ops) and not len(entries):
            return
        rows = self._rows["appends"]
        earlier = rows.table().values("seq") if len(rows) else np.empty(0, np.int64)
        order = np.sort(np.concatenate([earlier, ops.seq, entries.seq]))
        kinds = [layout.APPENDS.get(text, layout.OTHER) for text in rows.dictionary("function").texts]
        codes = rows.dictionary("kind").codes(kinds)
        if len(ops):
            columns = {name: ops.cell(cell) for cell, name in enumerate(OP_COLUMNS)}
            waits = filled(columns["waits"])
            columns |= {"kind": (codes[columns["function"][0].astype(np.int64)], None), "waits": (waits, None)}
            self._add("appends", ops, columns, is_cleared=True)
            self._add_waits(ops, order, waits, ops.lists)
        if len(entries):
            columns = {name: entries.cell(cell) for cell, name in enumerate(APPEND_COLUMNS) if name}
            count = filled(columns["waits"])
            listed = filled(columns.pop("listed"))
            (dst, has_dst), (ptr, has_ptr) = columns.pop("dstptr"), columns.pop("ptr")
            is_sized = columns["bytes"][1]
            columns |= {
                "function": (entries.constant, None),
                "kind": (codes[entries.constant], None),
                "waits": (count, None),
                "dst": cleared(np.where(has_dst, dst, ptr), (has_dst | has_ptr) & is_sized),
                "src": cleared(columns["src"][0], columns["src"][1] & is_sized),
            }
            self._add("appends", entries, columns, is_cleared=True)
            # Of each list as many events as were said to be in it; those that are none do not count.
            place = np.arange(len(entries.lists)) - np.repeat(np.cumsum(listed) - listed, listed)
            chosen = (place < np.repeat(count, listed)) & (entries.lists != 0)
            owner = np.repeat(np.arange(len(entries)), listed)[chosen]
            kept = np.bincount(owner, minlength=len(entries))
            self._add_waits(entries, order, kept, entries.lists[chosen])

    def _add_waits(self, sheet: Sheet, order: Array, counts: Array, events: UInt64) -> None:
        if len(events):
            appends = np.repeat(np.searchsorted(order, sheet.seq), counts)
            self._rows["waits"].add_block({"append": (appends, None), "event": (events, None)}, len(events))

    def _gather_calls(self, sheet: Sheet) -> None:
        function = sheet.constant
        values, known = sheet.cell(1)
        # What calls wait for, and the fence that they are given, is in the cell of sizes.
        rows = np.flatnonzero(known)
        target = self._targets()[function[rows]]
        given = rows[(target == _FENCED) & (values[rows] != 0)]
        if len(given):
            head = {name: (column[given], None) for name, (column, _) in sheet.head().items()}
            self._rows["fences"].add_block({**head, "fence": (values[given], None)}, len(given))
        waits = rows[target >= 0]
        if len(waits):
            self._rows["host_waits"].add_block(
                {
                    **{name: (column[waits], None) for name, (column, _) in sheet.head().items()},
                    "target": (target[target >= 0], None),
                    "handle": (values[waits], None),
                },
                len(waits),
            )
        others = rows[target != _SIZED]
        if len(others):
            values, known = values.copy(), known.copy()
            values[others], known[others] = 0, False
        columns = {"function": (function, None), "is_exit": (sheet.is_exit(), None), "result": sheet.cell(0)}
        self._add("calls", sheet, {**columns, "bytes": (values, known)}, is_cleared=True)

    def _targets(self) -> npt.NDArray[np.int64]:
        """Return by function the code of what it waits for, ``_FENCED`` or ``_SIZED``, int64 [functions]."""
        codes, functions = self._rows["host_waits"].dictionary("target"), self._rows["calls"].dictionary("function")
        known = {layout.FENCED[0]: _FENCED}
        for function in functions.texts:
            if function in layout.WAITS:
                known[function] = codes.code(layout.WAITS[function][0])
        return np.array([known.get(function, _SIZED) for function in functions.texts], np.int64)

    def _gather_pushes(self, sheet: Sheet) -> None:
        self._add("pushes", sheet, {"event": sheet.cell(0)})

    def _gather_event_results(self, sheet: Sheet) -> None:
        names = ("event", "status", "timestamp_status", *TICKS)
        columns = {name: sheet.cell(cell) for cell, name in enumerate(names)}
        self._add("results", sheet, columns, is_cleared=True)

    def _gather_results(self, sheet: Sheet) -> None:
        rows = self._rows["results"]
        states = {
            column: (np.full(len(sheet), rows.dictionary(column).code(layout.SUCCESS)), None)
            for column in ("status", "timestamp_status")
        }
        columns = {name: sheet.cell(cell) for cell, name in enumerate(("op_id", "run", *TICKS))}
        self._add("results", sheet, {**states, **columns}, is_cleared=True)

    def _gather_timers(self, sheet: Sheet) -> None:
        # The field hostTimestamp counts on a clock that the records do not use; the record's own time does.
        columns = {"device": sheet.cell(0), "host_ns": (sheet.ts, None), "device_ticks": sheet.cell(1)}
        self._add("clock_pairs", sheet, columns)

    def _moved(self, values: Values) -> Values:
        """Return times of fields, as ``text_records.moved`` has them."""
        latest = np.uint64(layout.MOST_SIZE - max(self._shift_ns, 0))
        return np.minimum(values[0], latest).astype(np.int64) + self._shift_ns, values[1]

    def _gather_pairs(self, sheet: Sheet) -> None:
        names = ("device", "host_ns", "device_ticks", "error_ns")
        columns = {name: sheet.cell(cell) for cell, name in enumerate(names)}
        self._add("clock_pairs", sheet, {**columns, "host_ns": self._moved(columns["host_ns"])})

    def _gather_runs(self, sheet: Sheet) -> None:
        names = ("list", "run", "queue", "ts", "exit_ts")
        columns = {name: sheet.cell(cell) for cell, name in enumerate(names)}
        begin, exit_ts = self._moved(columns["ts"]), self._moved(columns["exit_ts"])
        # An execution cannot begin after its record was written.
        times = {"ts": (np.minimum(begin[0], sheet.ts), None), "exit_ts": exit_ts}
        self._add("runs", sheet, {**columns, **times, "quiet": (filled(sheet.cell(5)), None)})

    def _gather_executions(self, sheet: Sheet) -> None:
        columns = {name: sheet.cell(cell) for cell, name in enumerate(("list", "queue", "exit_ts"))}
        self._add("runs", sheet, {**columns, "quiet": (np.zeros(len(sheet)), None)})

    def _gather_lists(self, sheet: Sheet) -> None:
        self._add("lists", sheet, {"action": (sheet.constant, None), "list": sheet.cell(0)})

    def _gather_regular_lists(self, sheet: Sheet, function: str = "zeCommandListCreate", immediate: int = 0) -> None:
        columns = {name: sheet.cell(cell) for cell, name in enumerate(CREATIONS[function][1], 1)}
        flags, known = columns.pop("flags")
        bit = layout.QUEUE_IN_ORDER if immediate else layout.LIST_IN_ORDER
        columns |= {"action": (sheet.constant, None), "list": sheet.cell(0)}
        columns["immediate"] = np.full(len(sheet), immediate), None
        columns["in_order"] = (flags & np.uint64(bit)) != 0, known
        self._add("lists", sheet, columns)

    def _gather_immediate_lists(self, sheet: Sheet) -> None:
        self._gather_regular_lists(sheet, "zeCommandListCreateImmediate", 1)

    def _gather_created_queues(self, sheet: Sheet) -> None:
        self._add(
            "queues",
            sheet,
            {name: sheet.cell(cell) for cell, name in enumerate(("queue", *CREATIONS["zeCommandQueueCreate"][1]))},
        )

    def _add_launched(self, table: str, api: HostApi, sheet: Sheet, columns: Mapping[str, Values]) -> None:
        code = self._rows[table].dictionary("api").code(api.title)
        self._add(table, sheet, {"api": (np.full(len(sheet), code), None), **columns})

    def _gather_cuda_launches(self, sheet: Sheet, api: HostApi = CUDA_API) -> None:
        columns = {"function": (sheet.constant, None), "queue": sheet.cell(0), "kernel": sheet.cell(1)}
        self._add_launched("launches", api, sheet, columns)

    def _gather_opencl_launches(self, sheet: Sheet) -> None:
        self._gather_cuda_launches(sheet, OPENCL_API)

    def _gather_cuda_events(self, sheet: Sheet) -> None:
        self._add_launched("launch_events", CUDA_API, sheet, {"event": sheet.cell(0), "stop": sheet.cell(1)})

    def _gather_opencl_events(self, sheet: Sheet) -> None:
        columns = {"event": sheet.cell(0), "stop": (np.zeros(len(sheet)), None)}
        self._add_launched("launch_events", OPENCL_API, sheet, columns)

    def _gather_cuda_results(self, sheet: Sheet) -> None:
        columns = {"event": sheet.cell(0), "stop": sheet.cell(1), "dur": sheet.cell(2)}
        self._add_launched("launch_results", CUDA_API, sheet, {"status": (sheet.constant, None), **columns})

    def _gather_opencl_results(self, sheet: Sheet) -> None:
        columns = {name: sheet.cell(cell) for cell, name in enumerate(("event", "queued", "start", "end"))}
        columns |= {"stop": (np.zeros(len(sheet)), None), "status": (sheet.constant, None)}
        self._add_launched("launch_results", OPENCL_API, sheet, columns)

    def _gather_event_ends(self, sheet: Sheet) -> None:
        self._add("event_ends", sheet, {"event": sheet.cell(0)})

    def _gather_freed(self, sheet: Sheet) -> None:
        self._add_allocations(sheet, "free", np.zeros(len(sheet), np.uint64))

    def _gather_allocated(self, sheet: Sheet) -> None:
        self._add_allocations(sheet, "alloc", sheet.cell(1)[0])

    def _add_allocations(self, sheet: Sheet, action: str, sizes: UInt64) -> None:
        code = self._rows["allocations"].dictionary("action").code(action)
        columns = {"action": (np.full(len(sheet), code), None), "base": sheet.cell(0), "bytes": (sizes, None)}
        self._add("allocations", sheet, {**columns, "memory": (sheet.constant, None)})
