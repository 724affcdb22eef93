"""A timeline as SVG: title, ruler, lanes with busy shares, findings at their place, legend; the same bytes each time.

Colours and columns are those of the report: a slice wider than 1.5 pixels is a rectangle, columns of shorter ones have
an opacity by their exact busy share and the colour of the longest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from lanescope.io.viewer_names import numbered
from lanescope.trace import Trace, row_packing
from lanescope.trace.row_packing import RowsById
from lanescope.view.formatting import display_width, escape, fit_width, format_count
from lanescope.view.model.findings import SEVERITIES
from lanescope.view.model.lod import LABELLED, LEAST_LABEL, OPACITIES, Detail, Rectangle
from lanescope.view.model.numbers import number_text
from lanescope.view.model.palette import FILLS, LABEL, LIGHT, NEUTRAL
from lanescope.view.model.view_model import ViewModel
from lanescope.view.picture.markup import Mark, boxes, fitted, marks, safe, steps
from lanescope.view.picture.markup import coordinate as n
from lanescope.view.strip_layout import StripLayout

Floats = npt.NDArray[np.float64]

#: Pixels of a picture, of the names of lanes beside it, and around all.
WIDTH, LEAST_WIDTH = 1200, 480
_NAMES, _SHARES, _EDGE = 200, 52, 16
_STRIP, _COUNTER, _MARKS, _HEADING, _RULER = 15, 26, 12, 18, 24
#: Strips of a lane, names of the legend and rules that are drawn at most.
_STRIPS, _LEGEND, _RULES = 6, 12, 6
#: Lanes that are drawn at most: without a height, so that the picture fits a page; with one it decides, up to this.
LANES, _MOST_LANES = 64, 2000
#: Of more flows between what is drawn none is: they would hide what they join. Of more than a few all are fainter. And
#: the kinds of flows that the legend names.
FLOWS, _FEW, _KINDS = 300, 60, 3
#: Lanes of more strips than this have low ones, without labels.
_TALL, _LOW = 3, 6
#: Width of a character by the size of its font, about.
_CHARACTER = 0.6
_LONGEST = 400
_FONT = "Inter, system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
_SEVERITIES = {"error": LIGHT["bad"], "warning": LIGHT["warn"], "notice": LIGHT["accent"]}


def draw(
    trace: Trace,
    *,
    width: int = WIDTH,
    height: int | None = None,
    findings: bool = True,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> bytes:
    """Return a timeline as SVG.

    Args:
        trace: the trace, or a window of it.
        width: pixels.
        height: pixels at most: as many lanes are drawn as it has room for, one at least. None: as needed for 64 lanes.
        findings: draw what ``check`` finds.
        select: codes, or beginnings of codes, of the rules to apply; empty: all.
        ignore: codes to leave out.
    """
    model = ViewModel(trace, select=tuple(select), ignore=tuple(ignore))

    def drawn(lanes: int) -> _Picture:
        return _Picture(model, max(width, LEAST_WIDTH), lanes, has_findings=findings)

    if height is None:
        return drawn(LANES).text()
    # Headings, levels and marks of findings decide how many lanes fit, so the number is searched for.
    best, too_many = drawn(1), min(max(height // _STRIP, 1), _MOST_LANES) + 1
    fitting = 1
    while too_many - fitting > 1:
        lanes = (fitting + too_many) // 2
        picture = drawn(lanes)
        if picture.height <= height:
            best, fitting = picture, lanes
            if not picture.layout.left_out:
                break
        else:
            too_many = lanes
    return best.text()


class _Picture:
    """One picture: pieces from the top down."""

    def __init__(self, model: ViewModel, width: int, lanes: int, *, has_findings: bool) -> None:
        self.model, self.width, self.trace = model, width, model.trace
        self.rules = model.findings if has_findings else []
        self.layout = StripLayout(model.trace, (), width, lanes)
        self.left = _EDGE + _NAMES + _SHARES
        self.pixels = width - self.left - _EDGE
        self.lo, self.span = model.window[0], model.span
        strips = model.strips
        colours = np.array([*model.colours, NEUTRAL], np.int64)
        name = model.name_of[strips.order] if len(strips.order) else np.empty(0, np.int64)
        self.colour_of = colours[name] if len(name) else np.empty(0, np.int64)
        self.detail = Detail(strips.begin - self.lo, strips.end - self.lo, strips.start, self.colour_of)
        self.of_track: dict[int, list[int]] = {}
        for strip, track in enumerate(strips.track.tolist()):
            self.of_track.setdefault(track, []).append(strip)
        self.drawn_names: set[int] = set()
        shown = numbered(name for name in self.layout.tree.names if "0x" in name)
        self.addresses = sorted(
            ((escape(name), short) for name, short in shown.items()), key=lambda pair: -len(pair[0])
        )
        self.looks: set[str] = set()
        self.lane_y: dict[int, float] = {}  # where flows meet a lane, and a strip of it
        self.strip_y: dict[int, float] = {}
        self.kinds: dict[str, int] = {}
        self.flows_left_out = self.flows_beside = 0
        self.parts: list[str] = []
        self.y = 0.0
        self._title()
        top = self.y
        self.y += _RULER
        for track in self.layout.shown:
            self._track(track)
        if not self.layout.shown:
            self._text(_EDGE, self.y + 14, "no lane has anything to draw")
            self.y += 22
        self.parts[0:0] = self._ruler(top, self.y)
        self._flows()
        self._legend()
        self.height = math.ceil(self.y + _EDGE / 2)

    def text(self) -> bytes:
        """Return the document, UTF-8."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}"'
            f' viewBox="0 0 {self.width} {self.height}" font-family="{_FONT}" font-size="11" fill="{LIGHT["ink"]}"'
            ' style="font-variant-numeric:tabular-nums" role="img">'
        )
        hatches = "".join(
            f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
            f'<rect width="{thick}" height="6" fill="{LIGHT[colour]}"/></pattern>'
            for name, colour, thick in (("unrecorded", "hatch", 1.5), ("lost", "loss", 3))
        )
        back = f'<rect width="{self.width}" height="{self.height}" fill="{LIGHT["background"]}"/>'
        named = f"<title>{safe(self.name)}</title>"
        document = "\n".join([head, named, f"<defs>{hatches}</defs>", back, *self.parts, "</svg>", ""])
        return document.encode("utf-8", "replace")

    # --- pieces ---------------------------------------------------------------------------------------------------

    def _title(self) -> None:
        inputs = self.trace.inputs
        self.name = PurePath(str(inputs.values("path")[0])).name if len(inputs) else "trace"
        room = int((self.width - 2 * _EDGE) / (15 * _CHARACTER))
        self._text(_EDGE, 26, fit_width(escape(self.name), room).rstrip(), size=15, weight=600)
        facts = [
            *([str(inputs.values("format")[0])] if len(inputs) else []),
            f"span {number_text(self.span, 'time', self.model.unit)}",
            format_count(len(self.trace.slices), "slice"),
            format_count(len(self.layout.tree.lanes), "lane"),
        ]
        if self.lo:
            facts.append(f"0 is at {number_text(self.lo, 'exact', self.model.unit)}")
        stats = self.trace.stats
        # Kinds of loss count unlike things, whose sum is nothing that was lost.
        lost = sum(row["severity"] == "data_loss" and row["count"] > 0 for row in stats.rows())
        self._text(_EDGE, 43, "  ·  ".join(map(escape, facts)), colour=LIGHT["dim"])
        if lost:
            self._text(
                self.width - _EDGE, 43, f"{format_count(lost, 'kind')} of data loss", colour=LIGHT["bad"], anchor="end"
            )
        self.y = 50.0

    def _ruler(self, top: float, bottom: float) -> list[str]:
        unit, size = self._axis_unit()
        step = _nice(self.span / size / max(self.pixels / 90, 1))
        if self.model.unit != "ns" or unit == "ns":
            step = max(step, 1.0)
        found = [f'<path d="M{self.left} {n(top + _RULER - 1)}h{self.pixels}" stroke="{LIGHT["edge"]}"/>']
        for number in range(int(self.span / size / step) + 1):
            x = self.left + number * step * size / self.span * self.pixels
            text = f"{number * step:,.10g}" + (f" {unit}" if not number else "")
            is_last = x + len(text) * 11 * _CHARACTER > self.width - 2
            anchor = ' text-anchor="end"' if is_last else ""
            found.append(
                f'<path d="M{n(x)} {n(top + 14)}V{n(bottom)}" stroke="{LIGHT["line"]}"/>'
                f'<text x="{n(x)}" y="{n(top + 11)}" fill="{LIGHT["dim"]}"{anchor}>{safe(text)}</text>'
            )
        return found

    def _numbered(self, label: str) -> str:
        """Return the path of a lane with numbers for addresses, as the Perfetto UI has them."""
        if "0x" in label:
            for name, short in self.addresses:
                label = label.replace(name, short)
        return label

    def _axis_unit(self) -> tuple[str, int]:
        if self.model.unit != "ns":
            return self.model.unit, 1
        sizes = (("s", 10**9), ("ms", 10**6), ("µs", 10**3))
        return next(((unit, size) for unit, size in sizes if self.span >= 2 * size), ("ns", 1))

    def _track(self, track: int) -> None:
        headings, label = self.layout.labels[track]
        for heading in headings:
            indent = (len(heading) - len(heading.lstrip())) * 4
            text = self._fit(self._numbered(heading.strip()), self.width - 2 * _EDGE - indent)
            self._text(_EDGE + indent, self.y + 13, text, weight=600)
            self.y += _HEADING
        strips = self.of_track.get(track, [])
        is_counter = track in self.layout.counters
        rows = max(min(len(strips), _STRIPS), 1)
        strip_height = _STRIP if rows <= _TALL else _LOW
        height = _COUNTER if is_counter else rows * strip_height
        more = f" +{len(strips) - rows} levels" if len(strips) > rows else ""
        indent = (len(label) - len(label.lstrip())) * 4
        self._text(
            _EDGE + indent,
            self.y + 11,
            self._fit(self._numbered(label.strip()), _NAMES - indent - len(more) * 6) + more,
        )
        if is_counter:
            self._counter(track, height)
        else:
            share = self.model.busy[track]
            if share is not None:
                x = self.left - 8
                self._text(x, self.y + 11, number_text(share, "share"), colour=LIGHT["dim"], anchor="end")
            self._hatch(track, height)
            self.lane_y[track] = self.y + height / 2
            for level, strip in enumerate(strips[:rows]):
                self.strip_y[strip] = self.y + level * strip_height + (strip_height - 2) / 2
                self._strip(strip, self.y + level * strip_height, strip_height)
            self._instants(track)
        self.y += height + 3
        self._findings(track)

    def _hatch(self, track: int, height: int) -> None:
        time = self.layout.time
        for name, part in (("unrecorded", time.uncovered), ("lost", time.gaps)):
            first, last = np.searchsorted(part.group, [track, track + 1]).tolist()
            if first == last:
                continue
            self.looks.add(name)
            left = np.clip((part.begin[first:last] - self.lo) / self.span, 0, 1) * self.pixels
            right = np.maximum(np.clip((part.end[first:last] - self.lo) / self.span, 0, 1) * self.pixels, left + 1)
            path = boxes(zip(left + self.left, right + self.left, strict=True), self.y, height - 1)
            self.parts.append(f'<path fill="url(#{name})" d="{path}"/>')

    def _strip(self, strip: int, y: float, height: int) -> None:
        buckets: dict[tuple[int, int], list[tuple[float, float]]] = {}
        labels: list[str] = []
        for one in self.detail.strip(strip, (0.0, float(self.span)), self.pixels):
            colour = int(self.colour_of[one.row])
            name = int(self.model.name_of[self.model.strips.order[one.row]])
            self.drawn_names.add(name)
            right = one.right - (1.0 if one.right - one.left >= 4 else 0.35 if one.is_alone else 0.0)
            place = (self.left + one.left, self.left + right)
            if height == _STRIP and one.is_alone and one.right - one.left > LABELLED:
                labels.append(self._labelled(one, place, y, colour, self.model.names[name]))
            else:
                buckets.setdefault((colour, one.opacity), []).append(place)
        for (colour, opacity), places in sorted(buckets.items()):
            faint = f' opacity="{OPACITIES[opacity]}"' if OPACITIES[opacity] < 1 else ""
            path = boxes(places, y, height - (2 if height == _STRIP else 1))
            self.parts.append(f'<path fill="{_fill(colour)}"{faint} d="{path}"/>')
        self.parts += labels

    def _labelled(self, one: Rectangle, place: tuple[float, float], y: float, colour: int, name: str) -> str:
        left, right = place
        row = int(self.model.strips.order[one.row])
        length = int(self.model.strips.end[one.row] - self.model.strips.begin[one.row])
        is_open = not bool(self.trace.slices.valid("dur")[row])
        told = (
            f"{escape(name[:_LONGEST])}: {'open, ' if is_open else ''}{number_text(length, 'exact', self.model.unit)}"
        )
        text = self._fit(escape(name[:_LONGEST]), right - left - 6, size=10)
        shown = ""
        if len(text) > LEAST_LABEL or text == escape(name[:_LONGEST]):
            shown = f'<text x="{n(left + 3)}" y="{n(y + 10)}" font-size="10" fill="{LABEL}">{safe(text)}</text>'
        size = f'width="{n(right - left)}" height="{_STRIP - 2}"'
        box = f'<rect x="{n(left)}" y="{n(y)}" {size} fill="{_fill(colour)}"/>'
        return f"<g><title>{safe(told)}</title>{box}{shown}</g>"

    def _instants(self, track: int) -> None:
        instants = self.trace.instants
        ts = instants.values("ts")[instants.values("track_id") == track]
        columns = sorted(set(((ts - self.lo) / self.span * self.pixels).astype(np.int64).tolist()))
        if columns:
            self.looks.add("instant")
            path = "".join(f"M{self.left + column} {n(self.y)}v4" for column in columns)
            self.parts.append(f'<path d="{path}" stroke="{LIGHT["ink"]}"/>')

    def _flows(self) -> None:
        """Draw the flows of which both ends lie on what is drawn; too many of them not at all."""
        flows = self.trace.flows
        if not len(flows):
            return
        left, top = self._ends("src")
        right, bottom = self._ends("dst")
        rows = np.flatnonzero(~np.isnan(top + bottom))
        self.flows_beside = len(flows) - len(rows)
        if len(rows) > FLOWS:
            self.flows_left_out = len(rows)
            return
        kinds = flows.values("kind")
        lines, heads = [], []
        for row in rows.tolist():
            x1, y1, x2, y2 = (float(part[row]) for part in (left, top, right, bottom))
            bow = min(max(abs(x2 - x1) / 2, 12.0), 60.0)
            lines.append(f"M{n(x1)} {n(y1)}C{n(x1 + bow)} {n(y1)} {n(x2 - bow)} {n(y2)} {n(x2)} {n(y2)}")
            heads.append(f"M{n(x2)} {n(y2)}l-5 -2.5v5z")
            kind = str(kinds[row])
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if lines:
            colour, opacity = LIGHT["flow"], 0.55 if len(lines) <= _FEW else 0.3
            self.parts.append(f'<path d="{"".join(lines)}" fill="none" stroke="{colour}" opacity="{opacity}"/>')
            self.parts.append(f'<path d="{"".join(heads)}" fill="{colour}"/>')

    def _ends(self, side: str) -> tuple[Floats, Floats]:
        """Return x and y of one end of each flow, float64 [flows]; NaN where it lies on nothing that is drawn."""
        flows, strips, tracks = self.trace.flows, self.model.strips, self.trace.tracks
        strip_y, lane_y = np.full(len(strips) + 1, np.nan), np.full(len(tracks) + 1, np.nan)  # the last one is for -1
        strip_y[list(self.strip_y)] = list(self.strip_y.values())
        lane_y[list(self.lane_y)] = list(self.lane_y.values())
        row = RowsById(self.trace.slices.values("id")).find(flows.values(f"{side}_slice_id"))
        strip = np.full(len(flows), -1, np.int64)
        known = flows.valid(f"{side}_slice_id") & (row >= 0)
        strip[known] = np.searchsorted(strips.start, strips.where[row[known]], side="right") - 1
        y = strip_y[strip]
        track = row_packing.rows_of(tracks.values("id"), flows.values(f"{side}_track_id"))
        x = self.left + np.clip((flows.values(f"{side}_ts") - self.lo) / self.span, 0, 1) * self.pixels
        return x, np.where(np.isnan(y), lane_y[track], y)

    def _counter(self, track: int, height: int) -> None:
        counters = self.trace.counters
        mine = np.flatnonzero(counters.values("track_id") == track)
        mine = mine[np.argsort(counters.values("ts")[mine], kind="stable")]
        x = (counters.values("ts")[mine] - self.lo) / self.span * self.pixels
        box = (self.left, self.y + 2, self.left + self.pixels, self.y + height - 1)
        drawn = steps(x, counters.values("value")[mine].astype(np.float64), box)
        self.parts.append(f'<path fill="{LIGHT["area"]}" d="{drawn.path}"/>')
        unit = str(self.trace.tracks.values("unit")[track])
        known = unit if unit in ("ns", "cycles", "bytes", "%") else ""
        low, high = (number_text(value, "value", known) for value in (drawn.low, drawn.high))
        shown = f"to {high}" if drawn.low == 0 else f"{low} to {high}" if drawn.high else f"from {low}"
        self._text(self.left - 8, self.y + 11, shown, colour=LIGHT["dim"], anchor="end")
        if unit not in ("", "1", "ns", "cycles", "bytes", "%"):
            self._text(self.left - 8, self.y + 22, self._fit(escape(unit), _SHARES - 8, size=9), colour=LIGHT["dim"],
                       anchor="end", size=9)  # fmt: skip

    def _findings(self, track: int) -> None:
        found = [
            Mark(
                self.left + min(max((place.ts - self.lo) / self.span, 0.0), 1.0) * self.pixels,
                _SEVERITIES[rule.severity], SEVERITIES.index(rule.severity), rule.code, rule.severity, rule.title,
            )
            for rule in self.rules
            for place in rule.places
            if place.track == track and place.ts is not None
        ]  # fmt: skip
        if not found:
            return
        self.parts += marks(found, self.y, self.width - _EDGE)
        self.y += _MARKS

    def _legend(self) -> None:
        self.y += 8
        ranked = sorted(self.drawn_names)
        entries = [
            (f'<rect width="10" height="10" fill="{_fill(self.model.colours[name])}"/>',
             fit_width(escape(self.model.names[name][:_LONGEST]), 36).rstrip())
            for name in ranked[:_LEGEND]
        ]  # fmt: skip
        if len(ranked) > _LEGEND:
            entries.append(("", f"and {format_count(len(ranked) - _LEGEND, 'more name')}"))
        for look, words in (("unrecorded", "not recorded"), ("lost", "records lost or unknown")):
            if look in self.looks:
                box = f'<rect width="10" height="10" fill="url(#{look})" stroke="{LIGHT["edge"]}"/>'
                entries.append((box, words))
        if "instant" in self.looks:
            entries.append((f'<path d="M5 1v6" stroke="{LIGHT["ink"]}"/>', "instant"))
        if self.kinds:
            most = sorted(self.kinds, key=lambda kind: (-self.kinds[kind], kind))
            named = ", ".join(f"{escape(kind[:_LONGEST])} ({self.kinds[kind]:,})" for kind in most[:_KINDS])
            more = ", ..." if len(most) > _KINDS else ""
            arrow = f'<path d="M0 5h9" stroke="{LIGHT["flow"]}"/><path d="M10 5l-5 -2.5v5z" fill="{LIGHT["flow"]}"/>'
            entries.append((arrow, fit_width(f"{named}{more}", 60).rstrip()))
        x = float(_EDGE)
        for box, text in entries:
            wide = display_width(text) * 11 * (_CHARACTER + 0.04) + (16 if box else 0) + 14  # nothing cuts these
            if x > _EDGE and x + wide > self.width - _EDGE:
                x, self.y = float(_EDGE), self.y + 17
            if box:
                self.parts.append(f'<g transform="translate({n(x)} {n(self.y)})">{box}</g>')
            self._text(x + (15 if box else 0), self.y + 9, text)
            x += wide
        self.y += 20 if entries else 0
        for rule in self.rules[:_RULES]:
            text = f"▲ {rule.code} {rule.severity}: {escape(rule.title)} ({rule.violations:,})"
            self._text(_EDGE, self.y + 9, self._fit(text, self.width - 2 * _EDGE), colour=_SEVERITIES[rule.severity])
            self.y += 16
        rest = []
        if len(self.rules) > _RULES:
            rest.append(format_count(len(self.rules) - _RULES, "more rule"))
        if self.layout.left_out:
            rest.append(f"{format_count(len(self.layout.left_out), 'more lane')} not drawn")
        if self.layout.counters_left_out:
            rest.append(f"{format_count(self.layout.counters_left_out, 'more counter')} not drawn")
        if self.flows_left_out:
            rest.append(f"{format_count(self.flows_left_out, 'flow')} not drawn: more than {FLOWS}, choose a window")
        if self.flows_beside:
            rest.append(f"{format_count(self.flows_beside, 'flow')} to or from lanes that are not drawn")
        if rest:
            self._text(_EDGE, self.y + 9, "; ".join(rest), colour=LIGHT["dim"])
            self.y += 16

    # --- text -----------------------------------------------------------------------------------------------------

    def _fit(self, text: str, room: float, *, size: int = 11) -> str:
        return fitted(text, room, size)

    def _text(
        self, x: float, y: float, text: str, *, size: int = 11, weight: int = 0, colour: str = "", anchor: str = ""
    ) -> None:
        looks = (
            ("font-size", size if size != 11 else 0),
            ("font-weight", weight),
            ("fill", colour),
            ("text-anchor", anchor),
        )
        more = "".join(f' {name}="{value}"' for name, value in looks if value)
        self.parts.append(f'<text x="{n(x)}" y="{n(y)}"{more}>{safe(text)}</text>')


def _fill(colour: int) -> str:
    return LIGHT["neutral"] if colour == NEUTRAL else FILLS[colour]


def _nice(step: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is at least so large."""
    power = 10.0 ** math.floor(math.log10(step)) if step > 0 else 1.0
    return next((factor * power for factor in (1, 2, 5) if factor * power >= step * 0.999), 10 * power)
