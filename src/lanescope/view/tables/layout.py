"""Make a table fit a line: texts give way first, then bars, then whole columns; numbers stay whole.

Texts give way as long as they still tell rows apart. Where that is not enough, bars and the columns that matter least
go before names become alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lanescope.view.formatting import display_width, fit_width
from lanescope.view.tables.cells import UNKNOWN, bar, cell, headline

if TYPE_CHECKING:
    from lanescope.view.tables.columns import Col

#: Characters between columns, and those that each text keeps as long as anything else can give way.
_BETWEEN, _LEAST = 2, 12
#: Columns of a larger priority go before texts become alike; texts of how many rows are compared; and the width of
#: texts that read well, and beyond which nothing goes for them.
_SPARE, _COMPARED, _GOOD, _WIDEST = 5, 100, 20, 40
#: How much of what is left of a text is its beginning: the first of these that tells the most texts apart.
_HEAD_SHARES = (0.5, 0.25)
#: How much of the beginning of texts stays that are cut where they differ, and how often what is still alike is cut.
_KEPT, _ROUNDS = 4, 3
#: Characters of a bar: as many as there is room for.
_BAR, _LEAST_BAR, _LONGEST_BAR = 20, 4, 40
#: Where lines have any length, longer texts make no column wider: they are shown whole, and move the rest of their row.
_USUAL_TEXT = 100
#: A number, which stays on the line of its unit or of what it counts.
_NUMBER = re.compile(r"[(<~]*[-+]?\d[\d,]*(\.\d+)?")
#: What a character is where the terminal knows ASCII only.
_ASCII = str.maketrans({
    "─": "-", "…": "~", "µ": "u", "×": "x", "█": "#", "·": ".", **dict.fromkeys("▏▎▍▌", "-"),  # noqa: RUF001
    **dict.fromkeys("▋▊▉", "="),
})  # fmt: skip


class Room:
    """Where a table is shown.

    Args:
        width: columns of a line; 0: any number, and no bars.
        is_wide: nothing is shortened or hidden.
        is_bold: whether headers are bold.
        is_ascii: whether characters beyond ASCII are replaced.
        unit: unit of all durations, as ``formatting.UNITS`` names it; empty: each has its own.
    """

    def __init__(
        self, width: int = 0, *, is_wide: bool = False, is_bold: bool = False, is_ascii: bool = False, unit: str = ""
    ) -> None:
        self.width, self.is_wide, self.is_bold, self.is_ascii, self.unit = width, is_wide, is_bold, is_ascii, unit

    def encoded(self, text: str) -> str:
        """Return a line as the terminal's encoding has it."""
        if not self.is_ascii or text.isascii():
            return text
        return text.translate(_ASCII).encode("ascii", "backslashreplace").decode()


