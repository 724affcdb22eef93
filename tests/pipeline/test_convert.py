"""`lanescope.convert` writes what the writers make of the trace."""

from __future__ import annotations

import json

import pytest

import lanescope
from chrome_whole import drawn
from lanescope import UsageError
from lanescope.analysis import check
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.io import chrome, parquet, perfetto
from lanescope.pipeline.sources import CaptureSource, InMemory
from track_events import packets

FAMILIES = [family.name for family in registry.builtin()]


def simulated(family, folder, seed=1):
    chosen = registry.family(family)
    made = chosen.simulate(resolve_options(chosen.sim_options, {}, what="sim"), seed)
    for name, data in made.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder / next(iter(made.files))


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.full if name in ("ascend", "levelzero") else ()) for name in FAMILIES]
)
def capture(request, tmp_path):
    return simulated(request.param, tmp_path)


def test_files_hold_what_the_writers_write(capture, tmp_path):
    trace = lanescope.open(capture)
    findings = check.to_table(check.run(trace))
    with CaptureSource(capture) as source:
        is_sorted = source.info.is_sorted
    batches = list(lanescope.iter_batches(capture))

    report = lanescope.convert(capture, tmp_path / "a.pftrace")
    perfetto.write(iter(batches) if is_sorted else trace, tmp_path / "b.pftrace", findings=findings, in_parts=is_sorted)
    a, b = ((tmp_path / name).read_bytes() for name in ("a.pftrace", "b.pftrace"))
    if a != b:  # which packets do, where it is not how they are compressed
        found = [[str(packet) for packet in packets(content)] for content in (a, b)]
        differing = [pair for pair in zip(*found, strict=False) if pair[0] != pair[1]]
        pytest.fail(f"{len(differing)} packets differ, of {len(found[0])} and {len(found[1])}: {differing[:2]}")
    assert report.written.bytes == (tmp_path / "a.pftrace").stat().st_size
    assert report.rows["slices"] == len(trace.slices)
    assert list(report.last.accounting.rows()) == list(trace.accounting.rows())

    lanescope.convert(capture, tmp_path / "a.json", findings=False)
    chrome.write(trace, tmp_path / "b.json")
    a, b = (json.loads((tmp_path / name).read_bytes()) for name in ("a.json", "b.json"))
    assert a["metadata"] == b["metadata"]
    assert drawn(a["traceEvents"], 0) == drawn(b["traceEvents"], 0)

    lanescope.convert(capture, tmp_path / "a.parquet")
    back = parquet.read(tmp_path / "a.parquet")
    assert {name: len(table) for name, table in back.tables().items()} == report.rows


def test_nothing_is_replaced_unasked(capture, tmp_path):
    for name in ("out.pftrace", "out.parquet"):
        lanescope.convert(capture, tmp_path / name)
        with pytest.raises(UsageError, match="already exists"):
            lanescope.convert(capture, tmp_path / name)
        lanescope.convert(capture, tmp_path / name, replace=True)


def test_a_format_has_to_be_known(tmp_path):
    capture = simulated("cuda", tmp_path)
    with pytest.raises(UsageError, match="cannot infer the format"):
        lanescope.convert(capture, tmp_path / "out.txt")
    with pytest.raises(UsageError, match="unknown format 'word'"):
        lanescope.convert(capture, tmp_path / "out.txt", format="word")
    assert not (tmp_path / "out.txt").exists()
    lanescope.convert(capture, tmp_path / "out.txt", format="chrome")
    assert json.loads((tmp_path / "out.txt").read_text())["traceEvents"]


def test_a_family_export_is_a_sink_too(tmp_path, monkeypatch):
    capture = simulated("aie", tmp_path)
    # It is found without a look for packages with further families, which takes longer the more packages there are.
    monkeypatch.setattr(registry, "plugin_families", None)
    report = lanescope.convert(capture, tmp_path / "out.json", format="mlir-aie")
    (export,) = (export for export in registry.family("aie").exports if export.name == "mlir-aie")
    assert (tmp_path / "out.json").read_bytes() == b"".join(export.blocks(lanescope.open(capture)))
    assert report.written.bytes == (tmp_path / "out.json").stat().st_size


def test_sources_say_what_their_batches_are(tmp_path):
    for family, is_sorted in (("aie", True), ("cuda", False)):
        capture = simulated(family, tmp_path / family)
        with CaptureSource(capture) as source:
            assert source.info == ((family,), is_sorted, False, capture.stat().st_size)
            first, second = (sum(len(batch.slices) for batch in source.batches()) for _ in range(2))
            assert first == second > 0
        lanescope.convert(capture, tmp_path / f"{family}.parquet")
        with CaptureSource(tmp_path / f"{family}.parquet") as source:
            assert source.info == ((family,), is_sorted, True, 0)
    trace = lanescope.open(tmp_path / "cuda.parquet")
    assert InMemory(trace).info == (("cuda",), False, True, 0)
    assert list(InMemory(lanescope.merge([trace])).batches()) == [trace]
