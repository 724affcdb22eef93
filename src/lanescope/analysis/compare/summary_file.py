"""Run summaries as files: JSON with one line per group, in a fixed order, so that a diff of two of them can be read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lanescope.analysis.compare.conditions import KINDS, Conditions
from lanescope.analysis.compare.grouping import Key
from lanescope.analysis.compare.run_summary import GroupStatistics, RunSummary
from lanescope.errors import InputError

#: Name and version of the format.
SCHEMA = "lanescope.run_summary/1"
#: Larger files are something else: a group takes some 100 bytes.
LARGEST = 64 << 20

_UNITS = ("ns", "cycles")
_INT64 = (1 << 63) - 1
_STATISTICS = GroupStatistics._fields


def to_text(run: RunSummary) -> str:
    """Return a summary as a JSON document; the same summary always gives the same text."""
    lines = ["{", f' "schema": {_json(SCHEMA)},']
    lines += [f' "{name}": {_json(getattr(run, name))},' for name in ("name", "sha256", "unit", "span")]
    lines.append(f' "by": {_json(list(run.by))},')
    conditions = {kind: dict(sorted(run.conditions.get(kind, {}).items())) for kind in KINDS}
    listed = [f"  {_json(kind)}: {_json(values)}" for kind, values in conditions.items()]
    lines += [' "conditions": {', *_with_commas(listed), " },"]
    groups = [
        f"  {_json([list(key), dict(zip(_STATISTICS, group, strict=True))])}"
        for key, group in sorted(run.groups.items())
    ]
    lines += [' "groups": [', *_with_commas(groups), " ]", "}"]
    return "\n".join(lines) + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


def _with_commas(lines: Sequence[str]) -> list[str]:
    return [line + "," for line in lines[:-1]] + list(lines[-1:])


def from_text(text: str | bytes, path: str) -> RunSummary:
    """Return the summary that a document holds.

    Args:
        text: the document.
        path: its name, for messages.

    Raises:
        InputError: it is not a summary, or contradicts itself.
    """
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise _refusal(path, "invalid JSON") from None
    _expect(path, isinstance(found, dict), "not a JSON object")
    schema = found.get("schema")
    if isinstance(schema, str) and schema != SCHEMA and schema.startswith(SCHEMA.partition("/")[0] + "/"):
        raise InputError(f"{path}: unsupported version {schema}: expected {SCHEMA}", hint="upgrade lanescope")
    _expect(path, schema == SCHEMA, f"schema is not {SCHEMA}")
    wanted = {"schema", "name", "sha256", "unit", "span", "by", "conditions", "groups"}
    _expect(path, set(found) == wanted, f"expected the members {', '.join(sorted(wanted))}")
    for name in ("name", "sha256"):
        _expect(path, isinstance(found[name], str), f"{name} is not a text")
    _expect(path, found["unit"] in _UNITS, "unknown unit")
    _expect(path, _is_count(found["span"]), "span is not a count")
    by = found["by"]
    _expect(path, _are_texts(by) and 0 < len(by) == len(set(by)), "invalid by")
    groups: dict[Key, GroupStatistics] = {}
    _expect(path, isinstance(found["groups"], list), "groups is not a list")
    for row in found["groups"]:
        key, group = _group(path, row, len(by))
        _expect(path, key not in groups, f"group {', '.join(key)!r} occurs twice")
        groups[key] = group
    return RunSummary(
        found["name"],
        found["sha256"],
        tuple(by),
        found["unit"],
        found["span"],
        groups,
        _conditions(path, found["conditions"]),
    )


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; JSON lets a member occur twice, of which most readers drop one silently."""
    found = dict(members)
    if len(found) < len(members):
        raise ValueError
    return found


def _refusal(path: str, reason: str) -> InputError:
    return InputError(
        f"{path}: invalid run summary: {reason}", hint="remove it and run 'lanescope baseline add' on the capture again"
    )


def _expect(path: str, holds: bool, reason: str) -> None:  # noqa: FBT001 (reads as an assertion)
    if not holds:
        raise _refusal(path, reason)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _INT64


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _group(path: str, row: Any, columns: int) -> tuple[Key, GroupStatistics]:
    _expect(path, isinstance(row, list) and len(row) == 2 and _are_texts(row[0]), "a group is not a key and its values")
    key, values = tuple(row[0]), row[1]
    named = f"group {', '.join(key)!r}"
    _expect(path, len(key) == columns, f"{named} does not fit by")
    _expect(path, isinstance(values, dict) and set(values) == set(_STATISTICS), f"{named}: unexpected members")
    group = GroupStatistics(**values)
    _expect(path, all(map(_is_count, group[:3])), f"{named}: a value is not a count")
    ranks = (group.median, group.p99)
    if group.slices:
        _expect(path, all(map(_is_count, ranks)), f"{named}: a percentile is not a count")
        assert group.median is not None
        assert group.p99 is not None
        _expect(path, group.median <= group.p99, f"{named}: the median exceeds p99")
    else:
        _expect(path, ranks == (None, None) and group.total == 0, f"{named}: values without slices")
    return key, group


def _conditions(path: str, found: Any) -> Conditions:
    _expect(path, isinstance(found, dict) and set(found) == set(KINDS), "unexpected conditions")
    checked: dict[str, Mapping[str, str | int | float]] = {}
    for kind, values in found.items():
        _expect(path, isinstance(values, dict), f"condition {kind} is not an object")
        sound = all(type(value) in (str, int, float) for value in values.values())
        finite = all(type(value) is not float or abs(value) < float("inf") for value in values.values())
        _expect(path, sound and finite, f"a value of {kind} is neither a text nor a number")
        checked[kind] = values
    return checked
