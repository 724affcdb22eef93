"""Declarations of the tables of a trace.

Columns, types, units and their documentation stand here and nowhere else: the builder checks against these
declarations, Arrow and SQL take their types from them, and the reference pages are generated from them.
"""

from __future__ import annotations

import enum
from functools import cached_property

from lanescope.declaration import frozen_class

#: Column types. ``text`` is a dictionary column (int32 codes, texts in order of first sight), ``utf8`` plain text.
TYPES = ("int64", "int32", "uint64", "uint32", "uint16", "uint8", "float64", "bool", "text", "utf8")


@frozen_class
class ColumnSpec:
    """One column of a table.

    Attributes:
        name: lower case, with the unit in it where a number could be misread (``propagation_ns``).
        type: one of ``TYPES``.
        doc: one line, what a value means.
        nullable: whether a value may be unknown. Nulls carry a validity mask; the value under a null is 0 or "".
        unit: ``ns``, ``ticks``, ``bytes``, ``1`` or empty.
        is_argument: detail tables only: whether exporters attach the value to the drawn event.
        references: name of the table whose ``id`` it holds (of a detail table: whose row number). A merge renumbers it.
        is_time: whether it is a moment on the trace's time axis. A merge shifts it. The ``ts`` of raw records, on the
            device's own axis, is not.
        of_host: whether that moment is on the host's clock, whatever clock the lane of the row counts on.
    """

    name: str
    type: str
    doc: str
    nullable: bool = False
    unit: str = ""
    is_argument: bool = False
    references: str = ""
    is_time: bool = False
    of_host: bool = False

    def __post_init__(self) -> None:
        """Reject unsupported types and declarations that a merge cannot shift."""
        if self.type not in TYPES:
            raise ValueError(f"column {self.name}: unknown type {self.type!r}")
        if (self.references or self.is_time) and self.type != "int64":
            raise ValueError(f"column {self.name}: references and times must be int64, not {self.type}")
        if self.references and self.is_time:
            raise ValueError(f"column {self.name}: reference and time are mutually exclusive")


@frozen_class
class TableSpec:
    """One table: its columns in order.

    Attributes:
        name: plural noun; detail tables begin with their family's name (``ascend_tasks``).
        doc: one line, what a row is.
        columns: the columns in order. Core tables begin with ``id``.
        key: detail tables only: the column that joins a core table (``slice_id``, ``instant_id``, ``flow_id``,
            ``track_id``, ``input_id``); empty for core tables. Its ``references`` names that table.
    """

    name: str
    doc: str
    columns: tuple[ColumnSpec, ...]
    key: str = ""

    def __post_init__(self) -> None:
        """Reject a key whose column does not declare its reference: a merge would not shift it."""
        if any(column.name == self.key and not column.references for column in self.columns):
            raise ValueError(f"table {self.name}: key {self.key} requires a referenced table")

    def column(self, name: str) -> ColumnSpec:
        """Return the declaration of column ``name``; ``KeyError`` if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)


def ref(name: str, table: str, doc: str, *, nullable: bool = False) -> ColumnSpec:
    """Declare a column of ids of rows of another table, int64."""
    return ColumnSpec(name, "int64", doc, nullable=nullable, references=table)


def time(
    name: str, doc: str, *, nullable: bool = False, is_argument: bool = False, of_host: bool = False
) -> ColumnSpec:
    """Declare a column of moments on the trace's time axis, int64, ns."""
    return ColumnSpec(
        name, "int64", doc, nullable=nullable, unit="ns", is_argument=is_argument, is_time=True, of_host=of_host
    )


def ticks(name: str, doc: str, *, nullable: bool = False, is_argument: bool = False) -> ColumnSpec:
    """Declare a column of readings of, or distances on, a device's counter, int64, ticks."""
    return ColumnSpec(name, "int64", doc, nullable=nullable, unit="ticks", is_argument=is_argument)


def argument(name: str, type: str, doc: str, *, nullable: bool = False, unit: str = "") -> ColumnSpec:
    """Declare a column of a detail table whose values exporters attach to the drawn event."""
    return ColumnSpec(name, type, doc, nullable=nullable, unit=unit, is_argument=True)


