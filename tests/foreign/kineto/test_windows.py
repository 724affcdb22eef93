"""Files that are read in windows have the rows that they have when they are read as a whole."""

import gzip
import json

import numpy as np
import pytest

from foreign.kineto.oracle import FILES
from lanescope.errors import InputError
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.foreign.kineto import decoder
from lanescope.foreign.kineto.formats import layout
from lanescope.foreign.kineto.interpret.nesting import STRIDE, UNKNOWN, Nesting
from lanescope.pipeline.detection import capture
from lanescope.trace import Trace
from lanescope.wire.trace_events import TraceEventReader, TraceEvents

#: What the simulator can be told to get wrong, all at once.
FAULTS = {"overlaps": 3, "clamped": 2, "early": 2, "fast_copies": 1, "unexecuted": 3, "unlaunched": 3, "unreadable": 3}


def rows(trace):
    tables = {**trace.tables(), **trace.details}
    return {name: [*table.rows()] for name, table in tables.items()}


def decoded(path, monkeypatch, *, window, piece):
    """Decode a file that is fed in pieces, and of which no more than a window is kept; no window: all of it is."""
    if window is not None:
        monkeypatch.setattr(decoder, "WHOLE", 0)
        monkeypatch.setattr(decoder, "WINDOW", window)
        monkeypatch.setattr(decoder, "_PIECE", max(window // 3, 1))
    with capture(str(path)) as opened:
        made = decoder.KinetoDecoder(opened, {})
        content = memoryview(opened.main.read().data)
        for begin in range(0, len(content), piece):
            made.feed(content[begin : begin + piece])
        batches = [*made.finish()]
    monkeypatch.undo()
    return batches


def same(path, monkeypatch, windows):
    (whole,) = decoded(path, monkeypatch, window=None, piece=1 << 20)
    wanted = rows(whole)
    for window, piece in windows:
        batches = decoded(path, monkeypatch, window=window, piece=piece)
        found = rows(Trace.concat(batches))
        for name, table in wanted.items():
            assert found[name] == table, (name, window, piece)
    return len(batches)


def simulated(tmp_path, seed, **options):
    family = registry.family("kineto")
    done = family.simulate(resolve_options(family.sim_options, options, what="simulator"), seed)
    ((name, content),) = done.files.items()
    (tmp_path / name).write_bytes(content)
    return tmp_path / name


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", [{}, FAULTS, {"torn": True}, {"absolute": True, "base": False}, {"device": False}])
def test_windows_of_any_size_give_the_same_rows(tmp_path, monkeypatch, seed, options):
    path = simulated(tmp_path, seed, **options)
    draw = np.random.default_rng(seed)
    windows = [(int(draw.integers(500, 60_000)), int(draw.integers(50, 9_000))) for _ in range(3)]
    assert same(path, monkeypatch, [*windows, (2_000, 1_000)]) > 5


@pytest.mark.parametrize("name", FILES)
def test_windows_of_files_of_others_give_the_same_rows(corpus, tmp_path, monkeypatch, name):
    path = tmp_path / "file.json"
    path.write_bytes(gzip.decompress((corpus / "foreign" / f"{name}.json.gz").read_bytes()))
    size = path.stat().st_size
    if size > 6 << 20:
        pytest.skip("its rows take long to compare")
    same(path, monkeypatch, [(size // 7, 1 + size // 50)])


def test_a_file_that_changes_between_the_two_passes_is_an_error(tmp_path, monkeypatch):
    path = simulated(tmp_path, 1)
    content = path.read_bytes()
    monkeypatch.setattr(decoder, "WHOLE", 0)
    monkeypatch.setattr(decoder, "WINDOW", 5_000)
    with capture(str(path)) as opened:
        made = decoder.KinetoDecoder(opened, {})
        for begin in range(0, len(content), 1_000):
            made.feed(memoryview(content)[begin : begin + 1_000])
        begin = content.index(b"traceEvents") + 5_000
        with path.open("r+b") as file:
            file.seek(begin)
            file.write(b" " * 4_000)
        with pytest.raises(InputError, match="changed while it was read"):
            [*made.finish()]


def test_parts_of_a_text_are_all_of_it_together(tmp_path):
    content = simulated(tmp_path, 2).read_bytes()
    reader, parts = TraceEventReader(layout.ARGS), []
    for begin in range(0, len(content), 7_000):
        reader.feed(content[begin : begin + 7_000])
        part = reader.take()
        parts.append(part.taken(np.arange(len(part)), [*layout.ARGS]))
    last = reader.finish()
    parts.append(last.taken(np.arange(len(last)), [*layout.ARGS]))
    counts = [len(part) for part in parts]
    joined = TraceEvents.joined(parts)
    reader = TraceEventReader(layout.ARGS)
    reader.feed(content)
    whole = reader.finish()
    assert len(joined) == len(whole) == sum(counts)
    for name in ("begin", "flags", "name", "category", "ts", "dur", "place"):
        assert np.array_equal(getattr(joined, name), getattr(whole, name)), name
    assert joined.names == whole.names
    assert joined.places == whole.places
    assert np.array_equal(joined.ids.event, whole.ids.event)
    assert np.array_equal(joined.ids.value, whole.ids.value)
    for name, values in whole.values.items():
        assert np.array_equal(joined.values[name].event, values.event), name
        assert np.array_equal(joined.values[name].value, values.value), name
        assert np.array_equal(joined.values[name].odd, values.odd), name


@pytest.mark.parametrize("seed", range(20))
def test_lanes_that_clash_are_those_of_all_pairs(seed):
    draw = np.random.default_rng(seed)
    count = int(draw.integers(1, 120))
    lane = draw.integers(0, 6, count) * STRIDE + draw.choice([layout.OP, layout.WORK, UNKNOWN], count)
    begin = draw.integers(0, 4000, count)
    end = begin + draw.integers(0, 60, count) * draw.integers(0, 2, count)
    nesting = Nesting()
    for rows in np.array_split(np.arange(count), int(draw.integers(1, 5))):
        nesting.add(lane[rows].astype(np.int32), begin[rows], (end - begin)[rows])
    renamed = {
        place * STRIDE + UNKNOWN: place * STRIDE + (layout.OP if place % 2 else layout.RANGE) for place in range(6)
    }
    own = np.array([renamed.get(each, each) for each in lane.tolist()])
    wanted = dict.fromkeys(sorted(set(own.tolist())), False)
    for one in range(count):
        for other in range(count):
            inside = end[one] > begin[one] and end[other] > begin[other] and own[one] == own[other] and one != other
            if not inside or not begin[one] <= begin[other] < end[one]:
                continue
            crosses = begin[one] < begin[other] and end[other] > end[one]
            wanted[int(own[one])] |= bool(crosses or own[one] % STRIDE == layout.WORK)
    assert nesting.result(renamed) == wanted


def test_what_a_row_is_may_be_known_from_far_behind_it(tmp_path, monkeypatch):
    def row(name, category, ts, dur, pid, tid, **args):
        return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}

    many = [row(f"op {number}", "cpu_op", 10 * number, 8, 100, 100) for number in range(60)]
    memory = {"Device Type": 1, "Device Id": 0, "Total Allocated": 7, "Total Reserved": 9}
    events = [
        row("of a device", "mystery", 5, 3, 0, 7),
        row("of the host", "mystery", 5, 5, 100, 100),
        {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "pid": 100, "tid": 100, "ts": 3, "args": memory},
        {"ph": "C", "name": "use", "pid": 0, "tid": 0, "ts": 4, "args": {"": 3}},
        {"ph": "s", "id": 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": 100, "tid": 100, "ts": 20},
        row("cudaLaunchKernel", "cuda_runtime", 1, 2, 100, 200, correlation=5),
        *many,
        row("kernel", "kernel", 6, 4, 0, 7, correlation=5),
        row("again", "mystery", 6, 3, 0, 7),
        {"ph": "f", "id": 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": 100, "tid": 100, "ts": 50, "bp": "e"},
        {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "pid": 100, "tid": 100, "ts": 70, "args": memory},
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": events}))
    assert same(path, monkeypatch, [(300, 100), (1_000, 300), (3_000, 1_000)]) > 2
    (trace,) = decoded(path, monkeypatch, window=None, piece=1 << 20)
    lanes = {row["id"]: (row["name"], row["nesting"]) for row in trace.tracks.rows()}
    found = {row["name"]: lanes[row["track_id"]] for row in trace.slices.rows() if not row["name"].startswith("op ")}
    assert found == {
        "of a device": ("stream 7 other", "free"),
        "of the host": ("thread 100", "free"),
        "cudaLaunchKernel": ("thread 200", "nested"),
        "kernel": ("stream 7", "disjoint"),
        "again": ("stream 7 other", "free"),
    }
    assert [lanes[row["track_id"]][0] for row in trace.counters.rows()] == [
        "allocated memory", "reserved memory", "use", "allocated memory", "reserved memory",
    ]  # fmt: skip
    assert sorted(row["kind"] for row in trace.flows.rows()) == ["dependency", "submit"]
