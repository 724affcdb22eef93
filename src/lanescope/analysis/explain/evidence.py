"""What verdicts rest on: facts of one trace, each computed when a rule asks for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lanescope.analysis import idle
from lanescope.analysis.analysis_cache import AnalysisCache, instances, resident
from lanescope.analysis.explain.facts import PathWork, SelectedWork
from lanescope.analysis.instances import Instances
from lanescope.analysis.lane_parts import of_parts
from lanescope.analysis.lane_time import on_tracks
from lanescope.analysis.partition import BUSY, LOST, UNRECORDED, WAITING
from lanescope.analysis.windows.report import filter_in_words
from lanescope.analysis.work_classes import CLASSES, COMPUTE, LOAD
from lanescope.common.distinct import distinct
from lanescope.common.intervals import (
    Intervals,
    Ints,
    complement,
    covered_length,
    depth,
    exact_sum,
    hulls,
    join,
    subtract,
    sums,
    total_length,
    union,
)
from lanescope.errors import LanescopeError
from lanescope.trace import Trace
from lanescope.trace.column import Mask
from lanescope.trace.row_packing import rows_of

if TYPE_CHECKING:
    from lanescope.families.bounds import Bound

#: What does the work of a run, the finest first; blocks run on SMs, and queues of one device share it.
WORKERS = ("core", "sm", "block", "device")
#: Roles of lanes that are there for the run, and not for who records it.
_OF_THE_RUN = ("host_thread", "queue", "stream")
#: The number of a worker, and what tells devices of one name apart: ``GPU (2)``.
_NUMBER = re.compile(r"([\W_]*\d+)?( \(\d+\))?$")


@dataclass(frozen=True, eq=False)
class Workers:
    """Cores, SMs or devices of one kind; int64 [n] each, in the trace's time unit.

    Attributes:
        role: one of ``WORKERS``.
        kind: what their names begin with: ``AIC``.
        labels: their names.
        busy: time in regions that work.
        unknown: time in which nothing is known of them.
        first: begin of the first region of each.
        last: end of the last region of each.
        begin: begin of the first region of any worker of the run, also of another kind.
        end: end of the last region of any of them.
    """

    role: str
    kind: str
    labels: Sequence[str]
    busy: Ints
    unknown: Ints
    first: Ints
    last: Ints
    begin: int
    end: int

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def window(self) -> int:
        """Time from the first begin to the last end of any worker."""
        return self.end - self.begin

    @property
    def come_and_go(self) -> bool:
        """Whether each is there for a part of the run only, as blocks are."""
        return self.role == "block"

    @property
    def known(self) -> int:
        """Time of all of them in which they are there and their state is known."""
        there = int((self.last - self.first).sum()) if self.come_and_go else self.window * len(self)
        return there - int(self.unknown.sum())

    @cached_property
    def presence(self) -> tuple[Intervals, Ints]:
        """How many are there at each moment, as ``depth`` returns it; those that never leave are there to their end."""
        return depth(Intervals(np.zeros(len(self), np.int64), self.first, self.last))

    @property
    def most(self) -> int:
        """How many were there at once."""
        return int(self.presence[1].max(initial=0))

    @property
    def tail(self) -> int:
        """Since when at most a quarter as many are there, or a single one of several."""
        there, count = self.presence
        return int(there.end[count > max(1, self.most // 4)].max(initial=self.begin))

    @property
    def share(self) -> float:
        """The part of the known time in which they work."""
        return int(self.busy.sum()) / self.known if self.known > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Starvation:
    """Time in which a device had nothing to do until the host launched something.

    Attributes:
        device: name of the device.
        late: time from the moment it was idle until the call that launched what ran next began.
        latency: the rest of these idle stretches.
        window: from the begin of its first to the end of its last operation.
    """

    device: str
    late: int
    latency: int
    window: int


class Evidence:
    """Facts of one trace.

    Args:
        trace: the trace.
        bounds: what its families know, ``lanescope.families.bounds``.
        findings: how many findings of each severity ``check`` has, None: it was not asked.
        shared: intermediate results of the trace, where there are any.
        asked: what is asked about: the trace, or a window of which it has all slices.
    """

    def __init__(
        self,
        trace: Trace,
        bounds: Sequence[Bound] = (),
        findings: dict[str, int] | None = None,
        shared: AnalysisCache | None = None,
        asked: Trace | None = None,
    ) -> None:
        self.trace = trace
        self.asked = trace if asked is None else asked
        self.bounds = tuple(bounds)
        self.findings = findings or {}
        self.shared, self._is_own = shared or AnalysisCache(trace), shared is None

    @cached_property
    def roles(self) -> list[str]:
        """The role of each track."""
        return [str(role) for role in self.trace.tracks.values("role").tolist()]

    @cached_property
    def is_lane(self) -> Mask:
        """Which tracks are lanes, no views of others, and not left out by a window; bool [tracks]."""
        lanes: Mask = self.trace.tracks.values("kind") == "lane"
        return lanes & self.shared.chosen & ~self.shared.views

    @cached_property
    def workers(self) -> list[Workers]:
        """What works, by kind; kinds without any work are left out."""
        role = self._role
        if role is None or not len(self.trace.slices):
            return []
        found = instances(self.shared, role)
        of = np.where(self.shared.whole_instances(found.of) >= 0, self._worker_of, -1)
        parts = self.shared.partition
        works_for = of[parts.lane] >= 0
        busy = np.flatnonzero(works_for & (parts.state == BUSY))
        if role in ("sm", "block"):
            # Warps that only fetch for others do not make a block work.
            works = self.shared.kind_of != CLASSES.index(LOAD)
            busy = busy[works[self.shared.name_of[parts.row[busy]]]]
        lost = parts.take(works_for & ((parts.state == LOST) | (parts.state == UNRECORDED)))
        runs = union(Intervals(of[parts.lane[busy]], parts.start[busy], parts.end[busy]))
        count = len(found)
        if not count:  # the role is that of tracks without lanes
            return []
        labels = self._labels(found)
        first, last = hulls(runs, count)
        worked = np.bincount(runs.group, minlength=count) > 0
        low, high = (int(first.min()), int(last.max())) if worked.any() else (0, 0)
        blank = Intervals(of[lost.lane], lost.start, lost.end)
        begin, end = (first, last) if role == "block" else (np.full(count, low), np.full(count, high))
        unknown = total_length(subtract(_clipped(blank, begin, end), runs), count)
        kinds: dict[str, list[int]] = {}
        for worker in np.flatnonzero(worked).tolist():
            kinds.setdefault(_NUMBER.sub("", labels[worker]) or role, []).append(worker)
        spent = total_length(runs, count)
        made = []
        for kind, members in kinds.items():
            names = [labels[worker] for worker in members]
            mine = (spent[members], unknown[members], first[members], last[members])
            made.append(Workers(role, kind, names, *mine, low, high))
        return made

    @cached_property
    def crew(self) -> Workers | None:
        """The workers of all kinds together; None without any."""
        kinds = self.workers
        if len(kinds) < 2:
            return kinds[0] if kinds else None
        labels = [label for workers in kinds for label in workers.labels]
        return Workers(
            role=kinds[0].role,
            kind=kinds[0].role,
            labels=labels,
            busy=np.concatenate([workers.busy for workers in kinds]),
            unknown=np.concatenate([workers.unknown for workers in kinds]),
            first=np.concatenate([workers.first for workers in kinds]),
            last=np.concatenate([workers.last for workers in kinds]),
            begin=kinds[0].begin,
            end=kinds[0].end,
        )

    @cached_property
    def host_window(self) -> int:
        """Time from the first begin to the last end of host threads and workers; 0 where no host was recorded."""
        track, begin, end = self.shared.time.extents
        mine = self.is_lane[track] & np.isin(np.array(self.roles, object), _OF_THE_RUN)[track] & (end > begin)
        if "host_thread" not in self.roles or not mine.any():
            return 0
        return int(end[mine].max()) - int(begin[mine].min())

    def _labels(self, found: Instances) -> list[str]:
        """Return the name of each worker: that of its lane where it has but one."""
        labels = [label.rpartition("/")[2] for label in found.labels]
        if found.role == "sm":
            labels = [f"SM{label[2:]}" if label.startswith("sm ") else label for label in labels]
        lanes = np.flatnonzero(self.is_lane & (found.of >= 0))
        count = np.bincount(found.of[lanes], minlength=len(found))
        for lane in lanes.tolist():
            if found.role == "core" and count[found.of[lane]] == 1:
                labels[int(found.of[lane])] = self.shared.time.tree.names[lane]
        return labels

    @cached_property
    def _role(self) -> str | None:
        """The role of what works; None: the trace has none."""
        known = set(self.roles)
        return next((role for role in WORKERS if role in known or self._has_detail(role)), None)

    @cached_property
    def _worker_of(self) -> Ints:
        """The worker that each lane belongs to, int64 [tracks]; -1 for other tracks, and lanes of none."""
        if self._role is None:
            return np.full(len(self.roles), -1, np.int64)
        found = instances(self.shared, self._role).of
        return np.where(self.is_lane & (found >= 0), found, -1)

    def _has_detail(self, role: str) -> bool:
        return self.shared.first_known((role,)) is not None

    @cached_property
    def unrecorded(self) -> tuple[int, int]:
        """Time of lanes, from first to last region or loss, of which nothing is known, and all that time."""
        time, parts = self.shared.time.extents, self.shared.partition
        lost = parts.take((parts.state == LOST) & self.is_lane[parts.lane])
        # Before its first and after its last region a lane may just not exist, but a loss is of a lane that does.
        tracks = len(self.roles)
        spans = [hulls(on_tracks(part, tracks), tracks) for part in (time, lost.time)]
        begin, end = np.minimum(spans[0][0], spans[1][0]), np.maximum(spans[0][1], spans[1][1])
        end = np.where(self.is_lane, end, begin)
        blank = parts.take(((parts.state == LOST) | (parts.state == UNRECORDED)) & self.is_lane[parts.lane])
        length = np.minimum(blank.end, end[blank.lane]) - np.maximum(blank.start, begin[blank.lane])
        return int(length[length > 0].sum()), int((end - begin)[end > begin].sum())

    @cached_property
    def load_waits(self) -> tuple[int, int, str]:
        """Time in which lanes that compute waited for loads, all their time, and the load they mostly waited for."""
        shared = self.shared
        if shared.first_known(("block",)) is None:
            return 0, 0, ""
        _ = shared.kind_of  # of the whole trace
        blocked, window = zip(*of_parts(shared, _load_waits, "block"), strict=True)
        by_name: Ints = np.sum(blocked, axis=0)
        most = shared.names.texts[int(by_name.argmax())] if by_name.any() else ""
        return int(by_name.sum()), sum(window), most

    @cached_property
    def exposed_loads(self) -> tuple[int, int]:
        """Time in which a block loads and nothing in it computes, and the time in which blocks are there."""
        shared = self.shared
        role = shared.first_known(("block",))
        if role is None:
            return 0, 0
        found, pieces = instances(shared, role), shared.known_pieces
        block_of = shared.whole_instances(found.of)
        block = block_of[pieces.time.group]
        kind = np.where(block >= 0, shared.kind_of[shared.name_of[pieces.row]], -1) if len(pieces) else block
        runs = pieces.time._replace(group=block)
        # Where the state of a lane is not known, it may have computed.
        hidden = join(
            runs.take(kind == CLASSES.index(COMPUTE)),
            *(_of_blocks(lost, block_of) for lost in (shared.time.gaps, shared.time.possibly_running)),
        )
        exposed = subtract(runs.take(kind == CLASSES.index(LOAD)), hidden)
        there = covered_length(resident(shared, role), len(found))[distinct(block_of[block_of >= 0])]
        return int((exposed.end - exposed.begin).sum()), int(there.sum())

    @cached_property
    def starvation(self) -> list[Starvation]:
        """How long each device was idle for want of a launch, of those whose operations host calls launched."""
        trace, shared = self.trace, self.shared
        flows, slices = trace.flows, trace.slices
        is_host = np.array([role == "host_thread" for role in self.roles], np.bool_)
        if not len(flows) or not len(slices) or not is_host.any() or "device" not in self.roles:
            return []
        of = shared.whole_instances(instances(shared, "device").of)
        source, target = flows.values("src_track_id"), flows.values("dst_track_id")
        launches = np.flatnonzero(is_host[source] & (of[target] >= 0) & flows.valid("dst_slice_id"))
        launched = np.full(len(slices), np.iinfo(np.int64).max)
        row = rows_of(slices.values("id"), flows.values("dst_slice_id")[launches])
        np.minimum.at(launched, row[row >= 0], flows.values("src_ts")[launches][row >= 0])
        track, begin, end = shared.time.extents
        mine = np.flatnonzero((end > begin) & (of[track] >= 0) & self.is_lane[track])
        device = of[track[mine]]
        names = instances(shared, "device").labels
        made = []
        for number in sorted(set(device.tolist())):
            rows = mine[device == number]
            rows = rows[np.argsort(begin[rows], kind="stable")]
            if (launched[rows] == np.iinfo(np.int64).max).mean() > 0.5:
                continue  # what launched most of its work was not recorded
            runs = union(Intervals(np.zeros(len(rows), np.int64), begin[rows], end[rows]))
            first, last = int(runs.begin[0]), int(runs.end.max())
            gaps = complement(runs, 1, first, last)
            # The operation that ends an idle stretch is the first that begins there.
            next_row = rows[np.searchsorted(begin[rows], gaps.end)]
            call = launched[next_row]
            is_late = (call > gaps.begin) & (call <= gaps.end)
            late = int((call - gaps.begin)[is_late].sum())
            made.append(Starvation(names[number], late, int((gaps.end - call)[is_late].sum()), last - first))
        return made

    @cached_property
    def host_lane(self) -> tuple[str, int, int]:
        """Of lanes other than workers the one that works most: its path, how long, and the time of the trace."""
        shared = self.shared
        parts = shared.partition
        lanes = self.is_lane & (self._worker_of < 0)
        if not lanes.any() or not len(self.trace.slices):
            return "", 0, 0
        busy = parts.take((parts.state == BUSY) & lanes[parts.lane])
        spent = sums(busy.lane, busy.end - busy.start, len(self.roles))
        lane = int(spent.argmax())
        return shared.time.tree.path(lane), int(spent[lane]), shared.window

    @cached_property
    def selected(self) -> SelectedWork | None:
        """The slices that a window selects; None where it selects all."""
        shared, found = self.shared, self.shared.selected
        if found is None:
            return None
        is_lane = np.zeros(len(self.roles), np.bool_)
        is_lane[shared.lanes] = True
        parts = shared.partition
        mine = parts.take(is_lane[parts.lane] & found.at(parts.row))
        length = mine.end - mine.start
        busy, waiting = (exact_sum(length[mine.state == state]) for state in (BUSY, WAITING))
        return SelectedWork(
            filter_in_words(self.asked),
            int(np.count_nonzero(found.mask)),
            busy,
            waiting,
            len(shared.lanes) * shared.window,
        )

    @cached_property
    def path_work(self) -> PathWork:
        """The work that takes most of the critical path.

        A path that stays on one lane, for want of causes, says no more than the lane does: nothing is returned of it.
        That of a window is its part of the path of the whole, where the whole is in memory.
        """
        from lanescope.analysis.critical_path.answer import WORK, CriticalPath
        from lanescope.analysis.critical_path.selected_parts import is_alone
        from lanescope.analysis.critical_path.selection import path_of
        from lanescope.analysis.critical_path.windows import WindowChoice

        if self._is_own:
            # What other facts were found with need not stay while the graph is made, which takes more than they do.
            _ = self.workers, self.unrecorded, self.load_waits, self.exposed_loads, self.starvation, self.host_lane
            self.shared.forget()
        try:
            if self.asked.origin is None:
                path = CriticalPath(self.shared, WindowChoice())
            else:
                path = path_of(AnalysisCache(self.asked, self.shared.given), WindowChoice())
        except LanescopeError:  # the family records no causes, or the trace has no slices
            return PathWork()
        longest, graph, names = path.longest, path.made.graph, path.made.cache.names
        parts = longest.parts
        if len(distinct(graph.rows.lane[parts.row])) < 2:
            return PathWork()
        work = np.flatnonzero(parts.cause == WORK)
        spent = sums(graph.rows.name[parts.row[work]], (parts.end - parts.begin)[work], max(len(names), 1))
        top, length = int(spent.argmax()), max(longest.length, 1)
        if not spent[top]:
            return PathWork(explained=longest.explained)
        selected = path.selected_of(longest) / length
        alone = is_alone(self.asked)
        return PathWork(names.texts[top], int(spent[top]) / length, longest.explained, selected, alone)

    @cached_property
    def not_exact(self) -> tuple[int, int]:
        """Number of slices whose times or names are estimated or inferred, and of all."""
        quality = self.trace.slices.column("quality")
        texts = quality.dictionary.texts if quality.dictionary is not None else []
        counts = np.bincount(self.trace.slices.codes("quality"), minlength=len(texts)) if texts else np.zeros(0)
        exact = sum(int(count) for text, count in zip(texts, counts.tolist(), strict=False) if text == "exact")
        return len(self.trace.slices) - exact, len(self.trace.slices)

    @cached_property
    def losses(self) -> list[tuple[str, int]]:
        """What was lost or cannot be true: names of stats and counts."""
        stats = self.trace.stats
        return [
            (str(row["name"]), int(row["count"]))
            for row in stats.rows()
            if row["severity"] in ("data_loss", "error") and row["count"]
        ]


def _load_waits(shared: AnalysisCache) -> tuple[Ints, int]:
    """Return how long lanes that compute waited for each name that loads, int64 [names], and all their time."""
    pieces, names = shared.known_pieces, max(len(shared.names), 1)
    kind = shared.kind_of[shared.name_of[pieces.row]] if len(pieces) else np.zeros(0, np.int64)
    length = pieces.time.end - pieces.time.begin
    tracks = len(shared.time.tree)
    spent = {of: sums(pieces.time.group, np.where(kind == CLASSES.index(of), length, 0), tracks) for of in CLASSES}
    computes = np.zeros(tracks, np.bool_)
    computes[shared.lanes] = True
    computes &= (spent[COMPUTE] > 0) & (spent[COMPUTE] >= spent[LOAD])
    stretches, cause = idle.attributed(shared, "block")
    mine = np.flatnonzero((cause.row >= 0) & computes[stretches.lane])
    cause_name = shared.name_of[cause.row[mine]]
    loads = shared.kind_of[cause_name] == CLASSES.index(LOAD) if len(mine) else np.empty(0, np.bool_)
    mine, cause_name = mine[loads], cause_name[loads]
    # Until the load ended.
    blocked = np.clip(cause.done[mine], stretches.start[mine], stretches.end[mine]) - stretches.start[mine]
    begin, end = hulls(pieces.time, tracks)
    return sums(cause_name, blocked, names), int((end - begin)[computes].sum())


def _of_blocks(lost: Intervals, block_of: Ints) -> Intervals:
    """Return unknown time of lanes as that of their blocks."""
    lost = on_tracks(lost, len(block_of))
    lost = lost._replace(group=block_of[lost.group])
    return lost.take(lost.group >= 0)


def _clipped(intervals: Intervals, begin: Ints, end: Ints) -> Intervals:
    """Return what of the intervals lies between the begin and the end of their groups."""
    low, high = np.maximum(intervals.begin, begin[intervals.group]), np.minimum(intervals.end, end[intervals.group])
    kept = high > low
    return Intervals(intervals.group[kept], low[kept], high[kept])
