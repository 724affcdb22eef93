"""Walks against what really happened: random programs, a core, a trace unit, bytes, records, and back to the path."""

import random
import tracemalloc
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from devices.aie.path import fitted, language, matching
from effort import SANITIZED, some
from lanescope._native import core
from lanescope.devices.aie.path import segments
from lanescope.devices.aie.path.program import program
from lanescope.devices.aie.path.walk import state_sets, walker
from lanescope.devices.aie.path.walk.calls import MOST_CALLS
from lanescope.devices.aie.path.walk.core_state import ERRATUM_DOCS, KINDS, UNKNOWN, Erratum, settled
from lanescope.devices.aie.path.walk.walker import (
    LOOP,
    NEW_PC,
    NOT_TAKEN,
    RESTART,
    START,
    STOP,
    TAKEN,
    Stream,
    Unresolved,
    Walker,
)

#: Where loop frames come, and what a walker that knows it is told.
PLACES = {"write": Erratum.LC_AT_WRITE, "body": Erratum.LC_AT_BODY, "end": Erratum.LC_AT_END}
SEEDS = st.integers(0, 1 << 40)


def stream_of(case, folder):
    path = folder / "trace.bin"
    path.write_bytes(case.file())
    (recording,) = segments.recordings(lanescope.open(path))
    return recording.stream


def walked(case, folder, errata=UNKNOWN, **options):
    made = Walker(program.parse(case.source.listing()), errata, keeps_path=True, most_paths=2000, **options)
    return made, made.walk(stream_of(case, folder))


def stream(*rows, lost=()):
    kind, value, count = zip(*[(*row, *(0, 1)[len(row) - 1 :])[:3] for row in rows], strict=True)
    columns = np.array(kind, np.uint8), np.array(value, np.int64), np.array(count, np.int64)
    return Stream(*columns, np.isin(np.arange(len(rows)), lost))


def listing(*rows, functions=()):
    """A program of bundles of four bytes from address 0."""
    names = dict(functions)
    out = []
    for i, text in enumerate(rows):
        if i in names:
            out.append(f"{4 * i:08x} <{names[i]}>:")
        out.append(f"{4 * i:8x}: 00 00 00 00 \t{text}")
    return program.parse("\n".join(out))


NOPS = ("nop",) * 5


# --- truth


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cases")


@settings(max_examples=some(150))
@given(seed=SEEDS, lc_at=st.sampled_from(sorted(PLACES)), computed=st.sampled_from([0, 0, 0.3]))
def test_what_happened_is_among_what_is_reported(seed, lc_at, computed, folder):
    case = language.make(seed, lc_at=lc_at, computed=computed)
    made, walk = walked(case, folder)
    found = matching.check(case, made, walk)
    assert not found.startswith("WRONG"), found
    if case.decided and not walk.unresolved:
        truth = matching.visits(case)
        for bundle in made.program.bundles:
            fact = ("visit", bundle.address)
            assert walk.counts.least[fact] <= truth[bundle.address], bundle
            assert fact in walk.counts.unbounded or truth[bundle.address] <= walk.counts.most[fact], bundle


@settings(max_examples=some(60))
@given(seed=SEEDS, lc_at=st.sampled_from(sorted(PLACES)), lag=st.sampled_from([0, 5]))
def test_what_happened_is_among_what_is_reported_where_the_device_is_known(seed, lc_at, lag, folder):
    case = language.make(seed, lc_at=lc_at, computed=0, lags=(lag,))
    known = PLACES[lc_at] | (Erratum.FRAME_AFTER_SLOTS if lag else Erratum.FRAME_AT_ISSUE)
    assert not (found := matching.check(case, *walked(case, folder, known))).startswith("WRONG"), found


@settings(max_examples=some(40))
@given(seed=SEEDS, side=st.sampled_from(["leaves", "stays"]))
def test_calls_that_end_at_the_last_bundle_of_a_loop(seed, side, folder):
    case = language.make(seed, computed=0, call_at_end=side)
    assert not (found := matching.check(case, *walked(case, folder))).startswith("WRONG"), found


