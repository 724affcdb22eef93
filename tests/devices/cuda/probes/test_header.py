"""The C++ header, run on the CPU: what random programs of markers leave behind is what our own encoder stores."""

from __future__ import annotations

import ctypes
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import lanescope
from devices.cuda import helpers
from devices.cuda.probes import host
from devices.cuda.probes.host import FINALIZE, NUMBER, TYPES, Program
from effort import some
from lanescope.cuda import include_dir
from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.encode import ls2
from lanescope.devices.cuda.formats.ls2 import Ls2Header
from lanescope.devices.cuda.probes.buffer import BufferPlan
from lanescope.errors import InputError
from lanescope.trace import Flag

VALUES = [0, 1, -1, 2**61 - 1, 2**61, -(2**61), -(2**61) - 1, 2**63 - 1, -(2**63), 2**31, -(2**31), 2**32 - 1]
FLOATS = [float(x).hex() for x in (0.0, -0.0, 1.5, -1e300, float("inf"), 5e-324, 0.1)]
BITS = VALUES + [int(np.array([float.fromhex(x)]).view(np.int64)[0]) for x in FLOATS]


@st.composite
def programs(draw, *, verbs=host.VERBS[:-1], most=40, events=(0, 1, 65535, 65536 + 3), is_wild=True):
    """Return programs of markers in any order, for the lanes of a small grid."""
    grid = draw(st.sampled_from([(1, 1, 1), (3, 1, 1), (1, 2, 1), (2, 2, 2)]))
    block = draw(st.sampled_from([(1, 1, 1), (64, 1, 1), (4, 4, 2)]))
    groups = draw(st.sampled_from([1, 2])) if np.prod(block) > 1 else 1
    threads = int(np.prod(block)) // groups
    lanes = []
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    most = draw(st.integers(0, most))
    numbers = [NUMBER[verb] for verb in verbs]
    for _ in range(int(np.prod(grid)) * groups):
        count = int(random.integers(0, most + 1))
        times = random.choice([1, 5000, (1 << 32) - 64, 3 << 33]) + random.choice([0, 1, 32, 320], count + 2).cumsum()
        columns = [
            random.choice(numbers, count),
            random.choice(events, count),
            random.choice([0, 1, 4095, 4097], count),
            random.integers(0, len(TYPES), count),
            times[1:-1],
            random.choice(BITS, count),
        ]
        ops = [(0, 0, 0, 0, int(times[0]), 0), *zip(*(column.tolist() for column in columns), strict=True)]
        if random.integers(0, 2):
            ops.append((FINALIZE, 0, 0, 0, int(times[-1]), 0))
        lanes.append(ops if not is_wild or random.integers(0, 9) else [])
    leader, every = draw(st.integers(0, threads - 1)), draw(st.sampled_from([1, 1, 2, 3]))
    return Program(lanes, grid, block, groups, leader, every)


REFUSED = layout.LS2_HEADER["refused"].lsb // 64


def setup_of(program, capacity, **rules):
    return ls2.Ls2Setup(program.blocks, program.groups, capacity, **rules)


def new(setup):
    """Return the words that the host prepares."""
    words = np.zeros(layout.LS2_FILE_WORDS + setup.lanes * setup.lane_words, np.uint64)
    words[: layout.LS2_FILE_WORDS] = ls2.header_words(setup)
    return words


@settings(max_examples=some(300))
@given(
    *(programs(), st.sampled_from([1, 2, 8, 64]), st.integers(1, 2), st.booleans(), st.integers(0, 1)),
    *(st.one_of(st.none(), st.integers(1, most)) for most in (9, 3)),
)
def test_any_program_leaves_what_the_encoder_stores(program, capacity, width, ring, clock, blocks, groups):
    """Also where the buffer has room for fewer blocks or groups than the kernel, or for more."""
    room = (blocks or program.blocks, groups or program.groups)
    setup = ls2.Ls2Setup(*room, capacity, record_words=width, is_ring=ring, clock=clock)
    words = host.run_ls2(program, new(setup), record_words=width, clock=clock)
    assert words.tolist() == host.expected_ls2(program, setup).tolist()


