"""Public names of packages that are loaded at their first use (PEP 562)."""

from __future__ import annotations

TYPE_CHECKING = False  # as in ``typing``, which costs more to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def from_room(module: str, name: str) -> Any:
    """Return what a room above has under a name.

    Methods of traces and tables are shorthands for functions of rooms that stand above them and import them.

    Args:
        module: name of the module below ``lanescope``.
        name: name in it.
    """
    from importlib import import_module

    return getattr(import_module(f"lanescope.{module}"), name)


def lazy_names(package: str, home: Mapping[str, str], loaded: dict[str, object]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package.

    Args:
        package: its name.
        home: the module of the package that holds each public name; a module that is public itself is its own home.
        loaded: the globals of the package, where names are kept.
    """

    def load(name: str) -> object:
        """Load a public name at its first use (PEP 562)."""
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        module = import_module(f"{package}.{home[name]}")
        loaded[name] = value = module if home[name] == name else getattr(module, name)
        return value

    return load
