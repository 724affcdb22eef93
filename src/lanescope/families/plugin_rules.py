"""Rules of ``check`` that other packages register, for traces of any family."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from lanescope.families.declaration import UPDATE, described
from lanescope.families.registry import BUILTIN, Broken
from lanescope.families.rules import SEVERITIES, Rule, Violation
from lanescope.trace import Trace

#: Entry points of this group are a ``Rule`` or several.
GROUP = "lanescope.rules"
#: Codes of lanescope itself: for all traces, and of its families.
_RESERVED = ("LS", *(name.upper() for name in BUILTIN))


class PluginRules(NamedTuple):
    """Rules registered by other packages.

    Attributes:
        packages: the rules that can be used, by code, and the package of each.
        broken: entry points that cannot be used: they raise when they are imported, are no rules, or take a code that
            is taken.
    """

    packages: dict[str, tuple[Rule, str]]
    broken: tuple[Broken, ...]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, by code."""
        return tuple(rule for rule, _ in self.packages.values())


@cache
def plugin_rules() -> PluginRules:
    """Return the rules that other packages registered; it does not raise, whatever the packages do."""
    if not _is_any_registered():
        return PluginRules({}, ())
    from importlib.metadata import entry_points

    broken: list[Broken] = []
    found: dict[str, list[tuple[Rule, str]]] = {}
    try:
        points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    except Exception as error:  # the metadata of some package cannot be read
        return PluginRules({}, (Broken("(all)", f"the entry points cannot be listed: {described(error)}"),))
    for point in points:
        package = point.dist.name if point.dist else point.value
        try:
            for rule in _verified(point.load()):
                found.setdefault(rule.code, []).append((rule, package))
        except (Exception, SystemExit) as error:  # whatever another package does while it is imported
            broken.append(Broken(point.name, f"package {package}: {described(error)}"))
    for code, alike in found.items():
        if len(alike) > 1:
            packages = ", ".join(sorted(package for _, package in alike))
            broken.append(Broken(code, f"more than one rule has this code, of the packages {packages}"))
    return PluginRules({code: found[code][0] for code in sorted(found) if len(found[code]) == 1}, tuple(broken))


def _is_any_registered() -> bool:
    """Return whether some package may register rules: listing entry points costs ten times as much as this look."""
    for folder in sys.path:
        try:
            with os.scandir(folder or ".") as entries:
                infos = [entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
        except NotADirectoryError:  # an archive: only importlib.metadata can look into it
            return True
        except OSError:  # a folder that does not exist, or cannot be read
            continue
        if any(map(_names_group, infos)):
            return True
    return False


def _names_group(info: str) -> bool:
    try:
        with open(f"{info}/entry_points.txt", "rb", buffering=0) as file:  # noqa: PTH123 (a hundred of them at a start)
            return GROUP.encode() in file.read()
    except OSError:
        return False


def _verified(loaded: object) -> Iterator[Rule]:
    """Yield the rules of an entry point.

    Raises:
        TypeError: they are no rules.
        ValueError: a code is one of lanescope's own.
    """
    rules = loaded if isinstance(loaded, tuple | list) else (loaded,)
    for rule in rules:
        if not isinstance(rule, Rule):
            raise TypeError(f"{rule!r} is not a lanescope.families.Rule")
        if not callable(rule.check) or not all(map(_is_text, (rule.title, rule.description, rule.help, rule.url))):
            raise TypeError(f"rule {rule.code} must have texts, and a function that checks")
        if re.sub("[0-9]", "", rule.code) in _RESERVED:
            raise ValueError(f"rule {rule.code}: the prefix {rule.code[:-3]} is reserved for lanescope")
    yield from rules


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def applied(rule: Rule, package: str, context: object) -> list[Violation]:
    """Return what a rule of a package reports about a context; if it fails, a violation that says so."""
    try:
        found = list(rule.check(context))
        verify(found, context.trace)  # type: ignore[attr-defined]
    except (Exception, SystemExit) as error:
        detail = f"not checked: the rule of package {package} failed: {described(error)}; {UPDATE}"
        return [Violation(detail=detail, table="inputs", count=1)]
    return found


def verify(violations: Iterable[object], trace: Trace) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless ``check`` can report these violations of a trace."""
    tables = trace.tables()
    for one in violations:
        if not isinstance(one, Violation):
            raise TypeError(f"{one!r} is not a lanescope.families.Violation")
        if one.table not in tables:
            raise ValueError(f"violation of the table {one.table!r}, which the trace does not have")
        rows = np.asarray(one.rows)
        if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu"):
            raise TypeError(f"rows of a violation are row numbers, not {rows.dtype} of {rows.ndim} dimensions")
        if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < len(tables[one.table]):
            raise ValueError(f"violation of rows {rows.min()} to {rows.max()} of {len(tables[one.table])} {one.table}")
        if one.severity not in (None, *SEVERITIES) or not isinstance(one.detail, str):
            raise ValueError(f"violation of severity {one.severity!r} with detail {one.detail!r}")
        _verify_place(one, trace)


def _verify_place(one: Violation, trace: Trace) -> None:
    counts = {"track_id": len(trace.tracks), "input_id": len(trace.inputs)}
    for name in ("count", "track_id", "ts", "input_id", "offset"):
        value = getattr(one, name)
        if value is None:
            continue
        if not isinstance(value, int | np.integer):
            raise TypeError(f"{name} of a violation is {value!r}, not an integer")
        if name in counts and not 0 <= value < counts[name]:
            raise ValueError(f"{name} of a violation is {value}, of {counts[name]}")