class Flag(enum.IntFlag):
    """Properties of one slice or instant besides its times."""

    UNFINISHED = 1 << 0  # the end was not recorded: dur is NULL, last_known_ts is a lower bound of the end
    TRUNCATED = 1 << 1  # truncated by a gap or by the end of the capture: the true duration is longer
    PARTIAL_OVERLAP = 1 << 2  # partially overlaps another slice of its lane
    BELOW_RESOLUTION = 1 << 3  # shorter than twice the clock resolution: the true duration may be half or double
    CLOCK_SUSPECT = 1 << 4  # its clock contradicts its anchors or adjacent rows
    WRAP_AMBIGUOUS = 1 << 5  # the number of counter wraps is not certain
    INFERRED_START = 1 << 6  # the start was not recorded
    INFERRED_IDENTITY = 1 << 7  # the identity was inferred, not recorded
    NEGATIVE_DURATION = 1 << 8  # the recorded end precedes the recorded start; dur is NULL
    AFTER_GAP = 1 << 9  # the first event after a gap of its lane
    CUT = 1 << 10  # begins before the window or ends after it: times are those of the part in the window


FLAG_DOCS: dict[Flag, str] = {
    Flag.UNFINISHED: "end not recorded: `dur` is NULL, `last_known_ts` is a lower bound of the end",
    Flag.TRUNCATED: "truncated by a gap or by the end of the capture: the true duration is longer",
    Flag.PARTIAL_OVERLAP: "partial overlap with another slice of its lane",
    Flag.BELOW_RESOLUTION: "duration below twice the clock resolution",
    Flag.CLOCK_SUSPECT: "clock that contradicts its anchors or adjacent rows",
    Flag.WRAP_AMBIGUOUS: "uncertain number of counter wraps",
    Flag.INFERRED_START: "start not recorded",
    Flag.INFERRED_IDENTITY: "identity inferred, not recorded",
    Flag.NEGATIVE_DURATION: "recorded end before the recorded start: `dur` is NULL",
    Flag.AFTER_GAP: "first event after a gap of its lane",
    Flag.CUT: "cut by a window (`--start`, `--end`): times of the part in the window",
}

#: ``quality`` of a row: the weakest of its begin, its end and its identity.
QUALITIES = ("exact", "estimated", "inferred")
SEVERITIES = ("info", "notice", "data_loss", "error")
TRACK_KINDS = ("group", "lane", "counter")
#: ``disjoint``: no two slices share time. ``nested``: a stack. ``free``: overlap is meant.
NESTINGS = ("disjoint", "nested", "free")
FLOW_KINDS = ("dependency", "submit", "dispatch", "complete", "ready", "signal")
SCOPES = ("input", "producer")

_ID = ColumnSpec("id", "int64", "row number, dense, in decode order, valid within one trace")
_QUALITY = ColumnSpec("quality", "text", "weakest quality of start, end and identity: exact, estimated, inferred")
_FLAGS = ColumnSpec("flags", "uint32", "bits of Flag")
_TRACK = ColumnSpec("track_id", "int64", "lane of the row", references="tracks")
_TS = ColumnSpec("ts", "int64", "start, in the trace's time unit since its epoch", unit="ns", is_time=True)
_TICKS = ColumnSpec("ts_ticks", "int64", "start on the device counter, unwrapped", nullable=True, unit="ticks")

