"""Packets as most are have a way of their own through the reader: it finds what the way of all others finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from foreign.perfetto.made import BEGIN, CLEARED, END, INSTANT, NEEDS, Maker
from lanescope.foreign.perfetto.formats import packets as formats
from lanescope.foreign.perfetto.formats.packets import PacketReader


@st.composite
def sdk_packets(draw) -> Maker:
    """Packets of an SDK: texts by id, in the packet that uses them first; some ids unknown, some given twice."""
    made = Maker()
    for sequence in (5, 6):
        state = made.packet(sequence, flags=CLEARED)
        state.trace_packet_defaults.track_event_defaults.track_uuid = sequence
        state.trace_packet_defaults.timestamp_clock_id = 64
        made.snapshot(sequence, (64, 1000), (6, 1000), incremental=(64,))
    for _ in range(draw(st.integers(1, 20))):
        packet = made.packet(draw(st.sampled_from([5, 6])), draw(st.sampled_from([0, 1, 127, 128, 300, 16384])), NEEDS)
        event = packet.track_event
        event.type = draw(st.sampled_from([0, BEGIN, BEGIN, END, END, INSTANT, 5]))
        ids = st.integers(0, 3)
        if draw(st.booleans()):
            event.name_iid = draw(ids)
            event.category_iids.extend(draw(st.lists(ids, max_size=2)))
        if draw(st.booleans()):
            note = event.debug_annotations.add(name_iid=draw(ids))
            field = draw(st.sampled_from(["uint_value", "int_value", "bool_value", "string_value", "string_value_iid"]))
            value: Any = draw(st.text(max_size=20)) if field == "string_value" else draw(st.integers(0, 1 << 40))
            setattr(note, field, bool(value) if field == "bool_value" else value)
        event.flow_ids.extend(draw(st.lists(st.integers(1, 3), max_size=2, unique=True)))
        texts = packet.interned_data
        for kind in (texts.event_names, texts.event_categories, texts.debug_annotation_names):
            for iid in draw(st.lists(st.integers(1, 3), max_size=1)):
                kind.add(iid=iid, name=draw(st.sampled_from(["a", "b"])))
    return made


def found_in(content: bytes, cuts: list[int] = ()) -> dict[str, Any]:
    """What the packets hold, apart from where in the file they lie."""
    reader = PacketReader(len(content))
    for begin, end in zip([0, *cuts], [*cuts, len(content)], strict=True):
        reader.feed(memoryview(content)[begin:end])
    found = reader.finish()
    columns = {**found.tables, **found.rows, "messages": {}}
    rows = len(found.tables["annotated"]["event"])
    return {
        "columns": {
            f"{table}.{name}": np.asarray(column).tolist()
            for table, named in columns.items()
            for name, column in (named.items() if isinstance(named, dict) else [("", named)])
            if name != "offset"
        },
        "arguments": found.reader.arguments(np.arange(rows), np.full(rows, -1)),
        "texts": (found.names, found.categories, found.texts),
        "faults": {name: count for name, (count, _) in found.faults.items()},
        "packets": found.packets,
        "all is accounted for": found.decoded + found.padding + found.lost == len(content) == found.size,
    }


@settings(max_examples=some(500), deadline=None)
@given(sdk_packets(), st.booleans())
def test_both_ways_find_the_same(made, has_bad_texts):
    plain = made.content()
    for packet in made.proto.packet:
        packet.trusted_uid = 1  # says nothing of the packet but that it is not a plain one
    assert found_in(made.content()) == found_in(plain)


@pytest.mark.parametrize("bad", [b"\x62\x02\x12\x05", b"\x62\x04\x12\x02\x0a\x07", b"\x62\x02\x10\x01"])
def test_texts_that_are_none_lose_their_packet_both_ways(bad):
    """The event that comes with them is lost too, and no more than that."""
    made = Maker()
    made.packet(5, flags=CLEARED)
    first = made.content()
    body = b"\x40\x05\x50\x05" + bad + b"\x5a\x02\x48\x03"
    behind = made.event(9, INSTANT, 1, "behind", sequence=5)
    del made.proto.packet[0]
    assert behind.name == "behind"
    ways = [
        found_in(first + b"\x0a" + bytes([len(each)]) + each + made.content()) for each in (body, b"\x18\x01" + body)
    ]
    assert ways[0] == ways[1]
    assert ways[0]["faults"] == {"invalid": 1}
    assert len(ways[0]["columns"]["instants.ts"]) == 1


@settings(max_examples=some(200), deadline=None)
@given(sdk_packets(), st.data())
def test_a_file_is_cut_anywhere(made, data):
    content = made.content()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    assert found_in(content, cuts) == found_in(content)


def test_a_packet_longer_than_what_is_looked_at_first_is_cut():
    """Of a cut packet the rest is first looked for in a few bytes."""
    made = Maker()
    made.packet(5, flags=CLEARED)
    for ts in range(5):
        note = made.event(ts, INSTANT, 1, "long", sequence=5).debug_annotations.add(name="text")
        note.string_value = "x" * (2 * formats._MOST_CUT)
    content = made.content()
    whole = found_in(content)
    assert len(whole["arguments"]) == 5
    for first in (10, 100, formats._MOST_CUT, formats._MOST_CUT + 50, 3 * formats._MOST_CUT):
        assert found_in(content, [first]) == whole
        assert found_in(content, [first, first + 5, first + formats._MOST_CUT]) == whole