@settings(max_examples=some(30))
@given(seed=SEEDS, chunk=st.integers(2, 70), kept=st.sampled_from([1, 50, 1 << 17]))
def test_looking_back_often_and_forgetting_changes_no_certainty_to_a_wrong_one(seed, chunk, kept, folder):
    case = language.make(seed, computed=0, longest=2000)
    made, walk = walked(case, folder, chunk=chunk, most_kept=kept)
    assert not (found := matching.check(case, made, walk)).startswith("WRONG"), found
    assert sum(walk.counts.frames.values()) == len(case.events)


@pytest.mark.full
def test_how_many_windows_have_one_path(folder, record_property, capsys):
    """Half of all hostile random windows have one path, or one position at their end: the share is reported."""
    found = Counter()
    for seed in range(150):
        case = language.make(f"share {seed}", computed=0)
        found[matching.check(case, *walked(case, folder, Erratum.LC_AT_END))] += 1
    decided = found["one path"] + found["one position at the end"] + found["ambiguous at the end"]
    assert decided + found["no decision from the anchor on"] == 150, found
    shares = {name: round(found[name] / decided, 2) for name in ("one path", "one position at the end")}
    record_property("shares", shares)
    with capsys.disabled():
        print(f" {shares} of {decided} windows;", end="")
    assert shares["one path"] > 0.3
    assert sum(shares.values()) > 0.8


@settings(max_examples=some(40))
@given(seed=SEEDS, at=st.floats(0, 1), marked=st.booleans())
def test_a_lost_frame_is_no_crash_and_a_marked_one_no_certainty(seed, at, marked, folder):
    case = language.make(seed, computed=0, longest=2000)
    whole = stream_of(case, folder)
    if len(whole.kind) < 4:
        return
    gone = 1 + int(at * (len(whole.kind) - 3))
    kept = np.arange(len(whole.kind)) != gone
    lost = np.zeros(len(whole.kind), np.bool_)
    lost[gone + 1] = marked
    rest = Stream(*(column[kept] for column in (whole.kind, whole.value, whole.count, lost)))
    made = Walker(program.parse(case.source.listing()), keeps_path=True)
    walk = made.walk(rest)
    spans = sorted(
        [(piece.first, piece.last) for piece in walk.pieces] + [(lost.first, lost.last) for lost in walk.unresolved]
    )
    # Each row is walked or given up, and none twice.
    assert all(a[1] < b[0] for a, b in pairwise(spans))
    frames = int(rest.count[np.isin(rest.kind, (NEW_PC, TAKEN, NOT_TAKEN, LOOP))].sum())
    resumed = sum(piece.is_resumed for piece in walk.pieces)
    assert sum(walk.counts.frames.values()) == frames - resumed
    if marked:
        assert not any(piece.first < gone <= piece.last for piece in walk.pieces)


# --- the capture


@pytest.fixture
def fixture_stream(corpus):
    (recording,) = segments.recordings(lanescope.open(corpus / "aie" / "mode2_mixed_r0.bin"))
    return recording.stream


def test_the_hardware_capture_has_one_path(fixture_stream):
    """Four passes of a loop, eight calls in each; the loop branch is taken three times and then not."""
    made = Walker(program.parse(fitted.listing()), keeps_path=True)
    walk = made.walk(fixture_stream)
    assert not walk.unresolved
    assert walk.counts.frames == {"certain": 40}
    assert all(window.is_certain for window, _ in matching.windows_of(made, walk.pieces[0]))
    visits = {address: n for (what, address, *_), n in walk.counts.least.items() if what == "visit"}
    # Tracing began inside of the second call of the first pass.
    assert [visits[call] for call, _ in fitted.CALLS] == [3, 3, 4, 4, 4, 4, 4, 4]
    edges = {fact[1:]: n for fact, n in walk.counts.least.items() if fact[0] == "edge"}
    assert (edges[740, 288], edges[740, 744]) == (3, 1)
    assert ("stall", 800, 816) in walk.counts.remarks
    assert ("inferred", 720, 288) in walk.counts.remarks