def test_a_long_lane_counts_all_that_it_drops():
    ops = [(0, 0, 0, 0, 100, 0), *((NUMBER["instant"], 0, 0, 0, 101 + at, 0) for at in range(1000))]
    for last in ([], [(FINALIZE, 0, 0, 0, 2000, 0)]):
        for ring in (False, True):
            program = Program([ops + last])
            setup = setup_of(program, 16, is_ring=ring)
            words = host.run_ls2(program, new(setup), record_words=1)
            assert words.tolist() == host.expected_ls2(program, setup).tolist()
            lane = helpers.lanes(helpers.decode(words))[0, 0]
            if last:
                assert lane["dropped"] == 1000 - 16
            assert words[layout.LS2_FILE_WORDS + 1] == (1000 if last else 960)
            times = sorted(row[-1] for row in helpers.instants(helpers.decode(words), origin=100))
            assert times == list(range(1085, 1101) if ring else range(101, 117))


@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("at", [2**31 - 64, 2**32 - 64, 2**32 - 65, 2**33 - 1])
def test_positions_beyond_32_bits(ring, width, at):
    """A lane that dropped for hours neither begins again nor forgets its count."""
    value, instant = NUMBER["value"], NUMBER["instant"]
    marks = [(value if step % 3 == 0 else instant, 1, 0, 0, 1000 + step, step) for step in range(300)]
    offered = at + sum(2 if width == 1 and mark[0] == value else 1 for mark in marks)
    ops = [(0, 0, 0, 0, 100, 0), (NUMBER["jump"], 0, 0, 0, 100, at), *marks, (FINALIZE, 0, 0, 0, 2000, 0)]
    program = Program([ops])
    setup = setup_of(program, 64, record_words=width, is_ring=ring)
    words = host.run_ls2(program, new(setup), record_words=width)
    lane = helpers.lanes(helpers.decode(words))[0, 0]
    assert (lane["attempted"], lane["dropped"]) == (offered, offered - 64)
    body = words[layout.LS2_FILE_WORDS + layout.LS2_LANE_WORDS :]
    assert body.any() == ring
    assert ring or host.library().position_of_last_lane() < 1 << 31
    if ring:
        trace = helpers.decode(words)
        assert not any(name in helpers.stats(trace) for name in ("cuda_corrupt_record", "cuda_stale_words"))
        assert max(row[-1] for row in helpers.instants(trace, origin=100)) == 1299


@settings(max_examples=some(60))
@given(st.data())
def test_emitted_regions_are_decoded(data):
    """Regions, asynchronous regions, flows, values and instants: emitted, then decoded unchanged."""
    plan = BufferPlan.of(events=["a", "b", "c", "copy", "level", "ready", "mark"], blocks=3, groups=["load", "math"],
                   records_per_lane=256, payload=data.draw(st.booleans()))  # fmt: skip
    lanes, regions, copies, levels, marks, flows = [], [], [], [], [], []
    for lane in range(plan.lanes):
        place = divmod(lane, 2)
        time = [1000 + lane]
        ops = [(0, 0, 0, 0, time[0], 0)]

        def add(verb, event, token=0, bits=0, kind=2, ops=ops, time=time):
            time[0] += data.draw(st.integers(1, 500))
            ops.append((NUMBER[verb], plan.events[event], token, kind, time[0], bits))
            return time[0]

        def nest(depth, place=place, add=add):
            for _ in range(data.draw(st.integers(0, 3))):
                name = data.draw(st.sampled_from("abc"))
                begin = add("begin", name)
                if depth:
                    nest(depth - 1)
                regions.append((*place, name, begin, add("end", name)))

        nest(2)
        begins = [(token, add("async_begin", "copy", token)) for token in range(data.draw(st.integers(0, 4)))]
        copies += [(*place, "copy", begin, add("async_end", "copy", token)) for token, begin in reversed(begins)]
        for _ in range(data.draw(st.integers(0, 3))):
            value = data.draw(st.integers(-(2**40), 2**40))
            levels.append((add("value", "level", bits=value), float(value)))
            marks.append((*place, "mark", add("instant", "mark")))
        if place[1] == 0:
            begin = add("begin", "a")
            flows.append(add("flow_out", "ready", 7))
            regions.append((*place, "a", begin, add("end", "a")))
        else:
            time[0] = max(time[0], flows[-1]) + 1
            begin = add("begin", "b")
            add("flow_in", "ready", 7)
            regions.append((*place, "b", begin, add("end", "b")))
        ops.append((FINALIZE, 0, 0, 0, time[0] + 5, 0))
        lanes.append(ops)
    program = Program(lanes, (3, 1, 1), (64, 1, 1), groups=2)
    trace = plan.decode(host.run_ls2(program, plan.new(), record_words=1 + plan.payload))
    origin = 1000
    found = [(block, group, name, begin, end) for block, group, _, name, begin, end, _, _ in
             helpers.spans(trace, origin=origin)]  # fmt: skip
    assert sorted(found) == sorted(regions + copies)
    assert sorted(row[:2] + row[3:] for row in helpers.instants(trace, origin=origin)) == sorted(marks)
    samples = zip((trace.counters["ts"] + origin).tolist(), trace.counters["value"].tolist(), strict=True)
    assert sorted(samples) == sorted(levels)
    assert len(trace.flows) == 3
    assert sorted((trace.flows["src_ts"] + origin).tolist()) == sorted(flows)
    lost = [row["dropped"] for row in trace.details["cuda_lanes"].rows()]
    assert lost == [0] * plan.lanes
    assert not any(Flag(flags) & (Flag.UNFINISHED | Flag.TRUNCATED) for flags in trace.slices["flags"])


