"""Texts that are encoded without being made are those that would have been."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lanescope.common.numbered_texts import NO_NUMBER, numbered
from lanescope.trace import Column, ColumnSpec, Table, TableSpec

NUMBERS = st.one_of(
    st.just(NO_NUMBER), st.integers(0, 200), st.integers(0, 2**63 - 1), st.sampled_from([9, 10, 10**18])
)
WORDS = st.lists(st.text(max_size=5), min_size=1, max_size=4)


def columns(words, rows):
    """Return a column of texts, one that only encodes them, and the texts."""
    of = np.array([word % len(words) for word, _ in rows], np.int32)
    numbers = np.array([number for _, number in rows], np.int64)
    texts = [
        words[word] + ("" if number < 0 else str(number)) for word, number in zip(of, numbers.tolist(), strict=True)
    ]
    made = Column.array(np.array([*texts, None], object)[:-1])
    encoding = Column.derived(len(texts), lambda: made.values)
    encoding.encode = lambda: numbered(words, of, numbers)
    return made, encoding, texts


def texts_of(column):
    """Return the texts as readers of Arrow see them."""
    import pyarrow

    table = Table(TableSpec("t", "rows", (ColumnSpec("name", "utf8", "a text"),)), {"name": column})
    return pyarrow.table(table).column("name").to_pylist()


@given(WORDS, st.lists(st.tuples(st.integers(0, 3), NUMBERS), max_size=30), st.data())
def test_encoded_texts_are_the_texts(words, rows, data):
    words = [word.encode("utf-8", "replace").decode() for word in words]
    made, encoding, texts = columns(words, rows)
    assert texts_of(encoding) == texts == texts_of(made)
    start = data.draw(st.integers(0, len(texts)))
    stop = data.draw(st.integers(start, len(texts)))
    assert texts_of(encoding.between(start, stop)) == texts[start:stop]
    joined = Column.concat([made, encoding, encoding.between(start, stop), made])
    if len(texts):
        assert joined.encode is not None
    expected = [*texts, *texts, *texts[start:stop], *texts]
    assert texts_of(joined) == expected
    assert texts_of(joined.between(start, len(expected))) == expected[start:]
    assert joined.values.tolist() == expected
    # Once they are made, they are not encoded again.
    assert joined.encoded() is None
    assert texts_of(joined) == expected
