"""Where the fields of a file lie, and which other values a healthy writer could have written.

Packets are not counted, have no number and no sum: what ties them together are pairs of begins and ends on a track,
texts that events name by number, clocks by number, and the lengths of messages. A change that breaks none of these is
one of a value that the file has once. Numbers keep their count of bytes and texts their length, so that all lengths
around them hold; the lengths are fields themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lanescope.families.field_sites import CUT, DROPPED, FieldMap, FieldSites, Possible, RecordSites, Value, each, never

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_BEGIN, _END, _INSTANT = 1, 2, 3
#: Times are below: half of 64 bits.
_LATEST = 1 << 63

# --- the messages that are looked into ----------------------------------------------------------------------------

_VALUE = {1: "name_iid", 10: "name", 4: "int_value"}
_EVENT = {
    9: "type", 10: "name_iid", 3: "category_iids", 23: "name", 22: "categories", 11: "track_uuid", 30: "counter_value",
    47: "flow_ids", 48: "terminating_flow_ids", 4: ("debug_annotations", _VALUE),
}  # fmt: skip
_TEXT_OF = {1: "iid", 2: "name"}
_PACKET: dict[int, object] = {
    8: "timestamp", 10: "trusted_packet_sequence_id", 13: "sequence_flags", 42: "previous_packet_dropped",
    11: ("track_event", _EVENT),
    12: ("interned_data", {1: ("event_categories", _TEXT_OF), 2: ("event_names", _TEXT_OF),
                           3: ("debug_annotation_names", _TEXT_OF)}),
    59: ("trace_packet_defaults", {58: "timestamp_clock_id", 11: ("track_event_defaults", {11: "track_uuid"})}),
    6: ("clock_snapshot", {1: ("clocks", {1: "clock_id", 2: "timestamp", 3: "is_incremental"})}),
    60: ("track_descriptor", {
        1: "uuid", 2: "name", 5: "parent_uuid",
        3: ("process", {1: "pid", 6: "process_name"}), 4: ("thread", {1: "pid", 2: "tid", 5: "thread_name"}),
        8: ("counter", {3: "unit"}),
    }),
}  # fmt: skip
_TEXTS = frozenset({"name", "categories", "process_name", "thread_name"})
#: Why another value is possible, by field: what the file lacks to see it.
_REASONS = {
    "track_event.name": "another name: the file has that of a slice once",
    "track_event.categories": "another category: the file has that of a slice once",
    "track_event.counter_value": "another value of a counter, which the file has once",
    "debug_annotations.name": "another name of an argument, which the file has once",
    "debug_annotations.int_value": "another value of an argument, which the file has once",
    "event_names.name": "another text: the file has that of a number once",
    "event_categories.name": "another text: the file has that of a number once",
    "debug_annotation_names.name": "another text: the file has that of a number once",
    "track_descriptor.name": "another name: the file has that of a track once",
    "process.process_name": "another name: the file has that of a process once",
    "thread.thread_name": "another name: the file has that of a thread once",
    "process.pid": "another number of a process whose threads name it in no other way",
    "thread.tid": "another number of a thread, which the file has once",
    "thread.pid": "another process of a thread, which may have no descriptor of its own",
    "counter.unit": "another unit of a counter, which the file has once",
    "clocks.timestamp": "another reading of a clock: all that is counted on it is moved as one",
}


_TEXT = "another text of the sequence, or none: the file has the number of an event's text once"
_TIME = "another time that keeps begins before their ends: the file has each time once"
_TRACK = "another track of an event without a partner, which names it once"
_DEFAULT_TRACK = "another track: its sequence names it once, for all events until the next state"
_CLOCK = "another way to count: what a number is counted on, and whether it is a step, is said once"
_ORDER = "an instant and a begin in the other order: both are of their track once"
_PARENT = "no parent: the file says once what a track is below"
_STATE = "a new state, or none, where no text is used behind it"


class Site(NamedTuple):
    """A value.

    Attributes:
        record: the message that it is part of.
        name: the field.
        begin, end: its bytes.
        packet: number of its packet.
        wire: its kind.
    """

    record: str
    name: str
    begin: int
    end: int
    packet: int
    wire: int


@dataclass(slots=True)
class _Packet:
    """A packet, and what of it decides on others.

    Attributes:
        begin, end: its bytes, with tag and length.
        sequence: its sequence, 0 without one.
        type: of its event, 0 without one.
        kinds: messages in it.
        known: numbers of texts that its sequence has, by kind of message.
        is_cleared: a new state of its sequence begins.
        uses_texts: its event names texts by number.
        uuids: tracks that it describes.
    """

    begin: int
    end: int
    sequence: int = 0
    type: int = 0
    kinds: set[str] = field(default_factory=set)
    known: dict[str, frozenset[int]] = field(default_factory=dict)
    is_cleared: bool = False
    uses_texts: bool = False
    uuids: frozenset[int] = frozenset()


def field_map(files: Mapping[str, bytes]) -> FieldMap:
    """Return the sites of a file, the first of ``files``."""
    name, content = next(iter(files.items()))
    packets, sites = _read(content)
    places: dict[tuple[str, str, int, bool], list[Site]] = {}
    for site in sites:
        key = site.record, site.name, site.end - site.begin, site.wire == _VARINT
        places.setdefault(key, []).append(site)
    fields = []
    for (record, label, size, is_varint), mine in sorted(places.items()):
        bits = 7 if is_varint else 8
        fields.append(
            FieldSites(
                record,
                label,
                f"{label} of {record}",
                name,
                [8 * site.begin for site in mine],
                tuple((8 * at, bits) for at in range(size)),
                lane=[packets[site.packet].sequence for site in mine],
                possible=_possible(content, mine, packets),
            )
        )
    records = RecordSites(
        "packet",
        name,
        [packet.begin for packet in packets],
        [packet.end for packet in packets],
        [packet.sequence for packet in packets],
        possible=lambda change, index: _possible_change(packets, change, index),
    )
    return FieldMap(fields, [records])


# --- reading ------------------------------------------------------------------------------------------------------


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _fields(content: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield number, kind, begin and end of the value of each field."""
    while at < end:
        tag, begin = _varint(content, at)
        if tag & 7 == _VARINT:
            _, at = _varint(content, begin)
        elif tag & 7 == _FIXED64:
            at = begin + 8
        else:
            size, begin = _varint(content, begin)
            at = begin + size
        yield tag >> 3, tag & 7, begin, at


