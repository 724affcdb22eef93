"""Run the programs of the scenario matrix, and hold what was recorded against what the driver did.

The driver knows the truth: what ran, when, in which run. The program keeps a journal of what it appended and read.
Everything that is compared here is exact.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import lanescope
from lanescope.devices.levelzero.formats import ctf_reader as recorded
from lanescope.devices.levelzero.recorder import launcher, untimed
from lanescope.source import Capture
from native import fake_ze_build, recorder_build
from native.fake_ze_build import FakeZe

# How a program can be run, as rows.hpp numbers it.
IMMEDIATE, REGULAR, IN_ORDER, OUT_OF_ORDER, COMPUTE, COPY = (1 << bit for bit in range(6))
THREADED, OVERLAPPING, OVERTAKING, INTERLEAVING, LONG, UNTIMED, LEAVING, ORPHANING = (1 << bit for bit in range(8))
LOSING, CAPTURING, SEVERAL, CHANGING, READING, KEEPING, ASKING, UNSIGNALLING = (1 << bit for bit in range(8, 16))

Quirks = dict[str, str | int]

#: Ways of the driver, by name; the variables are those of driver_quirks.hpp. `loader`: which loader the program finds.
QUIRKS: dict[str, Quirks] = {
    "plain": {},
    "sticky resets": {"host_reset": "sticky"},
    "late results": {"late": 300},
    "slow status": {"status_ns": 20_000},
    "no recycling": {"recycle": 0},
    "free order": {"order": "free", "seed": 5},
    "engine order": {"order": "engine", "seed": 6},
    "overlap": {"order": "free", "workers": 3},
    "inline": {"execute": "inline"},
    "virtual clock": {"execute": "inline", "clock": "virtual", "order": "free", "seed": 7},
    "wrapping clock": {"start": -5000, "bits": 32, "global_bits": 32, "ppm": -200},
    "64 bits": {"bits": 64, "global_bits": 64, "frequency": 1_000_000_000},
    "not ready": {"unsignalled": "not_ready"},
    "queries abort": {"query_on_copy": "abort"},
    "query limit": {"query_limit": 20},
    "Debian's loader": {"loader": "debian"},
    "API 1.4": {"loader": "debian", "api": "1.4"},
    "sticky view": {"host_reset": "view"},
    "sticky, torn": {"host_reset": "sticky", "torn": 50, "workers": 2},
    "sticky, free": {"host_reset": "sticky", "order": "free", "seed": 8},
    "all at once": {"host_reset": "sticky", "late": 100, "order": "free", "workers": 2, "seed": 9, "start": -300},
}

#: Quirks under which the timeline is looked at too, which takes longer than all the rest.
DRAWN = ("plain", "sticky resets", "wrapping clock")

#: A quirk under which every program can run.
REFERENCE = "free order"

#: What failing calls of the recorder's are tried: function, first and last call counted from its first own one.
FAULTS: tuple[tuple[str, int, int | None], ...] = (
    ("zeMemAllocHost", 1, 1),
    ("zeMemAllocHost", 2, 2),
    ("zeMemAllocHost", 1, 3),
    ("zeMemAllocHost", 1, None),
    ("zeEventPoolCreate", 1, 1),
    ("zeEventPoolCreate", 5, 40),
    ("zeEventPoolCreate", 1, None),
    ("zeEventCreate", 1, 3),
    ("zeEventCreate", 10, None),
    ("zeCommandListAppendQueryKernelTimestamps", 1, 1),
    ("zeCommandListAppendQueryKernelTimestamps", 30, 50),
    ("zeCommandListAppendQueryKernelTimestamps", 1, None),
    ("zeEventQueryStatus", 1, 5),
    ("zeEventQueryKernelTimestamp", 1, 5),
    ("zeEventQueryKernelTimestamp", 1, None),
    ("zeDeviceGetCommandQueueGroupProperties", 1, None),
    ("zeDeviceGetGlobalTimestamps", 1, None),
)

#: Counts for programs that take one: enough for a leak a chunk to show.
COUNTS = {"R15": 400, "R18": 400, "R20": 200, "R23": 120, "S8": 400, "S9": 1280, "S10": 800}

QUERY = "zeCommandListAppendQueryKernelTimestamps"
#: What a prologue of the recorder's consists of.
PROLOGUE = {f"zeCommandListAppend{what}" for what in ("EventReset", "SignalEvent", "WaitOnEvents")}
TIMEOUT_S = 60


@dataclass(frozen=True)
class Row:
    """One program.

    Attributes:
        name: as the table of regressions calls it.
        title: what it is about.
        lists: bits of the lists it can be run with.
        traits: bits of what is special.
    """

    name: str
    title: str
    lists: int
    traits: int

    def variants(self) -> list[tuple[str, str]]:
        """Return each combination of lists and engine."""
        kinds = [text for bit, text in ((IMMEDIATE, "immediate"), (REGULAR, "regular")) if self.lists & bit]
        orders = [text for bit, text in ((IN_ORDER, "in-order"), (OUT_OF_ORDER, "out-of-order")) if self.lists & bit]
        engines = [text for bit, text in ((COMPUTE, "compute"), (COPY, "copy")) if self.lists & bit]
        return [(f"{kind},{order}", engine) for kind in kinds for order in orders for engine in engines]

    def can_run(self, quirks: Quirks) -> bool:
        """Whether the program comes to its end under these quirks, and does there what it is for."""
        order = quirks.get("order", "list")
        if self.traits & OVERTAKING and order != "free":
            return False
        if self.traits & UNSIGNALLING and quirks.get("host_reset", "works") != "works":
            return False
        return not (self.traits & INTERLEAVING and order == "engine")


@dataclass(frozen=True)
class Case:
    """One run of one program.

    Attributes:
        row: the program.
        lists: kind and order of its lists.
        engine: compute or copy.
        quirk: name of the driver's ways.
        host_read: whether the host reads all timestamps (option H).
        count: how many times, for programs that take a count.
        resets: ``--event-resets``.
        fault: calls of the recorder's that fail.
    """

    row: Row
    lists: str
    engine: str
    quirk: str
    host_read: bool = False
    count: int | None = None
    resets: str = "auto"
    fault: tuple[str, int, int | None] | None = None

    def __str__(self) -> str:
        resets = "" if self.resets == "auto" else f", resets {self.resets}"
        fault = "" if self.fault is None else " fails {}:{}-{}".format(*self.fault)
        return (
            f"{self.row.name} {self.lists} {self.engine}, {self.quirk}{', H' if self.host_read else ''}{resets}{fault}"
        )

    def plain(self) -> Case:
        """Return the case whose output, without the recorder, is the right one."""
        quirk = "Debian's loader" if "loader" in QUIRKS[self.quirk] else REFERENCE
        return Case(self.row, self.lists, self.engine, quirk, count=self.count)

    def arguments(self) -> list[str]:
        count = self.count or COUNTS.get(self.row.name)
        return [self.row.name, self.lists, self.engine, *([] if count is None else [str(count)])]

    def quirks(self) -> Quirks:
        quirks = dict(QUIRKS[self.quirk])
        if self.row.traits & LONG:
            quirks.setdefault("query_bytes", 0)  # the heap is measured
        if self.row.traits & SEVERAL:
            quirks.update({"devices": 2, "subdevices": 2})
        return quirks


@dataclass
class Ran:
    """What came of one run.

    Attributes:
        status: the exit status; None when it did not end.
        out: its output.
        err: what else it said.
        truth: the driver's lines of operations.
        said: the driver's complaints.
        journal: the program's notes, as words.
        stats: the driver's counts.
        folder: the recording.
    """

    status: int | None
    out: str
    err: str
    truth: list[dict[str, Any]]
    said: list[str]
    journal: list[list[str]]
    stats: dict[str, int]
    folder: Path


@dataclass
class Verdict:
    """What a recording was found to be.

    Attributes:
        failures: everything that is wrong.
        timed: timed operations.
        results: recorded results.
        runs: runs of operations, timed or not.
        lost: runs that are said to have no result.
        untimed: reasons of untimed operations, counted.
        untimed_marks: those operations.
        hit: whether a call failed that was to fail.
        readings: how often timestamps were looked at that queries of the program's, or the host, had read.
        false_readings: of them, those of another operation, where the recorder says that there may be some.
        said: how often it says so.
    """

    failures: list[str] = field(default_factory=list)
    timed: int = 0
    results: int = 0
    runs: int = 0
    lost: int = 0
    untimed: Counter[str] = field(default_factory=Counter)
    untimed_marks: set[str] = field(default_factory=set)
    hit: bool = False
    readings: int = 0
    false_readings: int = 0
    said: int = 0

    def add(self, other: Verdict) -> None:
        """Count another one's in."""
        self.timed += other.timed
        self.results += other.results
        self.runs += other.runs
        self.lost += other.lost
        self.untimed += other.untimed
        self.readings += other.readings
        self.false_readings += other.false_readings
        self.said += other.said


