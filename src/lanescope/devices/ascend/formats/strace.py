"""Logs of a host: spans (``[STRACE]``) between other lines, of any processes, one after the other or in one line.

Source: logs of hw-native-sys/simpler at 6ebaf77, runs of its simulated platforms, and its manual of host traces; of
counter readings in attributes only its sources at 129e28e.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.ascend.formats.records import Bytes, Tally
from lanescope.errors import InputError
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]
Texts = npt.NDArray[np.object_]

#: What a span begins with, wherever it is in a line.
TAG = b"[STRACE]"
#: Where another record begins in a line, which processes that share a console write without a line between.
_NEXT = re.compile(rb"(?=\[mono_ns=[0-9]{1,19}\]\[T0x)")
_SPAN = re.compile(
    rb"\[STRACE\] +v=1 +pid=([0-9]{1,10}) +tid=([0-9]{1,10}) +inv=([0-9]{1,19}) +hid=([0-9a-fA-F]{1,16})"
    rb" +depth=([0-9]{1,9}) +name=(\S+) +ts=([0-9]{1,19}) +dur=([0-9]{1,19})(?![0-9])((?: +[^\s=\[\x1b]+=[^\s\x1b]*)*)"
)
#: When a line was written.
_WRITTEN = re.compile(rb"\[mono_ns=([0-9]{1,19})\]")
_MESSAGE = re.compile(rb"\[mono_ns=([0-9]{1,19})\]\[T(0x[0-9a-fA-F]{1,16})\]\[([A-Z0-9_]{1,16})\] +([^:\s]+): ?(.*)")
_DROPS = re.compile(rb"\[HOSTLOG_DROPS\] +v=1 +pid=([0-9]{1,10}) +new=[0-9]+ +total=([0-9]{1,18})")
#: What terminals are colored with.
_COLOR = re.compile(rb"\x1b\[[0-9;]{0,16}m")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
#: The attribute of spans whose times are of a device, and the point on the clock of the host that has it as well: its
#: readings of the device are attributes.
_OF_DEVICE, _POINT = "clk=dev", ".device_boundaries"
_MOST, _MOST_ID, _DIGITS = (1 << 62) - 1, (1 << 31) - 1, 19


@frozen_class
class HostLog:
    """Spans and messages of a log, in the order of the file.

    Attributes:
        process, thread, run: int64 [n]; spans of one call share process and run.
        function: object [n], hash of what was called, as hexadecimal.
        depth: int64 [n], spans of the thread that enclose it.
        name: object [n], with its parents, separated by dots.
        begin, length: int64 [n], nanoseconds: of the host's monotonic clock, or of a device since a time of the run.
        of_device: bool [n], which of the two.
        attributes: object [n], ``key=value`` separated by spaces.
        written: int64 [n], when the line was written, on the host's monotonic clock; -1: not recorded.
        message_at: int64 [m], nanoseconds of the host's monotonic clock.
        message_thread, message_level, message_source, message_text: object [m].
        dropped: records that the writers of the log dropped, of all processes.
        tally: of spans and messages, and of spans that are not valid; lines of other programs are padding.
    """

    process: Int64
    thread: Int64
    run: Int64
    function: Texts
    depth: Int64
    name: Texts
    begin: Int64
    length: Int64
    of_device: Mask
    attributes: Texts
    written: Int64
    message_at: Int64
    message_thread: Texts
    message_level: Texts
    message_source: Texts
    message_text: Texts
    dropped: int
    tally: Tally

    def __len__(self) -> int:
        return len(self.begin)

    def numbers(self, rows: Int64, *keys: str) -> Int64:
        """Return attributes that are numbers, int64 [rows, keys], -1 where one is missing or none."""
        found = np.full((len(rows), len(keys)), -1, np.int64)
        for at, row in enumerate(rows.tolist()):
            values = attributes_of(self.attributes[row])
            found[at] = [_number(values.get(key, "")) for key in keys]
        return found

    @classmethod
    def join(cls, logs: Sequence[HostLog]) -> HostLog:
        """Return several logs as one; the numbers of bytes and losses are sums."""
        if len(logs) == 1:
            return logs[0]
        made: dict[str, Any] = {}
        for name, first in vars(logs[0]).items():
            if isinstance(first, np.ndarray):
                made[name] = np.concatenate([getattr(log, name) for log in logs])
        dropped, tallies = sum(log.dropped for log in logs), [log.tally for log in logs]
        sums = (sum(getattr(tally, name) for tally in tallies) for name in ("good_bytes", "bad_bytes", "bad_count"))
        return cls(**made, dropped=dropped, tally=Tally(*sums))


def read_log(text: Bytes, path: str, *, needs_spans: bool = True) -> HostLog:
    """Read the spans and messages; a span that is not valid is left out and counted.

    Args:
        text: the file, uint8.
        path: for messages.
        needs_spans: refuse a log without a span; the runtime writes such logs too, as its verbosity wants.

    Raises:
        InputError: it contains no span, and needs one.
    """
    spans: list[tuple[Any, ...]] = []
    messages: list[tuple[Any, ...]] = []
    dropped: dict[int, int] = {}
    good, bad, lines, first, at = 0, 0, 0, None, 0
    content = text.tobytes()
    for line in content.split(b"\n"):
        for piece in _NEXT.split(line) if b"[" in line else ():
            offset, at = at, at + len(piece)
            tags = [match.start() for match in re.finditer(re.escape(TAG), piece)]
            message = None if tags else _MESSAGE.fullmatch(_COLOR.sub(b"", piece).rstrip(b"\r"))
            if message and int(message[1]) <= _MOST:
                good += len(piece)
                messages.append((int(message[1]), *(part.decode(errors="replace") for part in message.groups()[1:])))
                lost = _DROPS.search(piece)
                if lost:
                    dropped[int(lost[1])] = max(dropped.get(int(lost[1]), 0), int(lost[2]))
            # What comes before the first span of a piece belongs to it.
            for begin, end in zip([0, *tags[1:]], [*tags[1:], len(piece)], strict=True) if tags else ():
                row, used = _span(piece[begin:end])
                if row is None:
                    first = offset + begin if first is None else first
                    bad, lines = bad + end - begin, lines + 1
                    continue
                good += used
                spans.append(row)
        at += 1 if b"[" in line else len(line) + 1
    if needs_spans and not spans and not lines:
        raise InputError(f"{path}: no host spans found", hint="pass a log with [STRACE] lines")
    columns = list(zip(*spans, strict=True)) or [()] * 11
    told = list(zip(*messages, strict=True)) or [()] * 5
    numbers = [np.array(column, np.int64) for column in (*columns[:3], columns[4], *columns[6:8])]
    return HostLog(
        process=numbers[0],
        thread=numbers[1],
        run=numbers[2],
        function=_objects(columns[3]),
        depth=numbers[3],
        name=_objects(columns[5]),
        begin=numbers[4],
        length=numbers[5],
        of_device=np.array(columns[8], np.bool_),
        attributes=_objects(columns[9]),
        written=np.array(columns[10], np.int64),
        message_at=np.array(told[0], np.int64),
        message_thread=_objects(told[1]),
        message_level=_objects(told[2]),
        message_source=_objects(told[3]),
        message_text=_objects(told[4]),
        dropped=sum(dropped.values()),
        tally=Tally(good, bad, lines, first),
    )


def _span(text: bytes) -> tuple[tuple[Any, ...] | None, int]:
    """Return the values of a span that a text contains, and how many bytes of the text are of it; None: not valid."""
    match = _SPAN.search(text)
    if not match:
        return None, 0
    process, thread, run, depth, begin, length = (int(match[group]) for group in (1, 2, 3, 5, 7, 8))
    if max(process, thread) > _MOST_ID or max(run, begin, length, begin + length) > _MOST:
        return None, 0
    attributes = " ".join(_text(part) for part in match[9].split())
    line = _WRITTEN.search(text, 0, match.start())
    written = int(line[1]) if line and int(line[1]) <= _MOST else -1
    rest, name = text[match.end() :].strip(), _text(match[6])
    of_device = _OF_DEVICE in attributes.split() and not name.endswith(_POINT)
    return (
        (
            *(process, thread, run, match[4].decode().lower(), depth, name, begin, length),
            *(of_device, attributes, written),
        ),
        len(text) - len(rest),
    )


def attributes_of(text: str | None) -> dict[str, str]:
    """Return the attributes of a span by their keys."""
    pairs = (part.partition("=") for part in (text or "").split())
    return {key: value for key, equals, value in pairs if equals}


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text) <= _MOST else -1


def _text(raw: bytes) -> str:
    """Return a text with the bytes that writers escape because they would end it."""
    return _ESCAPE.sub(lambda match: bytes((int(match[1], 16),)), raw).decode(errors="replace")


def _objects(values: Any) -> Texts:
    return np.fromiter(values, object, len(values))


def encode_log(log: HostLog) -> bytes:
    """Return the log of the spans and messages, the messages first, as ``read_log`` reads it."""
    lines = [
        f"[mono_ns={at}][T{thread}][{level}] {source}: {text}"
        for at, thread, level, source, text in zip(
            log.message_at.tolist(),
            log.message_thread,
            log.message_level,
            log.message_source,
            log.message_text,
            strict=True,
        )
    ]
    for row in range(len(log)):
        at = f"[mono_ns={log.written[row]}]" if log.written[row] >= 0 else ""
        attributes = " ".join(_escaped(part, "=") for part in log.attributes[row].split(" "))
        lines.append(
            f"{at}[T0x{log.thread[row]:x}][TIMING] emit_host_span: [STRACE] v=1 pid={log.process[row]}"
            f" tid={log.thread[row]} inv={log.run[row]} hid={log.function[row]} depth={log.depth[row]}"
            f" name={_escaped(log.name[row])} ts={log.begin[row]} dur={log.length[row]} {attributes}".rstrip(" ")
        )
    return "".join(f"{line}\n" for line in lines).encode()


def _escaped(text: str, allowed: str = "") -> str:
    """Return a text as writers encode it: without control bytes, and without what ends a field."""
    kept = "~._-:/,+()" + allowed
    return "".join(
        character
        if character.isalnum() or character in kept
        else "".join(f"%{byte:02X}" for byte in character.encode())
        for character in text
    )
