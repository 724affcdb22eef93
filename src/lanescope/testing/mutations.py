"""Captures with one thing changed, and what lanescope makes of each: does a wrong value reach the user in silence?

``mutations(format, files)`` changes the fields and records that a format declares (``Format.fields``), one at a time
and always the same ones; a ``Judge`` decodes and checks what comes out, and compares it with the original.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lanescope import InputError
from lanescope.analysis import check
from lanescope.families.field_sites import CHANGES, CUT, DROPPED, EXCHANGED, FieldSites, RecordSites, Value
from lanescope.families.rules import SEVERITIES
from lanescope.pipeline import session
from lanescope.trace import Trace

if TYPE_CHECKING:
    from lanescope.families.family import Format

#: What became of a mutant: refused as no capture; a new finding, by severity; more bytes or records counted as lost;
#: the tables of the original; other tables, and no finding.
VERDICTS = ("refused", *reversed(SEVERITIES), "lost", "same", "visible")
#: Verdicts by which a user learns that something is wrong.
DETECTED = ("refused", *reversed(SEVERITIES), "lost")

#: Changes to one value.
FLIP, LESS, MORE, ZERO, MOST, SWAP, COPY = VALUE_CHANGES = (
    *("bit flipped", "minus 1", "plus 1", "zero", "maximum"),
    *("exchanged with the next", "copy of the previous"),
)
_TRIES = 12
_LARGEST = tuple((1 << bits) - 1 for bits in (31, 32, 63, 64))
_LETTERS = b"etaoinsrhl0123456789_-. xyz"
#: Columns that say what the file is and how long, not what is in it. Bytes that are padding or lost do count.
_OF_FILE = {"inputs": ("sha256", "size", "path"), "accounting": ("total", "decoded")}
_DIGITS = re.compile(r"[0-9][0-9.,e+]*")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A capture with one thing changed.

    Attributes:
        record: the record.
        field: the field; empty: whole records were changed.
        change: one of ``VALUE_CHANGES`` or of ``lanescope.families.field_sites.CHANGES``.
        index: which of the sites.
        detail: the value before and after.
        files: the files that differ from the original, by name.
        reason: why a healthy device could have written it; empty: it could not.
    """

    record: str
    field: str
    change: str
    index: int
    detail: str
    files: Mapping[str, bytes]
    reason: str