@dataclass(frozen=True)
class Bench:
    """Driver, programs and recorder, as built.

    Attributes:
        fake_ze: the driver and its programs.
        recorder: the folder of the recorder's libraries.
        host_read_variable: what switches option H on.
    """

    fake_ze: FakeZe
    recorder: Path
    host_read_variable: str = "LANESCOPE_ZE_HOST_READ"

    @classmethod
    def build(cls, levelzero: Path, sanitize: str = "") -> Bench:
        """Build everything."""
        return cls(fake_ze_build.build(levelzero, sanitize), recorder_build.build(levelzero, sanitize) / "recorder")

    def copied(self, folder: Path) -> Bench:
        """Return a copy, which builds that go on meanwhile do not touch."""
        fake_ze = folder / "fake_ze"
        (fake_ze / "loader").mkdir(parents=True)
        for file in (self.fake_ze.driver, self.program):
            shutil.copy2(file, fake_ze)
        for file in (self.fake_ze.folder / "loader").glob("libze_loader.so*"):
            shutil.copy2(file, fake_ze / "loader", follow_symlinks=False)
        shutil.copytree(
            self.recorder, folder / "recorder", ignore=lambda _, names: {n for n in names if ".so" not in n}
        )
        return replace(self, fake_ze=FakeZe(fake_ze, self.fake_ze.levelzero), recorder=folder / "recorder")

    @property
    def program(self) -> Path:
        return self.fake_ze.folder / "fake_ze_matrix"

    def rows(self) -> list[Row]:
        done = subprocess.run(
            [self.program, "--rows"], env=self.fake_ze.environment(), capture_output=True, text=True, check=True
        )
        found = []
        for line in done.stdout.splitlines():
            name, lists, traits, title = line.split(" ", 3)
            found.append(Row(name, title, int(lists), int(traits)))
        return found

    def run(
        self,
        arguments: list[str],
        quirks: Quirks,
        folder: Path,
        *,
        recorded: bool = True,
        host_read: bool = False,
        resets: str = "auto",
        stats: bool = True,
        timeout: float = TIMEOUT_S,
    ) -> Ran:
        """Run the program of the matrix once.

        Args:
            arguments: its arguments.
            quirks: the driver's.
            folder: an empty folder for what is written.
            recorded: whether the recorder is in it.
            host_read: option H.
            resets: ``--event-resets``.
            stats: whether calls are counted.
            timeout: seconds after which it counts as hanging.
        """
        quirks = dict(quirks)
        loader = None if quirks.pop("loader", "") == "debian" else self.fake_ze.folder / "loader"
        files = {"truth": folder / "truth", **({"stats": folder / "stats"} if stats else {})}
        environment = self.fake_ze.environment(loader, **quirks, **files)
        environment["MATRIX_JOURNAL"] = str(folder / "journal")
        environment[self.host_read_variable] = "1" if host_read else "0"
        environment["LANESCOPE_ZE_EVENT_RESETS"] = resets
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        environment.setdefault("TSAN_OPTIONS", "halt_on_error=1 second_deadlock_stack=1")
        output = folder / "recording"
        output.mkdir()
        if recorded:
            with (
                mock.patch.object(launcher, "library", self._library),
                launcher.environment(launcher.Settings(output), environment) as made,
            ):
                status, out, err = _execute([str(self.program), *arguments], made, timeout)
        else:
            status, out, err = _execute([str(self.program), *arguments], environment, timeout)
        truth, said = [], []
        if (folder / "truth").exists():
            for line in (folder / "truth").read_text().splitlines():
                entry = json.loads(line)
                if entry["kind"] == "op":
                    truth.append(entry)
                else:
                    said.append(entry["what"])
        journal = []
        if (folder / "journal").exists():
            journal = [line.split(" ") for line in (folder / "journal").read_text().splitlines()]
        counts = json.loads((folder / "stats").read_text()) if (folder / "stats").exists() else {}
        return Ran(status, out, err, truth, said, journal, counts, output)

    def _library(self, name: str = launcher.LAYER) -> Path:
        return self.recorder / name

    def run_case(self, case: Case, folder: Path, *, recorded: bool = True, timeout: float = TIMEOUT_S) -> Ran:
        quirks = case.quirks()
        if case.fault is not None:
            # The program's own calls of these functions all come before its first operation.
            function, first, last = case.fault
            clean = self.run_case(replace(case, fault=None), fresh(folder / "clean"), recorded=False)
            own = clean.stats.get(f"calls.{function}", 0)
            quirks["fail"] = f"{function}:{own + first}-" + ("" if last is None else str(own + last))
        return self.run(
            case.arguments(),
            quirks,
            folder,
            recorded=recorded,
            host_read=case.host_read,
            resets=case.resets,
            timeout=timeout,
        )

    def verify(self, case: Case, reference: str, folder: Path, *, timeout: float = TIMEOUT_S) -> Verdict:
        """Run a case recorded, and say what is wrong with it.

        Args:
            case: what to run.
            reference: the output of an untraced run.
            folder: an empty folder.
            timeout: seconds after which it counts as hanging.
        """
        ran = self.run_case(case, fresh(folder), timeout=timeout)
        verdict = examine(
            ran,
            case.quirks(),
            host_read=case.host_read,
            resets=case.resets,
            row=case.row,
            is_faulty=case.fault is not None,
            timeline=case.quirk in DRAWN,
        )
        if ran.status == 0 and ran.out != reference:
            verdict.failures.append(f"its output is another one:\n{ran.out}instead of\n{reference}")
        if case.row.traits & LOSING and ran.status == 0 and not verdict.lost:
            verdict.failures.append("the device is lost, but no result is said to be")
        if case.row.traits & CAPTURING and "loader" not in QUIRKS[case.quirk] and not verdict.untimed["capturing"]:
            verdict.failures.append("nothing is captured")
        if case.fault is not None:
            function, first, _ = case.fault
            own = json.loads((folder / "clean/stats").read_text()).get(f"calls.{function}", 0)
            verdict.hit = ran.stats.get(f"calls.{function}", 0) >= own + first
        shutil.rmtree(folder)
        return verdict


