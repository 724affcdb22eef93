"""Batches of whole lanes are drawn one by one where memory is short: readers find the same events."""

import numpy as np
import pytest

import lanescope
from lanescope.devices.cuda import decoder
from lanescope.devices.cuda.emit import batches
from lanescope.pipeline.run import run
from lanescope.pipeline.sinks import make_sink
from lanescope.pipeline.sources import CaptureSource

CASES = {
    "tirx": {"layout": "tirx", "overflow": True, "holes": 9, "crossing": 4},
    "flashinfer2": {"layout": "flashinfer2", "overflow": True},
    "warpscope": {"layout": "warpscope", "overflow": True},
    "ls2-ring": {"layout": "ls2", "ring": True, "overflow": True},
    "ls2-instants": {"layout": "ls2", "instants": True, "refused": 20, "holes": 7},
    "ls2-joined": {"layout": "ls2", "across": True, "payload": True},
    "proton": {"layout": "proton", "overflow": True},
}
#: Those whose records join nothing over lanes; where some might, all is drawn at once.
WHOLE = ("tirx", "flashinfer2", "warpscope")


def events(path):
    """What a reader finds: lanes by their paths, and the rows of each table in one order."""
    trace = lanescope.open(path)
    tracks = trace.tracks
    names = tracks.values("name").tolist()
    parents = np.where(tracks.valid("parent_id"), tracks.values("parent_id"), -1).tolist()

    def path_of(track):
        return () if track < 0 else (*path_of(parents[track]), names[track])

    def rows(table, *columns):
        return sorted((path_of(row["track_id"]), *(str(row[name]) for name in columns)) for row in table.rows())

    flows = sorted((row["src_ts"], row["dst_ts"]) for row in trace.flows.rows())
    slices = rows(trace.slices, "ts", "dur", "name")
    return slices, rows(trace.instants, "ts", "name"), rows(trace.counters, "ts", "value"), flows


@pytest.fixture
def parts(monkeypatch):
    """Small captures come in parts, too."""
    monkeypatch.setattr(decoder, "WHOLE_BYTES", 1)
    monkeypatch.setattr(batches, "PART_RECORDS", 3_000)
    monkeypatch.setattr(batches, "_FEW_PARTS", 0)


@pytest.mark.parametrize("suffix", ["pftrace", "json"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_drawn_in_parts_is_what_is_drawn_at_once(case, suffix, parts, tmp_path):
    for name, content in lanescope.simulate("cuda", tiles=4, **CASES[case]).files.items():
        (tmp_path / name).write_bytes(content)
    main = tmp_path / next(iter(lanescope.simulate("cuda", tiles=4, **CASES[case]).files))
    drawn, sorted_ = [], []
    for spares in (False, True):
        out = tmp_path / f"{spares}.{suffix}"
        with CaptureSource(str(main), spares_memory=spares) as source:
            sorted_.append(source.info.is_sorted)
            assert len(list(source.batches())) > 2
            run(source, sink=make_sink(out, "perfetto" if suffix == "pftrace" else "chrome"))
        drawn.append(events(out))
    assert sorted_ == [False, case in WHOLE]
    assert drawn[0] == drawn[1]
