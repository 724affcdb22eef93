"""Sums in the manner of iprof: host calls, time of devices, memory traffic; together, or one sum per thread and device.

Errors count as calls and add neither time nor extremes. Source: THAPI xprof/tally_core.hpp.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, Mask, group
from lanescope.common.distinct import distinct
from lanescope.devices.levelzero.analysis.sums import SUMS, Sums, sums_of
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import is_text
from lanescope.devices.levelzero.formats.host_apis import level_of, plain_name
from lanescope.errors import UsageError
from lanescope.trace import ColumnSpec, Table, TableSpec, Trace

#: Name under which the recorder's own time within calls is summed: calls are summed without it.
RECORDER = "(lanescope recorder)"
HOST, DEVICE, TRAFFIC = SECTIONS = ("host", "device", "traffic")
#: The level at which iprof's JSON groups Level Zero calls. Source: THAPI xprof/xprof.rb.in, default of --backends.
LEVEL = "1"

_WHERE = (
    ColumnSpec("hostname", "utf8", "host; empty where all are summed"),
    ColumnSpec("process", "int64", "process", nullable=True),
    ColumnSpec("thread", "int64", "thread that called, or that appended the operation", nullable=True),
    ColumnSpec("device", "utf8", "UUID of the root device, hexadecimal; or its name", nullable=True),
    ColumnSpec("subdevice", "utf8", "UUID of the sub-device; or its number", nullable=True),
)
TALLY = TableSpec(
    "levelzero_tally",
    "host calls, device operations or memory traffic with the same name",
    (
        ColumnSpec("id", "int64", "row number, dense, by section, then by descending total"),
        ColumnSpec("section", "utf8", "section: host, device, traffic"),
        *_WHERE,
        ColumnSpec(
            "name", "utf8", "function, kernel, or copy with its memory kinds; the recorder's own time within calls"
        ),
        *SUMS,
        ColumnSpec(
            "share", "float64", "fraction of the total of the section; NULL if the total is 0", nullable=True, unit="1"
        ),
    ),
)
OVERLAP = TableSpec(
    "levelzero_overlap",
    "how kernels and copies of one device shared time",
    (
        ColumnSpec("id", "int64", "dense"),
        ColumnSpec("device", "utf8", "name of the device"),
        ColumnSpec("kernels", "int64", "time in which at least one kernel ran", unit="ns"),
        ColumnSpec("copies", "int64", "time in which at least one copy or fill ran", unit="ns"),
        ColumnSpec("both", "int64", "time in which both did", unit="ns"),
        ColumnSpec("share", "float64", "of the shorter of the two", nullable=True, unit="1"),
    ),
)


_SUMS = ("section", "name", "count", "errors", "open", "min", "max")


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Values summed by one section. Arrays are [n].

    Attributes:
        name: int32, codes of ``names``.
        names: the texts.
        value: int64, length or size.
        known: bool, whether the value is known.
        error: bool, whether it failed.
        thread: int64, track of the thread.
        queue: int64, track of the queue, -1 where there is none.
    """

    name: npt.NDArray[np.int32]
    names: list[str]
    value: Int64
    known: Mask
    error: Mask
    thread: Int64
    queue: Int64


def require(trace: Trace) -> None:
    """Raise ``UsageError`` unless the trace holds something of this family."""
    if "levelzero_calls" not in trace.details:
        raise UsageError("trace contains no Level Zero calls", hint="use --by name, lane, device or category")


def samples(trace: Trace) -> dict[str, Samples]:
    """Return what each section sums."""
    require(trace)
    slices = trace.slices
    calls, operations = trace.details["levelzero_calls"], trace.details["levelzero_operations"]
    column = slices.column("name")
    names = list(column.dictionary.texts) if column.dictionary else []

    def of(rows: Int64, value: Int64, known: Mask, error: Mask, thread: Int64, queue: Int64) -> Samples:
        return Samples(column.values[rows], names, value, known, error, thread, queue)

    def lengths(rows: Int64) -> tuple[Int64, Mask]:
        return slices.values("dur")[rows], slices.valid("dur")[rows]

    call_rows, op_rows = calls.values("slice_id"), operations.values("slice_id")
    touched = np.flatnonzero(calls.valid("bytes") & ~calls.values("error") & calls.valid("exit_seq"))
    moved = np.flatnonzero(
        operations.valid("bytes")
        & is_text(operations, "kind", layout.COPY, layout.FILL)
        & is_text(operations, "query_status", layout.SUCCESS)
    )
    sizes = np.concatenate([calls.values("bytes")[touched], operations.values("bytes")[moved]])
    sizes = np.minimum(sizes, np.uint64((1 << 63) - 1)).astype(np.int64)
    traffic_rows = np.concatenate([call_rows[touched], op_rows[moved]])
    traffic_thread = np.concatenate(
        [slices.values("track_id")[call_rows[touched]], operations.values("readback_track_id")[moved]]
    )
    count = len(traffic_rows)
    return {
        HOST: _host(trace, names),
        DEVICE: of(
            op_rows,
            *lengths(op_rows),
            operations.values("error"),
            operations.values("thread_track_id"),
            slices.values("track_id")[op_rows],
        ),
        TRAFFIC: of(
            traffic_rows,
            sizes,
            np.ones(count, np.bool_),
            np.zeros(count, np.bool_),
            traffic_thread,
            np.full(count, -1),
        ),
    }


