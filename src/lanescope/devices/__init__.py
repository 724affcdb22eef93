"""Device families. Those in the tree are listed here; strangers come by the entry-point group ``lanescope.devices``."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from lanescope.devices.base import STAGES, Decoder, Family, Option, Simulation, View, settle
from lanescope.errors import MissingToolError, UsageError

#: Families in the tree; each is ``lanescope.devices.NAME.family.FAMILY``.
IN_TREE: tuple[str, ...] = ("aie", "ascend", "cuda", "levelzero")


@cache
def family(name: str) -> Family:
    """Return the family called ``name``; ``UsageError`` lists those there are."""
    if name in IN_TREE:
        found: Family = import_module(f"lanescope.devices.{name}.family").FAMILY
        return found
    for stranger in strangers():
        if stranger.name == name:
            return stranger
    known = (*IN_TREE, *(stranger.name for stranger in strangers()))
    raise UsageError(f"there is no device family {name!r}", hint="there are " + ", ".join(known))


def in_tree() -> tuple[Family, ...]:
    """Return the families of the tree, in order."""
    return tuple(family(name) for name in IN_TREE)


@cache
def strangers() -> tuple[Family, ...]:
    """Return the families that other packages registered; importlib.metadata is slow, so only on demand.

    Raises:
        MissingToolError: such a package is installed but cannot be loaded.
    """
    from importlib.metadata import entry_points

    found = []
    for point in sorted(entry_points(group="lanescope.devices"), key=lambda p: p.name):
        try:
            found.append(point.load())
        except Exception as error:  # whatever another package does while it is imported
            raise MissingToolError(
                f"the device family {point.name!r} of another package cannot be loaded:"
                f" {type(error).__name__}: {error}",
                hint="update or uninstall that package",
            ) from error
    return tuple(found)


__all__ = [
    "IN_TREE",
    "STAGES",
    "Decoder",
    "Family",
    "Option",
    "Simulation",
    "View",
    "family",
    "in_tree",
    "settle",
    "strangers",
]