def test_a_region_that_another_lane_ends():
    plan = BufferPlan.of(events=["copy"], blocks=2, groups=["load", "math"], records_per_lane=8)
    begin, end = NUMBER["async_begin"], NUMBER["async_end"]
    first = [(0, 0, 0, 0, 100, 0), (begin, 0, 1, 0, 110, 0), (begin, 0, 2, 0, 120, 0), (FINALIZE, 0, 0, 0, 300, 0)]
    second = [(0, 0, 0, 0, 100, 0), (end, 0, 2, 0, 150, 0), (end, 0, 1, 0, 190, 0), (FINALIZE, 0, 0, 0, 300, 0)]
    program = Program([first, second] * 2, (2, 1, 1), (64, 1, 1), groups=2)
    trace = plan.decode(host.run_ls2(program, plan.new(), record_words=1))
    rows = list(trace.details["cuda_regions"].rows())
    assert [(row["block"], row["group"], row["end_group"], row["token"]) for row in rows] == [
        (block, 0, 1, token) for block in range(2) for token in (1, 2)
    ]
    assert [row["dur"] for row in trace.slices.rows()] == [80, 30] * 2
    assert [row["dst_ts"] - row["src_ts"] for row in trace.flows.rows()] == [80, 30] * 2


@given(programs(most=8))
def test_null_and_disabled_store_nothing_and_fence_nothing(program):
    words = new(setup_of(program, 8))
    assert (host.run_ls2(program, words, record_words=0) == words).all()
    library = host.library()
    assert library.count_fences() == library.count_uses() == 0
    rows, starts, sizes, numbers = program.arguments()
    arrays = [ctypes.c_void_p(array.ctypes.data) for array in (rows, starts)]
    library.run_ls2(1, 0, ctypes.c_void_p(sizes.ctypes.data), ctypes.c_void_p(None), *arrays, *numbers)
    assert library.count_fences() == library.count_uses() == 0


def test_fences_are_for_sampled_blocks_and_uses_for_leaders():
    ops = [(0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 2, 0), (NUMBER["consume"], 0, 0, 0, 3, 0), (1, 0, 0, 0, 4, 0)]
    program = Program([ops] * 4, (4, 1, 1), (32, 1, 1), every=2)
    host.run_ls2(program, new(setup_of(program, 8)), record_words=1)
    assert host.library().count_fences() == 2 * 32 * 2
    assert host.library().count_uses() == 2