class Layout:
    """Widths of the columns of a table, by the rows seen so far.

    Args:
        columns: the columns, each with a kind.
        rows: the first rows, [rows][columns]: they tell how wide columns are.
        room: where it is shown.

    Attributes:
        hidden: what is above the columns that are left out.
    """

    def __init__(self, columns: Sequence[Col], rows: Sequence[Sequence[Any]], room: Room) -> None:
        self._room = room
        self._columns = [(at, column) for at, column in enumerate(columns) if room.width or column.kind != "bar"]
        self._heads = {at: self._cell(headline(column, room.unit), column) for at, column in self._columns}
        self._texts = {
            at: [] if column.kind == "bar" else [self._cell(cell(row[at], column, room.unit), column) for row in rows]
            for at, column in self._columns
        }
        self._is_cut = False
        has_any_length = not room.width or room.is_wide
        natural = {at: self._natural_width(at, column, has_any_length=has_any_length) for at, column in self._columns}
        self._widths, self._shown = natural, list(self._columns)
        if not has_any_length:
            self._fit(natural)
        self.hidden = [self._heads[at] for at, each in self._columns if (at, each) not in self._shown]
        self._shown = [(at, each) for at, each in self._shown if self._widths[at] or each.kind != "bar"]
        self._heads_kept = {
            at: self._head_share(at) for at, each in self._shown if self._is_cut and each.kind == "text"
        }
        self._cuts = {
            at: distinct_cuts(self._texts[at], self._widths[at], share) for at, share in self._heads_kept.items()
        }

    def _natural_width(self, at: int, column: Col, *, has_any_length: bool) -> int:
        """Return the width that a column takes: no few long texts fill all rows with blanks."""
        if column.kind == "bar":
            return _BAR
        widths = list(map(display_width, [self._heads[at], *self._texts[at]]))
        if has_any_length and column.kind == "text":
            return max((width for width in widths if width <= _USUAL_TEXT), default=_USUAL_TEXT)
        return max(widths)

    def _fit(self, natural: dict[int, int]) -> None:
        """Choose columns and widths."""
        first = self._columns[0][0] if self._columns else 0
        filled = [(at, each) for at, each in self._columns if at == first or not self._is_empty(at)]
        telling = {at: self._telling_width(at) for at, column in filled if column.kind == "text"}
        good = {at: max(width, _GOOD) for at, width in telling.items()}
        for least, priority in ((good, _SPARE), (telling, _SPARE), ({}, 0)):
            self._shown = list(filled)
            while True:
                widths = self._given_way(natural, least)
                if widths is not None:
                    self._widths, self._is_cut = widths, True
                    return
                named = [
                    (column.priority, at)
                    for at, column in self._shown
                    if column.kind != "bar" and at != first and column.priority > priority
                ]
                if not named:
                    break
                dropped = max(named)[1]
                self._shown = [(at, column) for at, column in self._shown if at != dropped]
        # One column is too wide for the line by itself: a text is cut to it, a number is what it is.
        self._shown = [(at, column) for at, column in self._shown if at == first]
        is_text = bool(self._shown) and self._shown[0][1].kind == "text"
        self._widths, self._is_cut = {first: min(natural[first], self._room.width) if is_text else natural[first]}, True

    def _is_empty(self, at: int) -> bool:
        """Return whether a column has no value in any of the rows."""
        return bool(self._texts[at]) and all(text in ("", UNKNOWN) for text in self._texts[at])

    def _telling_width(self, at: int) -> int:
        """Return the width in which no two texts of a column look alike that are not; the least where none helps."""
        texts = {text for text in self._texts[at][:_COMPARED] if display_width(text) > _LEAST}
        for width in range(_LEAST, _WIDEST):
            if any(
                len({fit_width(text, width, head_share=share) for text in texts}) == len(texts)
                for share in _HEAD_SHARES
            ):
                return width
        return _LEAST

    def _head_share(self, at: int) -> float:
        """Return how much of the texts of a column is their beginning where they are cut."""
        texts, width = set(self._texts[at][:_COMPARED]), self._widths[at]
        return max(_HEAD_SHARES, key=lambda share: len({fit_width(text, width, head_share=share) for text in texts}))

    def _given_way(self, natural: dict[int, int], least: dict[int, int]) -> dict[int, int] | None:
        """Return widths with which the columns that are shown fit, None where there are none.

        Args:
            natural: widths of the columns as they are.
            least: widths that texts keep, where not ``_LEAST``.
        """
        room = self._room.width
        texts = {
            at: max(min(natural[at], least.get(at, _LEAST)), display_width(self._heads[at]))
            for at, column in self._shown
            if column.kind == "text"
        }
        widths = {at: max(min(natural[at], room), texts[at]) if at in texts else natural[at] for at, _ in self._shown}
        bars = [at for at, column in self._shown if column.kind == "bar"]
        over = self._taken(widths) - room
        while over > 0:
            giving = [at for at in texts if widths[at] > texts[at]]
            if not giving:
                break
            widths[max(giving, key=lambda at: widths[at])] -= 1  # the widest, so that all become alike
            over -= 1
        for at in bars:
            if over > 0:
                left = widths[at] - over
                widths[at] = left if left >= _LEAST_BAR else 0
                over = self._taken(widths) - self._room.width
        if over > 0:
            return None
        for at in bars:
            if widths[at] == _BAR:
                widths[at] = min(_LONGEST_BAR, _BAR - over)
        return widths

    def _taken(self, widths: dict[int, int]) -> int:
        taken = [width for width in widths.values() if width]
        return sum(taken) + _BETWEEN * (len(taken) - 1)

    def head(self) -> Iterator[str]:
        """Yield the line of the headers, and the one below them."""
        line = self._line([self._heads[at] for at, _ in self._shown])
        yield f"\x1b[1m{line}\x1b[0m" if self._room.is_bold else line
        yield self._room.encoded((" " * _BETWEEN).join("─" * self._widths[at] for at, _ in self._shown))

    def lines(self, rows: Sequence[Sequence[Any]], *, is_first: bool = True) -> Iterator[str]:
        """Yield a line for each row.

        Args:
            rows: the rows; of the first ones those that the widths were made of.
            is_first: whether they are those.
        """
        unit = self._room.unit
        for number, row in enumerate(rows):
            texts = []
            for at, column in self._shown:
                if column.kind == "bar":
                    texts.append(bar(row[at] or 0.0, self._widths[at]))
                else:
                    texts.append(
                        self._texts[at][number] if is_first else self._cell(cell(row[at], column, unit), column)
                    )
            yield self._line(texts)

    def _line(self, texts: Sequence[str]) -> str:
        parts = []
        for text, (at, column) in zip(texts, self._shown, strict=True):
            width = self._widths[at]
            if self._is_cut and column.kind == "text" and display_width(text) > width:
                parts.append(self._cuts[at].get(text) or fit_width(text, width, head_share=self._heads_kept[at]))
                continue
            space = " " * max(width - display_width(text), 0)
            parts.append(space + text if column.is_right else text + space)
        return self._room.encoded((" " * _BETWEEN).join(parts).rstrip())

    def _cell(self, text: str, column: Col) -> str:
        """Return a cell as the terminal's encoding has it: texts of a trace keep all their characters, as escapes."""
        if not self._room.is_ascii or text.isascii():
            return text
        text = text if column.kind == "text" else text.translate(_ASCII)
        return text.encode("ascii", "backslashreplace").decode()


