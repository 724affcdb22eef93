"""The trace unit's model: by named cases, against the fast encoders, and through the decoder."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import some
from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.encode import Frames
from lanescope.devices.aie.formats.layout import FLOW_KINDS
from lanescope.devices.aie.formats.raw_frames import Words
from lanescope.devices.aie.simulate.ref_core import DELAY_SLOTS, Bundle, Core
from lanescope.devices.aie.simulate.ref_mode2 import Retired, flow_of
from lanescope.devices.aie.simulate.ref_trace_unit import EventUnit, FlowUnit

HEADER = encode.header(0, 1, 2, 1)


def straight(address, *bundles):
    """Bundles one behind the other: (size, kind, target, last)."""
    made = []
    for size, *what in bundles:
        made.append(Bundle(address, size, *what))
        address += size
    return made


def branch(address, kind, target=0, slots=(4,) * DELAY_SLOTS, size=4):
    return straight(address, (size, kind, target), *((slot,) for slot in slots))


def stub(address):
    """A lock stub: the request (4 bytes), RET (4), four slots of 2 bytes and one of 16."""
    return straight(address, (4,), (4, "return"), (2,), (2,), (2,), (2,), (16,))


def recorded(core, entry, *, start_at=None, times=1, room=None):
    """Run a core under a trace unit that starts while it stalls at a bundle for the n-th time; return the payload."""
    unit = FlowUnit(room)
    if start_at is None:
        unit.start(entry)
    for address, retired in core.run(entry):
        if address == start_at:
            times -= 1
            if times == 0:
                unit.start(core.fetch_pc(address))
        if retired is not None:
            unit.retire(*retired)
    unit.stop()
    return unit.payload


def opened(tmp_path, payload):
    path = tmp_path / "run.bin"
    path.write_bytes(encode.packets(HEADER, payload).astype("<u4").tobytes())
    return lanescope.open(path, family="aie")


def flow(trace):
    return list(trace.details["aie_program_flow"].rows())


@pytest.mark.parametrize("trips", [1, 2, 4, 8, 16, 64, 256, 1024, 16384])
def test_one_loop_record_per_invocation(tmp_path, trips):
    """A kernel that is called 64 times, each with a zero-overhead loop of so many trips."""
    program = [
        *branch(0, "call", 200),
        *branch(24, "branch_indirect", 0),
        Bundle(48, 4, "halt"),
        Bundle(200, 8, "loop", 208, 224),
        *straight(208, (16,), (16,)),
        *branch(240, "return"),
    ]
    core = Core(program, lambda bundle, ran: trips if bundle.kind == "loop" else ran < 63)
    rows = flow(opened(tmp_path, recorded(core, 0)))
    loops = [row for row in rows if row["kind"] == "loop"]
    assert [(row["trips"], row["is_wrapped"], row["count"]) for row in loops] == [(trips, False, 1)] * 64
    # What else there is: the return of each call, and the branch that closes the outer loop. No pass of the inner one.
    others = [row["kind"] for row in rows if row["kind"] in ("taken", "not_taken")]
    assert others == ["taken"] * 63 + ["not_taken"]
    assert [row["pc"] for row in rows if row["kind"] == "new_pc"] == [24] * 64


@pytest.mark.parametrize(
    ("trips", "is_wrapped", "count"),
    [
        ((1 << 28) - 1, False, (1 << 28) - 1),
        (1 << 28, True, 0),
        ((1 << 28) + 5, True, 5),
        (1 << 29, True, 0),
    ],
)
def test_trips_wrap_from_2_to_the_28_on(tmp_path, trips, is_wrapped, count):
    program = [Bundle(0, 4, "loop", 4, 4), Bundle(4, 16), Bundle(20, 4, "halt")]
    (row,) = (
        row for row in flow(opened(tmp_path, recorded(Core(program, lambda *_: trips), 0))) if row["kind"] == "loop"
    )
    assert (row["is_wrapped"], row["trips"]) == (is_wrapped, count)


def kernel():
    """A listing made to fit the mode-2 capture: eight lock calls a pass, four passes, then two more decisions."""
    slots = (4, 6, 6, 6, 6)
    calls = ((304, 800), (336, 800), (448, 832), (480, 800), (512, 800), (544, 800), (656, 832), (688, 832))
    return [
        *branch(100, "call", 304, (8,) * 5),
        *branch(144, "call_indirect", 864),
        *(bundle for at, target in calls for bundle in branch(at, "call", target, slots)),
        *straight(368, *[(16,)] * 5),
        *straight(576, *[(16,)] * 5),
        *branch(720, "branch_indirect", 304),
        *branch(744, "return"),
        *stub(800),
        *stub(832),
        *branch(864, "branch", 920),
        *branch(920, "call_indirect", 1168),
        *branch(1168, "branch", 1300),
        Bundle(1192, 4, "halt"),
    ]


def kernel_core():
    return Core(kernel(), lambda bundle, ran: {720: ran < 3, 864: True, 1168: False}[bundle.address])


def test_the_four_iteration_kernel_makes_four_e_and_two_n(tmp_path):
    rows = flow(opened(tmp_path, recorded(kernel_core(), 100, start_at=800, times=2)))
    atoms = [row["kind"] for row in rows if row["kind"] in ("taken", "not_taken")]
    assert atoms == ["taken", "taken", "taken", "not_taken", "taken", "not_taken"]
    assert rows[0]["pc"] == 816


def test_the_model_writes_what_the_hardware_wrote(corpus):
    words = Words.of(np.fromfile(corpus / "aie" / "mode2_mixed_r0.bin", np.uint8)).values.reshape(-1, 8)
    captured = words[words[:, 0] >> 12 & 7 == 0][:, 1:].ravel()
    # The capture lacks its last packet, which would have been half a burst.
    made = recorded(kernel_core(), 100, start_at=800, times=2)
    assert made[: len(captured)].tolist() == captured.tolist()
    assert len(made) == len(captured) + 7


def test_direct_branches_make_no_new_pc(tmp_path):
    program = [*branch(0, "jump", 100), *branch(100, "call", 200), *branch(200, "jump", 300), Bundle(300, 4, "halt")]
    assert [row["kind"] for row in flow(opened(tmp_path, recorded(Core(program, lambda *_: 0), 0)))] == [
        "start",
        "stop",
    ]


def test_a_conditional_indirect_branch_makes_an_atom_only(tmp_path):
    program = [*branch(0, "branch_indirect", 100), *branch(100, "jump_indirect", 200), Bundle(200, 4, "halt")]
    rows = flow(opened(tmp_path, recorded(Core(program, lambda *_: 1), 0)))
    assert [(row["kind"], row["pc"]) for row in rows[1:-1]] == [("taken", None), ("new_pc", 200)]


def test_the_anchor_is_the_fetched_address(tmp_path):
    """In a stall that is the last delay slot of the stub's RET: 16 bytes behind the request."""
    program = [*branch(0, "call", 816), *stub(816), Bundle(24, 4, "halt")]
    rows = flow(opened(tmp_path, recorded(Core(program, lambda *_: 0), 0, start_at=816)))
    assert rows[0]["pc"] == 832


