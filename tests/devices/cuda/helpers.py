"""What the tests of the CUDA family share: buffers by hand, decoding without much ado."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

from lanescope.devices.cuda.family import FAMILY
from lanescope.devices.cuda.formats.encode import ls2 as encode_ls2
from lanescope.devices.cuda.formats.encode import strided
from lanescope.devices.cuda.formats.layout import BEGIN, END, FINALIZE, INSTANT
from lanescope.families.options import resolve_options
from lanescope.source import Capture
from lanescope.trace import Flag, Trace

GOLDEN = Path(__file__).parent / "golden"
NO_NAMES: dict[str, bytes] = {}
KINDS = {"B": BEGIN, "E": END, "I": INSTANT, "F": FINALIZE}


def buffer(lanes, *, blocks=1, groups=None, stride=0, slots=0):
    """Return words: ``lanes`` lists the records of each lane as (kind letter, event, time)."""
    groups = groups or -(-len(lanes) // blocks)
    rows = [(lane, e, KINDS[k], t) for lane, records in enumerate(lanes) for k, e, t in records]
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    words, _ = strided.encode(
        strided.Records(*columns), num_blocks=blocks, num_groups=groups, stride=stride, slots=slots
    )
    return words


LS2_LETTERS = dict(zip("BEIcbeof", range(8), strict=True))


def ls2(lanes, *, groups=1, capacity=64, words=1, ring=False, states=None, begin=None, end=None, clock=0):
    """Return an LS2 buffer; ``lanes`` lists the records of each lane as (kind letter, event, time, token, payload)."""
    rows = []
    for lane, records in enumerate(lanes):
        for record in records:
            kind, event, time, token, payload = (*record, *(0, 0, 0)[: 5 - len(record)])
            rows.append((lane, event, LS2_LETTERS[kind], time, token, payload))
    columns = list(np.array(rows, np.int64).reshape(-1, 6).T)
    records = encode_ls2.Ls2Records(*columns[:5], columns[5].astype(np.uint64))
    count = len(lanes)
    times = [[record[2] for record in records] or [0] for records in lanes]
    first = [min(row) for row in times] if begin is None else begin
    last = [max(row) for row in times] if end is None else end
    states = [3] * count if states is None else states
    heads = encode_ls2.lane_heads(
        count,
        state=states,
        begin_ns=first,
        begin_cycles=first,
        end_ns=last,
        end_cycles=last,
        sm=np.arange(count) // groups,
    )
    setup = encode_ls2.Ls2Setup(count // groups, groups, capacity, record_words=words, is_ring=ring, clock=clock)
    return encode_ls2.encode(records, setup, heads)[0]


def decode(content, *, beside=NO_NAMES, name="run.npy", chunk=1 << 20, **options) -> Trace:
    """Decode words (as an .npy file) or bytes (as they are); ``beside`` are further files by name."""
    data = content if isinstance(content, bytes) else strided.to_npy(content)
    with tempfile.TemporaryDirectory() as folder:
        for other, text in beside.items():
            Path(folder, other).write_bytes(text)
        path = Path(folder, name)
        path.write_bytes(data)
        with Capture(path) as capture:
            decoder = FAMILY.decode(capture, resolve_options(FAMILY.options, options, what="family cuda"))
            batches = [trace for piece in capture.main.chunks(chunk) for trace in decoder.feed(piece)]
            return Trace.concat([*batches, *decoder.finish()])


def simulate(seed=0, **options):
    return FAMILY.simulate(resolve_options(FAMILY.sim_options, options, what="simulator cuda"), seed)


def decode_simulation(simulation, **options) -> Trace:
    (name, data), *others = simulation.files.items()
    return decode(data, name=name, beside=dict(others), **options)


def stats(trace) -> dict[str, int]:
    """Return the counts of the stats by name; those of lanes are added up."""
    counts: dict[str, int] = {}
    for row in trace.stats.rows():
        counts[row["name"]] = counts.get(row["name"], 0) + row["count"]
    return counts


def stat(trace, name):
    return next(row for row in trace.stats.rows() if row["name"] == name)


def spans(trace, *, origin=0):
    """Return (block, group, event, name, begin, end, length, flags) of every slice; NULL is None."""
    rows = zip(trace.slices.rows(), trace.details["cuda_regions"].rows(), strict=True)
    return [
        (
            region["block"],
            region["group"],
            region["event_id"],
            row["name"],
            row["ts"] + origin,
            None if row["dur"] is None else row["ts"] + row["dur"] + origin,
            row["dur"],
            Flag(row["flags"]),
        )
        for row, region in rows
    ]


def instants(trace, *, origin=0):
    """Return (block, group, event, name, time) of every instant."""
    rows = zip(trace.instants.rows(), trace.details["cuda_instants"].rows(), strict=True)
    return [(m["block"], m["group"], m["event_id"], row["name"], row["ts"] + origin) for row, m in rows]


def gaps(trace):
    """Return (block, group, cause, lost) of every gap."""
    lanes = {row["track_id"]: (row["block"], row["group"]) for row in trace.details["cuda_lanes"].rows()}
    return [(*lanes[row["track_id"]], row["cause"], row["lost_count"]) for row in trace.gaps.rows()]


def accounts(trace) -> dict[str, dict[str, int]]:
    """Return the accounting of the main file by unit."""
    return {row["unit"]: row for row in trace.accounting.rows() if row["input_id"] == 0}


def lanes(trace):
    return {(row["block"], row["group"]): row for row in trace.details["cuda_lanes"].rows()}


def json_file(tmp_path, content, **form):
    """Write a JSON file, or a text as it is, and return its path."""
    path = tmp_path / "run.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content, **form))
    return path
