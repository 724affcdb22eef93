"""The tree of tracks, from their descriptors and their events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.foreign.perfetto.formats import messages
from lanescope.foreign.perfetto.formats.messages import Counter, Descriptor
from lanescope.foreign.perfetto.interpret import own_traces
from lanescope.foreign.perfetto.interpret.legacy import AsyncKey, ThreadKey
from lanescope.trace import TraceBuilder

Int64 = npt.NDArray[np.int64]

#: So many tracks may lie above one.
MOST_ABOVE = 64
_MERGE_NOT, _MERGE_BY_KEY = 2, 3
_BY_NAME, _EXPLICIT = 1, 3


@dataclass(slots=True, eq=False)
class Node:
    """A place in the tree.

    Attributes:
        name: its name.
        parent: above it, None at the top.
        role: as ``tracks.role`` has it.
        rank: its place among its siblings, None: that of its first sight.
        counter: what its samples are, None: it has none.
        id: of its track, once that is made; ``group`` of the group where it is both.
    """

    name: str
    parent: Node | None = None
    role: str = "track"
    rank: int | None = None
    uuid: int = 0
    pid: int | None = None
    tid: int | None = None
    description: str = ""
    counter: Counter | None = None
    ordering: int = 0
    is_thread: bool = False
    children: int = 0
    lanes: int = 0
    group: int | None = None
    lane: int | None = None
    counters: int | None = None
    key: Any = None


@dataclass(slots=True)
class Found:
    """What descriptors say.

    Attributes:
        tracks: descriptors by uuid, the last of each; ``order`` is that of their first sight.
        threads: pid and tid of sequences, from descriptors of the older form.
        names: names of processes and of threads by numbers.
        invalid: descriptors that are no messages.
        damaged: descriptors of tracks with texts that are damaged.
        lost: packets that the recorder counts as lost.
        notes: what lanescope says of its own traces.
    """

    tracks: dict[int, Descriptor] = field(default_factory=dict)
    threads: dict[int, ThreadKey] = field(default_factory=dict)
    process_names: dict[int, str] = field(default_factory=dict)
    thread_names: dict[ThreadKey, str] = field(default_factory=dict)
    invalid: int = 0
    damaged: int = 0
    lost: int = 0
    notes: own_traces.Notes = field(default_factory=own_traces.Notes)


def read(rows: Iterable[tuple[int, int, int, int]], content: bytes) -> Found:
    """Read descriptors and statistics.

    Args:
        rows: field of the packet, sequence, offset and size of each message.
        content: all messages end to end.
    """
    found = Found()
    for kind, sequence, offset, size in rows:
        body = content[offset : offset + size]
        try:
            if kind == messages.TRACK:
                track = messages.track(body)
                found.damaged += any(map(messages.is_damaged, track.texts()))
                _add(found, track)
            elif kind == messages.TRACE_STATS:
                found.lost = max(found.lost, messages.lost_packets(body))  # each counts from the start
            elif kind == messages.THREAD:
                thread = messages.thread(body, Descriptor())
                key = ThreadKey(thread.pid, thread.tid or 0)
                found.threads[sequence] = key
                if thread.thread_name:
                    found.thread_names[key] = thread.thread_name
            elif kind == messages.NOTES:
                found.notes.read(body)
            elif kind == messages.PROCESS:
                process = messages.process(body, Descriptor())
                if process.pid is not None and process.process_name:
                    found.process_names[process.pid] = process.process_name
        except messages.BadMessageError:
            found.invalid += 1
    return found


def _add(found: Found, new: Descriptor) -> None:
    """Keep a descriptor; what an earlier one of the same track said and this one does not still holds."""
    known = found.tracks.get(new.uuid)
    if known is not None:
        new.name = new.name or known.name
        new.description = new.description or known.description
        new.parent = new.parent or known.parent
        new.process_name = new.process_name or known.process_name
        new.thread_name = new.thread_name or known.thread_name
        new.counter = new.counter or known.counter
        if new.pid is None:
            new.pid, new.tid, new.has_thread = known.pid, known.tid, known.has_thread
    found.tracks[new.uuid] = new


class TrackTree:
    """Makes the tree.

    Args:
        found: what descriptors say.
        uuids, sequences: int64 or uint64 [tracks of the file], as the reader numbers them.
        further: keys of rows that older events have to themselves, with their names; their numbers follow.
        names: name of the first event on each number, for those that nothing describes.

    Attributes:
        nodes: the place of each number.
        unknown_parents, cycles: tracks whose place is not known.
        undescribed: tracks that events name and nothing describes.
        time: what lanescope says of the times, in a trace of its own.
        notes: what it says of tracks and flows there.
    """

    def __init__(
        self,
        found: Found,
        uuids: Iterable[int],
        sequences: Iterable[int],
        further: Iterable[tuple[AsyncKey | ThreadKey, str]],
        names: dict[int, str],
    ) -> None:
        self._found = found
        self._by_uuid: dict[int, Node] = {}
        self._processes: dict[int, Node] = {}
        self._threads: dict[ThreadKey, Node] = {}
        self._merged: dict[Any, Node] = {}
        self._all: list[Node] = []
        self._details: list[tuple[int, Node]] = []
        self.unknown_parents = self.cycles = self.undescribed = 0
        self.time = next(
            (time for each in found.tracks.values() if (time := own_traces.time_base(each.description)) is not None),
            None,
        )
        self.notes = own_traces.Notes() if self.time is None else found.notes
        if self.notes.has_tracks():  # of which the first is that of the least uuid
            found.tracks = dict(sorted(found.tracks.items()))
        for each in found.tracks.values():  # processes first: those of a pid without a track of its own are made later
            if each.pid is not None and not each.has_thread:
                self._describe(each)
        alone = len(found.tracks) == 1
        described = [
            each for each in found.tracks.values() if not (alone and own_traces.is_nothing(each.name, each.description))
        ]
        for each in described:
            if each.uuid not in self._by_uuid:
                self._describe(each)
        self._place(described)
        self.nodes: list[Node] = []
        for number, (uuid, sequence) in enumerate(zip(uuids, sequences, strict=True)):
            self.nodes.append(self._node_of(uuid, sequence, names.get(number, "")))
        for key, name in further:
            self.nodes.append(self._further(key, name))
        self._by_order()

    def _new(self, name: str, **facts: Any) -> Node:
        node = Node(name, **facts)
        self._all.append(node)
        return node

    # --- what is described ------------------------------------------------------------------------------------

    def _describe(self, each: Descriptor) -> None:
        rank = each.rank or each.sort_index
        if each.pid is not None and each.has_thread:
            node = self.thread(ThreadKey(each.pid, each.tid or 0), each.thread_name or each.name)
            if node.uuid not in (0, each.uuid):  # the number was used again
                node = self._new(node.name, parent=node.parent, role="host_thread", pid=each.pid, tid=each.tid)
                node.is_thread = True
        elif each.pid is not None:
            node = self._processes.get(each.pid) or self._process(each.pid, each.process_name or each.name)
            if node.uuid not in (0, each.uuid):
                node = self._new(node.name, role="process", pid=each.pid)
        else:
            name = each.name
            if not name and self.notes.track(each.uuid) is None:
                name = f"track {each.uuid}" if each.uuid else "events"
            node = self._new(name, role="counter" if each.counter else "track")
        node.uuid, node.description, node.counter = each.uuid, each.description, each.counter
        node.ordering, node.rank = each.ordering, rank
        self._by_uuid[each.uuid] = node

    def _place(self, described: Iterable[Descriptor]) -> None:
        """Put tracks below their parents; those of a thread go below its process."""
        listed = list(described)
        for each in listed:
            node = self._by_uuid[each.uuid]
            if each.pid is not None or each.uuid == 0:
                continue
            parent = self._by_uuid.get(each.parent)
            if parent is None and each.parent:
                self.unknown_parents += 1
            if parent is not None and parent.is_thread:
                parent = parent.parent
            explicit = parent is not None and parent.ordering == _EXPLICIT
            node.rank = each.rank if explicit or each.rank else None
            if parent is not node:
                node.parent = parent
            else:
                self.cycles += 1
        for each in listed:
            self._cut_cycle(self._by_uuid[each.uuid])
        for each in listed:
            self._merge(each)
        if self.time is not None:
            for node in self._all:
                node.name = own_traces.whole_name(node.name, node.description, self.time, is_top=node.parent is None)

    def _cut_cycle(self, node: Node) -> None:
        above, steps = node.parent, 0
        while above is not None and steps <= MOST_ABOVE:
            above, steps = above.parent, steps + 1
        if above is not None:
            node.parent = None
            self.cycles += 1

    def _merge(self, each: Descriptor) -> None:
        """Siblings that the viewer draws as one row are one lane."""
        if each.pid is not None or each.counter is not None or each.merging == _MERGE_NOT:
            return
        if not each.name and not self.notes.has_tracks():
            return
        node = self._by_uuid[each.uuid]
        key = (
            node.parent,
            each.merging == _MERGE_BY_KEY,
            each.merge_key if each.merging == _MERGE_BY_KEY else each.name,
        )
        node.key = key

    # --- what is used -----------------------------------------------------------------------------------------

    def _node_of(self, uuid: int, sequence: int, name: str) -> Node:
        if uuid == 0:
            key = self._found.threads.get(sequence)
            if key is not None:
                return self.thread(key, "")
            node = self._by_uuid.get(0)
            return node if node is not None else self._default(sequence)
        known = self._by_uuid.get(uuid)
        if known is None:
            self.undescribed += 1
            known = self._by_uuid[uuid] = self._new(name or f"track {uuid}", uuid=uuid)
        return known

    def _default(self, sequence: int) -> Node:
        node = self._merged.get(("sequence", sequence))
        if node is None:
            node = self._merged["sequence", sequence] = self._new(f"sequence {sequence}", role="host_thread")
        return node

    def _process(self, pid: int, name: str) -> Node:
        known = self._processes.get(pid)
        if known is None:
            title = name or self._found.process_names.get(pid, "")
            known = self._new(f"{title} {pid}" if title else f"process {pid}", role="process", pid=pid)
            self._processes[pid] = known
        return known

    def thread(self, key: ThreadKey, name: str) -> Node:
        """Return the place of a thread, below its process."""
        known = self._threads.get(key)
        if known is None:
            title = name or self._found.thread_names.get(key, "")
            parent = None if key.pid is None else self._process(key.pid, "")
            known = self._new(
                f"{title} {key.tid}" if title else f"thread {key.tid}",
                parent=parent,
                role="host_thread",
                pid=key.pid,
                tid=key.tid,
                is_thread=True,
            )
            self._threads[key] = known
        return known

    def _further(self, key: AsyncKey | ThreadKey, name: str) -> Node:
        if isinstance(key, ThreadKey):
            return self.thread(key, "")
        parent = None if key.pid is None else self._process(key.pid, "")
        node = self._new(name or f"async {key.id:#x}", parent=parent, role="async")
        node.key = (parent, "async", key.scope, node.name)  # rows of one name are drawn as one
        return node

    def _by_order(self) -> None:
        """Give siblings that are to be ordered by name their ranks."""
        siblings: dict[Node, list[Node]] = {}
        for node in self._all:
            if node.parent is not None and node.parent.ordering == _BY_NAME:
                siblings.setdefault(node.parent, []).append(node)
        for nodes in siblings.values():
            for rank, node in enumerate(sorted(nodes, key=lambda node: node.name)):
                node.rank = rank

    # --- making them ------------------------------------------------------------------------------------------

    def make(self, builder: TraceBuilder, has_events: Iterable[int], has_samples: Iterable[int], input_id: int) -> None:
        """Add the tracks that hold anything, and all that are described."""
        leaders: dict[Any, Node] = {}
        for number in has_events:
            self.nodes[number].lanes = 1
        for number in has_samples:
            node = self.nodes[number]
            node.counter = node.counter or Counter()
            node.counters = -1
        for node in self._all:
            if node.parent is not None:
                node.parent.children += 1
        shared: dict[Any, int] = {}
        for node in self._all:
            if node.key is not None:
                shared[node.key] = shared.get(node.key, 0) + 1
        for node in self._all:
            if self.notes.is_of_findings(node.uuid) and not node.lanes and node.counter is None:
                continue  # it is none of the trace
            if node.key is not None and shared[node.key] > 1 and not node.children and node.counter is None:
                leader = leaders.setdefault(node.key, node)
                if leader is not node:
                    continue  # it has the lane of the leader
                node.lanes = max(node.lanes, 1)
            self._make(builder, node, input_id, is_shared=node.key is not None and shared[node.key] > 1)
        for node in self._all:
            leader = leaders.get(node.key, node) if node.key is not None and not node.children else node
            if leader is not node:
                node.lane = leader.lane
        self._append_details(builder)

    def _make(self, builder: TraceBuilder, node: Node, input_id: int, *, is_shared: bool) -> None:
        if node.group is not None or node.lane is not None or (node.counters or -1) >= 0:
            return
        parent = None
        if node.parent is not None:
            self._make(builder, node.parent, input_id, is_shared=False)
            parent = node.parent.group
        told = self.notes.track(node.uuid)
        if (
            told is not None
            and (told.kind == "counter") == (node.counter is not None)
            and not (node.counter and node.lanes)
        ):
            self._make_as_told(builder, node, told, parent=parent, input_id=input_id)
            return
        facts: dict[str, Any] = {"parent": parent, "input_id": input_id, "sort_key": node.rank}
        if node.children or node.role == "process":
            node.group = builder.track(node.name, kind="group", role=node.role, **facts)
            self._detail(node, node.group)
            facts = {"parent": node.group, "input_id": input_id}
        if node.counter is not None:
            node.counters = builder.track(node.name, kind="counter", role="counter", unit=node.counter.unit, **facts)
            self._detail(node, node.counters)
        if node.group is not None and self.time is not None:
            node.lane = node.group  # lanescope draws gaps on groups, too
        elif node.lanes or (node.group is None and node.counter is None):
            nesting = "free" if is_shared else "nested"
            role = node.role if node.group is None and node.counter is None else "track"
            node.lane = builder.track(node.name, kind="lane", role=role, nesting=nesting, **facts)
            self._detail(node, node.lane)

    def _make_as_told(self, builder: TraceBuilder, node: Node, told: own_traces.TrackFacts, **place: Any) -> None:
        """Make the track that lanescope wrote."""
        unit = node.counter.unit if node.counter is not None else ""
        track = builder.track(
            node.name, kind=told.kind, role=told.role, nesting=told.nesting, unit=unit, sort_key=told.sort_key, **place
        )
        node.group = track  # whatever it is, others may lie below it
        if node.counter is None:
            node.lane = track
        else:
            node.counters = track
        self._detail(node, track)

    def _detail(self, node: Node, track: int) -> None:
        self._details.append((track, node))

    def _append_details(self, builder: TraceBuilder) -> None:
        nodes = [node for _, node in self._details]
        if not nodes:
            return
        builder.append(
            "perfetto_tracks",
            track_id=np.array([track for track, _ in self._details], np.int64),
            uuid=np.array([node.uuid for node in nodes], np.uint64),
            pid=np.array([node.pid or 0 for node in nodes], np.int64),
            pid_valid=np.array([node.pid is not None for node in nodes], np.bool_),
            tid=np.array([node.tid or 0 for node in nodes], np.int64),
            tid_valid=np.array([node.tid is not None for node in nodes], np.bool_),
            description=[node.description for node in nodes],
        )

    def lanes(self) -> Int64:
        """Return the lane of each number, int64 [numbers], -1 without one."""
        return np.array([-1 if node.lane is None else node.lane for node in self.nodes], np.int64)

    def counters(self) -> Int64:
        """Return the counter of each number, int64 [numbers], -1 without one."""
        return np.array([-1 if node.counters is None else node.counters for node in self.nodes], np.int64)
