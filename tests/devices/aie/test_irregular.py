"""Everything irregular that dumps have been seen to hold, one case each: told, placed, accounted for, never misread."""

import json
from collections import Counter

import numpy as np
import pytest

import lanescope
from devices.aie.recordings import Recordings
from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.encode import Frames

FIRST, SECOND = encode.header(0, 1, 2, 1), encode.header(3, 1, 1, 2)


def recording(runs, header=FIRST, timer=100):
    """Packets of one recording: runs of (mask, cycles)."""
    mask, length = (np.array(column) for column in zip(*runs, strict=True))
    frames = Frames.join([encode.start(timer), encode.encode_runs(mask.astype(np.uint8), length.astype(np.int64))])
    return encode.packets(header, encode.pack(frames))


# Long enough for several packets: 30 pulses of slot 0, some cycles apart, each of another distance.
PULSES = [run for gap in range(200, 230) for run in ((0, gap), (1, 1))]
SPANS = [(0, 1 + 2 * 0 + sum(range(200, 200 + i + 1)) + i, 1) for i in range(30)]


def opened(tmp_path, words, *, tail=b"", name="run.bin", **options):
    path = tmp_path / name
    path.write_bytes(np.concatenate([np.ravel(part) for part in words]).astype("<u4").tobytes() + tail)
    return lanescope.open(path, family="aie", **options)


def spans(trace):
    names, recordings = trace.tracks["name"], Recordings(trace)
    found = []
    for row in trace.slices.rows():
        begin = recordings.begin(recordings.of(row["track_id"], row["ts"]))
        found.append((int(names[row["track_id"]].split()[1]), row["ts"] - begin, row["dur"]))
    return sorted(found)


def stats(trace):
    counts = Counter()
    for row in trace.stats.rows():
        counts[row["name"]] += row["count"]
    return dict(counts)


def units(trace, layer):
    row = list(trace.accounting.rows())[layer]
    assert row["total"] == row["decoded"] + row["padding"] + row["lost"]
    return row


def invalid_header(tmp_path):
    packets = recording(PULSES)
    packets[1, 0] ^= 1 << 24
    trace = opened(tmp_path, [packets, recording(PULSES, SECOND)])
    assert stats(trace)["aie_bad_header"] == 1
    assert next(row for row in trace.stats.rows() if row["name"] == "aie_bad_header")["first_offset"] == 32
    assert units(trace, 1)["lost"] == 8, "the packet is lost, and nothing goes to another tile"
    assert len(trace.gaps)
    other = [row for row in trace.details["aie_segments"].rows() if row["module"] == "memtile"]
    assert [(row["dur_cycles"], row["is_lossless"]) for row in other] == [(sum(n for _, n in PULSES) + 1, True)]


def invalid_first_header(tmp_path):
    packets = recording(PULSES)
    packets[0, 0] ^= 1 << 31
    trace = opened(tmp_path, [recording(PULSES, SECOND), packets])
    found = stats(trace)
    assert found["aie_bad_header"] >= 1
    assert found["aie_bad_header"] + found.get("aie_unknown_mode_packet", 0) == len(packets)
    # Without its Start nothing of the source can be placed in time.
    assert {row["module"] for row in trace.details["aie_segments"].rows()} == {"memtile"}
    assert spans(trace) == SPANS
    assert units(trace, 1)["lost"] == 8 * len(packets)


def head_cut_inside_the_first_packet(tmp_path):
    # The other unit's first packet stands between two of the unit whose Start is gone, out of step with the file.
    first, second = recording(PULSES), recording(PULSES, SECOND)
    mixed = [first[0], second[0], *(part[i] for i in range(1, len(first)) for part in (first, second))]
    for cut in range(1, 8):
        trace = opened(tmp_path, [np.concatenate(mixed)[cut:]])
        assert spans(trace) == SPANS
        found = stats(trace)
        assert found["aie_unknown_mode_packet"] == len(first) - 1
        assert units(trace, 1)["lost"] == 8 * len(first) - cut


