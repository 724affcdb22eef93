"""Where the time of devices went: computing, communicating, moving memory, idle; exact to the nanosecond."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.common.intervals import Intervals, concurrent_keys, hulls, sums
from lanescope.errors import UsageError
from lanescope.foreign.kineto.analysis import device_rows
from lanescope.foreign.kineto.formats import layout
from lanescope.trace import ColumnSpec, Table, TableSpec, Trace

Ints = npt.NDArray[np.int64]

#: Kinds of device work; bits of a combination, in this order.
KINDS = COMPUTE, COMMUNICATION, MEMORY = ("compute", "communication", "memory")
#: Words of names of kernels that move data between ranks: all collectives libraries took NCCL's names over.
_COMMUNICATION = ("nccl", "rccl", "oneccl", "hccl")

BREAKDOWN = TableSpec(
    "kineto_breakdown",
    "time of a device from its first to its last row; idle is time without any",
    (
        ColumnSpec("id", "int64", "dense, by device"),
        ColumnSpec("device", "utf8", "device"),
        ColumnSpec("rows", "int64", "kernels, copies and fills"),
        ColumnSpec("window_ns", "int64", "from the start of the first row to the end of the last one", unit="ns"),
        ColumnSpec("busy_ns", "int64", "part in which any row runs", unit="ns"),
        ColumnSpec("idle_ns", "int64", "part in which none runs", unit="ns"),
        ColumnSpec("compute_ns", "int64", "part in which a kernel computes", unit="ns"),
        ColumnSpec("communication_ns", "int64", "part in which a collective runs", unit="ns"),
        ColumnSpec("memory_ns", "int64", "part in which a copy or fill runs", unit="ns"),
        ColumnSpec("hidden_ns", "int64", "part of the communication in which a kernel computes", unit="ns"),
        ColumnSpec("hidden_share", "float64", "the same as a share of the communication", nullable=True, unit="1"),
    ),
)
COMBINATIONS = TableSpec(
    "kineto_combinations",
    "time of a device in which exactly these kinds of work run",
    (
        ColumnSpec("id", "int64", "dense, by device, the longest first"),
        ColumnSpec("device", "utf8", "device"),
        ColumnSpec("kinds", "utf8", "kinds of work that run at the same time"),
        ColumnSpec("total_ns", "int64", "time", unit="ns"),
        ColumnSpec("share", "float64", "share of the time in which any runs", nullable=True, unit="1"),
    ),
)


class Work(NamedTuple):
    """Rows of device work.

    Attributes:
        row: int64 [n], slices with a duration.
        device: int64 [n], number of the device of each, index of ``devices``.
        kind: int64 [n], index of ``KINDS``.
        devices: groups of the devices, by id.
    """

    row: Ints
    device: Ints
    kind: Ints
    devices: Ints


def device_work(trace: Trace, rows: Ints | None = None) -> Work:
    """Return the kernels, copies and fills of a trace.

    Args:
        trace: a trace of this family.
        rows: of these slices only, int64; None: of all.

    Raises:
        UsageError: it has none.
    """
    slices = trace.slices
    mine = device_rows.rows_of(trace, device_rows.ALL) & slices.valid("dur")
    if rows is not None:
        chosen = np.zeros(len(slices), np.bool_)
        chosen[rows] = True
        mine &= chosen
    row = np.flatnonzero(mine)
    if not len(row):
        raise UsageError("the trace has no kernels or copies of a device", hint="record with the activities of devices")
    lanes = trace.slices.values("track_id")[row]
    parents = trace.tracks.values("parent_id")[lanes]
    devices, device = np.unique(parents, return_inverse=True)
    is_memory = _matching(trace, "category", lambda text: text in layout.COPIES)[row]
    is_communication = _matching(trace, "name", lambda text: any(word in text.lower() for word in _COMMUNICATION))[row]
    kind = np.where(is_memory, 2, np.where(is_communication, 1, 0))
    return Work(row, device.reshape(-1).astype(np.int64), kind, devices)


def _matching(trace: Trace, column: str, fits: object) -> npt.NDArray[np.bool_]:
    found = trace.slices.column(column)
    texts = found.dictionary.texts if found.dictionary is not None else []
    assert callable(fits)
    table = np.array([*(bool(fits(text)) for text in texts), False], np.bool_)
    result: npt.NDArray[np.bool_] = table[found.values]
    return result


def _together(trace: Trace, work: Work) -> tuple[Ints, Ints, Ints]:
    """Return device, bits of the kinds that run, and length of all stretches of time."""
    ts, dur = (trace.slices.values(name)[work.row] for name in ("ts", "dur"))
    stretches, bits = concurrent_keys(Intervals(work.device * len(KINDS) + work.kind, ts, ts + dur), len(KINDS))
    return stretches.group, bits.astype(np.int64), stretches.end - stretches.begin


def breakdown(trace: Trace, rows: Ints | None = None) -> Table:
    """Return where the time of each device went; arguments and errors as ``device_work``."""
    work = device_work(trace, rows)
    count = len(work.devices)
    ts, dur = (trace.slices.values(name)[work.row] for name in ("ts", "dur"))
    first, last = hulls(Intervals(work.device, ts, ts + dur), count)
    device, bits, length = _together(trace, work)

    def running(wanted: int) -> Ints:
        mine = (bits & wanted) == wanted
        return sums(device[mine], length[mine], count)

    busy = sums(device, length, count)
    communication, hidden = running(2), running(3)
    window = last - first
    return Table.from_arrays(
        BREAKDOWN,
        {
            "id": np.arange(count),
            "device": _names(trace, work),
            "rows": np.bincount(work.device, minlength=count),
            "window_ns": window,
            "busy_ns": busy,
            "idle_ns": window - busy,
            "compute_ns": running(1),
            "communication_ns": communication,
            "memory_ns": running(4),
            "hidden_ns": hidden,
            "hidden_share": [
                part / whole if whole else None
                for part, whole in zip(hidden.tolist(), communication.tolist(), strict=True)
            ],
        },
    )


def combinations(trace: Trace, rows: Ints | None = None) -> Table:
    """Return how long which kinds of work ran together; arguments and errors as ``device_work``."""
    work = device_work(trace, rows)
    device, bits, length = _together(trace, work)
    busy = sums(device, length, len(work.devices))
    key, inverse = np.unique(device * 8 + bits, return_inverse=True)
    total = sums(inverse.reshape(-1), length, len(key))
    sort = np.lexsort((-total, key // 8))
    key, total = key[sort], total[sort]
    names = _names(trace, work)
    words = [" + ".join(kind for bit, kind in enumerate(KINDS) if one >> bit & 1) for one in range(8)]
    return Table.from_arrays(
        COMBINATIONS,
        {
            "id": np.arange(len(key)),
            "device": [names[one // 8] for one in key.tolist()],
            "kinds": [words[one % 8] for one in key.tolist()],
            "total_ns": total,
            "share": [
                part / busy[one // 8] if busy[one // 8] else None
                for part, one in zip(total.tolist(), key.tolist(), strict=True)
            ],
        },
    )


def _names(trace: Trace, work: Work) -> list[str]:
    names = trace.tracks.values("name")
    return [str(names[group]) if group >= 0 else "" for group in work.devices.tolist()]


def before_last_step(trace: Trace) -> Ints:
    """Return the device work whose call began before the last step of the profiler, slices, int64 [n].

    It is what HolisticTraceAnalysis looks at: the last step may not be recorded to its end. Rows without a call are
    left out, too; without steps all that have a call are taken.
    """
    slices, flows = trace.slices, trace.flows
    steps = np.flatnonzero(_matching(trace, "name", lambda text: text.startswith("ProfilerStep")))
    steps = steps[_matching(trace, "category", lambda text: text in ("user_annotation", "cpu_op"))[steps]]
    launches = np.flatnonzero(flows.column("kind").texts == "submit")
    if len(steps):
        last = int(slices.values("ts")[steps].max())
        launches = launches[flows.values("src_ts")[launches] < last]
    return np.sort(flows.values("dst_slice_id")[launches])


def breakdown_before_last_step(trace: Trace) -> Table:
    """Return ``breakdown`` of what ``before_last_step`` takes."""
    return breakdown(trace, before_last_step(trace))


def combinations_before_last_step(trace: Trace) -> Table:
    """Return ``combinations`` of what ``before_last_step`` takes."""
    return combinations(trace, before_last_step(trace))