def _host(trace: Trace, names: list[str]) -> Samples:
    """Return the lengths of calls without the recorder's part, and those parts as samples of a name of their own.

    Args:
        trace: the trace.
        names: names of slices, by code.
    """
    slices, calls = trace.slices, trace.details["levelzero_calls"]
    rows = calls.values("slice_id")
    known = slices.valid("dur")[rows]
    own = np.where(known & calls.valid("recorder_ns"), calls.values("recorder_ns"), 0)
    whole = slices.values("dur")[rows]
    measured = np.flatnonzero(known & calls.valid("recorder_ns"))
    tracks = slices.values("track_id")[rows]
    name = slices.column("name").values[rows]
    return Samples(
        np.concatenate([name, np.full(len(measured), len(names), np.int32)]),
        [*names, RECORDER],
        np.concatenate([np.maximum(whole - own, 0), own[measured]]),
        np.concatenate([known, np.ones(len(measured), np.bool_)]),
        np.concatenate([calls.values("error"), np.zeros(len(measured), np.bool_)]),
        np.concatenate([tracks, tracks[measured]]),
        np.full(len(rows) + len(measured), -1),
    )


@dataclass(slots=True, kw_only=True)
class Entry(Sums):
    """Sums of one name in one place; see ``TALLY``.

    Attributes:
        where: hostname, process, thread, device, subdevice; empty and None where they are summed over.
    """

    section: str
    where: tuple[Any, ...]
    name: str


def entries(trace: Trace, *, each: bool = False) -> list[Entry]:
    """Return the sums, by section, then place, then the largest total.

    Args:
        trace: a trace of this family.
        each: whether each host, process, thread, device and sub-device is summed on its own.
    """
    require(trace)
    threads = {
        row["track_id"]: (row["host"], row["pid"], row["tid"]) for row in trace.details["levelzero_threads"].rows()
    }
    places = _places(trace)
    found = []
    for section, sample in samples(trace).items():
        if not len(sample.name):
            continue
        keys: list[npt.NDArray[Any]] = [sample.name]
        if each:
            keys += [sample.thread, _codes(sample.queue, [places.get(q, ("", "")) for q in range(len(trace.tracks))])]
        groups = group(keys, np.arange(len(sample.name)))
        order, starts = groups.order, np.flatnonzero(groups.first)
        made = sums_of(starts, sample.value[order], sample.known[order], sample.error[order])
        listed = []
        for sums, row in zip(made, order[starts].tolist(), strict=True):
            where: tuple[Any, ...] = ("", None, None, None, None)
            if each:
                place = places.get(int(sample.queue[row]), (None, None))
                where = (*threads[int(sample.thread[row])], *(place if section == DEVICE else (None, None)))
            entry = Entry(section=section, where=where, name=sample.names[sample.name[row]])
            entry.add(sums)
            listed.append(entry)
        listed.sort(key=lambda entry: (tuple(str(part) for part in entry.where), -entry.total, entry.name))
        found += listed
    return found


def _codes(queue: Int64, places: list[tuple[Any, ...]]) -> Int64:
    """Return the number of the place of each queue, int64 [n]: queues of one device share it."""
    numbers: dict[tuple[Any, ...], int] = {}
    of = [numbers.setdefault(place, len(numbers)) for place in [*places, ("", "")]]
    return np.array(of, np.int64)[queue]


