"""Which device families there are: those of the tree, and those that other packages register as entry points."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from lanescope.declaration import frozen_class
from lanescope.errors import MissingDependencyError, UsageError
from lanescope.families.declaration import UPDATE, described, load
from lanescope.families.family import API, Command, Export, Family, Format, Simulator, Summary
from lanescope.families.options import Option

#: Families of devices; each is ``lanescope.devices.NAME.family.FAMILY``.
DEVICES: tuple[str, ...] = ("aie", "ascend", "cuda", "levelzero")
#: Families of other tools' files, ``lanescope.foreign.NAME.family.FAMILY``, with what such a file may begin with: they
#: are asked when no device family knows a file, and those that it cannot belong to are not even imported.
FOREIGN: dict[str, tuple[bytes, ...]] = {"chrome": (b"{", b"["), "kineto": (b"{", b"["), "perfetto": (b"\n",)}
#: Families in the tree.
BUILTIN: tuple[str, ...] = (*DEVICES, *FOREIGN)
#: What may stand before the text of a file: white space, and the byte order mark of UTF-8.
_BEFORE_TEXT = b" \t\r\n\xef\xbb\xbf"
#: Entry points of this group are families of other packages.
GROUP = "lanescope.devices"


class Broken(NamedTuple):
    """A family of another package that cannot be used.

    Attributes:
        name: name of its entry point, or of the family where that is the fault.
        reason: one clause: which package it is, and what is wrong with it.
    """

    name: str
    reason: str


@frozen_class
class Plugins:
    """Families registered by other packages.

    Attributes:
        families: the families that can be used, by name.
        broken: those that cannot: they raise when they are imported, are no families, or take a name that is taken.
    """

    families: tuple[Family, ...]
    broken: tuple[Broken, ...]


@cache
def family(name: str) -> Family:
    """Return the family called ``name``.

    Raises:
        UsageError: no family has this name; the hint lists those there are.
        MissingDependencyError: the family of another package that has this name cannot be used.
    """
    if name in BUILTIN:
        room = "foreign" if name in FOREIGN else "devices"
        found: Family = load(f"lanescope.{room}.{name}.family:FAMILY")
        return found
    for plugin in plugin_families():
        if plugin.name == name:
            return plugin
    for broken in plugins().broken:
        if broken.name == name:
            raise MissingDependencyError(
                f"cannot load device family {name!r} of another package: {broken.reason}", hint=UPDATE
            )
    known = (*BUILTIN, *(plugin.name for plugin in plugin_families()))
    raise UsageError(f"unknown device family {name!r} (choose from {', '.join(known)})")


def builtin() -> tuple[Family, ...]:
    """Return the families of the tree, in order."""
    return tuple(family(name) for name in BUILTIN)


def devices() -> tuple[Family, ...]:
    """Return the families of devices, in order."""
    return tuple(family(name) for name in DEVICES)


def foreign(content: bytes) -> tuple[Family, ...]:
    """Return the families of other tools' files that a file which begins with ``content`` may belong to, in order."""
    text = content.lstrip(_BEFORE_TEXT)
    return tuple(
        family(name) for name, begins in FOREIGN.items() if text.startswith(begins) or content.startswith(begins)
    )


def plugin_families() -> tuple[Family, ...]:
    """Return the families that other packages registered and that can be used; see ``plugins``."""
    return plugins().families


@cache
def plugins() -> Plugins:
    """Return the families that other packages registered. importlib.metadata is slow, so this is called on demand.

    It does not raise: a package that is broken must not stand in the way of all others.
    """
    from importlib.metadata import entry_points

    broken: list[Broken] = []
    registered: dict[str, list[tuple[Family, str]]] = {}
    try:
        points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    except Exception as error:  # the metadata of some package, ours or not, cannot be read
        return Plugins((), (Broken("(all)", f"the entry points cannot be listed: {described(error)}"),))
    for point in points:
        package = point.dist.name if point.dist else point.value
        try:
            loaded = point.load()
            verify(loaded)
        except (Exception, SystemExit) as error:  # whatever another package does while it is imported
            broken.append(Broken(point.name, f"package {package}: {described(error)}"))
            continue
        alike = registered.setdefault(loaded.name, [])
        if all(loaded is not other for other, _ in alike):
            alike.append((loaded, package))
    for name, found in registered.items():
        packages = ", ".join(package for _, package in found)
        if name in BUILTIN:
            broken.append(Broken(name, f"package {packages}: lanescope has a family of this name itself"))
        elif len(found) > 1:
            broken.append(Broken(name, f"more than one family has this name, of the packages {packages}"))
    sound = (found[0][0] for name, found in sorted(registered.items()) if name not in BUILTIN and len(found) == 1)
    return Plugins(tuple(sound), tuple(sorted(broken)))


def verify(found: object) -> None:
    """Raise ``TypeError`` unless ``found`` can be listed and asked as a family is."""
    if not isinstance(found, Family):
        raise TypeError(f"{found!r} is not a lanescope.families.Family")
    if found.api != API:
        raise TypeError(f"it is written for version {found.api} of lanescope.families, which is at version {API} here")
    if not isinstance(found.name, str) or not found.name.isidentifier():
        raise TypeError(f"the family's name is {found.name!r}")
    if not isinstance(found.title, str):
        raise TypeError(f"the family's title is {found.title!r}")
    if not found.formats:
        raise TypeError("it declares no format")
    declared = {
        "formats": (found.formats, Format),
        "options": (found.options, Option),
        "summaries": (found.summaries, Summary),
        "exports": (found.exports, Export),
        "commands": (found.commands, Command),
        "simulator": (() if found.simulator is None else (found.simulator,), Simulator),
        "options of the simulator": (found.sim_options, Option),
    }
    for what, (values, kind) in declared.items():
        for value in values:
            if not isinstance(value, kind):
                raise TypeError(f"{what}: {value!r} is not of type {kind.__name__}")
    for format in found.formats:
        given = vars(format)  # references stay as they are
        if (given["decode"] is None) == (given["decode_file"] is None):
            raise TypeError(f"format {format.name} must have either decode or decode_file")
        if given["decode_file"] is not None and (format.is_streaming or format.random_access):
            raise TypeError(f"format {format.name}: decode_file takes the whole file, so it cannot stream")