def fresh(folder: Path) -> Path:
    """Empty a folder, and return it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _execute(command: list[str], environment: dict[str, str], timeout: float) -> tuple[int | None, str, str]:
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return None, out, err
    return process.returncode, out, err


# --- what must hold -----------------------------------------------------------------------------------------------


def own_results(ran: Ran, bits: int, *, exact: bool = True) -> list[str]:
    """Return what is wrong with what the program read itself, recorded or not.

    Args:
        ran: the run.
        bits: valid bits of timestamps.
        exact: whether operations of one event do not overlap.
    """
    failures = []
    by_run = {(op["mark"], op["run"]): op for op in ran.truth if op["mark"]}
    for words in ran.journal:
        if words[0] not in ("ticks", "written"):
            continue
        who = "the program read" if words[0] == "ticks" else "the device wrote"
        marks, run, found = words[1].split(","), int(words[2]), tuple(map(int, words[3:]))
        candidates = [by_run[mark, run] for mark in marks if (mark, run) in by_run]
        if not candidates:
            failures.append(f"{who} timestamps of {words[1]}, run {run}, which did not run")
            continue
        origin = candidates[0]["start"]
        latest = max(candidates, key=lambda op: (op["end"] - origin + (1 << bits - 1)) % (1 << bits))
        wanted = _ticks(latest)
        if found != wanted and (exact or len(marks) == 1 or not _is_mixture(found, candidates)):
            failures.append(f"{who} timestamps {found} of {words[1]}, run {run}: {wanted} are right")
    return failures


def _is_mixture(found: tuple[int, ...], candidates: Sequence[dict[str, Any]]) -> bool:
    """Whether each tick is one of some operation's; an end that is not the last one is still its start."""
    starts, ends, context_starts, context_ends = (set(ticks) for ticks in zip(*map(_ticks, candidates), strict=True))
    possible = (starts, ends | starts, context_starts, context_ends | context_starts)
    return all(tick in ticks for tick, ticks in zip(found, possible, strict=True))