def _read(content: bytes) -> tuple[list[_Packet], list[Site]]:
    packets: list[_Packet] = []
    sites: list[Site] = []
    texts: dict[int, dict[str, set[int]]] = {}
    at = 0
    for _, _, begin, end in _fields(content, 0, len(content)):
        packet = _Packet(at, end)
        sites.append(Site("packet", "length", at + 1, begin, len(packets), _VARINT))
        found = list(_message(content, begin, end, "packet", _PACKET, len(packets)))
        values = {(site.record, site.name): _varint(content, site.begin)[0] for site in found if site.wire == _VARINT}
        packet.sequence = values.get(("packet", "trusted_packet_sequence_id"), 0)
        packet.type = values.get(("track_event", "type"), 0)
        packet.kinds = {site.record for site in found}
        mine = texts.setdefault(packet.sequence, {})
        packet.is_cleared = values.get(("packet", "sequence_flags")) == 1
        packet.uses_texts = any(site.name in ("name_iid", "category_iids") for site in found)
        packet.uuids = frozenset({values[key] for key in (("track_descriptor", "uuid"),) if key in values})
        if packet.is_cleared:
            mine.clear()
        for site in found:
            if site.name == "iid":
                mine.setdefault(site.record, set()).add(_varint(content, site.begin)[0])
        packet.known = {kind: frozenset(numbers) for kind, numbers in mine.items()}
        packets.append(packet)
        sites += found
        at = end
    return packets, sites


def _message(
    content: bytes, at: int, end: int, record: str, known: Mapping[int, object], packet: int
) -> Iterator[Site]:
    for number, wire, begin, behind in _fields(content, at, end):
        what = known.get(number)
        if isinstance(what, tuple):
            name, inner = what
            yield from _message(content, begin, behind, name, inner, packet)
        elif isinstance(what, str) and behind > begin:
            yield Site(record, what, begin, behind, packet, wire)


# --- what is possible ---------------------------------------------------------------------------------------------


def _possible(content: bytes, sites: list[Site], packets: list[_Packet]) -> Possible:
    record, name = sites[0].record, sites[0].name

    def of(site: int) -> _Packet:
        return packets[sites[site].packet]

    def is_recorded(site: int, value: Value) -> bool:
        return value == _varint(content, sites[site].begin)[0]

    reason = _REASONS.get(f"{record}.{name}")
    if name in _TEXTS and reason is not None:
        size = sites[0].end - sites[0].begin
        return each(lambda _, value: reason if _is_text(value, size) else "")
    texts = {"name_iid": "event_names", "category_iids": "event_categories"}.get(name)
    if texts is not None:
        kind = "debug_annotation_names" if record == "debug_annotations" else texts
        return each(lambda site, value: _TEXT if value == 0 or value in of(site).known.get(kind, ()) else "")
    if (record, name) == ("packet", "timestamp"):
        return each(lambda _, value: _TIME if isinstance(value, int) and value < _LATEST else "")
    if name == "track_uuid":
        uuids = frozenset({0}).union(*(packet.uuids for packet in packets))  # 0: that of the sequence
        if record == "track_event_defaults":
            return each(lambda _, value: _DEFAULT_TRACK if value in uuids else "")
        return each(lambda site, value: _TRACK if of(site).type not in (_BEGIN, _END) and value in uuids else "")
    if (record, name) == ("track_descriptor", "parent_uuid"):
        return each(lambda site, value: _PARENT if value == 0 or is_recorded(site, value) else "")
    if name in ("is_incremental", "timestamp_clock_id"):
        return each(lambda site, value: _CLOCK if value in (0, 1) or is_recorded(site, value) else "")
    if (record, name) == ("track_event", "type"):
        return lambda values: (
            _ORDER
            if {of(site).type for site in values} == {*values.values()} and {*values.values()} <= {_BEGIN, _INSTANT}
            else ""
        )
    if name == "sequence_flags":
        return each(lambda site, _: "" if _uses_texts_behind(packets, sites[site].packet) else _STATE)
    return never if reason is None else each(lambda _, value: reason)


def _uses_texts_behind(packets: list[_Packet], number: int) -> bool:
    """Return whether a packet, or one of its sequence before the next state, names texts by number."""
    sequence = packets[number].sequence
    for packet in packets[number:]:
        if packet.sequence == sequence:
            if packet.is_cleared and packet is not packets[number]:
                return False
            if packet.uses_texts:
                return True
    return False


def _is_text(value: Value, size: int) -> bool:
    """Return whether a number of so many bytes, the first one lowest, is a text that is not damaged."""
    assert isinstance(value, int)
    try:
        text = value.to_bytes(size, "little").decode()
    except UnicodeDecodeError:
        return False
    return "\0" not in text and "\ufffd" not in text


def _possible_change(packets: list[_Packet], change: str, index: int) -> str:
    packet = packets[index]
    if change == CUT:
        return ""
    if change == DROPPED and packet.type in (_BEGIN, _END):
        return ""
    return "packets are not counted and have no number: one without a partner may be missing, come again, or elsewhere"