def _places(trace: Trace) -> dict[int, tuple[Any, Any]]:
    """Return device and sub-device of each queue, by track."""
    tracks = trace.tracks
    parent = np.where(tracks.valid("parent_id"), tracks.values("parent_id"), -1).tolist()
    roles, names = tracks.values("role").tolist(), tracks.values("name").tolist()
    found = {}
    for row in trace.details["levelzero_queues"].rows():
        above = parent[row["track_id"]]
        sub = None
        if roles[above] == "subdevice":
            sub, above = row["subdevice_uuid"] or names[above], parent[above]
        found[row["track_id"]] = (row["device_uuid"] or names[above], sub)
    return found


def tally(trace: Trace, *, each: bool = False) -> Table:
    """Return the sums as a table; arguments as ``entries``."""
    listed = entries(trace, each=each)
    totals: dict[str, int] = {}
    for entry in listed:
        totals[entry.section] = totals.get(entry.section, 0) + entry.total
    shares = [entry.total / totals[entry.section] if totals[entry.section] else None for entry in listed]
    return Table.from_arrays(
        TALLY,
        {
            "id": range(len(listed)),
            **{
                name: [getattr(entry, name) for entry in listed]
                for name in ("section", "name", "count", "errors", "open", "min", "max")
            },
            "total": [entry.stored for entry in listed],
            **{spec.name: [entry.where[place] for entry in listed] for place, spec in enumerate(_WHERE)},
            "average": [entry.average for entry in listed],
            "share": shares,
        },
    )


#: Sums for each host, process, thread, device and sub-device.
tally_each = partial(tally, each=True)


# --- iprof's own shapes -------------------------------------------------------------------------------------------


def iprof_json(trace: Trace, *, each: bool = False) -> Iterator[bytes]:
    """Yield the sums as iprof's JSON: per section, and per level of host calls, an object by name.

    Args:
        trace: a trace of this family.
        each: iprof's extended form: lists of objects with ``Hostname``, ``Process``, ``Thread`` (``Device pointer``,
            ``Subdevice pointer``) and ``data``.
    """
    found = list(entries(trace, each=each))
    sections: dict[str, Any] = {
        section: _iprof_section([entry for entry in found if entry.section == section], section, each=each)
        for section in SECTIONS
    }
    calls = [entry for entry in found if entry.section == HOST]
    sections[HOST] = {
        level: _iprof_section([entry for entry in calls if level_of(entry.name) == level], HOST, each=each)
        for level in sorted({LEVEL, *(level_of(entry.name) for entry in calls)})
    }
    yield json.dumps({"units": {"time": "ns", "size": "bytes"}, **sections}, indent=2).encode() + b"\n"


def _iprof_section(listed: list[Entry], section: str, *, each: bool) -> Any:
    places: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in listed:
        places.setdefault(entry.where, {})[plain_name(entry.name)] = _iprof_entry(entry)
    if each:
        return [{**_iprof_where(where, section), "data": data} for where, data in places.items()]
    return next(iter(places.values()), {})


def _iprof_entry(entry: Entry) -> dict[str, int]:
    # iprof's key of the sum is "time" in all sections; the unit of traffic is that of sizes.
    shown = {"call": entry.count, "min": entry.min or 0, "max": entry.max or 0, "time": entry.total}
    return {**shown, "error": entry.errors} if entry.errors else shown


def _iprof_where(where: tuple[Any, ...], section: str) -> dict[str, Any]:
    host, process, thread, device, subdevice = where
    found = {"Hostname": host, "Process": process, "Thread": thread}
    if section == DEVICE:
        found |= {"Device pointer": device, "Subdevice pointer": subdevice}
    return found


#: The extended form.
iprof_json_each = partial(iprof_json, each=True)


def iprof_text(trace: Trace) -> Iterator[bytes]:
    """Yield the sums as iprof's tables: one each of host calls, device time and memory traffic."""
    listed = entries(trace)
    threads = list(trace.details["levelzero_threads"].rows())
    places = _places(trace).values()
    hosts = [
        _counted({row["host"] for row in threads}, "Hostnames"),
        _counted({(row["host"], row["pid"]) for row in threads}, "Processes"),
        _counted({row["track_id"] for row in threads}, "Threads"),
    ]
    devices = [
        _counted({device for device, _ in places}, "Devices"),
        _counted({p for p in places if p[1]}, "Subdevices"),
    ]
    titles = {
        HOST: ("BACKEND_ZE", hosts),
        DEVICE: ("Device profiling", hosts + devices),
        TRAFFIC: ("Explicit memory traffic (BACKEND_ZE)", hosts),
    }
    for section, (title, parts) in titles.items():
        mine = [entry for entry in listed if entry.section == section]
        if mine:
            yield (
                "\n".join([" | ".join([title, *parts]) + " | ", "", *_iprof_table(mine, section), ""]) + "\n"
            ).encode()


