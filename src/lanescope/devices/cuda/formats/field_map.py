"""Where the declared fields of a buffer lie: its header, those of its lanes or blocks, and every record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from lanescope.devices.cuda.formats import layout, layout_detection, ls2_contradictions
from lanescope.devices.cuda.formats.lane_sequences import CHOSEN, COUNTER, Lanes, Row
from lanescope.devices.cuda.formats.layout import BEGIN, END, FINALIZE, INSTANT
from lanescope.devices.cuda.formats.word_source import WordSource, content_of
from lanescope.families.field_sites import (
    DROPPED,
    FieldMap,
    FieldSites,
    Possible,
    PossibleChange,
    RecordSites,
    Value,
    bit_sites,
    each,
    never,
)
from lanescope.wire import Field, Record

#: How far two anchors may disagree with the nominal rate.
_RATE_TOLERANCE = 1000
#: No SM runs faster.
_MOST_GHZ = 4
_PERMUTED = "areas in another order: each tells the number of its own block"


def field_map(files: Mapping[str, bytes]) -> FieldMap:
    """Return the sites of a buffer, the first of ``files``."""
    name, raw = next(iter(files.items()))
    content = content_of(np.frombuffer(raw, np.uint8))
    kind = layout_detection.layout_of(content)
    if kind == layout.LS2:
        return FieldMap(list(_ls2_fields(name, content)), [_ls2_records(name, content)])
    if kind == layout.PROTON:
        return _proton(name, content)
    return _strided(name, content, kind)


def _whole(
    record: Record, file: str, begin: Sequence[int], possible: Mapping[str, Possible] = {}
) -> Iterator[FieldSites]:
    """Yield the fields of records that are no rows of a lane: headers."""
    for declared in record.fields:
        lane = [0] * len(begin)
        yield bit_sites(record.name, declared, file, begin, lane, possible.get(declared.name, never))


def _any(reason: str) -> Possible:
    return lambda values: reason


def _one_of(values: Sequence[int], reason: str) -> Possible:
    return each(lambda index, value: reason if value in values else "")


def _between(low: Sequence[int], high: Sequence[int], reason: str) -> Possible:
    return each(lambda index, value: reason if isinstance(value, int) and low[index] <= value <= high[index] else "")


# --- slots that lanes share in turn -------------------------------------------------------------------------------


def _strided(file: str, content: WordSource, kind: str) -> FieldMap:
    words = content.words(8).tolist()
    start = 8 * content.before
    header = layout.TIRX_HEADER
    shape = header.decode(words[0])
    lanes = shape["num_blocks"] * shape["num_groups"]
    record = layout.FLASHINFER_V2_RECORD if kind == layout.FLASHINFER_V2 else layout.TIRX_RECORD
    rows = []
    for slot in range(1, len(words)):
        if words[slot]:
            values = record.decode(words[slot])
            at = start + 64 * slot
            rows.append(Row(at, values["kind"], values["event"], values["time"], (slot - 1) % lanes))
    found = Lanes(rows, layout.STAMP_BITS, ends=record is layout.TIRX_RECORD)
    begin, lane = [row.at for row in rows], [row.lane for row in rows]
    made = FieldMap(list(_whole(header, file, [start])))
    for declared in record.fields:
        possible = found.possible(declared.name) if declared.name in ("kind", "event", "time") else never
        made.fields.append(bit_sites(record.name, declared, file, begin, lane, possible))
    ends = [at // 8 + 8 for at in begin]
    places = [at // 8 for at in begin]
    made.records.append(RecordSites(record.name, file, places, ends, lane, is_slot=True, possible=found.change))
    return made


# --- LS2 ----------------------------------------------------------------------------------------------------------


class _Ls2:
    def __init__(self, content: WordSource) -> None:
        self.words = content.words(8).tolist()
        self.start = 8 * content.before
        raw = b"".join(word.to_bytes(8, "little") for word in self.words[: layout.LS2_FILE_WORDS])
        self.header = layout.LS2_HEADER.decode(int.from_bytes(raw, "little"))
        self.record_words = self.header["record_words"]
        self.lane_words = layout.LS2_LANE_WORDS + self.header["capacity"] * self.record_words
        count = self.header["num_blocks"] * self.header["num_groups"]
        self.firsts = [layout.LS2_FILE_WORDS + lane * self.lane_words for lane in range(count)]
        self.heads = [self._head(first) for first in self.firsts]
        self.values: list[tuple[int, int]] = []
        self.rows = [row for lane in range(count) for row in self._rows(lane)]
        is_shared = self.header["clock"] == layout.GLOBALTIMER
        unit, mask = "ns" if is_shared else "cycles", layout.STAMP_WRAP - 1
        bounds = {
            lane: (head[f"begin_{unit}"] & mask, head[f"end_{unit}"] & mask)
            for lane, head in enumerate(self.heads)
            if head["state"] == layout.FINALIZED
        }
        self.lanes = Lanes(self.rows, layout.STAMP_BITS, ends=False, is_shared=is_shared, bounds=bounds)

    def _head(self, first: int) -> dict[str, int]:
        raw = b"".join(word.to_bytes(8, "little") for word in self.words[first : first + layout.LS2_LANE_WORDS])
        return layout.LS2_LANE.decode(int.from_bytes(raw, "little"))

    def _rows(self, lane: int) -> Iterator[Row]:
        """Yield the records of a lane from its oldest slot to its newest, and note where values stand."""
        first = self.firsts[lane] + layout.LS2_LANE_WORDS
        positions = range(0, self.header["capacity"] * self.record_words, self.record_words)
        for place in positions:
            at, word = first + place, self.words[first + place]
            if word & 1:
                values = layout.LS2_RECORD.decode(word)
                kind = values["kind"] if values["kind"] < FINALIZE else values["kind"] + 1
                yield Row(self.start + 64 * at, kind, values["event"], values["time"], lane, values["token"])
                if self.record_words == 2:
                    self.values.append((at + 1, lane))
            elif word:
                self.values.append((at, lane))

    def token(self, values: Mapping[int, Value]) -> str:
        """Return why tokens could be others: they join only the records of asynchronous regions and of flows."""
        types = 0, layout.LS2_FLOAT
        kinds = [(self.rows[place].kind, value) for place, value in values.items()]
        return CHOSEN if all(kind < FINALIZE or (kind == COUNTER and value in types) for kind, value in kinds) else ""

    def kind(self, values: Mapping[int, Value]) -> str:
        """Return why a record could be of another kind: a mark and a sample take the same room with payloads."""
        was = {self.rows[place].kind for place in values}
        are_tokens = all(self.rows[place].other in (0, layout.LS2_FLOAT) for place in values)
        free = was <= {INSTANT, COUNTER} and set(values.values()) <= {INSTANT, layout.COUNTER}
        return CHOSEN if free and are_tokens else ""


def _ls2_fields(file: str, content: WordSource) -> Iterator[FieldSites]:
    found = _Ls2(content)
    yield from _whole(layout.LS2_HEADER, file, [found.start], _ls2_header(found))
    begin, lane = [row.at for row in found.rows], [row.lane for row in found.rows]
    for declared in layout.LS2_RECORD.fields:
        possible = found.lanes.possible(declared.name) if declared.name in ("event", "time") else never
        if declared.name == "token" or (declared.name == "kind" and found.record_words == 2):
            possible = getattr(found, declared.name)
        yield bit_sites(layout.LS2_RECORD.name, declared, file, begin, lane, possible)
    heads = [found.start + 64 * first for first in found.firsts]
    yield from _whole(layout.LS2_LANE, file, heads, _ls2_lane(found))
    if found.values:
        # The lowest bits of a value without a word of its own tell it from a record.
        lsb = 0 if found.record_words == 2 else 2
        payload = Field("payload", lsb=lsb, width=64 - lsb, doc="The value that a record carries.")
        places = [found.start + 64 * at for at, _ in found.values]
        lanes = [lane for _, lane in found.values]
        yield bit_sites(layout.LS2_RECORD.name, payload, file, places, lanes, _any(CHOSEN))


def _ls2_header(found: _Ls2) -> dict[str, Possible]:
    header = found.header
    possible = dict.fromkeys(("launch", "ordinal"), _any("a number that the host chose"))
    possible |= dict.fromkeys(("anchor_error", "anchor2_error"), _any("a bound that nothing else tells"))
    for name in ("anchor_ticks", "anchor_unix", "anchor2_ticks", "anchor2_unix"):
        possible[name] = _anchor(header, name)
    if all(head["offered"] <= header["capacity"] for head in found.heads):
        possible["policy"] = _one_of((layout.DROP, layout.RING), "what becomes of records without room: all had room")
    if not header["refused"]:
        possible["version"] = _one_of(layout.LS2_VERSIONS, "another version of probes, which write the same records")
    return possible


def _anchor(header: Mapping[str, int], name: str) -> Possible:
    def possible(values: Mapping[int, Value]) -> str:
        (value,) = values.values()
        made = {**header, name: value}
        if not header["anchor2_unix"]:
            return "the only reading of both clocks" if value else ""
        ticks, unix = (int(made[f"anchor2_{unit}"]) - int(made[f"anchor_{unit}"]) for unit in ("ticks", "unix"))
        error = header["anchor_error"] + header["anchor2_error"]
        is_near = ticks > 0 and abs(ticks - unix) <= error + ticks // _RATE_TOLERANCE
        return "both readings still agree on the rate" if is_near else ""

    return possible


def _ls2_lane(found: _Ls2) -> dict[str, Possible]:
    heads, groups = found.heads, found.header["num_groups"]
    launch, last = ([at] * len(heads) for at in ls2_contradictions.launch_window(found.header))
    begin, end = [head["begin_ns"] for head in heads], [head["end_ns"] for head in heads]
    warps = {
        index: {heads[place]["warp"] for place in _block(index, groups) if place != index}
        for index in range(len(heads))
    }

    def warp(index: int, value: Value) -> str:
        is_free = isinstance(value, int) and value < layout.MOST_WARPS and value not in warps[index]
        return "another warp of its block, that no other lane names" if is_free else ""

    is_time = found.header["clock"] == layout.GLOBALTIMER
    stamps = [[row.time for row in found.rows if row.lane == lane] for lane in range(len(heads))]
    mask = layout.STAMP_WRAP - 1
    # The stamps hold the low half of the same clock.
    firsts = [
        at + (times[0] - at & mask) if times and is_time else until
        for at, until, times in zip(begin, end, stamps, strict=True)
    ]
    lasts = [
        until - (until - times[-1] & mask) if times and is_time else at
        for at, until, times in zip(begin, end, stamps, strict=True)
    ]
    possible = (
        {} if is_time else {name: each(_cycles_of(found, stamps, name)) for name in ("begin_cycles", "end_cycles")}
    )
    return possible | {
        "begin_ns": _between(launch, firsts, "between the host's reading before the launch and the first record"),
        "end_ns": _between(lasts, last, "between the last record and the host's reading after the launch"),
        "warp": each(warp),
    }


def _cycles_of(found: _Ls2, stamps: Sequence[Sequence[int]], name: str) -> Callable[[int, Value], str]:
    """Return what holds for the readings of an SM's counter around the records of a lane."""
    mask = layout.STAMP_WRAP - 1

    def possible(index: int, value: Value) -> str:
        assert isinstance(value, int)
        head, times = {**found.heads[index], name: value}, stamps[index]
        cycles, ns = (head[f"end_{unit}"] - head[f"begin_{unit}"] for unit in ("cycles", "ns"))
        if not times or not 0 <= cycles <= _MOST_GHZ * ns:
            return ""
        first, last = (times[0] - head["begin_cycles"] & mask), (times[-1] - head["begin_cycles"] & mask)
        return "around the records, at a rate that an SM may have" if first <= last <= cycles else ""

    return possible


