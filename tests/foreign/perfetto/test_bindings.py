"""Files read by us and by a plain reader on the official bindings: simulated ones, our own ones, and any packets."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import some
from foreign.perfetto import by_bindings
from foreign.perfetto.made import BEGIN, CLEARED, COUNTER, END, INSTANT, NEEDS, Maker
from foreign.perfetto.test_family import content_of
from foreign.perfetto.test_round_trip import DEVICES
from foreign.perfetto.test_round_trip import simulated as capture_of
from lanescope.io import perfetto


def read(content: bytes, folder: Path) -> lanescope.Trace:
    path = folder / "run.pftrace"
    path.write_bytes(content)
    return lanescope.open(path, family="perfetto")


@pytest.mark.parametrize("style", ["sdk", "plain"])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("lost", [0.0, 0.3])
def test_simulated_files(style, compressed, lost, tmp_path):
    content = content_of(style=style, compressed=compressed, lost=lost)
    by_bindings.same(read(content, tmp_path), content)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("family", [*DEVICES, "chrome", "kineto"])
def test_files_that_lanescope_wrote(family, compressed, tmp_path):
    """All rows that were drawn are there; those that only the drawing has come back as gaps, arrows and findings."""
    out = io.BytesIO()
    perfetto.write(capture_of(family, DEVICES.get(family, [{}])[0], tmp_path), out, compress=compressed)
    content = out.getvalue()
    (tmp_path / "drawn").mkdir()
    ours, theirs = by_bindings.of_trace(read(content, tmp_path / "drawn")), by_bindings.said(content)
    zero = read(content, tmp_path / "drawn").time.epoch_ns

    def drawn(counted, place):
        return {key: n for key, n in counted.items() if not key[1].startswith("lanescope.")} if place else counted

    assert {(*key[:2], key[2] - zero, key[3]): n for key, n in ours.slices.items()} == drawn(theirs.slices, 1)
    assert {(*key[:2], key[2] - zero): n for key, n in ours.instants.items()} == drawn(theirs.instants, 1)
    assert {(ts - zero, value): n for (ts, value), n in ours.samples.items()} == theirs.samples
    assert ours.slices.total() > 50


def value(draw, annotation, deep: int = 0) -> None:
    """Give an annotation a value of any kind."""
    kind = draw(st.integers(0, 8 if deep < 2 else 6))
    if kind == 0:
        annotation.bool_value = draw(st.booleans())
    elif kind == 1:
        annotation.uint_value = draw(st.integers(0, 2**64 - 1))
    elif kind == 2:
        annotation.int_value = draw(st.integers(-(2**63), 2**63 - 1))
    elif kind == 3:
        annotation.double_value = draw(st.floats(allow_nan=False, allow_infinity=False))
    elif kind == 4:
        annotation.string_value = draw(st.text(max_size=5))
    elif kind == 5:
        annotation.string_value_iid = draw(st.integers(1, 3))
    elif kind == 6:
        annotation.pointer_value = draw(st.integers(0, 2**64 - 1))
    elif kind == 7:
        for number in range(draw(st.integers(1, 3))):
            each = annotation.dict_entries.add(name=f"key {number}")
            value(draw, each, deep + 1)
    else:
        for _ in range(draw(st.integers(1, 3))):
            value(draw, annotation.array_values.add(), deep + 1)


@st.composite
def packets(draw) -> Maker:
    """Packets of two sequences on four tracks: times in any order, state that begins anew and is lost, any texts."""
    made = Maker()
    for uuid in (1, 2, 2**63 + 5):
        made.track(uuid, f"track {uuid}", sibling_merge_behavior=2)
    counter = made.track(7, "samples").counter
    counter.is_incremental = draw(st.booleans())
    counter.unit_multiplier = draw(st.sampled_from([0, 3]))
    in_order, now = draw(st.booleans()), 1000
    known: dict[int, set[int]] = {5: set(), 6: set()}
    for sequence in (5, 6):
        made.packet(sequence, flags=CLEARED)
    for _ in range(draw(st.integers(1, 12))):
        sequence = draw(st.sampled_from([5, 6]))
        if draw(st.integers(0, 9)) == 0:
            start = made.packet(sequence, flags=CLEARED)
            known[sequence] = set()
            if draw(st.booleans()):
                start.trace_packet_defaults.track_event_defaults.track_uuid = 2
        now = now + draw(st.integers(0, 5)) if in_order else draw(st.integers(1000, 1020))
        packet = made.packet(sequence, now, draw(st.sampled_from([0, NEEDS])))
        if draw(st.integers(0, 14)) == 0:
            packet.previous_packet_dropped = 1
        event = packet.track_event
        event.type = draw(st.sampled_from([BEGIN, BEGIN, END, END, INSTANT, COUNTER]))
        if event.type == COUNTER:
            event.track_uuid = 7
            event.counter_value = draw(st.integers(-1000, 1000))
            continue
        if draw(st.booleans()):
            event.track_uuid = draw(st.sampled_from([1, 2, 2**63 + 5]))
        if event.type != END or draw(st.integers(0, 3)) == 0:
            if draw(st.booleans()):
                event.name = draw(st.sampled_from(["a", "b"]))
            else:
                event.name_iid = draw(st.integers(1, 2))
                if event.name_iid not in known[sequence]:
                    known[sequence].add(event.name_iid)
                    text = f"text {len(made.proto.packet) % 3}"
                    packet.interned_data.event_names.add(iid=event.name_iid, name=text)
            event.categories.extend(draw(st.lists(st.sampled_from(["x", "y"]), max_size=2)))
        for number in range(draw(st.integers(0, 2))):
            value(draw, event.debug_annotations.add(name=f"argument {number}"))
        if draw(st.integers(0, 3)) == 0:
            event.correlation_id = draw(st.integers(1, 2**64 - 1))
        event.flow_ids.extend(draw(st.lists(st.integers(1, 3), max_size=2, unique=True)))
        event.terminating_flow_ids.extend(draw(st.lists(st.integers(4, 5), max_size=1)))
    return made


@settings(max_examples=some(300), deadline=None)
@given(packets(), st.booleans())
def test_any_packets(made, compressed):
    content = made.content(compressed=compressed)
    with tempfile.TemporaryDirectory() as folder:
        by_bindings.same(read(content, Path(folder)), content)
