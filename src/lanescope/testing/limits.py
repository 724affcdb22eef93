"""What the markers of the pytest plugin measure: lost data, findings, idle time, regressions of captures."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import lanescope
from lanescope.errors import InputError, LanescopeError
from lanescope.view.formatting import escape, format_count, format_duration

if TYPE_CHECKING:
    from lanescope import Trace
    from lanescope.analysis.compare.comparison import Effect

__all__ = ["LIMITS", "Captures", "LanescopeError", "measure"]

_SEVERITIES = ("notice", "warning", "error")
#: Rows of a report: enough to see what is wrong, the command has the rest.
_ROWS = 8
#: Columns of the identity of slices, where the baseline does not have its own.
_GROUPS = ("name", "lane_kind")
#: The ratio where there is none: something where nothing may be.
_INFINITE = 1e9


# --- captures -----------------------------------------------------------------------------------------------------


class Opened(NamedTuple):
    """A capture of a test.

    Attributes:
        trace: its trace.
        path: of its file or folder; empty for a capture in memory.
    """

    trace: Trace
    path: str

    @property
    def name(self) -> str:
        """What reports call it."""
        return escape(self.path) if self.path else "the capture in memory"

    def command(self, verb: str, *arguments: str) -> str:
        """Return the command line that shows more; empty for a capture in memory."""
        return shlex.join(["lanescope", verb, self.path, *arguments]) if self.path else ""


class Captures:
    """Opens captures for a test, and keeps them until its markers are enforced.

    Args:
        folder: where recordings are written.
    """

    def __init__(self, folder: Path) -> None:
        self.opened: list[Opened] = []
        self._folder = folder

    def __call__(self, source: Any, **options: Any) -> Trace:
        """Open a capture.

        Args:
            source: what ``lanescope.open`` takes, or a trace.
            **options: as there.

        Raises:
            LanescopeError: as there.
        """
        if isinstance(source, lanescope.Trace):
            self.opened.append(Opened(source, ""))
            return source
        trace = lanescope.open(source, **options)
        path = os.path.abspath(source) if isinstance(source, str | os.PathLike) else ""  # noqa: PTH100
        self.opened.append(Opened(trace, str(path)))
        return trace

    def record(self, command: Sequence[str | os.PathLike[str]], *arguments: str, timeout: float | None = None) -> Trace:
        """Run a program under ``lanescope record``, and open what it recorded.

        Args:
            command: the program and its arguments.
            *arguments: options of ``lanescope record``.
            timeout: seconds after which the program is stopped.

        Raises:
            InputError: the program failed, took too long, or recorded nothing.
        """
        folder = self._folder / f"recording-{len(self.opened)}"
        words = [os.fspath(word) for word in command]
        program = [sys.executable, "-m", "lanescope", "record", "-o", str(folder), *arguments, "--", *words]
        try:
            done = subprocess.run(program, check=False, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise InputError(
                f"{shlex.join(words)}: still running after {timeout} s", hint="use a longer timeout"
            ) from None
        if done.returncode:
            reason = f"{shlex.join(words)}: exit status {done.returncode}"
            raise InputError(reason, hint="see the captured output of the test")
        return self(folder)


# --- limits -------------------------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """A value and its limit.

    Attributes:
        marker: name of the marker.
        holds: whether the value is within the limit.
        ratio: value divided by limit.
        text: both in words.
        command: command line that shows more; may be empty.
        rows: lines of the report that name the rows.
    """

    marker: str
    holds: bool
    ratio: float
    text: str
    command: str
    rows: Sequence[str] = ()


class Limit(Protocol):
    """What a marker sets."""

    def measured(self, capture: Opened) -> Iterator[Measured]:
        """Yield what is measured of a capture."""


def measure(limits: Sequence[Limit], captures: Sequence[Opened]) -> tuple[str, list[str]]:
    """Measure captures.

    Returns:
        What was measured, as JSON; and a text for each limit that does not hold: its first line is the summary.
    """
    found = [each for limit in limits for capture in captures for each in limit.measured(capture)]
    texts = []
    for each in found:
        if not each.holds:
            look = each.command or "pass a path to the fixture to get a command that shows more"
            texts.append("\n".join((f"{each.marker}: {each.text}", *each.rows, f"  {look}")))
    kept = [{name: value for name, value in each._asdict().items() if name != "rows"} for each in found]
    return json.dumps(kept), texts


def _ratio(value: float, limit: float) -> float:
    return value / limit if limit else float(value > 0) * _INFINITE


class MaxLost:
    """At most so many lost records, bytes and other units.

    Args:
        count: the limit.
    """

    def __init__(self, count: int) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(f"invalid count {count!r}: expected a non-negative integer")
        self._count = count

    def measured(self, capture: Opened) -> Iterator[Measured]:
        """Yield the sum of what is lost."""
        from lanescope.pipeline import diagnostics

        losses = diagnostics.described_losses(capture.trace)
        lost = sum(losses.values())
        stats = [row for row in capture.trace.stats.rows() if row["severity"] == "data_loss"]
        rows = [f"  {count:,} {escape(what)}" for what, count in losses.items()]
        for row in stats[:_ROWS]:
            place = "" if row["first_offset"] is None else f", first at offset {row['first_offset']:#x}"
            rows.append(f"  stats row {row['id']}: {escape(row['name'])}, count {row['count']:,}{place}")
        text = f"{lost:,} lost in {capture.name}, limit {self._count:,}"
        command = capture.command("check", "--select", "LS002", "--show", "LS002")
        yield Measured("max_lost", lost <= self._count, _ratio(lost, self._count), text, command, rows)


class NoFindings:
    """No finding of some rules.

    Args:
        select: codes or prefixes of rules, as text with commas or a sequence; empty: all.
        ignore: codes or prefixes to leave aside.
        fail_on: lowest severity that counts.
    """

    def __init__(
        self, select: str | Sequence[str] = (), ignore: str | Sequence[str] = (), fail_on: str = "warning"
    ) -> None:
        from lanescope.analysis import check

        if fail_on not in _SEVERITIES:
            raise ValueError(f"invalid fail_on {fail_on!r} (choose from {', '.join(_SEVERITIES)})")
        self._select, self._ignore = _codes(select), _codes(ignore)
        self._severities = _SEVERITIES[_SEVERITIES.index(fail_on) :]
        if not check.rules(self._select, self._ignore):
            raise ValueError("no rule is left to apply")

    def measured(self, capture: Opened) -> Iterator[Measured]:
        """Yield the number of findings."""
        found = lanescope.check(capture.trace, select=self._select, ignore=self._ignore)
        wrong = [each for each in found if each.severity in self._severities]
        rows = []
        for each in wrong[:_ROWS]:
            place = escape(each.location.track or each.location.input)
            rows.append(f"  {each.code} {each.severity}: {each.title}: {escape(each.detail)} ({place})")
            ids = ", ".join(map(str, each.evidence.sample[:_ROWS]))
            more = len(each.evidence.ids) - _ROWS
            rows.append(f"    rows of {each.evidence.table}: {ids}{f' and {more} more' if more > 0 else ''}")
        if len(wrong) > _ROWS:
            rows.append(f"  {len(wrong) - _ROWS} more")
        codes = ",".join(dict.fromkeys(each.code for each in wrong))
        text = f"{format_count(len(wrong), 'finding')} in {capture.name}{f': {codes}' if codes else ''}"
        command = capture.command("check", "--show", codes) if codes else ""
        yield Measured("no_findings", not wrong, _ratio(len(wrong), 0), text, command, rows)


def _codes(given: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(filter(None, given.split(","))) if isinstance(given, str) else tuple(given)


class MaxIdle:
    """At most this share of the recorded time of lanes is idle.

    Args:
        share: the limit, from 0 to 1.
        by: whose lanes are added up: device, group, lane, all.
        waiting: count time in which lanes wait, too.
    """

    def __init__(self, share: float, by: str = "device", *, waiting: bool = False) -> None:
        from lanescope.analysis.phases import BY

        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ValueError(f"invalid share {share!r}: expected a number from 0 to 1")
        if by not in BY:
            raise ValueError(f"invalid by {by!r} (choose from {', '.join(BY)})")
        self._share, self._by = share, by
        self._states = ("idle", "waiting") if waiting else ("idle",)

    def measured(self, capture: Opened) -> Iterator[Measured]:
        """Yield the share of each owner of lanes."""
        owners: dict[str, dict[str, int]] = {}
        for row in lanescope.phases(capture.trace, self._by).rows():
            states = owners.setdefault(row["track"] or "all lanes", {})
            states[row["state"]] = states.get(row["state"], 0) + row["total"]
        recorded = {name: sum(times.values()) - times.get("not recorded", 0) for name, times in owners.items()}
        if not any(recorded.values()):
            reason = f"no time of {capture.name} is recorded: its idle share is unknown, limit {self._share:.1%}"
            yield Measured("max_idle", holds=False, ratio=_INFINITE, text=reason, command=capture.command("phases"))
            return
        unit = capture.trace.time.time_unit
        for name, times in owners.items():
            if not recorded[name]:
                continue
            idle = sum(times.get(state, 0) for state in self._states)
            share, whole = idle / recorded[name], sum(times.values())
            text = (
                f"{escape(name)} is {' or '.join(self._states)} for {share:.1%} of its recorded time in {capture.name}"
            )
            missing = times.get("not recorded", 0)
            text += f", limit {self._share:.1%}" + (f" ({missing / whole:.1%} not recorded)" if missing else "")
            holds = share <= self._share
            rows = [] if holds else self._rows(capture, unit)
            command = capture.command("gaps")
            yield Measured("max_idle", holds, _ratio(share, self._share), text, command, rows)

    @staticmethod
    def _rows(capture: Opened, unit: str) -> list[str]:
        return [
            f"  {escape(row['track'])}: {row['state']} for {format_duration(row['dur'], unit)} from {row['ts']} {unit}"
            for row in lanescope.longest_gaps(capture.trace, _ROWS).rows()
        ]


class MaxRegression:
    """A metric is at most this share above that of a baseline.

    Args:
        baseline: folder of ``lanescope baseline``, one file of it, or a capture.
        metric: ``busy`` (self time of all slices), ``span`` (first to last time), or a statistic of the slices of a
            name: ``total(NAME)``, ``count(NAME)``, ``mean(NAME)``, ``median(NAME)``, ``p99(NAME)``.
        tolerance: the share, 0.05 for 5 %.
    """

    def __init__(self, baseline: str | os.PathLike[str], metric: str = "busy", tolerance: float = 0.05) -> None:
        from lanescope.analysis.compare.comparison import STATISTICS

        if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance < _INFINITE:
            raise ValueError(f"invalid tolerance {tolerance!r}: expected a share, 0.05 for 5 %")
        self._statistic, _, name = metric.partition("(")
        self._name = name[:-1] if name.endswith(")") else None
        if metric not in ("busy", "span") and not (self._statistic in STATISTICS and self._name):
            known = ", ".join(f"{each}(NAME)" for each in STATISTICS)
            raise ValueError(f"invalid metric {metric!r} (choose from busy, span, {known})")
        self._path, self._metric, self._tolerance = os.fspath(baseline), metric, tolerance
        if not Path(self._path).exists():
            raise ValueError(f"baseline {self._path!r} not found")

    def measured(self, capture: Opened) -> Iterator[Measured]:
        """Yield the change of the metric, of each group of slices of its name."""
        from lanescope.pipeline import comparing

        if comparing.is_baseline(self._path):
            runs = comparing.read_baseline(self._path)
        elif comparing.is_summary(self._path):
            runs = [comparing.read_summary(self._path)]
        else:
            runs = [comparing.summarize(lanescope.open(self._path), self._path, _GROUPS)]
        found = comparing.compare(runs, comparing.summarize(capture.trace, capture.path or "capture", runs[0].by))
        rows = [
            f"  recorded differently, {each.kind}: {escape(each.name)}: {escape(each.detail)}"
            for each in found.conditions[:_ROWS]
        ]
        command = ""
        if capture.path:
            command = shlex.join(["lanescope", "diff", self._path, "--", capture.path])
        effects: dict[str, Effect] = {}
        if self._name is None:
            effects[self._metric] = found.overall[self._metric]
        else:
            for group in found.groups:
                named = dict(zip(found.by, group.key, strict=True))
                if named.get("name") == self._name:
                    others = ", ".join(value for column, value in named.items() if column != "name" and value)
                    effects[f"{self._metric}{f' of {others}' if others else ''}"] = group.effects[self._statistic]
        if not effects:
            text = f"no slices {self._name!r} in {capture.name} or the baseline {self._path}"
            yield Measured(
                "max_regression", holds=False, ratio=_INFINITE, text=escape(text), command=command, rows=rows
            )
        for what, effect in effects.items():
            yield self._of(effect, what, found.unit, capture, command, rows)

    def _of(self, effect: Effect, what: str, unit: str, capture: Opened, command: str, rows: Sequence[str]) -> Measured:
        limit = f"limit {self._tolerance:+.1%}"
        if effect.change is None:
            missing = capture.name if effect.a is not None else f"the baseline {self._path}"
            text = escape(f"{what} is unknown in {missing}, {limit}")
            return Measured("max_regression", holds=False, ratio=_INFINITE, text=text, command=command, rows=rows)
        usual = ""
        if effect.low is not None and effect.high is not None:
            usual = f" (interval of the baseline: {effect.low:+.1%} to {effect.high:+.1%})"
        text = f"{what} changed by {effect.change:+.2%} in {capture.name}{usual}, {limit}"
        holds = effect.change <= self._tolerance
        values = f"  {escape(what)}: {effect.a:,.6g} -> {effect.b:,.6g}{'' if 'count' in what else f' {unit}'}"
        ratio = _ratio(max(effect.change, 0.0), self._tolerance)
        return Measured("max_regression", holds, ratio, escape(text), command, [values, *rows])


#: Marker -> the limit that it sets.
LIMITS: dict[str, Any] = {
    "max_lost": MaxLost,
    "no_findings": NoFindings,
    "max_idle": MaxIdle,
    "max_regression": MaxRegression,
}