def test_without_the_constant_its_loop_head_is_one_of_six(fixture_stream):
    made = Walker(program.parse(fitted.listing(is_computed=True)), keeps_path=True)
    walk = made.walk(fixture_stream)
    open_windows = [window for window, _ in matching.windows_of(made, walk.pieces[0]) if not window.is_certain]
    # Each time the loop branch is taken, and certain again from the next frame on.
    assert [window.alternatives for window in open_windows] == [6, 6, 6]
    assert walk.counts.frames == {"certain": 37, "ambiguous": 3}
    heads = sorted(target for kind, _, target in walk.counts.remarks if kind == "searched")
    assert heads == [256, 268, 272, 288, 300, 304]


def test_a_start_that_need_not_be_a_stall_leaves_two_beginnings(fixture_stream):
    made = Walker(program.parse(fitted.listing()), Erratum.START_IN_SLOTS | Erratum.START_IN_STALL, keeps_path=True)
    walk = made.walk(fixture_stream)
    first, *others = [window for window, _ in matching.windows_of(made, walk.pieces[0])]
    assert first.alternatives == 2
    assert all(window.is_certain for window in others)


# --- rules, one at a time


def test_a_call_returns_to_its_own_site():
    #               0      1..5   6      7..11  12
    main = ("jl #0x40", *NOPS, "jl #0x40", *NOPS, "done", "nop", "nop", "nop")
    leaf = ("nop", "ret lr", *NOPS)
    found = listing(*main, *leaf, functions=[(0, "main"), (16, "leaf")])
    right = Walker(found).walk(stream((START, 0), (NEW_PC, 24), (NEW_PC, 48)))
    assert [(piece.first, piece.last) for piece in right.pieces] == [(0, 2)]
    assert right.counts.least["visit", 0x40] == 2
    # Twice to the same site contradicts the stack, whatever came before the start.
    wrong = Walker(found).walk(stream((START, 0), (NEW_PC, 24), (NEW_PC, 24), (NEW_PC, 48)))
    assert [(piece.first, piece.reason, piece.is_trusted) for piece in wrong.pieces] == [
        (0, "contradiction", False),
        (2, "", True),
    ]
    assert wrong.counts.least["visit", 0] == 0


def loop_program(*body):
    setup = ("add.nc lc, r0, #0", "movxm ls, #0x10", f"movxm le, #{0x10 + 4 * (len(body) - 1):#x}", "nop")
    return listing(*setup, *body, "jz r0, #0x0", *NOPS, "done", functions=[(0, "main")])


def test_a_loop_is_passed_as_often_as_its_frame_says():
    found = loop_program("nop", "nop", "nop")
    walk = Walker(found, keeps_path=True).walk(stream((START, 0), (LOOP, 1000), (NOT_TAKEN,)))
    assert walk.counts.trips == {(0x18, 1000, False): 1}
    assert {walk.counts.least["visit", a] for a in (0x10, 0x14, 0x18)} == {1000}
    assert walk.counts.frames == {"certain": 2}


def test_more_passes_than_a_frame_has_room_for_have_no_most():
    found = loop_program("nop", "nop", "nop")
    walk = Walker(found).walk(stream((START, 0), (LOOP, 1 << 28 | 5), (NOT_TAKEN,)))
    assert walk.counts.trips == {(0x18, (1 << 28) + 5, True): 1}
    assert walk.counts.least["visit", 0x10] == (1 << 28) + 5
    assert ("visit", 0x10) in walk.counts.unbounded


def test_a_loop_with_a_branch_takes_an_atom_each_pass_in_few_beliefs():
    found = loop_program("jz r1, #0x28", *NOPS, "nop", "nop")
    made = Walker(found)
    passes = 100_000
    walk = made.walk(stream((START, 0), (LOOP, passes), (NOT_TAKEN, 0, passes), (NOT_TAKEN,)))
    assert not walk.unresolved
    assert walk.counts.least["visit", 0x10] == passes
    assert len(made._automaton.beliefs) < 50
    # One atom too few: the loop is not over, so this is one of its own.
    early = Walker(found).walk(stream((START, 0), (LOOP, passes), (NOT_TAKEN, 0, passes)))
    assert early.counts.least["visit", 0x2C] <= passes
    # One too many cannot be.
    late = Walker(found).walk(stream((START, 0), (LOOP, 3), (NOT_TAKEN, 0, 9)))
    assert [lost.reason for lost in late.unresolved] == ["contradiction"]