def distinct_cuts(texts: Iterable[str], width: int, head_share: float = 0.5) -> dict[str, str]:
    """Return how texts of a column are cut that would look alike if their middle was left out: where they differ.

    Args:
        texts: the texts.
        width: columns of each.
        head_share: as ``fit_width`` takes it.

    Returns:
        Texts that are cut in another way -> exactly ``width`` columns, with which they look alike no more, or less.

    Example:
        >>> names = ["void gemm_128x64_kernel<float>(int)", "void gemm_256x64_kernel<float>(int)"]
        >>> list(distinct_cuts(names, 14).values())
        ['void…_128x64_…', 'void…_256x64_…']
    """
    alike: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        if display_width(text) > width:
            alike.setdefault(fit_width(text, width, head_share=head_share), []).append(text)
    found: dict[str, str] = {}
    groups = [group for group in alike.values() if len(group) > 1]
    for _ in range(_ROUNDS):
        cut: dict[str, list[str]] = {}
        for group in groups:
            same = max(_common(min(group), max(group)) - 1, _KEPT)
            for text in group:
                rest = text[same:]
                room = width - _KEPT - 1
                rest = rest if display_width(rest) <= room else fit_width(rest[: room - 1] + "…", room)
                found[text] = fit_width(f"{text[:_KEPT]}…{rest}", width)
                cut.setdefault(found[text], []).append(text)
        groups = [group for group in cut.values() if len(group) > 1]
    return found


def _common(one: str, other: str) -> int:
    """Return how many characters at the beginning of two texts are the same."""
    return next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), len(one))


def wrapped(text: str, width: int, indent: str = "  ", measure: Callable[[str], int] = display_width) -> list[str]:
    """Return a sentence on lines of a width, the further ones indented; all on one line for 0.

    A number is on the line of the word after it: its unit, or what it counts.

    Example:
        >>> wrapped("time from 0 to 584,767,000 ns", 27)
        ['time from 0 to', '  584,767,000 ns']
    """
    if not width or measure(text) <= width:
        return [text]
    rows: list[str] = []
    first, *words = _kept_together(text.lstrip(" ").split(" "), width - len(indent), measure)
    row = " " * (len(text) - len(text.lstrip(" "))) + first
    for word in words:
        if measure(row) + 1 + measure(word) > width:
            rows.append(row)
            row = indent + word
        else:
            row = f"{row} {word}"
    return [*rows, row]


def _kept_together(words: Sequence[str], width: int, measure: Callable[[str], int]) -> list[str]:
    """Return words, numbers with the one after them where that fits a line."""
    kept: list[str] = []
    is_open = False
    for word in words:
        is_number = _NUMBER.fullmatch(word) is not None
        if is_open and word and not is_number and measure(f"{kept[-1]} {word}") <= width:
            kept[-1] += f" {word}"
        else:
            kept.append(word)
        is_open = is_number
    return kept
