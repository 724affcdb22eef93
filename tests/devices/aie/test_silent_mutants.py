"""Damaged public captures without a configuration: which damage is found, and why the rest cannot be.

What stays silent is what some other run could have written bit for bit: each unit's words are its only encoding of what
they mean, and units that started together have one length. No reader can tell such a capture from an intact one.
"""

import random
from collections import Counter

import numpy as np
import pytest

import lanescope
from effort import some
from lanescope.devices.aie.formats.canonical import departures
from lanescope.devices.aie.formats.layout import decode_stream
from lanescope.devices.aie.formats.raw_frames import Packets, Words

CAPTURES = ("mode0_add_one_objfifo_r0", "mode1_mixed_r0", "mode2_mixed_r0")
KINDS = ("dropped", "repeated", "exchanged", "moved", "flipped", "zeroed")
NOTE = "aie_odd_packets"


def damaged(packets, kind, rng):
    """One mutant."""
    found = packets.copy()
    at = rng.randrange(len(found))
    match kind:
        case "dropped":
            return np.delete(found, at, axis=0)
        case "repeated":
            return np.insert(found, at, found[at], axis=0)
        case "exchanged":
            other = rng.choice([i for i in range(len(found)) if found[i, 0] == found[at, 0] and i != at])
            found[[at, other]] = found[[other, at]]
        case "moved":
            found[at, 0] = next(header for header in found[:, 0] if header != found[at, 0])
        case "flipped":
            found[at, rng.randrange(1, 8)] ^= np.uint32(1 << rng.randrange(32))
        case "zeroed":
            found[at, rng.randrange(1, 8)] = 0
    return found


def told(trace):
    """All that a trace says."""
    tables = (trace.slices, trace.instants, *(trace.details[name] for name in ("aie_pc_events", "aie_program_flow")))
    return [sorted(str(row) for row in table.rows()) for table in tables]


@pytest.mark.parametrize("name", CAPTURES)
def test_what_stays_silent_is_what_another_run_could_have_written(corpus, tmp_path, name):
    words = np.fromfile(corpus / "aie" / f"{name}.bin", "<u4")
    packets = words[: len(words) // 8 * 8].reshape(-1, 8)
    packets = packets[packets.any(axis=1)]
    path = tmp_path / "run.bin"
    path.write_bytes(packets.tobytes())
    intact = lanescope.open(path, family="aie")
    known, whole = set(intact.stats["name"]), told(intact)
    assert NOTE not in known
    rng = random.Random(7)
    result = Counter()
    for kind in KINDS * some(30, 8):
        mutant = damaged(packets, kind, rng)
        path.write_bytes(mutant.tobytes())
        trace = lanescope.open(path, family="aie")
        said = set(trace.stats["name"]) - known
        if said:
            result[kind, "note" if said == {NOTE} else "found"] += 1
            continue
        if told(trace) == whole:
            continue
        result[kind, "silent"] += 1
        read = Words.of(np.frombuffer(mutant.tobytes(), np.uint8))
        split = Packets.of(read)
        assert len(mutant) % 2 == 0
        for source in range(len(split.headers)):
            frames = list(decode_stream(read.values[split.payload(source)].tolist()))
            assert list(departures(frames)) == []
    # A packet too many or too few is always told at least by their number.
    assert result["dropped", "silent"] == result["repeated", "silent"] == 0
    if name == CAPTURES[0]:
        # Two units of event-time, and one length: whatever changes when is found.
        for kind in ("dropped", "repeated", "moved", "zeroed"):
            assert {what for k, what in result if k == kind} == {"found"}
    assert sum(n for (_, what), n in result.items() if what == "found") > 0.4 * result.total()