@settings(max_examples=some(300))
@given(programs(most=10), st.integers(1, 3), st.integers(0, 63), st.integers(1, 2))
def test_a_damaged_header_moves_no_store_outside(program, word, bit, width):
    """The buffer is as large as the sound header says; one flipped bit may lose lanes, not spill them."""
    setup = setup_of(program, 8, record_words=width)
    words = new(setup)
    words[word] ^= np.uint64(1) << np.uint64(bit)
    try:
        size = Ls2Header.read(words).size
    except InputError:
        size = 0
    assume(size < 1 << 20)
    words = np.concatenate([words, np.zeros(max(0, size - len(words)), np.uint64)])
    after = host.run_ls2(program, words, record_words=width)
    # A grid that the header makes smaller has lanes without room; they are counted, nothing else is written there.
    assert (after[:REFUSED] == words[:REFUSED]).all()
    assert after[layout.LS2_FILE_WORDS - 1] == 0


@pytest.mark.parametrize(("width", "clock"), [(2, 0), (1, 1)])
def test_a_kernel_compiled_for_another_buffer_is_reported(width, clock):
    program = Program([[(0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 2, 0), (FINALIZE, 0, 0, 0, 3, 0)]] * 2, (2, 1, 1))
    words = host.run_ls2(program, new(setup_of(program, 8)), record_words=width, clock=clock)
    trace = helpers.decode(words)
    assert helpers.stats(trace)["cuda_bad_lane_header"] == 2
    assert len(trace.slices) == 0


def test_a_buffer_used_twice_keeps_the_first_launch_and_says_so():
    ops = [(0, 0, 0, 0, 10, 0), (0, 0, 0, 0, 20, 0), (1, 0, 0, 0, 30, 0), (FINALIZE, 0, 0, 0, 40, 0)]
    program = Program([ops])
    once = host.run_ls2(program, new(setup_of(program, 8)), record_words=1)
    later = replace(program, lanes=[[(*op[:4], op[4] + 1000, op[5]) for op in ops]])
    twice = host.run_ls2(later, once, record_words=1)
    assert [span[4:6] for span in helpers.spans(helpers.decode(twice), origin=10)] == [(20, 30)]
    assert helpers.stats(helpers.decode(twice))["cuda_bad_lane_header"] == 1


@given(st.integers(1, 1000), st.integers(1, 8), st.integers(0, 12), st.booleans(), st.integers(1, 2))
def test_a_host_in_cpp_lays_out_the_same_buffer(blocks, groups, power, ring, width):
    header = np.zeros(16, np.uint64)
    pointer = ctypes.c_void_p(header.ctypes.data)
    words = host.library().lay_out(blocks, groups, ctypes.c_uint64(1 << power), int(ring), width, pointer)
    plan = BufferPlan.of(events=["a"], blocks=blocks, groups=groups, records_per_lane=1 << power, ring=ring,
                   payload=width == 2, clock="clock64" if width == 2 else "globaltimer")  # fmt: skip
    assert words == plan.words
    assert header.tolist() == plan.header(launch=5, ordinal=3).tolist()


def test_two_leaders_of_a_lane_are_reported():
    setup = ls2.Ls2Setup(1, 1, 8)
    words = host.guarded(new(setup), host.library().run_two_leaders)
    trace = helpers.decode(words)
    assert helpers.stats(trace)["cuda_bad_lane_header"] == 1
    assert [span[2] for span in helpers.spans(trace)] == [0]


def test_lanes_beyond_the_buffer_are_counted():
    ops = [(0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 2, 0), (1, 0, 0, 0, 3, 0), (FINALIZE, 0, 0, 0, 4, 0)]
    program = Program([ops] * 6, (3, 2, 1))
    setup = ls2.Ls2Setup(4, 1, 8)
    words = host.run_ls2(program, new(setup), record_words=1)
    assert sorted(helpers.lanes(helpers.decode(words))) == [(block, 0) for block in range(4)]
    assert len(helpers.spans(helpers.decode(words))) == 4
    assert words[REFUSED : REFUSED + 3].tolist() == [2, 6, 0]
    # A second launch goes on counting, and the larger grid is kept.
    again = replace(program, lanes=[ops] * 18, grid=(9, 1, 1), block=(2, 1, 1), groups=2)
    words = host.run_ls2(again, words, record_words=1)
    assert words[REFUSED : REFUSED + 3].tolist() == [2 + 5 * 2 + 4, 9, 2]


