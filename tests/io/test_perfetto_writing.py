"""Blocks of an uncompressed Perfetto file are written while others are encoded: the same bytes, the same errors."""

import errno
import io
import os
import threading
import time

import pytest

from lanescope import testing
from lanescope.errors import InternalError
from lanescope.io import perfetto
from lanescope.io.atomic_file import is_regular


class File(io.FileIO):
    """A file that is written slowly, knows by whom, and has room for so many writes."""

    def __init__(self, path, room=1 << 40):
        super().__init__(path, "wb")
        self.threads, self.room = [], room

    def write(self, data):
        time.sleep(0.001)  # long enough for the next block to be encoded
        self.threads.append(threading.current_thread())
        if len(self.threads) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


@pytest.fixture
def trace(monkeypatch):
    monkeypatch.setattr(perfetto, "_CORES", 2)
    monkeypatch.setattr(perfetto, "BLOCK", 1 << 11)
    return testing.large_trace(3000, lanes=3, names=5, nested=True)


def plain(trace, out):
    return perfetto.write(trace, out, compress=False)


def test_a_file_gets_the_bytes_that_memory_gets(trace, tmp_path):
    memory = io.BytesIO()
    report = plain(trace, memory)
    assert report.bytes > 8 * perfetto.BLOCK
    with File(tmp_path / "a.pftrace") as file:
        assert plain(trace, file) == report
        others = [thread for thread in file.threads if thread is not threading.main_thread()]
    assert len(others) > 8
    assert len(set(others)) == 1
    assert (tmp_path / "a.pftrace").read_bytes() == memory.getvalue()
    assert plain(trace, tmp_path / "b.pftrace") == report
    assert (tmp_path / "b.pftrace").read_bytes() == memory.getvalue()


def test_a_small_file_needs_no_thread(trace, tmp_path, monkeypatch):
    monkeypatch.setattr(perfetto, "BLOCK", 1 << 20)
    with File(tmp_path / "a.pftrace") as file:
        plain(trace, file)
        assert set(file.threads) == {threading.main_thread()}


@pytest.mark.parametrize("room", [3, 4, 8])
def test_a_full_disk_is_an_error_of_the_writer(trace, tmp_path, room):
    with File(tmp_path / "a.pftrace", room) as file:
        with pytest.raises(OSError, match="No space left"):
            plain(trace, file)
        assert len(file.threads) == room + 1


@pytest.mark.parametrize("parts", [1, 4])
def test_what_cannot_be_drawn_ends_the_writing(tmp_path, monkeypatch, parts):
    trace = testing.large_trace(3000, lanes=3, names=5, nested=True)
    monkeypatch.setattr(perfetto, "BLOCK", 1 << 11)
    fill = perfetto.core.PerfettoEncoder.fill
    filled = []
    turn = threading.Lock()  # all parts are one encoder here, and one thread at a time may use it

    class Breaks:
        is_at_end, events = False, 0

        def __init__(self, *arguments, **options):
            self.inner = encoder(*arguments, **options)

        def parts(self, _events):
            return [self] * parts

        def fill(self, *arguments):
            with turn:
                filled.append(1)
                if len(filled) >= 6:
                    raise ValueError("slices of a row cross or go back in time")
                return fill(self.inner, *arguments)

    encoder = perfetto._encoder
    monkeypatch.setattr(perfetto, "_encoder", Breaks)
    before = threading.active_count()
    with pytest.raises(InternalError, match="cannot be drawn"):
        plain(trace, tmp_path / "a.pftrace")
    assert threading.active_count() == before
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("block", [1 << 12, perfetto._PLAIN_BLOCK])
@pytest.mark.parametrize("largest", [0, 800, perfetto._MOST_PART_EVENTS])
def test_parts_that_are_encoded_side_by_side_are_written_in_order(tmp_path, monkeypatch, block, largest):
    trace = testing.large_trace(20_000, lanes=30, names=5, nested=True)
    one, several = io.BytesIO(), io.BytesIO()
    monkeypatch.setattr(perfetto, "_CORES", 1)
    plain(trace, one)
    monkeypatch.setattr(perfetto, "_CORES", 2)
    monkeypatch.setattr(perfetto, "_PART_EVENTS", 500)
    monkeypatch.setattr(perfetto, "_MOST_PART_EVENTS", largest)
    monkeypatch.setattr(perfetto, "_PLAIN_BLOCK", block)
    plain(trace, several)
    assert several.getvalue() == one.getvalue()
    with (tmp_path / "a.pftrace").open("wb") as file:
        plain(trace, file)
    assert (tmp_path / "a.pftrace").read_bytes() == one.getvalue()


def test_only_files_of_the_system_are_written_by_another_thread(tmp_path):
    into, out = os.pipe()
    with open(out, "wb") as pipe:  # noqa: PTH123 (a descriptor)
        assert not is_regular(pipe)
    os.close(into)
    assert not is_regular(io.BytesIO())
    path = tmp_path / "f"
    with path.open("wb") as file:
        assert is_regular(file)
    assert not is_regular(file), "closed"
    with path.open("wb", buffering=0) as file:
        assert is_regular(file)
    with path.open("r+b") as file:
        assert is_regular(file)
