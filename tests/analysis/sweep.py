"""What lanescope.analysis says of regions, found by looking at one unit of time after another."""

from collections import Counter
from functools import cached_property
from itertools import combinations, pairwise, product

from analysis import oracles
from lanescope.analysis import partition, work_classes

WAITS = {"wait_full", "barrier"}
LOADS = {"load", "tma_k"}
STORES = {"store"}
NAMES = ["tile", "load", "tma_k", "mma", "softmax", "wait_full", "barrier", "store"]


class Sweep:
    """A trace, moment by moment.

    Args:
        trace: the trace.
        unit: lane -> its unit; None: its parent, or itself at the top.
        whole: look once at each stretch in which nothing begins or ends; else at every unit of time.

    Attributes:
        ticks: the moments, each standing for [t, t + length[t]).
        length: moment -> how long nothing changes; 1 unless ``whole``.
        doing: (lane, t) -> rows of slices that the lane is in.
        unit: lane -> its unit.
        outer: names of regions that mostly enclose others.
        unknown: (unit, t) -> whether the state of one of its lanes is not known.
        in_gap: (lane, t) in a gap of the lane.
        in_tail: (lane, t) after the last known time of an unfinished slice.
    """

    def __init__(self, trace, unit=None, *, whole=False):
        self.trace = trace
        first, last = oracles.window(trace)
        self.ticks = changes(trace) if whole else range(first, last)
        self.length = {t: until - t for t, until in pairwise([*self.ticks, last])}
        self.slices = list(trace.slices.rows())
        self.lanes = [row["id"] for row in trace.tracks.rows() if row["kind"] == "lane"]
        tracks = list(trace.tracks.rows())
        parents = {n: n if tracks[n]["parent_id"] is None else tracks[n]["parent_id"] for n in self.lanes}
        self.unit = parents if unit is None else unit
        self.in_gap, self.in_tail = (
            {
                (lane, t)
                for lane in self.lanes
                for spans in [spans_of(trace, lane)]
                for t in self.ticks
                if any(begin <= t < end for begin, end in spans)
            }
            for spans_of in (oracles.gaps_of, oracles.tails_of)
        )
        self.unknown = Counter((self.unit[lane], t) for lane, t in self.in_gap | self.in_tail)
        self.doing = {}
        encloses = set()
        for lane in self.lanes:
            mine = [row for row in self.slices if row["track_id"] == lane and len(range(*oracles.extent(row)))]
            crossing = {row["id"] for row in mine if tracks[lane]["nesting"] == "free"} or {
                row["id"]
                for one, other in combinations(mine, 2)
                for (a, b), (c, d) in [sorted([oracles.extent(one), oracles.extent(other)])]
                if a < c < b < d
                for row in (one, other)
            }
            stack = sorted(
                (row for row in mine if row["id"] not in crossing),
                key=lambda row: (oracles.extent(row)[0], -oracles.extent(row)[1], row["id"]),
            )
            encloses |= {
                outer["id"]
                for outer, inner in combinations(stack, 2)
                if oracles.extent(inner)[1] <= oracles.extent(outer)[1]
                and oracles.extent(inner)[0] < oracles.extent(outer)[1]
            }
            spans = {row["id"]: range(*oracles.extent(row)) for row in mine}
            for t in self.ticks:
                here = [row for row in stack if t in spans[row["id"]]][-1:]
                here += [row for row in mine if row["id"] in crossing and t in spans[row["id"]]]
                self.doing[lane, t] = here

        counts, enclosing = (
            Counter(row["name"] for row in self.slices if row["id"] in ids)
            for ids in ({row["id"] for row in self.slices}, encloses)
        )
        self.outer = {name for name in counts if 2 * enclosing[name] > counts[name]}

    def kind(self, name):
        """The kind of work of a region."""
        known = "wait" if name in WAITS else "load" if name in LOADS else "store" if name in STORES else None
        if known is None and name not in NAMES:
            known = work_classes.classify(name, is_outer=name in self.outer)
        return known or ("outer" if name in self.outer else "compute")

    def known(self, lane, t):
        """Slices that a lane is known to be in: none in a gap."""
        return [] if (lane, t) in self.in_gap else self.doing[lane, t]

    @cached_property
    def running(self):
        """(unit, t) -> names of the regions that are known to run there."""
        found = {}
        for lane in self.lanes:
            for t in self.ticks:
                found.setdefault((self.unit[lane], t), set()).update(row["name"] for row in self.known(lane, t))
        return found

    def names(self, unit, t):
        """Names of the regions that are known to run in a unit."""
        return self.running[unit, t]

    def states(self):
        """(lane, t) -> its state, one of those of ``partition``."""
        found = {}
        for lane in self.lanes:
            recorded = oracles.recorded(self.trace, lane)
            for t in self.ticks:
                kinds = {self.kind(row["name"]) for row in self.known(lane, t)}
                if (lane, t) in self.in_gap:
                    found[lane, t] = partition.LOST
                elif kinds - {"wait"}:
                    found[lane, t] = partition.BUSY
                elif (lane, t) in self.in_tail:
                    found[lane, t] = partition.LOST
                elif kinds:
                    found[lane, t] = partition.WAITING
                else:
                    is_recorded = any(begin <= t < end for begin, end in recorded)
                    found[lane, t] = partition.IDLE if is_recorded else partition.UNRECORDED
        return found

    def overlaps(self):
        """(unit, name, other) -> time, for all that share any."""
        found = Counter()
        for unit in set(self.unit.values()) - {None}:
            for t in self.ticks:
                names = self.names(unit, t)
                for pair in product(names, names):
                    found[unit, *pair] += self.length[t]
        return found

    def hidden(self):
        """Kind, or kind and name -> [total, hidden, unknown], of what does not compute."""
        found = {}
        for unit in set(self.unit.values()) - {None}:
            for t in self.ticks:
                names = self.names(unit, t)
                computes = any(self.kind(name) == "compute" for name in names)
                kinds = {(self.kind(name), key) for name in names for key in (name, None)}
                keys = {key for key in kinds if key[0] not in ("compute", "outer")}
                for key in keys:
                    total = found.setdefault(key, [0, 0, 0])
                    total[0] += self.length[t]
                    total[1] += self.length[t] * computes
                    total[2] += self.length[t] * (not computes and bool(self.unknown[unit, t]))
        return found

    def active(self):
        """(name, t) -> lanes in it; a lane in it twice counts twice."""
        return Counter((row["name"], t) for (_, t), rows in self.doing.items() for row in rows)

    def own(self):
        """(name, unit) -> time in which lanes are in it."""
        found = Counter()
        for (lane, t), rows in self.doing.items():
            for row in rows:
                found[row["name"], self.unit[lane]] += self.length[t]
        return found

    def waiting(self):
        """(lane, slice) -> moments in which it waits there; of several slices the one that started first."""
        found = {}
        for (lane, t), state in self.states().items():
            if state == partition.WAITING:
                row = min(
                    self.known(lane, t),
                    key=lambda row: (oracles.extent(row)[0], -oracles.extent(row)[1], row["id"]),
                )
                found.setdefault((lane, row["id"]), []).append(t)
        return found

    def units(self):
        """Unit -> how its time was spent, by the columns of the table ``utilization``."""
        found = {}
        states = self.states()
        for unit in sorted(set(self.unit.values()) - {None}):
            mine = [lane for lane in self.lanes if self.unit[lane] == unit]
            hulls = list(oracles.hulls(self.trace, mine).values())
            last = max((end for _, end in hulls), default=None)
            row = dict.fromkeys(
                ("resident", "busy", "compute", "load", "store", "stalled", "unknown", "vacant", "tail", "window"), 0
            )
            for t in self.ticks:
                kinds = {self.kind(name) for name in self.names(unit, t)}
                works, unknown = bool(kinds - {"wait"}), bool(self.unknown[unit, t])
                there = any(begin <= t < end for begin, end in hulls)
                unknown |= there and {states[lane, t] for lane in mine} == {partition.UNRECORDED}
                state = "busy" if works else "unknown" if unknown else "stalled" if there else "vacant"
                is_tail = not unknown and (last is None or t >= last)
                spent = {"window", state, *(kinds & {"compute", "load", "store"})}
                for name in spent | ({"resident"} if there else set()) | ({"tail"} if is_tail else set()):
                    row[name] += self.length[t]
            first = min((begin for begin, _ in hulls), default=None)
            found[unit] = {f"{name}_{self.trace.time.time_unit}": time for name, time in row.items()}
            found[unit] |= {"first_ts": first, "last_ts": last, "groups": len(hulls), "lanes": len(mine)}
        return found


def changes(trace):
    """The times at which anything in a trace may begin or end, but for the last."""
    first, last = oracles.window(trace)
    times = {time for row in trace.slices.rows() for time in oracles.extent(row)}
    times |= {row["ts"] for row in trace.instants.rows()}
    for table in (trace.gaps, trace.coverage):
        times |= {time for row in table.rows() for time in (row["ts"], row["ts"] + (row["dur"] or 0))}
    return sorted({first, *times} - {last}) if last > first else []


def runs(moments):
    """Put moments together to [begin, end)."""
    found = []
    for t in sorted(moments):
        if found and found[-1][1] == t:
            found[-1][1] = t + 1
        else:
            found.append([t, t + 1])
    return [tuple(run) for run in found]
