"""Where a kernel's time goes, from the command line."""

import json
import re

import pytest

from cli.conftest import csv_rows
from cli.test_commands import on_a_terminal


@pytest.fixture
def kernel_file(call, tmp_path):
    """A simulated kernel, and what it did."""
    assert call("sim", "cuda", "--seed", 1, "--blocks", 4, "--tiles", 6, "-o", "k.npy").status == 0
    return json.loads((tmp_path / "k.npy.truth.json").read_text())["expected"]


def test_summary_of_overlap_has_the_numbers_of_the_simulator(call, kernel_file):
    content = json.loads(call("summary", "k.npy", "--by", "overlap", "--json").out)
    assert (content["schema"], content["within"]) == ("lanescope.summary/1", "block")
    found = [[row["region"], row["other_region"], row["overlap_ns"]] for row in content["rows"] if row["overlap_ns"]]
    assert sorted(found) == sorted(kernel_file["overlap"])
    (load,) = [row for row in content["exposure"] if row["kind"] == "load" and row["region"] is None]
    assert load["hidden_ns"] == kernel_file["load_hidden_ns"]
    done = call("summary", "k.npy", "--by", "overlap", "--csv")
    assert "exposure of kinds of work: not in the CSV table" in done.err
    head, *rows = csv_rows(done.out)
    assert head == ["region", "other_region", "region_ns", "overlap_ns", "share"]
    assert len(rows) == len(content["rows"])


def test_kinds_of_work_can_be_given(call, kernel_file):
    options = ["--by", "overlap", "--json", "--classify", "compute=load_*,qk", "--classify", "load=q*"]
    content = json.loads(call("summary", "k.npy", *options).out)
    # Of several patterns that fit the first kind given wins.
    assert "load" not in {row["kind"] for row in content["exposure"]}
    done = call("summary", "k.npy", "--by", "overlap", "--classify", "load")
    assert (done.status, done.err.splitlines()) == (
        2, [
            "lanescope: error: invalid value 'load' for --classify: expected KIND=GLOB,..., e.g. load='tma*,cp_*'"
        ]
    )  # fmt: skip
    done = call("summary", "k.npy", "--by", "overlap", "--classify", "loads=x")
    assert done.status == 2
    assert "unknown kind 'loads' (choose from load, compute, store, wait, outer)" in done.err


def test_summary_of_idle_adds_up(call, kernel_file):
    content = json.loads(call("summary", "k.npy", "--by", "idle", "--json").out)
    assert sum(row["total_ns"] for row in content["rows"]) == sum(row[4] for row in kernel_file["idle"])
    assert {row["lane"] for row in content["rows"]} == {"load", "compute", "store"}


def test_summary_of_occupancy_and_blocks(call, kernel_file):
    rows = json.loads(call("summary", "k.npy", "--by", "occupancy", "--json").out)["rows"]
    assert {row["counted"]: row["total_ns"] for row in rows} == kernel_file["occupancy_ns"] | {
        "<block>": kernel_file["resident_ns"]
    }
    blocks = json.loads(call("summary", "k.npy", "--by", "block", "--json").out)["rows"]
    assert [row["instance_id"] for row in blocks] == [0, 1, 2, 3]
    assert sum(row["resident_ns"] for row in blocks) == kernel_file["resident_ns"]


def test_summary_of_regions_over_a_unit_of_choice(call, kernel_file):
    found = json.loads(call("summary", "k.npy", "--by", "region", "--json").out)
    assert found["within"] == "block"
    assert {row["instances"] for row in found["rows"] if row["self_ns"]} == {4}
    found = json.loads(call("summary", "k.npy", "--by", "region", "--within", "all", "--json").out)
    assert {row["instances"] for row in found["rows"] if row["self_ns"]} == {1}


def test_a_unit_that_the_capture_does_not_know(call, kernel_file):
    done = call("summary", "k.npy", "--by", "sm")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("lanescope: error: this trace has no sm information (available: block, ")
    assert call("summary", "k.npy", "--by", "overlap", "--within", "nope").status == 2


def test_overlap_of_a_family_that_has_its_own(call):
    assert call("sim", "levelzero", "--seed", 1, "-o", "z.bin").status == 0
    assert call("summary", "z.bin", "--by", "overlap").out.splitlines()[2].split()[:4] == [
        "device",
        "kernels",
        "copies",
        "both",
    ]


@pytest.mark.parametrize("by", ["region", "overlap", "idle", "occupancy", "block"])
def test_regions_are_drawn_on_a_terminal(plugin_path, call, kernel_file, tmp_path, by):
    shown = on_a_terminal(tmp_path, plugin_path, "summary", "k.npy", "--by", by)
    assert "\t" not in shown
    assert "load_k" in shown or by in ("idle", "block")
    assert {"overlap": "hidden behind compute", "idle": "most of it: store waits", "block": "a block is there for"}.get(
        by, "load_v"
    ) in shown  # fmt: skip


def test_each_cell_of_a_tally_has_the_unit_of_its_section(call):
    assert call("sim", "levelzero", "--seed", 1, "-o", "z.bin").status == 0
    lines = call("summary", "z.bin", "--by", "tally").out.splitlines()
    of = {section: [line for line in lines if line.startswith(f"{section} ")] for section in ("host", "traffic")}
    assert all(re.search(r" (ns|µs|ms|s) .* (ns|µs|ms|s) ", line) for line in of["host"])
    assert of["traffic"]
    assert all(re.search(r" ([KM]i)?B .* ([KM]i)?B ", line) for line in of["traffic"])
    assert not any(re.search(r" (ns|µs|ms|s) ", line) for line in of["traffic"])
    head, *rows = csv_rows(call("summary", "z.bin", "--by", "tally", "--csv").out)
    units = {(row[head.index("section")], row[head.index("unit")]) for row in rows}
    assert units == {("host", "ns"), ("device", "ns"), ("traffic", "bytes")}
    assert all(row[head.index("total")].isdecimal() for row in rows)
    fixed = call("summary", "z.bin", "--by", "tally", "--unit", "us").out
    assert " µs " in fixed
    assert " ms " not in fixed
