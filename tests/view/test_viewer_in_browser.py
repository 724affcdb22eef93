"""The offline viewer in a real browser: what it shows, and what it does not ask for."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).parents[1] / "tools" / "open_viewer.js"


@pytest.fixture
def opened(require_tool, tmp_path):
    """Simulate a capture, serve it with `lanescope view`, open it in Chromium; return what happened."""

    def run(awaited, *simulated):
        node, chromium, modules = require_tool("node"), require_tool("chromium"), require_tool("puppeteer")
        lanescope = [sys.executable, "-m", "lanescope"]
        capture = tmp_path / "run.bin"
        subprocess.run([*lanescope, "sim", "aie", *simulated, "-o", str(capture)], check=True, timeout=60)
        command = [*lanescope, "view", "--no-browser", str(capture)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
            address = server.stdout.readline().strip()
            try:
                done = subprocess.run(
                    [str(node), str(DRIVER), address, str(tmp_path / "shot.png"), awaited],
                    env={**os.environ, "NODE_PATH": str(modules), "CHROMIUM": str(chromium)},
                    capture_output=True, text=True, timeout=150, check=False,
                )  # fmt: skip
            finally:
                server.send_signal(signal.SIGTERM)  # SIGINT may be ignored, where the tests run in the background
                server.communicate(timeout=20)
        assert done.returncode == 0, done.stderr
        return address, json.loads(done.stdout), tmp_path / "shot.png"

    return run


def test_lanes_are_shown_by_name_without_other_requests(opened):
    address, seen, screenshot = opened("core (1, 2)", "--tiles", "3", "--records", "50", "--seed", "2")
    assert seen["found"], seen["text"]
    assert "memtile (1, 1)" in seen["text"]
    assert screenshot.stat().st_size > 10_000
    origin = address.split("/", 3)[2]
    answered = [request["url"] for request in seen["requests"] if request["status"]]
    assert answered
    assert all(url.startswith((f"http://{origin}/", "blob:", "data:")) for url in answered)
    blocked = [request["url"] for request in seen["requests"] if not request["status"]]
    assert any(origin not in url for url in blocked), "the UI asks for pages elsewhere; none of them was tried"
    assert not [badge for badge in seen["badges"] if "data loss" in badge]


def test_lost_data_lights_the_badge(opened):
    _, seen, _ = opened("core (1, 2)", "--tiles", "3", "--records", "50", "--overruns", "1", "--seed", "2")
    assert seen["found"]
    assert [badge for badge in seen["badges"] if badge.startswith("3 import or data loss errors")], seen["badges"]


def test_an_invitation_opens_the_timeline(require_tool, tmp_path):
    """A redirect keeps what stands behind the #: there the UI looks for the trace."""
    import lanescope
    from lanescope.io import perfetto
    from lanescope.view.server import Viewer

    node, chromium, modules = require_tool("node"), require_tool("chromium"), require_tool("puppeteer")
    command = [sys.executable, "-m", "lanescope", "sim", "aie", "--records", "50", "-o", str(tmp_path / "run.bin")]
    subprocess.run(command, check=True, timeout=60)
    perfetto.write(lanescope.open(tmp_path / "run.bin"), tmp_path / "run.pftrace")
    with Viewer(tmp_path / "run.pftrace") as viewer:
        done = subprocess.run(
            [str(node), str(DRIVER), viewer.invitation(), str(tmp_path / "shot.png"), "core (1, 2)"],
            env={**os.environ, "NODE_PATH": str(modules), "CHROMIUM": str(chromium)},
            capture_output=True, text=True, timeout=150, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["found"]
