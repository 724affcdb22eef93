"""The slow and obvious versions of what lanescope.analysis computes at speed."""

from itertools import combinations


def extent(row):
    """The time that a slice (a row of the table) is known to have run."""
    end = row["ts"] + row["dur"] if row["dur"] is not None else row["last_known_ts"]
    return row["ts"], max(row["ts"], row["ts"] if end is None else end)


def clashing(rows, nesting):
    """Ids of the slices of one lane that share time (disjoint) or cross (nested) with another: every pair is tried."""
    found = set()
    for one, other in combinations(rows, 2):
        (a, b), (c, d) = sorted([extent(one), extent(other)])
        shares = max(a, c) < min(b, d)
        crosses = a < c < b < d
        if {"disjoint": shares, "nested": crosses, "free": False}[nesting]:
            found |= {one["id"], other["id"]}
    return found


def ancestors(trace, track):
    """A track and all above it."""
    parents = [row["parent_id"] for row in trace.tracks.rows()]
    while track is not None:
        yield track
        track = parents[track]


def window(trace):
    """The first and last time that any row names."""
    times = [time for row in trace.slices.rows() for time in extent(row)]
    times += [row["ts"] for table in (trace.instants, trace.counters) for row in table.rows()]
    times += [
        time
        for t in (trace.gaps, trace.coverage)
        for row in t.rows()
        for time in (row["ts"], row["ts"] + (row["dur"] or 0))
    ]
    return (min(times), max(times)) if times else (0, 0)


def gaps_of(trace, lane):
    """The gaps of a lane and of the groups above it."""
    last, above = window(trace)[1], list(ancestors(trace, lane))
    return [
        (row["ts"], last if row["dur"] is None else row["ts"] + row["dur"])
        for row in trace.gaps.rows()
        if row["track_id"] in above
    ]


def tails_of(trace, lane):
    """Time in which an open slice of a lane may still have run."""
    last = window(trace)[1]
    slices = [row for row in trace.slices.rows() if row["track_id"] == lane]
    tails = []
    for row in slices:
        if row["dur"] is None:
            begin, end = extent(row)
            following = [s["ts"] for s in slices if s["ts"] >= end and (s["ts"] > begin or end > begin)]
            tails.append((end, min(following, default=last)))
    return tails


def hulls(trace, lanes):
    """Parent (or the lane itself at the top) -> first and last thing known of those of the lanes that stand in it."""
    found = {}
    for lane in lanes:
        above = list(ancestors(trace, lane))
        points = [time for row in trace.slices.rows() if row["track_id"] == lane for time in extent(row)]
        points += [row["ts"] for row in trace.instants.rows() if row["track_id"] == lane]
        for row in trace.coverage.rows():
            if row["track_id"] in above:
                points += [row["ts"], row["ts"] + row["dur"]]
        if points:
            group = (above[1:] or [lane])[0]
            low, high = found.get(group, (min(points), max(points)))
            found[group] = min(low, *points), max(high, *points)
    return found


def recorded(trace, lane):
    """When a lane was recorded: what coverage of it, or of a group above it, tells, else from its first to last row."""
    above = list(ancestors(trace, lane))
    spans = [(row["ts"], row["ts"] + row["dur"]) for row in trace.coverage.rows() if row["track_id"] in above]
    points = [extent(row) for row in trace.slices.rows() if row["track_id"] == lane]
    points += [(row["ts"], row["ts"]) for row in trace.instants.rows() if row["track_id"] == lane]
    if not spans and points:
        spans = [(min(begin for begin, _ in points), max(end for _, end in points))]
    return spans


def split(trace, lane):
    """Busy, idle and unknown time of a lane, one unit of time after another."""
    first, last = window(trace)
    slices = [row for row in trace.slices.rows() if row["track_id"] == lane]
    gaps, tails, covered = gaps_of(trace, lane), tails_of(trace, lane), recorded(trace, lane)
    counts = {"busy": 0, "idle": 0, "unknown": 0}
    for time in range(first, last):

        def within(parts, time=time):
            return any(begin <= time < end for begin, end in parts)

        if within(gaps):
            counts["unknown"] += 1
        elif within(map(extent, slices)):
            counts["busy"] += 1
        elif within(tails) or not within(covered):
            counts["unknown"] += 1
        else:
            counts["idle"] += 1
    return counts


def covered(rows):
    """Time that slices cover, those of one lane counted once."""
    return len({(row["track_id"], time) for row in rows for time in range(*extent(row))})


def path(trace, track):
    """The names from the top down to a track."""
    names = trace.tracks["name"]
    return "/".join(names[step] for step in reversed(list(ancestors(trace, track))))
