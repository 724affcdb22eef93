"""The decoder's rules once more: slow, obvious, one definition after the other. The fast one has to agree."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

from lanescope.devices.cuda.formats.layout import (
    BEGIN,
    COUNTER,
    END,
    FINALIZE,
    INSTANT,
    LS2_FILE_WORDS,
    LS2_LANE_WORDS,
    LS2_RECORD,
    STAMP_WRAP,
    TIRX_RECORD,
)
from lanescope.trace import Flag

STEP_BACK = 1 << 20
NONE = Flag(0)


@dataclass
class Region:
    lane: int
    launch: int
    event: int
    begin: int
    begin_index: int
    order: int
    end: int | None = None
    end_order: float = float("inf")
    end_index: int | None = None
    last_seen: int | None = None
    flags: Flag = NONE


@dataclass
class Lane:
    regions: list = field(default_factory=list)
    marks: list = field(default_factory=list)  # (lane, launch, event, tick, index, is_end, flags)
    gaps: list = field(default_factory=list)  # (lane, tick, dur or -1, first index, missing, unreadable)
    ticks: list = field(default_factory=list)
    finalize: int | None = None
    is_full: bool = False


def decode_lane(words, lane, stride):
    """Return what stands in one lane of a strided buffer, ticks unwrapped from its first stamp."""
    positions = words[1 + lane :: stride]
    good = [
        (index, TIRX_RECORD.decode(word))
        for index, word in enumerate(positions)
        if word and TIRX_RECORD.decode(word)["lane"] == lane
    ]
    bad = [index for index, word in enumerate(positions) if word and TIRX_RECORD.decode(word)["lane"] != lane]
    return apply(lane, good, bad, full_at=len(positions))


def decode_ls2_lane(words, lane, *, capacity, width, ring, offered):
    """Return what stands in one finalized lane of an LS2 buffer."""
    start = LS2_FILE_WORDS + lane * (LS2_LANE_WORDS + capacity * width) + LS2_LANE_WORDS
    lost = max(0, offered - capacity)
    first, shift = (offered % capacity, 1) if ring and lost else (0, 0)
    order = [start + (first + i) % capacity * width for i in range(min(offered, capacity))]
    if shift and width == 1 and order[0] < len(words) and words[order[0]] % 4 == 2:
        del order[0]  # the value of a counter that was overwritten
    found = [words[at] if at < len(words) else 0 for at in order]
    good, bad = [], []
    counter = None  # the record whose value may come next
    for at, word in enumerate(found):
        before, counter = counter, None
        follows = width == 2 or (at + 1 < len(found) and found[at + 1] % 4 == 2)
        if word % 2:
            fields = LS2_RECORD.decode(word)
            if fields["kind"] == COUNTER and not follows:
                bad.append(at + shift)
                continue
            if fields["kind"] == COUNTER and width == 1:
                counter = fields
            good.append((at + shift, {**fields, "kind": min(fields["kind"], INSTANT)}))
        elif word and before and word % 4 == 2:
            good.append((at + shift, {**before, "kind": INSTANT}))
        elif word:
            bad.append(at + shift)
    return apply(lane, good, bad, full_at=None if ring or not lost else -1)


def apply(lane, good, bad, *, full_at):
    """Apply the rules to one lane.

    Args:
        lane: its number.
        good: (position, fields) of its readable records.
        bad: positions of unreadable words.
        full_at: the lane is full if its records reach this position; -1: it is; None: it cannot be.
    """
    found = Lane()
    stamp = tick = expected = last_gap = launch = 0
    backward = finalized = False
    active: list[Region] = []

    def close(*extra):
        for region in active:
            region.last_seen = max(region.begin, tick)
            region.flags |= Flag.UNFINISHED
            if region.begin_index < last_gap or extra:
                region.flags |= Flag.TRUNCATED
        active.clear()

    for order, (index, record) in enumerate(good):
        flags = Flag(0)
        if order == 0:
            stamp = tick = record["time"]
        step = record["time"] - stamp
        stamp = record["time"]
        if step < -STAMP_WRAP // 2:
            step += STAMP_WRAP
        elif step < 0:
            backward = True
            flags |= Flag.CLOCK_SUSPECT
            if -step > STEP_BACK:
                flags |= Flag.WRAP_AMBIGUOUS
        elif step > STAMP_WRAP // 2:
            flags |= Flag.WRAP_AMBIGUOUS
            if STAMP_WRAP - step <= STEP_BACK:
                step -= STAMP_WRAP
                backward = True
                flags |= Flag.CLOCK_SUSPECT
        before, tick = tick, tick + step
        if finalized:
            launch, finalized = launch + 1, False
        if index != expected:
            unreadable = len([i for i in bad if expected <= i < index])
            found.gaps.append((lane, before, max(0, tick - before), expected, index - expected, unreadable))
            last_gap = index
            flags |= Flag.AFTER_GAP
        expected = index + 1
        found.ticks.append(tick)

        event, kind = record["event"], record["kind"]
        same = [region for region in active if region.event == event]
        if kind == BEGIN:
            region = Region(lane, launch, event, tick, index, order, flags=flags)
            found.regions.append(region)
            active.append(region)
        elif kind == END and same:
            region = same[-1]
            active.remove(region)
            region.end, region.end_order, region.end_index = tick, order, index
            region.flags |= flags & ~Flag.AFTER_GAP
            if region.end < region.begin:
                region.flags |= Flag.NEGATIVE_DURATION
            if region.begin_index < last_gap:
                region.flags |= Flag.INFERRED_IDENTITY
        elif kind == FINALIZE:
            found.finalize = tick
            finalized = True
            close()
        else:
            assert kind in (END, INSTANT)
            found.marks.append((lane, launch, event, tick, index, kind == END, flags))

    found.is_full = not finalized and (full_at == -1 or (bool(good) and expected == full_at))
    tail = [index for index in bad if index >= expected]
    if tail:
        found.gaps.append((lane, tick, -1, expected, tail[-1] + 1 - expected, len(tail)))
        last_gap = expected
    close(*([True] if found.is_full else []))
    _mark_crossings(found.regions, by_time=backward or launch > 0)
    return found


def _mark_crossings(regions, *, by_time):
    for one, two in combinations(regions, 2):
        crosses = one.launch == two.launch and two.order < one.end_order < two.end_order
        if by_time:
            (a, b), (c, d) = sorted((region.begin, _end(region)) for region in (one, two))
            crosses |= a < c < b < d
        if crosses:
            one.flags |= Flag.PARTIAL_OVERLAP
            two.flags |= Flag.PARTIAL_OVERLAP


def _end(region):
    """Return until when a region takes time: not at all if it is negative."""
    return max(region.begin, region.last_seen if region.end is None else region.end)


def resolution_ticks(lanes):
    """Return the greatest common divisor of all distances of stamps, None for fewer than 16 different stamps."""
    from math import gcd

    stamps = [tick % STAMP_WRAP for lane in lanes for tick in lane.ticks]
    if len(set(stamps)) < 16:
        return None
    ahead = [(stamp - stamps[0]) % STAMP_WRAP for stamp in stamps]
    return gcd(*[min(step, -step % STAMP_WRAP) for step in ahead])


def assert_same(decoded, expected):
    """Compare what the native rules made of lanes, before they are aligned, with a ``Lane`` for each."""
    step = resolution_ticks(expected)
    regions = [region for lane in expected for region in lane.regions]
    rows = decoded.slices
    found = zip(
        rows.lane.tolist(),
        *(rows[name].tolist() for name in ("launch", "event", "begin", "dur", "begin_index", "end_index", "flags")),
        strict=True,
    )
    wanted = []
    for region in regions:
        dur = (region.last_seen if region.end is None else region.end) - region.begin
        flags = region.flags
        if step is not None and region.end is not None and 0 <= dur < 2 * step:
            flags |= Flag.BELOW_RESOLUTION
        end_index = region.begin_index if region.end is None else region.end_index
        row = (region.lane, region.launch, region.event, region.begin, dur, region.begin_index, end_index, int(flags))
        wanted.append(row)
    assert list(found) == wanted
    seen = 0
    for row in wanted:
        seen |= row[-1]
    assert decoded.seen == seen
    assert decoded.resolution_ticks == (step or None)

    marks = decoded.instants
    found = zip(
        marks.lane.tolist(),
        *(marks[name].tolist() for name in ("launch", "event", "tick", "index", "is_end", "flags")),
        strict=True,
    )
    assert list(found) == [(*mark[:5], int(mark[5]), int(mark[6])) for lane in expected for mark in lane.marks]
    gaps = decoded.gaps
    found = zip(*(gaps[name].tolist() for name in ("lane", "tick", "dur", "index", "missing", "bad")), strict=True)
    assert list(found) == [gap for lane in expected for gap in lane.gaps]

    summary = decoded.summary
    for number, lane in enumerate(expected):
        assert summary["records"][number] == len(lane.ticks)
        assert bool(summary["full"][number]) == lane.is_full
        if lane.ticks:
            assert summary["first"][number] == lane.ticks[0]
            assert summary["last"][number] == lane.ticks[-1]
            assert summary["min"][number] == min(lane.ticks)
            assert summary["max"][number] == max(lane.ticks)
        if lane.finalize is not None:
            assert summary["finalize"][number] == lane.finalize


def pair_regions(records, *, by_event):
    """Pair starts and ends of asynchronous regions.

    Args:
        records: (block, lane, launch, key, time, is_end, across), lane after lane, those of a lane in write order.
        by_event: the rules of Proton.

    Returns:
        The other record of each, -1 without one, -2 for starts of what is open; and which starts are ambiguous.
    """
    partner, ambiguous = [-1] * len(records), [False] * len(records)
    latest, events = {}, []
    for at, (block, lane, launch, key, time, is_end, across) in enumerate(records):
        # A lane is read in the order in which it was written.
        latest[lane, launch] = time = max(time, latest.get((lane, launch), time))
        events.append(((block, key, None if across else lane), time, at, lane, is_end, across))
    for key in {event[0] for event in events}:
        mine = [event for event in events if event[0] == key]
        for passes in [[True]] if by_event else [[False]] if key[2] is not None else [[True], [False, True]]:
            for event in mine:
                partner[event[2]], ambiguous[event[2]] = -1, False
            for leaves_lane in passes:
                rest = [event for event in mine if partner[event[2]] == -1]
                for event in rest:
                    ambiguous[event[2]] = False
                _pair(records, sorted(rest, key=lambda event: event[1:3]), partner, ambiguous, by_event, leaves_lane)
            if all(partner[event[2]] != -1 for event in mine if event[4]):
                break  # no end is left
    if not by_event:
        # The only two records of a key, in two lanes, are one region even if it ends before it starts.
        for block, key in {(event[0][0], event[0][1]) for event in events}:
            rest = [at for at, row in enumerate(records) if (row[0], row[3]) == (block, key)]
            if len(rest) == 2 and records[rest[0]][6] and partner[rest[0]] == partner[rest[1]] == -1:
                (_, first, _, _, _, is_end, _), (_, second, *_, other_is_end, _) = (records[at] for at in rest)
                if first != second and is_end != other_is_end:
                    partner[rest[0]], partner[rest[1]] = rest[1], rest[0]
    return partner, ambiguous


def _pair(records, events, partner, ambiguous, by_event, leaves_lane):
    opened, contested, waiting = [], False, []
    for _, time, at, lane, is_end, may_leave in events:
        across = may_leave and leaves_lane
        waiting = [end for end in waiting if end[0] == time]
        mine = [start for start in opened if records[start][1] == lane]
        if is_end:
            if not mine and not (across and opened):
                waiting.append((time, lane, at))
                continue
            start = mine[0] if mine else opened[0]
            if not mine:
                contested = contested or len(opened) > 1
                ambiguous[start] |= contested
            opened.remove(start)
            contested = contested and bool(opened)
            partner[start], partner[at] = at, start
        elif across and not by_event and waiting and waiting[0][1] != lane:
            end = waiting.pop(0)[2]
            partner[end], partner[at] = at, end
        elif mine and by_event:
            partner[at] = -2
        else:
            if mine:
                ambiguous[at] = ambiguous[mine[-1]] = True
            opened.append(at)