def mutations(format: Format, files: Mapping[str, bytes], *, count: int, seed: int = 0) -> Iterator[Mutant]:
    """Yield captures with one thing changed: each declared field and record of a capture gets its share.

    Args:
        format: declares where its fields lie, in ``fields``.
        files: a sound capture, the main file first.
        count: about how many, spread evenly over the fields and the kinds of records.
        seed: another seed gives other mutants.

    Yields:
        Mutants whose bytes differ from the original; the same ones for the same arguments.

    Raises:
        ValueError: the format does not declare where its fields lie.
    """
    if format.fields is None:
        raise ValueError(f"format {format.name} does not declare `fields`")
    sites = format.fields(files)
    kinds: list[FieldSites | RecordSites] = [*sites.fields, *sites.records]
    kinds = [kind for kind in kinds if len(kind)]
    share = -(-count // max(len(kinds), 1))
    for kind in kinds:
        name = kind.name if isinstance(kind, FieldSites) else ""
        draw = random.Random(f"{seed} {kind.file} {kind.record} {name}")
        for _ in range(share):
            for _ in range(_TRIES):
                made = _value(kind, files, draw) if isinstance(kind, FieldSites) else _records(kind, files, draw)
                if made is not None:
                    yield made
                    break


# --- values -------------------------------------------------------------------------------------------------------


def _value(site: FieldSites, files: Mapping[str, bytes], draw: random.Random) -> Mutant | None:
    content = files[site.file]
    index, change = draw.randrange(len(site)), draw.choice(VALUE_CHANGES)
    before = site.read(content, index)
    other = _neighbor(site, index, 1 if change == SWAP else -1)
    if change in (SWAP, COPY):
        if other is None:
            return None
        after = site.read(content, other)
    else:
        after = _changed(site, before, change, draw)
    if after == before:
        return None
    values = {index: after}
    if change == SWAP and other is not None:
        values[other] = before
    made = content
    # From the last to the first, as text may grow.
    for place in sorted(values, key=lambda place: -site.begin[place]):
        made = site.write(made, place, values[place])
    if made == content:
        return None
    detail = f"{_shown(before)} -> {_shown(after)}"
    return Mutant(site.record, site.name, change, index, detail, {site.file: made}, site.possible(values))


def _changed(site: FieldSites, before: Value, change: str, draw: random.Random) -> Value:
    if isinstance(before, bytes):
        return _changed_text(before, change, draw)
    width = site.width
    if change == FLIP:
        return before ^ 1 << draw.randrange(width or max(abs(before).bit_length() + 2, 4))
    most = (1 << width) - 1 if width else draw.choice(_LARGEST)
    after = {LESS: before - 1, MORE: before + 1, ZERO: 0, MOST: most}[change]
    return after & (1 << width) - 1 if width else after


def _changed_text(before: bytes, change: str, draw: random.Random) -> bytes:
    """Change text inside its quotes, if it has any."""
    quote = before[:1] if before[:1] == b'"' else b""
    inner = before[len(quote) : len(before) - len(quote)]
    at = draw.randrange(len(inner) or 1)
    letter = bytes([draw.choice(_LETTERS)])
    made = {
        FLIP: inner[:at] + bytes([(inner[at] if inner else 0) ^ 1 << draw.randrange(7)]) + inner[at + 1 :],
        LESS: inner[:at] + inner[at + 1 :],
        MORE: inner[:at] + letter + inner[at:],
        ZERO: b"",
        MOST: inner[:at] + letter + inner[at + 1 :],
    }[change]
    return quote + made + quote


def _neighbor(site: FieldSites | RecordSites, index: int, step: int) -> int | None:
    """Return the next or previous site of the same lane, None where there is none."""
    at = index + step
    while 0 <= at < len(site):
        if site.lane[at] == site.lane[index]:
            return at
        at += step
    return None


def _shown(value: Value) -> str:
    return str(value) if isinstance(value, int) else value.decode("utf-8", "backslashreplace")


# --- records ------------------------------------------------------------------------------------------------------


def _records(site: RecordSites, files: Mapping[str, bytes], draw: random.Random) -> Mutant | None:
    content = files[site.file]
    index, change = draw.randrange(len(site)), draw.choice(CHANGES)
    following = _neighbor(site, index, 1)
    begin, end = site.begin[index], site.end[index]
    raw = content[begin:end]
    if change == CUT:
        made = content[: draw.randrange(begin, end)]
    elif change == DROPPED:
        made = _dropped(site, content, index, following)
    elif following is None:
        return None
    else:
        first, last = site.begin[following], site.end[following]
        if first < end:
            return None
        between = content[end:first]
        if change == EXCHANGED:
            made = content[:begin] + content[first:last] + between + raw + content[last:]
        elif site.is_slot:
            made = content[:first] + raw + content[last:]
        else:
            made = content[:begin] + raw + site.joint + content[begin:]
    if made == content:
        return None
    reason = site.possible(change, index)
    return Mutant(site.record, "", change, index, f"record {index}", {site.file: made}, reason)


def _dropped(site: RecordSites, content: bytes, index: int, following: int | None) -> bytes:
    begin, end = site.begin[index], site.end[index]
    if site.is_slot:
        return content[:begin] + bytes(end - begin) + content[end:]
    if site.joint and following is not None:
        end = site.begin[following]
    elif site.joint:
        before = _neighbor(site, index, -1)
        begin = begin if before is None else site.end[before]
    return content[:begin] + content[end:]


# --- judging ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """What lanescope made of a mutant.

    Attributes:
        name: one of ``VERDICTS``.
        by: codes of the new findings of the worst severity; the message of a refusal.
    """

    name: str
    by: str = ""

    @property
    def is_detected(self) -> bool:
        """Whether the user learns that something is wrong."""
        return self.name in DETECTED


class Judge:
    """Decodes and checks captures that differ from a sound one. Keeps them in a folder until it is closed.

    Args:
        files: the sound capture, the main file first; names may hold folders.
        main: what is opened: the first file, or a folder.
        options: decode options.

    Attributes:
        findings: codes of what check finds in the original.
    """

    def __init__(self, files: Mapping[str, bytes], main: str = "", options: Mapping[str, Any] = {}) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._files = dict(files)
        self._main = Path(self._folder.name, main or next(iter(files)))
        self._options = dict(options)
        for name in files:
            self._put(name, files[name])
        trace = session.open(self._main, **self._options)
        self.findings, self._found = check.run(trace), _found(trace)
        self._lost, self._tables = _lost(trace), _tables(trace)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Remove its folder."""
        self._folder.cleanup()

    def _put(self, name: str, content: bytes) -> None:
        path = Path(self._folder.name, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def judge(self, changed: Mapping[str, bytes | None]) -> Verdict:
        """Decode and check the capture with some files changed, or missing where there is None.

        Raises:
            Exception: what decoding or checking raises for data: a bug of lanescope, as bad data never raises.
        """
        for name, content in changed.items():
            if content is None:
                Path(self._folder.name, name).unlink()
            else:
                self._put(name, content)
        try:
            return self._verdict()
        finally:
            for name in changed:
                self._put(name, self._files[name])

    def _verdict(self) -> Verdict:
        try:
            trace = session.open(self._main, **self._options)
        except InputError as error:
            return Verdict("refused", error.message)
        new = {key: place for key, place in _found(trace).items() if place > self._found.get(key, 0)}
        for severity in reversed(SEVERITIES):
            codes = {code for code, of, *_ in new if of == severity}
            if codes:
                return Verdict(severity, " ".join(sorted(codes)))
        if _lost(trace) > self._lost:
            return Verdict("lost")
        return Verdict("same" if _tables(trace) == self._tables else "visible")


def _found(trace: Trace) -> dict[tuple[str, str, str, str], int]:
    """Return how often each finding occurs, by rule, severity, lane and words; numbers in the words aside."""
    found: dict[tuple[str, str, str, str], int] = {}
    for finding in check.run(trace):
        key = finding.code, finding.severity, finding.location.track, _DIGITS.sub("#", finding.detail)
        found[key] = found.get(key, 0) + finding.count
    return found


def _lost(trace: Trace) -> int:
    table = trace.accounting
    return int((table.values("lost") * table.values("unit_bytes")).sum())


def _tables(trace: Trace) -> dict[tuple[str, str], Any]:
    """Return all columns as comparable values; those that name the file aside."""
    made: dict[tuple[str, str], Any] = {}
    for name, table in trace.tables().items():
        for column in table.spec.names:
            if column in _OF_FILE.get(name, ()):
                continue
            values = table.values(column)
            raw = values.tolist() if values.dtype == object else np.ascontiguousarray(values).tobytes()
            made[name, column] = raw, table.valid(column).tobytes()
    made["", "time"] = repr(trace.time), b""
    return made