def examine(
    ran: Ran,
    quirks: Quirks,
    *,
    host_read: bool,
    resets: str = "auto",
    row: Row | None = None,
    is_faulty: bool = False,
    timeline: bool = True,
) -> Verdict:
    """Hold a recording against the truth.

    Args:
        ran: the recorded run.
        quirks: the driver's.
        host_read: whether option H was on.
        resets: ``--event-resets``.
        row: the program of the matrix; None: a random one.
        is_faulty: whether calls of the recorder's were made to fail.
        timeline: whether to look at what lanescope makes of it, too.
    """
    verdict = Verdict()
    fail = verdict.failures.append
    traits = READING if row is None else row.traits
    if ran.status != 0:
        fail("it hangs" if ran.status is None else f"it exits with {ran.status}: {ran.out[-300:]}{ran.err[-3000:]}")
    if "Sanitizer" in ran.err or "runtime error" in ran.err:
        fail(ran.err[-3000:])
    for what in ran.said:
        is_borne = (traits & OVERLAPPING and what.endswith("of a list that still runs")) or (
            traits & (ORPHANING | LOSING) and what.startswith("context destroyed with")
        )
        if not is_borne:
            fail(f"the driver complains: {what}")
    if ran.status is None:
        return verdict
    bits = int(quirks.get("bits", 32))
    # Events that are watched are the program's own: of signallers that overlap it reads a mixture, as without us.
    is_mixed = resets == "watch" and int(quirks.get("workers", 1)) > 1
    own = own_results(ran, bits, exact=not is_mixed)
    verdict.readings = sum(words[0] in ("ticks", "written") for words in ran.journal)
    # Which operation a query means may not be known, or what it reads cannot be used again: that is said.
    false = [failure for failure in own if failure.startswith("the device wrote")]
    verdict.said = untimed.read(ran.folder)["user_query_untranslated"]
    is_false = bool(traits & ASKING or (traits & KEEPING and quirks.get("host_reset", "works") != "works"))
    if (verdict.said and row is None) or (is_false and bool(false) == bool(verdict.said)):
        verdict.false_readings = len(false)
        own = [failure for failure in own if failure not in false]
    verdict.failures += own
    _check_locks(ran, verdict)
    _check_levels(ran, verdict, quirks)
    if ran.status == 0 and not traits & (LEAVING | ORPHANING | LOSING):
        _check_left(ran, verdict)
    try:
        with Capture(ran.folder) as capture:
            found = recorded.read(capture)
    except Exception as error:
        fail(f"the recording cannot be read: {error}")
        return verdict
    _Comparison(ran, found.events, verdict, quirks, host_read, resets, traits, is_faulty).run()
    if timeline and not verdict.lost and not verdict.failures:
        _check_timeline(ran, verdict)
    return verdict


