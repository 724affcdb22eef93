"""What paths are good for: counts, coverage, calls, loops, the path itself; as declared tables."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from lanescope.devices.aie.path import offsets, options, path_rows, schema, segments
from lanescope.devices.aie.path.program.program import (
    BRANCH_INDIRECT,
    BRANCHES,
    CALLS,
    DELAY_SLOTS,
    DIRECT,
    JUMP_INDIRECT,
    Program,
)
from lanescope.devices.aie.path.segments import Segment
from lanescope.devices.aie.path.walk.core_state import ERRATUM_DOCS, PLACES, UNKNOWN, Erratum, settled
from lanescope.devices.aie.path.walk.walk_counts import Counts
from lanescope.devices.aie.path.walk.walker import MAX_STATES, Walk, Walker
from lanescope.devices.aie.path.walk.windows import Fact
from lanescope.families.family import Derived
from lanescope.trace import LazyTable, Table, TableSpec, Trace

#: Least and greatest number of times that something happened; None: unbounded.
Bounds = tuple[int, int | None]
#: Bundles that fetch may be ahead of an event in event-PC mode.
SKID = 4
#: Remarks that may rest on where jumps through registers go.
_GUESSES = ("in_flight", "open_return", "searched")


class Paths:
    """The paths of all recordings of a trace in execution mode, of one program.

    Args:
        trace: the trace.
        program: the program of its cores.
        errata: what the device is known to do.
        max_states: guesses that are followed at a time.
        core: column and row of the only core that is meant; None: all.
    """

    def __init__(
        self,
        trace: Trace,
        program: Program,
        errata: Erratum = UNKNOWN,
        *,
        max_states: int = MAX_STATES,
        core: tuple[int, int] | None = None,
    ) -> None:
        self.trace = trace
        self.program = program
        self._given = settled(errata)
        self._max_states = max_states
        self._core = core

    @cached_property
    def recordings(self) -> list[Segment]:
        """The recordings."""
        found = segments.recordings(self.trace)
        return [each for each in found if self._core in (None, each.place)]

    @cached_property
    def _first(self) -> tuple[Walker, list[Walk]]:
        walker = Walker(self.program, self._given, max_states=self._max_states)
        return walker, [walker.walk(each.stream) for each in self.recordings]

    @cached_property
    def errata(self) -> Erratum:
        """What the device is known to do, with what the recordings themselves decide."""
        walker, walks = self._first
        places = walker.machine.places
        for piece in (piece for walk in walks for piece in walk.pieces):
            if piece.is_trusted:
                places &= piece.places
        if not places or places == walker.machine.places:
            return self._given
        narrowed = self._given
        for erratum, bit in PLACES.items():
            if not places & bit:
                narrowed &= ~erratum
        return narrowed

    @cached_property
    def _counted(self) -> tuple[Walker, list[Walk]]:
        walker, walks = self._first
        if self.errata == self._given or not any(walk.counts.frames["ambiguous"] for walk in walks):
            return walker, walks
        # The recordings say where loop frames come: what was open for want of that may be so no longer.
        again = Walker(self.program, self.errata, max_states=self._max_states)
        return again, [again.walk(each.stream) for each in self.recordings]

    @cached_property
    def kept(self) -> tuple[Walker, list[Walk]]:
        """The walks with the path itself; memory grows with the recordings."""
        walker = Walker(self.program, self._counted[0].machine.errata, max_states=self._max_states, keeps_path=True)
        return walker, [walker.walk(each.stream) for each in self.recordings]

    @property
    def walks(self) -> list[tuple[Segment, Walk]]:
        """Each recording with what was counted on its path."""
        return list(zip(self.recordings, self._counted[1], strict=True))

    @property
    def counted_by(self) -> Walker:
        """The walker that ``walks`` come from: it numbers the nodes of the call tree."""
        return self._counted[0]

    # -- tables

    @cached_property
    def _makers(self) -> dict[TableSpec, Callable[[], Table]]:
        return {
            schema.PATH: self._path,
            schema.BUNDLES: lambda: self._table(schema.BUNDLES, self._bundles),
            schema.BLOCKS: lambda: self._table(schema.BLOCKS, self._blocks),
            schema.EDGES: lambda: self._table(schema.EDGES, self._edges),
            schema.CALLS: lambda: self._table(schema.CALLS, self._calls),
            schema.LOOPS: lambda: self._table(schema.LOOPS, self._loops),
            schema.FUNCTIONS: lambda: self._table(schema.FUNCTIONS, self._functions),
            schema.LINES: lambda: self._table(schema.LINES, self._lines),
            schema.WALKS: lambda: self._table(schema.WALKS, self._walks),
            schema.ASSUMPTIONS: lambda: self._table(schema.ASSUMPTIONS, self._assumptions),
            schema.PC_PLACES: self._pc_places,
        }

    def table(self, spec: TableSpec) -> Table:
        """Return one of the tables."""
        return self._makers[spec]()

    def _path(self) -> Table:
        walker, walks = self.kept
        assumed = [[(address, note) for _, address, _, _, note in self._assumptions(walk)] for walk in walks]
        return path_rows.path_table(self.program, self.recordings, walker, walks, assumed, self.offsets)

    @cached_property
    def _dump(self) -> offsets.Dump | None:
        return offsets.dump_for(self.trace)

    def offsets(self, recording: Segment, frames: Sequence[int]) -> path_rows.I64:
        """Return where in the capture frames of a recording lie, int64 [n], in bytes; -1: not known."""
        if self._dump is None:
            return np.full(len(frames), -1, np.int64)
        return self._dump.offsets(recording, frames)

    def _table(self, spec: TableSpec, make: Callable[[Walk], Iterable[Sequence[Any]]]) -> Table:
        found = [(each.track_id, *row) for each, walk in self.walks for row in make(walk)]
        columns = zip(*found, strict=True) if found else ((),) * len(spec.names)
        return Table.from_arrays(spec, dict(zip(spec.names, columns, strict=True)))

    def _bundles(self, walk: Walk) -> Iterable[Sequence[Any]]:
        for bundle in self.program.bundles:
            file, line = self._line_of(bundle.address) or ("", None)
            yield (
                bundle.address,
                bundle.size,
                bundle.text,
                self.program.function_name(bundle.address),
                self.program.block_at(bundle.address),
                bundle.line or None,
                file,
                line,
                *bounds(walk.counts, ("visit", bundle.address)),
            )

    @cached_property
    def _line_starts(self) -> list[int]:
        return sorted(self.program.lines)

    def _line_of(self, address: int) -> tuple[str, int] | None:
        """Return the source line whose code an address is of: the last one that begins before it, in its function."""
        i = bisect_right(self._line_starts, address) - 1
        if i < 0 or self._line_starts[i] < self.program.extent(address)[0]:
            return None
        return self.program.lines[self._line_starts[i]]

    def _blocks(self, walk: Walk) -> Iterable[Sequence[Any]]:
        leaders = self.program.leaders
        index = self.program.index
        for first, follows in zip(leaders, (*leaders[1:], None), strict=True):
            end = index[follows] if follows is not None else len(self.program.bundles)
            last = self.program.bundles[end - 1].address
            name = self.program.function_name(first)
            yield first, last, end - index[first], name, *bounds(walk.counts, ("visit", first))

    def _edges(self, walk: Walk) -> Iterable[Sequence[Any]]:
        leaders = set(self.program.leaders)
        found = sorted(fact for fact in walk.counts.most if fact[0] == "edge")
        joined: dict[tuple[int, int, str], list[Bounds]] = {}
        for fact in found:
            _, src, dst = fact
            assert isinstance(src, int)
            assert isinstance(dst, int)
            kind = self._edge_kind(src, dst)
            if kind == "falls" and dst not in leaders:
                continue
            joined.setdefault((self.program.block_at(src), dst, kind), []).append(bounds(walk.counts, fact))
        for (src, dst, kind), each in joined.items():
            yield src, dst, kind, *added(each)

    def _edge_kind(self, src: int, dst: int) -> str:
        branch, slot = self.program.slots.get(src, (None, 0))
        if self.program.at[src].end == dst:
            return "falls"
        if dst in self.program.loops.get(src, ()):
            return "loop"
        return branch.kind if branch is not None and slot == DELAY_SLOTS else "falls"

    def _calls(self, walk: Walk) -> Iterable[Sequence[Any]]:
        for node, depth, (least, most) in self.call_tree(walk):
            parent, site, entry = self._counted[0].nodes[node]
            known = parent >= 0
            yield (
                node,
                parent if known else None,
                depth,
                self.program.function_name(entry),
                entry,
                site if site >= 0 else None,
                least,
                most if known else least,
            )

    def call_tree(self, walk: Walk) -> list[tuple[int, int, Bounds]]:
        """Return (node, depth, calls at least and at most), callers before what they call."""
        nodes = self._counted[0].nodes
        used = {fact[1] for fact in walk.counts.most if fact[0] == "call"}
        waiting = [number for number in used if isinstance(number, int)]
        seen: set[int] = set()
        while waiting:
            number = waiting.pop()
            if number not in seen and number >= 0:
                seen.add(number)
                waiting.append(nodes[number].parent)
        children: dict[int, list[int]] = {}
        for number in sorted(seen, key=lambda n: (nodes[n].site, nodes[n].entry)):
            children.setdefault(nodes[number].parent, []).append(number)
        found = []
        stack = [(number, 0) for number in reversed(children.get(-1, []))]
        while stack:
            number, depth = stack.pop()
            found.append((number, depth, bounds(walk.counts, ("call", number))))
            stack += [(child, depth + 1) for child in reversed(children.get(number, []))]
        return found

    def _loops(self, walk: Walk) -> Iterable[Sequence[Any]]:
        for (le, trips, is_least), entries in sorted(walk.counts.trips.items()):
            if le not in self.program.at:
                continue
            known = {-1: "unknown", -2: "other"}.get(trips, "at_least" if is_least else "exact")
            first = self.program.loops.get(le, (le,))[0]
            yield first, le, self.program.function_name(le), trips if trips >= 0 else None, known, entries

    def _functions(self, walk: Walk) -> Iterable[Sequence[Any]]:
        calls: dict[int, int] = {}
        for fact, n in walk.counts.least.items():
            if fact[0] == "call":
                entry = self._counted[0].nodes[int(fact[1])].entry
                calls[entry] = calls.get(entry, 0) + n
        by_function: dict[int, list[int]] = {}
        for bundle in self.program.bundles:
            by_function.setdefault(self.program.extent(bundle.address)[0], []).append(bundle.address)
        for first, addresses in sorted(by_function.items()):
            executed = sum(walk.counts.least["visit", address] > 0 for address in addresses)
            possible = sum(walk.counts.most["visit", address] > 0 for address in addresses)
            name = self.program.function_name(addresses[0])
            yield name, first, len(addresses), executed, possible, executed / len(addresses), calls.get(first, 0)

    def _lines(self, walk: Walk) -> Iterable[Sequence[Any]]:
        for (file, line), addresses in self.by_line().items():
            each = [bounds(walk.counts, ("visit", address)) for address in addresses]
            most = [n for _, n in each if n is not None]
            executed = sum(n > 0 for n, _ in each)
            least = max(n for n, _ in each)
            yield file, line, len(addresses), executed, least, max(most) if len(most) == len(each) else None

    def by_line(self) -> dict[tuple[str, int], list[int]]:
        """Return addresses by source line, or by line of the listing without debug information."""
        found: dict[tuple[str, int], list[int]] = {}
        for bundle in self.program.bundles:
            place = self._line_of(bundle.address) if self.program.lines else (self.program.source, bundle.line)
            if place is not None and place[1] > 0:
                found.setdefault(place, []).append(bundle.address)
        return dict(sorted(found.items()))

    def _walks(self, walk: Walk) -> Iterable[Sequence[Any]]:
        counts = walk.counts.frames
        names = ("certain", "ambiguous", "doubted", "unresolved")
        each = [counts[name] for name in names]
        yield sum(each), *each, len(walk.pieces), walk.crowd

    def _assumptions(self, walk: Walk) -> Iterable[tuple[str, int | None, int | None, int, str]]:
        yield from self.assumed()
        function = self.program.function_name
        for (kind, address, target), uses in sorted(walk.counts.remarks.items()):
            where = f"{target:#x} in {function(target)}"
            note = {
                "inferred": f"its register holds {target:#x}, the one constant that the program writes to it",
                "searched": f"its target is not known; {where} fits",
                "open_return": f"returns to {where}, where the program has a call",
                "stall": f"the recording began at {target:#x}, while this request waited for its lock",
                "start": f"the first frame is of this bundle, from which fetch had got to {target:#x}",
                "in_flight": f"its frame came before the recording; it may have gone to {where}",
            }[kind]
            yield kind, address, target, uses, note
        guessed = sum(n for (kind, *_), n in walk.counts.remarks.items() if kind in _GUESSES)
        if guessed and any(bundle.kind in (JUMP_INDIRECT, BRANCH_INDIRECT) for bundle in self.program.bundles):
            note = "a jump through a register that no frame told stays in its function, and so does who returns from it"
            yield "indirect_jumps", None, None, guessed, note

    def assumed(self) -> list[tuple[str, int | None, int | None, int, str]]:
        """Return what all paths rest on: kind, address, target, uses, in words."""
        found: list[tuple[str, int | None, int | None, int, str]] = [
            ("program", note.address, None, 1, note.text) for note in self.program.notes
        ]
        places = [erratum for erratum in PLACES if erratum in self.errata]
        if len(places) == 1:
            found.append(("loop_frames", None, None, 1, ERRATUM_DOCS[places[0]]))
        return found

    def branch_outcomes(self, walk: Walk, address: int) -> tuple[Bounds, Bounds] | None:
        """Return how often a conditional branch was taken, and how often not; None for other bundles."""
        bundle = self.program.at[address]
        behind = self.program.behind.get(address)
        if bundle.kind not in BRANCHES or not bundle.kind.startswith("branch") or behind is None:
            return None
        last = self.program.bundles[self.program.index[address] + DELAY_SLOTS].address
        stays = {behind, *self.program.loops.get(last, ())}
        taken: list[Bounds] = []
        falls: list[Bounds] = []
        for fact in walk.counts.most:
            if fact[0] == "edge" and fact[1] == last:
                is_taken = fact[2] not in stays or fact[2] == bundle.target
                (taken if is_taken else falls).append(bounds(walk.counts, fact))
        return added(taken), added(falls)

    def _pc_places(self) -> Table:
        if "aie_pc_events" not in self.trace.details:
            return Table.empty(schema.PC_PLACES)
        events = self.trace.details["aie_pc_events"]
        known = {pc: self.place_of(pc) for pc in set(events.values("pc").tolist())}
        found = [known[pc] for pc in events.values("pc").tolist()]
        functions, firsts, lasts, sure = zip(*found, strict=True) if found else ((), (), (), ())
        return Table.from_arrays(
            schema.PC_PLACES,
            {
                "instant_id": events.values("instant_id"),
                "pc": events.values("pc"),
                "function": functions,
                "first_address": firsts,
                "last_address": lasts,
                "is_exact_function": sure,
            },
        )

    def place_of(self, pc: int) -> tuple[str, int | None, int | None, bool]:
        """Return the function of an address of event-PC mode, and the first and last bundle it may stand for."""
        if pc not in self.program.at:
            return "", None, None, False
        i = self.program.index[pc]
        first = max(0, i - SKID)
        while any(a.end != b.address for a, b in pairwise(self.program.bundles[first : i + 1])):
            first += 1
        stretch = [bundle.address for bundle in self.program.bundles[first : i + 1]]
        function = self.program.function_at(pc)
        # Right behind a way in from another function the event may be of that one.
        is_sure = function >= 0 and len(stretch) == SKID + 1 and not self._entries.intersection(stretch[1:])
        return (self.program.functions[function].name if function >= 0 else ""), stretch[0], pc, is_sure

    @cached_property
    def _entries(self) -> set[int]:
        """Bundles to which other functions come: their first ones, return sites, targets of jumps from outside."""
        program = self.program
        found = {function.address for function in program.functions}
        found |= {program.behind[b.address] for b in program.bundles if b.kind in CALLS and b.address in program.behind}
        return found | {
            b.target
            for b in program.bundles
            if b.kind in DIRECT and b.target is not None and program.extent(b.target) != program.extent(b.address)
        }


def tables_on_request(trace: Trace) -> Sequence[LazyTable]:
    """Return all tables of a trace that was opened with a program, none of another.

    The program and its paths are looked at when a table is first read.
    """
    if not options.has_program(options.options_of(trace)):
        return ()

    @cache
    def paths() -> Paths:
        given = options.of_trace(trace)
        assert given is not None
        return Paths(trace, given.program, given.errata)

    return [LazyTable(spec, lambda spec=spec: paths().table(spec)) for spec in schema.TABLES]  # type: ignore[misc]


DERIVED = (Derived("aie_path", specs=schema.TABLES, make=tables_on_request),)


def bounds(counts: Counts, fact: Fact) -> Bounds:
    """Return how often something happened."""
    return counts.least[fact], None if fact in counts.unbounded else counts.most[fact]


def added(each: Sequence[Bounds]) -> Bounds:
    """Return how often several things happened together."""
    most = [n for _, n in each if n is not None]
    return sum(n for n, _ in each), sum(most) if len(most) == len(each) else None
