"""The recordings of a trace that a path can be walked from: its rows in execution mode, by tile and recording."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lanescope.devices.aie.formats.layout import FLOW_KINDS, WRAPPED_TRIPS
from lanescope.devices.aie.path.walk.walker import Stream
from lanescope.trace import Flag, Trace


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """One recording in execution mode.

    Attributes:
        track_id: group track of its tile and recording.
        name: of that track.
        source: type, column, row and id of its packets.
        start_offset: byte offset of its Start.
        stream: its rows.
    """

    track_id: int
    name: str
    source: tuple[int, int, int, int]
    start_offset: int
    stream: Stream

    @property
    def place(self) -> tuple[int, int]:
        """Column and row of its tile."""
        return self.source[1:3]


def recordings(trace: Trace) -> list[Segment]:
    """Return the recordings in execution mode, in order of decoding; memory is that of their rows."""
    if "aie_program_flow" not in trace.details:
        return []
    flow, segments, instants = trace.details["aie_program_flow"], trace.details["aie_segments"], trace.instants
    if not len(flow):
        return []
    names = trace.tracks.values("name")
    parents = trace.tracks.values("parent_id")
    of = instants.values("track_id")[flow.values("instant_id")]
    flags = instants.values("flags")[flow.values("instant_id")]
    dictionary = flow.column("kind").dictionary
    assert dictionary is not None
    # Texts come in the order in which they were met.
    number = np.array([FLOW_KINDS.index(text) if text in FLOW_KINDS else 0 for text in dictionary.texts], np.uint8)
    kind = number[flow.codes("kind")]
    value = flow.values("pc").astype(np.int64)
    loops = flow.valid("trips")
    if loops.any():
        value[loops] = flow.values("trips")[loops] | np.where(flow.values("is_wrapped")[loops], WRAPPED_TRIPS, 0)
    count = flow.values("count").astype(np.int64)
    is_after_loss = (flags & int(Flag.AFTER_GAP)) != 0
    groups = parents[of]
    found = []
    order = np.argsort(groups, kind="stable") if np.any(np.diff(groups) < 0) else np.arange(len(groups))
    bounds = np.flatnonzero(np.diff(groups[order])) + 1
    place = {int(track): i for i, track in enumerate(segments.values("track_id").tolist())}
    for rows in np.split(order, bounds):
        group = int(groups[rows[0]])
        segment = place[group]
        stream = Stream(*(np.ascontiguousarray(column[rows]) for column in (kind, value, count, is_after_loss)))
        found.append(
            Segment(
                group,
                str(names[group]),
                (
                    int(segments.values("packet_type")[segment]),
                    int(segments.values("col")[segment]),
                    int(segments.values("row")[segment]),
                    int(segments.values("packet_id")[segment]),
                ),
                int(segments.values("start_offset")[segment]),
                stream,
            )
        )
    return found
