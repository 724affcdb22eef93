"""Immutable classes of named values, as ``dataclass(frozen=True)`` makes them, but nothing is compiled at a start.

A dataclass compiles its methods when its module is imported; for what every start declares, formats, tables and
families, that is more than reading a small capture. Here the methods are shared and look the names up.
"""

from __future__ import annotations

from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
#: The ``default`` of a descriptor whose value must be given.
REQUIRED: Any = object()


@dataclass_transform(frozen_default=True)
def frozen_class(cls: type[T]) -> type[T]:
    """Make the annotated names of a class its values, given by position or by name; those with a value have defaults.

    A descriptor under such a name reads the value, and has its default as ``default``. ``__post_init__``, where there
    is one, checks the values. A method that the class has is kept.

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
    names = tuple(cls.__annotations__)
    given = {name: vars(cls)[name] for name in names if name in vars(cls)}
    defaults = {name: value.default if hasattr(value, "__set__") else value for name, value in given.items()}
    made: Any = cls
    made._names = names
    made._place_of_name = {name: place for place, name in enumerate(names)}
    made._defaults = {name: value for name, value in defaults.items() if value is not REQUIRED}
    made._check = getattr(cls, "__post_init__", None)
    for method in (__init__, __setattr__, __delattr__, __eq__, __hash__, __repr__):
        if method.__name__ not in vars(cls):
            setattr(cls, method.__name__, method)
    return cls


def replace(values: T, **changes: Any) -> T:
    """Return a copy with other values for some names."""
    kept = {name: vars(values)[name] for name in value_names(type(values))}
    return type(values)(**{**kept, **changes})


def value_names(cls: type[Any]) -> tuple[str, ...]:
    """Return the names of the values of a class, in order."""
    names: tuple[str, ...] = cls._names
    return names


def as_dict(values: Any) -> dict[str, Any]:
    """Return the values by name; those that are of such a class themselves, also in tuples, as ``dict`` too."""
    return {name: _plain(vars(values)[name]) for name in values._names}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return as_dict(value) if hasattr(value, "_names") else value


def __init__(self: Any, *args: Any, **given: Any) -> None:
    names, count = self._names, len(args)
    places = self._place_of_name
    for name in given:
        if places.get(name, -1) < count:
            count = len(names) + 1
    if count > len(names):
        raise TypeError(f"{type(self).__name__} takes {', '.join(names)}, once each")
    values = self._defaults.copy()
    values.update(zip(names, args, strict=False))
    values.update(given)
    if len(values) < len(names):
        raise TypeError(f"{type(self).__name__} lacks {', '.join(name for name in names if name not in values)}")
    object.__setattr__(self, "__dict__", values)
    if self._check is not None:
        self._check()


def __setattr__(self: Any, name: str, value: Any) -> None:
    raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")


def __delattr__(self: Any, name: str) -> None:
    raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([vars(self)[name] for name in self._names])


def __eq__(self: Any, other: object) -> bool:
    return _is_same(_values(self), _values(other)) if type(other) is type(self) else NotImplemented


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; arrays, which compare one element at a time, if all elements are."""
    if one is other:
        return True
    if isinstance(one, tuple | list) and type(one) is type(other):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if getattr(one, "shape", None) != getattr(other, "shape", None):
        return False
    found = one == other
    return found if isinstance(found, bool) else bool(found.all())


def __hash__(self: Any) -> int:
    return hash(_values(self))


def __repr__(self: Any) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={vars(self)[name]!r}' for name in self._names)})"
