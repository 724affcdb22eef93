"""Several runs in one dump: each is labelled by what ran, and lies where its distance from the one before says."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanescope
from devices.aie.recordings import Recordings
from devices.aie.ref_run_axis import Recording, RunAxis
from lanescope._native import core
from lanescope.analysis import check
from lanescope.devices.aie.config import ConfigError, mlir_parser
from lanescope.devices.aie.decoder import AieDecoder
from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.encode import Frames
from lanescope.devices.aie.interpret.run_axis import cuts_of
from lanescope.errors import UsageError
from lanescope.io import perfetto
from lanescope.source import Capture
from lanescope.trace import Trace

SIZE = 256
CORE, OTHER = encode.header(0, 0, 2, 1), encode.header(0, 0, 3, 2)


def device(name, *units, sequences=("seq",)):
    traces, started = [], []
    for row, event in units:
        traces.append(f"""
            %t{row} = aie.tile(0, {row})
            aie.trace @{name}_{row}(%t{row}) {{
              aie.trace.packet id={row - 1} type=core
              aie.trace.event<"{event}">
              aie.trace.start broadcast=15
              aie.trace.stop broadcast=14
            }}""")
        started.append(f"aie.trace.start_config @{name}_{row}")
    made = [f"aie.runtime_sequence @{each}(%a: memref<64xi32>) {{ {' '.join(started)} }}" for each in sequences]
    return f"aie.device(npu1_1col) @{name} {{ {' '.join([*traces, *made])} }}"


def attribute(device, sequence, offset, size):
    return f'#aie.trace_slice<device = "{device}", sequence = "{sequence}", offset = {offset}, size = {size}>'


def dictionary(device, sequence, offset, size):
    return f'{{device = "{device}", offset = {offset} : i64, sequence = "{sequence}", size = {size} : i64}}'


def main(*slices, spelling=attribute, name="main_seq"):
    prefix = "aie." if spelling is dictionary else ""
    listed = ", ".join(spelling(*each) for each in slices)
    return f"""aie.device(npu1_1col) @main {{
        aie.runtime_sequence @{name}(%a: memref<64xi32>) attributes {{
            {prefix}trace_buffer = #aie.trace_buffer<arg_index = 1, offset = 0, size = 64, dedicated = true>,
            {prefix}trace_slices = [{listed}]}} {{ aiex.configure @dev_a {{ aiex.run @seq (%a) : (memref<64xi32>) }} }}
    }}"""


def design(*parts):
    return "module {" + "\n".join(parts) + "}"


DEV_A = device("dev_a", (2, "INSTR_EVENT_0"), (3, "INSTR_EVENT_1"))
DEV_B = device("dev_b", (2, "LOCK_STALL"))
TWO = (("dev_a", "seq", 0, SIZE), ("dev_b", "seq", SIZE, SIZE))
THREE = tuple(("dev_a", "seq", k * SIZE, SIZE) for k in range(3))


def recording(header=CORE, timer=100, busy=10, idle=50, *, stop=True):
    runs = encode.encode_runs(np.array([0, 1], np.uint8), np.array([idle, busy]), stop=stop, idle=6 if stop else 0)
    return encode.packets(header, encode.pack(Frames.join([encode.start(timer), runs]))).ravel()


def dump(*slices, size=SIZE):
    parts = []
    for words in slices:
        words = np.concatenate([np.zeros(0, np.uint32), *words]) if isinstance(words, list) else words
        parts.append(np.concatenate([words, np.zeros(size // 4 - len(words), np.uint32)]))
    return np.concatenate(parts).astype("<u4")


def opened(tmp_path, text, words, **options):
    (tmp_path / "run.mlir").write_text(text)
    (tmp_path / "run.bin").write_bytes(words.tobytes())
    return lanescope.open(tmp_path / "run.bin", **options)


def stats(trace):
    return {row["name"]: row["count"] for row in trace.stats.rows()}


def paths(trace):
    """Full names of the lanes of slots, each with begin and length of its slices."""
    names, parents = trace.tracks["name"].tolist(), trace.tracks["parent_id"].tolist()

    def path(track):
        above = [] if parents[track] is None else path(parents[track])
        return [*above, names[track]]

    found = {}
    for row in trace.slices.rows():
        found.setdefault(" / ".join(path(row["track_id"])), []).append((row["ts"], row["dur"]))
    return found


def runs(trace):
    return [
        (r["design"], r["segment_count"], r["begin_cycles"], r["distance"]) for r in trace.details["aie_runs"].rows()
    ]


@pytest.mark.parametrize("spelling", [attribute, dictionary])
def test_each_design_labels_its_own_slice(tmp_path, spelling):
    trace = opened(tmp_path, design(main(*TWO, spelling=spelling), DEV_A, DEV_B), dump(recording(), recording(busy=20)))
    # 50 idle cycles, 10 busy ones, 6 until Stop: the next run begins after the cycle of the Stop.
    assert paths(trace) == {
        "dev_a:seq / core (0, 2) / INSTR_EVENT_0": [(51, 10)],
        "dev_b:seq / core (0, 2) / LOCK_STALL": [(68 + 51, 20)],
    }
    assert runs(trace) == [("dev_a:seq", 1, 0, "first"), ("dev_b:seq", 1, 68, "at_least")]
    # Of the two units of the second design the dump has one.
    assert stats(trace) == {"aie_run_distance": 1, "aie_silent_unit": 1}
    (finding,) = [f for f in check.run(trace) if f.code == "LS305"]
    assert finding.severity == "notice"


def test_slices_without_names_take_what_all_agree_on(tmp_path):
    text = design(main(*TWO), DEV_A, DEV_B).replace('device = "dev_a", sequence = "seq", ', "")
    trace = opened(tmp_path, text, dump(recording(OTHER), recording()))
    # Row 3 is configured by one design only; row 2 by both, in different ways.
    assert "run 1 / core (0, 3) / INSTR_EVENT_1" in paths(trace)
    assert "dev_b:seq / core (0, 2) / LOCK_STALL" in paths(trace)


def test_runs_of_a_design_follow_each_other_on_its_tracks(tmp_path):
    words = dump(recording(timer=90_000), recording(timer=500), recording(timer=7000, busy=3))
    trace = opened(tmp_path, design(main(*THREE), DEV_A), words)
    assert runs(trace) == [
        ("dev_a:seq", 1, 0, "first"),
        ("dev_a:seq", 1, 500, "recorded"),
        ("dev_a:seq", 1, 7500, "recorded"),
    ]
    assert paths(trace) == {"dev_a:seq / core (0, 2) / INSTR_EVENT_0": [(51, 10), (551, 10), (7551, 3)]}
    segments = list(trace.details["aie_segments"].rows())
    assert [(row["run"], row["begin_cycles"], row["distance"]) for row in segments] == [
        (1, 0, "first"), (2, 500, "recorded"), (3, 7500, "recorded"),
    ]  # fmt: skip
    assert trace.coverage["ts"].tolist() == [0, 500, 7500]
    starts = [row["ts"] for row in trace.instants.rows() if row["name"] == "Start"]
    assert starts == [0, 500, 7500]
    assert "aie_run_distance" not in stats(trace)


def test_a_stat_of_a_later_run_lies_where_the_run_does(tmp_path):
    known = design(main(*THREE), device("dev_a", (2, "INSTR_EVENT_0"), (3, "LOCK_STALL")))
    known = known.replace('<"INSTR_EVENT_0">', '<"INSTR_EVENT_0"> aie.trace.event<"INSTR_EVENT_1">')
    trace = opened(tmp_path, known, dump(recording(OTHER), recording()))
    (cut,) = [row for row in trace.stats.rows() if row["name"] == "aie_truncated_invocation"]
    assert (cut["count"], cut["first_ts"]) == (1, 68 + 51)


def test_times_of_runs_are_converted(tmp_path):
    words = dump(recording(timer=90_000), recording(timer=500), recording(timer=7000))
    trace = opened(tmp_path, design(main(*THREE), DEV_A), words, frequency="5e8")
    assert [row["ts"] for row in trace.slices.rows()] == [102, 1102, 15_102]
    assert [row["ts_ticks"] for row in trace.slices.rows()] == [51, 551, 7551]


def test_units_of_a_run_begin_together(tmp_path):
    first = [recording(timer=9000), recording(OTHER, timer=9002)]
    second = [recording(OTHER, timer=702), recording(timer=700)]
    trace = opened(tmp_path, design(main(*THREE[:2]), DEV_A), dump(first, second))
    begins = [row["begin_cycles"] for row in trace.details["aie_segments"].rows()]
    assert begins == [0, 0, 702, 702]
    assert "aie_run_timers" not in stats(trace)
    # Two cycles in each run are two cycles, not four.
    assert stats(trace)["aie_start_skew"] == 2
    second = [recording(OTHER, timer=702), recording(timer=500)]
    trace = opened(tmp_path, design(main(*THREE[:2]), DEV_A), dump(first, second))
    assert stats(trace)["aie_run_timers"] == 1


def test_a_timer_that_is_too_small_is_no_distance(tmp_path):
    # 66 cycles passed from Start to Stop: these runs lie in another order, or others between.
    trace = opened(tmp_path, design(main(*THREE[:2]), DEV_A), dump(recording(timer=9000), recording(timer=60)))
    assert runs(trace)[1] == ("dev_a:seq", 1, 68, "at_least")
    assert stats(trace)["aie_run_order"] == 1
    assert sorted(f.severity for f in check.run(trace) if f.code == "LS305") == ["notice", "warning"]


def test_a_timer_that_another_event_resets_is_no_distance(tmp_path):
    reset = "aiex.npu.write32 {address = 212992 : ui32, column = 0 : i32, row = 2 : i32, value = 0x1D00 : ui32}"
    text = design(main(*THREE[:2]), DEV_A.replace("aie.trace.start_config @dev_a_2", reset, 1))
    trace = opened(tmp_path, text, dump(recording(timer=9000), recording(timer=5000)))
    assert runs(trace)[1] == ("dev_a:seq", 1, 68, "at_least")
    assert "aie_run_order" not in stats(trace)


def test_without_slices_the_configuration_decides_the_distance(tmp_path):
    words = np.concatenate([recording(timer=9000), recording(timer=500)]).astype("<u4")
    trace = opened(tmp_path, design(DEV_A), words)
    assert [row["distance"] for row in trace.details["aie_segments"].rows()] == ["first", "recorded"]
    assert paths(trace) == {"core (0, 2) / INSTR_EVENT_0": [(51, 10), (551, 10)]}
    assert len(trace.details["aie_runs"]) == 0
    (tmp_path / "run.mlir").unlink()
    trace = lanescope.open(tmp_path / "run.bin")
    assert [row["distance"] for row in trace.details["aie_segments"].rows()] == ["first", "at_least"]
    assert "aie_run_distance" not in stats(trace)


def test_a_run_without_packets_is_said(tmp_path):
    trace = opened(tmp_path, design(main(*THREE), DEV_A), dump(recording(), [], recording(timer=900)))
    assert [row[1] for row in runs(trace)] == [1, 0, 1]
    assert runs(trace)[1] == ("dev_a:seq", 0, None, "")
    assert stats(trace)["aie_empty_run"] == 1
    # The timer counts from the Start of the run that left nothing.
    assert runs(trace)[2] == ("dev_a:seq", 1, 68, "at_least")


def test_a_dump_without_any_packet_of_a_run(tmp_path):
    words = np.concatenate([np.zeros(SIZE // 2, np.uint32), recording()]).astype("<u4")
    trace = opened(tmp_path, design(main(*TWO), DEV_A, DEV_B), words)
    assert [row[1] for row in runs(trace)] == [0, 0]
    assert (stats(trace)["aie_empty_run"], stats(trace)["aie_outside_slices"]) == (2, 1)
    trace = opened(tmp_path, design(main(*TWO), DEV_A, DEV_B), words * 0, family="aie")
    assert [row[1] for row in runs(trace)] == [0, 0]


def test_a_dump_that_ends_too_early_is_said(tmp_path):
    words = dump(recording(), recording(timer=900))
    trace = opened(tmp_path, design(main(*THREE), DEV_A), words[: len(words) - 8])
    assert stats(trace)["aie_missing_slice"] == 2
    assert {row["name"]: row["severity"] for row in trace.stats.rows()}["aie_missing_slice"] == "data_loss"


def test_packets_outside_of_all_slices_are_said(tmp_path):
    slices = (("dev_a", "seq", SIZE, SIZE),)
    trace = opened(tmp_path, design(main(*slices), DEV_A), dump(recording(), recording(), recording()))
    assert stats(trace)["aie_outside_slices"] == 2
    assert [row["run"] for row in trace.details["aie_segments"].rows()] == [None, 1, None]
    assert "outside of all slices / core (0, 2) / slot 0" in paths(trace)
    assert "dev_a:seq / core (0, 2) / INSTR_EVENT_0" in paths(trace)


def test_a_slice_of_part_of_a_packet_is_said(tmp_path):
    slices = (("dev_a", "seq", 0, 40), ("dev_b", "seq", 40, SIZE))
    words = np.concatenate([recording(), np.zeros(2, np.uint32), recording()]).astype("<u4")
    trace = opened(tmp_path, design(main(*slices), DEV_A, DEV_B), words)
    assert stats(trace)["aie_slice_size"] == 1
    assert [row[1] for row in runs(trace)] == [1, 1]


def test_a_second_start_in_a_slice_is_said(tmp_path):
    trace = opened(tmp_path, design(main(*TWO), DEV_A, DEV_B), dump([recording(), recording(timer=400)], []))
    assert stats(trace)["aie_repeated_start"] == 1
    assert runs(trace)[0][1] == 2
    assert paths(trace) == {"dev_a:seq / core (0, 2) / INSTR_EVENT_0": [(51, 10), (451, 10)]}


def test_a_slice_ends_what_was_recorded_in_the_one_before(tmp_path):
    """A frame, a packet and a source do not go on behind a border, and damage stays on its side."""
    first = recording(stop=False)
    second = np.concatenate([recording(timer=900), np.full(8, 0x7FFFFFF1, np.uint32), recording(OTHER, timer=900)])
    trace = opened(tmp_path, design(main(*THREE[:2]), DEV_A), dump(first, second))
    recordings = Recordings(trace)
    assert [row["end_reason"] for row in recordings.rows] == ["end_of_data", "stop", "stop"]
    assert recordings.rows[0]["is_lossless"] is True
    assert stats(trace)["aie_missing_stop"] == 1
    # Packets of a unit whose Start is in the slice before belong to no unit here.
    tail = np.concatenate([[CORE], np.full(7, 0x05060708)]).astype(np.uint32)
    trace = opened(tmp_path, design(main(*THREE[:2]), DEV_A), dump(first, tail))
    assert stats(trace)["aie_unknown_mode_packet"] == 1
    assert [row["packets"] for row in trace.details["aie_segments"].rows()] == [1]


def test_a_packet_that_a_border_cuts_is_lost(tmp_path):
    slices = (("dev_a", "seq", 0, 16), ("dev_a", "seq", 16, SIZE))
    words = np.concatenate([recording(), recording()]).astype("<u4")
    trace = opened(tmp_path, design(main(*slices), DEV_A), words)
    (row,) = [row for row in trace.accounting.rows() if row["unit"] == "word"]
    assert (row["total"], row["lost"]) == (16, 8)
    assert [row[1] for row in runs(trace)] == [0, 1]


def test_viewers_draw_runs_of_a_design_in_one_row(tmp_path, trace_processor):
    words = dump([recording(timer=9000), recording(OTHER, timer=9000)], recording(timer=700), recording(busy=20))
    slices = (("dev_a", "seq", 0, SIZE), ("dev_a", "seq", SIZE, SIZE), ("dev_b", "seq", 2 * SIZE, SIZE))
    trace = opened(tmp_path, design(main(*slices), DEV_A, DEV_B), words)
    perfetto.write(trace, tmp_path / "out.pftrace")
    query = (
        "select d.name design, u.name unit, t.name lane, s.ts, s.dur from slice s join track t on s.track_id = t.id"
        " join track u on t.parent_id = u.id join track d on u.parent_id = d.id where s.dur > 0"
        " order by s.ts, unit"
    )
    (found,) = trace_processor(tmp_path / "out.pftrace", query)
    assert [tuple(row.values()) for row in found] == [
        ("dev_a:seq [cycles: 1 cycle as 1 ns]", "core (0, 2)", "INSTR_EVENT_0", 51, 10),
        ("dev_a:seq [cycles: 1 cycle as 1 ns]", "core (0, 3)", "INSTR_EVENT_1", 51, 10),
        ("dev_a:seq [cycles: 1 cycle as 1 ns]", "core (0, 2)", "INSTR_EVENT_0", 751, 10),
        ("dev_b:seq [cycles: 1 cycle as 1 ns]", "core (0, 2)", "LOCK_STALL", 819, 20),
    ]


@pytest.mark.parametrize("block", [32, 100, 1000])
def test_runs_do_not_depend_on_how_the_dump_is_cut(tmp_path, block):
    first = [recording(timer=9000), recording(OTHER, timer=9001)]
    slices = [first, [recording(timer=400), recording(OTHER, timer=401)], [recording(OTHER, timer=800, stop=False)]]
    whole = opened(tmp_path, design(main(*THREE), DEV_A), dump(*slices))
    with Capture(tmp_path / "run.bin") as capture:
        decoder = AieDecoder(capture, {}, block_bytes=block)
        data = (tmp_path / "run.bin").read_bytes()
        edges = [*range(0, len(data), block), len(data)]
        batches = [batch for a, b in pairwise(edges) for batch in decoder.feed(memoryview(data[a:b]))]
        parts = Trace.concat([*batches, *decoder.finish()])
    for name in ("slices", "tracks", "stats", "coverage"):
        assert list(whole.tables()[name].rows()) == list(parts.tables()[name].rows()), name
    for name in ("aie_runs", "aie_segments"):
        assert list(whole.details[name].rows()) == list(parts.details[name].rows()), name


def test_text_is_cut_at_the_same_words(tmp_path):
    words = dump(recording(), recording(busy=20))
    text = design(main(*TWO), DEV_A, DEV_B)
    binary = paths(opened(tmp_path, text, words))
    (tmp_path / "run.txt").write_text("".join(f"{word:08x}\n" for word in words.tolist()))
    assert paths(lanescope.open(tmp_path / "run.txt", mlir=str(tmp_path / "run.mlir"))) == binary


def test_tracks_do_not_grow_with_runs(tmp_path):
    counts = []
    for number in (2, 40):
        slices = [("dev_a", "seq", k * SIZE, SIZE) for k in range(number)]
        words = dump(*[[recording(timer=400), recording(OTHER, timer=400)] for _ in slices])
        trace = opened(tmp_path, design(main(*slices), DEV_A), words)
        assert len(trace.details["aie_segments"]) == 2 * number
        counts.append(len(trace.tracks))
    assert counts[0] == counts[1]


def test_execution_traces_have_tracks_of_their_own(tmp_path):
    """They record no time that could lie behind another."""
    start = np.array([0xF2000330, 0x11122222, *[0x22222222] * 5], np.uint32)
    packet = encode.packets(CORE, start).ravel()
    words = np.concatenate([packet, packet, packet]).astype("<u4")
    (tmp_path / "run.bin").write_bytes(words.tobytes())
    trace = lanescope.open(tmp_path / "run.bin", family="aie")
    assert [row["distance"] for row in trace.details["aie_segments"].rows()] == ["first", "apart", "apart"]
    names = trace.tracks["name"][trace.details["aie_segments"]["track_id"]].tolist()
    assert names == ["core (0, 2)", "core (0, 2) #2", "core (0, 2) #3"]


# --- what is chosen, and what is refused ---------------------------------------------------------------------------

REFUSED = {
    "overlap": (main(("dev_a", "seq", 0, 64), ("dev_b", "seq", 32, 64)), None, "trace slices of main:main_seq overlap"),
    "unknown": (main(*TWO), "main:nosuch", "'main:nosuch' not found"),
    "several": (main(*TWO) + main(*TWO, name="other").replace("@main {", "@more {"), None, "2 sequences divide"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_cannot_be_meant_is_refused_by_name(which):
    text, chosen, told = REFUSED[which]
    with pytest.raises(ConfigError, match=told) as error:
        mlir_parser.read(design(text, DEV_A, DEV_B), chosen)
    assert error.value.hint


def test_a_sequence_without_a_trace_is_refused_with_those_that_have_one():
    plain = "aie.device(npu1_1col) @plain { aie.runtime_sequence @seq(%a: memref<64xi32>) { } }"
    with pytest.raises(ConfigError, match="'plain:seq' has no trace") as error:
        mlir_parser.read(design(plain, DEV_A, DEV_B), "plain:seq")
    assert error.value.hint == "use one of dev_a:seq, dev_b:seq"


def test_a_chosen_sequence_settles_what_designs_contradict(tmp_path):
    (tmp_path / "run.mlir").write_text(design(DEV_A, DEV_B))
    (tmp_path / "run.bin").write_bytes(recording().astype("<u4").tobytes())
    assert stats(lanescope.open(tmp_path / "run.bin"))["aie_contradictory_config"] == 1
    for name, event in (("dev_a:seq", "INSTR_EVENT_0"), ("dev_b:seq", "LOCK_STALL")):
        trace = lanescope.open(tmp_path / "run.bin", sequence=name)
        assert paths(trace) == {f"core (0, 2) / {event}": [(51, 10)]}


def test_a_callee_that_is_chosen_has_the_whole_dump(tmp_path):
    trace = opened(tmp_path, design(main(*TWO), DEV_A, DEV_B), recording().astype("<u4"), sequence="dev_b:seq")
    assert paths(trace) == {"core (0, 2) / LOCK_STALL": [(51, 10)]}


def test_a_sequence_needs_a_text(tmp_path):
    (tmp_path / "run.bin").write_bytes(recording().astype("<u4").tobytes())
    with pytest.raises(UsageError, match="only for MLIR texts"):
        lanescope.open(tmp_path / "run.bin", sequence="main:seq")
    (tmp_path / "run.config.json").write_text('{"tiles": []}')
    with pytest.raises(UsageError, match="only for MLIR texts"):
        lanescope.open(tmp_path / "run.bin", sequence="main:seq")


def test_recordings_without_a_place_do_not_stop_others():
    """The limit of ticks is reached by a Stop at the end of very long idle time: what follows has tracks of its own."""
    begun = [(0, 0, ordinal, 0, 5, 0, -1) for ordinal in (1, 2, 3, 4)]
    ended = [(ordinal, 0, 0, ordinal, ticks) for ordinal, ticks in enumerate((400, 700, 30, 30), 1)]
    # Another unit, whose first recording is one of the third run, and one that begins without time.
    begun += [(1, 0, 3, 0, 5, 0, -1), (2, 1, 1, 2, -1, 0, -1)]
    assert placed(core.AieRunAxis(1000), begun, ended) == [(0, 0), (401, 2), (0, 3), (0, 3), (0, 3), (0, 3)]


def placed(axis, begun, ended):
    """Return where the core places the recordings of a block: begin and distance of each."""
    places = np.empty((len(begun), 2), np.int64)
    axis.follow(np.array(begun, np.int64).reshape(-1, 7), np.array(ended, np.int64).reshape(-1, 5), places)
    return [tuple(place) for place in places.tolist()]


_STEPS = st.lists(
    st.tuples(
        st.booleans(),
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 5)),  # unit, slice, which Start
        st.sampled_from([0, 0, 0, 1, 2]),
        st.integers(-1, 60),
        st.booleans(),
        st.integers(-1, 1),
        st.integers(0, 50),
    ),
    max_size=40,
)


@given(_STEPS, st.sampled_from([20, 200, 1 << 60]), st.integers(1, 40))
def test_the_core_places_recordings_as_the_reference_does(steps, limit, size):
    reference, axis = RunAxis(limit), core.AieRunAxis(limit)
    for at in range(0, len(steps), size):
        expected, begun, ended = [], [], []
        for is_begin, (unit, *run), mode, timer, counts, follows, ticks in steps[at : at + size]:
            if is_begin:
                known = tuple(run), mode, None if timer < 0 else timer, counts, None if follows < 0 else follows
                expected.append(reference.begin(unit, Recording(*known)))
                begun.append((unit, *run, mode, timer, counts, follows))
            else:
                reference.end(unit, tuple(run), ticks)
                ended.append((len(begun), unit, *run, ticks))
        assert placed(axis, begun, ended) == expected
    for count in ("unknown", "contradictory", "disagreeing"):
        assert getattr(axis, count) == getattr(reference, count)


@pytest.mark.parametrize(("column", "value"), [(0, -1), (0, 1 << 24), (2, -1), (4, 1 << 62)])
def test_recordings_that_no_dump_has_are_refused(column, value):
    begun = [0, 0, 1, 0, 5, 0, -1]
    begun[column] = value
    with pytest.raises(ValueError, match="not a recording"):
        placed(core.AieRunAxis(1000), [begun], [])


def test_cuts():
    assert cuts_of([(0, 64), (64, 32)]) == ([16, 24], [0, 1, None])
    assert cuts_of([(32, 64), (128, 2)]) == ([8, 24, 32, 33], [None, 0, None, 1, None])
