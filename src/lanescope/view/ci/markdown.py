"""Markdown for summaries of jobs (GitHub): headings, lines, and tables that no name from a trace can break.

Source: GitHub Flavored Markdown Spec (code spans, entity references, tables); GitHub, "Adding a job summary": 1 MiB a
step at most, or the step has none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from lanescope.view.formatting import escape, format_count

#: Bytes of all summaries of one step, and what is kept free for the lines around tables.
LIMIT = 1 << 20
_RESERVE = 1 << 14
#: Characters of a name that are shown.
_LONGEST = 200
#: What a code span shows unchanged: only a backtick ends one; a pipe or a backslash may end the cell around it.
_PLAIN = re.compile(r"[^`|\\\s](?:[^`|\\\n]*[^`|\\\s])?")
#: Characters without any meaning in Markdown or HTML, and those that have one in rare texts only: a link, a list.
_HARMLESS, _RARE = re.compile(r"[^\W_]|[ ,;%'/.()]"), re.compile(r"[^\W_]|[,;]")
_IS_RARE = re.compile(r"www|^\s|^\d+[.)]", re.IGNORECASE)


def code(text: str) -> str:
    r"""Return a text that appears as it is, in the type of code.

    Example:
        >>> print(code("mma<f16>"), code("a|b`"), code("x\n"))
        `mma<f16>` <code>a&#124;b&#96;</code> <code>x&#92;x0a</code>
    """
    text = escape(text)
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}...{text[-_LONGEST // 2 :]}"
    if not text:
        return ""
    if _PLAIN.fullmatch(text):
        return f"`{text}`"
    return f"<code>{plain(text)}</code>"


def plain(text: str) -> str:
    """Return a text that appears as it is, whatever it has of Markdown or HTML, on one line.

    Example:
        >>> print(plain("50% <b>[a](b)"))
        50% &#60;b&#62;&#91;a&#93;(b)
    """
    text = escape(text)
    harmless = _RARE if _IS_RARE.search(text) else _HARMLESS
    return "".join(each if harmless.fullmatch(each) else f"&#{ord(each)};" for each in text)


def room() -> int:
    """Return how many bytes the step of the workflow that we run in may add to its summary."""
    used = 0
    with suppress(KeyError, OSError):  # no workflow, or nothing written so far
        used = os.stat(os.environ["GITHUB_STEP_SUMMARY"]).st_size  # noqa: PTH116
    return LIMIT - _RESERVE - used


class Document:
    """Markdown that grows up to a limit; rows of tables beyond it are counted.

    Args:
        limit: bytes; by default what the step of the workflow has left.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._blocks: list[str] = []
        self._room = room() if limit is None else limit

    def block(self, text: str) -> None:
        """Add a paragraph, heading or list of this Markdown."""
        self._blocks.append(text)
        self._room -= len(text.encode(errors="backslashreplace")) + 2

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()) -> None:
        """Add a table.

        Args:
            columns: names of the columns, text.
            rows: cells of Markdown, as ``code`` and ``plain`` make them.
            numbers: positions of columns that are aligned to the right.
        """
        head = [_line([plain(name) for name in columns])]
        head.append(_line(["---:" if place in numbers else "---" for place in range(len(columns))]))
        self._room -= sum(len(line.encode()) + 1 for line in head)
        shown, hidden = [], 0
        for row in rows:
            line = _line(row)
            size = len(line.encode(errors="backslashreplace")) + 1
            if hidden or size > self._room:
                hidden += 1
                continue
            self._room -= size
            shown.append(line)
        self._blocks.append("\n".join([*head, *shown]))
        if hidden:
            self.block(f"{format_count(hidden, 'more row')}: the summary of a step has 1 MiB.")

    def text(self) -> str:
        """Return the document."""
        return "\n\n".join(self._blocks) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