def test_what_retires_outside_of_start_and_stop_is_not_told():
    unit = FlowUnit()
    unit.retire(Retired.BRANCH, 1)
    unit.start(16)
    unit.stop()
    unit.retire(Retired.TARGET, 32)
    assert unit.payload.tolist() == [0xF2000010, 0xDC000000] + [0x22222222] * 5


states = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 2, 3, 0x81, 255]),
        st.integers(0, 40) | st.sampled_from([1023, 1024, 1025, 2100]),
        st.sampled_from([16, 20, 4095]),
    ),
    max_size=30,
)


@pytest.mark.parametrize("mode", [0, 1])
@given(runs=states, timer=st.integers(0, (1 << 56) - 1))
@settings(max_examples=some(60))
def test_the_fast_event_encoders_equal_the_model(mode, runs, timer):
    unit = EventUnit(mode)
    unit.start(timer)
    for mask, length, pc in runs:
        unit.cycles(length, mask, pc)
    unit.stop()
    masks, lengths, pcs = (np.array(column, np.int64) for column in (zip(*runs, strict=True) if runs else ([], [], [])))
    if mode == 0:
        made = encode.encode_runs(masks.astype(np.uint8), lengths)
    else:
        made = encode.encode_pc_runs(masks.astype(np.uint8), pcs, lengths)
    assert encode.pack(Frames.join([encode.start(timer, mode=mode), made])).tolist() == unit.payload.tolist()


retired = st.lists(
    st.tuples(
        st.tuples(st.sampled_from(list(Retired)), st.sampled_from([0, 1, 2, 16, 1 << 14, 1 << 28, (1 << 29) + 3])),
        st.integers(1, 20) | st.sampled_from([1024, 2100]),
    ).map(lambda drawn: [drawn[0]] * drawn[1]),
    max_size=20,
).map(lambda parts: [event for part in parts for event in part])


