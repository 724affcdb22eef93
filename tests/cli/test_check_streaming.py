"""Captures that are checked while they are decoded: the same findings, whichever way the rows come."""

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli.conftest import csv_rows
from lanescope.devices.aie import decoder
from lanescope.io import perfetto
from lanescope.pipeline import session

CAPTURE = (
    "--tiles",
    "2",
    "--records",
    "3000",
    "--overruns",
    "2",
    "--bad-headers",
    "0.01",
    "--zeros",
    "40",
    "--seed",
    "5",
)


@pytest.fixture
def capture(call, monkeypatch):
    """Make a capture that lost packets, and have it decoded in many batches."""
    assert call("sim", "aie", *CAPTURE, "-o", "run.bin").status == 0
    monkeypatch.setattr(decoder, "BATCH_ROWS", 300)
    monkeypatch.setattr(decoder.AieDecoder.__init__, "__kwdefaults__", {"block_bytes": 1 << 10})
    assert sum(len(batch.slices) > 0 for batch in session.iter_batches("run.bin")) > 5
    return "run.bin"


@pytest.fixture
def expected(call, capture):
    """What is found in the whole trace."""
    findings = json.loads(call("check", capture, "--json").out)["findings"]
    assert len({finding["code"] for finding in findings}) > 1
    return findings


@pytest.fixture
def reading(monkeypatch):
    """Return a function that gives commands the file as standard input, which they read once."""
    with ExitStack() as stack:

        def give(path):
            file = stack.enter_context(Path(path).open("rb"))
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=file, isatty=lambda: False))

        yield give


def test_check_finds_what_is_in_the_whole(call, capture, expected, reading):
    table = call("check", capture, "--csv")
    lines = csv_rows(table.out)
    assert [name.removesuffix("_cycles") for name in lines[0]] == [
        "severity",
        "code",
        "location",
        "ts",
        "count",
        "affected_fraction",
        "title",
        "detail",
    ]
    shares = ["" if finding["affected_fraction"] is None else finding["affected_fraction"] for finding in expected]
    assert [line[:2] + line[4:5] + line[6:] for line in lines[1:]] == [
        [finding["severity"], finding["code"], str(finding["count"]), finding["title"], finding["detail"]]
        for finding in expected
    ]
    assert [float(line[5]) if line[5] else "" for line in lines[1:]] == shares
    reading(capture)
    assert call("check", "-", "--csv").out.replace(",-,", ",run.bin,") == table.out
    sarif = json.loads(call("check", capture, "--sarif").out)
    assert len(sarif["runs"][0]["results"]) == len(expected)


@pytest.mark.parametrize("name", ["run.bin", "-"])
def test_convert_draws_what_is_in_the_whole(call, capture, expected, reading, name, monkeypatch):
    drawn = []
    finish = perfetto.PerfettoSink.finish

    def seen(sink, annotations):
        drawn.append(annotations)
        return finish(sink, annotations)

    monkeypatch.setattr(perfetto.PerfettoSink, "finish", seen)
    if name == "-":
        reading(capture)
    assert call("convert", name, "-o", "run.pftrace").status == 0
    (table,) = drawn
    assert [
        (row["code"], row["severity"], row["detail"], row["count"], row["ts"], row["track"], row["affected_fraction"])
        for row in table.rows()
    ] == [
        (
            finding["code"],
            finding["severity"],
            finding["detail"],
            finding["count"],
            finding["location"]["ts"],
            finding["location"]["track"],
            finding["affected_fraction"],
        )
        for finding in expected
    ]
    assert [row["evidence_id"] for row in table.rows()] == [
        next(iter(finding["evidence"]["sample"]), None) for finding in expected
    ]