def _ticks(op: dict[str, Any]) -> tuple[int, int, int, int]:
    return op["start"], op["end"], op["context_start"], op["context_end"]


def _check_locks(ran: Ran, verdict: Verdict) -> None:
    calls = Counter(words[1] for words in ran.journal if words[0] == "lock")
    for call, count in calls.items():
        verdict.failures.append(f"{call} was called {count} times with a lock of the recorder's held")
    for words in ran.journal:
        if words[0] == "locks" and int(words[1]) == 0:
            verdict.failures.append("no lock of the recorder's was seen: the check is blind")


def _check_levels(ran: Ran, verdict: Verdict, quirks: Quirks) -> None:
    """Between two moments of a program that repeats itself nothing may have grown."""
    levels: dict[str, dict[str, int]] = {}
    for words in ran.journal:
        if words[0] == "level":
            levels.setdefault(words[2], {})[words[1]] = int(words[3])
    slack = {"memory.host": 8192, "heap": 65536, "live.event": 8, "live.pool": 8, "live.list": 0}
    for name, stages in levels.items():
        if name in slack and stages["end"] > stages["warm"] + slack[name]:
            verdict.failures.append(f"{name} grew from {stages['warm']} to {stages['end']}")


def _check_left(ran: Ran, verdict: Verdict) -> None:
    left = {
        name: number
        for name, number in ran.stats.items()
        if number and name.startswith(("live.", "memory.", "query_bytes")) and not name.endswith(".most")
    }
    for name in ("live.driver", "live.device"):
        left.pop(name, None)
    if left:
        verdict.failures.append(f"left behind: {left}")


