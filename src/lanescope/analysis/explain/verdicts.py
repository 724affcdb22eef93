"""Sentences on a run, each with its figure and the command that shows it.

Each rule looks at the evidence of one thing and says nothing where the evidence is weak. What a rule compares with is a
constant here, so that everything that decides a sentence stands on this page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from statistics import fmean, pstdev
from typing import NamedTuple

import numpy as np

from lanescope.analysis.explain.evidence import Evidence, Workers
from lanescope.families.bounds import (
    ANY_CORES,
    COMMUNICATION,
    COMPUTE,
    DEPENDENCY,
    LATE,
    LOCK,
    MEMORY,
    SCHEDULER,
    STREAM,
    Bound,
)
from lanescope.trace import ColumnSpec, Table, TableSpec

#: Sentences of one answer.
MOST = 5
#: Sentences on what bounds the run: a second one where two causes are strong, no more.
_MOST_BOUNDS = 2

#: Workers that work this part of their time are what bounds a run.
_WORKS = 0.8
#: Devices bound a run whose host was recorded if they are there for this part of it, from first to last operation.
_MOST_OF_RUN = 0.5
#: From this part on, it is not stated that devices are there for a part of the run only.
_NEARLY_ALL = 0.95
#: Another lane than a worker bounds a run that it works through, while the workers idle.
_LANE_WORKS = 0.9
#: A run whose end only few workers see loses at least this part of its time to the tail.
_TAIL = 0.1
#: The busiest worker works so much longer than the mean of those like it, as a part of the window; and so many standard
#: deviations of the others longer than they do: the longest of many random sums does not count.
_IMBALANCE = 0.15
_DEVIATIONS = 6
_BUSIEST = 0.5
#: A device idles this part of its time for want of a launch.
_LAUNCH = 0.2
#: Lanes that compute wait for loads this part of their time.
_LOADS = 0.15
#: Time of a block in which it loads and nothing computes.
_EXPOSED = 0.1
#: Parts that a family reports: of the time of a tile or a core, of the window of a scheduler.
_REPORTED = {SCHEDULER: LATE, COMMUNICATION: 0.1}
_REPORTED_ELSE = 0.4
#: A path of which so much is explained is known; work with this part of it is worth a sentence.
_PATH_KNOWN = 0.5
_ON_PATH = 0.2
#: Doubt: slices that are not exact; lane time that was not recorded.
_DOUBT = 0.05
_UNKNOWN = 0.01
#: The smallest share that is not shown as nothing, and so many kinds of losses are listed.
_SHOWN = 0.0005
_MOST_LOSSES = 3

VERDICTS = TableSpec(
    "explain",
    "one sentence on a run, with the figure that it rests on",
    (
        ColumnSpec("id", "int64", "dense, in the order in which to read them"),
        ColumnSpec(
            "topic", "utf8", "`selected` slices, `bound`, `exposed`, `path`, `uncertain`, `not recorded`, or `nothing`"
        ),
        ColumnSpec(
            "cause",
            "utf8",
            "`work`, `lane`, `launch`, `load`, `imbalance`, `tail`, or a cause of a family",
        ),
        ColumnSpec("subject", "utf8", "lane, worker or device that it is said of"),
        ColumnSpec("share", "float64", "part of the time that it takes", unit="1"),
        ColumnSpec(
            "gain", "float64", "at most this part of the run would be gained; NULL: unknown", nullable=True, unit="1"
        ),
        ColumnSpec("sentence", "utf8", "the verdict in words"),
        ColumnSpec("command", "utf8", "command line that shows the figure"),
    ),
)


class Verdict(NamedTuple):
    """One sentence.

    Attributes:
        topic: as the column says.
        cause: what it is.
        subject: what it is said of.
        share: part of the time that it takes.
        gain: part of the run that would be gained at most; None: unknown.
        sentence: in words.
        shown_by: verb and options that show it, without the file.
    """

    topic: str
    cause: str
    subject: str
    share: float
    gain: float | None
    sentence: str
    shown_by: str


Rule = Callable[[Evidence], Iterator[Verdict]]


def explain(evidence: Evidence, path: str = "FILE", filters: str = "") -> Table:
    """Return what bounds a run, what of it is exposed, uncertain and not recorded.

    Args:
        evidence: facts of the trace.
        path: how the capture, and the window of time and lanes, are named in commands.
        filters: how commands name what is selected of it.
    """
    path_said = list(on_the_path(evidence))  # needs most memory: first, before others keep what they found
    bounds = sorted((found for rule in BOUNDS for found in rule(evidence)), key=lambda found: -found.share)
    bounds = list({found.cause: found for found in reversed(bounds)}.values())[::-1][:_MOST_BOUNDS]
    said = [*selected(evidence), *(bounds or nothing_stands_out(evidence))]
    for rule in REMARKS:
        said.extend(path_said if rule is on_the_path else rule(evidence))
    said = said[:MOST]
    columns = {name: [getattr(found, name) for found in said] for name in Verdict._fields if name != "shown_by"}
    paths = [f"{path} {filters}".strip() if found.topic == "selected" else path for found in said]
    command = [f"lanescope {_with_path(found.shown_by, path)}" for found, path in zip(said, paths, strict=True)]
    return Table.from_arrays(VERDICTS, {"id": range(len(said)), **columns, "command": command})


def _with_path(shown_by: str, path: str) -> str:
    return f"{shown_by} {path}" if path else shown_by


def _percent(share: float) -> str:
    return "less than 0.1%" if 0 < share < _SHOWN else f"{share:.1%}"


def _limit(share: float) -> str:
    """Return an upper bound: it is not rounded down."""
    return f"{ceil(round(share * 1000, 6)) / 1000:.1%}"


def selected(evidence: Evidence) -> Iterator[Verdict]:
    """What the slices are that a window selects by name, duration or condition: the other sentences are on all."""
    found = evidence.selected
    if found is None:
        return
    busy, waiting = (time / found.time if found.time else 0.0 for time in (found.busy, found.waiting))
    path = evidence.path_work
    on_path = f" and are {_percent(path.selected)} of the critical path" if path.explained >= _PATH_KNOWN else ""
    waits = f", wait {_percent(waiting)}" if waiting else ""
    yield Verdict(
        "selected",
        "selection",
        found.asked,
        busy,
        None,
        f"The selected slices ({found.slices:,}: {found.asked}) work {_percent(busy)} of the lanes' time{waits}"
        f"{on_path}: all else said here is of all slices.",
        "phases",
    )


# --- what bounds the run ------------------------------------------------------------------------------------------


def all_work(evidence: Evidence) -> Iterator[Verdict]:
    """Workers that work nearly all the time: only less work, or faster work, makes the run shorter."""
    for workers in evidence.workers:
        if workers.share >= _WORKS and _part_of_run(evidence, workers) >= _MOST_OF_RUN and not _has_tail(evidence):
            left = max(1 - workers.share, 0.0)
            gain = _limit(left)
            idle = "no idle time is left" if gain == _limit(0) else f"filling the idle time gains at most {gain}"
            yield Verdict(
                "bound",
                "work",
                workers.kind,
                workers.share,
                left,
                f"{_who(workers)} {_percent(workers.share)} of {_when(evidence, workers)}: less or faster work makes "
                f"the run shorter, {idle}.",
                f"summary --by {_by(workers)}",
            )


def one_lane(evidence: Evidence) -> Iterator[Verdict]:
    """Another lane than a worker works nearly all the time, while the workers mostly do not."""
    path, busy, window = evidence.host_lane
    share = busy / window if window else 0.0
    paced = (workers.share * _part_of_run(evidence, workers) for workers in evidence.workers)
    most = max(paced, default=None)
    if share >= _LANE_WORKS and most is not None and most < _WORKS:
        yield Verdict(
            "bound",
            "lane",
            path,
            share,
            1 - most,
            f"{path} works {_percent(share)} of the time, while what it feeds works {_percent(most)} of it: "
            f"it sets the pace.",
            "summary --by lane",
        )


def late_launches(evidence: Evidence) -> Iterator[Verdict]:
    """A device idles because the host has not launched anything yet."""
    for starved in evidence.starvation:
        share = starved.late / starved.window if starved.window else 0.0
        if share >= _LAUNCH:
            yield Verdict(
                "bound",
                "launch",
                starved.device,
                share,
                share,
                f"{starved.device} was idle {_percent(share)} of the time from its first to its last operation because "
                f"the host had not launched anything yet: earlier or fewer launches would gain at most that.",
                "summary --by idle --within device",
            )


def waits_on_loads(evidence: Evidence) -> Iterator[Verdict]:
    """Lanes that compute wait for loads."""
    blocked, window, name = evidence.load_waits
    share = blocked / window if window else 0.0
    if share >= _LOADS:
        yield Verdict(
            "bound",
            "load",
            name,
            share,
            share,
            f"Lanes that compute wait {_percent(share)} of their time for loads, mostly {name}: earlier loads or more "
            f"stages would gain at most that.",
            "summary --by idle",
        )


def imbalance(evidence: Evidence) -> Iterator[Verdict]:
    """One worker has far more to do than those like it, from the begin on."""
    for workers in evidence.workers:
        if len(workers) < 2 or workers.window <= 0 or workers.come_and_go or _has_tail(evidence):
            continue
        busiest = int(workers.busy.argmax())
        most = int(workers.busy[busiest]) / workers.window
        shares = [int(busy) / workers.window for busy in workers.busy.tolist()]
        rest = shares[:busiest] + shares[busiest + 1 :]
        others, mean = fmean(rest), fmean(shares)
        if most >= max(_BUSIEST, mean + _IMBALANCE, others + _DEVIATIONS * pstdev(rest)):
            yield Verdict(
                "bound",
                "imbalance",
                workers.labels[busiest],
                most - mean,
                most - mean,
                f"{workers.labels[busiest]} works {_percent(most)} of the time, the {len(workers) - 1} others like it "
                f"{_percent(others)} on average: even shares would gain at most {_percent(most - mean)}.",
                f"summary --by {_by(workers)}",
            )


def tail(evidence: Evidence) -> Iterator[Verdict]:
    """Most workers, of all kinds together, have finished long before the run ends."""
    workers = evidence.crew
    if workers is None or not _has_tail(evidence):
        return
    share = (workers.end - workers.tail) / workers.window
    running = int((workers.last > workers.tail).sum())
    last = workers.labels[int(workers.last.argmax())]
    few = f"at most {max(1, workers.most // 4)} {_plural(workers)} work at once ({workers.most} before), {last} last"
    who = f"only {last} works" if running == 1 else few
    yield Verdict(
        "bound",
        "tail",
        last,
        share,
        share,
        f"For the last {_percent(share)} of the run {who}: spreading that work would gain at most that.",
        f"summary --by {_by(workers)}",
    )


def reported(evidence: Evidence) -> Iterator[Verdict]:
    """What a family knows from its own records."""
    for bound in evidence.bounds:
        share = bound.dur / bound.window if bound.window else 0.0
        if share < _REPORTED.get(bound.cause, _REPORTED_ELSE):
            continue
        if bound.cause == DEPENDENCY and (
            any(workers.share >= _WORKS for workers in evidence.workers) or _others_have_tasks(evidence, bound)
        ):
            continue  # cores of one type that never stop are the limit, whatever those of another type wait for
        words, gain = _REPORTED_WORDS[bound.subject if bound.subject == ANY_CORES else bound.cause]
        more = f", perhaps for up to {_percent(bound.at_most / bound.window)}," if bound.at_most > bound.dur else ""
        yield Verdict(
            "bound",
            bound.cause,
            bound.subject,
            share,
            bound.at_most / bound.window if gain else None,
            words.format(subject=bound.subject[:1].upper() + bound.subject[1:], share=_percent(share), more=more),
            bound.shown_by,
        )


#: Sentence of each cause, and whether its time is what could be gained.
_REPORTED_WORDS = {
    SCHEDULER: (
        "{subject} idled for {share} of their time{more} while tasks for them were ready: the scheduler is late.",
        False,
    ),
    ANY_CORES: (
        "For {share} of the time{more} cores of at least one type idled while tasks for them were ready: the scheduler "
        "is late.",
        False,
    ),
    DEPENDENCY: (
        "{subject} had no ready task for {share} of their time{more}: tasks wait for one another, or are too few.",
        True,
    ),
    COMMUNICATION: (
        "{subject} communicated for {share} of its time{more} while nothing computed: hiding that would gain at most "
        "as much.",
        True,
    ),
    COMPUTE: ("{subject} computes for {share} of its time{more}.", False),
    MEMORY: ("{subject} waits for memory for {share} of its time{more}.", True),
    STREAM: ("{subject} waits for streams for {share} of its time{more}.", True),
    LOCK: ("{subject} waits for locks for {share} of its time{more}: for the tiles or DMA that hold them.", True),
}


def _others_have_tasks(evidence: Evidence, bound: Bound) -> bool:
    """Whether cores of another type had a ready task nearly all the time, whether it ran or the scheduler was late."""
    others = [each for each in evidence.bounds if each.cause == DEPENDENCY and each.subject != bound.subject]
    return any(each.window and 1 - each.dur / each.window >= _WORKS for each in others)


def _has_tail(evidence: Evidence) -> bool:
    """Whether only few workers are there for a good part of the end, after most of them worked."""
    workers = evidence.crew
    if workers is None or len(workers) < 2 or workers.window <= 0:
        return False
    if (workers.end - workers.tail) / workers.window < _TAIL:
        return False
    before = workers.tail - workers.begin
    there = np.minimum(workers.last, workers.tail) - np.minimum(workers.first, workers.tail)
    worked = int(np.minimum(workers.busy, there).sum())
    known = int(there.sum()) if workers.come_and_go else before * len(workers)
    return known > 0 and worked >= _WORKS / 2 * known


def _part_of_run(evidence: Evidence, workers: Workers) -> float:
    """Return which part of the run the workers are there; devices only from their first to their last operation."""
    if workers.role != "device" or not evidence.host_window:
        return 1.0
    return min(workers.window / evidence.host_window, 1.0)


def _who(workers: Workers) -> str:
    """Return who works, as the begin of a sentence."""
    return f"{len(workers)} {_plural(workers)} work" if len(workers) > 1 else f"{workers.labels[0]} works"


def _when(evidence: Evidence, workers: Workers) -> str:
    """Return of what time it is said that they work."""
    if workers.come_and_go:
        return "the time that they are there" if len(workers) > 1 else "the time that it is there"
    if workers.role != "device":
        return "the time"
    part = _part_of_run(evidence, workers)
    whose = "their first to their" if len(workers) > 1 else "its first to its"
    return f"the time from {whose} last operation" + (f", {_percent(part)} of the run" if part < _NEARLY_ALL else "")


def _plural(workers: Workers) -> str:
    if workers.role == "device" and not workers.kind.isupper():
        return "devices"  # what is left of the name of a product has no plural
    return f"{workers.kind}s" if not workers.kind.endswith("s") else workers.kind


def _by(workers: Workers) -> str:
    return "lane" if workers.role == "device" else workers.role


#: In this order where shares are equal.
BOUNDS: Sequence[Rule] = (reported, late_launches, waits_on_loads, tail, imbalance, all_work, one_lane)


# --- the rest -----------------------------------------------------------------------------------------------------


def nothing_stands_out(evidence: Evidence) -> Iterator[Verdict]:
    """No rule has a cause: how much the workers work, and no more."""
    if not evidence.workers:
        sentence = "Nothing in this capture tells what works and what waits: nothing is said of what bounds the run."
        yield Verdict("nothing", "no workers", "", 0.0, None, sentence, "info")
        return
    workers = max(evidence.workers, key=lambda found: int(found.busy.sum()))
    yield Verdict(
        "nothing",
        "no single cause",
        workers.kind,
        workers.share,
        None,
        f"No single cause stands out: {_who(workers)} {_percent(workers.share)} of {_when(evidence, workers)}, "
        f"and the records name nothing that holds them up for long.",
        f"summary --by {_by(workers)}",
    )


def exposed(evidence: Evidence) -> Iterator[Verdict]:
    """Loads that nothing hides."""
    time, window = evidence.exposed_loads
    share = time / window if window else 0.0
    if share >= _EXPOSED:
        yield Verdict(
            "exposed",
            "load",
            "loads",
            share,
            share,
            f"Loads are exposed for {_percent(share)} of the blocks' time: they run while nothing there computes.",
            "summary --by overlap",
        )


def on_the_path(evidence: Evidence) -> Iterator[Verdict]:
    """Work that makes up much of a path that is known."""
    name, share, explained, _, is_alone = evidence.path_work
    outside = "; causes outside of the window were not read, so it follows those inside only" if is_alone else ""
    if explained >= _PATH_KNOWN and share >= _ON_PATH:
        yield Verdict(
            "path",
            "work",
            name,
            share,
            share,
            f"{name} takes {_percent(share)} of the path that decided the length of the run ({_percent(explained)} of "
            f"the path is explained{outside}): without it the run would be shorter by at most that.",
            "critical-path",
        )


def uncertain(evidence: Evidence) -> Iterator[Verdict]:
    """What of this rests on times that are not exact, or on rows that a check found impossible."""
    bad = sum(count for severity, count in evidence.findings.items() if severity in ("warning", "error"))
    if bad:
        found = f"{bad} findings that are warnings or errors: what they name"
        found = "one finding that is a warning or an error: what it names" if bad == 1 else found
        yield Verdict("uncertain", "findings", "check", 0.0, None, f"A check has {found} is not reliable.", "check")
    guessed, slices = evidence.not_exact
    if slices and guessed / slices >= _DOUBT:
        yield Verdict(
            "uncertain",
            "estimates",
            "slices",
            guessed / slices,
            None,
            f"{_percent(guessed / slices)} of the slices have estimated or inferred times or names: all figures move "
            f"with them.",
            "check",
        )


def not_recorded(evidence: Evidence) -> Iterator[Verdict]:
    """Time of lanes that nothing was recorded of, and records that were lost or cannot be true."""
    unknown, window = evidence.unrecorded
    share = unknown / window if window else 0.0
    if share < _UNKNOWN and not evidence.losses:
        return
    text = f"{_percent(share)} of the lanes' time was not recorded"
    if evidence.losses:
        listed = ", ".join(f"{name} {count:,}" for name, count in evidence.losses[:_MOST_LOSSES])
        more = len(evidence.losses) - _MOST_LOSSES
        listed += f" and {more} more kinds" if more > 1 else " and one more kind" if more == 1 else ""
        lanes = "" if share < _SHOWN else f", and {_percent(share)} of the lanes' time was not recorded"
        text = f"Records were lost or contradict themselves ({listed}){lanes}"
    cause = "loss" if evidence.losses else "gaps"
    yield Verdict("not recorded", cause, "lanes", share, None, f"{text}: nothing is said of that.", "check")


REMARKS: Sequence[Rule] = (exposed, on_the_path, uncertain, not_recorded)
