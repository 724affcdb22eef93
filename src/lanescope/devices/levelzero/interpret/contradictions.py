"""What in a trace contradicts itself or the API, counted for ``check``: no other part of the decoder would notice it.

Each rule is a few operations on whole columns. A rule that needs a beginning, such as the creation of a handle, speaks
only where the recording has beginnings of that kind.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, Mask, group, join, pick
from lanescope.common.distinct import is_among
from lanescope.common.stat_tally import StatTally
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events, is_text
from lanescope.devices.levelzero.formats.host_apis import backend_of
from lanescope.devices.levelzero.interpret.appends import Appends
from lanescope.devices.levelzero.interpret.attribution import Operations
from lanescope.devices.levelzero.interpret.call_matching import Calls
from lanescope.devices.levelzero.interpret.device_time import Devices, Times
from lanescope.trace import Flag, Table

UInt64 = npt.NDArray[np.uint64]

#: Text columns and what they hold, mostly or only.
_WORDS = (
    ("calls", "result", layout.ANSWERS, "levelzero_unknown_result"),
    ("results", "status", layout.ANSWERS, "levelzero_unknown_result"),
    ("results", "timestamp_status", layout.ANSWERS, "levelzero_unknown_result"),
    ("appends", "how", layout.HOW, "levelzero_impossible_value"),
    ("allocations", "memory", layout.MEMORIES, "levelzero_impossible_value"),
)
#: Columns that the API gives as integers of 32 bits.
_COUNTS = (
    ("appends", ("waits", "groups_x", "groups_y", "groups_z")),
    ("kernels", ("simd", "group_x", "group_y", "group_z")),
    ("lists", ("ordinal", "index")),
    ("queues", ("ordinal", "index")),
    ("devices", ("subdevice",)),
)
#: Tables that only recordings have.
_RECORDED = ("arguments", "sensor_kinds", "sensors", "samplings", "samples")
#: Addresses of memory, by table.
_ADDRESSES = (("appends", ("dst", "src")), ("allocations", ("base",)))
#: Records that begin and end the life of a kernel's handle.
_ACTIONS = {"create": 1, "destroy": -1}
_UNSURE = np.uint32(Flag.CLOCK_SUSPECT | Flag.WRAP_AMBIGUOUS | Flag.NEGATIVE_DURATION)
_MOST_RUNS = 1 << 20
#: Parts by which a clock may be off its declared rate, and off one that was rounded to whole nanoseconds a tick.
_RATE, _ROUNDED_RATE = 0.002, 0.01
#: Ticks by which two readings may be off.
_TICKS = 2
#: Records of other threads that are passed over in search of one.
_LOOKED_AT = 16
#: How long before its record a reading without another record before it may have been taken.
_FIRST_NS = 1_000_000


def note_contradictions(
    events: Events, calls: Calls, appends: Appends, operations: Operations, devices: Devices, times: Times
) -> None:
    """Add what contradicts itself to the notes of ``operations``."""
    notes = operations.notes
    _note_words(events, notes)
    _note_returns(events["calls"], notes)
    _note_values(events, notes)
    if any(len(events[name]) for name in _RECORDED):
        from lanescope.devices.levelzero.interpret.contradictory_arguments import note_arguments, note_sensors

        note_arguments(events, notes)
        note_sensors(events, notes)
    _note_devices(events, devices, notes)
    _note_readings(events, notes)
    _note_kernels(events, notes)
    _note_waits(events, notes)
    _note_repeated(events, operations.result, notes)
    _note_numbers(events, calls, appends, notes)
    if len(operations.append):
        _note_ticks(events, operations, devices, times)
        listed = appends.listed[operations.append]
        _note_executions(events, operations, listed)
        _note_order(events, operations, times, listed)


# --- values -------------------------------------------------------------------------------------------------------


def _note_words(events: Events, notes: StatTally) -> None:
    """Note texts that the API, or the recorder, does not define."""
    for name, column, known, stat in _WORDS:
        values = events[name].column(column)
        texts = values.dictionary.texts if values.dictionary else []
        strange = [code for code, text in enumerate(texts) if text and text not in known and not _is_result(text)]
        if strange:
            rows = np.isin(values.values, strange)
            if name == "calls":
                rows &= _of_level_zero(events[name])
            notes.add_times(stat, _times(events[name], rows if values.valid is None else rows & values.valid))


def _note_returns(calls: Table, notes: StatTally) -> None:
    """Note returns without a result in a trace that has results."""
    result = calls.column("result")
    if result.valid is None or not len(calls):
        return
    exits = calls.values("is_exit") & _of_level_zero(calls)
    without = exits & ~result.valid
    if without.any() and (exits & result.valid).any():
        notes.add_times("levelzero_missing_result", _times(calls, without))


def _of_level_zero(calls: Table) -> Mask:
    """Return which calls are not those of another API, which defines its own results, bool [n]."""
    functions = calls.column("function")
    texts = functions.dictionary.texts if functions.dictionary else []
    found: Mask = np.array([backend_of(text) == layout.BACKEND for text in texts], np.bool_)[functions.values]
    return found


def _is_result(text: str) -> bool:
    """Return whether a text is the name or the number of a result."""
    return any(text in (name, f"0x{number:x}") for number, name in layout.ALL_RESULTS.items())


def _note_values(events: Events, notes: StatTally) -> None:
    """Note counts of more than 32 bits, and memory that does not end within the address space."""
    for name, columns in _COUNTS:
        table = events[name]
        for column in columns if len(table) else ():
            values = table.values(column)
            if values.max() > layout.MOST_COUNT:
                notes.add_times("levelzero_impossible_value", _times(table, values > layout.MOST_COUNT))
    for name, columns in _ADDRESSES:
        table = events[name]
        if not len(table):
            continue
        size = table.values("bytes")
        if size.max() > layout.MOST_SIZE:
            notes.add_times("levelzero_impossible_value", _times(table, size > layout.MOST_SIZE))
        for column in columns:
            base = table.values(column)
            wraps = base + size < base
            if wraps.any():
                notes.add_times("levelzero_impossible_value", _times(table, wraps))


def _times(table: Table, rows: Mask) -> Int64:
    found: Int64 = table.values("ts")[rows]
    return found


# --- devices and kernels ------------------------------------------------------------------------------------------


def _note_devices(events: Events, devices: Devices, notes: StatTally) -> None:
    """Note descriptions without a usable clock, without their root device, or unlike an earlier one of the device."""
    table, row = events["devices"], devices.row
    if not len(table):
        return
    is_sub = table.valid("parent")[row]
    wrong = (table.values("device")[row] == 0) | ~table.valid("ticks_per_second_num")[row]
    wrong |= is_sub & (devices.parent < 0)
    wrong |= table.valid("subdevice")[row] & ~is_sub
    for column in ("timestamp_bits", "kernel_timestamp_bits"):
        bits = table.values(column)[row]
        wrong |= (bits < 1) | (bits > layout.MOST_BITS)
    notes.add_times("levelzero_inconsistent_device", table.values("ts")[row[wrong]])
    if len(row) < len(table):
        notes.add_times("levelzero_inconsistent_device", table.values("ts")[_changed(events)])


def _changed(events: Events) -> Int64:
    """Return the rows of ``devices`` that say something else than an earlier one of the same device, int64 [n]."""
    table, process = events["devices"], events.process("devices").tolist()
    first: dict[tuple[int, int], dict[str, object]] = {}
    found = []
    for number, row in enumerate(table.rows()):
        about = {name: value for name, value in row.items() if name not in ("seq", "ts", "thread_id")}
        if first.setdefault((process[number], row["device"]), about) != about:
            found.append(number)
    return np.array(found, np.int64)


def _note_kernels(events: Events, notes: StatTally) -> None:
    """Note properties of kernels that were never created, and kernels without the properties that others have."""
    table = events["kernels"]
    if not len(table):
        return
    process, ts = events.process("kernels"), table.values("ts")
    by_kernel = group([process, table.values("kernel")], table.values("seq"))
    actions = table.column("action").dictionary.texts  # type: ignore[union-attr]
    kinds = np.array([_ACTIONS.get(text, 0) for text in actions], np.int8)[table.codes("action")]
    created = kinds > 0
    # Each creation begins another kernel of that handle.
    order, starts = by_kernel.order, np.flatnonzero(by_kernel.first | created[by_kernel.order])
    named = created | table.valid("name")
    begins, sized = (np.logical_or.reduceat(mask[order], starts) for mask in (named, table.valid("simd")))
    owner, first = process[order[starts]], ts[order[starts]]
    has_begins, has_sizes = (np.bincount(owner, mask, len(events["processes"])) > 0 for mask in (begins, sized))
    notes.add_times("levelzero_unknown_handle", first[~begins & has_begins[owner]])
    notes.add_times("levelzero_incomplete_kernel", first[begins & ~sized & has_sizes[owner]])
    # A handle is given again only after it was destroyed.
    lives = order[kinds[order] != 0]
    again = created[lives[1:]] & created[lives[:-1]] & (process[lives[1:]] == process[lives[:-1]])
    if again.any():
        again &= table.values("kernel")[lives[1:]] == table.values("kernel")[lives[:-1]]
        notes.add_times("levelzero_handle_duplicate", ts[lives[1:][again]])


def _note_waits(events: Events, notes: StatTally) -> None:
    """Note calls that wait for a queue or list that was never made nor used, or for no object at all."""
    waits = events["host_waits"]
    if not len(waits):
        return
    handle, process = waits.values("handle"), events.process("host_waits")
    wrong = handle == 0
    lists, queues, appends, runs = (events[name] for name in ("lists", "queues", "appends", "runs"))
    made = {
        "list": (("lists", np.where(lists.valid("handle"), lists.values("handle"), lists.values("list"))),),
        "queue": (("queues", queues.values("queue")),),
    }
    used = {"list": (("appends", appends.values("list")),), "queue": (("runs", runs.values("queue")),)}
    for target in made:
        rows = np.flatnonzero(is_text(waits, "target", target))
        for owner in np.flatnonzero(np.bincount(process[rows])).tolist():
            begins, more = (
                np.concatenate([values[events.process(name) == owner] for name, values in named[target]])
                for named in (made, used)
            )
            if len(begins):
                mine = rows[process[rows] == owner]
                wrong[mine[~is_among(handle[mine], np.concatenate([begins, more]))]] = True
    notes.add_times("levelzero_unknown_handle", waits.values("ts")[wrong])


def _note_readings(events: Events, notes: StatTally) -> None:
    """Note readings of a device's clock that its rate does not allow between the records around them.

    A reading without an error was taken after the record before it in its thread, and before its own.
    """
    pairs, table = events["clock_pairs"], events["devices"]
    rows = np.flatnonzero(~pairs.valid("error_ns"))
    if len(rows) < 2 or not len(table):
        return
    device = join(
        [events.process("clock_pairs")[rows], pairs.values("device")[rows]],
        np.full(len(rows), -1),
        [events.process("devices"), table.values("device")],
        np.arange(len(table)),
    ).first_after()
    rate = pick(table.values("ticks_per_second_num") / np.maximum(table.values("ticks_per_second_den"), 1), device)
    slack = np.where(pick(table.values("is_rounded"), device), _ROUNDED_RATE, _RATE)
    ts, ticks = pairs.values("ts")[rows], pairs.values("device_ticks")[rows]
    since = _since(events, pairs.values("thread_id")[rows], pairs.values("seq")[rows], ts)
    known = np.flatnonzero((rate > 0) & (pairs.values("host_ns")[rows] == ts))
    order = known[np.argsort(device[known], kind="stable")]
    one, other = order[:-1], order[1:]
    same = device[one] == device[other]
    one, other = one[same], other[same]
    bits = table.values("timestamp_bits")[device[other]]
    masks = np.array([(1 << layout.bits_of(width)) - 1 for width in bits.tolist()], np.uint64)
    # Readings of a counter that wrapped more than once are not compared.
    passed = ((ticks[other] - ticks[one]) & masks).astype(np.float64)
    per_ns = rate[other] / layout.NS_PER_SECOND
    most = (ts[other] - since[one]) * per_ns * (1 + slack[other]) + _TICKS
    least = (since[other] - ts[one]) * per_ns * (1 - slack[other]) - _TICKS
    wrong = (most < masks) & ((passed > most) | (passed < least))
    notes.add_times("levelzero_inconsistent_readings", ts[other[wrong]])


def _since(events: Events, thread: Int64, seq: Int64, ts: Int64) -> Int64:
    """Return a time before each reading, int64 [n]: that of a record before it in its thread, if one is near."""
    found = ts - _FIRST_NS
    for name in ("calls", "clock_pairs", "devices", "kernels", "lists", "appends", "results"):
        table = events[name]
        if not len(table):
            continue
        threads, stamps = table.values("thread_id"), table.values("ts")
        at = np.searchsorted(table.values("seq"), seq) - 1
        for _ in range(_LOOKED_AT):
            at = np.where((at >= 0) & (threads[np.maximum(at, 0)] != thread), at - 1, at)
        mine = (at >= 0) & (threads[np.maximum(at, 0)] == thread)
        found[mine] = np.maximum(found, stamps[np.maximum(at, 0)])[mine]
    return np.minimum(found, ts)


def _note_repeated(events: Events, used: Int64, notes: StatTally) -> None:
    """Note results of events that are no operation's: those that repeat another, and those that end before they start.

    Two executions of one event cannot have all timestamps in common.
    """
    results = events["results"]
    is_used = np.zeros(len(results), np.bool_)
    is_used[used] = True
    rows = np.flatnonzero(
        ~is_used & results.valid("event") & ~results.valid("op_id") & is_text(results, "status", layout.SUCCESS)
    )
    if not len(rows):
        return
    columns = [results.values(name)[rows] for name in ("global_start", "global_end", "context_start", "context_end")]
    keys = [events.process("results")[rows], results.values("event")[rows], *columns]
    again = group(keys, results.values("seq")[rows])
    ts = results.values("ts")[rows]
    notes.add_times("levelzero_result_duplicate", ts[again.order[~again.first]])
    begin, end, context_begin, context_end = columns
    narrow = (begin | end | context_begin | context_end) >> np.uint64(32) == 0
    mask = np.where(narrow, np.uint64((1 << 32) - 1), np.uint64(layout.MOST_TICKS))
    half = mask >> np.uint64(1)
    notes.add_times(
        "levelzero_context_time", ts[((end - begin) & mask > half) & ((context_end - context_begin) & mask <= half)]
    )


# --- operations ---------------------------------------------------------------------------------------------------


def _note_numbers(events: Events, calls: Calls, appends: Appends, notes: StatTally) -> None:
    """Note numbered operations out of order, on lists that were made later, and of calls that failed or are others."""
    table = events["appends"]
    rows = np.flatnonzero(table.valid("op_id"))
    if not len(rows):
        return
    thread = table.values("thread_id")[rows]
    order = rows[np.argsort(thread, kind="stable")] if bool((thread != thread[0]).any()) else rows
    number, owner = table.values("op_id")[order], table.values("thread_id")[order]
    back = (number[1:] < number[:-1]) & (owner[1:] == owner[:-1])
    notes.add_times("levelzero_number_order", table.values("ts")[order[1:][back]])
    call, listed = appends.call[rows], appends.listed[rows]
    late = pick(events["lists"].values("ts"), listed) > table.values("ts")[rows]
    notes.add_times("levelzero_append_mismatch", table.values("ts")[rows[late]])
    exits = pick(calls.exit, call, -1)
    ended = np.flatnonzero(exits >= 0)
    result = events["calls"].column("result")
    failed = ~is_text(events["calls"], "result", "", layout.SUCCESS)[exits[ended]]
    if result.valid is not None:
        failed &= result.valid[exits[ended]]
    notes.add_times("levelzero_append_mismatch", table.values("ts")[rows[ended[failed]]])
    lost = rows[call < 0]
    if len(lost) and len(calls.entry):
        entries = events["calls"]
        inner = join(
            [table.values("thread_id")[lost]],
            table.values("seq")[lost],
            [entries.values("thread_id")[calls.entry]],
            calls.seq,
            strict=False,
        ).last_before()
        is_append = is_text(entries, "function", *layout.APPENDS)[calls.entry]
        inside = (inner >= 0) & is_append[inner] & (calls.exit_seq[inner] >= table.values("seq")[lost])
        notes.add_times("levelzero_append_mismatch", table.values("ts")[lost[inside]])


def _note_ticks(events: Events, operations: Operations, devices: Devices, times: Times) -> None:
    """Note timestamps wider than the device's, and more time in the context than there was."""
    results, table = events["results"], events["devices"]
    bits = [layout.bits_of(bits) for bits in table.values("kernel_timestamp_bits")[devices.row].tolist()]
    mask = np.array([*((1 << width) - 1 for width in bits), layout.MOST_TICKS], np.uint64)[times.device]
    begin, end, context_begin, context_end = (
        results.values(name)[operations.result]
        for name in ("global_start", "global_end", "context_start", "context_end")
    )
    ts = results.values("ts")
    wide = (begin | end | context_begin | context_end) & ~mask != 0
    notes = operations.notes
    notes.add_times("levelzero_wide_timestamp", ts[operations.result[wide]])
    ran, active = (end - begin) & mask, (context_end - context_begin) & mask
    longer = (active > ran) & (active - ran > layout.CONTEXT_TICKS) & (ran <= mask >> np.uint64(1)) & ~times.error
    notes.add_times("levelzero_context_time", ts[operations.result[longer]])


