"""Writes a report: what fits into its size, in one pass through the template."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape as escape_html
from typing import Any

import numpy as np

from lanescope.io.atomic_file import Output, atomic_writer
from lanescope.trace import Trace
from lanescope.view.formatting import escape, format_count
from lanescope.view.model.numbers import number_text
from lanescope.view.model.side_by_side import SideBySide
from lanescope.view.model.view_model import ViewModel
from lanescope.view.report.bundles import (
    CELLS,
    Rows,
    Windows,
    all_rows,
    bundled,
    exact_windows,
    finest,
    longest_of_names,
    row_count,
)
from lanescope.view.report.columns import (
    Argument,
    SliceColumns,
    arguments,
    counter_columns,
    flow_columns,
    gap_columns,
    instant_columns,
    path_columns,
    slice_columns,
)
from lanescope.view.report.header import cut_texts, encoded, header
from lanescope.view.report.pack import Column, Columns, deflated, in_base64, scale_of
from lanescope.view.report.page_source import assemble

#: Size of a report unless another is asked for, in bytes.
MAX_SIZE = 2_000_000
#: Bundles leave this part of the room to flows and arguments; exact windows take at most this part of the slices'.
_REST, _WINDOWS = 0.15, 0.25
#: Cells to begin with; how often others are tried; how full is full enough, and what part of the room is aimed at.
_PROBE, _TRIES, _FULL, _AIM = 256, 6, 0.95, 0.985
#: Slices by which many more are judged, and how far beyond the room those must be; bytes kept for arguments.
_SAMPLE, _HOPELESS, _ARGUMENTS = 1 << 20, 2, 40_000
#: A header that takes more than this part of the room has only so many places of a finding and rows of a table.
_HEADER, _FEW_PLACES, _FEW_ROWS = 0.5, 20, 50
#: Bytes of a slice, about, and of the list of columns.
_SLICE, _DIRECTORY = 6, 2_500


class Report:
    """A trace as a page: what it holds, and its bytes.

    Args:
        model: the trace.
        title: title of the page; empty: the name of the capture.
        max_size: bytes that the page should have at most.

    Attributes:
        head: the header.
        left_out: sentences: what the trace has and the page has not.
    """

    def __init__(self, model: ViewModel, title: str = "", max_size: int = MAX_SIZE) -> None:
        self._model, self._columns = model, Columns()
        self.left_out = list(model.left_out)
        rows = all_rows(model.strips)
        self._page = assemble()
        page = sum(len(part.encode()) for part in self._page)
        self.head = header(model, rows, title)
        self.title = self.head["title"] = title or _captures(model) or self.head["capture"] or "lanescope report"
        self._shorten(max_size - page)
        self._room = max_size - page - in_base64(len(deflated(encoded(self.head)))) - _DIRECTORY
        gaps = gap_columns(model)
        self._add(gaps.columns)
        rows, slices = self._choose_rows(rows)
        if len(rows.begin) != len(model.strips.begin):
            self.head = header(model, rows, self.title)
            self._shorten(max_size - page)
        self._add(slices.columns)
        self.head |= {
            "scale": slices.scale,
            "cats": slices.categories,
            "qualities": slices.qualities,
            "causes": gaps.texts,
            "bundled": self._bundled(rows),
        }
        self._add_marks()
        self._add_flows(rows)
        self._add_path(rows)
        self._add_arguments(rows)
        cut = cut_texts(model)
        if cut:
            self.left_out.append(f"The middle of {format_count(cut, 'very long name')}.")
        self.head |= {"left_out": self.left_out, "columns": self._columns.directory()}
        self._state_size(max_size, page)

    def _shorten(self, room: int) -> None:
        """Where the header takes most of the file, leave out places of findings and rows of tables."""
        if in_base64(len(deflated(encoded(self.head)))) <= room * _HEADER:
            return
        cut = False
        for finding in self.head["findings"]:
            cut |= len(finding["places"]) > _FEW_PLACES
            finding["places"] = finding["places"][:_FEW_PLACES]
        for table in self.head["tables"]:
            cut |= len(table["rows"]) > _FEW_ROWS
            table["rows"] = table["rows"][:_FEW_ROWS]
        if cut and not any("places of each finding" in sentence for sentence in self.left_out):
            self.left_out.append(
                f"All but the first {_FEW_PLACES} places of each finding and {_FEW_ROWS} rows of each table: they do "
                "not fit into the size of this file."
            )

    def _state_size(self, max_size: int, page: int) -> None:
        """Say so if the file is larger than it should be: what names, findings and tables take cannot be left out."""
        header_size = in_base64(len(deflated(encoded(self.head))))
        size = page + header_size + self._columns.size
        if size > max_size:
            self.left_out.append(
                f"Nothing more, but the file is larger than was asked for ({number_text(max_size, 'bytes')}): the page "
                f"takes {number_text(page, 'bytes')}, names, findings and tables {number_text(header_size, 'bytes')}, "
                f"slices {number_text(self._columns.size, 'bytes')}."
            )

    @property
    def contents(self) -> str:
        """What it holds, in a few words."""
        return format_count(len(self._model.trace.slices), "slice")

    def _add(self, columns: Sequence[Column]) -> None:
        self._columns.add(list(columns))

    def _left(self) -> int:
        return self._room - self._columns.size

    def _fits(self, columns: Sequence[Column], more: Any = None) -> bool:
        """Return whether columns fit, and what they add to the header."""
        size = sum(len(column.deflated) for column in columns)
        if more is not None:
            size += len(deflated(json.dumps(more).encode()))
        return in_base64(size) <= self._left()

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _choose_rows(self, rows: Rows) -> tuple[Rows, SliceColumns]:
        """Return all slices where they fit, else the finest bundles that do."""
        model = self._model
        self._cell, self._cells, self._exact = 0, 0, list[tuple[int, int]]()
        if not self._is_hopeless(rows):
            found = slice_columns(model, rows)
            if not len(rows.begin) or self._fits(found.columns):
                return rows, found
        strips, room = model.strips, max(self._left(), 0)
        wanted = longest_of_names(strips, model.name_of)
        places = [place for finding in model.findings for place in finding.places]
        at = strips.where[[place.row for place in places if place.row is not None]]
        moments = [place.ts for place in places if place.ts is not None] + strips.begin[wanted].tolist()
        windows = exact_windows(
            strips, model.window, moments, np.concatenate([wanted, at]), int(room * _WINDOWS / _SLICE)
        )
        self._exact = windows.times
        rows, found = self._bundles(windows, _PROBE)
        room -= min(self._rest(rows), int(room * _REST))
        best = cells = 0
        counts: dict[int, int] = {}
        for _ in range(_TRIES):
            size = _size(found.columns)
            if size <= room and self._cells > best:
                best, kept = self._cells, (rows, found)
            if room * _FULL <= size <= room or (best == CELLS):
                break
            # Rows are counted much sooner than they are encoded; of those at hand one knows how long they are.
            most = int(len(rows.begin) * room * _AIM / max(size, 1))

            def fits(cells: int, most: int = most) -> bool:
                if cells not in counts:
                    counts[cells] = row_count(strips, model.window[0], self._cell_of(cells), windows.keep)
                return counts[cells] <= most

            cells = finest(fits)
            if cells == self._cells:
                break
            rows, found = self._bundles(windows, cells)
        if best:
            rows, found = kept
            self._cells = best
        self._cell = self._cell_of(self._cells)
        return rows, found

    def _is_hopeless(self, rows: Rows) -> bool:
        """Return whether slices are so many, by a part of them, that one need not try to have each."""
        if len(rows.begin) <= 2 * _SAMPLE:
            return False
        part = slice(0, _SAMPLE)
        length = rows.end[part] - rows.begin[part]
        names = self._model.name_of[rows.first[part]]
        size = _size([Column("", "u", length // scale_of(length)), Column("", "u", names)])
        return size * (len(rows.begin) / _SAMPLE) > _HOPELESS * self._left()

    def _bundles(self, windows: Windows, cells: int) -> tuple[Rows, SliceColumns]:
        model = self._model
        self._cells = cells
        rows = bundled(model.strips, model.window[0], self._cell_of(cells), windows.keep)
        return rows, slice_columns(model, rows)

    def _rest(self, rows: Rows) -> int:
        """Return about how many bytes flows and arguments of slices that are not in bundles take."""
        flows = flow_columns(self._model, rows, is_exact=True)
        has_arguments = any(len(table) and table.spec.key == "slice_id" for table in self._model.trace.details.values())
        return _size(flows.columns) * 3 // 2 + (_ARGUMENTS if has_arguments else 0)

    def _cell_of(self, cells: int) -> int:
        return max(self._model.span // cells, 1)

    def _bundled(self, rows: Rows) -> dict[str, Any] | None:
        bundles = rows.bundles
        if not self._cell:
            return None
        slices = int(rows.slices[bundles].sum())
        length = number_text(self._cell, "time", self._model.unit)
        self.left_out.append(
            f"{format_count(slices, 'slice')} shorter than {length} are joined to "
            f"{format_count(len(bundles), 'bundle')}; all tables count each of them. A window (--start, --end) or a "
            "larger --max-size shows them one by one."
        )
        low = self._model.window[0]
        exact = [[begin - low, end - low] for begin, end in self._exact]
        return {"cell": self._cell, "exact": exact, "slices": slices, "rows": len(bundles)}

    # --- the rest -----------------------------------------------------------------------------------------------------

    def _add_marks(self) -> None:
        model = self._model
        found = instant_columns(model)
        self.head |= {"instants_left": 0, "counters_left": 0}
        if not self._fits(found.columns, found.texts):
            self._leave_out(len(model.trace.instants), "instant")
            self.head["instants_left"] = len(model.trace.instants)
            found = instant_columns(model, is_empty=True)
        self._add(found.columns)
        samples = counter_columns(model)
        if not self._fits(samples):
            self._leave_out(len(model.trace.counters), "counter sample")
            self.head["counters_left"] = len(model.trace.counters)
            samples = counter_columns(model, is_empty=True)
        self._add(samples)
        self.head |= {"instant_names": found.texts}

    def _add_flows(self, rows: Rows) -> None:
        flows = flow_columns(self._model, rows)
        all_of_them = flows.columns[0].count
        if not self._fits(flows.columns):
            is_first = np.zeros(len(rows.begin), np.bool_)
            for since, until in self._exact:
                is_first |= (rows.begin < until) & (rows.end > since)
            flows = flow_columns(self._model, rows, is_exact=True)
            for _ in range(_TRIES):
                if self._fits(flows.columns):
                    break
                most = int(flows.columns[0].count * max(self._left(), 0) * _AIM / max(_size(flows.columns), 1))
                flows = flow_columns(self._model, rows, is_exact=True, most=most, first=is_first)
            else:
                flows = flow_columns(self._model, rows, is_exact=True, most=0)
        without = all_of_them - flows.columns[0].count
        self.head["flows_left"] = without
        if without:
            self.left_out.append(
                f"{without:,} of {format_count(all_of_them, 'flow')}: those of bundles, and those that do not fit into "
                "the size of this file."
            )
        if flows.without:
            self.left_out.append(f"{format_count(flows.without, 'flow')} of which an end is on no slice.")
        self._add(flows.columns)
        self.head |= {"flow_kinds": flows.texts}

    def _add_path(self, rows: Rows) -> None:
        found = path_columns(self._model, rows)
        self.head["path"] = None
        if found.columns and self._fits(found.columns):
            self._add(found.columns)
            self.head["path"] = {"table": "path", "causes": found.texts}
        elif found.columns:
            self._leave_out(found.columns[0].count, "part of the critical path", "parts of the critical path")

    def _add_arguments(self, rows: Rows) -> None:
        entries: list[dict[str, Any]] = []
        without: list[str] = []
        for argument in arguments(self._model, rows):
            columns = argument.columns(len(entries))
            if self._fits(columns, argument.entry):
                self._add(columns)
                entries.append(argument.entry)
                self._room -= in_base64(len(deflated(json.dumps(argument.entry).encode())))
            else:
                without.append(_named(argument))
        if without:
            self.left_out.append(f"Arguments of slices: {', '.join(without)}.")
        self.head["args"] = entries

    def _leave_out(self, count: int, one: str, many: str = "") -> None:
        if count:
            self.left_out.append(f"{format_count(count, one, many)}: they do not fit into the size of this file.")

    # --- bytes --------------------------------------------------------------------------------------------------------

    def pieces(self) -> Iterator[bytes]:
        """Yield the page; the same for the same trace."""
        page = self._page
        parts = {
            "csp": (
                f"default-src 'none'; script-src {_hash(page.script)}; style-src {_hash(page.style)}; "
                "img-src data: blob:; base-uri 'none'; form-action 'none'"
            ),
            "style": page.style,
            "title": escape_html(escape(self.title)),
            "header": base64.b64encode(deflated(encoded(self.head))).decode(),
            "columns": base64.b64encode(b"".join(self._columns.pieces())).decode(),
            "script": page.script,
        }
        for piece in filled(page.template, parts):
            yield piece.encode("utf-8", "replace")


def _captures(model: ViewModel) -> str:
    """Return the names of two captures that are side by side; else nothing."""
    return " · ".join(f"{side.letter} {side.capture}".strip() for side in model.sides)


def _size(columns: Sequence[Column]) -> int:
    """Return the bytes that columns take in the file."""
    return in_base64(sum(len(column.deflated) for column in columns))


def _named(argument: Argument) -> str:
    return str(argument.entry["name"])


def _hash(content: str) -> str:
    """Return what a policy calls a script or a style by: the hash of its bytes as they are written."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def filled(template: str, parts: Mapping[str, str]) -> Iterator[str]:
    """Yield a template with its placeholders replaced, in one pass: what a part says is not looked at.

    Args:
        template: text with ``{{name}}`` in it.
        parts: what goes there, by name.
    """
    at = 0
    for found in re.finditer(r"\{\{(\w+)\}\}", template):
        yield template[at : found.start()]
        yield parts[found[1]]
        at = found.end()
    yield template[at:]


def write_report(
    trace: Trace, out: Output, *, title: str = "", max_size: int = MAX_SIZE, other: Trace | None = None
) -> Report:
    """Write a trace as one HTML file that needs nothing else.

    Args:
        trace: the trace, or a window of it.
        out: path, or a file open for writing.
        title: title of the page; empty: the name of the capture.
        max_size: bytes that the file should have at most. Slices are bundled, and flows and arguments left out, until
            it fits; the page says so, and its tables count all. Names, findings and tables are never left out.
        other: a second trace, which is shown next to this one and compared with it.

    Returns:
        What the page holds.

    Raises:
        UsageError: ``out`` is a folder, a device or a pipe; one trace counts cycles, the other nanoseconds.
        OSError: it cannot be written.
    """
    model = ViewModel(trace) if other is None else SideBySide(trace, other)
    report = Report(model, title, max_size)
    with atomic_writer(out) as file:
        for piece in report.pieces():
            file.write(piece)
    return report
