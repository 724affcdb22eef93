"""The tally of a recording that grows is that of the whole recording, whatever the pieces."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import lanescope
import published_schemas
from lanescope.cli import main
from lanescope.devices.levelzero.analysis import follow
from lanescope.devices.levelzero.analysis.live_tally import LiveTally
from lanescope.devices.levelzero.analysis.tally import RECORDER, tally
from lanescope.devices.levelzero.formats import ctf_growing, layout
from lanescope.source import Source
from lanescope.view.refreshed_table import RefreshedTable, line_of
from lanescope.wire import ctf

pytestmark = pytest.mark.timeout(1200)

RECORD = [sys.executable, "-m", "lanescope", "record", "--no-summary"]
SUMS = ("count", "errors", "open", "min", "max", "total")


def sums_of(table):
    return {(row["section"], row["name"]): [row[name] for name in SUMS] for row in table.rows()}


def assert_same(found, expected):
    """Counts are equal; times of devices are rounded one by one, and not by the measured rate of the clock."""
    found, expected = sums_of(found), sums_of(expected)
    assert set(found) == set(expected)
    for key, row in found.items():
        assert row[:3] == expected[key][:3], key
        count = row[0] if key[0] == "device" else 0
        for one, other, slack in zip(row[3:], expected[key][3:], (1, 1, count), strict=True):
            assert one == other or (count and abs(one - other) <= slack + other // 10_000), key


@pytest.fixture
def recorded(fake_ze, tmp_path):
    """Return a function that records a shell script, in which $0 is the program."""

    def recorded(script, *options, env=(), wait=True, **quirks):
        environment = {**fake_ze.environment(**quirks), **dict(env)}
        words = [*RECORD, "-o", tmp_path / "run", *options, "--", "sh", "-c", script, fake_ze.app]
        started = subprocess.Popen(
            list(map(str, words)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if not wait:
            return started
        out, err = started.communicate(timeout=120)
        return started.returncode, out, err, tmp_path / "run"

    return recorded


def until(path):
    """Return a shell command that waits until a file exists."""
    return f"while [ ! -e '{path}' ]; do sleep 0.05; done"


def grown(source, target, share):
    """Leave a part of each stream of a recording in another folder: whole packets, and one that is being filled."""
    folders = sorted(path.parent for path in source.glob("*/metadata"))
    times = []
    for folder in folders:
        reader = ctf.Reader(ctf.describe((folder / "metadata").read_bytes()))
        streams = [np.frombuffer(path.read_bytes(), np.uint8) for path in folder.glob("stream_*")]
        times += [reader.read(stream).times for stream in streams]
    latest = np.quantile(np.concatenate(times), share)
    for folder in folders:
        to = target / folder.name
        to.mkdir(parents=True, exist_ok=True)
        text = (folder / "metadata").read_bytes()
        (to / "metadata").write_bytes(text)
        reader = ctf.Reader(ctf.describe(text))
        for path in folder.glob("stream_*"):
            data = path.read_bytes()
            found = reader.read(np.frombuffer(data, np.uint8))
            limit = int(np.searchsorted(found.times, latest, side="right")) if share else 0
            whole = 0
            for row in range(len(found.packets)):
                first, count = int(found.packet("first_event")[row]), int(found.packet("events")[row])
                begin, size = int(found.packet("offset")[row]), int(found.packet("size")[row])
                if first + count <= limit:
                    whole = begin + size
                    continue
                if first < limit:
                    head = reader.layout.event_header
                    end = int(found.payloads[limit]) - head - begin
                    packet = bytearray(data[begin : begin + end]) + bytes(131072 - end)
                    place = reader.layout.parts
                    packet[place["content_size"] : place["content_size"] + 8] = (8 * end).to_bytes(8, "little")
                    packet[place["packet_size"] : place["packet_size"] + 8] = (8 * 131072).to_bytes(8, "little")
                    packet[place["complete"] : place["complete"] + 4] = bytes(4)
                    (to / f"{path.name}.live").write_bytes(packet)
                break
            (to / path.name).write_bytes(data[:whole])
            if share >= 1:
                (to / f"{path.name}.live").unlink(missing_ok=True)


@pytest.mark.parametrize("what", ["saxpy", "mixed", "threads", "copies", "resubmit", "fence"])
def test_pieces_give_the_tally_of_the_whole(recorded, tmp_path, what, monkeypatch):
    status, _, err, folder = recorded(f'"$0" {what} 40 && "$0" {what} 30')
    assert status == 0, err
    whole = tally(lanescope.open(folder))
    target = tmp_path / "grows"
    grown(folder, target, 0)
    recording, found = ctf_growing.GrowingRecording(target), LiveTally()
    waits = []
    for share in (0.001, 0.1, 0.11, 0.5, 0.7, 0.99, 1):
        grown(folder, target, share)
        found.add(recording.look(is_last=True))
        waits.append(found.waiting)
    assert_same(found.table(), whole)
    # What is kept does not grow with the recording.
    assert found.waiting == 0
    found.add(recording.look(is_last=True))
    assert_same(found.table(), whole)
    # Nor does what is read at a time.
    for piece in (3000, 100_000):
        for name in ("_BYTES", "_LEAST_PIECE", "_MOST_PIECE"):
            monkeypatch.setattr(ctf_growing, name, piece)
        assert_same(follow.total(folder), whole)


def test_the_tally_of_a_recording_is_a_command(recorded, capsys):
    _, _, _, folder = recorded('"$0" saxpy 40')
    assert main(["levelzero-tally", "--json", str(folder)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert published_schemas.errors(document) == []
    rows = document["rows"]
    whole = {(row["section"], row["name"]): row["count"] for row in tally(lanescope.open(folder)).rows()}
    assert {(row["section"], row["name"]): row["count"] for row in rows} == whole
    assert {section for section, _ in whole} >= {"host", "device"}


def test_a_recording_is_read_while_its_program_goes_on(recorded, tmp_path, monkeypatch):
    """The packet that is being filled is written in place: what of it is whole, its head tells."""
    _, _, _, folder = recorded('"$0" saxpy 40')
    target = tmp_path / "grows"
    grown(folder, target, 0.5)
    (live,) = target.glob("*/stream_0.live")
    still = lanescope.open(target)
    fill = Source._fill

    def filled(self, buffer, left):
        fill(self, buffer, left)
        if self.path.endswith(".live"):
            os.utime(live, ns=(0, live.stat().st_mtime_ns + 1))

    monkeypatch.setattr(Source, "_fill", filled)
    trace = lanescope.open(target)
    assert len(trace.slices) == len(still.slices) > 0
    assert trace.slices["ts"].tolist() == still.slices["ts"].tolist()


def test_a_packet_that_another_one_replaces_is_not_read(recorded, tmp_path, monkeypatch):
    _, _, _, folder = recorded('"$0" saxpy 40')
    target = tmp_path / "grows"
    grown(folder, target, 0.5)
    (live,) = target.glob("*/stream_0.live")
    reader = ctf.Reader(ctf.describe(live.with_name("metadata").read_bytes()))
    assert ctf_growing._live(live.with_suffix(""), reader) is not None
    place = reader.layout.parts["packet_seq_num"]
    real = live.read_bytes()

    class Torn:
        """A file whose packet is replaced between two reads."""

        def __init__(self):
            self._reads = 0

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def seek(self, _):
            pass

        def read(self, size=-1):
            self._reads += 1
            data = bytearray(real)
            data[place] += self._reads
            return bytes(data)[: size if size >= 0 else None]

    monkeypatch.setattr(type(live), "open", lambda *_, **__: Torn())
    assert ctf_growing._live(live.with_suffix(""), reader) is None


def test_following_ends_with_the_recorder(fake_ze, recorded, tmp_path):
    started = recorded(f'"$0" mixed 20; {until(tmp_path / "seen")}; "$0" mixed 20; "$0" mixed 20', wait=False)
    folder = tmp_path / "run"
    while not (folder / layout.RECORDER_MARK).exists():
        assert started.poll() is None
        time.sleep(0.01)
    command = [sys.executable, "-m", "lanescope", "summary", "--csv", "--follow", folder]
    follower = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first = follower.stderr.readline()
    (tmp_path / "seen").touch()
    table, err = follower.communicate(timeout=120)
    out, _ = started.communicate(timeout=120)
    assert (follower.returncode, started.returncode, out) == (0, 0, "mixed: right\n" * 3)
    lines = (first + err).splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("live ") for line in lines), lines
    counts = [int(found[1]) for line in lines if (found := re.search(r"host (\d+) ", line))]
    assert counts == sorted(counts)
    expected = {(row["section"], row["name"]): row["count"] for row in tally(lanescope.open(folder)).rows()}
    rows = list(csv.reader(io.StringIO(table)))
    at = {name: rows[0].index(name) for name in ("section", "name", "count")}
    assert {(row[at["section"]], row[at["name"]]): int(row[at["count"]]) for row in rows[1:]} == expected
    assert not (folder / layout.RECORDER_MARK).exists()


def test_ctrl_c_leaves_the_last_table(recorded, tmp_path):
    started = recorded('"$0" mixed 20; exec sleep 600', wait=False)
    try:
        while not list((tmp_path / "run").glob("*/metadata")):
            assert started.poll() is None
            time.sleep(0.01)
        follower = subprocess.Popen(
            [sys.executable, "-m", "lanescope", "summary", "--by", "tally", "--follow", tmp_path / "run"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while "device 200" not in (line := follower.stderr.readline()):
            assert line
        follower.send_signal(signal.SIGINT)
        out, _ = follower.communicate(timeout=120)
        assert follower.returncode == 130
        assert re.search(r" zeCommandListAppendLaunchKernel +40 | busy_300 +20 ", out)
    finally:
        started.send_signal(signal.SIGTERM)
        started.communicate(timeout=120)


def test_a_live_tally_leaves_the_output_of_the_program_whole(recorded, tmp_path):
    folder = tmp_path / "run"
    script = f'for i in 1 2 3; do "$0" mixed 20; echo "line $i" >&2; {until(tmp_path / "seen")}; done'
    started = recorded(script, "--live", wait=False)
    begin = []
    while not begin or not begin[-1].startswith("live "):
        begin.append(started.stderr.readline())
        assert begin[-1]
    (tmp_path / "seen").touch()
    out, err = started.communicate(timeout=120)
    assert (started.returncode, out) == (0, "mixed: right\n" * 3)
    err = "".join(begin) + err
    lines = err.splitlines()
    assert [line for line in lines if line.startswith("line ")] == ["line 1", "line 2", "line 3"]
    live = [line for line in lines if line.startswith("live ")]
    assert len(live) >= 2
    assert re.search(r"^live tally: \d+ looks, \d+\.\d s of processor time$", err, re.MULTILINE)
    assert len(lines) == len(live) + 3, err
    calls = sum(
        row["count"]
        for row in tally(lanescope.open(folder)).rows()
        if row["section"] == "host" and row["name"] != RECORDER
    )
    assert f" host {calls:,} in " in live[-2]


def test_a_program_that_cannot_be_started_ends_the_live_tally(tmp_path):
    done = subprocess.run(
        [*RECORD, "--live", "-o", tmp_path / "run", "--", "/no/such/program"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert not (tmp_path / "run").exists()


def test_what_is_no_recording_is_not_followed(tmp_path, capsys):
    for by in ([], ["--by", "tally"]):
        assert main(["summary", *by, "--follow", str(tmp_path)]) == 3
        assert "no Level Zero recording" in capsys.readouterr().err
    assert main(["summary", "--by", "name", "--follow", str(tmp_path)]) == 2
    assert "cannot follow" in capsys.readouterr().err


def test_the_mark_of_a_recorder_that_is_gone_does_not_count(tmp_path):
    boot = ctf_growing._boot()
    (tmp_path / layout.RECORDER_MARK).write_text(f"{os.getpid()} {boot}\n")
    assert ctf_growing.GrowingRecording(tmp_path).is_growing()
    ended = subprocess.Popen(["true"])
    ended.wait()
    (tmp_path / layout.RECORDER_MARK).write_text(f"{ended.pid} {boot}\n")
    assert not ctf_growing.GrowingRecording(tmp_path).is_growing()
    assert [len(table) for table in follow.tables(str(tmp_path))] == [0]


def test_a_terminal_gets_the_table_in_one_place():
    class Terminal:
        def __init__(self):
            self.text = ""

        def isatty(self):
            return True

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    rows = [{"section": "host", "name": "a\x1b[2J", "count": 1, "total": 5}]
    file = Terminal()
    shown = RefreshedTable(file, ("name", "count", "total"))
    shown.show(rows)
    assert "\x1b" not in file.text
    assert file.text.split()[-3:] == ["1", "5", "ns"]
    shown.show(rows * 2)
    assert file.text.count("\x1b[3A\x1b[J") == 1
    shown.clear()
    assert file.text.endswith("\x1b[4A\x1b[J")
    beside = Terminal()
    RefreshedTable(beside, ("name", "count"), in_place=False).show(rows)
    assert beside.text.count("\n") == 1
    assert "\x1b" not in beside.text


def test_lines_of_nothing_and_of_sections():
    assert line_of([], 1.25) == "live 1.2 s: nothing yet"
    rows = [
        {"section": "host", "name": "a", "count": 2000, "total": 5_000_000},
        {"section": "host", "name": "b", "count": 1, "total": 4_000_000},
        {"section": "traffic", "name": "c", "count": 1, "total": 9},
        {"section": "host", "name": "(recorder)", "count": 1, "total": 12_345},
    ]
    assert line_of(rows, 3.0) == (
        "live 3.0 s: host 2,001 in 9.00 ms (most: a 2,000 in 5.00 ms); traffic 1 in 9 bytes (most: c 1 in 9 bytes); "
        "(recorder) 12.3 µs"
    )
