"""What lies behind the end of a file is counted to the byte, has a location, and decides the exit status."""

import gzip
import json

import pytest

import lanescope
from lanescope.cli import main
from lanescope.families import registry
from lanescope.families.options import resolve_options


@pytest.fixture(scope="module")
def healthy():
    family = registry.family("kineto")
    (content,) = family.simulate(resolve_options(family.sim_options, {}, what="simulator"), 1).files.values()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
@pytest.mark.parametrize(
    "garbage", [b"x" * 37, b"\0" * 4096, b'{"traceEvents": []}'], ids=["text", "zeros", "document"]
)
def test_trailing_garbage_is_counted_and_found(healthy, garbage, pack, tmp_path, capsys):
    path = tmp_path / f"trace.json{'.gz' if pack is gzip.compress else ''}"
    path.write_bytes(pack(healthy))
    assert main(["check", str(path)]) == 0
    capsys.readouterr()

    path.write_bytes(pack(healthy + garbage))
    assert main(["check", str(path)]) == 1
    found, warning = capsys.readouterr()
    assert f"unreadable bytes outside of the list of events ({len(garbage):,})" in warning
    assert "bytes lost" not in warning
    assert "LS002" in found
    assert f"lost or inconsistent data, {len(garbage):,}" in found.splitlines()[1]  # once
    assert "bytes lost" not in found
    assert f"offset {len(healthy):#x}  {len(garbage):,} x unreadable bytes outside of the list of events" in found


def test_what_is_lost_in_the_list_is_counted_beside_it(healthy, tmp_path, capsys):
    begin = healthy.index(b"[", healthy.index(b'"traceEvents"')) + 1
    path = tmp_path / "trace.json"
    path.write_bytes(healthy[:begin] + b'"no event",' + healthy[begin:] + b"x" * 37)
    assert main(["check", "--json", str(path)]) == 1
    counts = {each["stat"]: each["count"] for each in json.loads(capsys.readouterr().out)["findings"]}
    assert counts == {None: len(b'"no event"'), "kineto_unreadable_event": 1, "kineto_unreadable_bytes": 37}


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_white_space_behind_the_end_is_not_garbage(healthy, pack, tmp_path):
    path = tmp_path / f"trace.json{'.gz' if pack is gzip.compress else ''}"
    path.write_bytes(pack(healthy.rstrip() + b"\r\n\t \n"))
    assert main(["check", str(path)]) == 0


def test_a_list_that_is_named_again_is_read_and_told(healthy, tmp_path):
    """A reader of JSON takes the last of two members of one name: who sees other events there learns why."""
    begin = healthy.index(b'"traceEvents"')
    again = b'"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "again", "pid": 1, "tid": 1, "ts": 5, "dur": 1}], '
    path = tmp_path / "trace.json"
    path.write_bytes(healthy)
    rows = len(lanescope.open(path).slices)
    path.write_bytes(healthy[:begin] + again + healthy[begin:])
    trace = lanescope.open(path)
    assert len(trace.slices) == rows + 1
    (found,) = [row for row in trace.check().rows() if row["stat"] == "kineto_repeated_list"]
    assert (found["code"], found["severity"], found["count"]) == ("LS404", "notice", 1)


@pytest.mark.parametrize("pid", ["1", '"1"', "1.0"])
def test_a_process_is_one_however_its_number_is_written(pid, tmp_path):
    """Tools that pass a trace through floats write 1.0."""
    event = '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": %s, "tid": 1, "ts": %d, "dur": 1}'
    path = tmp_path / "trace.json"
    path.write_text(f'{{"schemaVersion": 1, "traceEvents": [{event % ("1", 5)}, {event % (pid, 15)}]}}')
    assert len(set(lanescope.open(path).slices["track_id"].tolist())) == 1
