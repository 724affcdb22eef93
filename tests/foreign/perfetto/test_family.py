"""The family as a whole: its promises, its simulator's truth, damage to the files."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import some
from foreign.perfetto.made import packets_of
from lanescope.errors import UsageError
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.foreign.perfetto.decoder import PerfettoDecoder
from lanescope.foreign.perfetto.formats.packets import PacketReader
from lanescope.source import Capture, FileHead
from lanescope.testing import assert_accounted, assert_consistent, assert_same, check_family
from lanescope.trace import Trace

FAMILY = registry.family("perfetto")


def simulated(seed=1, **options):
    return FAMILY.simulate(resolve_options(FAMILY.sim_options, options, what="perfetto"), seed)


def content_of(**options) -> bytes:
    return simulated(**options).files["run.pftrace"]


def written(content: bytes, folder):
    """Return the file with a content, not written over: a trace that was read from it may still read arguments."""
    path = folder / "run.pftrace"
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)
    return path


def decoded(content: bytes, folder, cut: int = 0) -> Trace:
    with Capture(written(content, folder)) as capture:
        decoder = PerfettoDecoder(capture, {})
        for begin in range(0, len(content), cut or max(len(content), 1)):
            decoder.feed(memoryview(content)[begin : begin + (cut or len(content))])
        (trace,) = decoder.finish()
    return trace


def decoded_by_events(content: bytes, folder) -> Trace:
    """Read a file the way of those whose events are out of order."""
    with Capture(written(content, folder)) as capture:
        decoder = PerfettoDecoder(capture, {})
        decoder._reader = PacketReader(len(content), keeps_events=True)
        decoder.feed(memoryview(content))
        (trace,) = decoder.finish()
    return trace


def by_thread(trace, table, *columns):
    names = {row["id"]: row["name"] for row in trace.tracks.rows()}

    def thread(name):
        return int(name.split()[1])

    return Counter((thread(names[row["track_id"]]), *(row[name] for name in columns)) for row in table.rows())


@pytest.mark.parametrize(
    "options", [{}, {"lost": 0.3}, {"style": "plain"}, {"compressed": True}, {"samples": 0, "other": 0}]
)
def test_the_family_keeps_what_all_families_promise(options):
    check_family(FAMILY, options=options)


@pytest.mark.parametrize("style", ["sdk", "plain"])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("lost", [0.0, 0.3])
def test_the_rows_are_the_truth(style, compressed, lost, tmp_path):
    simulation = simulated(style=style, compressed=compressed, lost=lost)
    trace, truth = decoded(simulation.files["run.pftrace"], tmp_path), simulation.truth
    zero = trace.time.epoch_ns
    assert by_thread(trace, trace.slices, "ts", "dur", "name") == Counter(
        (thread, ts - zero, dur, name) for thread, ts, dur, name in truth["slices"]
    )
    assert by_thread(trace, trace.instants, "ts") == Counter((thread, ts - zero) for thread, ts in truth["instants"])
    assert by_thread(trace, trace.counters, "ts", "value") == Counter(
        (thread, ts - zero, value) for thread, ts, value in truth["samples"]
    )
    assert len(trace.flows) == truth["flows"] > 0
    missing = trace.stats.where(trace.stats["name"] == "perfetto_missing_state")
    assert missing["count"].sum() == truth["lost"]
    assert (truth["lost"] > 0) == (lost > 0 and style == "sdk") == (len(trace.gaps) > 0)
    other = trace.details["perfetto_packets"]
    assert [(row["source"], row["packets"]) for row in other.rows()] == [("system_info", truth["other"])]


def test_a_whole_trace_has_no_losses(tmp_path):
    trace = decoded(content_of(), tmp_path)
    assert set(trace.stats["name"]) == {"perfetto_other_packet", "perfetto_flow_unmatched"}
    assert_accounted(trace, lost=0)


def rows_of(trace: Trace) -> dict[str, Counter]:
    """Return the rows of all tables with tracks, slices and instants by what they are, not by their numbers."""
    tables = trace.tables()
    tracks = [(row["name"], row["kind"], row["nesting"]) for row in trace.tracks.rows()]
    known = {"track_id": tracks, "src_track_id": tracks, "dst_track_id": tracks}
    for table, column in (("slices", "slice_id"), ("instants", "instant_id")):
        rows = tables[table].rows()
        named = [(tracks[row["track_id"]], row["name"], row["ts"], row.get("dur")) for row in rows]
        known |= (
            {column: named} if table == "instants" else dict.fromkeys((column, "src_slice_id", "dst_slice_id"), named)
        )

    def row_of(row):
        return tuple(
            known[name][value] if name in known and value is not None else value
            for name, value in row.items()
            if name not in ("id", "source")
        )

    names = ("tracks", "slices", "instants", "counters", "flows", "gaps", "stats", *trace.details)
    return {name: Counter(map(row_of, tables[name].rows())) for name in names}


@pytest.mark.parametrize("options", [{}, {"style": "plain"}, {"lost": 0.3}, {"compressed": True}])
def test_slices_found_on_the_way_are_those_found_from_all_events(options, tmp_path):
    content = content_of(**options)
    reader = PacketReader()
    reader.feed(memoryview(content))
    assert not reader.needs_events
    assert rows_of(decoded(content, tmp_path)) == rows_of(decoded_by_events(content, tmp_path))


@pytest.mark.parametrize("cut", [1, 7, 100, 4096])
@pytest.mark.parametrize("compressed", [False, True])
def test_how_the_file_is_cut_changes_nothing(cut, compressed, tmp_path):
    content = content_of(slices=50, compressed=compressed, lost=0.2)
    content = content[:1000] + b"\xff\x00garbage\n\n" + content[1000:-3]
    assert_same(decoded(content, tmp_path, cut), decoded(content, tmp_path))


def test_a_truncated_file_is_accounted_for(tmp_path):
    content = content_of(slices=5, threads=1, samples=5)
    for size in range(len(content)):
        trace = decoded(content[:size], tmp_path)
        assert_accounted(trace)
        names = trace.stats["name"].tolist()
        (row,) = trace.accounting.rows()
        assert ("truncated" in names) == (row["lost"] > 0)
        assert row["lost"] < 200, "more than the last packet"


@pytest.mark.parametrize(
    "damage", [b"", b"\x00", b"\n", b"\n\x05\x08", b"\xff" * 40, b"noise of any kind", b"\n\xff\xff\xff\x7f"]
)
def test_bytes_between_packets_are_lost_and_nothing_else(damage, tmp_path):
    whole = content_of(style="plain", slices=30)
    ends = _packet_ends(whole)
    place = ends[len(ends) // 2]
    trace = decoded(whole[:place] + damage + whole[place:], tmp_path)
    assert_accounted(trace, lost=len(damage))
    assert len(trace.slices) == len(decoded(whole, tmp_path).slices)
    bad = trace.stats.where(trace.stats["name"] == "perfetto_bad_bytes")
    assert bad["count"].sum() == len(damage)
    if damage:
        assert bad["first_offset"].tolist() == [place]


def _packet_ends(content: bytes) -> list[int]:
    return list(accumulate(size for size, _ in packets_of(content)))


@settings(max_examples=some(400), deadline=None)
@given(st.data())
def test_any_bytes_are_read_or_lost(data):
    content = bytearray(content_of(slices=8, threads=2, samples=3, seed=data.draw(st.integers(0, 3))))
    for _ in range(data.draw(st.integers(0, 8))):
        place = data.draw(st.integers(0, len(content) - 1))
        kind = data.draw(st.sampled_from(["set", "cut", "insert"]))
        if kind == "set":
            content[place] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del content[place : place + data.draw(st.integers(1, 40))]
        else:
            content[place:place] = data.draw(st.binary(max_size=40))
        if not content:
            return
    _read_whole(bytes(content), data.draw(st.integers(1, 500)))


@settings(max_examples=some(400), deadline=None)
@given(st.binary(max_size=400), st.integers(1, 50))
def test_noise_is_read_or_lost(content, cut):
    _read_whole(b"\n" + content, cut)


def _read_whole(content: bytes, cut: int) -> None:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        trace = decoded(content, Path(folder))
        assert_consistent(trace)
        assert_accounted(trace)
        assert_same(decoded(content, Path(folder), cut), trace)
        for name in ("perfetto_slices", "perfetto_instants"):
            for text in trace.details[name]["arguments"].tolist():
                assert text.startswith("{")
        for table in trace.records.values():
            assert len(table) >= 0


def test_a_reader_keeps_no_more_than_a_packet():
    content = content_of(slices=200)
    reader = PacketReader()
    most = 0
    for begin in range(0, len(content), 100):
        reader.feed(memoryview(content)[begin : begin + 100])
        most = max(most, len(reader._rest))
    assert most < 400
    assert reader.finish().size == len(content)


# --- detection -----------------------------------------------------------------------------------------------------


def score(content: bytes, name: str = "run") -> int:
    return FAMILY.detect(FileHead(content[: 1 << 16], len(content), name)).score


@pytest.mark.parametrize(
    "options", [{}, {"style": "plain"}, {"compressed": True}, {"slices": 9000, "compressed": True}]
)
def test_traces_are_detected_whole_and_cut(options):
    content = content_of(**options)
    assert score(content) >= 90 or len(content) > 1 << 16
    assert score(content) >= 50
    assert score(content[: len(content) * 2 // 3]) >= 50


@pytest.mark.parametrize(
    "content", [b"\n", b"\n\n", b"\n" * 70000, b'\n{"traceEvents": []}', b"\n\x00" * 100, b"\n\x02\x08\x01"]
)
def test_other_files_are_not(content):
    assert score(content) < 50


def test_noise_behind_a_line_feed_is_not_a_trace():
    noise = np.random.default_rng(1)
    for _ in range(3000):
        assert score(b"\n" + noise.bytes(int(noise.integers(1, 300)))) < 50


def test_a_gzipped_trace_is_read(tmp_path):
    import gzip

    content = content_of()
    path = tmp_path / "run.pftrace.gz"
    path.write_bytes(gzip.compress(content))
    assert_accounted(lanescope.open(path), lost=0)
    assert len(lanescope.open(path).slices) == len(decoded(content, tmp_path).slices)


def test_an_unknown_style_is_refused():
    with pytest.raises(UsageError, match="choose from sdk, plain"):
        simulated(style="other")


@pytest.mark.parametrize("is_in_order", [True, False])
def test_bytes_in_memory_are_read_as_files_are(is_in_order, tmp_path):
    content = content_of(style="plain")
    if not is_in_order:
        ends = _packet_ends(content)
        content += content[: ends[40]]
    reader = PacketReader()
    reader.feed(memoryview(content))
    assert reader.needs_events != is_in_order
    trace = lanescope.open(content, family="perfetto")
    assert rows_of(trace) == rows_of(decoded(content, tmp_path))
    assert len(trace.records["perfetto.events"]) > len(trace.slices)
    assert rows_of(pickle.loads(pickle.dumps(trace))) == rows_of(trace)
