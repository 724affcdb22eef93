"""A recording that grows -> the event model, piece by piece: what was written since the last look.

Packets that are whole are read once. The one that a thread is filling is read again each time, 128 KiB at most, and
only its new events count. Threads write independently of each other: events younger than ``_SETTLED_NS`` wait for
the next look, so that the pieces follow one another in time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lanescope.devices.levelzero.formats import ctf_reader, layout
from lanescope.devices.levelzero.formats.ctf_records import add_stream
from lanescope.devices.levelzero.formats.ctf_rows import LATEST_NS, Process, RecordRows, Stream
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.errors import InputError
from lanescope.source import Source
from lanescope.wire import ctf

#: An event is in its file within this time, unless its thread was stopped in between.
_SETTLED_NS = 20_000_000
#: Bytes of one stream that are read at a time: what all of them may have, within bounds.
_BYTES, _LEAST_PIECE, _MOST_PIECE = 64 << 20, 1 << 20, 16 << 20


@dataclass(slots=True, eq=False)
class _File:
    """How far one stream was read.

    Attributes:
        path: the file of its whole packets.
        process: number of its process.
        offset: bytes of whole packets that are done.
        sequence: number of the packet that was last begun, -1: none.
        events: events of that packet that are done.
        piece: bytes to read at a time, 0: as many as any other.
        found: packets that were read and are not all done, from ``offset`` on.
        rows: how many of them are whole.
        row: how many of those are done.
        is_more: whether more bytes follow them.
    """

    path: Path
    process: int
    offset: int = 0
    sequence: int = -1
    events: int = 0
    piece: int = 0
    found: ctf.Events | None = None
    rows: int = 0
    row: int = 0
    is_more: bool = False


class GrowingRecording:
    """Reads what a recording holds since the last look.

    Args:
        folder: the recording.

    Raises:
        InputError: a description cannot be read, or is of another producer.

    Attributes:
        has_more: whether the last look left events that were there: as many as memory is bounded to are taken at once.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.has_more = False
        self.processes: list[Process] = []
        self._folders: dict[Path, int] = {}
        self._files: dict[Path, _File] = {}
        self._rows = RecordRows()
        self._seq = 0
        self._boot = _boot()

    def is_growing(self) -> bool:
        """Return whether the recorder, or a process of this machine that it records, still runs."""
        return _is_recorder_running(self.folder) or any(self._is_running(process) for process in self.processes)

    def look(self, *, is_last: bool = False) -> Events:
        """Return what is new, or a part of it; in memory that does not depend on how much it is.

        Args:
            is_last: whether nothing more will come, so that even the youngest events count.
        """
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self._find()
        for file in self._files.values():
            if file.piece == 0:
                file.piece = min(max(_BYTES // len(self._files), _LEAST_PIECE), _MOST_PIECE)
        live = [self._read(file) for file in self._files.values()]
        # What is later than the last event read of a file may still be preceded by others of that file.
        ends = [
            _last_time(file) + self.processes[file.process].epoch_ns for file in self._files.values() if file.is_more
        ]
        streams = []
        for file, packet in zip(self._files.values(), live, strict=True):
            process = self.processes[file.process]
            is_here = process.reader.about.environment.get("boot") == self._boot
            limit = now - _SETTLED_NS if is_here and not is_last else LATEST_NS
            if ends:
                limit = max(min(limit, min(ends) - process.epoch_ns), 0)
            streams += list(self._new(file, process, packet, limit))
        # The youngest events wait until they are settled.
        self.has_more = bool(ends) and bool(streams)
        ctf_reader.put_in_order(streams)
        for stream in streams:
            stream.seq += self._seq
        self._seq += sum(len(stream.ts) for stream in streams)
        for stream in streams:
            add_stream(self._rows, stream, self.processes[stream.process])
        found = self._rows.events()
        self._rows.clear()
        return found

    def _find(self) -> None:
        """Look for processes and threads that have come."""
        for folder in sorted(ctf_reader.folders_of(self.folder)):
            if folder not in self._folders:
                reader = ctf.Reader(ctf.describe((folder / "metadata").read_bytes()))
                source = Source(str(folder / "metadata"), hashes=False)
                source.close()  # only its name is needed
                process = ctf_reader.process_of(source, folder.name, reader, self.processes)
                self._folders[folder] = self._rows.process(
                    str(reader.about.environment.get("hostname", "")), reader.about.environment.get("pid", 0)
                )
                self.processes.append(process)
            for path in folder.glob("stream_*"):
                base = path.with_suffix("") if path.suffix == ctf_reader.LIVE else path
                self._files.setdefault(base, _File(base, self._folders[folder]))

    def _read(self, file: _File) -> ctf.Events | None:
        """Read the next packets of a stream unless some are left; return the one that is being filled behind them."""
        if file.found is not None:
            return None
        reader = self.processes[file.process].reader
        # First the packet that is being filled: once it is appended it is found among the whole ones.
        # One that is rewritten does not grow.
        live = _live(file.path, reader) if isinstance(reader, ctf.Reader) else None
        while True:
            data = _bytes_of(file.path, file.offset, file.piece)
            found = reader.read(np.frombuffer(data, np.uint8))
            # One that is cut is being appended.
            cut = np.flatnonzero(found.packet("cut"))
            file.rows = int(cut[0]) if len(cut) else len(found.packets)
            is_full = len(data) == file.piece
            if file.rows or not is_full:
                break
            file.piece *= 2
        file.found, file.row, file.is_more = found, 0, is_full
        return None if is_full else live

    def _new(self, file: _File, process: Process, live: ctf.Events | None, limit: int) -> Iterator[Stream]:
        """Yield the new events of a stream, up to a time of the trace's clock, ns."""
        found = file.found
        assert found is not None
        whole = self._of_packets(file, process, found, limit)
        if whole is not None:
            yield whole
        while file.row < file.rows:
            stream, is_done = self._of_packet(file, process, found, file.row, limit)
            if stream is not None:
                yield stream
            if not is_done:
                return
            file.row += 1
        if file.rows:
            last = found.packets[file.rows - 1]
            file.offset += int(last[ctf.PACKET.index("offset")] + last[ctf.PACKET.index("size")])
        is_last = file.rows == len(found.packets)
        file.found, file.is_more = None, False
        if is_last and live is not None and len(live.packets):
            stream, _ = self._of_packet(file, process, live, 0, limit)
            if stream is not None:
                yield stream

    def _of_packets(self, file: _File, process: Process, found: ctf.Events, limit: int) -> Stream | None:
        """Return the events of as many packets as are whole, new and not beyond the limit; the others are left."""
        numbers, first = found.packet("sequence").astype(np.int64), found.packet("first_event").astype(np.int64)
        begin = file.row
        # The first one may be known in part: it was being filled.
        if begin >= file.rows or numbers[begin] <= file.sequence:
            return None
        ends = first + found.packet("events").astype(np.int64)
        late = np.flatnonzero(found.times[int(first[begin]) : int(ends[file.rows - 1])] > np.uint64(limit))
        stop = int(first[begin] + late[0]) if len(late) else int(ends[file.rows - 1])
        end = begin + int(np.searchsorted(ends[begin : file.rows], stop, side="right"))
        is_next = numbers[begin + 1 : end] > numbers[begin : end - 1]
        end = end if is_next.all() else begin + 1 + int(np.argmin(is_next))
        if end - begin < 2:
            return None
        file.row, file.sequence, file.events = end, int(numbers[end - 1]), int(ends[end - 1] - first[end - 1])
        packets = found.packets[begin:end].copy()
        packets[:, ctf.PACKET.index("first_event")] -= np.uint64(first[begin])
        return self._stream(file, process, found, slice(int(first[begin]), int(ends[end - 1])), packets)

    def _of_packet(
        self, file: _File, process: Process, found: ctf.Events, row: int, limit: int
    ) -> tuple[Stream | None, bool]:
        """Return the new events of a packet, and whether it has none beyond the limit."""
        sequence = int(found.packet("sequence")[row])
        first, count = int(found.packet("first_event")[row]), int(found.packet("events")[row])
        if sequence < file.sequence:
            return None, True
        begin = file.events if sequence == file.sequence else 0
        times = found.times[first : first + count]
        end = int(np.searchsorted(np.maximum.accumulate(times), np.uint64(limit), side="right")) if count else 0
        file.sequence, file.events = sequence, max(begin, end)
        is_done = end == count
        if end <= begin:
            return None, is_done
        part = slice(first + begin, first + end)
        packets = found.packets[row : row + 1].copy()
        packets[0, ctf.PACKET.index("first_event")] = 0
        packets[0, ctf.PACKET.index("events")] = end - begin
        return self._stream(file, process, found, part, packets), is_done

    def _stream(
        self, file: _File, process: Process, found: ctf.Events, part: slice, packets: npt.NDArray[np.uint64]
    ) -> Stream:
        """Return events of some packets as a stream."""
        events = replace(
            found,
            packets=packets,
            classes=found.classes[part],
            times=found.times[part],
            payloads=found.payloads[part],
        )
        ts = np.minimum(events.times, np.uint64(LATEST_NS)).astype(np.int64) + process.epoch_ns
        made = Stream(process.source, file.path.name, file.process, events, ts, np.empty(0, np.int32), is_open=False)
        made.thread = self._rows.threads(file.process, made)
        return made

    def _is_running(self, process: Process) -> bool:
        about = process.reader.about.environment
        pid = about.get("pid")
        return not process.ended and about.get("boot") == self._boot and isinstance(pid, int) and process_exists(pid)


def _last_time(file: _File) -> int:
    """Return the time of the latest event of the packets that were read, of the trace's clock, ns."""
    found = file.found
    if found is None or not file.rows:
        return LATEST_NS
    last = found.packets[file.rows - 1]
    end = int(last[ctf.PACKET.index("first_event")] + last[ctf.PACKET.index("events")])
    return int(min(found.times[:end].max(initial=np.uint64(0)), np.uint64(LATEST_NS)))


def _bytes_of(path: Path, offset: int, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(size)
    except FileNotFoundError:
        return b""


def _live(path: Path, reader: ctf.Reader) -> ctf.Events | None:
    """Return the packet that is being filled, None if there is none, or another one was begun meanwhile."""
    name = path.with_name(path.name + ctf_reader.LIVE)
    try:
        with name.open("rb", buffering=0) as file:
            data = file.read()
            file.seek(0)
            again = file.read(reader.layout.packet_header)
    except FileNotFoundError:
        return None
    parts = reader.layout.parts

    def part(head: bytes, which: str) -> int:
        return int.from_bytes(head[parts[which] : parts[which] + 8], "little")

    is_same = len(data) >= reader.layout.packet_header and all(
        part(data, which) == part(again, which) for which in ("packet_seq_num", "timestamp_begin")
    )
    # Filling begins with an empty content: a smaller one than before is another packet's.
    if not is_same or part(again, "content_size") < part(data, "content_size"):
        return None
    return reader.read(np.frombuffer(data, np.uint8))


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def process_exists(pid: int) -> bool:
    """Return whether a process of this machine runs, be it ours or not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _is_recorder_running(folder: Path) -> bool:
    try:
        pid, _, boot = (folder / layout.RECORDER_MARK).read_text().strip().partition(" ")
    except (OSError, UnicodeDecodeError):
        return False
    if boot != _boot():
        return True  # of another machine nothing else is known
    return pid.isdecimal() and process_exists(int(pid))


def check_recording(folder: Path) -> None:
    """Refuse anything but a recording, or the folder of one that has just begun.

    Raises:
        InputError: with the reason.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no recording", hint="pass the directory of lanescope record")
    if not (folder / layout.RECORDER_MARK).is_file() and next(ctf_reader.folders_of(folder), None) is None:
        raise InputError(f"{folder}: no Level Zero recording", hint="pass the directory of lanescope record")
