"""LS2: the native reader against a slow one, any bytes, and words that come back as they were."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lanescope
from devices.cuda import reference
from devices.cuda.helpers import accounts, decode, decode_simulation, gaps, instants, lanes, ls2, simulate, spans, stats
from effort import some
from lanescope.analysis import check
from lanescope.cuda import advice as cuda_advice
from lanescope.devices.cuda.formats.encode import ls2 as encode_ls2
from lanescope.devices.cuda.formats.lanes import STEP_BACK
from lanescope.devices.cuda.formats.layout import (
    LS2_FILE_WORDS,
    LS2_HEADER,
    LS2_LANE_WORDS,
    LS2_RECORD,
    LS2_VERSIONS,
    STAMP_WRAP,
)
from lanescope.devices.cuda.formats.ls2 import Ls2Buffer
from lanescope.errors import InputError, UsageError
from lanescope.trace import Flag
from lanescope.wire.strategies import values


@st.composite
def offered(draw):
    """Return records of some lanes, and how they are stored."""
    count = draw(st.integers(1, 3))
    rows = []
    for lane in range(count):
        time = draw(st.sampled_from([5000, STAMP_WRAP - 64, STAMP_WRAP // 2]))
        for _ in range(draw(st.integers(0, 40))):
            time += draw(st.sampled_from([0, 32, 64, 320, 32, 32, -32]))
            kind = draw(st.sampled_from([0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7]))
            rows.append((lane, draw(st.sampled_from([0, 1, 65535])), kind, time, draw(st.integers(0, 3))))
    columns = list(np.array(rows, np.int64).reshape(-1, 5).T)
    payload = np.arange(len(rows), dtype=np.uint64) * np.uint64(0x0123456789ABCDEF)
    setup = encode_ls2.Ls2Setup(
        count,
        1,
        draw(st.sampled_from([1, 4, 16, 64])),
        record_words=draw(st.integers(1, 2)),
        is_ring=draw(st.booleans()),
    )
    heads = encode_ls2.lane_heads(count, state=3, begin_ns=4000, end_ns=2 * STAMP_WRAP)
    words, _, counted = encode_ls2.encode(encode_ls2.Ls2Records(*columns, payload), setup, heads)
    for at, word in draw(
        st.dictionaries(st.integers(LS2_FILE_WORDS, len(words) - 1), st.integers(0, 2**64 - 1), max_size=3)
    ).items():
        if (at - LS2_FILE_WORDS) % setup.lane_words >= LS2_LANE_WORDS:
            words[at] = draw(st.sampled_from([0, word, word | 1]))
    return words, setup, counted


@settings(max_examples=some(400))
@given(offered())
def test_native_equals_reference(given_buffer):
    words, setup, counted = given_buffer
    buffer = Ls2Buffer(words)
    decoded = buffer.decode((0, setup.lanes), split=True, step_back=STEP_BACK)
    rules = {"capacity": setup.capacity, "width": setup.record_words, "ring": setup.is_ring}
    expected = [
        reference.decode_ls2_lane(words.tolist(), lane, offered=count, **rules)
        for lane, count in enumerate(counted.tolist())
    ]
    reference.assert_same(decoded, expected)
    assert buffer.grid.lost.tolist() == [max(0, count - setup.capacity) for count in counted.tolist()]


@settings(max_examples=some(150))
@given(offered(), st.integers(0, 400))
def test_any_words_are_accounted_for(given_buffer, cut):
    words, setup, _ = given_buffer
    words = words[: max(LS2_FILE_WORDS, len(words) - cut)]
    trace = lanescope.cuda.decode(words)  # the builder refuses sums that do not add up
    assert accounts(trace)["slot"]["total"] == len(words)
    assert len(trace.slices) == 0 or trace.slices["ts"].min() >= 0
    assert stats(trace).get("truncated", 0) == LS2_FILE_WORDS + setup.lanes * setup.lane_words - len(words)


@settings(max_examples=some(200))
@given(
    *(st.binary(max_size=1500), st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from([1, 8, 32])),
    st.sampled_from([(), ((5000, 10**18, 5),), (((1 << 62) - 1, 1, 0), (7, 9, 11))]),
)
def test_any_bytes_behind_a_header(body, second, blocks, capacity, anchors):
    setup = encode_ls2.Ls2Setup(blocks, 2, capacity, anchors=anchors)
    head = encode_ls2.header_words(setup).copy()
    head[1] = np.uint64((int(head[1]) & 0xFF) | (second & 0xFFFFFF00))
    try:
        trace = decode(head.tobytes() + body, name="run.bin")
    except InputError:
        return
    assert accounts(trace)["byte"]["total"] == len(head) * 8 + len(body)


@settings(max_examples=some(200))
@given(st.data())
def test_any_readings_of_the_clocks(data):
    lanes = [[("B", 0, 1000), ("E", 0, 5000), ("b", 1, 6000, 1)]] * 4
    words = ls2(lanes, clock=1, capacity=4, words=data.draw(st.integers(1, 2)))
    width = (len(words) - LS2_FILE_WORDS) // 4
    for lane in range(4):
        for at in range(2, 7):
            kept = st.just(int(words[LS2_FILE_WORDS + lane * width + at]))
            near = st.integers(0, 10_000)
            reading = data.draw(st.one_of(kept, near, st.integers(0, 2**64 - 1), st.integers(2**61, 2**62)))
            words[LS2_FILE_WORDS + lane * width + at] = reading
    trace = lanescope.cuda.decode(words)
    assert trace.slices["ts"].min() >= 0
    assert (trace.slices.values("dur") >= 0).all()
    assert (trace.coverage["dur"] >= 0).all()


@given(st.lists(values(LS2_RECORD), max_size=40))
def test_pack_is_the_reference_codec(fields):
    columns = [np.array([f[name] for f in fields], np.int64) for name in ("event", "kind", "time", "token")]
    records = encode_ls2.Ls2Records(np.zeros(len(fields), np.int64), *columns, np.zeros(len(fields), np.uint64))
    assert encode_ls2.pack(records).tolist() == [LS2_RECORD.encode({**f, "is_record": 1}) for f in fields]


@pytest.mark.parametrize("seed", range(8))
def test_raw_records_restore_the_buffer(seed):
    simulation = simulate(
        seed,
        layout="ls2",
        blocks=3,
        tiles=6,
        payload=seed % 2 == 1,
        overflow=seed % 3 == 1,
        ring=seed > 3,
        unfinished=1,
    )
    words = np.frombuffer(simulation.files["attention.npy"][128:], "<u8")
    trace = decode_simulation(simulation)
    table, header = trace.records["cuda_ls2_records"], Ls2Buffer(words).header
    again = np.zeros(len(words), np.uint64)
    again[:LS2_FILE_WORDS] = words[:LS2_FILE_WORDS]
    heads = LS2_FILE_WORDS + np.arange(header.lanes)[:, None] * header.lane_words + np.arange(LS2_LANE_WORDS)
    again[heads] = words[heads]
    again[table["slot"]] = table["word"]
    if header.record_words == 2:
        again[table["slot"] + 1] = table["payload"]
    assert (again == words).all()
    is_record = table["kind"] != "value"
    columns = [table[name].astype(np.int64) for name in ("lane", "event_id")]
    kinds = table.codes("kind").astype(np.int64)
    times, tokens = table["time"].astype(np.int64), table["token"].astype(np.int64)
    records = encode_ls2.Ls2Records(*columns, kinds, times, tokens, np.zeros(len(table), np.uint64)).take(is_record)
    assert (encode_ls2.pack(records) == table["word"][is_record]).all()


def test_parts_give_the_rows_of_the_whole(monkeypatch):
    from lanescope.devices.cuda.emit import batches

    simulation = simulate(
        5, layout="ls2", blocks=9, groups=3, tiles=5, overflow=True, unfinished=2, holes=1, instants=True, wrap=True
    )
    words = np.frombuffer(simulation.files["attention.npy"][128:], "<u8")
    whole = lanescope.cuda.decode(words)
    monkeypatch.setattr(batches, "PART_RECORDS", 300)
    several = list(lanescope.cuda.iter_batches(words))
    assert len(several) > 3
    parts = lanescope.Trace.concat(several)
    for name, table in whole.tables().items():
        if name != "tracks":
            assert sorted(map(str, _plain(parts, name))) == sorted(map(str, _plain(whole, name))), name
        assert len(table) == len(parts.tables()[name])


def _plain(trace, name):
    """Return rows without the ids that depend on how the lanes were cut, tracks by their path."""
    names = trace.tracks["name"].tolist()
    parents = [row["parent_id"] for row in trace.tracks.rows()]

    def path(track):
        return "" if track is None else path(parents[track]) + "/" + names[track]

    for row in trace.tables()[name].rows():
        yield {
            key: path(value) if key.endswith("track") or key == "track_id" else value
            for key, value in row.items()
            if key not in ("id", "slice_id", "instant_id", "flow_id", "src_slice_id", "dst_slice_id")
        }


# --- lanes without room -------------------------------------------------------------------------------------------


@settings(max_examples=some(25))
@given(
    seed=st.integers(0, 2**32 - 1),
    blocks=st.integers(2, 9),
    share=st.integers(0, 8),
    groups=st.integers(1, 4),
    flags=st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_any_plan_counts_what_it_refuses(seed, blocks, share, groups, flags):
    """The blocks that are there are those of the kernel, unchanged; of the others the number is known."""
    refused = share % blocks
    options = dict(zip(("ring", "overflow", "payload", "clock64"), flags, strict=True))
    options |= {"layout": "ls2", "blocks": blocks, "groups": groups, "tiles": 2, "sms": 3}
    truth = simulate(seed, **options).truth
    simulation = simulate(seed, **options, refused=refused)
    assert simulation.truth["spans"] == [row for row in truth["spans"] if row[0] < blocks - refused]
    trace = decode_simulation(simulation)
    lost = refused * groups
    assert simulation.truth["unallocated_lanes"] == lost
    assert (simulation.truth["grid_blocks"], simulation.truth["num_blocks"]) == (blocks, blocks - refused)
    (row,) = trace.details["cuda_buffers"].rows()
    assert (row["num_blocks"], row["unallocated_lanes"]) == (blocks - refused, lost)
    assert (row["required_blocks"], row["required_groups"]) == (blocks if refused else None, None)
    assert (row["suggested_slots"] is not None) == bool(lost or simulation.truth["lost_by_lane"])
    assert stats(trace).get("cuda_unallocated_lane", 0) == lost
    account = accounts(trace)["lane"]
    assert (account["scope"], account["decoded"], account["lost"]) == ("producer", len(lanes(trace)), lost)
    found = [finding for finding in check.run(trace, select=["LS002"]) if "lane" in finding.detail and refused]
    assert [(finding.stat, finding.count) for finding in found] == [("cuda_unallocated_lane", lost)] * bool(refused)
    assert any("refused" in line or "without records" in line for line in cuda_advice(trace)) == bool(refused)


def _refusing(**words):
    """Return a buffer of one block of two groups whose header has these words."""
    buffer = ls2([[("B", 0, 5), ("E", 0, 9)]] * 2, groups=2)
    for name, value in words.items():
        buffer[LS2_HEADER[name].lsb // 64] = value
    return buffer


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            {"refused": 6, "required_blocks": 4},
            "buffer holds 1 of 4 blocks: 6 lanes without records; set blocks=4",
        ),
        (
            {"refused": 1, "required_groups": 3},
            "buffer holds 2 of 3 groups: 1 lane without records; set groups=3",
        ),
        (
            {"refused": 10, "required_blocks": 4, "required_groups": 3},
            "buffer holds 1 of 4 blocks, buffer holds 2 of 3 groups: 10 lanes without records; set blocks=4, groups=3",
        ),
        ({"refused": 2}, "kernel received a part of the buffer only: 2 lanes without records"),
    ],
)
def test_what_would_have_held_them_is_said(words, text):
    trace = lanescope.cuda.decode(_refusing(**words))
    assert cuda_advice(trace) == [f"buffer: {text}"]
    assert stats(trace) == {"cuda_unallocated_lane": words["refused"]}
    (stat,) = trace.stats.rows()
    assert (stat["severity"], stat["first_offset"]) == ("data_loss", 12 * 8)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4))
def test_any_counts_are_read(counts):
    trace = decode(
        _refusing(**dict(zip(("refused", "required_blocks", "required_groups", "reserved"), counts, strict=True)))
    )
    assert accounts(trace)["lane"]["lost"] == min(counts[0], 1 << 62)
    assert len(spans(trace)) == 2


@given(offered())
def test_buffers_of_the_second_version_are_what_they_were(given_buffer):
    newer = given_buffer[0]
    older = newer.copy()
    older[1] = older[1] & ~np.uint64(0xFF) | np.uint64(2)
    new, old = lanescope.cuda.decode(newer).tables(), lanescope.cuda.decode(older).tables()
    assert {name: list(new[name].rows()) for name in new if name != "inputs"} == {
        name: list(old[name].rows()) for name in old if name != "inputs"
    }


def test_no_version_is_one_wrong_bit_away_from_another():
    assert {(a ^ b).bit_count() for a in LS2_VERSIONS for b in LS2_VERSIONS if a != b} == {2}


@given(offered(), st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4))
def test_buffers_of_the_first_version_are_what_they_were(given_buffer, behind):
    """All tables without the additions of newer buffers; words that older ones never wrote have no effect."""
    newer = given_buffer[0]
    # Their regions end where they began.
    ends = lanescope.cuda.decode(newer).details["cuda_regions"]
    assume(not ends.valid("end_group").any())
    older = newer.copy()
    older[1] = older[1] & ~np.uint64(0xFF) | np.uint64(1)
    older[12:16] = behind
    new, old = lanescope.cuda.decode(newer).tables(), lanescope.cuda.decode(older).tables()
    for name in new:
        rows = [[row for row in trace[name].rows() if row.get("scope") != "producer"] for trace in (new, old)]
        if name == "cuda_buffers":
            assert rows[1][0]["unallocated_lanes"] is None
            rows[1][0]["unallocated_lanes"] = 0
        if name != "inputs":
            assert rows[0] == rows[1], name
    assert {row["scope"] for row in old["accounting"].rows()} == {"input"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "tirx-v1"}, "--refused requires --layout ls2"),
        ({"layout": "proton"}, "--refused is not supported by layout proton"),
        ({"layout": "ls2", "blocks": 2}, "holds at least one block"),
    ],
)
def test_what_cannot_be_refused(options, message):
    with pytest.raises(UsageError, match=message):
        simulate(1, refused=2, **options)


def test_the_count_of_a_file_that_was_cut_is_there():
    words = _refusing(refused=7, required_blocks=8)
    assert accounts(decode(words[:20]))["lane"]["lost"] == 7


# --- the header ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "value", "message"),
    [
        (0, 0, "header not found"),
        (1, 3 | 1 << 8, "version 3"),
        (1, 5 | 1 << 8, "version 5"),
        (1, 1 << 8, "version 0"),
        (1, 4 | 3 << 8, "invalid LS2 header"),
        (1, 4 | 1 << 8 | 2 << 16, "invalid LS2 header"),
        (1, 4 | 1 << 8 | 2 << 24, "invalid LS2 header"),
        (2, 0, "invalid LS2 header"),
        (2, 1 << 20 | 2 << 32, "invalid LS2 header"),
        (3, 3, "invalid LS2 header"),
        (3, 1 << 40, "invalid LS2 header"),
    ],
)
def test_headers_that_are_none(word, value, message):
    words = ls2([[("B", 0, 5)]])
    words[word] = value
    with pytest.raises(InputError, match=message) as error:
        decode(words, layout="ls2")
    assert error.value.hint


# --- rules of the layout ------------------------------------------------------------------------------------------


def test_counter_of_one_word_takes_two_positions_or_none():
    lane = [("I", 0, 10), ("I", 0, 20), ("I", 0, 30), ("c", 1, 40, 0, 7), ("I", 0, 50)]
    trace = decode(ls2([lane], capacity=4))
    row = lanes(trace)[0, 0]
    assert (row["records"], row["attempted"], row["dropped"]) == (3, 6, 2)
    assert len(trace.counters) == 0
    assert accounts(trace)["slot"]["lost"] == 0


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize(("token", "value", "bits"), [(0, -3.0, -3), (1, 0.75, None), (0, 2.0**40, 1 << 40)])
def test_values_of_counters(words, token, value, bits):
    raw = int(np.float64(value).view(np.int64)) if bits is None else bits
    trace = decode(ls2([[("c", 1, 40, token, raw), ("I", 0, 50)]], words=words), events="a,fill")
    assert [(row["ts"], row["value"]) for row in trace.counters.rows()] == [(0, value)]
    assert trace.tracks["name"].tolist()[-1] == "group 0 fill"
    assert len(instants(trace)) == 1


def test_ring_that_tears_a_counter():
    # Six positions in a ring of four: the counter's head is gone, its value is not taken for anything.
    lane = [("I", 0, 10), ("c", 1, 20, 0, 7), ("I", 0, 30), ("I", 0, 40), ("I", 0, 50)]
    trace = decode(ls2([lane], capacity=4, ring=True))
    assert [row[4] for row in instants(trace)] == [20, 30, 40]
    assert gaps(trace) == [(0, 0, "overrun", 3)]
    assert len(trace.counters) == 0


def test_ring_of_a_lane_that_was_killed_is_found_by_its_seam():
    for count in (70, 100, 127, 128, 150, 191):
        lane = [("I", 0, 100 + 10 * i) for i in range(count)]
        trace = decode(ls2([lane], capacity=64, ring=True, states=[1]))
        assert [row[4] for row in instants(trace, origin=100)] == [100 + 10 * i for i in range(count - 64, count)]
        assert lanes(trace)[0, 0]["dropped"] == count - 64


def test_lane_that_was_killed_before_its_first_count():
    trace = decode(ls2([[("I", 0, 10 + i) for i in range(20)]], states=[1]))
    assert lanes(trace)[0, 0]["records"] == 20


def test_asynchronous_regions_overlap_and_pair_by_token():
    lane = [("b", 0, 0, 1), ("b", 0, 10, 2), ("e", 0, 20, 1), ("b", 1, 25, 1), ("e", 0, 30, 2), ("e", 1, 40, 1)]
    trace = decode(ls2([lane]), events="load,store")
    found = [(row["name"], row["ts"], row["dur"], row["flags"]) for row in trace.slices.rows()]
    assert found == [("load", 0, 20, 0), ("load", 10, 20, 0), ("store", 25, 15, 0)]
    (track,) = set(trace.slices["track_id"].tolist())
    assert trace.tracks["nesting"][track] == "free"
    assert trace.tracks["name"][track] == "group 0 async"


def test_token_in_use_twice_is_doubtful():
    lane = [("b", 0, 0, 1), ("b", 0, 10, 1), ("e", 0, 20, 1), ("e", 0, 30, 1), ("e", 0, 40, 1)]
    trace = decode(ls2([lane]))
    assert [(row["ts"], row["dur"]) for row in trace.slices.rows()] == [(0, 20), (10, 20)]
    assert set(trace.slices["flags"].tolist()) == {int(Flag.INFERRED_IDENTITY)}
    assert set(trace.slices["quality"]) == {"inferred"}
    assert instants(trace)[0][3] == "end event_0?"
    assert stats(trace)["cuda_end_unmatched"] == 1


def test_effects_without_any_cause_that_was_stored_have_no_flows():
    # Of a buffer this small one effect is left, and no cause.
    options = {"blocks": 2, "tiles": 1, "groups": 2, "sms": 2, "overflow": True, "payload": True, "unfinished": 1}
    simulation = simulate(layout="ls2", seed=6245, holes=1, **options)
    assert simulation.truth["flows"] == []
    trace = decode_simulation(simulation)
    assert len(trace.flows) == 0
    assert stats(trace)["cuda_flow_unmatched"]


def test_flows_join_lanes_of_one_block_only():
    cause, effect = [("B", 0, 0), ("o", 5, 10, 3), ("E", 0, 11)], [("B", 1, 5), ("f", 5, 20, 3), ("E", 1, 21)]
    trace = decode(ls2([cause, effect, [], effect], groups=2), events="load,wait")
    (flow,) = trace.flows.rows()
    assert (flow["src_ts"], flow["dst_ts"]) == (10, 20)
    assert trace.slices["name"][flow["src_slice_id"]] == "load"
    assert trace.slices["name"][flow["dst_slice_id"]] == "wait"
    assert stats(trace)["cuda_flow_unmatched"] == 1


def test_stamps_are_unwrapped_from_the_begin_of_the_lane():
    times = [10 * STAMP_WRAP + 5, 10 * STAMP_WRAP + STAMP_WRAP * 2 // 3, 11 * STAMP_WRAP + 9]
    trace = decode(ls2([[("I", 0, t) for t in times]]))
    assert [row["ts_ticks"] for row in trace.instants.rows()] == times
    assert not any(row["flags"] for row in trace.instants.rows())


def test_silence_that_hides_a_turn_is_flagged():
    times = [5, 3 * STAMP_WRAP + 9]
    trace = decode(ls2([[("I", 0, t) for t in times]]))
    assert all(row["flags"] & Flag.WRAP_AMBIGUOUS for row in trace.instants.rows())
    assert stats(trace)["cuda_wrap_ambiguous"] == 1


def test_ring_is_placed_from_its_end():
    times = [7 + STAMP_WRAP // 3 * i for i in range(9)]
    trace = decode(ls2([[("I", 0, t) for t in times]], capacity=4, ring=True))
    assert [row["ts_ticks"] for row in trace.instants.rows()] == times[-4:]


def test_reading_of_lanes_that_never_began():
    trace = decode(ls2([[("I", 0, 5)], []], states=[3, 0]))
    assert stats(trace) == {"cuda_empty_lane": 1}
    assert spans(trace) == []
