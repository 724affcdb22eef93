"""Where the values of a JSON text stand: paths and bytes of every element, without interpreting them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

#: A path: keys of objects, positions in lists.
Path = tuple[str | int, ...]
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')


class Span(NamedTuple):
    """One value.

    Attributes:
        path: how it is reached.
        begin, end: its bytes; of a text the quotes belong to it.
        is_leaf: it is a number, a text or a word; else a list or an object.
    """

    path: Path
    begin: int
    end: int
    is_leaf: bool


def spans(content: bytes) -> Iterator[Span]:
    """Yield every value of a JSON text, each list or object after what it holds.

    Args:
        content: one sound JSON value; of anything else the spans mean nothing.

    Example:
        >>> [(span.path, span.begin, span.end) for span in spans(b'{"a": [7, "x"]}')]
        [(('a', 0), 7, 8), (('a', 1), 10, 13), (('a',), 6, 14), ((), 0, 15)]
    """
    path: list[str | int] = []
    begins: list[int] = []
    is_key = False
    for match in _TOKEN.finditer(content):
        token = match[0]
        if token in (b"{", b"["):
            begins.append(match.start())
            is_key = token == b"{"
            path.append("" if is_key else 0)
        elif token in (b"}", b"]"):
            path.pop()
            yield Span(tuple(path), begins.pop(), match.end(), is_leaf=False)
            is_key = False
        elif token == b",":
            last = path[-1]
            is_key = isinstance(last, str)
            if isinstance(last, int):
                path[-1] = last + 1
        elif token == b":":
            is_key = False
        elif is_key:
            path[-1] = token[1:-1].decode("utf-8", "surrogateescape")
        else:
            yield Span(tuple(path), match.start(), match.end(), is_leaf=True)
