"""Tools for agents: questions on the captures below one folder, answered by the commands in at most 8 KB.

Each question runs a command as a process of its own: what it takes is given back, and one that hangs is ended. The
numbers of an answer have their SQL with them, or the command that shows them: sentences, and what a comparison tests.
Of other documents, a number that no query gives is not part of the answer, but for the epoch of the times.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lanescope.errors import InputError, LanescopeError, UsageError

#: Bytes of an answer.
LARGEST = 8192
#: Rows of an answer at most, and by default.
_MOST, _ROWS = 1000, 50
#: Rows of lists next to the one that comes in parts, and characters of texts, from generous to scarce.
_FITS = ((20, 2000), (8, 400), (2, 120), (0, 40))
#: What a window may ask for: the flags of the commands.
_WINDOW = ("start", "end", "lane", "name", "min_dur", "where")
#: What begins the path of each lane.
_PATHS = (
    "with recursive paths as (select id, name as path from tracks where parent_id is null union all "
    "select tracks.id, paths.path || '/' || tracks.name from tracks join paths on tracks.parent_id = paths.id) "
)
#: Grouping -> source of the groups, and what has their names.
_GROUPS = {
    "name": ("", "slices", "name"),
    "category": ("", "slices", "category"),
    "lane": (_PATHS, "slices join paths on paths.id = slices.track_id", "path"),
}


def _summary_sql(by: str) -> str:
    """Return the query for the sums of slices by one of the groups."""
    begin, source, column = _GROUPS[by]
    return (
        f'{begin}select {column} as "{by}", count(dur) as "count", count(*) - count(dur) as unfinished, '
        "coalesce(sum(dur), 0) as total, min(dur) as shortest, max(dur) as longest "
        f"from {source} group by 1 order by total desc, 1"
    )


def _group_sql(key: Mapping[str, str]) -> str:
    """Return the query for what a comparison counts of a group, in each run."""

    def text(value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    return (
        "select count(dur) as count, quantile_disc(dur, 0.5) as median, quantile_disc(dur, 0.99) as p99 "
        "from slices join tracks on tracks.id = slices.track_id "
        f"where slices.name = {text(key['name'])} and tracks.role = {text(key['lane_kind'])}"
    )


_INFO_SQL = {
    "rows": "select count(*) from TABLE, for each TABLE",
    "tracks": "select kind, count(*) from tracks group by 1",
    "inputs": "select * from inputs order by id",
    "clocks": "select * from clocks order by id",
    "stats": "select * from stats order by id",
    "accounting": "select * from accounting order by id",
}


class Tools:
    """Questions on the captures below a folder.

    Args:
        root: the folder; nothing outside of it is read.
        seconds: time that a question may take.

    Raises:
        UsageError: it is not a folder.
    """

    def __init__(self, root: str, seconds: float = 120.0) -> None:
        if not os.path.isdir(root):  # noqa: PTH112
            raise UsageError(f"{root!r} is not a directory", hint="pass the directory of your captures")
        self._root, self._seconds = os.path.realpath(root), seconds

    async def info(self, path: str = ".", limit: int = _ROWS, cursor: str = "") -> str:
        """Show what a capture is, what it holds, and what became of each byte; of a folder, list its captures.

        Args:
            path: capture or folder, below the served folder.
            limit: rows of the list that comes in parts.
            cursor: `page.next` of the preceding answer.
        """
        document = await self._document("info", [self._path(path)], limit, cursor)
        if "time" in document:
            for name in ("start", "end", "attested"):
                document["time"].pop(name)
            document["detection"].pop("score")
            document["sql"] = _INFO_SQL
        return fitted(document)

    async def check(
        self,
        path: str,
        select: str = "",
        ignore: str = "",
        limit: int = _ROWS,
        cursor: str = "",
        window: dict[str, str] | None = None,
    ) -> str:
        """Find lost data and impossible timings. Each finding has the SQL of the rows that prove it.

        Args:
            path: capture, below the served folder.
            select: codes of rules, or their beginnings, separated by commas; empty: all.
            ignore: codes of rules to skip.
            limit: number of findings.
            cursor: `page.next` of the preceding answer.
            window: part of the capture, any of start, end (1ms), lane, name (globs), min_dur (2us), where (SQL).
        """
        given = [f"--{name}={codes}" for name, codes in (("select", select), ("ignore", ignore)) if codes]
        given += [*_flags(window), "--fail-on=never", self._path(path)]
        document = await self._document("check", given, limit, cursor)
        for finding in document["findings"]:
            for name in ("affected_fraction", "affected_lane_fraction", "impact"):
                finding.pop(name)
        told = ("schema", "window", "page", "findings", "rules")
        kept = {name: document[name] for name in told if name in document}
        return fitted(kept)

    async def summary(
        self,
        path: str,
        by: str = "name",
        limit: int = _ROWS,
        cursor: str = "",
        window: dict[str, str] | None = None,
    ) -> str:
        """Show where the time goes: number, total, shortest and longest of the slices of each group.

        Args:
            path: capture, below the served folder.
            by: name, category or lane.
            limit: number of groups, those with the largest total first.
            cursor: `page.next` of the preceding answer.
            window: as of check.
        """
        if by not in _GROUPS:
            raise UsageError(f"unknown by {by!r} (choose from {', '.join(_GROUPS)})")
        return await self.sql(path, _summary_sql(by), limit, cursor, window)

    async def sql(
        self,
        path: str,
        query: str,
        limit: int = _ROWS,
        cursor: str = "",
        window: dict[str, str] | None = None,
    ) -> str:
        """Query the tables of a capture with SQL (DuckDB). Only one SELECT; an empty query lists tables and columns.

        Args:
            path: capture, below the served folder.
            query: the statement.
            limit: number of rows.
            cursor: `page.next` of the preceding answer.
            window: as of check.
        """
        given = [*_flags(window), self._path(path)]
        if query.strip():
            _require_select(query)
            given.append(f" {query}")  # never taken for a flag
        document = await self._document("sql", given, limit, cursor)
        return fitted({**document, "sql": query})

    async def explain(self, path: str, window: dict[str, str] | None = None) -> str:
        """Say what bounds a run, what is exposed, uncertain or not recorded: at most five sentences.

        Args:
            path: capture, below the served folder.
            window: as of check.
        """
        document = await self._document("explain", [*_flags(window), self._path(path)])
        for row in document["rows"]:
            for name in ("share", "gain"):  # the sentence has them, and its command shows them
                row.pop(name)
        return fitted(document)

    async def diff(
        self,
        a: list[str],
        b: list[str],
        limit: int = _ROWS,
        cursor: str = "",
        window: dict[str, str] | None = None,
    ) -> str:
        """Compare runs before (a) and after (b): which groups of slices are slower, faster, new or gone.

        Args:
            a: captures of the first side, below the served folder.
            b: captures of the second side.
            limit: number of groups, those that differ first.
            cursor: `page.next` of the preceding answer.
            window: as of check, of each capture.
        """
        if not a or not b:
            raise UsageError("a side without runs", hint="pass captures for a and for b")
        sides = [[self._path(path) for path in side] for side in (a, b)]
        given = [*_flags(window), *sides[0], "--", *sides[1]]
        document = await self._document("diff", given, limit, cursor)
        for group in document["groups"]:
            group["sql"] = _group_sql(group["key"])
        document["command"] = shlex.join(["lanescope", "diff", *given])
        return fitted(document)

    # --- running --------------------------------------------------------------------------------------------------

    def _path(self, path: str) -> str:
        """Return a path below the folder as the commands get it.

        Raises:
            InputError: it lies outside, also by a link; or it is neither a file nor a folder.
        """
        refused = InputError(f"{path!r} is not a capture below the served folder", hint="list captures with info")
        if "\0" in path:
            raise refused
        real = os.path.realpath(os.path.join(self._root, path))  # noqa: PTH118
        if os.path.commonpath([real, self._root]) != self._root:
            raise refused
        try:
            mode = os.stat(real).st_mode  # noqa: PTH116
        except OSError:
            raise refused from None
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise refused
        self._refuse_links(real if stat.S_ISDIR(mode) else os.path.dirname(real))  # noqa: PTH120
        return os.path.join(".", os.path.relpath(real, self._root))  # noqa: PTH118

    def _refuse_links(self, folder: str) -> None:
        """Refuse a folder with a link that leads outside: commands read the files next to a capture, too."""
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    real = os.path.realpath(entry.path)
                    if os.path.commonpath([real, self._root]) != self._root:
                        raise InputError(
                            f"{entry.name!r} is a link to a place outside of the served folder",
                            hint="move the file into the folder",
                        )

    async def _document(
        self, verb: str, arguments: Sequence[str], limit: int | None = None, cursor: str = ""
    ) -> dict[str, Any]:
        """Return what a command prints with ``--json``."""
        words = [sys.executable, "-m", "lanescope", verb, "--json"]
        if limit is not None:
            words.append(f"--limit={_bounded(limit)}")
            if cursor:
                words.append(f"--cursor={cursor}")
        child = await asyncio.create_subprocess_exec(
            *words,
            *arguments,
            cwd=self._root,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await asyncio.wait_for(child.communicate(), self._seconds)
        except TimeoutError:
            raise InputError(
                f"{verb} took more than {self._seconds:g} s", hint="use a shorter window or fewer rows"
            ) from None
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        if child.returncode not in (0, 1) or not out:
            raise LanescopeError(_reason(err.decode(errors="replace")))
        document: dict[str, Any] = json.loads(out)
        return document


def _reason(text: str) -> str:
    """Return error and hint from what a command prints on standard error."""
    lines = [line.strip() for line in text.splitlines()]
    told = [line.removeprefix("lanescope: ") for line in lines if line.startswith(("lanescope: error", "hint:"))]
    return "; ".join(told) or "the command failed without an answer"


def _flags(window: Mapping[str, str] | None) -> list[str]:
    """Return a window as the commands take it.

    Raises:
        UsageError: it asks for something else.
    """
    for name in window or {}:
        if name not in _WINDOW:
            raise UsageError(f"a window has no {name!r} (choose from {', '.join(_WINDOW)})")
    return [f"--{name.replace('_', '-')}={value}" for name, value in (window or {}).items()]


def _bounded(limit: int) -> int:
    if not 0 < limit <= _MOST:
        raise UsageError(f"invalid limit {limit}: expected 1 to {_MOST}")
    return limit


def _require_select(query: str) -> None:
    """Refuse all but one SELECT.

    Raises:
        UsageError: it is another statement, several, or none.
    """
    import duckdb

    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        raise UsageError(f"invalid query: {str(error).splitlines()[0]}") from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError("only one SELECT is answered", hint="use one SELECT statement")


# --- size ---------------------------------------------------------------------------------------------------------


def fitted(document: dict[str, Any]) -> str:
    """Return a document as JSON of at most 8 KB.

    Rows that do not fit are left for the next part. Where one row is too large, texts are shortened. What was
    shortened, and how many rows other lists lack, is under ``cut``.

    Raises:
        UsageError: not even one row fits.
    """
    for rows, texts in _FITS:
        found = _fitted(document, rows, texts)
        if found is not None:
            return found
    raise UsageError("one row takes more than 8 KB", hint="remove columns")


def _fitted(document: dict[str, Any], most: int, longest: int) -> str | None:
    """Return a document with that many rows of other lists, and texts of that length; None if no row of it fits."""
    page: dict[str, Any] = document.get("page", {})
    of = page.get("of", "")
    cut: dict[str, int] = {}

    def short(value: Any) -> Any:
        if isinstance(value, str) and len(value) > longest:
            cut["texts"] = cut.get("texts", 0) + 1
            half = longest // 2
            return f"{value[:half]}...{value[-half:]}"
        if isinstance(value, list):
            return [short(each) for each in value]
        return {short(name): short(each) for name, each in value.items()} if isinstance(value, dict) else value

    kept: dict[str, Any] = {}
    for name, value in document.items():
        if isinstance(value, list) and name not in (of, "columns") and len(value) > most:
            cut[name] = len(value) - most
            kept[name] = value[:most]
        elif name != of:
            kept[name] = value
    listed = document.get(of, [])

    def text(count: int) -> str:
        cut.pop("texts", None)
        told = {name: value if name in ("page", "sql") else short(value) for name, value in kept.items()}
        if of:
            told |= {of: short(listed[:count]), "page": _shorter(page, count)}
        return json.dumps(told | ({"cut": dict(cut)} if cut else {}), separators=(",", ":"), ensure_ascii=False)

    count = _largest(len(listed), lambda count: len(text(count).encode(errors="surrogatepass")) <= LARGEST)
    return text(count) if count > 0 or (count == 0 and not listed) else None


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to ``most`` that fits; -1 if none does."""
    if fits(most):
        return most
    low, high = -1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _shorter(page: dict[str, Any], rows: int) -> dict[str, Any]:
    """Return what describes a part with fewer rows."""
    if rows == page["rows"]:
        return page
    left = page["total"] - page["offset"] - rows
    digest = page["cursor"].partition("-")[2]
    return {**page, "rows": rows, "left": left, "next": f"{page['offset'] + rows}-{digest}"}