def incomplete_last_packet(tmp_path):
    packets = recording(PULSES)
    trace = opened(tmp_path, [packets[:-1], packets[-1, :5]], tail=b"\x12\x34")
    assert stats(trace)["truncated"] >= 1
    assert units(trace, 0)["lost"] + units(trace, 1)["lost"] * 4 == 5 * 4 + 2
    assert set(spans(trace)) <= set(SPANS)
    assert stats(trace)["aie_missing_stop"] == 1


def blank_line(tmp_path):
    lines = encode.text(recording(PULSES).ravel()).splitlines(keepends=True)
    path = tmp_path / "trace.txt"
    path.write_bytes(b"".join([*lines[:8], b"\n", *lines[8:]]))
    trace = lanescope.open(path)
    assert spans(trace) == SPANS, "a blank line does not end the data"
    assert units(trace, 0)["lost"] == 0


def payload_of_a5(tmp_path):
    # a5 a5 a5 is a Single2 of slot 1 behind 0x1a5a5 quiet cycles; it is data like any other.
    frames = Frames.join([encode.start(1), encode.encode_runs(np.array([0, 2]), np.array([0x1A5A5, 1]))])
    packets = encode.packets(FIRST, encode.pack(frames))
    packets[0, 3] = 0xA5A5A5A5
    trace = opened(tmp_path, [packets])
    assert (1, 0x1A5A5 + 1, 1) in spans(trace)


def filler_and_zeros_end_a_part(tmp_path):
    first, second = recording(PULSES), recording(PULSES, SECOND)
    trace = opened(tmp_path, [first, np.zeros(2, np.uint32), second])
    assert spans(trace) == sorted(SPANS * 2), "the words after it are another part, not lost"
    assert units(trace, 1)["lost"] == 0


def zeros_part_segments(tmp_path):
    trace = opened(tmp_path, [recording(PULSES), np.zeros(20, np.uint32), recording(PULSES)])
    assert stats(trace)["aie_zero_run"] == 1
    assert [row["segment_index"] for row in trace.details["aie_segments"].rows()] == [1, 2]
    assert spans(trace) == sorted(SPANS * 2)


def zero_word_first(tmp_path):
    trace = opened(tmp_path, [np.zeros(1, np.uint32), recording(PULSES)])
    assert spans(trace) == SPANS
    assert units(trace, 1)["padding"] >= 1
    assert units(trace, 1)["lost"] == 0


def less_than_two_words(tmp_path):
    trace = opened(tmp_path, [np.array([FIRST], np.uint32)])
    assert len(trace.slices) == 0
    assert units(trace, 0)["lost"] + 4 * (units(trace, 1)["lost"] if len(trace.accounting) > 1 else 0) == 4


def zero_payload_word(tmp_path):
    packets = recording(PULSES)
    packets[1, 3] = 0
    trace = opened(tmp_path, [packets])
    assert stats(trace)["aie_zero_word"] == 1
    assert units(trace, 1)["lost"] == 1
    assert all(dur == 1 for _, _, dur in spans(trace)), "no phantom events of slot 0"
    assert len(spans(trace)) < 30


def unconfigured_tile(tmp_path):
    config = {"tiles": [{"type": "core", "col": 1, "row": 3, "events": ["INSTR_VECTOR"]}]}
    (tmp_path / "run.config.json").write_text(json.dumps(config))
    trace = opened(tmp_path, [recording(PULSES)])
    assert stats(trace)["aie_unknown_tile"] == 1
    assert spans(trace) == SPANS, "it is decoded, only without names"


CASES = (
    invalid_header,
    invalid_first_header,
    head_cut_inside_the_first_packet,
    incomplete_last_packet,
    blank_line,
    payload_of_a5,
    filler_and_zeros_end_a_part,
    zeros_part_segments,
    zero_word_first,
    less_than_two_words,
    zero_payload_word,
    unconfigured_tile,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_irregular(case, tmp_path):
    case(tmp_path)


def test_the_regular_case(tmp_path):
    trace = opened(tmp_path, [recording(PULSES)])
    assert spans(trace) == SPANS
    assert stats(trace) == {"aie_odd_packets": 1}
    assert units(trace, 1)["lost"] == 0
