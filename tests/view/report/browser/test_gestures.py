"""The report in a real browser: fingers, drags, counters, bundles, addresses, the way by keyboard, axe-core."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.view.report.browser.test_page import SHOTS, command

import lanescope

HERE = Path(__file__).parent
VALUES = (3, 9, 0, 6, 1, 8)


@pytest.fixture(scope="module")
def kept():
    """What happened in Chromium, once for all tests."""
    return {}


@pytest.fixture
def happened(require_tool, kept, tmp_path_factory):
    node, chromium, modules = require_tool("node"), require_tool("chromium"), require_tool("axe")
    if not kept:
        folder = tmp_path_factory.mktemp("gestures")
        events = [
            {"ph": "X", "pid": 1, "tid": lane, "name": f"work {at % 3}", "ts": 20 * at + lane, "dur": 15}
            for lane in (1, 2)
            for at in range(60)
        ]
        events += [
            {"ph": "C", "pid": 1, "name": "bytes", "ts": 200 * at, "args": {"v": v}} for at, v in enumerate(VALUES)
        ]
        (folder / "counted.json").write_text(json.dumps({"traceEvents": events}))
        command("report", folder / "counted.json", "-o", folder / "counted.html")
        (folder / "many.npy").write_bytes(lanescope.simulate("cuda", tiles=20, seed=2).files["attention.npy"])
        command("report", folder / "many.npy", "-o", folder / "bundled.html", "--max-size", "215KB")
        SHOTS.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [str(node), str(HERE / "gestures.cjs"), folder / "counted.html", folder / "bundled.html", SHOTS],
            env={**os.environ, "NODE_PATH": str(modules), "CHROMIUM": str(chromium)},
            capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        kept.update(json.loads(done.stdout))
    return kept


def test_two_fingers_zoom_around_the_one_that_rests(happened):
    assert happened["errors"] == []
    assert happened["pinch"]["factor"] == pytest.approx(392 / 200, rel=0.01)
    assert happened["pinch"]["pixels"] <= 1


def test_ruler_and_minimap_are_dragged_to_the_pixel(happened):
    assert max(happened["ruler"]) <= 1
    assert happened["map"] == pytest.approx(60, abs=1)


def test_a_counter_is_as_tall_as_its_values_and_says_them(happened):
    counters = happened["counters"]
    assert counters["values"] == list(VALUES)
    assert counters["off"] <= 2
    assert counters["tip"].startswith("bytes")
    assert counters["tip"].rstrip().endswith(str(VALUES[2]))


def test_an_address_opens_the_same_place(happened):
    address = happened["address"]
    assert address["hash"].startswith("#t=")
    assert address["kept"]["row"] == address["opened"]["row"] >= 0
    for name in ("t0", "t1"):
        assert address["opened"][name] == pytest.approx(address["kept"][name], abs=1)


def test_a_bundle_says_what_is_in_it(happened):
    bundles = happened["bundles"]
    assert bundles["count"] > 1
    assert bundles["drawn"] - bundles["all"] + bundles["inside"] == bundles["total"]
    assert f"{bundles['count']:,} slices, most of the time {bundles['name']}" in bundles["live"].replace("\u2009", ",")
    assert "the file has these slices as one; totals are exact" in bundles["panel"]
    assert "bundled: zoom stops here" in bundles["tip"]
    assert "bundles; all totals are exact" in bundles["verdict"]


def test_the_way_by_keyboard_is_complete_and_seen(happened):
    path = happened["keyboard"]["path"]
    steps = [step["at"] for step in path]
    wanted = ["skip", "search", "theme", "help", "lanes", "fold", "whole", "treeitem", "grip", "panel"]
    assert [step for step in steps if step in wanted] == wanted
    assert all(step["name"] and step["ring"] for step in path), path
    assert happened["keyboard"]["first"]["at"] == "lanes"
    assert "work" in happened["keyboard"]["first"]["live"]
    assert happened["keyboard"]["next"] not in ("", happened["keyboard"]["first"]["live"])


@pytest.mark.parametrize("state", ["light", "dark", "findings", "selected"])
def test_axe_finds_nothing(happened, state):
    found = happened["axe"][state]
    assert found["passes"] > 15
    assert found["violations"] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_tab_and_every_label_can_be_read(happened, theme):
    assert happened["tabs"][theme] == []
    assert happened["labels"][theme] >= 4.5
