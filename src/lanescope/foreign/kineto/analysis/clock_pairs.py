"""What joins the clocks of a profile: launches, calls that wait for devices, collectives that ranks end together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from lanescope.common.distinct import distinct
from lanescope.common.intervals import Intervals, Ints, known_extents
from lanescope.common.time_domains import TrackRoots, without_place
from lanescope.families.clock_pairs import ClockPairs, Orders, TimeDomain
from lanescope.foreign.kineto.analysis.causes import Links
from lanescope.foreign.kineto.analysis.collectives import OF_ALL
from lanescope.trace import Trace

_OF_DEVICE = re.compile(r"(?:cuda|hip)DeviceSynchronize$|cuCtxSynchronize$")
_OF_STREAM = re.compile(r"(?:cuda|hip)StreamSynchronize$|cuStreamSynchronize$")
#: Copies that return when they are done, if they bring data to the host.
_COPIES = re.compile(r"(?:cuda|hip)Memcpy(?:2D|WithStream)?$")
_TO_HOST = re.compile(r"DtoH|Device -> Host|DeviceToHost")
#: Of more ranks only the first one and the next one are compared with each.
_MOST_RANKS = 24

_LACKS = "profile a run that synchronizes: nothing shows when the host saw work end"


def clock_pairs(trace: Trace) -> Iterator[ClockPairs]:
    """Yield launches and calls that waited, by host and device; then collectives, by two devices of different ranks.

    What a call waited for is everything launched before it began, whatever its end: a synchronization that returns
    before work ends contradicts the clocks.
    """
    domains = _Domains(trace)
    extents, links = known_extents(trace.slices), Links(trace)
    launches = np.flatnonzero(
        (trace.flows.values("kind") == "submit") & trace.flows.valid("src_slice_id") & trace.flows.valid("dst_slice_id")
    )
    calls, rows = trace.flows.values("src_slice_id")[launches], trace.flows.values("dst_slice_id")[launches]
    fits = domains.device[extents.group[rows]] >= 0
    calls, rows = calls[fits], rows[fits]
    device = domains.device[extents.group[rows]]
    # Of a row with several launches the last one counts.
    work = _Launched(rows, device, extents, calls, links)
    waited = work.waited(trace, links, domains)
    copied = _copies(trace, calls, rows, extents)
    for number, (host, name) in domains.devices.items():
        mine = device == number
        forward = Orders(extents.begin[calls[mine]], extents.begin[rows[mine]], calls[mine], rows[mine])
        causes, effects = (
            np.concatenate([waited[place][waited[2] == number], copied[place][device[copied[2]] == number]])
            for place in (0, 1)
        )
        backward = Orders(extents.end[causes], extents.end[effects], causes, effects)
        yield ClockPairs(domains.hosts[host], name, forward, backward, _LACKS)
    yield from _collectives(trace, domains, extents)


class _Domains:
    """Hosts and devices of a trace, by capture.

    Attributes:
        hosts: the host of each capture, by the number of its topmost track; of the only one, 0.
        devices: for each device its host's number and its lanes, by the number of its group.
        device: int64 [tracks], the group of the device that a lane is of, -1 for others.
    """

    def __init__(self, trace: Trace) -> None:
        tracks = trace.tracks
        roots = TrackRoots(tracks)
        merged = (tracks.values("role") == "run").any()
        run = roots.root if merged else np.zeros(len(tracks), np.int64)
        is_lane = tracks.values("kind") == "lane"
        parents = np.where(tracks.valid("parent_id"), tracks.values("parent_id"), -1)
        is_device = np.append(tracks.values("role") == "device", False)
        self.device: Ints = np.where(is_lane & is_device[parents], parents, -1)
        self.run: Ints = run
        self.hosts: dict[int, TimeDomain] = {}
        self.devices: dict[int, tuple[int, TimeDomain]] = {}
        for group in distinct(self.device[self.device >= 0]).tolist():
            host = int(run[group])
            prefix = roots.run_name(group)
            if host not in self.hosts:
                others = np.flatnonzero(is_lane & (run == host) & (self.device < 0))
                self.hosts[host] = TimeDomain(f"{prefix}host", others, is_host=True)
            name = f"{prefix}{without_place(str(tracks.values('name')[group]))}"
            self.devices[group] = host, TimeDomain(name, np.flatnonzero(self.device == group))

    def of_host(self, host: int) -> list[int]:
        """Return the devices of a host."""
        return [group for group, (number, _) in self.devices.items() if number == host]


class _Launched:
    """Work on devices with its launch: rows, in the order in which their launches returned."""

    def __init__(self, rows: Ints, device: Ints, extents: Intervals, calls: Ints, links: Links) -> None:
        order = np.argsort(extents.end[calls], kind="stable")
        self.rows, self.device = rows[order], device[order]
        self.launched, self.end = extents.end[calls[order]], extents.end[self.rows]
        self.stream = links.stream[self.rows]
        self.extents = extents

    def waited(self, trace: Trace, links: Links, domains: _Domains) -> tuple[Ints, Ints, Ints]:
        """Return for calls that wait the row that ended last of what they waited for, the call, and the device."""
        extents = self.extents
        dictionary = trace.slices.column("name").dictionary
        texts = dictionary.texts if dictionary is not None else []
        codes = trace.slices.codes("name")
        of_device, of_stream = (
            np.flatnonzero(
                np.array([*(bool(pattern.match(text)) for text in texts), False], bool)[codes]
                & trace.slices.valid("dur")
            )
            for pattern in (_OF_DEVICE, _OF_STREAM)
        )
        syncs = trace.details.get("kineto_syncs")
        shown: Ints = np.empty(0, np.int64) if syncs is None else syncs.values("slice_id")
        run = domains.run[extents.group]
        # The row on the device that a call made, of the same capture and correlation.
        waits = {(int(run[row]), int(links.correlation[row])): row for row in shown.tolist()}
        sources, targets, devices = [], [], []
        for calls, by_stream in ((of_device, False), (of_stream, True)):
            wanted: dict[tuple[int, int], list[int]] = {}
            for call in calls.tolist():
                host = int(run[call])
                there = domains.of_host(host)
                wait = waits.get((host, int(links.correlation[call])), -1)
                device = there[0] if len(there) == 1 else -1
                if wait >= 0 and domains.device[extents.group[wait]] >= 0:
                    device = int(domains.device[extents.group[wait]])
                stream = int(links.stream[wait]) if by_stream and wait >= 0 else -1
                if device >= 0 and (stream >= 0 or not by_stream):
                    wanted.setdefault((device, stream), []).append(call)
            for (device, stream), some in wanted.items():
                mine = np.flatnonzero((self.device == device) & ((self.stream == stream) | (not by_stream)))
                if not len(mine):
                    continue
                latest = np.maximum.accumulate(self.end[mine])
                is_new = self.end[mine] == latest
                place = np.maximum.accumulate(np.where(is_new, np.arange(len(mine)), 0))
                waiting = np.array(some, np.int64)
                count = np.searchsorted(self.launched[mine], extents.begin[waiting], "right")
                has_work = count > 0
                sources.append(self.rows[mine[place[count[has_work] - 1]]])
                targets.append(waiting[has_work])
                devices.append(np.full(int(has_work.sum()), device, np.int64))
        nothing = np.empty(0, np.int64)
        return tuple(np.concatenate([nothing, *parts]) for parts in (sources, targets, devices))  # type: ignore[return-value]


def _copies(trace: Trace, calls: Ints, rows: Ints, extents: Intervals) -> tuple[Ints, Ints, Ints]:
    """Return copies to the host whose calls return when they are done: row, call, place among the launches."""
    dictionary = trace.slices.column("name").dictionary
    texts = dictionary.texts if dictionary is not None else []
    codes = trace.slices.codes("name")
    blocking = np.array([*(bool(_COPIES.match(text)) for text in texts), False], bool)[codes]
    to_host = np.array([*(bool(_TO_HOST.search(text)) for text in texts), False], bool)[codes]
    fits = np.flatnonzero(blocking[calls] & to_host[rows] & trace.slices.valid("dur")[calls])
    return rows[fits], calls[fits], fits


def _collectives(trace: Trace, domains: _Domains, extents: Intervals) -> Iterator[ClockPairs]:
    """Yield for two devices of different captures: a collective ends on each not before it begins on the other."""
    collectives = trace.details.get("kineto_collectives")
    hosts = {host for host, _ in domains.devices.values()}
    if collectives is None or not len(collectives) or len(hosts) < 2:
        return
    slices = collectives.values("slice_id")
    known = collectives.valid("sequence") & collectives.valid("group_name") & trace.slices.valid("dur")[slices]
    known &= domains.device[extents.group[slices]] >= 0
    texts = collectives.values("collective")
    meetings: dict[int, dict[tuple[str, str, int, str], int]] = {}
    for at in np.flatnonzero(known).tolist():
        what = str(texts[at]).lower()
        if not OF_ALL.fullmatch(what):
            continue
        key = (
            str(collectives.values("group_name")[at]),
            str(collectives.values("group_ranks")[at]),
            int(collectives.values("sequence")[at]),
            what,
        )
        of_device = meetings.setdefault(int(domains.device[extents.group[slices[at]]]), {})
        of_device[key] = -1 if key in of_device else int(slices[at])  # two of one number are not told apart
    devices = list(meetings)
    for first, second in combinations(devices, 2):
        places = devices.index(first), devices.index(second)
        if len(devices) > _MOST_RANKS and places[0] and places[1] - places[0] > 1:
            continue
        if domains.devices[first][0] == domains.devices[second][0]:
            continue
        pairs = [
            (row, meetings[second][key])
            for key, row in meetings[first].items()
            if row >= 0 and meetings[second].get(key, -1) >= 0
        ]
        if pairs:
            a, b = np.array(pairs, np.int64).T
            yield ClockPairs(
                domains.devices[first][1],
                domains.devices[second][1],
                Orders(extents.begin[a], extents.end[b], a, b),
                Orders(extents.begin[b], extents.end[a], b, a),
            )
