"""Immutable classes of named values, as ``dataclass(frozen=True)`` makes them, but nothing is compiled at a start.

A dataclass compiles its methods when its module is imported; for the classes that families declare that is more than
reading a small capture. Here the methods are shared and look the names up.

A value may be a reference: text that says where the value is, ``"package.module:NAME"``. It is imported when somebody
reads the value for the first time, so that declaring a family costs none of what the family needs.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, Generic, TypeVar, dataclass_transform, overload

from lanescope.errors import MissingDependencyError

T = TypeVar("T")
#: What to do about a package that registered a family which cannot be used.
UPDATE = "update or uninstall that package"


def load(reference: str) -> Any:
    """Return what a reference, ``package.module:NAME``, names.

    Raises:
        MissingDependencyError: it is in another package, which lacks it or fails while it is imported.
    """
    module, _, name = reference.partition(":")
    try:
        return getattr(import_module(module), name)
    except Exception as error:
        if module.partition(".")[0] == "lanescope":
            raise
        what = f"{reference} of another package cannot be loaded: {described(error)}"
        raise MissingDependencyError(what, hint=UPDATE) from error


def described(error: BaseException) -> str:
    """Return an exception of a package in one clause."""
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")


class Reference(Generic[T]):
    """A value of a ``frozen_class`` that may be given as a reference; reading it gives what is referred to.

    Args:
        default: the value, or the reference, when none is given.
    """

    def __init__(self, default: str | T) -> None:
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, values: None, owner: type) -> Reference[T]: ...
    @overload
    def __get__(self, values: object, owner: type) -> T: ...
    def __get__(self, values: object, owner: type) -> Any:
        if values is None:
            return self
        found = vars(values)[self._name]
        if isinstance(found, str):
            found = vars(values)[self._name] = load(found)
        return found

    def __set__(self, values: object, value: str | T) -> None:
        raise AttributeError(f"{type(values).__name__}.{self._name} cannot be changed")


@dataclass_transform(frozen_default=True)
def frozen_class(cls: type[T]) -> type[T]:
    """Make the annotated names of a class its values, given by position or by name; those with a value have defaults.

    Names that are annotated as a ``Reference`` may be given as one.

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
    annotations = inspect.get_annotations(cls)
    names = tuple(annotations)
    made: Any = cls
    made._names = names
    defaults = {name: vars(cls)[name] for name in names if name in vars(cls)}
    made._defaults = {
        name: value.default if isinstance(value, Reference) else value for name, value in defaults.items()
    }
    for name in names:
        if name not in defaults and str(annotations[name]).startswith("Reference["):
            required = Reference[Any](None)
            required.__set_name__(cls, name)
            setattr(cls, name, required)
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
