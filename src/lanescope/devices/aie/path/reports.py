"""Paths for people and for other tools: the annotated listing, coverage as lcov, the call tree, the calls in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lanescope.devices.aie.path.path_tables import Paths, bounds
from lanescope.devices.aie.path.program.program import CALLS, DELAY_SLOTS, RETURN, Program
from lanescope.devices.aie.path.walk.walk_counts import Counts
from lanescope.devices.aie.path.walk.walker import Section, Walk, Walker
from lanescope.devices.aie.path.walk.windows import Iterations, Window
from lanescope.trace import Flag, TimeBase, Trace, TraceBuilder


def times(least: int, most: int | None) -> str:
    """Return how often something happened, in few letters."""
    if most is None:
        return f"{least}.."
    return str(least) if least == most else f"{least}..{most}"


def total(paths: Paths) -> Counts:
    """Return the counts of all recordings together."""
    found = Counts()
    for _, walk in paths.walks:
        found.add(walk.counts, is_trusted=True)
    return found


def annotated(paths: Paths) -> Iterator[str]:
    """Yield the listing, each bundle with how often it was executed, branches and loops with what became of them."""
    program, counts = paths.program, total(paths)
    walk = Walk(counts=counts)
    by_line = {bundle.line: bundle for bundle in program.bundles if bundle.line}
    width = max((len(times(*bounds(counts, ("visit", b.address)))) for b in program.bundles), default=1)
    width = max(width, len("visits"))
    yield f"{'visits':>{width}} |"
    for number, line in enumerate(program.listing, 1):
        bundle = by_line.get(number)
        if bundle is None:
            yield f"{'':{width}} | {line}".rstrip()
            continue
        least, most = bounds(counts, ("visit", bundle.address))
        said = [times(least, most) if most != 0 else "-"]
        remarks = []
        outcomes = paths.branch_outcomes(walk, bundle.address)
        if outcomes is not None and any(most != 0 for _, most in outcomes):
            taken, falls = (times(*each) for each in outcomes)
            remarks.append(f"taken {taken}, not taken {falls}")
        trips = [
            f"{n} x {'unknown' if passes < 0 else passes}{' and more' if is_least else ''}"
            for (le, passes, is_least), n in sorted(counts.trips.items())
            if le == bundle.address
        ]
        if trips:
            more = ", ..." if len(trips) > 6 else ""
            remarks.append(f"passes {', '.join(trips[:6])}{more}")
        note = f"    // {'; '.join(remarks)}" if remarks else ""
        yield f"{said[0]:>{width}} | {line}{note}"


def lcov(paths: Paths, listing: Path) -> Iterator[str]:
    """Yield the lines of an lcov tracefile: only what is certain counts as executed.

    Args:
        paths: the paths.
        listing: path of the listing, which replaces the source without debug information.
    """
    program, counts = paths.program, total(paths)
    walk = Walk(counts=counts)
    by_file: dict[str, dict[int, list[int]]] = {}
    for (file, line), addresses in paths.by_line().items():
        by_file.setdefault(file, {})[line] = addresses
    for file, lines in sorted(by_file.items()):
        yield "TN:lanescope"
        yield f"SF:{listing.resolve() if file == program.source and not program.lines else file}"
        line_of = {address: line for line, addresses in lines.items() for address in addresses}
        functions = [f for f in program.functions if f.address in line_of]
        for function in functions:
            yield f"FN:{line_of[function.address]},{function.name}"
        for function in functions:
            yield f"FNDA:{counts.least['visit', function.address]},{function.name}"
        yield f"FNF:{len(functions)}"
        yield f"FNH:{sum(counts.least['visit', f.address] > 0 for f in functions)}"
        found = hit = 0
        for address, line in sorted(line_of.items()):
            outcomes = paths.branch_outcomes(walk, address)
            if outcomes is None:
                continue
            is_met = counts.least["visit", address] > 0
            for way, (n, _) in enumerate(outcomes):
                yield f"BRDA:{line},{address},{way},{n if is_met else '-'}"
                found, hit = found + 1, hit + (n > 0)
        yield f"BRF:{found}"
        yield f"BRH:{hit}"
        hits = {line: max(counts.least["visit", address] for address in each) for line, each in lines.items()}
        for line, n in sorted(hits.items()):
            yield f"DA:{line},{n}"
        yield f"LF:{len(hits)}"
        yield f"LH:{sum(n > 0 for n in hits.values())}"
        yield "end_of_record"


def call_lines(paths: Paths) -> Iterator[str]:
    """Yield the call tree, a line for each function as it was called."""
    nodes = paths.counted_by.nodes
    for recording, walk in paths.walks:
        yield recording.name
        for number, depth, (least, most) in paths.call_tree(walk):
            _, site, entry = nodes[number]
            name = paths.program.function_name(entry)
            where = f", called at {site:#x}" if site >= 0 else ""
            how = f"{times(least, most)} x " if site >= 0 else ""
            yield f"{'  ' * (depth + 1)}{how}{name}{where}"


def timeline(paths: Paths) -> Trace:
    """Return the calls in order of execution as a trace: a nested lane for each recording.

    Its axis is the number of the call or return, not time: none is recorded.
    """
    builder = TraceBuilder(TimeBase(epoch_kind="first_event", time_unit="cycles"))
    walker, walks = paths.kept
    for recording, walk in zip(paths.recordings, walks, strict=True):
        group = builder.track(recording.name, kind="group", role="tile")
        lane = builder.track("calls in order (no time)", kind="lane", role="calls", parent=group, nesting="nested")
        _Calls(builder, paths.program, walker, lane).add(walk)
    return builder.finish()


class _Calls:
    """Turns windows into nested slices."""

    def __init__(self, builder: TraceBuilder, program: Program, walker: Walker, lane: int) -> None:
        self._builder, self._program, self._walker, self._lane = builder, program, walker, lane
        self._now = 0
        #: Functions that are running: name, when they were called, whether that was seen.
        self._open: list[tuple[str, int, bool]] = []
        self._rows: list[tuple[int, int, str, int]] = []
        self._known: dict[int, list[tuple[str, int]]] = {}

    def add(self, walk: Walk) -> None:
        """Append the slices of a walk."""
        for piece in walk.pieces:
            self._piece(piece)
        rows = sorted(self._rows, key=lambda row: (row[0], -row[1]))
        if not rows:
            return
        starts, durations, names, flags = zip(*rows, strict=True)
        self._builder.append(
            "slices",
            track_id=self._lane,
            ts=np.array(starts, np.int64),
            dur=np.array(durations, np.int64),
            dur_ticks=None,
            ts_ticks=None,
            name=list(names),
            category=["call"] * len(names),
            quality=["inferred" if flag else "exact" for flag in flags],
            flags=np.array(flags, np.uint32),
            last_known_ts=None,
        )

    def _piece(self, piece: Section) -> None:
        begun = self._function(piece.anchor)
        self._now += 1
        self._open = [(begun, self._now, False)]
        for numbers in piece.numbers:
            for number in numbers.tolist():
                if number not in self._known:
                    self._known[number] = self._events(self._walker.windows[number])
                for what, address in self._known[number]:
                    self._event(what, address)
        self._now += 1
        while self._open:
            self._close(is_cut=True)

    def _events(self, window: Window) -> list[tuple[str, int]]:
        """Calls and returns of a window, as far as all its paths agree."""
        if window.paths is None:
            return []
        begin, _ = window.common
        path = window.paths[0]
        whole = [*path.elements, *((path.follows,) if path.follows >= 0 else ())]
        stop = len(whole) if window.is_certain else begin
        found = []
        branch, left = path.flight
        for element in whole[:stop]:
            if isinstance(element, Iterations):
                continue
            if branch >= 0 and left == 0:
                found.append(("return" if self._program.at[branch].kind == RETURN else "call", element))
                branch = -1
            if branch >= 0:
                left -= 1
            elif element in self._program.at and self._program.at[element].kind in (*CALLS, RETURN):
                branch, left = element, DELAY_SLOTS
        return found

    def _event(self, what: str, address: int) -> None:
        self._now += 1
        name = self._function(address)
        if what == "call":
            self._open.append((name, self._now, True))
            return
        self._close()
        if not self._open:
            # A caller that ran before the recording.
            self._open.append((name, self._now, False))

    def _close(self, *, is_cut: bool = False) -> None:
        name, begun, was_seen = self._open.pop()
        flags = (0 if was_seen else int(Flag.INFERRED_START)) | (int(Flag.TRUNCATED) if is_cut else 0)
        self._rows.append((begun, self._now - begun, name, flags))

    def _function(self, address: int) -> str:
        return self._program.function_name(address)