def test_blocks_that_are_not_sampled_and_threads_that_do_not_lead_are_not_counted():
    program = Program([[(0, 0, 0, 0, 1, 0)]] * 9, (9, 1, 1), (64, 1, 1), every=3)
    words = host.run_ls2(program, new(ls2.Ls2Setup(2, 1, 8)), record_words=1)
    assert words[REFUSED : REFUSED + 3].tolist() == [2, 9, 0]


def test_a_count_of_64_bits_goes_on_beyond_32():
    words = new(ls2.Ls2Setup(1, 1, 8))
    words[REFUSED] = (1 << 32) - 1
    program = Program([[(0, 0, 0, 0, 1, 0)]] * 3, (3, 1, 1))
    words = host.run_ls2(program, words, record_words=1)
    assert words[REFUSED] == (1 << 32) + 1
    assert helpers.stats(helpers.decode(words))["cuda_unallocated_lane"] == (1 << 32) + 1


def test_a_buffer_of_the_first_version_is_left_alone():
    """A kernel that counts may not write into words whose readers know nothing of counts."""
    program = Program([[(0, 0, 0, 0, 1, 0)]] * 3, (3, 1, 1))
    words = new(ls2.Ls2Setup(2, 1, 8, version=1))
    assert (host.run_ls2(program, words, record_words=1) == words).all()


def test_the_program_in_the_docs_runs(tmp_path):
    """The C++ page's program, on the CPU: its file has the regions that the page speaks of."""
    page = Path(__file__).parents[4] / "docs" / "howto" / "probes-cpp.md"
    text = re.search(r"^```cuda\n(#include <cstdio>.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)[1]
    text = text.replace("#include <cuda_runtime.h>\n", "")
    text, launches = re.subn(r"(\w+)<<<(\w+), (\w+)>>>\(", r"launch(\2, \3, \1, ", text)
    assert launches == 1
    source, program = tmp_path / "scale.cpp", tmp_path / "scale"
    source.write_text(f'#include "runtime.hpp"\n#define LANESCOPE_MACHINE "machine.hpp"\n{text}')
    folders = [f"-I{host.SHIM}", f"-I{include_dir()}"]
    done = subprocess.run(
        ["g++", "-std=c++20", "-o", program, *folders, source], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    subprocess.run([program], cwd=tmp_path, check=True, timeout=60)
    trace = lanescope.open(tmp_path / "run.bin", events="LOAD,COMPUTE,STORE")
    names = trace.slices["name"].tolist()
    assert {name: names.count(name) for name in set(names)} == {"LOAD": 80, "COMPUTE": 80, "STORE": 80}
    assert {(row["records"], row["dropped"], row["capacity"]) for row in trace.details["cuda_lanes"].rows()} == {
        (60, 0, 64)
    }
    assert not [row for row in trace.stats.rows() if row["severity"] in ("error", "data_loss")]


TIRX_VERBS = ("begin", "end", "instant", "finalize")


@settings(max_examples=some(200))
@given(programs(verbs=TIRX_VERBS, events=(0, 1, 1023, 1027), is_wild=False), st.integers(0, 60))
@example(Program([[(0, 0, 0, 0, 6 << 32, 0), (0, 0, 0, 0, 6 << 32, 0)]]), 0)
def test_tirx_is_what_its_encoder_stores(program, slots):
    slots += 1 + len(program.lanes)
    words = host.run_tirx(program, slots)
    assert words.tolist() == host.expected_tirx(program, slots).tolist()


def test_tirx_stores_no_word_of_zeros():
    program = Program([[(0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 1 << 32, 0), (1, 0, 0, 0, (1 << 32) + 64, 0)]])
    assert host.run_tirx(program, 8).tolist()[1:4] == [1 << 32, 64 << 32 | 1, 0]
