"""Reports of overlap, idle causes, spread and occupancy for a terminal, as drawings and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO, Any

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from lanescope.analysis import occupancy, overlap
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.work_classes import CLASSES, WAIT
from lanescope.trace import Table
from lanescope.view.formatting import escape, fit_width, format_count, format_duration
from lanescope.view.table_output import is_terminal, terminal_width
from lanescope.view.tables.cells import bar
from lanescope.view.tables.columns import Col, column
from lanescope.view.tables.layout import wrapped

#: 256-colour backgrounds by share, from next to nothing to all; they read well under black and white text.
_HEAT = (
    "",
    "on color(236)",
    "on color(24)",
    "on color(25)",
    "on color(31)",
    "black on color(38)",
    "black on color(80)",
)
_KIND_COLORS = {
    "load": "color(33)",
    "compute": "color(35)",
    "store": "color(170)",
    "wait": "color(203)",
    "outer": "color(245)",
}
#: Columns of a line where nothing ends it.
_UNLIMITED = 1_000_000
#: Draws the shares of a table; it has no header.
_BAR = Col("", kind="bar")
_BARS = " ▁▂▃▄▅▆▇█"
_SHARE = " ▏▎▍▌▋▊▉█"
_ASCII = str.maketrans({**dict(zip(_BARS, " .:-=+*#@", strict=True)), **dict(zip(_SHARE[1:], ".:-=+*##", strict=True)),
                        "·": ".", "…": "~", "µ": "u", "×": "x"})  # noqa: RUF001  # fmt: skip
_NAME, _CELL = 18, 9
#: Lanes, causes of each, and strips that are shown by default.
_LANES, _CAUSES, _STRIPS = 12, 6, 16
#: The least share of a lane's time that is worth a line.
_SHOWN = 0.001
#: Units that come one after another, so that the last one's end says nothing about a tail.
_IN_TURN = ("block", "parent")


class Screen:
    """Prints lines of parts: text, and how it looks.

    Args:
        stream: where to.
        has_color: whether it is shown colors; False: without.
    """

    def __init__(self, stream: IO[str], *, has_color: bool = False) -> None:
        # Without a terminal, nothing is cut: rich would assume 80 columns.
        self._console = Console(
            file=stream,
            highlight=False,
            color_system="auto" if has_color else None,
            no_color=not has_color,
            force_terminal=has_color or None,
            width=terminal_width(stream) if is_terminal(stream) else _UNLIMITED,
        )
        # A stream without an encoding takes text as it is.
        self._plain = not (getattr(stream, "encoding", None) or "utf").lower().startswith("utf")

    @property
    def width(self) -> int:
        """Columns there are."""
        return self._console.width

    def line(self, *parts: tuple[str, str] | str) -> None:
        """Print one line; what does not fit is cut off."""
        text = Text()
        for part in parts:
            content, style = (part, "") if isinstance(part, str) else part
            content = escape(content)
            if self._plain:
                content = content.translate(_ASCII).encode("ascii", "backslashreplace").decode()
            text.append(content, style)
        self._console.print(text, no_wrap=True, overflow="crop", crop=True)

    def wrap(self, text: str, style: str = "") -> None:
        """Print a sentence, on as many lines as it takes."""
        for row in wrapped(text, self.width, measure=cell_len):
            self.line((row, style))

    def paragraph(self, *sentences: str) -> None:
        """Print statements, one a line, after an empty one."""
        if sentences:
            self.line()
        for sentence in sentences:
            self.wrap(sentence)


# --- overlap ------------------------------------------------------------------------------------------------------


def overlap_matrix(shared: AnalysisCache, role: str, screen: Screen, limit: int = 0) -> None:
    """Draw which regions run at the same time: of a row's time, the share in which the column's region runs too.

    Args:
        shared: the trace.
        role: what a unit is.
        screen: where to.
        limit: how many regions to show at most; 0: as many as fit.
    """
    found = overlap.shared_time(shared, role)
    unit = shared.trace.time.time_unit
    regions = found.regions
    if not regions:
        screen.line("nothing ran")
        return
    order = np.lexsort((np.arange(regions), found.kinds))
    wide = min(max(max(map(cell_len, found.names)), 6), 12)
    cell = wide if regions * (wide + 1) + _NAME + 12 <= screen.width else _CELL
    room = max((screen.width - _NAME - 12) // (cell + 1), 1)
    room = min(room, limit or room)
    shown = order[order < room]  # regions are numbered by time
    names = [found.names[n] for n in shown.tolist()]
    screen.wrap(f"Which part of a region's time other regions run beside it, within one {_instance_noun(role)}", "bold")
    screen.line()
    heads: list[tuple[str, str] | str] = []
    for name, kind in zip(names, found.kinds[shown].tolist(), strict=True):
        heads += [" ", (fit_width(name, cell).strip().rjust(cell), _KIND_COLORS[CLASSES[kind]])]
    screen.line((fit_width("", _NAME), ""), *heads, (" " + "time".rjust(11), "bold"))
    for row, name in zip(shown.tolist(), names, strict=True):
        whole = int(found.matrix[row, row])
        cells: list[tuple[str, str] | str] = [(fit_width(name, _NAME), _KIND_COLORS[CLASSES[int(found.kinds[row])]])]
        for other in shown.tolist():
            cells.append(" ")
            cells.append(
                _heat(int(found.matrix[row, other]) / whole, cell) if row != other else ("·".rjust(cell), "dim")
            )
        screen.line(*cells, " " + format_duration(whole, unit).rjust(11))
    if regions > room:
        screen.line()
        screen.line((f"{format_count(regions - room, 'shorter region')} hidden (table 'overlap' has all)", "dim"))
    screen.paragraph(*overlap_words(shared, role))


def _heat(share: float, cell: int) -> tuple[str, str]:
    if share <= 0:
        return "·".rjust(cell), "dim"
    text = "<0.1%" if share < 0.0005 else f"{share:.1%}"
    return text.rjust(cell), _HEAT[min(int(share * (len(_HEAT) - 1)) + 1, len(_HEAT) - 1)]


def overlap_words(shared: AnalysisCache, role: str) -> list[str]:
    """Describe how much of each kind of work is hidden, and how much of the time something computes.

    Of a window that selects slices it is that of all of them, in words on what is selected.

    Raises:
        UsageError: slices were left out by name, duration or condition while the trace was read.
    """
    shared, unit = shared.over_all_slices, shared.unit
    said = []
    for row in overlap.exposure(shared, role).rows():
        if row["region"] is None and row["kind"] != WAIT and row[f"total_{unit}"]:
            hidden, exposed, unknown = (row[f"{name}_{unit}"] for name in ("hidden", "exposed", "unknown"))
            said.append(
                f"{row['kind']}: {row['hidden_share']:.1%} of {format_duration(row[f'total_{unit}'], unit)} hidden "
                "behind "
                f"compute ({format_duration(hidden, unit)}), {format_duration(exposed, unit)} exposed"
                + (f", {format_duration(unknown, unit)} unknown: records were lost" if unknown else "")
            )
    table = occupancy.utilization(shared, role)
    resident = int(table.values(f"resident_{unit}").sum())
    if resident:
        computing = int(table.values(f"compute_{unit}").sum())
        stalled = int(table.values(f"stalled_{unit}").sum())
        said.append(
            f"compute: runs {computing / resident:.1%} of the time that {_instance_noun(role)}s are there; no lane "
            "works in "
            f"{stalled / resident:.1%}"
        )
    return said


# --- idle ---------------------------------------------------------------------------------------------------------


def idle_causes(table: Table, unit: str, screen: Screen, limit: int = 0) -> None:
    """Draw why lanes do no work, lane name by lane name."""
    rows = list(table.rows())
    screen.wrap("Why lanes do no work, as a share of the time for which they were recorded", "bold")
    lanes = Counter[str]()
    for row in rows:
        lanes[row["lane"]] += row[f"total_{unit}"]
    for lane, _ in lanes.most_common(limit or _LANES):
        mine = [row for row in rows if row["lane"] == lane]
        total, share = sum(row[f"total_{unit}"] for row in mine), sum(row["share"] or 0.0 for row in mine)
        screen.line()
        screen.line(
            (fit_width(lane, 28), "bold"),
            f"{format_duration(total, unit):>12} {share:>7.1%}  ",
            (bar(share, 16), "color(203)"),
        )
        shown = [row for row in mine if (row["share"] or 0) >= _SHOWN][:_CAUSES] or mine[:1]
        for row in shown:
            what = "waits in " + row["name"] if row["kind"] == "wait" else row["name"]
            screen.line(
                "  ",
                fit_width(what, 34) + " ",
                (fit_width(_waits_for(row), 26), _KIND_COLORS["wait"] if row["waits_for"] else "dim"),
                f"{format_duration(row[f'total_{unit}'], unit):>10} {row['share'] or 0:>7.1%}",
                (f"{row['count']:>10,} {'time' if row['count'] == 1 else 'times'}", "dim"),
            )
        left = mine[len(shown) :]  # the shortest: they come last
        if left:
            rest = sum(row[f"total_{unit}"] for row in left)
            screen.wrap(f"  {format_count(len(left), 'more cause')}, {format_duration(rest, unit)}", "dim")
    if len(lanes) > (limit or _LANES):
        screen.line()
        screen.wrap(f"{len(lanes) - (limit or _LANES)} more names of lanes; SQL has all in `idle_causes`", "dim")
    screen.paragraph(*idle_words(rows, unit))


def _waits_for(row: dict[str, Any]) -> str:
    if row["waits_for"] is None:
        return "cause unknown" if row["kind"] == "wait" else ""
    return f"on {row['waits_for']}" + (" (inferred)" if row["inferred"] else "")


def idle_words(rows: Sequence[dict[str, Any]], unit: str) -> list[str]:
    """Describe the most expensive wait, and whether its producer is known or inferred."""
    waits = [row for row in rows if row["kind"] == "wait" and row["waits_for"] is not None]
    said = []
    if waits:
        top = max(waits, key=lambda row: row[f"total_{unit}"])
        said.append(
            f"most of it: {top['lane']} waits {format_duration(top[f'total_{unit}'], unit)} in {top['name']} for "
            f"{top['waits_for']}, {format_duration(top[f'latency_{unit}'], unit)} of that after {top['waits_for']} was "
            "done"
        )
        if any(row["inferred"] and (row["share"] or 0) >= _SHOWN for row in waits):
            said.append("inferred: no flow names the producer; it ended on another lane, just before the wait did")
    return said


# --- regions ------------------------------------------------------------------------------------------------------


def region_table(
    shared: AnalysisCache, table: Table, role: str, rows: Sequence[dict[str, Any]]
) -> tuple[list[Col], Iterator[list[Any]]]:
    """Return columns and some rows of the regions for people: what tells most, and a bar of self time."""
    unit = shared.trace.time.time_unit
    whole = int(table.values(f"self_{unit}").sum()) or 1
    times = ("total", "self", "p50", "p90", "p99", "max")
    has_tail = role not in _IN_TURN
    columns = [column("region", "text"), column("kind", "text"), column("count", "count")]
    columns += [_timed(name, unit) for name in times]
    columns += [column("imbalance", "ratio"), column("slowest_instance", "text", header="slowest")]
    columns += [*([_timed("tail", unit)] if has_tail else []), _BAR]

    def cells() -> Iterator[list[Any]]:
        for row in rows:
            yield [
                row["region"],
                shared.kinds[row["region"]],
                row["count"],
                *(row[f"{name}_{unit}"] for name in times),
                row["imbalance"],
                row["slowest_instance"] or None,
                *([row[f"tail_{unit}"]] if has_tail else []),
                row[f"self_{unit}"] / whole,
            ]

    return columns, cells()


def _timed(name: str, unit: str) -> Col:
    return column(name, "duration" if unit == "ns" else "cycles", unit)


def region_title(role: str) -> str:
    """Return the title of the table of regions."""
    return f"imbalance: the {_instance_noun(role)} with most of it against the mean of all"


# --- units --------------------------------------------------------------------------------------------------------


def unit_table(
    table: Table, role: str, unit: str, rows: Sequence[dict[str, Any]]
) -> tuple[list[Col], Iterator[list[Any]]]:
    """Return columns and some rows of units for people, and a bar of the part of their time in which they compute."""
    in_turn = role in _IN_TURN
    counted = "blocks" if role == "sm" else "groups"
    times = ("resident", "busy", "compute", "load", "store", "stalled") + (() if in_turn else ("vacant", "tail"))
    if table.values(f"unknown_{unit}").any():
        times += ("unknown",)

    def cells() -> Iterator[list[Any]]:
        for row in rows:
            # A block is looked at while it is there, an SM all the time.
            whole = row[f"resident_{unit}" if in_turn else f"window_{unit}"] or 1
            share = row[f"compute_{unit}"] / whole
            counts = [] if in_turn else [row["groups"]]
            yield [row["instance"], *counts, *(row[f"{name}_{unit}"] for name in times), share, share]

    columns = [column(_instance_noun(role), "text"), *([] if in_turn else [column(counted, "count")])]
    columns += [*(_timed(name, unit) for name in times), column("computes", "percent"), _BAR]
    return columns, cells()


def unit_words(table: Table, role: str, unit: str) -> list[str]:
    """Describe the balance between instances, and the cost of the tail."""
    rows = [row for row in table.rows() if row["first_ts"] is not None]
    if not rows:
        return []
    work = [row[f"busy_{unit}"] for row in rows]
    ends = [row["last_ts"] for row in rows]
    mean = sum(work) / len(work)
    window = sum(row[f"window_{unit}"] for row in rows) or 1
    tail = sum(row[f"tail_{unit}"] for row in rows)
    said = [
        f"work: {mean * len(work) / window:.1%} of the window on average over "
        f"{format_count(len(rows), _instance_noun(role))}"
        + (
            f"; most on {rows[work.index(max(work))]['instance']}: {max(work) / mean:.2f} times the mean"
            if mean
            else ""
        )
    ]
    if role in _IN_TURN:
        resident = [row[f"resident_{unit}"] for row in rows]
        return [
            f"a {_instance_noun(role)} is there for {format_duration(sum(resident) // len(resident), unit)} on "
            "average, at most "
            f"{format_duration(max(resident), unit)} ({rows[resident.index(max(resident))]['instance']})"
        ]
    said.append(
        f"tail: {rows[ends.index(max(ends))]['instance']} ends {format_duration(max(ends) - min(ends), unit)} after "
        f"{rows[ends.index(min(ends))]['instance']}; {tail / window:.1%} of all {_instance_noun(role)} time is tail"
    )
    return said


# --- occupancy ----------------------------------------------------------------------------------------------------


def occupancy_strips(shared: AnalysisCache, tables: Sequence[Table], screen: Screen, limit: int = 0) -> None:
    """Draw how many are at work over time, one strip for each thing that is counted."""
    unit = shared.trace.time.time_unit
    first, last = shared.time.window
    width = max(screen.width - _NAME - 24, 10)
    edges = first + (np.arange(width + 1) * ((last - first) / width)).astype(np.int64)
    edges[-1] = last
    screen.wrap(f"How many at a time, over {format_duration(last - first, unit)}", "bold")
    screen.line()
    screen.line((fit_width("", _NAME) + "     mean     max  ", "dim"))
    for table in tables:
        amounts = occupancy.occupancy_stats(shared, table)
        for row in islice(amounts.rows(), limit or _STRIPS):
            dictionary = table.column("counted").dictionary
            code = dictionary.code(row["counted"]) if dictionary is not None else 0
            means = occupancy.binned(table, code, edges)
            style = _KIND_COLORS[shared.kinds[row["counted"]]] if row["counted"] in shared.kinds else "bold"
            steps = np.ceil(means / row["max"] * (len(_BARS) - 1)).astype(int).tolist()
            strip = "".join(_BARS[min(max(step, 0), len(_BARS) - 1)] for step in steps)
            screen.line(
                (
                    fit_width(
                        _instance_noun(row["counted"][1:-1]) if row["counted"].startswith("<") else row["counted"],
                        _NAME,
                    ),
                    style,
                ),
                f"{row['mean'] or 0.0:>9.2f} {row['max']:>7}  ",
                (strip, style),
            )


# --- words --------------------------------------------------------------------------------------------------------


def _instance_noun(role: str) -> str:
    return {"parent": "group", "all": "trace", "sm": "SM"}.get(role, role)
