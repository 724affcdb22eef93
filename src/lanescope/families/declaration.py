"""Classes whose values may be references: text that says where a value is, ``"package.module:NAME"``.

It is imported when somebody reads the value for the first time, so that declaring a family costs none of what the
family needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Generic, TypeVar, dataclass_transform, overload

from lanescope.declaration import REQUIRED, frozen_class
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
    """A value of a ``declared_class`` that may be given as a reference; reading it gives what is referred to.

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
def declared_class(cls: type[T]) -> type[T]:
    """Do what ``frozen_class`` does; values that are annotated as a ``Reference`` may be given as one."""
    for name, annotation in cls.__annotations__.items():
        if name not in vars(cls) and str(annotation).startswith("Reference["):
            required = Reference[Any](REQUIRED)
            required.__set_name__(cls, name)
            setattr(cls, name, required)
    return frozen_class(cls)
