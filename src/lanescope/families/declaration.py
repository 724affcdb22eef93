"""Immutable classes of named values, as ``dataclass(frozen=True)`` makes them, but nothing is compiled at a start.

A dataclass compiles its methods when its module is imported; for the thirty classes of this family that is more than
reading a small capture. Here the methods are shared and look the names up.
"""

from __future__ import annotations

import inspect
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def frozen_class(cls: type[T]) -> type[T]:
    """Make the annotated names of a class its values, given by position or by name; those with a value have defaults.

    Example:
        >>> @frozen_class
        ... class Span:
        ...     begin: int
        ...     end: int = 0
        >>> Span(3, end=5) == Span(begin=3, end=5)
        True
        >>> Span(3)
        Span(begin=3, end=0)
    """
    names = tuple(inspect.get_annotations(cls))
    made: Any = cls
    made._names = names
    made._defaults = {name: vars(cls)[name] for name in names if name in vars(cls)}
    for method in (__init__, __setattr__, __delattr__, __eq__, __hash__, __repr__):
        setattr(cls, method.__name__, method)
    return cls


def replace(values: T, **changes: Any) -> T:
    """Return a copy with other values for some names."""
    return type(values)(**{**vars(values), **changes})


def __init__(self: Any, *args: Any, **given: Any) -> None:
    names = self._names
    values = dict(zip(names, args, strict=False))
    if len(args) > len(names) or not values.keys().isdisjoint(given) or not given.keys() <= set(names):
        raise TypeError(f"{type(self).__name__} takes {', '.join(names)}, once each")
    values = {**self._defaults, **values, **given}
    if len(values) < len(names):
        raise TypeError(f"{type(self).__name__} lacks {', '.join(name for name in names if name not in values)}")
    vars(self).update(values)


def __setattr__(self: Any, name: str, value: Any) -> None:
    raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")


def __delattr__(self: Any, name: str) -> None:
    raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([vars(self)[name] for name in self._names])


def __eq__(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def __hash__(self: Any) -> int:
    return hash(_values(self))


def __repr__(self: Any) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={vars(self)[name]!r}' for name in self._names)})"
