"""Progress: bytes, rate and time left on a terminal, what is done after that, and nothing elsewhere."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

import lanescope
from lanescope.cli import progress

#: Draws as often as it can from the start: the captures of tests are read in an instant.
_EAGER = """
import sys
from lanescope.cli import main, progress
progress._PATIENCE, progress._EVERY = 0, 0.0005
sys.setswitchinterval(1e-5)
sys.exit(main(sys.argv[1:]))
"""


#: Draws after each piece, on a clock that goes 0.4 s ahead with each look at it: the same lines on every run.
_SLOW = """
import sys
from lanescope.cli import main, progress

class Slow(progress.Meter):
    now = 0.0

    def __init__(self, stream):
        super().__init__(stream, self.tick)

    def tick(self):
        self.now += 0.4
        return self.now

    def __call__(self, done, size):
        super().__call__(done, size)
        self.draw()

progress.Meter, progress._PATIENCE = Slow, 1000
sys.exit(main(sys.argv[1:]))
"""


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def meter(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    return progress.Meter(Terminal(), clock)


def test_bytes_rate_and_time_left(meter, clock):
    meter.read("run.bin")
    clock.now = 2.0
    meter(512 << 20, 1 << 30)
    assert meter.text() == "run.bin: 50%  512.0 MiB of 1.0 GiB  256.0 MiB/s  2 s left"
    clock.now = 4.0
    meter(1 << 30, 1 << 30)
    assert meter.text() == "run.bin: 1.0 GiB read, working  4 s so far", "all is read, and the work goes on"


def test_formats_that_are_read_as_a_whole_state_how_far_they_are(meter, clock):
    reached = [0]
    meter.read("run.json")
    meter.watch(reached, 100 << 20)
    clock.now = 1.0
    assert meter.text() == "run.json: reading 100.0 MiB  1 s so far"
    reached[0] = 50 << 20
    clock.now = 2.0
    assert meter.text() == "run.json: 50%  50.0 MiB of 100.0 MiB  25.0 MiB/s  2 s left"
    clock.now = 5.0
    assert meter.text() == "run.json: 100.0 MiB read, working  5 s so far", "the rest is never read"


def test_what_is_read_out_of_order_or_twice_counts_once(meter, clock):
    meter.read("run.npy")
    clock.now = 1.0
    meter(60 << 20, 100 << 20)
    meter(20 << 20, 100 << 20)
    assert meter.text().startswith("run.npy: 60%  60.0 MiB of 100.0 MiB")


def test_the_line_goes_before_anything_is_printed(meter, clock):
    stream = meter._stream
    meter.read("run.bin")
    meter(1, 10)
    meter.draw()
    drawn = stream.getvalue()
    assert drawn.startswith("\rrun.bin: 10%")
    (hooked,) = meter._hook(stream)
    try:
        stream.write("lanescope: warning: lost\n")
    finally:
        vars(hooked).pop("write")
    width = len(drawn) - 1
    assert stream.getvalue() == drawn + "\r" + " " * width + "\r" + "lanescope: warning: lost\n"


def test_one_stream_for_answers_and_errors(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_PATIENCE", 1000)
    with progress.shown(), progress.reading("run.bin") as meter:
        meter(1, 10)
        meter.draw()
        meter.draw()
        print("answer")
        meter.draw()
    first, *rest = stream.buffer.getvalue().decode().split("\r")
    assert first == ""
    # The rate depends on the time between two lines.
    told = [part.partition("  ")[0] for part in rest if part.strip(" ")]
    assert told == ["run.bin: 10%", "run.bin: 10%", "answer\n"]
    assert "write" not in vars(stream)


def test_a_shorter_line_leaves_nothing_of_a_longer_one(meter):
    meter.read("a_long_name_of_a_capture.bin")
    meter.draw()
    first = meter._stream.getvalue()
    meter.read("b")
    meter.draw()
    second = meter._stream.getvalue()[len(first) :]
    assert len(second) == len(first)


def test_a_narrow_terminal_keeps_the_numbers(meter, clock, monkeypatch):
    meter.read("a_long_name_of_a_capture.bin")
    clock.now = 1.0
    meter(1 << 20, 10 << 20)
    lines = {}
    for width in (80, 70, 50, 40, 20):
        monkeypatch.setenv("COLUMNS", str(width))
        before = len(meter._stream.getvalue())
        meter.draw()
        lines[width] = meter._stream.getvalue()[before + 1 :].rstrip()
    assert lines == {
        80: "a_long_name_of_a_capture.bin: 10%  1.0 MiB of 10.0 MiB  1.0 MiB/s  9 s left",
        70: "a_long_name…apture.bin: 10%  1.0 MiB of 10.0 MiB  1.0 MiB/s  9 s left",
        50: "10%  1.0 MiB of 10.0 MiB  1.0 MiB/s  9 s left",
        40: "10%  1.0 MiB of 10.0 MiB  9 s left",
        20: "10%  9 s left",
    }


def on_terminal(*arguments, columns=80, program=_EAGER):
    """Run a command with standard error on a pseudoterminal; return what it showed there, and its exit status."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    done = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=environment | {"TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    return shown.decode(), done.wait()