def test_a_recording_that_begins_in_a_loop_does_not_know_its_passes():
    found = loop_program("nop", "nop", "nop")
    walk = Walker(found, Erratum.LC_AT_WRITE | Erratum.FRAME_AT_ISSUE).walk(stream((START, 0x14), (NOT_TAKEN,)))
    assert ("visit", 0x10) in walk.counts.unbounded
    assert walk.counts.least["visit", 0x10] == 0
    assert walk.counts.most["visit", 0x10] >= 0


def test_the_place_of_a_loop_frame_is_decided_by_a_branch_before_its_end():
    found = loop_program("jz r1, #0x28", *NOPS, "nop", "nop")
    early = Walker(found).walk(stream((START, 0), (LOOP, 2), (NOT_TAKEN,), (NOT_TAKEN,), (NOT_TAKEN,)))
    late = Walker(found).walk(stream((START, 0), (NOT_TAKEN,), (LOOP, 2), (NOT_TAKEN,), (NOT_TAKEN,)))
    both = Walker(found).machine
    assert early.pieces[0].places & late.pieces[0].places == 0
    assert early.pieces[0].places | late.pieces[0].places == both.places


#: A jump into a function whose loop is closed by a branch to where a value from memory says.
AMBIGUOUS = ("j #0x18", *NOPS, "lda p7, [sp, #-32]", "nop", "nop", "jnzd r1, r1, p7", *NOPS, "done")
AMBIGUOUS_FUNCTIONS = [(0, "main"), (6, "loop")]


def test_an_ambiguous_program_is_reported_as_such():
    made = Walker(listing(*AMBIGUOUS, functions=AMBIGUOUS_FUNCTIONS), keeps_path=True)
    walk = made.walk(stream((START, 0), (TAKEN,), (NOT_TAKEN,)))
    # Any bundle of the function outside of the slots may be the head, but one that no branch follows.
    assert {target for _, _, target in walk.counts.remarks} == {0x18, 0x1C, 0x20, 0x24}
    before, window = [window for window, _ in matching.windows_of(made, walk.pieces[0])]
    assert before.is_certain
    assert window.alternatives == 4
    # What all have in common: the branch with its slots.
    assert window.common == (6, 0)
    assert walk.counts.frames == {"ambiguous": 1, "certain": 1}
    assert walk.counts.least["visit", 0x24] == 2
    assert (walk.counts.least["visit", 0x20], walk.counts.most["visit", 0x20]) == (1, 2)


def test_the_cap_is_reported_not_silent():
    walk = Walker(listing(*AMBIGUOUS, functions=AMBIGUOUS_FUNCTIONS), max_states=3).walk(
        stream((START, 0), (TAKEN,), (TAKEN,), (NOT_TAKEN,))
    )
    assert walk.unresolved == [Unresolved(1, 3, "cap")]


def test_losses_end_a_path_and_an_address_begins_a_new_one():
    main = ("jl #0x40", *NOPS, "jl #0x40", *NOPS, "done", "nop", "nop", "nop")
    found = listing(*main, "nop", "ret lr", *NOPS, functions=[(0, "main"), (16, "leaf")])
    rows = ((START, 0), (NEW_PC, 24), (RESTART, 0x40), (TAKEN,), (NEW_PC, 24), (NEW_PC, 48), (STOP,))
    walk = Walker(found).walk(stream(*rows))
    assert (walk.pieces[0].first, walk.pieces[0].last, walk.pieces[0].is_resumed) == (0, 1, False)
    assert walk.unresolved == [Unresolved(3, 3, "contradiction")]
    assert walk.pieces[-1].is_resumed
    marked = Walker(found).walk(stream(*rows[:2], (TAKEN,), (NEW_PC, 48), lost=[2]))
    assert marked.unresolved == [Unresolved(2, 2, "loss")]
    outside = Walker(found).walk(stream((START, 0x1000), (TAKEN,)))
    assert [lost.reason for lost in outside.unresolved] == ["outside", "outside"]


