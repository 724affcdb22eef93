"""Files that are read in windows have the rows that they have when they are read as a whole."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from foreign.chrome.test_reading import METADATA, dumped, event
from lanescope.errors import InputError
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.foreign.chrome import decoder
from lanescope.pipeline.detection import capture
from lanescope.testing import assert_accounted, assert_consistent
from lanescope.trace import Trace


def rows(trace):
    return {name: [*table.rows()] for name, table in {**trace.tables(), **trace.details}.items()}


def decoded(path, *, window, piece):
    """Decode a file that is fed in pieces, and of which no more than a window is kept; no window: all of it is."""
    with pytest.MonkeyPatch.context() as patch, capture(str(path)) as opened:
        if window is not None:
            patch.setattr(decoder, "WHOLE", 0)
            patch.setattr(decoder, "WINDOW", window)
            patch.setattr(decoder, "_PIECE", max(window // 3, 1))
        made = decoder.ChromeDecoder(opened, {})
        content = memoryview(opened.main.read().data)
        for begin in range(0, len(content), piece):
            made.feed(content[begin : begin + piece])
        return [*made.finish()]


def same(path, windows):
    (whole,) = decoded(path, window=None, piece=1 << 20)
    wanted, most = rows(whole), 0
    for window, piece in windows:
        batches = decoded(path, window=window, piece=piece)
        together = batches[0] if len(batches) == 1 else Trace.concat(batches)
        found = rows(together)
        for name, table in wanted.items():
            assert found[name] == table, (name, window, piece)
        assert_accounted(together)
        assert_consistent(together)
        most = max(most, len(batches))
    return most


@given(st.lists(event(), max_size=40), st.integers(1, 1500), st.integers(1, 400), st.booleans(), st.integers(0, 400))
@settings(max_examples=some(400))
def test_windows_of_any_size_give_the_same_rows(tmp_path_factory, events, window, piece, is_named, cut):
    text = dumped([*events, *(METADATA if is_named else [])])
    text = f'{{"a": [1, {{"b": "]"}}], "traceEvents": {text}, "otherData": {{"x": 1}}}}'
    path = tmp_path_factory.getbasetemp() / "windows.json"
    path.write_text(text[: len(text) - cut] if cut < 100 else text)
    same(path, [(window, piece)])


@pytest.mark.parametrize("seed", range(3))
def test_windows_of_simulated_faults_give_the_same_rows(tmp_path, seed):
    family = registry.family("chrome")
    faults = {"broken": 2, "unfinished": 2, "unmatched": 2, "timeless": 2, "objects": 2, "cut": True}
    made = family.simulate(resolve_options(family.sim_options, faults, what="simulator"), seed)
    ((name, content),) = made.files.items()
    (tmp_path / name).write_bytes(content)
    assert same(tmp_path / name, [(3_000, 700), (20_000, 9_000)]) > 5


def test_lanes_that_come_late_are_numbered_as_in_the_whole(tmp_path):
    events = [
        {"ph": phase, "pid": 1, "tid": thread, "ts": ts, "name": "a", **rest}
        for ts, (phase, thread, rest) in enumerate(
            [("X", 1, {"dur": 1}), ("i", 1, {"s": "g"}), ("C", 1, {"args": {"value": 1}}), ("i", 1, {"s": "p"}),
             *[("X", 1, {"dur": 1})] * 9, ("X", 2, {"dur": 1}), ("i", 3, {"s": "t"}), ("X", 4, {"dur": 1})],
        )
    ]  # fmt: skip
    (tmp_path / "file.json").write_text(dumped(events))
    assert same(tmp_path / "file.json", [(300, 100), (600, 50)]) > 2


@pytest.mark.parametrize("name", ["hta/critical_path_simple_add", "tracelens/mi300_bert_small", "hta/mtia_inference"])
def test_windows_of_files_of_others_give_the_same_rows(corpus, tmp_path, name):
    path = tmp_path / "file.json"
    path.write_bytes(gzip.decompress((corpus / "foreign" / f"{name}.json.gz").read_bytes()))
    size = path.stat().st_size
    assert same(path, [(size // 7, 1 + size // 50)]) > 5


def test_what_we_wrote_is_kept_whole(tmp_path):
    import lanescope

    made = lanescope.simulate("cuda", seed=1)
    for name, content in made.files.items():
        (tmp_path / name).write_bytes(content)
    path = tmp_path / "ours.json"
    lanescope.open(tmp_path / next(iter(made.files))).save(path)
    assert same(path, [(5_000, 700)]) == 1


def test_a_file_that_changes_between_the_two_passes_is_an_error(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([{"ph": "X", "ts": n, "dur": 1, "pid": 1, "tid": 1, "name": "n"} for n in range(500)]))
    with pytest.MonkeyPatch.context() as patch, capture(str(path)) as opened:
        patch.setattr(decoder, "WHOLE", 0)
        patch.setattr(decoder, "WINDOW", 5_000)
        made = decoder.ChromeDecoder(opened, {})
        for piece in opened.main.chunks():
            made.feed(piece)
        with path.open("r+b") as file:
            file.seek(10_000)
            file.write(b" " * 4_000)
        with pytest.raises(InputError, match="changed while it was read"):
            [*made.finish()]
