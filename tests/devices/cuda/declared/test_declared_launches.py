"""Launches in buffers of declared layouts that the host did not clear, told apart as in those of TIRx."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from devices.cuda.declared.producers import WRITERS, Shape
from devices.cuda.declared.test_declared_producers import decode
from devices.cuda.helpers import buffer, instants, lanes, spans, stats
from devices.cuda.helpers import decode as decode_words
from devices.cuda.test_earlier_launch import laid_over as laid_over_words
from devices.cuda.test_earlier_launch import launches
from effort import some
from lanescope.devices.cuda.formats.declared import catalog, earlier_words, lane_decoding
from lanescope.devices.cuda.formats.declared.arrays import Arrays
from lanescope.devices.cuda.formats.declared.geometry import locate
from lanescope.devices.cuda.formats.declared.lane_decoding import lanes_of
from lanescope.devices.cuda.formats.declared.reader import DeclaredBuffer
from lanescope.errors import InputError

LAYOUTS = {
    "mirage-mpk": 0,
    "mirage-transpiler": 0,
    "triton-distributed": 0x7FFF_FFFF_FFFF_FFFF,
}
EARLIER = 5_000_000
TIRX = str(Path(catalog.__file__).parent / "shipped/tirx-v1.toml")


def laid_over(layout, *, regions=(4, 9), apart=EARLIER, blocks=5, groups=2):
    """A launch of few regions over one of many regions that ended before it began; and how many records are left."""
    empty = np.uint64(LAYOUTS[layout])
    new, old = (
        WRITERS[layout][0](Shape(blocks=blocks, groups=groups, regions=count, seed=seed))
        for seed, count in enumerate(regions)
    )
    words, before = new.arrays["buffer"].copy(), old.arrays["buffer"].copy()
    head = len(words) % (blocks * groups) or blocks * groups
    used = before[head:] != empty
    before[head:][used] -= np.uint64(apart << 32)
    if len(words) < len(before):
        words = np.concatenate([words, np.full(len(before) - len(words), empty)])
    words, before = words[: len(before)], before[: len(words)]
    left = (words == empty) & (before != empty)
    left[:head] = False
    words[left] = before[left]
    new.arrays["buffer"] = words
    new.options.pop("anchor", None)
    return new, int(left.sum())


def regions_of(trace):
    """Slices as block, group, event and length."""
    found = trace.tables()["cuda_regions"]
    rows = zip(found.rows(), trace.slices.rows(), strict=True)
    return sorted((of["block"], of["group"], of["event_id"], row["dur"] or 0) for of, row in rows)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_an_earlier_launch_left_is_left_out_and_counted(layout):
    made, left = laid_over(layout)
    assert left > 20
    trace = decode(made, layout)
    assert stats(trace)["cuda_stale"] == left
    closed = sorted((*row[:2], row[3], row[5] - row[4]) for row in made.spans if row[5] is not None)
    assert regions_of(trace) == closed
    assert not {"cuda_clock_reversal", "cuda_end_unmatched", "cuda_wrap"} & set(stats(trace))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_earlier_launch_can_be_kept_as_one_of_its_own(layout):
    made, left = laid_over(layout)
    latest, kept = decode(made, layout), decode(made, layout, stale="keep")
    launch = kept.tables()["cuda_regions"]["launch"]
    assert set(launch.tolist()) >= {0, 1}
    assert np.count_nonzero(launch == 0) == len(latest.slices)
    assert stats(kept)["cuda_stale"] == left


@pytest.mark.parametrize("stale", ["drop", "keep"])
def test_a_file_that_is_not_read_whole_gives_the_same(stale, tmp_path, monkeypatch):
    made, left = laid_over("mirage-mpk", blocks=40)
    path = tmp_path / "run.bin"
    path.write_bytes(made.file())
    whole = lanescope.open(path, layout="mirage-mpk", stale=stale)
    monkeypatch.setattr("lanescope.devices.cuda.decoder.WHOLE_BYTES", 0)
    monkeypatch.setattr("lanescope.devices.cuda.emit.batches.PART_RECORDS", 100)
    parts = lanescope.open(path, layout="mirage-mpk", stale=stale)
    assert stats(parts) == stats(whole)
    assert stats(parts)["cuda_stale"] == left
    assert regions_of(parts) == regions_of(whole)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_launch_stays_one(layout):
    for seed in range(4):
        made = WRITERS[layout][0](Shape(blocks=5, groups=2, regions=None, seed=seed, wrap=seed % 2 == 1))
        assert "cuda_stale" not in stats(decode(made, layout))


@pytest.mark.parametrize("part", [1 << 20, 20])
def test_records_before_the_anchor_of_their_unit_are_of_an_earlier_launch(part, monkeypatch):
    monkeypatch.setattr("lanescope.devices.cuda.emit.batches.PART_RECORDS", part)
    made, before = (
        WRITERS["nuggets-compact"][0](Shape(blocks=5, regions=count, capacity=24, seed=count)) for count in (3, 10)
    )
    words, old = made.arrays["buffer"], before.arrays["buffer"]
    stamp = np.uint64(0xFFFF_FFFF)
    earlier = old & ~stamp | old - np.uint64(EARLIER) & stamp
    left = (words == 0) & (old != 0)
    words[left] = earlier[left]
    assert left.sum() > 20
    trace = decode(made, "nuggets-compact", launch_ns=10_000_000)
    assert stats(trace) == {"cuda_stale": left.sum()}
    assert regions_of(trace) == sorted((*row[:2], row[3], row[5] - row[4]) for row in made.spans)


def static_nuggets(*, apart=EARLIER, blocks=(5, 7), regions=(4, 9)):
    """A launch of nuggets without counts over one of more regions in more units, and the records that are left."""
    made, before = (
        WRITERS["nuggets-legacy"][0](Shape(blocks=blocks[1], regions=count, capacity=24, seed=count))
        for count in regions
    )
    words, old = (one.arrays["buffer"].reshape(blocks[1], -1) for one in (made, before))
    words[:, 0] = 0
    words[blocks[0] :] = 0
    made.spans = [row for row in made.spans if row[0] < blocks[0]]
    at = old[:, 1::4]
    at[at != 0] -= apart
    left = np.repeat((words[:, 1::4] == 0) & (at != 0), 4, axis=1)
    words[:, 1:][left] = old[:, 1:][left]
    made.lost = None
    return made, int(left.sum()) // 4


@pytest.mark.parametrize("part", [1 << 20, 20])
def test_regions_of_an_earlier_launch_are_left_out_where_nothing_is_counted(part, monkeypatch):
    monkeypatch.setattr("lanescope.devices.cuda.emit.batches.PART_RECORDS", part)
    made, left = static_nuggets()
    assert left > 25
    trace = decode(made, "nuggets-legacy")
    assert stats(trace)["cuda_stale"] == left
    assert not {"cuda_hole", "cuda_lane_may_be_lost", "cuda_corrupt_record"} & set(stats(trace))
    assert regions_of(trace) == sorted((*row[:2], row[3], row[5] - row[4]) for row in made.spans)
    slots = [(row["begin_slot"], row["block"]) for row in trace.tables()["cuda_regions"].rows()]
    assert all(slot // (1 + 4 * 24) == block for slot, block in slots)
    kept = decode(made, "nuggets-legacy", stale="keep")
    assert len(kept.slices) == len(trace.slices) + left
    assert stats(kept)["cuda_stale"] == left


@pytest.mark.parametrize("apart", [100, 1000])
def test_regions_that_one_launch_may_have_stored_are_kept(apart):
    made, left = static_nuggets(apart=apart)
    trace = decode(made, "nuggets-legacy")
    assert "cuda_stale" not in stats(trace)
    assert len(trace.slices) == len(made.spans) + left


def test_the_length_of_the_launch_decides():
    made, _ = static_nuggets()
    assert "cuda_stale" not in stats(decode(made, "nuggets-legacy", launch_ns=EARLIER + 50_000))
    assert "cuda_stale" in stats(decode(made, "nuggets-legacy", launch_ns=EARLIER // 2))


@pytest.mark.parametrize("layout", ["flydsl", "flydsl-static"])
def test_a_tick_outside_of_the_life_of_its_wave_is_corrupt(layout):
    made = WRITERS[layout][0](Shape(blocks=2, groups=1, regions=4))
    before = decode(made, layout)
    made.arrays["buffer"][19 if layout == "flydsl" else 5] ^= np.uint32(1 << 31)
    after = decode(made, layout)
    assert "cuda_corrupt_record" not in stats(before)
    assert stats(after)["cuda_corrupt_record"] == 1
    assert len(after.instants) == len(before.instants) - 1


def test_blocks_may_have_run_on_other_sms_before():
    words = WRITERS["flashinfer-v2-clock"][0](Shape(blocks=4, groups=2, regions=4)).arrays["buffer"]
    old = WRITERS["flashinfer-v2-clock"][0](Shape(blocks=4, groups=2, regions=9, seed=5)).arrays["buffer"]
    used = old[1:] != 0
    old[1:][used] = (old[1:][used] - np.uint64(EARLIER << 32)) ^ np.uint64(1 << 30)
    both = old.copy()
    both[: len(words)] = np.where(words != 0, words, old[: len(words)])
    made = WRITERS["flashinfer-v2-clock"][0](Shape(blocks=4, groups=2, regions=4))
    alone = decode(made, "flashinfer-v2-clock")
    made.arrays["buffer"] = both
    trace = decode(made, "flashinfer-v2-clock")
    assert stats(trace)["cuda_stale"] > 0
    assert "cuda_multiple_sms" not in stats(trace)
    assert [row["sm"] for row in trace.tables()["cuda_lanes"].rows()] == [
        row["sm"] for row in alone.tables()["cuda_lanes"].rows()
    ]
    # The last instant of a lane is overwritten or left, as before.
    assert regions_of(trace) == regions_of(alone)


def found_in(trace):
    """What a trace says of records and launches, whichever layout it is read by."""
    regions, counted = trace.tables()["cuda_regions"], stats(trace)
    known = "launch", "block", "group", "begin_slot", "end_slot"
    rows = [tuple(row[name] for name in known) for row in regions.rows()] if len(trace.slices) else []
    return spans(trace), instants(trace), lanes(trace), rows, {name: counted.get(name) for name in _OF_LAUNCHES}


_OF_LAUNCHES = "cuda_stale", "cuda_clock_reversal", "cuda_corrupt_record", "cuda_end_unmatched", "cuda_after_finalize"


@settings(max_examples=some(150))
@given(launches())
def test_any_two_launches_are_what_the_reader_of_the_layout_finds(made):
    words = laid_over_words(*made)
    for stale in ("drop", "keep"):
        declared = decode_words(words, layout=TIRX, stale=stale)
        assert found_in(declared) == found_in(decode_words(words, layout="tirx-v1", stale=stale))


def looked_at(monkeypatch):
    """Count how often words are shown as TIRx would have stored them."""
    calls, made = [], earlier_words.AsTirx

    def counted(*arguments):
        calls.append(1)
        return made(*arguments)

    monkeypatch.setattr(earlier_words, "AsTirx", counted)
    return calls


def test_only_lanes_that_may_hold_two_launches_are_looked_at(monkeypatch):
    calls = looked_at(monkeypatch)
    decode_words(buffer([[("B", 0, 10), ("E", 0, 30)], [("B", 1, 20), ("E", 1, 40)]]), layout=TIRX)
    assert not calls
    decode_words(buffer([[("B", 0, 10**9), ("E", 0, 10**9 + 30), ("B", 1, 20), ("E", 1, 40)]]), layout=TIRX)
    assert calls


def test_a_buffer_without_a_slot_for_each_lane_is_refused():
    words = buffer([[("B", lane, 10), ("E", lane, 30)] for lane in range(4)])[:4]
    with pytest.raises(InputError, match="buffer is too short: 3 slots for 4 lanes"):
        decode_words(words, layout=TIRX)


WORDS = ["flashinfer-v2", "flashinfer-v2-clock", "mirage-mpk", "mirage-transpiler", "tirx-v1", "triton-distributed"]


def as_tirx(buffer, declaration):
    """The words of a buffer as TIRx would have stored them, one after the other, by its columns."""
    records = buffer.records
    kinds, stamps, events = records.kind.tolist(), records.begin.tolist(), records.event.tolist()
    found = {}
    for lane in range(len(records.start) - 1):
        for i in range(records.start[lane], records.start[lane + 1]):
            if kinds[i] > lane_decoding.UNREADABLE:
                continue
            is_sound = kinds[i] != lane_decoding.UNREADABLE
            tag, kind = (lane, kinds[i]) if is_sound else (lane ^ 1, 0)
            found[int(records.byte[i]) // 8] = kind | (events[i] & 0x3FF) << 2 | tag << 12 | stamps[i] << 32
    return found


@settings(max_examples=some(150))
@given(st.data())
@pytest.mark.parametrize("layout", WORDS)
def test_words_are_shown_as_tirx_would_have_stored_them(layout, data):
    declaration = catalog.load(layout)
    blocks, groups = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    count = data.draw(st.integers(blocks * (groups + 2), 60))
    seed, damage = data.draw(st.integers(0, 1 << 32)), data.draw(st.sampled_from([0, 1, 0xFFF, 1 << 63]))
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 1 << 64, 1 + count, np.uint64, endpoint=False)
    # Most records agree with their lane, some are empty, and some are anything.
    main = words.view(np.uint8)
    words[0] = blocks | groups << 32
    geometry = locate(declaration, Arrays({"buffer": main}, {"buffer": 0}), {})
    first, lane = int(geometry.base[0]) // 8, np.arange(count) % (blocks * groups)
    words[1:first] = np.arange(first - 1)
    _, shift, width = lanes_of(declaration, Arrays({"buffer": main}, {"buffer": 0}), geometry)._direct.roles.fields[4]
    expected = geometry.lane_value(declaration.record.agree.equality[1])[lane[: len(words) - first]].astype(np.uint64)
    mask = np.uint64(((1 << int(width)) - 1) << int(shift))
    words[first:] = words[first:] & ~mask | expected << np.uint64(shift) & mask
    some_of = rng.random(len(words) - first)
    words[first:][some_of < 0.2] = LAYOUTS.get(layout, 0)
    words[first:][some_of > 0.8] ^= np.uint64(damage)
    buffer = DeclaredBuffer(declaration, Arrays({"buffer": main}, {"buffer": 0}), {})
    shown = earlier_words.AsTirx(main, buffer._geometry, buffer._lanes._direct)
    assert int(shown.whole()[0]) == (blocks * groups) | 1 << 32
    got = {first + slot: word for slot, word in enumerate(shown.whole()[1:].tolist()) if word}
    want = as_tirx(buffer, declaration)
    # Only the lane matters of words that do not agree with their place.
    bad = [at for at, word in want.items() if word >> 12 & 0xFFFFF != (at - first) % (blocks * groups)]
    assert got.keys() == want.keys()
    assert [got.pop(at) >> 12 & 0xFFFFF for at in bad] == [want.pop(at) >> 12 & 0xFFFFF for at in bad]
    assert got == want
    pieces = [shown.window(at, at + 7) for at in range(0, len(shown), 7)]
    assert np.concatenate(pieces).tolist() == shown.whole().tolist()