def test_calls_in_each_other_as_deep_as_hostile_frames_say_take_linear_time_and_little_memory():
    found = listing("jz r0, #0x30", *NOPS, "jl #0x0", *NOPS, "ret lr", *NOPS, functions=[(0, "itself")])
    made = Walker(found)
    walk = made.walk(stream((START, 0), (NOT_TAKEN, 0, 100_000), (TAKEN,), (NEW_PC, 48, 1000)))
    assert not walk.unresolved
    assert walk.counts.least["visit", 0x18] == 100_000
    assert len(made.nodes) < 4 * MOST_CALLS
    assert made.machine.stacks < 4 * MOST_CALLS


def test_memory_for_counts_is_that_of_the_program():
    """Besides the rows themselves: marks of a byte or two a row, where a recording is cut."""
    found = loop_program("jz r1, #0x28", *NOPS, "nop", "nop")

    def peak(times):
        unit = [(LOOP, 9), (TAKEN, 0, 1), (NOT_TAKEN, 0, 2), (TAKEN, 0, 6), (TAKEN,)]
        rows = stream((START, 0), *unit * 5000)
        whole = Stream(*(np.concatenate([column[:1], np.tile(column[1:], times)]) for column in vars_of(rows)))
        made = Walker(found, Erratum.LC_AT_END, chunk=1 << 12)
        tracemalloc.start()
        try:
            walk = made.walk(whole)
            assert walk.counts.frames.total() == 9 * 5000 * times + 2 * 5000 * times
            return tracemalloc.get_traced_memory()[1], len(whole.kind)
        finally:
            tracemalloc.stop()

    peak(1)
    (small, few), (large, many) = peak(1), peak(20)
    # NumPy reuses the memory of what goes away only in an interpreter that it knows, and a sanitized one is not.
    assert large - small < (4 if SANITIZED else 3) * (many - few)


def vars_of(rows):
    return rows.kind, rows.value, rows.count, rows.is_after_loss


def test_how_a_recording_began_is_an_assumption_where_it_is_one():
    #               0  1      2..6   7            8..12  13     14..18
    found = listing("nop", "jz r0, #0x34", *NOPS, "jz r1, #0x34", *NOPS, "done", functions=[(0, "main")])
    # In the slots of the first branch: its frame came before, and it fell through, or it is the first one.
    walk = Walker(found).walk(stream((START, 0x10), (NOT_TAKEN,), (NOT_TAKEN,)))
    assert {key for key in walk.counts.remarks if key[0] == "start"} == {("start", 4, 0x10)}
    other = Walker(found).walk(stream((START, 0x10), (NOT_TAKEN,)))
    assert ("in_flight", 4, 0x1C) in other.counts.remarks


def test_an_endless_call_of_itself_ends_the_walk():
    found = listing("jl #0x0", *NOPS, "done", functions=[(0, "main")])
    walk = Walker(found).walk(stream((START, 0), (TAKEN,)))
    assert [lost.reason for lost in walk.unresolved] == ["contradiction"]


def test_errata_of_a_kind_are_open_until_one_is_said():
    assert settled(Erratum(0)) == UNKNOWN
    assert settled(Erratum.LC_AT_END) & KINDS[0] == Erratum.LC_AT_END
    assert settled(Erratum.LC_AT_END) & KINDS[1] == KINDS[1]
    assert set(ERRATUM_DOCS) == set(Erratum)
    page = (Path(__file__).parents[4] / "docs" / "howto" / "aie-path.md").read_text()
    assert [erratum.flag for erratum in Erratum if f"| `{erratum.flag}` |" not in page] == []


# --- the native table


class Slow:
    """The table of transitions in Python: the measure of the native one."""

    def __init__(self):
        self.known = {}

    def add(self, state, symbol, entry, after, shift, least):
        self.known[state, symbol] = (entry, after, shift, least)

    def walk(self, kind, value, count, row, taken, state, reg, room):
        out = []
        while row < len(kind):
            symbol, sets, now = walker._symbol(kind[row], value[row]), False, reg
            if kind[row] not in (NEW_PC, TAKEN, NOT_TAKEN, LOOP):
                return 5, row, taken, state, reg, out
            if symbol in (state_sets.COUNT, state_sets.WRAPPED_COUNT):
                sets, now = True, value[row] & (1 << 28) - 1 | (value[row] & 1 << 28)
            while taken < count[row]:
                if len(out) == room:
                    return 1, row, taken, state, reg, out
                if (state, symbol) not in self.known:
                    return 2, row, taken, state, reg, out
                entry, after, shift, least = self.known[state, symbol]
                if after < 0:
                    return 3, row, taken, state, reg, out
                this = now if sets else reg
                if this < least:
                    exact = self.known.get((state, state_sets.REGISTER_0 + reg))
                    if sets or not 0 <= reg < state_sets.MOST_REGISTER or exact is None:
                        return 4, row, taken, state, reg, out
                    out.append((exact[0], reg))
                    state = exact[1]
                    continue
                out.append((entry, this))
                state, reg, taken = after, this + shift, taken + 1
            row, taken = row + 1, 0
        return 0, row, taken, state, reg, out


