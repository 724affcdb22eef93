"""Distinct values of an array, without the numpy calls that import ``numpy.ma``."""

from __future__ import annotations

import ast
from pathlib import Path

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope.common.distinct import distinct, is_among

SRC = Path(__file__).resolve().parents[2] / "src"
TYPES = st.sampled_from([np.int64, np.uint64, np.int32, np.uint8, np.bool_, np.dtype("U3")])


#: Calls that look for distinct values with a plain ``np.unique``.
SETS = {f"np.{name}" for name in ("unique", "setdiff1d", "union1d", "intersect1d", "setxor1d")}


def plain_uniques(source: str) -> list[int]:
    """The lines with a ``np.unique`` of one argument, or a call that has one inside."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in SETS and not node.keywords
    ]


@settings(max_examples=some(100))
@given(hnp.arrays(TYPES, hnp.array_shapes(max_dims=2, min_side=0, max_side=8)))
def test_as_numpy_says(values: np.ndarray) -> None:
    found = distinct(values)
    expected = np.unique(values)
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


@settings(max_examples=some(100))
@given(TYPES.flatmap(lambda kind: st.tuples(*[hnp.arrays(kind, st.integers(0, 8))] * 2)))
def test_values_among_others(both: tuple[np.ndarray, np.ndarray]) -> None:
    values, known = both
    assert is_among(values, known).tolist() == np.isin(values, known).tolist()


@settings(max_examples=some(20))
@given(st.sampled_from([np.int8, np.int32, np.int64]), st.integers(1, 5000), st.booleans())
def test_many_values_that_lie_close_together(dtype: type[np.signedinteger], size: int, is_far: bool) -> None:
    limits = np.iinfo(dtype)
    values = np.tile(np.arange(size) % 200 - 100, 2).astype(dtype)
    values[:2] = (limits.min, limits.max) if is_far else (-100, 100)
    assert distinct(values).dtype == dtype
    assert distinct(values).tolist() == np.unique(values).tolist()


def test_numpy_unique_is_called_nowhere() -> None:
    assert plain_uniques("import numpy as np\nnp.unique(x)\nnp.unique(x, return_index=True)") == [2]
    assert plain_uniques("np.isin(x, y)\nnp.setdiff1d(x, y)\nnp.setdiff1d(x, y, assume_unique=True)") == [2]
    found = {str(path): plain_uniques(path.read_text()) for path in SRC.rglob("*.py")}
    assert {path: lines for path, lines in found.items() if lines} == {}