def _check_timeline(ran: Ran, verdict: Verdict) -> None:
    """What lanescope makes of the recording: the same operations, with the names of their kernels."""
    trace = lanescope.open(ran.folder)
    table = trace.details.get("levelzero_operations")
    names = dict(zip(trace.slices["id"].tolist(), trace.slices["name"].tolist(), strict=True))
    kernels = {words[2]: words[8] for words in ran.journal if words[0] == "op"}
    wanted = Counter(
        (kernels[op["mark"]], *_ticks(op))
        for op in ran.truth
        if kernels.get(op["mark"], "-") not in ("-", "*") and op["mark"] not in verdict.untimed_marks
    )
    several = {_ticks(op) for op in ran.truth if kernels.get(op["mark"]) == "*"}
    found: Counter[tuple[Any, ...]] = Counter()
    if table is not None and len(table):
        columns = [table[name].tolist() for name in ("global_start", "global_end", "context_start", "context_end")]
        for slice_id, function, *ticks in zip(
            table["slice_id"].tolist(), table["function"].tolist(), *columns, strict=True
        ):
            if tuple(ticks) in several:
                continue  # called after one of its kernels
            if names[slice_id].startswith("op_"):
                found[names[slice_id], *ticks] += 1
            elif "LaunchKernel" in function:
                verdict.failures.append(f"a kernel is called {names[slice_id]}")
    if found != wanted:
        verdict.failures.append(
            f"the timeline's kernels differ: {list((found - wanted).items())[:3]} instead of "
            f"{list((wanted - found).items())[:3]}"
        )