INPUTS = TableSpec(
    "inputs",
    "one file of a capture",
    (
        _ID,
        ColumnSpec("capture", "utf8", "name of the run that the file belongs to"),
        ColumnSpec("role", "utf8", "role of the file in the capture: `main`, or the family's name for a sidecar file"),
        ColumnSpec("path", "utf8", "path as specified"),
        ColumnSpec("size", "int64", "content size after decompression", unit="bytes"),
        ColumnSpec("sha256", "utf8", "SHA-256 of the content, hexadecimal"),
        ColumnSpec("family", "text", "device family that decoded the file"),
        ColumnSpec("format", "text", "format name within the family"),
        ColumnSpec("options", "utf8", "decode options as JSON"),
    ),
)
TRACKS = TableSpec(
    "tracks",
    "one row of the track tree: a group, a lane or a counter",
    (
        _ID,
        ColumnSpec("parent_id", "int64", "parent group; NULL for a root track", nullable=True, references="tracks"),
        ColumnSpec(
            "input_id", "int64", "input that the track comes from; NULL for several", nullable=True, references="inputs"
        ),
        ColumnSpec("kind", "text", "track kind: group, lane, counter"),
        ColumnSpec(
            "role",
            "text",
            "kind of hardware or software object: device, tile, core, sm, block, queue, host_thread, ...",
        ),
        ColumnSpec("name", "utf8", "name among its siblings"),
        ColumnSpec("sort_key", "int64", "order among its siblings, ascending"),
        ColumnSpec("nesting", "text", "permitted overlap of the slices of a lane: disjoint, nested, free"),
        ColumnSpec("clock_id", "int64", "clock of its ticks; NULL without a clock", nullable=True, references="clocks"),
        ColumnSpec("unit", "text", "unit of the values of a counter; empty for other tracks"),
    ),
)
SLICES = TableSpec(
    "slices",
    "a half-open interval [ts, ts + dur) on a lane",
    (
        _ID,
        _TRACK,
        _TS,
        ColumnSpec("dur", "int64", "duration; NULL if the end is unknown", nullable=True, unit="ns"),
        _TICKS,
        ColumnSpec("dur_ticks", "int64", "duration on the device counter", nullable=True, unit="ticks"),
        ColumnSpec("name", "text", "name of the work"),
        ColumnSpec("category", "text", "event class within the family"),
        _QUALITY,
        _FLAGS,
        ColumnSpec(
            "last_known_ts",
            "int64",
            "unfinished slices: last time at which the slice is known to have been active",
            nullable=True,
            unit="ns",
            is_time=True,
        ),
    ),
)
INSTANTS = TableSpec(
    "instants",
    "a point in time on a lane",
    (
        _ID,
        _TRACK,
        _TS,
        _TICKS,
        ColumnSpec("name", "text", "name of the event"),
        ColumnSpec("category", "text", "event class within the family"),
        _QUALITY,
        _FLAGS,
    ),
)
COUNTERS = TableSpec(
    "counters",
    "a sampled value, held until the next sample of its track",
    (_ID, _TRACK, _TS, ColumnSpec("value", "float64", "sample, in the unit of the track")),
)
FLOWS = TableSpec(
    "flows",
    "a directed flow from a cause to its effect",
    (
        _ID,
        ColumnSpec("kind", "text", "flow kind: dependency, submit, dispatch, complete, ready, signal"),
        ColumnSpec("src_track_id", "int64", "lane of the cause", references="tracks"),
        ColumnSpec("src_ts", "int64", "time of the cause", unit="ns", is_time=True),
        ColumnSpec("dst_track_id", "int64", "lane of the effect", references="tracks"),
        ColumnSpec("dst_ts", "int64", "time of the effect", unit="ns", is_time=True),
        ColumnSpec("src_slice_id", "int64", "slice of the cause", nullable=True, references="slices"),
        ColumnSpec("dst_slice_id", "int64", "slice of the effect", nullable=True, references="slices"),
    ),
)
GAPS = TableSpec(
    "gaps",
    "a period in which the state of a lane is unknown",
    (
        _ID,
        _TRACK,
        _TS,
        ColumnSpec("dur", "int64", "duration; NULL if the lane did not resume", nullable=True, unit="ns"),
        ColumnSpec("cause", "text", "reason: overrun, bad_bytes, truncated, ..."),
        ColumnSpec("lost_count", "int64", "number of records known to be lost", nullable=True),
        ColumnSpec("input_id", "int64", "input that contains the gap", nullable=True, references="inputs"),
        ColumnSpec("first_offset", "int64", "byte offset of the gap in that input", nullable=True, unit="bytes"),
    ),
)
COVERAGE = TableSpec(
    "coverage",
    "a period in which a lane was recorded",
    (
        _ID,
        _TRACK,
        _TS,
        ColumnSpec("dur", "int64", "duration", unit="ns"),
        ColumnSpec(
            "min_recorded_dur", "int64", "shortest duration that the producer records", nullable=True, unit="ns"
        ),
    ),
)
CLOCKS = TableSpec(
    "clocks",
    "a device or host counter",
    (
        _ID,
        ColumnSpec("name", "utf8", "name of the counter"),
        ColumnSpec("device", "utf8", "device or host of the counter"),
        ColumnSpec(
            "frequency_num",
            "int64",
            "frequency, numerator of an exact ratio; NULL if unknown",
            nullable=True,
            unit="Hz",
        ),
        ColumnSpec(
            "frequency_den", "int64", "frequency, denominator of an exact ratio; NULL if unknown", nullable=True
        ),
        ColumnSpec("counter_bits", "int64", "recorded width of the counter in bits", nullable=True),
        ColumnSpec(
            "resolution_ticks",
            "int64",
            "measured resolution: timestamps are multiples of it",
            nullable=True,
            unit="ticks",
        ),
    ),
)
ANCHORS = TableSpec(
    "anchors",
    "a counter reading with a known trace time",
    (
        _ID,
        ColumnSpec("clock_id", "int64", "clock of the reading", references="clocks"),
        ColumnSpec("ticks", "int64", "counter reading, unwrapped", unit="ticks"),
        ColumnSpec("ts", "int64", "trace time of the reading", unit="ns", is_time=True),
        ColumnSpec("error_ns", "int64", "maximum error of the pairing", nullable=True, unit="ns"),
    ),
)
STATS = TableSpec(
    "stats",
    "a decode diagnostic with its count",
    (
        _ID,
        ColumnSpec("name", "text", "name of the stat"),
        ColumnSpec("counted", "text", "objects counted, a noun phrase in the plural"),
        ColumnSpec("severity", "text", "severity: info, notice, data_loss, error"),
        ColumnSpec("rule", "text", "code of the rule of `check` that reports it; empty if none"),
        ColumnSpec("finding_severity", "text", "severity of the finding: notice, warning, error; empty if none"),
        ColumnSpec("share_of", "text", "total for the share of the count: events, lanes; empty if there is none"),
        ColumnSpec("track_id", "int64", "lane concerned; NULL if none", nullable=True, references="tracks"),
        ColumnSpec("input_id", "int64", "input concerned; NULL if none", nullable=True, references="inputs"),
        ColumnSpec("count", "int64", "number of occurrences"),
        ColumnSpec("first_offset", "int64", "byte offset of the first occurrence", nullable=True, unit="bytes"),
        ColumnSpec("first_ts", "int64", "time of the first occurrence", nullable=True, unit="ns", is_time=True),
    ),
)
ACCOUNTING = TableSpec(
    "accounting",
    "classification of all units of an input: total = decoded + padding + lost",
    (
        _ID,
        ColumnSpec("input_id", "int64", "input", references="inputs"),
        ColumnSpec("layer", "int64", "0: bytes of the file; n + 1: units within the decoded units of layer n"),
        ColumnSpec("scope", "text", "input: in the file; producer: dropped by the device, not in the file"),
        ColumnSpec("unit", "text", "counted unit: byte, word, record, ..."),
        ColumnSpec("unit_bytes", "int64", "size of one unit in bytes of the layer below", unit="bytes"),
        ColumnSpec("total", "int64", "total number of units"),
        ColumnSpec("decoded", "int64", "decoded units"),
        ColumnSpec("padding", "int64", "units without content"),
        ColumnSpec("lost", "int64", "units that could not be decoded"),
    ),
)

CORE_TABLES: tuple[TableSpec, ...] = (
    INPUTS,
    TRACKS,
    SLICES,
    INSTANTS,
    COUNTERS,
    FLOWS,
    GAPS,
    COVERAGE,
    CLOCKS,
    ANCHORS,
    STATS,
    ACCOUNTING,
)
