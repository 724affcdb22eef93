"""Annotations of GitHub Actions: a line per finding, which a workflow shows at the run and at the pull request.

Source: GitHub, Workflow commands for GitHub Actions, "Setting a notice / warning / error message"; the limits of a step
are those of its runner (``_maxCountPerIssueType``, ``_maxIssueMessageLength``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from lanescope.view.formatting import escape, format_count

#: What ends a command, or a property of it, in its text.
_TEXT = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})
#: Annotations of one level that a step may have: the runner only logs all further ones.
PER_LEVEL = 10
#: Characters of a message, and of a title, all of which is shown: the runner cuts messages at 4,096 units of UTF-16.
_LONGEST, _LONGEST_TITLE = 2_000, 200
#: Rows of a table that fit an annotation.
_ROWS = 10


class Finding(Protocol):
    """Attributes of a finding, as ``analysis.check`` makes it."""

    def to_dict(self) -> dict[str, Any]: ...  # noqa: D102


def lines(findings: Sequence[Finding], artifact: str = "", *, is_all: bool = False) -> Iterator[str]:
    """Yield a workflow command for each finding that a step may annotate, and one that counts the others by rule.

    Each rule has its turn before any has a second one: what is found everywhere does not use up the ten annotations.

    Args:
        findings: the findings.
        artifact: path of the capture, for findings that name no input.
        is_all: annotate all, whatever the service shows of them.

    Example:
        >>> class Lost:
        ...     def to_dict(self):
        ...         place = {"input": "run.bin", "track": "core (1, 2)", "offset": 996}
        ...         return {"code": "LS002", "severity": "warning", "title": "lost data", "detail": "100%", "count": 1,
        ...                 "location": place, "help": "Record again."}
        >>> print(*lines([Lost()]))
        ::warning file=run.bin,title=LS002%3A lost data::100%25; core (1, 2), offset 0x3e4; count: 1%0ARecord again.
    """
    listed = [finding.to_dict() for finding in findings]
    shown = range(len(listed)) if is_all else _chosen([(each["severity"], each["code"]) for each in listed])
    for place in shown:
        yield _line(listed[place], artifact)
    hidden = Counter(each["code"] for each in listed) - Counter(listed[place]["code"] for place in shown)
    if hidden:
        more = format_count(hidden.total(), "more finding")
        by_rule = ", ".join(f"{code} ({count})" for code, count in hidden.items())
        text = (
            f"{more} without an annotation: {by_rule}; GitHub shows {PER_LEVEL} of each level per step\n"
            "Run 'lanescope check' without --format to list all."
        )
        yield command("notice", text, file=artifact, title="lanescope check")


def limited(entries: Sequence[tuple[str, str, str, str]], artifact: str, rest: str) -> Iterator[str]:
    """Yield annotations of a few kinds, as many as a step may have, and one that counts the others.

    Args:
        entries: severity, kind, title and text of each.
        artifact: path of the capture.
        rest: what shows all of them.
    """
    shown = _chosen([(severity, kind) for severity, kind, _, _ in entries])
    for place in shown:
        severity, _, title, text = entries[place]
        yield command(severity, _cut(escape(text), _LONGEST), file=artifact, title=title)
    if len(shown) < len(entries):
        text = (
            f"{len(entries) - len(shown)} more without an annotation; GitHub shows {PER_LEVEL} of each level per step"
        )
        yield command("notice", f"{text}\n{rest}", file=artifact, title="lanescope")


def _chosen(listed: Sequence[tuple[str, str]]) -> list[int]:
    """Return which of (severity, kind) to annotate, in their order."""
    seen: Counter[str] = Counter()
    by_level: dict[str, list[tuple[int, int]]] = {}
    for place, (severity, kind) in enumerate(listed):
        by_level.setdefault(severity, []).append((seen[kind], place))
        seen[kind] += 1
    room = dict.fromkeys(by_level, PER_LEVEL)
    if any(len(places) > PER_LEVEL for places in by_level.values()):
        room["notice"] = PER_LEVEL - 1  # the last one counts what is not shown
    return sorted(place for level, places in by_level.items() for _, place in sorted(places)[: room[level]])


def _line(finding: Mapping[str, Any], artifact: str) -> str:
    place = finding["location"]
    where = [place["track"], "" if place["offset"] is None else f"offset {place['offset']:#x}"]
    parts = [finding["detail"] or finding["title"], ", ".join(filter(None, where)), f"count: {finding['count']}"]
    help = escape(finding["help"])
    text = _cut(escape("; ".join(filter(None, parts))), _LONGEST - len(help))
    title = f"{finding['code']}: {finding['title']}"
    return command(finding["severity"], f"{text}\n{help}", file=place["input"] or artifact, title=title)


def table_line(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], total: int, artifact: str) -> str:
    """Return the annotation that has the first rows of a table, a line each, and how many more there are.

    Args:
        title: of the annotation.
        columns: names of the columns.
        rows: their values as text.
        total: number of rows of the whole table.
        artifact: path of the capture.
    """
    listed = []
    for row in rows[:_ROWS]:
        values = [f"{name} {value}" for name, value in zip(columns[1:], row[1:], strict=True) if value]
        listed.append(_cut(escape(f"{row[0] or '(empty)'}: {', '.join(values)}"), _LONGEST // (_ROWS + 1)))
    if total > len(listed):
        listed.append(f"{total - len(listed)} more rows")
    return command("notice", "\n".join(listed) or "no rows", file=artifact, title=title)


def command(severity: str, text: str, **properties: str) -> str:
    """Return a workflow command; ``severity`` is one of a finding, which are those of GitHub as well."""
    plain = {
        name: escape(_cut(value, _LONGEST_TITLE) if name == "title" else value) for name, value in properties.items()
    }
    listed = ",".join(f"{name}={value.translate(_PROPERTY)}" for name, value in plain.items() if value)
    return f"::{severity}{' ' if listed else ''}{listed}::{text.translate(_TEXT)}"


def _cut(text: str, length: int) -> str:
    """Return a text with its middle removed where it is longer."""
    if len(text) <= length:
        return text
    half = max(length - 3, 0) // 2
    return f"{text[:half]}...{text[len(text) - half :]}"
