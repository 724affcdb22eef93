"""The path itself as rows: templates of windows, put together by arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.path import schema
from lanescope.devices.aie.path.program.program import Program, straight_runs
from lanescope.devices.aie.path.segments import Segment
from lanescope.devices.aie.path.walk.walker import REASONS, Section, Walk, Walker
from lanescope.devices.aie.path.walk.windows import Element, Iterations, Resolved, Window
from lanescope.trace import Column, Dictionary, Table

I64 = npt.NDArray[np.int64]

_CERTAIN, _LOOP, _AMBIGUOUS, _POSSIBLE, _UNRESOLVED, _ASSUMPTION = range(len(schema.QUALITIES))
_EXACT, _AT_LEAST, _UNKNOWN = range(len(schema.PASSES))
#: Columns of a template: quality, first, last, bundles, passes, what is added to those (register, at which step), how
#: they are known, alternatives, note.
_QUALITY, _FIRST, _LAST, _BUNDLES, _PASSES, _FACTOR, _AT, _KNOWN, _ALTERNATIVES, _NOTE = range(10)
_WIDTH = 10
_NONE = -1
#: Alternatives that a note spells out.
_SPELT = 6


def _run_rows(program: Program, elements: Sequence[Element], quality: int) -> list[list[int]]:
    """Rows of a stretch of one path."""
    rows: list[list[int]] = []
    waiting: list[int] = []

    def flush() -> None:
        for first, last, count in straight_runs(program, waiting):
            rows.append([quality, first, last, count, 1, 0, 0, _EXACT, 1, 0])
        waiting.clear()

    for element in elements:
        if isinstance(element, Iterations):
            flush()
            known = _UNKNOWN if element.step == 1 else _AT_LEAST if element.step else _EXACT
            what = _LOOP if quality == _CERTAIN else quality
            body = element.body
            rows.append([what, body[0], body[-1], len(body), element.constant, element.factor, element.at, known, 1, 0])
        else:
            waiting.append(element)
    flush()
    return rows


@dataclass(eq=False)
class _Templates:
    """Rows by window and trust; notes by number."""

    program: Program
    notes: list[str]

    def of(self, window: Window, *, is_trusted: bool) -> list[list[int]]:
        quality = _CERTAIN if is_trusted else _POSSIBLE
        if window.is_certain:
            return _run_rows(self.program, window.strings[0], quality)
        if window.paths is None:
            return [[_AMBIGUOUS, _NONE, _NONE, _NONE, _NONE, 0, 0, _UNKNOWN, _NONE, 0]]
        begin, end = window.common
        first = window.strings[0]
        rows = _run_rows(self.program, first[:begin], quality)
        rows.append(self._ambiguous(window, begin, end))
        return rows + _run_rows(self.program, first[len(first) - end :] if end else (), quality)

    def _ambiguous(self, window: Window, begin: int, end: int) -> list[int]:
        middles = [string[begin : len(string) - end] for string in window.strings]
        shortest = min(sum(isinstance(element, int) for element in middle) for middle in middles)
        spelt = [self._spell(middle) for middle in middles[:_SPELT]]
        more = f" | {len(middles) - _SPELT} more" if len(middles) > _SPELT else ""
        self.notes.append(" | ".join(spelt) + more)
        return [_AMBIGUOUS, _NONE, _NONE, shortest, 1, 0, 0, _EXACT, len(middles), len(self.notes) - 1]

    def _spell(self, elements: Sequence[Element]) -> str:
        if not elements:
            return "nothing"
        parts = []
        for row in _run_rows(self.program, elements, _CERTAIN):
            text = f"{row[_FIRST]:#x}..{row[_LAST]:#x}" if row[_FIRST] != row[_LAST] else f"{row[_FIRST]:#x}"
            times = {_UNKNOWN: " n times", _AT_LEAST: " many times"}.get(row[_KNOWN], " by its count")
            parts.append(text + (times if row[_QUALITY] == _LOOP else ""))
        return " ".join(parts)


def _tail_rows(program: Program, tail: Resolved) -> list[list[int]]:
    """What the last frame leaves open: the bundle that it is of is certain, what follows possible."""
    sure = {edge.items[: edge.sure] for edge in tail.edges}
    rows = (
        _run_rows(program, [item for item in next(iter(sure)) if isinstance(item, int)], _CERTAIN)
        if len(sure) == 1
        else []
    )
    ways = dict.fromkeys(edge.items[edge.sure if len(sure) == 1 else 0 :] for edge in tail.edges)
    for items in ways:
        simple: list[Element] = [
            item if isinstance(item, int) else Iterations(item.body, item.passes, item.factor, item.step, 0)
            for item in items
        ]
        found = _run_rows(program, simple, _POSSIBLE)
        for row in found:
            row[_ALTERNATIVES] = len(ways)
        rows += found
    return rows


def path_table(
    program: Program,
    recordings: Sequence[Segment],
    walker: Walker,
    walks: Sequence[Walk],
    assumed: Sequence[Sequence[tuple[int | None, str]]],
    offsets: Callable[[Segment, Sequence[int]], I64],
) -> Table:
    """Return the table ``aie_path``.

    Args:
        program: the program.
        recordings: what was walked.
        walker: what walked, the path being kept.
        walks: what it found in each.
        assumed: for each recording what its path rests on: the bundle that is meant, in words.
        offsets: says where in the capture rows of a recording lie; -1 where it does not know.
    """
    notes = [""]
    templates = _Templates(program, notes)
    reasons = {reason: len(notes) + i for i, reason in enumerate(REASONS)}
    notes += REASONS.values()
    cache: dict[bool, tuple[I64, I64, I64]] = {}
    parts: list[I64] = []  # template columns, then first frame, last frame, offset, track
    for recording, walk, beliefs in zip(recordings, walks, assumed, strict=True):
        found = [(piece.first, _piece_rows(program, walker, templates, piece, cache)) for piece in walk.pieces]
        places = offsets(recording, [lost.first for lost in walk.unresolved]) if walk.unresolved else ()
        for (first, last, reason), place in zip(walk.unresolved, places, strict=True):
            row = [_UNRESOLVED, _NONE, _NONE, _NONE, _NONE, 0, 0, _UNKNOWN, _NONE, reasons[reason], first, last, place]
            found.append((first, np.array([row], np.int64)))
        for address, text in reversed(beliefs):
            notes.append(text)
            at = _NONE if address is None else address
            row = [_ASSUMPTION, at, at, _NONE, _NONE, 0, 0, _UNKNOWN, _NONE, len(notes) - 1, 0, 0, _NONE]
            found.insert(0, (-1, np.array([row], np.int64)))
        for _, block in sorted(found, key=lambda pair: pair[0]):
            parts.append(np.column_stack([block, np.full(len(block), recording.track_id)]))
    rows = np.concatenate(parts) if parts else np.zeros((0, _WIDTH + 4), np.int64)
    return _table(program, _joined(program, rows), notes)


def _piece_rows(
    program: Program,
    walker: Walker,
    templates: _Templates,
    piece: Section,
    cache: dict[bool, tuple[I64, I64, I64]],
) -> I64:
    """Rows of a piece: templates, with first and last frame behind them, and no offset."""
    if piece.is_trusted not in cache:
        cache[piece.is_trusted] = _all_templates(walker, templates, is_trusted=piece.is_trusted)
    flat, starts, lengths = cache[piece.is_trusted]
    parts = [np.zeros((0, _WIDTH + 3), np.int64)]
    registers = np.concatenate(piece.registers) if piece.registers else np.zeros(0, np.int64)
    for numbers, frames, begins in zip(piece.numbers, piece.rows, piece.begins, strict=True):
        times = lengths[numbers]
        offset = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
        block = flat[np.repeat(starts[numbers], times) + offset]
        with_register = block[:, _FACTOR] != 0
        at = np.repeat(begins, times)[with_register] + block[with_register, _AT]
        block[with_register, _PASSES] += block[with_register, _FACTOR] * registers[at]
        parts.append(np.column_stack([block, np.repeat(frames, times, axis=0), np.full(len(block), _NONE)]))
    if piece.tail is not None:
        tail = np.array(_tail_rows(program, piece.tail), np.int64).reshape(-1, _WIDTH)
        tail[:, _PASSES] += tail[:, _FACTOR] * piece.last_register
        if not piece.is_trusted:
            tail[:, _QUALITY] = _POSSIBLE
        parts.append(np.column_stack([tail, np.full((len(tail), 3), (piece.last, piece.last, _NONE))]))
    return np.concatenate(parts)


def _all_templates(walker: Walker, templates: _Templates, *, is_trusted: bool) -> tuple[I64, I64, I64]:
    each = [templates.of(window, is_trusted=is_trusted) for window in walker.windows]
    lengths = np.array([len(rows) for rows in each], np.int64)
    flat = np.array([row for rows in each for row in rows], np.int64).reshape(-1, _WIDTH)
    return flat, np.cumsum(lengths) - lengths, lengths


def _joined(program: Program, rows: I64) -> I64:
    """Join stretches that go on where the one before ended."""
    # A loop of one pass goes back no time.
    rows = rows[(rows[:, _QUALITY] != _LOOP) | (rows[:, _KNOWN] != _EXACT) | (rows[:, _PASSES] > 0)]
    if not len(rows):
        return rows
    ends = np.zeros(max((bundle.end for bundle in program.bundles), default=0) + 2, np.int64)
    for bundle in program.bundles:
        ends[bundle.address] = bundle.end
    quality, first, last = rows[:, _QUALITY], rows[:, _FIRST], rows[:, _LAST]
    goes_on = np.zeros(len(rows), np.bool_)
    goes_on[1:] = (
        (quality[1:] == quality[:-1])
        & (quality[1:] == _CERTAIN)
        & (first[1:] >= 0)
        & (ends[last[:-1]] == first[1:])
        & (rows[1:, -1] == rows[:-1, -1])
    )
    begins = np.flatnonzero(~goes_on)
    lasts = np.append(begins[1:], len(rows)) - 1
    joined = rows[begins].copy()
    joined[:, _LAST] = last[lasts]
    joined[:, _BUNDLES] = np.add.reduceat(rows[:, _BUNDLES], begins)
    joined[:, _WIDTH + 1] = rows[lasts, _WIDTH + 1]
    return joined


def _table(program: Program, rows: I64, notes: list[str]) -> Table:
    def number(values: I64, dtype: type, *, nullable: bool = True) -> Column:
        valid = values != _NONE
        blank: npt.NDArray[Any] = np.where(valid, values, 0).astype(dtype)
        return Column.array(blank, valid=None if not nullable or valid.all() else valid)

    def text(codes: I64, texts: Sequence[str]) -> Column:
        dictionary = Dictionary()
        known = dictionary.codes(texts)
        return Column.array(known[codes].astype(np.int32), dictionary=dictionary)

    quality = rows[:, _QUALITY]
    starts = np.array([function.address for function in program.functions], np.int64)
    stops = np.array([function.end for function in program.functions], np.int64)
    of = np.searchsorted(starts, rows[:, _FIRST], side="right") - 1
    inside = (of >= 0) & (rows[:, _FIRST] < stops[of]) if len(starts) else np.zeros(len(rows), np.bool_)
    names = ["", *(function.name for function in program.functions)]
    passes = np.where(rows[:, _KNOWN] == _UNKNOWN, _NONE, rows[:, _PASSES])
    return Table(
        schema.PATH,
        {
            "track_id": number(rows[:, _WIDTH + 3], np.int64, nullable=False),
            "quality": text(quality, schema.QUALITIES),
            "first_frame": number(rows[:, _WIDTH], np.int64, nullable=False),
            "last_frame": number(rows[:, _WIDTH + 1], np.int64, nullable=False),
            "offset": number(rows[:, _WIDTH + 2], np.int64),
            "first_address": number(rows[:, _FIRST], np.int32),
            "last_address": number(rows[:, _LAST], np.int32),
            "bundle_count": number(rows[:, _BUNDLES], np.int64),
            "iterations": number(passes, np.int64),
            "iterations_quality": text(rows[:, _KNOWN], schema.PASSES),
            "alternatives": number(rows[:, _ALTERNATIVES], np.int64),
            "function": text(np.where(inside, of + 1, 0), names),
            "note": text(rows[:, _NOTE], notes),
        },
    )
