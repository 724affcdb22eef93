"""SARIF 2.1.0: findings for code scanners and review tools.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

_LEVELS = {"notice": "note", "warning": "warning", "error": "error"}


class Rule(Protocol):
    """Attributes of a rule, as ``analysis.check`` declares it."""

    @property
    def code(self) -> str: ...  # noqa: D102
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def severity(self) -> str: ...  # noqa: D102
    @property
    def description(self) -> str: ...  # noqa: D102
    @property
    def help(self) -> str: ...  # noqa: D102


class Finding(Protocol):
    """Attributes of a finding, as ``analysis.check`` makes it."""

    def to_dict(self) -> dict[str, Any]: ...  # noqa: D102


def document(findings: Iterable[Finding], rules: Iterable[Rule], artifact: str = "", *, version: str) -> dict[str, Any]:
    """Return a SARIF log of one run.

    Args:
        findings: the findings.
        rules: the rules that were applied.
        artifact: path of the capture, for findings that name no input.
        version: of lanescope, which made them.
    """
    described = [
        {
            "id": rule.code,
            "name": "".join(word.capitalize() for word in rule.title.split()),
            "shortDescription": {"text": rule.title},
            "fullDescription": {"text": rule.description},
            "help": {"text": rule.help},
            "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        }
        for rule in rules
    ]
    index = {str(rule["id"]): number for number, rule in enumerate(described)}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "lanescope",
                        "version": version,
                        "rules": described,
                    }
                },
                "results": [_result(finding.to_dict(), index, artifact) for finding in findings],
            }
        ],
    }


def _result(finding: dict[str, Any], index: dict[str, int], artifact: str) -> dict[str, Any]:
    place = finding["location"]
    text = ": ".join(filter(None, (finding["title"], finding["detail"])))
    location: dict[str, Any] = {}
    path = place["input"] or artifact
    if path:
        location["physicalLocation"] = {"artifactLocation": {"uri": _uri(path)}}
        if place["offset"] is not None:
            location["physicalLocation"]["region"] = {"byteOffset": place["offset"], "byteLength": 0}
    if place["track"]:
        location["logicalLocations"] = [{"fullyQualifiedName": place["track"], "kind": "resource"}]
    return {
        "ruleId": finding["code"],
        "ruleIndex": index[finding["code"]],
        "level": _LEVELS[finding["severity"]],
        "message": {"text": text},
        "locations": [location] if location else [],
        "occurrenceCount": max(1, finding["count"]),
        "properties": {
            "stat": finding["stat"],
            "ts": place["ts"],
            "affected_fraction": finding["affected_fraction"],
            "affected_lane_fraction": finding["affected_lane_fraction"],
            "evidence": finding["evidence"],
            "help": finding["help"],
        },
    }


def _uri(path: str) -> str:
    return Path(path).as_uri() if Path(path).is_absolute() else quote(path)
