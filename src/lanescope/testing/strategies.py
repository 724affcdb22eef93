"""Hypothesis strategies of traces.

What is drawn is plain data (times, texts, numbers), so a failing example shrinks to few rows with small numbers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from lanescope.trace import ColumnSpec, Flag, StatSpec, TableSpec, TimeBase, Trace, TraceBuilder
from lanescope.trace.schema import FLOW_KINDS, QUALITIES

#: A detail table with a column of every kind, and the stats that the traces count.
DETAILS = TableSpec(
    "test_tasks",
    "details of a slice",
    (
        ColumnSpec("slice_id", "int64", "slice", references="slices"),
        ColumnSpec("task", "uint64", "a large identity", is_argument=True),
        ColumnSpec("core", "int32", "a small number, sometimes unknown", nullable=True, is_argument=True),
        ColumnSpec("load", "float64", "a fraction", is_argument=True, unit="1"),
        ColumnSpec("is_last", "bool", "a truth value", is_argument=True),
        ColumnSpec("kernel", "text", "a text of few values", nullable=True, is_argument=True),
        ColumnSpec("note", "utf8", "a free text, not for drawing"),
    ),
    key="slice_id",
)
STATS = (
    StatSpec("test_hint", "info", "harmless facts", silent="harmless"),
    StatSpec("test_odd", "notice", "unusual facts", silent="unusual, and right"),
    StatSpec("test_lost", "data_loss", "missing data"),
    StatSpec("test_wrong", "error", "contradictory data"),
    StatSpec("test_end_unmatched", "notice", "ends without a start", finding="LS401"),
    StatSpec("test_task_duplicate", "notice", "duplicate tasks", finding="LS402"),
    StatSpec("test_queue_degraded", "notice", "incomplete queues", finding="LS403"),
    StatSpec("test_lane_config", "notice", "ambiguous labels", finding="LS404"),
    StatSpec("test_buffer_no_records", "notice", "buffers without records", finding="LS004"),
    StatSpec("test_lane_may_be_lost", "notice", "lanes with possible data loss", finding="LS005 notice"),
    StatSpec("test_file_unused", "notice", "unused files", finding="LS003 notice"),
    StatSpec("test_lane_left", "notice", "lanes without an end", finding="LS105 warning", share_of="lanes"),
    StatSpec("test_time_assumed", "info", "assumed times", finding="LS305", share_of="events"),
    StatSpec("test_lane_stale", "notice", "records of an earlier run", finding="LS006"),
)

#: Names as devices and hostile files have them.
NAMES = (
    "load", "compute", "store", "wait 1", "wait 2", "", " ", "tile(0,2)/core", "a\tb\nc", "\x1b[31mred\x1b[0m",
    "\u202eesrever", "名前", "e\u0301", "🙂", "[bold]x[/bold]", "=1+1", "\ud800", "x" * 200,
)  # fmt: skip

Rows = list[dict[str, Any]]


def intervals(nesting: str = "disjoint", *, max_size: int = 12, max_time: int = 60) -> st.SearchStrategy[Any]:
    """Return a strategy of one lane's (ts, dur) pairs, by begin.

    Args:
        nesting: ``disjoint``, ``nested`` (a stack), ``free`` (anything goes).
        max_size: how many at most.
        max_time: where they may begin, how long they may be; sums may be larger.

    Example:
        >>> from hypothesis import find
        >>> find(intervals("disjoint"), lambda found: len(found) == 2)
        [(0, 0), (0, 0)]
        >>> find(intervals("nested"), lambda found: len(found) == 2 and found[0][1] > found[1][1] > 0)
        [(0, 2), (1, 1)]
    """
    times = st.integers(0, max_time)
    if nesting == "free":
        return st.lists(st.tuples(times, times), max_size=max_size).map(sorted)
    if nesting == "disjoint":
        return st.lists(st.tuples(times, times), max_size=max_size).map(_sequential)
    # (pause before, own time, what is inside)
    leaf = st.tuples(times, times, st.just(()))
    node = st.recursive(
        leaf, lambda inner: st.tuples(times, times, st.lists(inner, max_size=3).map(tuple)), max_leaves=max(max_size, 1)
    )
    return st.lists(node, max_size=max_size).map(lambda nodes: _stacked(nodes)[:max_size])


def _sequential(drawn: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found, now = [], 0
    for pause, dur in drawn:
        found.append((now + pause, dur))
        now += pause + dur
    return found


def _stacked(nodes: Any) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []

    def lay(node: Any, now: int) -> int:
        pause, own, inside = node
        begin: int = now + pause
        row, end = len(found), int(begin)
        found.append((begin, 0))
        for child in inside:
            end = lay(child, end)
        end += int(own)
        found[row] = (begin, end - begin)
        return end

    now = 0
    for node in nodes:
        now = lay(node, now)
    return found


def traces(*, max_slices: int = 12, max_lanes: int = 5) -> st.SearchStrategy[Trace]:
    """Return a strategy of traces that a family could make of any input: every feature of the model, sound or not.

    They are consistent (``assert_consistent``) and accounted for, but their times may clash with the nesting of
    their lanes, run backwards, be open or below the resolution; records may be lost and names hostile.

    Args:
        max_slices: slices of one lane at most.
        max_lanes: lanes at most.
    """
    return batches(max_slices=max_slices, max_lanes=max_lanes).map(Trace.concat)


def valid_traces(*, max_slices: int = 12, max_lanes: int = 5) -> st.SearchStrategy[Trace]:
    """Return a strategy of traces that no rule objects to; the arguments are those of ``traces``."""
    return _drawn(max_slices, max_lanes, sound=True).map(Trace.concat)


def batches(*, max_slices: int = 12, max_lanes: int = 5) -> st.SearchStrategy[list[Trace]]:
    """Return a strategy of the batches of one decode, for writers that take them one by one.

    ``Trace.concat`` of them is what ``traces`` gives. Arguments as there.
    """
    return _drawn(max_slices, max_lanes, sound=False)


@st.composite
def _drawn(draw: st.DrawFn, max_slices: int, max_lanes: int, *, sound: bool) -> list[Trace]:
    unit = draw(st.sampled_from(("ns", "cycles")))
    epoch = draw(st.sampled_from(("device", "unix", "host_monotonic", "first_event")))
    epoch_ns = draw(st.sampled_from((0, 1_700_000_000_000_000_000)))
    builder = TraceBuilder(TimeBase(epoch_ns, epoch, unit), details=(DETAILS,), stats=STATS)
    inputs = _inputs(draw, builder, sound=sound)
    clocks = [_clock(draw, builder, number, sound=sound) for number in range(draw(st.integers(0, 2)))]
    groups = _groups(draw, builder)
    found = []
    lanes: list[tuple[int, Rows]] = []
    for number in range(draw(st.integers(0, max_lanes))):
        track, rows = _lane(draw, builder, number, groups, inputs, clocks, max_slices, sound=sound)
        lanes.append((track, rows))
        if draw(st.booleans()):
            found.append(builder.batch())
    if draw(st.booleans()):
        counter = builder.track(
            "power",
            kind="counter",
            role="counter",
            parent=draw(_one_of([None, *groups])),
            unit=draw(_one_of(["W", ""])),
        )
        for ts in sorted(draw(st.lists(st.integers(0, 100), max_size=4))):
            builder.append("counters", track_id=counter, ts=ts, value=draw(st.floats(-1e12, 1e12)))
    _flows(draw, builder, lanes, sound=sound)
    for spec in STATS[:2] if sound else STATS:
        if draw(st.booleans()):
            builder.add_stat(
                spec.name,
                draw(st.integers(1, 9)),
                track_id=draw(_one_of([None, *(track for track, _ in lanes)])),
                input_id=draw(_one_of([None, *inputs])),
                first_offset=draw(_maybe(st.integers(0, 4096))),
                first_ts=draw(_maybe(st.integers(0, 100))),
            )
    found.append(builder.finish())
    return found


def _one_of(values: list[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def _inputs(draw: st.DrawFn, builder: TraceBuilder, *, sound: bool) -> list[int]:
    found = []
    for number in range(draw(st.integers(0, 2))):
        words, padding, lost = (
            draw(st.integers(0, 64)),
            draw(st.integers(0, 8)),
            0 if sound else draw(st.integers(0, 8)),
        )
        found.append(
            builder.input(
                capture="run",
                role="main" if not number else f"part {number}",
                path=f"run-{number}.bin",
                size=8 * (words + padding + lost),
                sha256=f"{number:064x}",
                family="test",
                format="words",
                options={"seed": number},
            )
        )
        total = words + padding + lost
        builder.add_accounting(
            input_id=found[-1],
            layer=0,
            unit="word",
            unit_bytes=8,
            total=total,
            decoded=words,
            padding=padding,
            lost=lost,
        )
        if draw(st.booleans()):
            builder.add_accounting(input_id=found[-1], layer=1, unit="record", unit_bytes=8, total=words, decoded=words)
        if not sound and draw(st.booleans()):
            builder.add_accounting(
                input_id=found[-1], layer=0, unit="record", unit_bytes=8, total=9, decoded=0, lost=9, scope="producer"
            )
    return found


def _clock(draw: st.DrawFn, builder: TraceBuilder, number: int, *, sound: bool) -> int:
    frequency = draw(_one_of([None, 10**9, Fraction(10**9, 3)]))
    clock = builder.clock(
        name=f"counter {number}",
        device=f"device {number}",
        frequency=frequency,
        counter_bits=draw(_one_of([None, 32, 64])),
        resolution_ticks=draw(_one_of([None, 1, 32])),
    )
    ticks = draw(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), max_size=3))
    columns = list(zip(*ticks, strict=True)) or [(), ()]
    readings = zip(sorted(columns[0]), sorted(columns[1]), strict=True) if sound else ticks
    for reading, ts in readings:
        if sound and frequency is not None:
            ts = int(reading * 10**9 / frequency)
        builder.anchor(clock_id=clock, ticks=reading, ts=ts, error_ns=draw(_maybe(st.integers(0, 20))))
    return clock


def _groups(draw: st.DrawFn, builder: TraceBuilder) -> list[int]:
    found: list[int] = []
    for number in range(draw(st.integers(0, 3))):
        parent = draw(_one_of([None, *found]))
        role = "device" if parent is None else "tile"
        found.append(builder.track(f"{role} {number}", kind="group", role=role, parent=parent))
    return found


def _lane(
    draw: st.DrawFn,
    builder: TraceBuilder,
    number: int,
    groups: list[int],
    inputs: list[int],
    clocks: list[int],
    max_slices: int,
    *,
    sound: bool,
) -> tuple[int, Rows]:
    nesting = draw(_one_of(["disjoint", "nested", "free"]))
    clock = draw(_one_of([None, *clocks]))
    track = builder.track(
        f"lane {number}" if sound else draw(_one_of([f"lane {number}", "lane", *NAMES])),
        kind="lane",
        role=draw(_one_of(["core", "queue"])),
        parent=draw(_one_of([None, *groups])),
        input_id=draw(_one_of([None, *inputs])),
        nesting=nesting,
        clock_id=clock,
        sort_key=draw(_maybe(st.integers(-3, 3))),
    )
    lengths = draw(intervals(nesting if sound else draw(_one_of([nesting, "free"])), max_size=max_slices))
    rows = [_slice(draw, ts, dur, ticks=clock is not None, sound=sound) for ts, dur in lengths]
    for row in rows:
        row["id"] = builder.append("slices", track_id=track, **{k: v for k, v in row.items() if k != "id"})
        if draw(st.booleans()):
            builder.append(
                "test_tasks",
                slice_id=row["id"],
                task=draw(st.integers(0, (1 << 64) - 1)),
                core=draw(_maybe(st.integers(0, 99))),
                load=draw(st.floats(0, 1)),
                is_last=draw(st.booleans()),
                kernel=draw(_maybe(st.sampled_from(NAMES))),
                note=[draw(st.sampled_from(NAMES))],
            )
    end = max((ts + dur for ts, dur in lengths), default=0)
    for ts in sorted(draw(st.lists(st.integers(0, end), max_size=3))):
        builder.append(
            "instants",
            track_id=track,
            ts=ts,
            ts_ticks=3 * ts if clock is not None else None,
            name=draw(st.sampled_from(NAMES)),
            quality=draw(st.sampled_from(QUALITIES)),
            flags=0 if sound else draw(_flags()),
        )
    if draw(st.booleans()):
        # What a lane holds was recorded; a sound recording covers it all.
        length = end if sound else draw(st.integers(0, 100))
        builder.append("coverage", track_id=track, ts=0, dur=length, min_recorded_dur=draw(_maybe(st.integers(0, 5))))
    if draw(st.booleans()):
        where = end + draw(st.integers(0, 9)) if sound else draw(st.integers(0, 100))
        builder.append(
            "gaps",
            track_id=track,
            ts=where,
            dur=None if sound else draw(_maybe(st.integers(0, 40))),
            cause=draw(_one_of(["overrun", "bad_bytes"])),
            lost_count=draw(_maybe(st.integers(0, 99))),
            input_id=draw(_one_of([None, *inputs])),
            first_offset=draw(_maybe(st.integers(0, 4096))),
        )
    return track, rows


def _slice(draw: st.DrawFn, ts: int, dur: int, *, ticks: bool, sound: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "ts": ts,
        "dur": dur,
        "ts_ticks": 3 * ts if ticks else None,
        "dur_ticks": 3 * dur if ticks else None,
        "name": draw(st.sampled_from(NAMES)),
        "category": draw(_one_of(["", "compute", "memory"])),
        "quality": draw(st.sampled_from(QUALITIES)),
        "flags": int(draw(_one_of([Flag(0), Flag.INFERRED_START, Flag.INFERRED_IDENTITY]))),
        "last_known_ts": None,
    }
    if sound:
        return row
    row["flags"] = draw(_flags())
    kind = draw(_one_of(["closed", "closed", "closed", "open", "unseen", "negative"]))
    if kind != "closed":
        row |= {"dur": None, "dur_ticks": None}
        row["flags"] |= int(Flag.NEGATIVE_DURATION if kind == "negative" else Flag.UNFINISHED)
        row["last_known_ts"] = ts + dur if kind == "open" else None
    if ticks and draw(st.booleans()):
        row["ts_ticks"] = draw(st.integers(0, 300))
    return row


def _flags() -> st.SearchStrategy[int]:
    bits = [flag for flag in Flag if flag not in (Flag.UNFINISHED, Flag.NEGATIVE_DURATION)]
    return st.lists(st.sampled_from(bits), max_size=2, unique=True).map(lambda some: sum(map(int, some)))


def _flows(draw: st.DrawFn, builder: TraceBuilder, lanes: list[tuple[int, Rows]], *, sound: bool) -> None:
    ends = [(track, row) for track, rows in lanes for row in rows]
    if not ends:
        return
    for _ in range(draw(st.integers(0, 4))):
        (src_track_id, src), (dst_track_id, dst) = draw(_one_of(ends)), draw(_one_of(ends))
        src_ts = src["ts"] + (src["dur"] or 0)
        if sound and dst["ts"] < src_ts:
            continue
        with_slices = draw(st.booleans())
        builder.append(
            "flows",
            kind=draw(st.sampled_from(FLOW_KINDS)),
            src_track_id=src_track_id,
            src_ts=src_ts,
            dst_track_id=dst_track_id,
            dst_ts=dst["ts"],
            src_slice_id=src["id"] if with_slices else None,
            dst_slice_id=dst["id"] if with_slices else None,
        )