ROWS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([TAKEN, NOT_TAKEN, STOP]), st.just(0), st.integers(1, 5)),
        st.tuples(st.just(NEW_PC), st.integers(0, 3), st.just(1)),
        st.tuples(st.just(LOOP), st.sampled_from([0, 3, 7, 8, 9, 1 << 28, 1 << 28 | 4]), st.just(1)),
    ),
    max_size=30,
)


@given(rows=ROWS, seed=SEEDS, room=st.integers(0, 40))
def test_the_native_table_walks_as_the_slow_one(rows, seed, room):
    draw = random.Random(seed)
    fast, slow = core.AieTransitions(), Slow()
    symbols = [
        *range(6),
        state_sets.COUNT,
        state_sets.WRAPPED_COUNT,
        *(state_sets.SMALL_COUNT_0 + n for n in (0, 3, 7)),
    ]
    symbols += [state_sets.REGISTER_0 + n for n in range(6)]
    for entry, (state, symbol) in enumerate((state, symbol) for state in range(3) for symbol in symbols):
        if draw.random() < 0.9:
            row = (entry, draw.choice((0, 1, 2, 2, -1)), draw.choice((0, 0, -1)), draw.choice((0, 0, 3)))
            fast.add(state, symbol, *row)
            slow.add(state, symbol, *(row if symbol < state_sets.REGISTER_0 else (entry, abs(row[1]), 0, 0)))
            if symbol >= state_sets.REGISTER_0:
                fast.add(state, symbol, entry, abs(row[1]), 0, 0)
    columns = [np.array([row[i] for row in rows], dtype) for i, dtype in enumerate((np.uint8, np.int64, np.int64))]
    # A register that only falls ends in a transition that does not hold; exact ones may go round for ever.
    expected = slow.walk(*(column.tolist() for column in columns), 0, 0, 1, 5, room)
    entries, registers = np.zeros(room, np.int32), np.zeros(room, np.int64)
    *found, steps = fast.walk(*columns, 0, 0, 1, 5, entries, registers, 0)
    assert found == list(expected[:5])
    assert list(zip(entries[:steps].tolist(), registers[:steps].tolist(), strict=True)) == expected[5]


@given(symbols=st.lists(st.integers(0, 3), max_size=50), seed=SEEDS)
def test_the_native_table_follows(symbols, seed):
    draw = random.Random(seed)
    table, known = core.AieTransitions(), {}
    for state in range(400):
        for symbol in range(4):
            if draw.random() < 0.97:
                known[state, symbol] = (4 * state + symbol, draw.randrange(400))
                table.add(state, symbol, *known[state, symbol])
    state, expected = 0, []
    for symbol in symbols:
        if (state, symbol) not in known:
            break
        entry, state = known[state, symbol]
        expected.append(entry)
    entries = np.zeros(len(symbols), np.int32)
    done, after = table.follow(0, np.array(symbols, np.int32), entries)
    assert (entries[:done].tolist(), after) == (expected, state)


def test_the_native_table_refuses_arrays_that_do_not_fit():
    table = core.AieTransitions()
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="different lengths"):
        table.walk(np.zeros(1, np.uint8), two, one, 0, 0, 0, 0, np.zeros(1, np.int32), one, 0)
    with pytest.raises(ValueError, match="position"):
        table.walk(np.zeros(1, np.uint8), one, one, 2, 0, 0, 0, np.zeros(1, np.int32), one, 0)
    with pytest.raises(ValueError, match="too short"):
        table.follow(0, np.zeros(2, np.int32), np.zeros(1, np.int32))
