"""Hypothesis strategies that follow from a declared layout; hypothesis is needed by tests only.

Example::

    @given(streams(MODE0))
    def test_native_equals_reference(words):
        assert native.decode(words) == list(MODE0.decode(words))
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from lanescope.wire.c_struct import INTEGERS, Struct
from lanescope.wire.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lanescope.wire.frame_codec import FrameSet


def values(layout: Record | Struct) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of everything that ``layout.encode`` accepts, reserved bits and undeclared values included.

    Example:
        >>> from lanescope.wire import Field
        >>> word = Record("word", bits=8, fields=(Field("low", lsb=0, width=4), Field("high", lsb=4, width=4)))
        >>> from hypothesis import find
        >>> find(values(word), lambda found: found["high"] > 2)
        {'low': 0, 'high': 3}
    """
    if isinstance(layout, Record):
        return st.fixed_dictionaries(
            {f.name: _integers(f.width, f.values, f.default, signed=f.signed) for f in layout.fields}
        )
    members: dict[str, st.SearchStrategy[Any]] = {}
    for m in layout.members:
        element: st.SearchStrategy[Any]
        if isinstance(m.type, str):
            size, signed = INTEGERS[m.type]
            element = _integers(8 * size, m.values, m.default, signed=signed)
        else:
            element = values(m.type)
        members[m.name] = element if m.count is None else st.lists(element, min_size=m.count, max_size=m.count)
    return st.fixed_dictionaries(members)


def frames(frame_set: FrameSet, *, max_size: int = 40) -> st.SearchStrategy[list[tuple[Record, dict[str, Any]]]]:
    """Return a strategy of what ``frame_set.encode`` accepts: frames in any order, padding among them.

    Example:
        >>> from lanescope.wire import FrameSet
        >>> nibbles = FrameSet("nibbles", (Record("tick", bits=4, prefix="0000"), Record("padding", 4, prefix="0010")),
        ...                    padding="padding")
        >>> from hypothesis import find
        >>> [record.name for record, _ in find(frames(nibbles), lambda found: len(found) == 2)]
        ['tick', 'tick']
    """
    frame = st.one_of([st.tuples(st.just(record), values(record)) for record in frame_set.records])
    return st.lists(frame, max_size=max_size)


def streams(frame_set: FrameSet, *, max_size: int = 40) -> st.SearchStrategy[list[int]]:
    """Return a strategy of word streams as a hostile file may hold them.

    Good frames alternate with random words, and up to three words are missing at the end.

    Example:
        >>> from hypothesis import find
        >>> from lanescope.wire import Field, FrameSet
        >>> word = Record("word", bits=32, prefix="1", fields=(Field("value", lsb=0, width=31),))
        >>> words = FrameSet("words", (word, Record("padding", bits=8, prefix="0" * 8)), padding="padding")
        >>> find(streams(words), lambda found: any(frame.error for frame in words.decode(found)))
        [1]
    """
    anything = st.integers(0, (1 << frame_set.word_bits) - 1).map(lambda word: [word])
    good = frames(frame_set, max_size=max_size).map(frame_set.encode)
    parts = st.lists(st.one_of(anything, good), max_size=4).map(lambda lists: [*itertools.chain(*lists)])
    return st.tuples(parts, st.integers(0, 3)).map(lambda drawn: drawn[0][: len(drawn[0]) - drawn[1]])


def _integers(bits: int, names: Mapping[int, str], default: int | None, *, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    everything = st.integers(low, high)
    known = sorted({*names, *(() if default is None else (default,))})
    return st.one_of(everything, st.sampled_from(known)) if known else everything
