"""Windows that reach the decoder: the result is the window of the whole, and rows outside of it are never made."""

import pytest

import lanescope
from lanescope.devices.aie import decoder as aie
from lanescope.devices.cuda.emit import batches as cuda
from lanescope.foreign.kineto import decoder as kineto
from lanescope.pipeline.sources import CaptureSource
from lanescope.trace.streams import TracePart

CAPTURES = {
    "kineto": [
        {"steps": 3, "clamped": 3, "overlaps": 2, "early": 2},
        {"steps": 2, "unlaunched": 4, "unexecuted": 3, "absolute": True},
    ],
    "perfetto": [{}, {"style": "plain", "lost": 0.1}],
    "aie": [{"records": 4000}, {"runs": 3, "overruns": 2}, {"mode": 1}, {"mode": 2}],
    "cuda": [
        {"blocks": 8, "sms": 3},
        {"blocks": 6, "unfinished": 3, "clock_step": 2, "instants": True},
        {"blocks": 4, "stale": 3, "launches": 2},
        {"layout": "flashinfer2", "blocks": 8, "sms": 3, "tiles": 3},
    ],
}
CASES = [(family, options) for family, several in CAPTURES.items() for options in several]


def tables(trace):
    """Return the rows of all tables; inputs say what was asked for in other words."""
    return {name: list(table.rows()) for name, table in trace.tables().items() if name != "inputs"}


def written(folder, family, seed, **options):
    made = lanescope.simulate(family, seed=seed, **options)
    for name, content in made.files.items():
        (folder / name).write_bytes(content)
    return folder / next(iter(made.files))


def windows(trace):
    """Return windows: a middle part, the begin, the end, one moment, and one behind everything."""
    begins = trace.slices["ts"] if len(trace.slices) else trace.instants["ts"]
    first, last = int(begins.min()), int(begins.max())
    third = (last - first) // 3
    yield {"start": first + third, "end": first + third + third // 2}
    yield {"end": first + third // 4 + 1}
    yield {"start": last - third // 8}
    yield {"start": first + third, "end": first + third + 1}
    yield {"start": last + 10**12}


@pytest.fixture(params=["whole", "in pieces"])
def pieces(request, monkeypatch):
    """Read small files as large ones are read, too."""
    if request.param == "in pieces":
        monkeypatch.setattr(kineto, "WHOLE", 1 << 12)
        monkeypatch.setattr(kineto, "WINDOW", 1 << 14)
        monkeypatch.setattr(cuda, "PART_RECORDS", 1 << 9)
        monkeypatch.setattr(aie, "BATCH_ROWS", 1 << 9)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(("family", "options"), CASES)
@pytest.mark.parametrize("seed", [51, 52])
def test_the_window_is_that_of_the_whole(tmp_path, family, options, seed):
    path = written(tmp_path, family, seed, **options)
    whole = lanescope.open(path)
    for window in windows(whole):
        got, wanted = tables(lanescope.open(path, window=window)), tables(whole.window(**window))
        for name in wanted:
            assert got[name] == wanted[name], (window, name)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(("family", "options"), [case for case in CASES if "mode" not in case[1]])
def test_rows_outside_are_counted_and_not_made(tmp_path, family, options):
    path = written(tmp_path, family, 53, **options)
    whole = lanescope.open(path)
    begins = whole.slices["ts"]
    length = int(begins.max()) - int(begins.min())
    begin = int(begins.min()) + length // 3
    part = TracePart(begin, begin + length // 20)
    with CaptureSource(path) as source:
        made = list(source.all_batches(part=part))
    slices = sum(len(batch.slices) for batch in made)
    assert 0 < slices < len(whole.slices) // 2
    assert slices + sum(len(batch.instants) for batch in made) + part.rows == len(whole.slices) + len(whole.instants)
    for name, table in whole.details.items():
        if any(column.references == "slices" and not column.nullable for column in table.spec.columns) and len(table):
            assert sum(len(batch.details[name]) for batch in made) <= slices
    # Bytes are accounted for as ever, and so is what they held.
    assert list(made[-1].accounting.rows()) == list(whole.accounting.rows())
    assert list(made[-1].stats.rows()) == list(whole.stats.rows())


def test_a_condition_sees_the_whole_trace(tmp_path):
    path = written(tmp_path, "kineto", 54)
    whole = lanescope.open(path)
    begin = int(whole.slices["ts"].max()) // 2
    asked = {"start": begin, "where": "id < 100000 and dur > 0"}
    assert tables(lanescope.open(path, window=asked)) == tables(whole.window(**asked))


def test_a_window_of_a_timeline_that_lanescope_drew(tmp_path):
    """Gaps and flows of such files are drawn as slices and instants."""
    source = written(tmp_path, "ascend", 55, tasks=120, drop_aicore=3)
    path = tmp_path / "drawn.pftrace"
    lanescope.convert(source, path)
    whole = lanescope.open(path)
    for window in windows(whole):
        got, wanted = tables(lanescope.open(path, window=window)), tables(whole.window(**window))
        for name in wanted:
            assert got[name] == wanted[name], (window, name)
