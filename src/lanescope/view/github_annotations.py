"""Annotations of GitHub Actions: a line per finding, which a workflow shows at the run and at the pull request.

Source: GitHub, Workflow commands for GitHub Actions, "Setting a notice / warning / error message".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from lanescope.view.formatting import escape

#: What ends a command, or a property of it, in its text.
_TEXT = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


class Finding(Protocol):
    """Attributes of a finding, as ``analysis.check`` makes it."""

    def to_dict(self) -> dict[str, Any]: ...  # noqa: D102


def lines(findings: Iterable[Finding], artifact: str = "") -> Iterator[str]:
    """Yield a workflow command for each finding.

    Args:
        findings: the findings.
        artifact: path of the capture, for findings that name no input.

    Example:
        >>> class Lost:
        ...     def to_dict(self):
        ...         place = {"input": "run.bin", "track": "core (1, 2)", "offset": 996}
        ...         return {"code": "LS002", "severity": "warning", "title": "lost data", "detail": "100%", "count": 1,
        ...                 "location": place, "help": "Record again."}
        >>> print(*lines([Lost()]))
        ::warning title=LS002%3A lost data,file=run.bin::100%25; core (1, 2), offset 0x3e4; count: 1%0ARecord again.
    """
    for finding in findings:
        told = finding.to_dict()
        place = told["location"]
        where = [place["track"], "" if place["offset"] is None else f"offset {place['offset']:#x}"]
        parts = [told["detail"] or told["title"], ", ".join(filter(None, where)), f"count: {told['count']}"]
        properties = {"title": f"{told['code']}: {told['title']}", "file": place["input"] or artifact}
        text = "\n".join((escape("; ".join(filter(None, parts))), escape(told["help"])))
        yield command(told["severity"], text, **{name: escape(value) for name, value in properties.items() if value})


def command(severity: str, text: str, **properties: str) -> str:
    """Return a workflow command; ``severity`` is one of a finding, which are those of GitHub as well."""
    listed = ",".join(f"{name}={value.translate(_PROPERTY)}" for name, value in properties.items())
    return f"::{severity}{' ' if listed else ''}{listed}::{text.translate(_TEXT)}"
