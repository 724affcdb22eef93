"""What the tests of the Ascend family share: captures by hand, decoding without much ado."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from lanescope.devices.ascend.family import FAMILY
from lanescope.devices.ascend.formats.files import entries, read_records, terminated
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.devices.ascend.interpret.sidecars import Sidecars
from lanescope.errors import InputError
from lanescope.families.options import resolve_options
from lanescope.source import Capture
from lanescope.trace import Trace

GOLDEN = Path(__file__).parent / "golden"
CASES = ("v2_chain", "v3_cold_first", "v3_spec_dummy")
NAMINGS = ("l2", "chip")
CLOCK = 50_000_000


def text(content):
    """Return bytes as the reader wants them: with a NUL behind."""
    return terminated(np.frombuffer(content, np.uint8))


def read(content):
    """Read a records file from bytes, or from a Python object."""
    return read_records(text(content if isinstance(content, bytes) else json.dumps(content).encode()), "run.json")


def read_cut(content, size, whole):
    """Read the first bytes of a records file, and judge what was read by the whole file (``Records``).

    It is refused when no record, or not the level and the metadata, end within those bytes; else every element that
    ends there is read as it stands in the whole file, and nothing else. Return the records, None of a refused file.
    """
    needed = {whole.level_key} | (set() if whole.format_version.startswith("v1") else {"metadata"})
    spans = {key: (begin, end) for key, begin, end in entries(text(content), "run.json")}
    # A number that ends where the file does may have gone on.
    is_there = all(spans[key][1] + (key == whole.level_key) <= size for key in needed)
    expected = {
        name: int(np.count_nonzero(rows.end <= size)) if len(rows) else 0 for name, rows in whole.as_read.items()
    }
    if not is_there or not any(expected.values()):
        with pytest.raises(InputError, match=f"after byte {size}") as caught:
            read(content[:size])
        assert caught.value.exit_status == 3
        return None
    found = read(content[:size])
    assert {name: len(rows) for name, rows in found.as_read.items() if len(rows)} == {
        name: count for name, count in expected.items() if count
    }
    for name, rows in found.as_read.items():
        for cell in rows.layout.cells if len(rows) else ():
            kept = whole.as_read[name].end <= size
            assert np.array_equal(rows[cell.name], whole.as_read[name][cell.name][kept]), (name, cell.name)
    assert found.cut is not None
    ends = [int(rows.end.max()) for rows in found.as_read.values() if len(rows)]
    assert max(ends) <= found.cut <= size
    return found


def interpret(content):
    """Read a records file without neighbours and find out what it says."""
    return Interpreter(read(content), Sidecars())


def records(aicore=(), aicpu=(), *, level=2, key="l2_swimlane_level", cores=("aic", "aiv"), clock=CLOCK, **more):
    """Return a records file as a Python object; ``more`` are further keys, ``metadata`` extends the metadata."""
    metadata = {"clock_freq_hz": clock, "num_cores": len(cores), "core_types": list(cores), **more.pop("metadata", {})}
    return {key: level, "metadata": metadata, "aicore_tasks": list(aicore), "aicpu_tasks": list(aicpu), **more}


def graph(kernels=(), edges=()):
    """Return a task graph as a Python object: kernel ids by task, (pred, succ[, flags]) edges."""
    tasks = [{"task_id": str(task), "kernel_ids": list(slots)} for task, slots in dict(kernels).items()]
    rows = [
        {"pred": str(pred), "succ": str(succ), **({"flags": flags[0]} if flags else {})} for pred, succ, *flags in edges
    ]
    return {"tasks": tasks, "edges": rows}


def decode(content, *, deps=None, beside=None, name="chip_swimlane_records.json", chunk=1 << 20, **options) -> Trace:
    """Decode a records file (bytes or a Python object) with its sidecar files (content by name)."""
    files = {name: content, **({} if deps is None else {"deps.json": deps}), **(beside or {})}
    with tempfile.TemporaryDirectory() as folder:
        for part, value in files.items():
            Path(folder, part).parent.mkdir(exist_ok=True)
            Path(folder, part).write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
        return decode_file(Path(folder, name), chunk=chunk, **options)


def decode_file(path, *, chunk=1 << 20, **options) -> Trace:
    """Decode a file in pieces of ``chunk`` bytes."""
    with Capture(path) as capture:
        decoder = FAMILY.decode(capture, resolve_options(FAMILY.options, options, what="family ascend"))
        batches = [batch for piece in capture.main.chunks(chunk) for batch in decoder.feed(piece)]
        return Trace.concat([*batches, *decoder.finish()])


def golden(case, naming, **options) -> Trace:
    """Decode a golden capture."""
    return decode_file(GOLDEN / case / f"{naming}_swimlane_records.json", **options)


@cache
def simulated(seed=1, **options):
    """Simulate a capture: its files and its truth."""
    return FAMILY.simulate(resolve_options(FAMILY.sim_options, options, what="simulator"), seed)


def decode_simulated(simulation, **options) -> Trace:
    """Decode what the simulator wrote."""
    (name, content), *beside = simulation.files.items()
    return decode(content, name=name, beside=dict(beside), **options)


def stats(trace):
    """Return the counts of the stats by name."""
    counts = {}
    for row in trace.stats.rows():
        counts[row["name"]] = counts.get(row["name"], 0) + row["count"]
    return counts


def tasks(trace, *columns):
    """Return the executions in the order of the file: label and what is asked for."""
    return [tuple(row[name] for name in ("label", *columns)) for row in trace.details["ascend_tasks"].rows()]


def lane(trace, name, role=None):
    """Return (name, begin, length) of the slices of a lane, by time; of a core itself, not of its flights."""
    roles = trace.tracks["role"]
    mine = (roles != "flight") if role is None else roles == role
    (track,) = np.flatnonzero((trace.tracks["name"] == name) & mine).tolist()
    rows = [row for row in trace.slices.rows() if row["track_id"] == track]
    return sorted(((row["name"], row["ts"], row["dur"]) for row in rows), key=lambda row: (row[1], -(row[2] or 0)))


def edges(trace):
    """Return (producer, consumer, end of the producer, begin of the consumer) of the arrows, by task number."""
    table = trace.details["ascend_edges"]
    table = table.where(table.valid("flow_id"))
    low = 0xFFFFFFFF
    ends = zip(
        table["pred_task_id"].tolist(),
        table["succ_task_id"].tolist(),
        trace.flows["src_ts"][table["flow_id"]].tolist(),
        trace.flows["dst_ts"][table["flow_id"]].tolist(),
        strict=True,
    )
    return [(pred & low, succ & low, begin, end) for pred, succ, begin, end in ends]


def dependencies(trace):
    """Return the flows that stand for edges of the task graph."""
    return trace.flows.where(trace.flows["kind"] == "dependency")


def gaps(trace):
    """Return (lane, begin, length, lost records) of the gaps."""
    names = trace.tracks["name"]
    return [(names[row["track_id"]], row["ts"], row["dur"], row["lost_count"]) for row in trace.gaps.rows()]


def recorded(trace, role="core"):
    """Return until when each lane of a role was recorded, ns; all begin with the capture."""
    rows = {row["track_id"]: (row["ts"], row["dur"]) for row in trace.coverage.rows()}
    lanes = [row for row in trace.tracks.rows() if row["role"] == role and row["kind"] == "lane"]
    assert {ts for ts, _ in rows.values()} <= {0}
    return {lane["name"]: rows[lane["id"]][1] for lane in lanes if lane["id"] in rows}


def listing(trace):
    """Return every table as lists of rows, for comparison."""
    return {name: list(table.rows()) for name, table in trace.tables().items()}


def assert_all_bytes_count(content, found, name):
    """The bytes of a sidecar file are all accounted for: as its reader counted them (``Tally``), and in a trace."""
    assert found.good_bytes + found.bad_bytes <= len(content)
    trace = decode(records([[0, 1, 1, 2000, 3000, 0]], level=1), beside={name: content})
    (account,) = (row for row in trace.accounting.rows() if row["input_id"] == 1 and row["scope"] == "input")
    assert (account["total"], account["lost"]) == (len(content), found.bad_bytes)
