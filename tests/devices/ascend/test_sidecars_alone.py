"""Files next to a capture, given in place of it: one line that names what they are and what is missing."""

import gzip
from pathlib import Path

import pytest

import lanescope
from devices.ascend.helpers import simulated
from lanescope.devices.ascend.formats.detect import detect
from lanescope.errors import InputError
from lanescope.source import Capture

WHAT = {
    "deps.json": "a task graph",
    "name_map_simulated.json": "a name map",
    "host_phase_records.jsonl": "phases of the host",
    "pmu.csv": "hardware counters",
    "scope_stats/scope_stats.jsonl": "resources of scopes",
    "host.1000.log": "a log",
}


@pytest.fixture(scope="module")
def files():
    options = {"format_version": "v3c", "host": True, "pmu": True, "scopes": True, "log": True, "tasks": 60}
    return simulated(1, **options).files


@pytest.mark.parametrize("name", WHAT)
def test_a_sidecar_file_is_named(files, name, tmp_path):
    path = tmp_path / Path(name).name
    path.write_bytes(files[name])
    told = f"{WHAT[name]} of an Ascend run, without its records; pass chip_swimlane_records.json of the same run"
    with pytest.raises(InputError, match=f"unrecognized format: {told}"):
        lanescope.open(path)
    # In a folder of its own as well, next to files of other programs.
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(InputError, match=f"contains no capture: {path.name} is {told}"):
        lanescope.open(tmp_path)
    (tmp_path / "chip_swimlane_records.json").write_bytes(files["chip_swimlane_records.json"])
    assert len(lanescope.open(tmp_path).slices)


def test_compressed_ones_too(files, tmp_path):
    (tmp_path / "pmu.csv.gz").write_bytes(gzip.compress(files["pmu.csv"]))
    with pytest.raises(InputError, match="hardware counters"):
        lanescope.open(tmp_path / "pmu.csv.gz")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[STRACE]",
        b"a,b,c\n1,2,3\n",
        b'{"tasks": []}',
        b'{"records": [1]}',
        b"thread_id,core_id\n",
        b"text",
    ],
)
def test_files_of_others_are_not_taken_for_them(text, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(text)
    with Capture(path) as capture:
        assert detect(capture.main.head()).score == 0


def test_sidecar_files_of_the_producer(corpus):
    folder = Path(corpus, "producers/ascend")
    found = [path for path in folder.glob("*/*/*") if path.name != "deps_viewer.txt" and path.is_file()]
    found += [*folder.glob("*/*/scope_stats/*"), *folder.glob("logs/*")]
    for path in found:
        with Capture(path) as capture:
            score = detect(capture.main.head()).score
        is_records = path.name == "chip_swimlane_records.json"
        is_view = path.name == "merged_swimlane.json"
        assert (score >= 90, score == 40) == (is_records, not is_records and not is_view), path
    assert len({path.name for path in found}) > 8
