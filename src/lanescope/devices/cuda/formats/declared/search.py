"""The layouts that a buffer without a header may have, with their parameters: found by size and by agreement.

A lane that has a header of its own, or records that name their lane, agree with few of the sizes that a lane may have.
What is found is named, and never concluded: some numbers, as that of the lanes of a block, are in no such file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from lanescope.declaration import replace
from lanescope.devices.cuda.formats.declared import catalog, recognition
from lanescope.devices.cuda.formats.declared.arrays import Arrays, arrays_of, is_npz
from lanescope.devices.cuda.formats.declared.columns import Columns
from lanescope.devices.cuda.formats.declared.declaration import MAIN, Declaration, Search
from lanescope.devices.cuda.formats.declared.geometry import I64, full, locate
from lanescope.devices.cuda.formats.declared.recognition import Fit
from lanescope.devices.cuda.formats.declared.records import UNREADABLE, kinds
from lanescope.devices.cuda.formats.word_source import WordSource
from lanescope.errors import LanescopeError

#: More sizes of a lane are not tried, the largest number of lanes last.
_MOST_SIZES = 512
#: Numbers that a parameter is tried with; a lane has no more room.
_MOST_VALUES = 1 << 20
#: The share of the records that a lane may leave out at the end of the beginning of a file.
_MOST_USED = 0.9
#: The share of records that may be ends whose starts are gone, as in a ring.
_MOST_ENDS = 0.5


def search(content: WordSource, size: int) -> list[Fit]:
    """Return the layouts that fit, the best one first; at most one set of parameters for each.

    Args:
        content: the buffer, or its beginning.
        size: bytes of the whole array.
    """
    found = []
    for name in catalog.shipped():
        declaration = catalog.load(name)
        if declaration.search is None and len(declaration.arrays) == 1:
            continue
        try:
            arrays = arrays_of(content, declaration)
        except LanescopeError:
            continue
        if declaration.search is not None:
            fit = _best(declaration, declaration.search, arrays, _whole(content, arrays, size))
        else:
            # The names of several arrays are those of the layout.
            fit = recognition.judge(declaration, arrays, {})
        if fit is not None and not fit.failed and fit.is_enough:
            found.append(fit)
    return sorted(found, key=lambda fit: -fit.used)


def _whole(content: WordSource, arrays: Arrays, size: int) -> int:
    is_archive = content.before == 0 and is_npz(content.words(1)[:4].tobytes())
    return len(arrays.main) if is_archive else size


def _best(declaration: Declaration, how: Search, arrays: Arrays, size: int) -> Fit | None:
    found: list[tuple[int, Fit]] = []
    # A lane that is longer than what is there cannot be judged.
    for params, stride in _candidates(declaration, how, size, min(size, len(arrays.main))):
        part = _beginning(arrays, stride, size)
        if part is None or not _headers_agree(declaration, how, part, params):
            continue
        fit = recognition.judge(declaration, part, params)
        if fit.failed or not fit.is_enough:
            continue
        if not _records_agree(declaration, how, part, params):
            continue
        given = {name: value for name, value in params.items() if name not in how.given}
        found.append((stride, replace(fit, params=given)))
    # A part of a lane that holds nothing may pass for a lane: the longest lane that fits is the lane.
    most = max((fit.used for _, fit in found), default=0)
    long = [(stride, number) for number, (stride, fit) in enumerate(found) if fit.used >= _MOST_USED * most]
    return found[max(long)[1]][1] if long else None


def _candidates(declaration: Declaration, how: Search, size: int, longest: int) -> Iterator[tuple[dict[str, int], int]]:
    """Yield parameters with which the file is a whole number of lanes that are not too long, and the bytes of those."""
    # The second parameter divides the lanes, or makes them larger.
    is_of_lanes = how.also is not None and how.also[0] not in _all_names(declaration, how.stride.names)
    values = np.arange(how.least, min(_MOST_VALUES, max(how.least, longest)) + 1)
    sizes: list[tuple[int, int]] = []
    for second in range(1, 1 + (how.also[1] if how.also else 1)):
        rest = {how.also[0]: second} if how.also else {}
        if second == 1 or not is_of_lanes:
            sizes = _sizes(declaration, how, rest, values, size, longest)
        for value, stride in sizes:
            if not is_of_lanes or not (size // stride) % second:
                yield {how.param: value, **rest, **how.given}, stride


def _sizes(
    declaration: Declaration, how: Search, rest: Mapping[str, int], values: I64, size: int, longest: int
) -> list[tuple[int, int]]:
    """Return values of the parameter that is searched and the bytes of a lane with them, which divide the file."""
    scope = {name: full(value, len(values)) for name, value in _numbers(declaration, how, rest, values).items()}
    strides = full(how.stride.value(scope), len(values))
    fits = np.flatnonzero((strides > 0) & (strides <= longest) & (size % np.maximum(strides, 1) == 0))
    if not len(fits):
        return []
    # Where several values make lanes of one size, the largest has room for all records.
    last = fits[np.append(strides[fits][1:] != strides[fits][:-1], True)][-_MOST_SIZES:]
    return list(zip(values[last].tolist(), strides[last].tolist(), strict=True))


def _numbers(declaration: Declaration, how: Search, rest: Mapping[str, int], values: I64) -> dict[str, Any]:
    """Return the parameters that the size of a lane depends on, by name: one of them all values."""
    found: dict[str, Any] = {}
    for param in declaration.params:
        if param.name == how.param:
            found[param.name] = values
        elif param.value is not None:
            if param.value.names <= set(found):
                found[param.name] = param.value.value(found)
        elif param.name in rest or param.name in how.given:
            found[param.name] = rest.get(param.name, how.given.get(param.name, 0))
        elif param.default is not None:
            found[param.name] = param.default
    return found


def _all_names(declaration: Declaration, names: Collection[str]) -> set[str]:
    """Return names, and those that the computed ones among them are computed of."""
    found = set(names)
    for param in reversed(declaration.params):
        if param.name in found and param.value is not None:
            found |= param.value.names
    return found


def _beginning(arrays: Arrays, stride: int, size: int) -> Arrays | None:
    """Return the arrays with as much of the main one as has whole lanes; None where that is none."""
    there = len(arrays.main)
    if there >= size:
        return arrays
    data = arrays.main[: there // stride * stride]
    return Arrays({**arrays.data, MAIN: data}, arrays.at) if len(data) else None


def _headers_agree(declaration: Declaration, how: Search, arrays: Arrays, params: Mapping[str, int]) -> bool:
    """Return whether every lane that was written passes its tests, and there is one."""
    try:
        geometry = locate(declaration, arrays, params)
    except LanescopeError:
        return False
    if not geometry.is_used.any() or not geometry.is_sound.all():
        return False
    offered = geometry.offered
    if offered is not None and not (offered[geometry.is_used] != 0).any():
        return False
    return all((geometry.lane_value(test) != 0)[geometry.is_used].all() for test in how.tests)


def _records_agree(declaration: Declaration, how: Search, arrays: Arrays, params: Mapping[str, int]) -> bool:
    """Return whether every record passes its tests, and those of a lane are in order."""
    _, total = recognition.order(declaration, arrays, params)
    ends = total["unmatched"] + (total["open"] if how.is_paired else 0)
    most = 0 if how.is_paired else _MOST_ENDS * (total["slices"] + total["instants"])
    # The order of ends may depend on a number that is any.
    if not how.given and (total["backward"] or total["negative"] or ends > most):
        return False
    columns = Columns(declaration, arrays, locate(declaration, arrays, params))
    is_record = kinds(declaration, columns) < UNREADABLE
    return all((columns.value(test) != 0)[is_record].all() for test in how.records)