def _note_executions(events: Events, operations: Operations, listed: Int64) -> None:
    """Note results of executions that were not recorded: of a list that cannot, or was never seen to, run so often."""
    lists, results = events["lists"], events["results"]
    known = pick(lists.valid("immediate"), listed)
    immediate = pick(lists.values("immediate"), listed)
    executed, once = operations.submit >= 0, operations.run == 1
    # A recorder that numbers operations tells every execution; others may have left them out.
    told = results.valid("op_id")[operations.result] | bool(len(events["runs"]))
    wrong = known & np.where(immediate, executed | ~once, ~executed & told)
    wrong |= operations.run < 1
    wrong &= ~operations.inferred
    notes = operations.notes
    notes.add_times("levelzero_execution_unmatched", results.values("ts")[operations.result[wrong]])


def _note_order(events: Events, operations: Operations, times: Times, listed: Int64) -> None:
    """Note operations of in-order lists that started before one that precedes them."""
    lists = events["lists"]
    in_order = pick(lists.values("in_order") & lists.valid("in_order"), listed)
    rows = np.flatnonzero(
        in_order & times.has_ticks & ~times.error & ~operations.inferred & (times.flags & _UNSURE == 0)
    )
    if not len(rows):
        return
    turn = listed[rows] * _MOST_RUNS + np.minimum(operations.run[rows], _MOST_RUNS - 1)
    by_list = group([turn], operations.append[rows])
    order = rows[by_list.order]
    early = (times.ticks[order][1:] < times.ticks[order][:-1]) & ~by_list.first[1:]
    ts = events["results"].values("ts")
    operations.notes.add_times("levelzero_out_of_order", ts[operations.result[order[1:][early]]])
