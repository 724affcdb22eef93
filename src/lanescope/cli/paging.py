"""Answers in parts: ``--limit`` rows, and a cursor that asks for the next ones.

A cursor holds a position and a digest of the question: what else is on the command line, and size and time of change of
the capture. One that belongs to another question is refused, so that parts of two answers are never joined.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from lanescope.cli.arguments import positive
from lanescope.cli.console import echo
from lanescope.cli.context import is_for_people
from lanescope.errors import UsageError
from lanescope.view.formatting import format_count
from lanescope.view.table_output import is_terminal

if TYPE_CHECKING:
    from lanescope import Table

Row = TypeVar("Row")

#: Characters of a digest.
_DIGITS = 12
#: Rows that a terminal is given without ``--limit``; the largest are first.
SCREEN = 30
#: What the command line says of the form of an answer, not of the question.
_FORM = (
    "limit", "cursor", "json", "csv", "wide", "unit", "color", "format", "all", "sarif", "force", "strict", "fail_on",
    "html", "fail_if", "metric", "memory", "quiet",
)  # fmt: skip


class Page:
    """Which rows of an answer are given.

    Args:
        args: the command line.
        verb: name of the command.
        of: name of the list in JSON documents.
        offset: position of the first row.
        rows: how many are given.
        total: how many there are.
        is_screenful: whether it ends where a screen does, not where the user says.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        verb: str,
        of: str,
        offset: int,
        rows: int,
        total: int,
        *,
        is_screenful: bool = False,
    ) -> None:
        self._question = args, verb
        self.of, self.offset, self.rows, self.total, self.is_screenful = of, offset, rows, total, is_screenful

    @cached_property
    def digest(self) -> str:
        """Digest of the question."""
        return _digest(*self._question)

    @property
    def left(self) -> int:
        """How many rows follow."""
        return max(self.total - self.offset - self.rows, 0)

    @property
    def next(self) -> str | None:
        """The cursor of the next part; None for the last one."""
        return f"{self.offset + self.rows}-{self.digest}" if self.left else None

    def described(self) -> dict[str, Any]:
        """Return it as JSON documents have it, with its key."""
        told = {"of": self.of, "cursor": f"{self.offset}-{self.digest}", "offset": self.offset, "rows": self.rows}
        told["total"] = self.total
        return {"page": told | {"left": self.left, "next": self.next}}

    def state(self) -> None:
        """State on standard error what is left."""
        if self.next is not None:
            one = f"more {self.of.removesuffix('s')}"
            how = f"--limit {self.total}, --json or --csv" if self.is_screenful else f"--cursor {self.next}"
            echo(f"{format_count(self.left, one)}: use {how}")


def add_paging(parser: argparse.ArgumentParser, default: int = 0, *, is_screenful: bool = False) -> None:
    """Add the arguments; ``default`` rows are given, 0: all, or what a person reads (``part``)."""
    text = f"rows (default: {default or 'all'}{f', on a terminal {SCREEN}' if is_screenful else ''})"
    parser.add_argument("--limit", metavar="N", type=positive, default=default, help=text)
    parser.add_argument("--cursor", metavar="CURSOR", default="", help="continue the answer that printed this cursor")


def is_paged(args: argparse.Namespace) -> bool:
    """Return whether the user asks for a part of the answer."""
    return bool(args.limit or args.cursor)


def start(args: argparse.Namespace, verb: str) -> int:
    """Return the position of the first row.

    Raises:
        UsageError: the cursor is none, or belongs to another question.
    """
    if not args.cursor:
        return 0
    offset, _, of = args.cursor.partition("-")
    if not (offset.isascii() and offset.isdecimal() and len(offset) < 18 and len(of) == _DIGITS):
        raise UsageError(f"invalid cursor {args.cursor!r}", hint="use the cursor of the preceding answer")
    if of != _digest(args, verb):
        raise UsageError(
            f"cursor {args.cursor!r} belongs to another question, or the capture has changed",
            hint="run the command without --cursor",
        )
    return int(offset)


def _limit(args: argparse.Namespace, *, is_screenful: bool) -> int:
    """Return how many rows are given at most, 0: all."""
    if args.limit or not is_screenful or not is_for_people(args) or not is_terminal(sys.stdout):
        return int(args.limit or 0)
    return SCREEN


def part(
    args: argparse.Namespace, verb: str, rows: Sequence[Row], *, of: str = "rows", is_screenful: bool = False
) -> tuple[list[Row], Page]:
    """Return the rows that the user asks for, and which they are; errors as ``start``.

    Args:
        args: the command line.
        verb: name of the command.
        rows: all of the answer.
        of: see ``Page``.
        is_screenful: whether a terminal is given the first ones only where the user does not say how many.
    """
    first, limit = start(args, verb), _limit(args, is_screenful=is_screenful)
    found = list(rows[first : first + limit] if limit else rows[first:])
    return found, Page(args, verb, of, first, len(found), len(rows), is_screenful=limit != args.limit)


def table_part(
    args: argparse.Namespace,
    verb: str,
    table: Table,
    *,
    of: str = "rows",
    total: int | None = None,
    is_screenful: bool = False,
) -> tuple[list[dict[str, Any]], Page]:
    """Return the rows of a table that the user asks for, and which they are; errors as ``start``.

    Args:
        args: the command line.
        verb: name of the command.
        table: the answer, up to the last row that is asked for at least.
        of: see ``Page``.
        total: how many rows the answer has; None: those of the table.
        is_screenful: as of ``part``.
    """
    import numpy as np

    first, limit = start(args, verb), _limit(args, is_screenful=is_screenful)
    last = min(first + limit, len(table)) if limit else len(table)
    found = list(table.take(np.arange(min(first, last), last)).rows())
    total = len(table) if total is None else total
    return found, Page(args, verb, of, first, len(found), total, is_screenful=limit != args.limit)


def streamed_part(
    args: argparse.Namespace, verb: str, rows: Iterator[Row], *, of: str = "rows"
) -> tuple[list[Row], Page]:
    """Return the rows that the user asks for of an answer that can only be read once; errors as ``start``."""
    first = start(args, verb)
    skipped = sum(1 for _ in islice(rows, first))
    found = list(islice(rows, args.limit or None))
    total = skipped + len(found) + sum(1 for _ in rows)
    return found, Page(args, verb, of, first, len(found), total)


def counted_part(
    args: argparse.Namespace, verb: str, rows: Iterator[Row], total: int, *, of: str = "rows"
) -> tuple[Iterator[Row], Page]:
    """Return the rows that the user asks for of an answer with so many, as they come; errors as ``start``."""
    first = start(args, verb)
    count = max(total - first, 0)
    if args.limit:
        count = min(count, args.limit)
    return islice(rows, first, first + count), Page(args, verb, of, first, count, total)


def _digest(args: argparse.Namespace, verb: str) -> str:
    from hashlib import sha256

    told = {name: value for name, value in vars(args).items() if name not in _FORM}
    paths = [told["input"]] if "input" in told else told.get("inputs", [])
    files = []
    for path in paths:
        try:
            found = os.stat(path)  # noqa: PTH116
        except OSError:  # standard input, for example
            continue
        files.append((found.st_size, found.st_mtime_ns))
    question = repr((verb, sorted((name, repr(value)) for name, value in told.items()), files))
    return sha256(question.encode(errors="surrogateescape")).hexdigest()[:_DIGITS]