def _counted(things: set[Any], word: str) -> str:
    return f"{len(things)} {word}"


def _iprof_table(listed: list[Entry], section: str) -> list[str]:
    show = size_text if section == TRAFFIC else time_text
    total = sum(entry.total for entry in listed)
    has_errors = any(entry.errors for entry in listed)
    heads = ["Name", "Byte" if section == TRAFFIC else "Time"]
    heads += [f"{heads[1]}(%)", "Calls", "Average", "Min", "Max"] + ["Error"] * has_errors
    rows = [heads]
    for entry in sorted(listed, key=lambda entry: -entry.total):
        average = entry.average
        share = 100 * entry.total / total if total else 0.0
        row = [entry.name, show(entry.total), f"{share:.2f}%", str(entry.count)]
        row += ["" if value is None else show(value) for value in (average, entry.min, entry.max)]
        rows.append(row + [str(entry.errors)] * has_errors)
    calls, errors = sum(entry.count for entry in listed), sum(entry.errors for entry in listed)
    rows.append(["Total", show(total), "100.00%", str(calls), "", "", ""] + [str(errors)] * has_errors)
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    return [" | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " | " for row in rows]


def time_text(ns: float) -> str:
    """Return a time as iprof shows it: two decimals in the largest unit that it fills.

    Example:
        >>> time_text(90_000_000_000), time_text(1500), time_text(0)
        ('1.50min', '1.50us', '0ns')
    """
    for unit, size in (("h", 3600e9), ("min", 60e9), ("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.2f}{unit}"
    return f"{ns:.2f}ns" if ns else "0ns"


def size_text(size: float) -> str:
    """Return a size as iprof shows it, in powers of ten.

    Example:
        >>> size_text(2_500_000), size_text(12)
        ('2.50MB', '12.00B')
    """
    for unit, power in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= power:
            return f"{size / power:.2f}{unit}"
    return f"{size:.2f}B" if size else "0B"


# --- overlap ------------------------------------------------------------------------------------------------------


def overlap(trace: Trace) -> Table:
    """Return how much time kernels and copies of each device ran, and ran together."""
    require(trace)
    operations, slices, tracks = trace.details["levelzero_operations"], trace.slices, trace.tracks
    rows = operations.values("slice_id")
    usable = slices.valid("dur")[rows] & ~operations.values("error")
    roots = _roots(trace)[slices.values("track_id")[rows]]
    begin = slices.values("ts")[rows]
    end = begin + slices.values("dur")[rows]
    is_kernel = is_text(operations, "kind", layout.KERNEL) & usable
    is_copy = is_text(operations, "kind", layout.COPY, layout.FILL) & usable
    found = []
    for root in distinct(roots).tolist():
        mine = roots == root
        kernels = union_length(begin[mine & is_kernel], end[mine & is_kernel])
        copies = union_length(begin[mine & is_copy], end[mine & is_copy])
        either = mine & (is_kernel | is_copy)
        both = kernels + copies - union_length(begin[either], end[either])
        least = min(kernels, copies)
        found.append((str(tracks.values("name")[root]), kernels, copies, both, both / least if least else None))
    columns = zip(*found, strict=True) if found else [()] * 5
    names = ("device", "kernels", "copies", "both", "share")
    return Table.from_arrays(OVERLAP, {"id": range(len(found)), **dict(zip(names, columns, strict=True))})


def union_length(begin: Int64, end: Int64) -> int:
    """Return how much time intervals cover, what several share counted once.

    Args:
        begin: int64 [n].
        end: int64 [n], not before ``begin``.
    """
    if not len(begin):
        return 0
    order = np.argsort(begin)
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    idle = np.maximum(begin[1:] - reach[:-1], 0)
    return int(reach[-1] - begin[0] - idle.sum())


def _roots(trace: Trace) -> Int64:
    """Return the topmost track above each one, int64 [tracks]."""
    tracks = trace.tracks
    above = np.where(tracks.valid("parent_id"), tracks.values("parent_id"), np.arange(len(tracks)))
    while bool((above != above[above]).any()):
        above = above[above]
    return above
