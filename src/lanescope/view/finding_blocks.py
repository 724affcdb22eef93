"""Findings for people: a block for each rule, with a line for each location and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lanescope.view.formatting import display_width, escape, fit_width, format_count, format_duration
from lanescope.view.model.numbers import number_text
from lanescope.view.tables.layout import wrapped

if TYPE_CHECKING:
    from lanescope.analysis.check import Finding
    from lanescope.analysis.check.impact import Impact

#: Characters before a location, and those that a path keeps on a narrow terminal.
_INDENT, _LEAST_PATH = 4, 24
#: A text with less room than this goes below its location.
_LEAST_TEXT = 30
#: Below this share one decimal shows nothing.
_SMALL = 0.0005
#: Colors of terminals: red, yellow, cyan.
_COLORS = {"error": 31, "warning": 33, "notice": 36}


def blocks(
    findings: Sequence[Finding],
    shown: Sequence[Finding],
    capture: str,
    unit: str,
    width: int = 0,
    *,
    is_colored: bool = False,
) -> Iterator[str]:
    """Yield the lines.

    Args:
        findings: all findings.
        shown: those that have a line of their own; how many others a rule has is stated.
        capture: path of the capture: findings about the whole of it do not repeat it.
        unit: unit of times.
        width: columns of a line; 0: any number, and nothing is shortened.
        is_colored: whether severities have their color.
    """
    hidden = Counter(finding.code for finding in findings) - Counter(finding.code for finding in shown)
    yield escape(capture)
    for code in dict.fromkeys(finding.code for finding in findings):
        of_rule = [finding for finding in findings if finding.code == code]
        heading, *rest = wrapped(_heading(of_rule), width, " " * _INDENT)
        yield _colored(heading) if is_colored else heading
        yield from rest
        yield from _locations([finding for finding in shown if finding.code == code], capture, unit, width)
        if hidden[code]:
            more = f"{' ' * _INDENT}... {hidden[code]:,} more locations (use --all or --json)"
            yield from wrapped(more, width, " " * _INDENT)
        for help in dict.fromkeys(finding.help for finding in of_rule):
            yield from wrapped(f"  help: {escape(help)}", width, " " * 8)


def _colored(heading: str) -> str:
    """Return a heading whose severities, which come before its colon, have their colors."""
    severities, colon, title = heading.partition(":")
    for severity, color in _COLORS.items():
        severities = severities.replace(severity, f"\x1b[{color}m{severity}\x1b[0m")
    return severities + colon + title


def _heading(findings: Sequence[Finding]) -> str:
    first = findings[0]
    severities = " and ".join(dict.fromkeys(finding.severity for finding in findings))
    total = sum(finding.count for finding in findings)
    places = f" in {format_count(len(findings), 'location')}" if len(findings) > 1 else ""
    return f"{first.code} {severities}: {first.title}, {total:,}{places}"


def _locations(findings: Sequence[Finding], capture: str, unit: str, width: int) -> Iterator[str]:
    paths = [_path(finding, capture) for finding in findings]
    moments = [_moment(finding, unit) for finding in findings]
    room = max(_LEAST_PATH, (width - _INDENT) // 3) if width else 0
    widest = max(map(display_width, paths), default=0)
    at = min(widest, room) if room else widest
    right = max(map(display_width, moments), default=0)
    for finding, path, moment in zip(findings, paths, moments, strict=True):
        shown = fit_width(path, at) if display_width(path) > at else path + " " * (at - display_width(path))
        place = f"{' ' * _INDENT}{shown}  {' ' * (right - display_width(moment))}{moment}".rstrip()
        text = _text(finding)
        indent = " " * (_INDENT + at + 2 + right + 2)
        if width and width - len(indent) < _LEAST_TEXT:
            yield place
            indent = " " * (_INDENT + 2)
            yield from wrapped(indent + text, width, indent)
        else:
            start = f"{place}{' ' * (len(indent) - display_width(place))}"
            first, *more = wrapped(indent + text, width, indent)
            yield start + first[len(indent) :]
            yield from more
        if finding.impact is not None and finding.impact.is_large:
            indent = " " * (_INDENT + 2)
            yield from wrapped(indent + impact_text(finding.impact, unit), width, indent)


def _path(finding: Finding, capture: str) -> str:
    path = finding.location.track or finding.location.input
    return "(all of it)" if not path or path == capture else escape(path.removeprefix(f"{capture.rstrip('/')}/"))


def _moment(finding: Finding, unit: str) -> str:
    place = finding.location
    if place.ts is not None:
        return number_text(place.ts, "exact", unit)
    return "" if place.offset is None else f"offset {place.offset:#x}"


def _text(finding: Finding) -> str:
    share = finding.affected_fraction or 0.0
    affected = f", {share:.1%} of the covered time" if share >= _SMALL else ""
    if not finding.detail:
        return f"{format_count(finding.count, 'time')}{affected}"
    is_told = finding.count == 1 or finding.detail.startswith((f"{finding.count} ", f"{finding.count:,} "))
    count = "" if is_told else f"{finding.count:,} x "
    return f"{count}{escape(finding.detail)}{affected}"


def impact_text(impact: Impact, unit: str) -> str:
    """Return what the totals are with and without what a finding concerns, in one line."""
    if impact.basis == "count":
        return f"at least {impact.counted_fraction or 0.0:.1%} of what was counted is concerned; lanes unknown"
    total, without, window, left = (
        format_duration(length, unit)
        for length in (impact.total, impact.total_without, impact.window, impact.window_without)
    )
    if impact.basis == "lanes":
        busy = f"{impact.busy_fraction or 0.0:.1%} of the busy time"
        return (
            f"at most {format_count(impact.lanes, 'lane')} with {busy}; without all slices there "
            f"total {total} -> {without}, window {window} -> {left}"
        )
    line = f"without these slices total {total} -> {without}"
    if impact.total_clipped is not None:
        line += f" (shortened to the next start: {format_duration(impact.total_clipped, unit)})"
    line += f", window {window} -> {left}"
    return line + ("; the largest names or lanes change order" if impact.changes_order else "")


def sums(findings: Sequence[Finding], rules: int) -> str:
    """Return how many findings there are, by severity."""
    counts = Counter(finding.severity for finding in findings)
    parts = [format_count(counts[name], name) for name in ("error", "warning", "notice") if counts[name]]
    return f"Found {format_count(len(findings), 'finding')}: {', '.join(parts)} ({format_count(rules, 'rule')})."