def simulated(folder, family):
    """Simulate a capture; return its main file."""
    files = lanescope.simulate(family, seed=1).files
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return str(folder / next(iter(files)))


def screen(shown):
    """Return what stays on the screen: later text is over earlier text of its line."""
    lines = []
    for line in shown.replace("\r\n", "\n").split("\n"):
        row = ""
        for part in line.split("\r"):
            row = part + row[len(part) :]
        lines.append(row.rstrip())
    return [line for line in lines if line]


@pytest.mark.parametrize("family", ["aie", "ascend", "cuda", "levelzero", "kineto", "chrome", "perfetto"])
def test_each_family_on_a_pseudoterminal_and_nothing_stays(tmp_path, family):
    main = simulated(tmp_path, family)
    shown, status = on_terminal("convert", main, "-o", str(tmp_path / "out.pftrace"))
    assert status == 0
    assert f"{os.path.basename(main)}: " in shown  # noqa: PTH119
    assert re.search(r"(reading|read, working)", shown)
    stays = screen(shown)
    assert all(line.startswith(("wrote ", "lanescope: warning", "excluded")) for line in stays), stays
    assert sum(line.startswith("wrote ") for line in stays) == 1


@pytest.mark.parametrize("columns", [200, 50])
def test_the_line_fits_the_terminal(tmp_path, columns):
    """AIE, as that is read piece by piece, and 6 MiB of it."""
    data = next(iter(lanescope.simulate("aie", tiles=2, records=2000, seed=1).files.values()))
    (tmp_path / "run.bin").write_bytes(data * (6 * (1 << 20) // len(data)))
    shown, status = on_terminal("info", str(tmp_path / "run.bin"), columns=columns, program=_SLOW)
    assert (status, screen(shown)) == (0, [])
    *lines, last = [part.rstrip() for part in shown.split("\r") if part.strip()]
    told = re.compile(r"(?:run\.bin: )?(\d+)%  [\d.]+ MiB of (?:6\.0|5\.9) MiB  [\d.]+ [KM]iB/s  \d+ s left")
    found = [told.fullmatch(line) for line in lines]
    assert len(lines) > 2
    assert all(found), lines
    shares = [int(one[1]) for one in found]
    assert shares == sorted(set(shares))
    assert re.fullmatch(r"run\.bin: (?:6\.0|5\.9) MiB read, working  \d+ s so far", last)
    assert max(map(len, [*lines, last])) < columns
    assert lines[0].startswith("run.bin: ") == (columns == 200)


def test_quiet_and_pipes_show_nothing(tmp_path):
    main = simulated(tmp_path, "aie")
    shown, status = on_terminal("convert", "--quiet", main, "-o", str(tmp_path / "out.pftrace"))
    assert (shown, status) == ("", 0)
    command = [sys.executable, "-c", _EAGER, "info", main]
    piped = subprocess.run(command, capture_output=True, check=True, timeout=120)
    assert (b"\r" in piped.stdout + piped.stderr, b"working" in piped.stderr) == (False, False)
    command = [sys.executable, "-c", _EAGER, "convert", main, "-o", str(tmp_path / "two.pftrace")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert re.fullmatch(r"wrote \S+two\.pftrace \([^\r\n]*\)\n", done.stderr)


def test_errors_stay_with_quiet(tmp_path):
    shown, status = on_terminal("convert", "-q", str(tmp_path / "no.bin"), "-o", str(tmp_path / "out.pftrace"))
    assert status == 2 or status == 3
    assert screen(shown)[0].startswith("lanescope: error: ")
