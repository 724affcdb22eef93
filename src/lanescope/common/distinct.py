"""The distinct values of an array, and which values are among others."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=np.generic)


#: Values in a range below it are looked up in a table of all of them.
_SMALL = 1 << 12


def distinct(values: npt.NDArray[T]) -> npt.NDArray[T]:
    """Return the distinct values of an array of any shape, ascending, [n], with the dtype they have; no NaN.

    ``np.unique`` without any of its options says the same, but imports ``numpy.ma`` to find out that nothing is masked,
    which is more than decoding a small capture.
    """
    # Of many numbers that lie close together (cores, threads, functions) a table is quicker than to sort.
    if values.dtype.kind == "i" and values.size > _SMALL:
        low = int(values.min())
        if int(values.max()) - low < _SMALL:
            found = np.flatnonzero(np.bincount(np.subtract(values.reshape(-1), low, dtype=np.int64)))
            return (found + low).astype(values.dtype)
    ordered: npt.NDArray[Any] = np.sort(values, axis=None)
    is_new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def is_among(values: npt.NDArray[T], known: npt.NDArray[T]) -> npt.NDArray[np.bool_]:
    """Return which values are among the known ones, both of one dtype; as ``np.isin``, without what that imports.

    Example:
        >>> is_among(np.array([5, 1, 9]), np.array([9, 5, 9])).tolist()
        [True, False, True]
    """
    if not len(known):
        return np.zeros(values.shape, np.bool_)
    ordered = distinct(known)
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    found: npt.NDArray[np.bool_] = ordered[place] == values
    return found
