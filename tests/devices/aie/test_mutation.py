"""Hardware captures with something done to them: what was not touched stays as it was, and nothing is made up."""

from collections import Counter, defaultdict
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from devices.aie.recordings import Recordings
from effort import QUICK, some
from lanescope.devices.aie.family import FAMILY

CAPTURES = ("mode0_add_one_objfifo_r0", "mode1_mixed_r0", "mode2_mixed_r0")
DETAILS = ("pc", "cycles", "mask", "kind", "count", "trips", "is_wrapped")


@pytest.fixture(scope="module", params=CAPTURES)
def packets(request):
    """The packets of a capture, uint32 [packets, 8], without the bytes after them."""
    corpus = request.getfixturevalue("corpus")
    words = np.fromfile(corpus / "aie" / f"{request.param}.bin", "<u4")
    found = words[: len(words) // 8 * 8].reshape(-1, 8)
    return found[found[:, 0] != 0]


@pytest.fixture(scope="module")
def open_words(tmp_path_factory):
    path = tmp_path_factory.mktemp("mutated") / "run.bin"

    def run(content):
        path.write_bytes(content if isinstance(content, bytes) else np.asarray(content, np.uint32).tobytes())
        return lanescope.open(path, family="aie")

    return run


def told(trace):
    """Group -> lane -> its rows in order: slices (begin, length, flags) or points (begin, what, flags)."""
    names = trace.tracks["name"].tolist()
    recordings = Recordings(trace)
    groups = defaultdict(lambda: defaultdict(list))
    points = {
        row["instant_id"]: tuple(row[name] for name in DETAILS if name in row)
        for table in ("aie_pc_events", "aie_program_flow")
        for row in trace.details[table].rows()
    }
    for row in chain(trace.slices.rows(), trace.instants.rows()):
        lane = row["track_id"]
        what = (row["dur"],) if "dur" in row else points.get(row["id"], (row["name"],))
        index = recordings.of(lane, row["ts"])
        recording = recordings.rows[index]
        group = names[recording["track_id"]]
        if recording["segment_index"] > 1 and "#" not in group:
            group += f" #{recording['segment_index']}"
        groups[group][names[lane]].append((row["ts"] - recordings.begin(index), what, row["flags"]))
    return {group: {lane: sorted(rows, key=str) for lane, rows in lanes.items()} for group, lanes in groups.items()}


def lost_units(trace):
    rows = list(trace.accounting.rows())
    assert all(row["total"] == row["decoded"] + row["padding"] + row["lost"] for row in rows)
    return [row["lost"] for row in rows]


@given(order=st.randoms(use_true_random=False))
@settings(max_examples=some(40))
def test_packets_of_different_tiles_may_come_in_any_order(packets, open_words, order):
    sources = [list(packets[packets[:, 0] == header]) for header in np.unique(packets[:, 0])]
    turns = [index for index, source in enumerate(sources) for _ in source]
    order.shuffle(turns)
    queues = [iter(source) for source in sources]
    mixed = open_words([next(queues[turn]) for turn in turns])
    whole = open_words(packets)
    assert told(mixed) == told(whole)
    assert lost_units(mixed) == lost_units(whole)


@given(data=st.data())
@settings(max_examples=some(60))
def test_a_cut_takes_nothing_but_the_tail(packets, open_words, data):
    content = packets.tobytes()
    # A packet and its neighbour have to be there for anything to be recognised.
    cut = data.draw(st.integers(64, len(content)))
    part = open_words(content[:cut])
    whole = told(open_words(content))
    assert part.accounting["total"][0] == cut
    assert lost_units(part)[0] + 4 * lost_units(part)[1] == cut % 32
    for group, lanes in told(part).items():
        for lane, rows in lanes.items():
            there = whole[group][lane]
            changed = [row for row in rows if row not in there]
            # What was going on at the cut is shorter, and a level says so. Repeats that are missing cannot say so.
            assert len(changed) <= 1, (group, lane)
            for ts, *_ in changed:
                assert ts in [begin for begin, *_ in there]
            assert len(rows) <= len(there)


#: In quick runs each packet loses each third bit of its header, another third than the packet before it.
EVERY = 3 if QUICK else 1


def test_every_bit_of_every_header(packets, open_words):
    whole = told(open_words(packets))
    names = {}
    for group in whole:
        col_row = group.split("(")[1].rstrip(")").split(", ")
        names[int(col_row[0]), int(col_row[1])] = group
    first = {int(header): int(np.flatnonzero(packets[:, 0] == header)[0]) for header in np.unique(packets[:, 0])}
    for index in range(len(packets)):
        header = int(packets[index, 0])
        mine = names[header >> 21 & 127, header >> 16 & 31]
        for bit in range(index % EVERY, 32, EVERY):
            damaged = packets.copy()
            damaged[index, 0] ^= np.uint32(1 << bit)
            trace = open_words(damaged)
            found = told(trace)
            place = (index, bit)
            # Nothing of the packet went to the other tile, or to one that is not there.
            assert set(found) <= set(whole), place
            others = set(whole) - {mine}
            if index != first[header] or index == 0:
                assert all(found[group] == whole[group] for group in others), place
            else:
                # A source that was never met before: the packet may have been anybody's, and everybody says so.
                assert "lost_packet" in trace.gaps["cause"].tolist(), place
                for group in others:
                    for lane, rows in found[group].items():
                        assert len(rows) <= len(whole[group][lane]), place
            stats = Counter({row["name"]: row["count"] for row in trace.stats.rows()})
            at = next(row["first_offset"] for row in trace.stats.rows() if row["name"] == "aie_bad_header")
            assert at == 32 * index, place
            lost = lost_units(trace)[1] - stats["aie_orphan_repeat"]
            if index != first[header]:
                assert (stats["aie_bad_header"], lost) == (1, 8), place
                assert "lost_packet" in trace.gaps["cause"].tolist(), place
            else:
                # Nothing of the source can be placed but what follows a restart.
                packets_lost = stats["aie_bad_header"] + stats["aie_unknown_mode_packet"]
                assert lost == 8 * packets_lost, place
                assert packets_lost <= np.count_nonzero(packets[:, 0] == header) + 1, place
                assert mine not in found or stats["aie_missing_start"] == 1, place


def test_two_halves_of_a_buffer_hold_the_packets_of_two_channels(packets, open_words):
    """With two channels the halves of a buffer fill independently; zeros lie between."""
    headers = np.unique(packets[:, 0])
    halves = [packets[packets[:, 0] == header].ravel() for header in headers]
    half = max(map(len, halves)) + 40
    buffer = np.concatenate([np.concatenate([part, np.zeros(half - len(part), np.uint32)]) for part in halves])
    trace = open_words(buffer)
    assert told(trace) == told(open_words(packets))
    assert lost_units(trace) == [0, 0]
    assert "aie_resumed_after_zeros" not in trace.stats["name"].tolist()


def test_stale_packets_behind_the_data_are_a_recording_of_their_own(packets, open_words):
    """What an earlier, longer run left in the buffer, from one of its Starts on."""
    trace = open_words(np.concatenate([packets, packets]))
    whole = told(open_words(packets))
    found = told(trace)
    for group, lanes in whole.items():
        assert found[group] == lanes
        assert found[f"{group} #2"] == lanes
    # Where the first recording has a Stop, the second begins behind it; where it has none, the Start says so.
    endings = trace.details["aie_segments"]["end_reason"].tolist()
    seconds = sum(row["count"] for row in trace.stats.rows() if row["name"] == "aie_overlapping_segment")
    assert seconds == endings.count("restarted")


def test_stale_packets_without_a_start_are_lost_not_merged(packets, open_words):
    whole = told(open_words(packets))
    stopped = [group for group, lanes in whole.items() if any(row[1] == ("Stop",) for row in lanes["trace"])]
    stale = np.concatenate([packets[packets[:, 0] == header][1:] for header in np.unique(packets[:, 0])])
    found = told(open_words(np.concatenate([packets, stale])))
    assert stopped
    for group in stopped:
        assert {lane: rows for lane, rows in found[group].items() if lane != "trace"} == {
            lane: rows for lane, rows in whole[group].items() if lane != "trace"
        }


@pytest.mark.parametrize("mode", [1, 2])
def test_a_word_that_is_no_frame_costs_itself(open_words, mode):
    """Decoding is in step again at the next word; the place is told, and what follows says that it is after a gap."""
    options = {option.name: option.default for option in FAMILY.sim_options}
    options |= {"tiles": 1, "records": 300, "mode": mode, "zeros": 0}
    words = np.frombuffer(next(iter(FAMILY.simulate(options, 3).files.values())), "<u4").copy()
    before = open_words(words)
    words[8 * 4 + 3] = 0x3FFFFFFF if mode == 2 else 0xC0FFFFFF
    trace = open_words(words)
    stats = {row["name"]: (row["count"], row["first_offset"]) for row in trace.stats.rows()}
    assert stats["aie_unknown_code"] == (1, 4 * (8 * 4 + 3))
    assert lost_units(trace) == [0, 1 + stats.get("aie_orphan_repeat", (0, 0))[0]]
    assert len(trace.gaps) == 1
    assert trace.gaps["cause"].tolist() == ["bad_bytes"]
    table = {1: "aie_pc_events", 2: "aie_program_flow"}[mode]
    assert 0 < len(before.details[table]) - len(trace.details[table]) < 30
    assert np.count_nonzero(trace.instants["flags"])