class _Comparison:
    """Results against truth."""

    def __init__(
        self,
        ran: Ran,
        events: Any,
        verdict: Verdict,
        quirks: Quirks,
        host_read: bool,
        resets: str,
        traits: int,
        is_faulty: bool,
    ) -> None:
        self.ran, self.events, self.verdict, self.quirks = ran, events, verdict, quirks
        self.host_read, self.traits, self.is_faulty = host_read, traits, is_faulty
        is_sticky = quirks.get("host_reset", "works") != "works"
        self.watches, self.is_off = is_sticky and resets == "watch", is_sticky and resets == "off"

    def run(self) -> None:
        self._join()
        self._count()
        self._results()
        self._chains()
        self._due()
        self._unseen()

    def fail(self, text: str) -> None:
        self.verdict.failures.append(text)

    def _unseen(self) -> None:
        """What runs unseen is counted, in the trace and for standard error."""
        wanted = sum(int(words[1]) for words in self.ran.journal if words[0] == "unseen")
        table = self.events["degradations"]
        found = int(table["count"][table["reason"] == "captured"].sum())
        told = untimed.read(self.ran.folder)["captured"]
        if (found, told) != (wanted, wanted):
            self.fail(f"{found} and {told} operations of captured lists instead of {wanted}")

    def _join(self) -> None:
        """Find the number of each of the program's operations: those of a thread come in its order."""
        table, threads = self.events["appends"], self.events["threads"]["tid"].tolist()
        recorded: dict[str, list[tuple[int, str, str, str, int]]] = {}
        for thread, kind, *rest in zip(
            table["thread_id"].tolist(),
            table["kind"].tolist(),
            table["op_id"].tolist(),
            table["function"].tolist(),
            table["how"].tolist(),
            table["reason"].tolist(),
            table["list"].tolist(),
            strict=True,
        ):
            if kind == "signal":  # told, but no operation: it must have no result
                continue
            recorded.setdefault(str(threads[thread]), []).append(tuple(rest))  # type: ignore[arg-type]
        noted: dict[str, list[list[str]]] = {}
        for words in self.ran.journal:
            if words[0] == "op":
                noted.setdefault(words[1], []).append(words[2:])
        self.marks: dict[int, str] = {}
        self.how: dict[str, str] = {}
        self.has_signal: dict[str, bool] = {}
        lists: dict[tuple[str, str], int] = {}
        self.untimed = self.verdict.untimed_marks
        device_of = self._devices()
        ran_on = {op["mark"]: (op["device"], op["subdevice"]) for op in self.ran.truth}
        if {tid: len(ops) for tid, ops in recorded.items()} != {tid: len(ops) for tid, ops in noted.items()}:
            self.fail(
                f"{sum(map(len, recorded.values()))} operations recorded, {sum(map(len, noted.values()))} appended"
            )
        for tid, ops in noted.items():
            for (mark, name, life, engine, signal, api, _, _), (op_id, function, how, reason, list_id) in zip(
                ops, recorded.get(tid, []), strict=False
            ):
                if function != api:
                    self.fail(f"{mark}: {function} instead of {api}")
                    return
                if op_id in self.marks:
                    self.fail(f"two operations have the number {op_id}")
                self.marks[op_id], self.how[mark], self.has_signal[mark] = mark, how, signal == "1"
                if mark in ran_on and device_of.get(list_id) != ran_on[mark]:
                    self.fail(f"{mark}: on device {device_of.get(list_id)} instead of {ran_on[mark]}")
                if lists.setdefault((name, life), list_id) != list_id:
                    self.fail(f"{mark}: list {list_id} instead of {lists[name, life]}")
                if how == "UNTIMED":
                    self.verdict.untimed[reason] += 1
                    self.untimed.add(mark)
                    if not self._may_be_untimed(mark, reason):
                        self.fail(f"{mark} is not timed: {reason}")
                elif how not in self._ways(engine, signal == "1"):
                    self.fail(f"{mark} is timed by {how}")
        if len(set(lists.values())) != len(lists):
            self.fail("two lists have one number")
        self.verdict.timed = len(self.marks) - len(self.untimed)

    def _devices(self) -> dict[int, tuple[int, int]]:
        """Return the device of each list: its number, and that of the part of it from 1, as the driver's uuids say."""
        devices, lists = self.events["devices"], self.events["lists"]
        uuids = dict(zip(devices["device"].tolist(), devices["uuid"].tolist(), strict=True))
        found = {}
        for number, action, handle in zip(
            lists["list"].tolist(), lists["action"].tolist(), lists["device"].tolist(), strict=True
        ):
            if action != "destroy" and handle in uuids:
                uuid = bytes.fromhex(uuids[handle].replace("-", ""))
                found[number] = (uuid[1] - 1, uuid[2])
        return found

    def _may_be_untimed(self, mark: str, reason: str) -> bool:
        if self.traits & UNTIMED:
            return reason == "cloneable"
        if self.traits & (CAPTURING | CHANGING) and mark.startswith("C"):
            return reason == ("capturing" if self.traits & CAPTURING else "mutable")
        if self.traits & READING and reason == "read_by_device":
            return True
        if reason == "out_of_order_no_reset" and (self.watches or self.is_off):
            return True
        # The probe fails with what it needs.
        return self.is_faulty and reason in ("no_memory", "chain_failed", "out_of_order_no_reset", "device_error")

    def _ways(self, engine: str, has_signal: bool) -> set[str]:
        by_host = {"CHAINED"} if has_signal else {"BARE"}
        if self.watches:
            return by_host | {"INLINE"} | {"WATCH" if has_signal else "BARE"}
        if self.is_faulty or "query_limit" in self.quirks:
            return {"INLINE", "CHAINED", "BARE"}
        return {"INLINE"} if engine == "compute" and not self.host_read else by_host

    def _is_unclear(self, mark: str) -> bool:
        """Whether the host reads an event that stays signalled, of runs that overlap: their results may be given up."""
        is_sticky = self.quirks.get("host_reset", "works") != "works"
        return bool(self.traits & OVERLAPPING) and is_sticky and self.how.get(mark) in ("BARE", "WATCH")

    def _count(self) -> None:
        """No two results of one run; nothing lost, unless it may be."""
        results = self.events["results"]
        self.seq: dict[tuple[str, int], int] = {}
        self.found: dict[tuple[str, int], tuple[int, ...]] = {}
        for op_id, run, seq, status, *ticks in zip(
            results["op_id"].tolist(),
            results["run"].tolist(),
            results["seq"].tolist(),
            results["timestamp_status"].tolist(),
            *(results[name].tolist() for name in ("global_start", "global_end", "context_start", "context_end")),
            strict=True,
        ):
            mark = self.marks.get(op_id)
            if mark is None:
                self.fail(f"a result of operation {op_id}, which was never appended")
            elif (mark, run) in self.found:
                self.fail(f"{mark}, run {run}: two results")
            elif status not in ("ZE_RESULT_SUCCESS", ""):
                self.fail(f"{mark}, run {run}: {status}")
            else:
                self.found[mark, run], self.seq[mark, run] = tuple(ticks), seq
        self.verdict.results = len(self.found)
        self.verdict.runs = sum(op["mark"] in self.how for op in self.ran.truth)
        losses = self.events["losses"]
        self.lost: set[tuple[str, int]] = set()
        for op_id, run, reason in zip(
            losses["op_id"].tolist(), losses["run"].tolist(), losses["reason"].tolist(), strict=True
        ):
            key = (self.marks.get(op_id, f"operation {op_id}"), run)
            if key in self.lost or key in self.found:
                self.fail(f"{key[0]}, run {run}: lost and found")
            self.lost.add(key)
            self.verdict.lost += 1
            if self.watches and reason in ("shared_event", "event_destroyed") and self.how.get(key[0]) == "WATCH":
                continue
            if reason == "overlapping" and self._is_unclear(key[0]):
                continue
            if self.traits & CAPTURING and reason == "captured" and key[0].startswith("K"):
                continue
            if self.traits & LOSING and reason in ("device_error", "not_drained"):
                continue
            if not (self.is_faulty or (self.traits & LEAVING and reason == "not_drained")):
                self.fail(f"{key[0]}, run {run}: lost ({reason})")

    def _results(self) -> None:
        wanted = {
            (op["mark"], op["run"]): _ticks(op)
            for op in self.ran.truth
            if op["mark"] in self.how and op["mark"] not in self.untimed
        }
        for key in wanted.keys() - self.found.keys() - self.lost:
            self.fail(f"{key[0]}, run {key[1]}: no result")
        for key in self.found.keys() - wanted.keys():
            self.fail(f"{key[0]}, run {key[1]}: a result, but it did not run")
        for key in wanted.keys() & self.found.keys():
            if wanted[key] != self.found[key]:
                self.fail(f"{key[0]}, run {key[1]}: {self.found[key]} instead of {wanted[key]}")

    def _chains(self) -> None:
        """The recorder's own commands: one for each timed operation, never before it has ended, no others."""
        places: dict[tuple[int, int, int], list[dict[str, Any]]] = {}
        for op in self.ran.truth:
            places.setdefault((op["list"], op["life"], op["run"]), []).append(op)
        for ops in places.values():
            if not any(op["mark"] for op in ops) or all(op["api"] in PROLOGUE for op in ops):
                continue  # a list of the recorder's own, which may have got a mark that was meant for an Execute
            last: dict[int, dict[str, Any]] = {}
            chained: Counter[str] = Counter()
            for op in sorted(ops, key=lambda op: op["index"]):
                if op["mark"]:
                    last[op["signal"]] = op
                    continue
                if len(op["waits"]) != 1 or op["waits"][0] not in last:
                    self.fail(f"the recorder appends a {op['api']} that belongs to no operation")
                    continue
                of = last[op["waits"][0]]
                mark = of["mark"]
                chained[mark] += 1
                if op["host_start_ns"] < of["host_end_ns"]:
                    self.fail(f"{mark}, run {op['run']}: its signal is handed on before it has ended")
                if self.has_signal.get(mark, False) != (op["signal"] != 0):
                    self.fail(f"{mark}: its signal is {'lost' if self.has_signal.get(mark) else 'not its own'}")
                if op["api"] == QUERY and self.host_read:
                    self.fail(f"{mark}: a query, though the host reads")
            for op in ops:
                how = self.how.get(op["mark"])
                expected = 1 if how in ("INLINE", "CHAINED") else 0
                may_lack = self.is_faulty or (self.traits & (LEAVING | LOSING) and (op["mark"], op["run"]) in self.lost)
                if how is not None and not may_lack and chained[op["mark"]] != expected:
                    self.fail(f"{op['mark']}, run {op['run']}: {how}, but {chained[op['mark']]} commands behind it")

    def _due(self) -> None:
        """Results are recorded as soon as the program can know the end of the operation."""
        dues = [words[1:] for words in self.ran.journal if words[0] == "due"]
        if not dues:
            return
        calls, threads = self.events["calls"], self.events["threads"]["tid"].tolist()
        is_marker = (calls["function"] == "zeDriverGetApiVersion") & ~calls["is_exit"]
        rows = np.flatnonzero(is_marker)
        seqs: dict[str, list[int]] = {}
        for thread, seq in zip(calls["thread_id"][rows].tolist(), calls["seq"][rows].tolist(), strict=True):
            seqs.setdefault(str(threads[thread]), []).append(seq)
        numbers = Counter(tid for tid, _ in {(tid, number) for tid, number, _, _ in dues})
        for tid, number, mark, run in dues:
            extra = len(seqs.get(tid, [])) - numbers[tid]  # loaders may ask first
            key = (mark, int(run))
            if mark in self.untimed or (self.watches and key in self.lost):
                continue
            if extra < 0:
                self.fail("calls are missing in the recording")
                return
            if key not in self.seq or self.seq[key] > seqs[tid][int(number) + extra]:
                self.fail(f"{mark}, run {run}: recorded late")
