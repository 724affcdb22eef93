"""A folder that the recorder wrote -> the event model: one trace per process, one stream per thread."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.ctf_records import add_stream
from lanescope.devices.levelzero.formats.ctf_rows import LATEST_NS, Pause, Process, RecordRows, Stream
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.errors import InputError
from lanescope.source import Capture, Source
from lanescope.wire import ctf

__all__ = ["DOMAIN", "LIVE", "VERSIONS", "Pause", "Process", "Recording", "Stream", "read"]

_STREAM = "stream_*"
#: Ending of the file that holds the packet that is being filled, beside its stream.
LIVE = ".live"
#: Domain name of lanescope's recordings, and the supported versions of their records.
DOMAIN = "lanescope_ze"
#: How folders of the ranks of a parallel program begin.
RANK = "rank-"
VERSIONS = (1,)
#: Entry of the environment of a process that used Level Zero, but was started without the recorder: what it lacked.
UNRECORDED = "unrecorded"


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Everything that a folder holds.

    Attributes:
        processes: its processes.
        streams: their streams.
        events: the event model.
        pauses: time outside of regions.
    """

    processes: Sequence[Process]
    streams: Sequence[Stream]
    events: Events
    pauses: Sequence[Pause]


def read(capture: Capture) -> Recording:
    """Read a recording.

    Args:
        capture: the capture: a folder, or the description of one process.

    Raises:
        InputError: a description cannot be read, or is of another producer.
    """
    if capture.main.container != "raw":
        raise InputError(f"{capture.main.path}: a recording is a directory", hint="pass the directory")
    main = Path(capture.main.path)
    folders = [main.parent] if capture.folder is None else sorted(folders_of(capture.folder), key=_in_order)
    processes: list[Process] = []
    streams: list[Stream] = []
    rows = RecordRows()
    for folder in folders:
        is_main = folder == main.parent
        part = folder.name if capture.folder in (None, folder) else folder.relative_to(capture.folder).as_posix()
        source = capture.main if is_main else capture.open_sidecar(f"{part}/metadata", folder / "metadata")
        reader = _reader(bytes(source.read().data))
        about = reader.about
        if not is_main:
            source.close()
        process = process_of(source, part, reader, processes)
        number = rows.process(str(about.environment.get("hostname", "")), about.environment.get("pid", 0))
        rows.rank(number, about.environment.get("rank"), about.environment.get("ranks", 0))
        found: list[Stream] = []
        for path in sorted(folder.glob(_STREAM), key=_stream_order):
            if path.is_file() and path.stat().st_size:
                of_stream = f"{part}/{path.name}"
                source = capture.open_sidecar(of_stream, path, is_live=path.name.endswith(LIVE))
                stream = _stream(source, of_stream, number, process)
                if found and stream.part == found[-1].part + LIVE:
                    _drop_duplicate_packet(found[-1], stream)
                found.append(stream)
        for stream in found:
            stream.ts = np.minimum(stream.events.times, np.uint64(LATEST_NS)).astype(np.int64) + process.epoch_ns
            stream.thread = rows.threads(number, stream)
        streams += found
        processes.append(process)
    put_in_order(streams)
    for stream in streams:
        add_stream(rows, stream, processes[stream.process])
    return Recording(processes, streams, rows.events(), rows.pauses())


def process_of(
    source: Source, part: str, reader: ctf.Reader | ctf.RewrittenReader, before: Sequence[Process]
) -> Process:
    """Return a process as its description names it.

    Args:
        source: the description.
        part: name of its folder.
        reader: reads its streams.
        before: those that were read before.

    Raises:
        InputError: the description is of another producer.
    """
    about = reader.about
    if about.environment.get("domain") != DOMAIN or about.environment.get("version") not in VERSIONS:
        raise InputError(f"{source.path}: CTF trace of another producer", hint="use babeltrace2 to inspect it")
    process = Process(source, part, reader, _epoch(about, before))
    process.unrecorded = str(about.environment.get(UNRECORDED, ""))
    return process


def _reader(text: bytes) -> ctf.Reader | ctf.RewrittenReader:
    """Return what reads the streams of a process: of the recorder, or as babeltrace2 has rewritten them."""
    try:
        return ctf.Reader(ctf.describe(text))
    except ctf.CtfError:
        if not re.search(layout.DOMAIN, text):
            raise
        return ctf.RewrittenReader(text)


def folders_of(folder: Path) -> Iterator[Path]:
    """Yield the folders of the processes of a recording."""
    if (folder / "metadata").is_file():
        yield folder
        return
    for pattern in ("*/metadata", f"{RANK}*/*/metadata"):
        for path in folder.glob(pattern):
            if path.is_file():
                yield path.parent


def _in_order(folder: Path) -> list[tuple[int, str]]:
    """Order folders by name, ranks by number."""
    words = re.findall(r"\d+|\D+", folder.as_posix())
    return [(int(word), "") if word.isdecimal() else (-1, word) for word in words]


def _epoch(about: ctf.Metadata, before: Sequence[Process]) -> int:
    """Return the begin of a process' clock; processes of one boot share a clock, so they share its first reading."""
    boot = about.environment.get("boot")
    for process in before:
        known = process.reader.about
        if (
            boot
            and known.environment.get("boot") == boot
            and abs(known.epoch_ns - about.epoch_ns) < layout.NS_PER_SECOND
        ):
            return process.epoch_ns
    return about.epoch_ns


def _stream_order(path: Path) -> tuple[int, str]:
    """Order streams by number, each before the packet that was being filled for it."""
    name = path.name.removesuffix(LIVE)
    return len(name), path.name


def _stream(source: Source, part: str, number: int, process: Process) -> Stream:
    events = process.reader.read(source.read())
    source.close()  # there may be more streams than files may be open
    complete = events.packet("complete")
    is_open = bool(len(complete)) and not (complete[-1] & np.uint64(1))
    return Stream(source, part, number, events, np.empty(0, np.int64), np.empty(0, np.int32), is_open)


def _drop_duplicate_packet(stream: Stream, live: Stream) -> None:
    """Leave one out of two packets of one number: a kill came when the packet had been appended, wholly or in part."""
    ours, theirs = stream.events, live.events
    if len(ours.packets) and len(theirs.packets) and ours.packet("sequence")[-1] == theirs.packet("sequence")[-1]:
        if ours.packet("cut")[-1]:
            stream.events = ours.drop_last_packet()
        else:
            live.events = theirs.drop_last_packet()


def put_in_order(streams: Sequence[Stream]) -> None:
    """Put the events of all streams into one order: by time, those of one stream as they stand."""
    if not streams:
        return
    # A clock that steps back within a stream must not change the order of a thread's events.
    ts = np.concatenate([np.maximum.accumulate(s.ts) if len(s.ts) else s.ts for s in streams])
    seq = np.empty(len(ts), np.int64)
    seq[np.argsort(ts, kind="stable")] = np.arange(len(ts))
    at = 0
    for stream in streams:
        stream.seq = seq[at : at + len(stream.ts)]
        at += len(stream.ts)
