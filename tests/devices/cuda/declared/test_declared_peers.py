"""The producers' exporters beside lanescope on the same buffers: what differs, and who is right."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from devices.cuda.declared import peers
from devices.cuda.declared.producers import WRITERS, Made, Shape
from devices.cuda.declared.test_declared_goldens import load, rows_of
from devices.cuda.declared.test_declared_producers import decode
from lanescope import cuda


def ours(trace):
    """Rows as the exporters have them."""
    return Counter((block, group, event, begin, end) for block, group, _, event, begin, end, _ in rows_of(trace))


def compare(mine, theirs, bits=None):
    """Return how many rows are in both, only in the first, and only in the second."""
    if bits is not None:
        low = (1 << bits) - 1

        def folded(rows):
            return Counter({(*row[:3], row[3] & low, None if row[4] is None else row[4] & low): 1 for row in rows})

        mine, theirs = folded(mine), folded(theirs)
    theirs = Counter(theirs)
    return sum((mine & theirs).values()), sum((mine - theirs).values()), sum((theirs - mine).values())


def made_of(layout, **shape) -> tuple[Made, object]:
    made = WRITERS[layout][0](Shape(**shape))
    return made, decode(made, layout)


def lost(trace):
    return sum(row["count"] for row in trace.stats.rows() if row["name"] == "cuda_dropped")


def golden(name):
    data, truth, options = load(name)
    return data, truth, cuda.decode(data, **options)


def test_nuggets_agree_but_do_not_tell_of_what_was_dropped():
    data, truth, trace = golden("nuggets_legacy")
    assert compare(ours(trace), peers.nuggets_legacy(data, 16)) == (len(truth["spans"]), 0, 0)
    assert lost(trace) == truth["lost"] == 16


def test_compact_nuggets_agree():
    made, trace = made_of("nuggets-compact", blocks=5, regions=7, wrap=True)
    theirs = peers.nuggets_compact(made.file(), made.params["max_events"])
    assert compare(ours(trace), theirs) == (len(made.spans), 0, 0)


def test_quack_agrees():
    made, trace = made_of("quack", blocks=4, groups=3, capacity=8, regions=12, wrap=True)
    assert compare(ours(trace), peers.quack(made.file(), made.params["max_events"])) == (len(made.spans), 0, 0)
    assert lost(trace) == made.lost > 0


def test_sm_profiler_ends_open_ranges_at_zero():
    made, trace = made_of("sm-profiler", blocks=2, groups=2, capacity=8, regions=12)
    data = bytearray(made.file())
    # The kernel ends before the last range of the first lane.
    lanes = 4
    begin = 16 + 4 * lanes + 128 * lanes
    data[begin + 32 : begin + 40] = bytes(8)
    trace = cuda.decode(bytes(data), layout="sm-profiler")
    both, mine, theirs = compare(ours(trace), peers.sm_profiler(bytes(data)))
    open_ = [row for row in trace.slices.rows() if row["dur"] is None]
    assert mine == 0
    assert theirs == len(open_) == 1 + sum(row[4] == 0 for row in peers.sm_profiler(made.file()))
    assert both == len(made.spans) - 1


def test_tileops_agrees():
    data, truth, trace = golden("tileops")
    assert compare(ours(trace), peers.tileops(data, 12, 2)) == (len(truth["spans"]), 0, 0)
    made, trace = made_of("tileops", blocks=2, groups=3, capacity=20, regions=9)
    assert compare(ours(trace), peers.tileops(made.file(), 20, 3)) == (len(made.spans), 0, 0)


def test_cutedsl_trace_reads_beyond_full_rows_and_makes_short_regions_longer():
    made, trace = made_of("cutedsl-trace", blocks=2, groups=2, capacity=4, regions=6)
    theirs = peers.cutedsl_trace(made.file(), made.params["row"], 2)
    short = sum(end - begin < 32 for *_, begin, end, _ in made.spans)
    both, mine, more = compare(ours(trace), theirs, bits=32)
    assert (both, mine) == (len(made.spans) - short, short)
    # The offset goes on behind the row: events and headers of the next lanes are shown as events of this one.
    assert more > short
    assert lost(trace) == made.lost == 4 * 2


def test_iris_shows_open_operations_as_marks():
    made, trace = made_of("iris", blocks=3, capacity=8, regions=7)
    theirs = peers.iris(made.arrays)
    open_ = sum(row[4] is None for row in theirs)
    assert compare(ours(trace), theirs) == (len(made.spans), 0, open_)
    assert sum(row["dur"] is None for row in trace.slices.rows()) == open_ > 0


def test_mpk_takes_the_lane_from_eight_bits():
    data, truth, trace = golden("mirage_mpk")
    theirs = peers.mirage_mpk(data)
    both, mine, more = compare(ours(trace), theirs, bits=32)
    # Lanes from 256 on are merged with those of 256 less.
    wrong = sum(row[0] * 2 + row[1] >= 256 for row in truth["spans"])
    assert mine >= wrong > 0
    assert both == len(truth["spans"]) - mine
    assert more > 0


@pytest.mark.parametrize("wrap", [False, True])
def test_mosaic_takes_an_overhead_off_every_region(wrap):
    made, trace = made_of("mosaic-gpu", blocks=2, groups=2, regions=6, wrap=wrap)
    theirs = peers.mosaic_gpu(made.file(), made.params["words"], 2)
    # The same regions in the same lanes; lengths differ by what it takes off.
    assert len(theirs) == len(made.spans) == sum(ours(trace).values())
    mine = sorted((*row[:3], row[4] - row[3]) for row in ours(trace))
    other = sorted((*row[:3], row[4] - row[3]) for row in theirs)
    assert all(length >= less > 0 for (*_, length), (*_, less) in zip(mine, other, strict=True))
    assert mine != other


def test_mosaic_ends_a_region_before_it_begins_where_its_timer_wraps():
    made, _ = made_of("mosaic-gpu", blocks=1, groups=1, regions=1)
    words = made.arrays["buffer"]
    words[0] = 0xFFFFFFFF  # the start of the lane, in ns
    [(_, _, _, begin, end)] = peers.mosaic_gpu(made.file(), made.params["words"], 1)
    [(_, _, _, mine_begin, mine_end)] = ours(decode(made, "mosaic-gpu"))
    assert begin == 0xFFFFFFFF
    assert end < mine_end - mine_begin


def test_open_cuprof_reads_what_follows_a_full_warp():
    made, trace = made_of("open-cuprof", blocks=3, groups=2, capacity=4, regions=6)
    theirs = peers.open_cuprof(made.file(), **made.params)
    assert made.lost == lost(trace) == 3 * 2 * 2
    # What the last warp has no room for is behind the end of the buffer.
    assert compare(ours(trace), theirs) == (len(made.spans), 0, made.lost - 2)


def test_an_earlier_launch_is_late_in_compact_nuggets():
    made, _ = made_of("nuggets-compact", blocks=2, regions=3, capacity=8)
    words = made.arrays["buffer"]
    last = int(np.flatnonzero(words[1:] == 0)[0]) + 1
    words[last] = (int(words[0]) - 5_000 & 0xFFFFFFFF) | 100 << 32 | 1 << 56
    theirs = peers.nuggets_compact(made.file(), made.params["max_events"])
    assert compare(ours(decode(made, "nuggets-compact")), theirs) == (len(made.spans), 0, 1)
    assert max(row[3] for row in theirs) > int(words[0]) + (1 << 31)
