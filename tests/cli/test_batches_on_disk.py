"""Batches that are kept until all have come are on disk where the memory is limited: answers are the same."""

import os
from pathlib import Path

import pytest

import lanescope
from cli.spilling import few_rows_to_disk
from lanescope.source import kept_batches

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")  # noqa: PTH110

CAPTURES = {
    "run.npy": ("cuda", "-O", "tiles=4", "-O", "corrupt=2", "-O", "unfinished=2", "-O", "instants=true", "--seed", "5"),
    "run.bin": ("aie", "--tiles", "2", "--records", "3000", "--overruns", "2", "--bad-headers", "0.01", "--seed", "5"),
    "run.json": ("kineto", "--steps", "3", "--seed", "5"),
}
COMMANDS = {
    "sql": ("sql", "select count(*), sum(ts), sum(dur), min(name), max(name), sum(flags) from slices", "--csv"),
    "critical-path": ("critical-path", "--json"),
    "explain": ("explain", "--json"),
}


@pytest.fixture
def on_disk(monkeypatch):
    return few_rows_to_disk(monkeypatch, kept_batches)


@pytest.mark.parametrize(
    ("name", "command"),
    # AIE captures record no causes.
    [(name, command) for name in CAPTURES for command in COMMANDS if (name, command) != ("run.bin", "critical-path")],
)
def test_answers_are_those_of_batches_in_memory(call, on_disk, name, command):
    assert call("sim", *CAPTURES[name], "-o", name).status == 0
    verb, *arguments = COMMANDS[command]
    usual = call(verb, name, *arguments)
    assert not on_disk
    assert usual.status == 0, usual.err
    assert len(usual.out) > 20
    limited = call(verb, name, *arguments, "--memory", "8GiB")
    assert on_disk
    assert (limited.status, limited.out) == (usual.status, usual.out)


@pytest.mark.parametrize("made", [CAPTURES["run.json"], ("ascend", "-O", "tasks=60", "--seed", "5")])
def test_a_report_is_the_same(call, on_disk, made):
    assert call("sim", *made, "-o", "run.json").status == 0
    for limit in ((), ("--memory", "8GiB")):
        assert not on_disk
        assert call("report", "run.json", "-o", f"{len(limit)}.html", *limit).status == 0
    assert on_disk
    assert Path("2.html").read_bytes() == Path("0.html").read_bytes()


def test_a_window_of_lanes_that_come_one_after_the_other_is_the_same(call, on_disk):
    assert call("sim", *CAPTURES["run.npy"], "-o", "run.npy").status == 0
    window = ("--start", "+1us", "--end", "+3us")
    assert call("convert", "run.npy", *window, "-o", "usual.json").status == 0
    assert not on_disk
    for suffix in ("json", "parquet"):
        assert call("convert", "run.npy", *window, "-o", f"limited.{suffix}", "--memory", "8GiB").status == 0
        assert on_disk
        on_disk.clear()
    assert Path("limited.json").read_bytes() == Path("usual.json").read_bytes()
    read = lanescope.open("limited.parquet")
    part = lanescope.open("run.npy").window("+1us", "+3us")
    assert len(part.slices) > 100
    for table in (name for name in part.tables() if name not in ("inputs", "stats")):
        assert list(read.tables()[table].rows()) == list(part.tables()[table].rows()), table
