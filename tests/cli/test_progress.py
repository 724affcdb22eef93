"""Progress of reading: bytes, rate and time left on a terminal, nothing elsewhere."""

import io
import re
import sys

from lanescope.cli import console


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_bytes_rate_and_time_left_on_a_terminal_and_nothing_stays(monkeypatch):
    moments = iter([0.0, 0.5, 2.0, 2.05, 4.0])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(moments))
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with console.progress("folder/run.bin") as shown:
        for share in (1, 2, 3, 4):
            shown(share << 28, 1 << 30)
    first, second, cleared, end = stream.getvalue().split("\r")[1:]
    assert first == "run.bin: 50%  512.0 MiB of 1.0 GiB  256.0 MiB/s  2 s left"
    assert second.startswith("run.bin: 100%  1.0 GiB of 1.0 GiB  256.0 MiB/s")
    assert re.fullmatch(" +", cleared)
    assert len(cleared) == len(second.rstrip())
    assert len(second) == len(first), "what was longer is written over"
    assert end == ""


def test_nothing_where_it_is_no_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with console.progress("run.bin") as shown:
        assert shown is None
    assert stream.getvalue() == ""