@given(retired)
@settings(max_examples=some(60))
def test_the_fast_flow_encoder_equals_the_model(events):
    unit = FlowUnit()
    unit.start(64)
    for kind, value in events:
        unit.retire(kind, value)
    unit.stop()
    kinds, values = (np.array(column, np.int64) for column in (zip(*events, strict=True) if events else ([], [])))
    stop = encode.encode_flow(np.array([FLOW_KINDS.index("stop")]), np.array([0]), np.array([1]))
    made = [encode.start_flow(64), encode.encode_flow(*flow_of(kinds.astype(np.uint8), values)), stop]
    assert encode.pack(Frames.join(made)).tolist() == unit.payload.tolist()


@pytest.mark.parametrize("seed", range(20))
def test_outside_of_gaps_the_decoded_state_is_the_true_one(tmp_path, seed):
    """A small buffer that is drained slowly overruns; what was lost is a gap, and nothing else is wrong."""
    rng = np.random.default_rng(seed)
    unit = EventUnit(0, room=int(rng.integers(10, 30)))
    unit.start(0)
    true = [0]
    for run in range(400):
        mask, length = int(rng.choice([0, 0, 1, 2, 3, 0x81, 255])), int(rng.choice([1, 2, 30, 1100]))
        unit.cycles(length, mask)
        true += [mask] * length
        unit.drain(int(rng.random() < 0.2) if run % 100 < 60 else 2)
    unit.stop()
    trace = opened(tmp_path, unit.payload)
    state, known = np.zeros(len(true) + 1, np.int64), np.ones(len(true) + 1, bool)
    names = trace.tracks["name"].tolist()
    for row in trace.slices.rows():
        state[row["ts"] : row["ts"] + row["dur"]] |= 1 << int(names[row["track_id"]].split()[1])
    (segment,) = trace.details["aie_segments"].rows()
    known[segment["dur_cycles"] :] = False
    for gap in trace.gaps.rows():
        # As with Start, recording begins in the cycle behind that of the restart.
        known[gap["ts"] : gap["ts"] + gap["dur"] + 1] = False
    assert segment["restarts"] == len(trace.gaps) > 0
    assert known.sum() > len(true) / 4
    assert np.array_equal(state[: len(true)][known[: len(true)]], np.array(true)[known[: len(true)]])


@pytest.mark.parametrize("seed", range(20))
def test_what_an_overrun_of_mode_2_loses_lies_between_rows_that_are_told(tmp_path, seed):
    rng = np.random.default_rng(seed)
    unit, pieces = FlowUnit(room=int(rng.integers(10, 20))), [[]]
    unit.start(0)
    for number in range(1500):
        kind = list(Retired)[rng.choice(4, p=[0.6, 0.1, 0.2, 0.1])]
        value = int(rng.choice([0, 1, 16, 1 << 14, (1 << 28) + 3]))
        was_overrun = unit.is_overrun
        unit.retire(kind, value, pc=16 * number)
        if was_overrun and not unit.is_overrun:
            pieces.append([])
        if not unit.is_overrun:
            pieces[-1].append((kind, value))
        unit.drain(int(rng.random() < 0.1) if number % 100 < 80 else 2)
    unit.stop()
    trace = opened(tmp_path, unit.payload)
    rows = flow(trace)
    told = []
    for row in rows:
        if row["kind"] in ("start", "restart"):
            told.append([])
        else:
            told[-1] += [(row["kind"], row["pc"] or row["trips"] or 0)] * row["count"]
    begins = [row["kind"] for row in rows if row["kind"] in ("start", "restart")]
    assert begins == ["start"] + ["restart"] * (len(pieces) - 1)
    assert len(pieces) > 1
    assert len(trace.gaps) == len(pieces) - 1
    for ours, true in zip(told, pieces, strict=True):
        kinds, values = (np.array(column, np.int64) for column in zip(*true, strict=True))
        whole = expanded(*flow_of(kinds.astype(np.uint8), values))
        assert [what for what in ours if what[0] != "stop"] == whole[: len(ours) - (ours[-1][0] == "stop")]


def expanded(kinds, values, counts):
    return [
        (FLOW_KINDS[kind], int(value) & (1 << 28) - 1)
        for kind, value, count in zip(kinds, values, counts, strict=True)
        for _ in range(count)
    ]