def _block(lane: int, groups: int) -> range:
    first = lane // groups * groups
    return range(first, first + groups)


def _ls2_records(file: str, content: WordSource) -> RecordSites:
    found = _Ls2(content)
    begin = [row.at // 8 for row in found.rows]
    size = 8 * found.record_words
    lane = [row.lane for row in found.rows]
    # Each lane counts its records, so that none can go without contradicting the count.
    possible = _exchanged(found.lanes)
    return RecordSites(
        layout.LS2_RECORD.name, file, begin, [at + size for at in begin], lane, is_slot=True, possible=possible
    )


def _exchanged(lanes: Lanes) -> PossibleChange:
    return lambda change, index: "" if change == DROPPED else lanes.change(change, index)


# --- Proton -------------------------------------------------------------------------------------------------------


def _proton(file: str, content: WordSource) -> FieldMap:
    words = content.words(4).tolist()
    start = 8 * content.before
    raw = b"".join(word.to_bytes(4, "little") for word in words[: layout.PROTON_HEADER.bits // 32])
    header = layout.PROTON_HEADER.decode(int.from_bytes(raw, "little"))
    made = FieldMap(list(_whole(layout.PROTON_HEADER, file, [start])))
    first, scratch, uids = header["payload_offset"] // 4, header["scratch"] // 4, header["uids"]
    areas = [first + number * scratch for number in range(header["blocks"])]
    size = layout.PROTON_BLOCK.bits // 32
    blocks = [_block_values(words, at) for at in areas]
    has_times = all(0 < block["begin_ns"] <= block["end_ns"] <= block["done_ns"] for block in blocks)
    size = size if has_times else 4
    places = [start + 32 * at for at in areas]
    where = [start + layout.PROTON_HEADER.bits + 32 * number for number in range(uids)]
    uid = Field("uid", lsb=0, width=32, doc="A warp that was recorded.")
    made.fields.append(bit_sites("cuda.proton.uids", uid, file, where, [0] * uids))
    index = Field("index", lsb=0, width=32, doc="Words that a warp wrote, more than its ring holds included.")
    recorded = words[layout.PROTON_HEADER.bits // 32 :][:uids]
    indices = [start + 32 * (at + size + warp) for at in areas for warp in recorded]
    made.fields.append(bit_sites("cuda.proton.indices", index, file, indices, list(range(len(indices)))))
    rows = list(_proton_rows(words, start, areas, size + header["units"], recorded, size))
    # Metrics carry values, and no time.
    timed = [row for row in rows if row.kind != FINALIZE]
    lanes = Lanes(timed, layout.PROTON_STAMP_BITS, ends=False, is_shared=False)
    for sites in _whole(layout.PROTON_BLOCK, file, places, _proton_block(blocks, _extents(timed, len(blocks), uids))):
        if sites.pieces[0][0] < 32 * size:
            made.fields.append(sites)
    _proton_entries(file, made, lanes)
    return made


def _block_values(words: Sequence[int], at: int) -> dict[str, int]:
    raw = b"".join(word.to_bytes(4, "little") for word in words[at : at + layout.PROTON_BLOCK.bits // 32])
    return layout.PROTON_BLOCK.decode(int.from_bytes(raw, "little"))


def _extents(rows: Sequence[Row], blocks: int, uids: int) -> list[int]:
    """Return the cycles from the first to the last stamp of each block."""
    stamps: list[list[int]] = [[] for _ in range(blocks)]
    for row in rows:
        stamps[row.lane // uids].append(row.time)
    return [max(times, default=0) - min(times, default=0) for times in stamps]


def _proton_block(blocks: Sequence[Mapping[str, int]], cycles: Sequence[int]) -> dict[str, Possible]:
    """Return which values are possible: a block takes no less time than its cycles at the highest rate."""
    numbers, begin, end, done = ([row[name] for row in blocks] for name in ("block", "begin_ns", "end_ns", "done_ns"))
    first, last = [1] * len(blocks), [max(done)] * len(blocks)
    least = [count // _MOST_GHZ for count in cycles]
    latest = [until - time for until, time in zip(end, least, strict=True)]
    earliest = [since + time for since, time in zip(begin, least, strict=True)]
    return {
        "block": lambda values: _PERMUTED if sorted(values.values()) == sorted(numbers[at] for at in values) else "",
        "sm": _one_of(range(layout.MOST_SMS), "another SM: each block tells its own once"),
        "done_ns": _between(end, last, "between the end of the block and that of the launch"),
        "begin_ns": _between(first, latest, "before what the block's cycles need: a block may start before all others"),
        "end_ns": _between(earliest, done, "between what the block's cycles need and the copy of its buffer"),
    }


def _proton_rows(
    words: Sequence[int], start: int, areas: Sequence[int], meta: int, uids: Sequence[int], head: int
) -> Iterator[Row]:
    """Yield the entries of rings that never came round, in order."""
    for number, at in enumerate(areas):
        segment = words[at + 3] // 4 // len(uids) // 2 * 2
        for place, warp in enumerate(uids):
            first = at + meta + place * segment
            for word in range(first, first + min(words[at + head + warp], segment), 2):
                tag = layout.PROTON_ENTRY.decode(words[word] | words[word + 1] << 32)
                kinds = {layout.SCOPE: END if tag["is_end"] else BEGIN, layout.MARK: INSTANT, layout.METRIC: FINALIZE}
                kind = kinds.get(tag["type"], 5 + tag["is_end"])
                time = tag["time"] | tag["time_high"] << 32
                yield Row(start + 32 * word, kind, tag["scope"], time, number * len(uids) + place)


def _proton_entries(file: str, made: FieldMap, lanes: Lanes) -> None:
    record = layout.PROTON_ENTRY
    begin, lane = [row.at for row in lanes.rows], [row.lane for row in lanes.rows]
    for declared in record.fields:
        if declared.name == "time_high":
            continue
        mark = lanes.valued if any(row.kind == INSTANT for row in lanes.rows) else never
        possible = {"scope": lanes.possible("event"), "type": mark, "is_end": lanes.turned}
        sites = bit_sites(record.name, declared, file, begin, lane, possible.get(declared.name, never))
        if declared.name == "time":
            high = record["time_high"]
            pieces = ((declared.lsb, declared.width), (high.lsb, high.width))
            sites = FieldSites(
                record.name, "time", declared.doc, file, begin, pieces, lane=lane, possible=lanes.possible("time")
            )
        made.fields.append(sites)
    places = [at // 8 for at in begin]
    ends = [at + 8 for at in places]
    made.records.append(RecordSites(record.name, file, places, ends, lane, is_slot=True, possible=_exchanged(lanes)))
