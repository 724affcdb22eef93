import pickle
import weakref
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope.trace import Column, Dictionary
from lanescope.trace.column import look_up


def test_dictionary_keeps_order_of_first_sight():
    names = Dictionary()
    assert names.codes(["b", "a", "b", "c"]).tolist() == [0, 1, 0, 2]
    assert names.texts == ["b", "a", "c"]


def test_constant_is_stored_once():
    column = Column.constant(7, 1_000_000, np.int64)
    assert len(column) == 1_000_000
    assert column.values.strides == (0,)
    assert column.take(np.array([3, 5])).values.tolist() == [7, 7]


def test_derived_is_made_at_the_first_read_only():
    calls = []
    column = Column.derived(3, lambda: calls.append(1) or np.arange(3))
    assert not calls
    assert column.values.tolist() == [0, 1, 2]
    assert column.values.tolist() == [0, 1, 2]
    assert len(calls) == 1


def test_derived_lets_go_of_what_it_was_made_from():
    parts = [Column.derived(2, lambda: np.arange(2)) for _ in range(2)]
    sources = [weakref.ref(part.values) for part in parts]
    whole = Column.concat(parts)
    del parts
    assert whole.values.tolist() == [0, 1, 0, 1]
    assert [source() for source in sources] == [None, None]


def test_derived_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="2 rows: expected 3"):
        _ = Column.derived(3, lambda: np.arange(2)).values


def test_mask_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="mask"):
        Column.array(np.arange(3), valid=np.ones(2, np.bool_))


texts = st.lists(st.sampled_from(["load", "mma", "store", "", "é"]), max_size=5)


@given(st.lists(texts, min_size=1, max_size=5))
def test_concat_unites_dictionaries(parts):
    columns = []
    for part in parts:
        dictionary = Dictionary()
        columns.append(Column.array(dictionary.codes(part), dictionary=dictionary))
    joined = Column.concat(columns)
    assert joined.texts.tolist() == [text for part in parts for text in part]


@st.composite
def int_columns(draw):
    """A column of any kind and the list it means (None: unknown)."""
    length = draw(st.integers(0, 6))
    kind = draw(st.sampled_from(["array", "constant", "null", "derived"]))
    if kind == "constant":
        value = draw(st.integers(-5, 5))
        return Column.constant(value, length, np.int64), [value] * length
    if kind == "null":
        return Column.null(length, np.int64), [None] * length
    values = np.array(draw(st.lists(st.integers(-5, 5), min_size=length, max_size=length)), np.int64)
    known = draw(st.lists(st.booleans(), min_size=length, max_size=length))
    valid = np.array(known, np.bool_) if draw(st.booleans()) else None
    column = (
        Column.array(values, valid=valid) if kind == "array" else Column.derived(length, lambda: values, valid=valid)
    )
    expected = [v if valid is None or k else None for v, k in zip(values.tolist(), known, strict=True)]
    return column, expected


def meaning(column):
    valid = column.valid if column.valid is not None else np.ones(len(column), np.bool_)
    return [v if k else None for v, k in zip(column.values.tolist(), valid.tolist(), strict=True)]


@given(st.lists(int_columns(), min_size=1, max_size=5))
def test_concat_and_take_mean_what_lists_mean(parts):
    joined = Column.concat([column for column, _ in parts])
    expected = [value for _, values in parts for value in values]
    pieces = np.concatenate(list(joined.pieces()))
    assert meaning(joined) == expected
    assert pieces.tolist() == joined.values.tolist() == np.concatenate(list(joined.pieces())).tolist()
    backwards = np.arange(len(expected))[::-1]
    assert meaning(joined.take(backwards)) == expected[::-1]


@pytest.mark.parametrize("kind", ["numbers", "unknown at times", "made masks", "texts", "many dictionaries"])
def test_what_is_joined_may_be_joined_again_any_number_of_times(kind):
    """Tables that grow with each batch are not read before the last of thousands."""

    def piece(number):
        if kind == "numbers":
            return Column.array(np.array([number]))
        if kind == "unknown at times":
            return Column.array(np.array([number]), valid=np.array([number % 2 == 0]))
        if kind == "made masks":
            return Column.derived(1, lambda: np.array([number]), valid=lambda: np.array([number % 2 == 0]))
        if kind == "texts":
            return Column.array(np.array([str(number)], object))
        return Column.array(np.zeros(1, np.int32), dictionary=Dictionary([str(number)]))

    pieces = [piece(number) for number in range(1500)]
    joined = pieces[0]
    for each in pieces[1:]:
        joined = Column.concat([joined, each])
    at_once = Column.concat(pieces)
    assert joined.texts.tolist() == at_once.texts.tolist()
    assert (joined.valid is None) == (at_once.valid is None)
    if joined.valid is not None:
        assert joined.valid.tolist() == at_once.valid.tolist()


def test_concat_of_unknown_values_stores_none():
    joined = Column.concat([Column.null(2, np.int64), Column.null(3, np.int64)])
    assert joined.is_unknown
    assert len(joined) == 5
    assert not Column.concat([Column.null(2, np.int64), Column.constant(0, 3, np.int64)]).is_unknown


def test_pickled_columns_are_the_same_and_a_constant_is_stored_once():
    names = Dictionary()
    codes = names.codes(["a", "b", "a"])
    columns = [
        Column.array(np.arange(3)),
        Column.array(np.arange(3), valid=np.array([True, False, True])),
        Column.array(codes, dictionary=names),
        Column.constant(7, 3, np.int64),
        Column.null(3, np.int64),
    ]
    for column in columns:
        again = pickle.loads(pickle.dumps(column))
        assert again.texts.tolist() == column.texts.tolist()
        assert (again.values.dtype, again.is_unknown) == (column.values.dtype, column.is_unknown)
        assert again.constant_value == column.constant_value
        assert (again.valid is None) == (column.valid is None)
        assert again.valid is None or again.valid.tolist() == column.valid.tolist()
    for column in (Column.constant(7, 1_000_000, np.int64), Column.null(1_000_000, np.int64)):
        assert len(pickle.dumps(column)) < 1000


@pytest.mark.parametrize("is_text", [False, True])
def test_joined_columns_know_what_their_masks_say(is_text):
    names = Dictionary()
    names.codes(["a", "b"])
    asked = []

    def part():
        def mask():
            asked.append(1)
            return np.array([True, False])

        return Column.derived(2, lambda: np.arange(2), valid=mask, dictionary=names if is_text else None)

    joined = Column.concat([part(), Column.array(np.arange(1), dictionary=names if is_text else None)])
    assert is_text or not asked  # of numbers only when somebody looks
    assert joined.valid.tolist() == [True, False, True]
    assert joined.texts.tolist() == (["a", "b", "a"] if is_text else [0, 1, 0])


def test_pieces_of_joined_columns_are_not_joined():
    joined = Column.concat([Column.derived(2, lambda: np.arange(2)), Column.array(np.arange(3))])
    assert [piece.tolist() for piece in joined.pieces()] == [[0, 1], [0, 1, 2]]
    assert joined.values.tolist() == [0, 1, 0, 1, 2]
    assert [piece.tolist() for piece in joined.pieces()] == [[0, 1, 0, 1, 2]]


def test_pieces_of_columns_side_by_side_have_the_same_rows():
    def joined(*lengths):
        return Column.concat([Column.derived(n, lambda n=n: np.arange(n)) for n in lengths])

    def told(*columns):
        return [tuple(piece.tolist() for piece in some) for some in Column.pieces_of(*columns)]

    assert told(joined(2, 1), joined(2, 1)) == [([0, 1], [0, 1]), ([0], [0])]
    assert told(joined(2, 1), joined(1, 2)) == [([0, 1, 0], [0, 0, 1])]
    assert told(joined(2, 1), Column.array(np.arange(3))) == [([0, 1, 0], [0, 1, 2])]
    assert told(Column.concat([joined(2, 1), joined(3)]), Column.concat([joined(1, 2), joined(3)])) == [
        ([0, 1, 0], [0, 0, 1]),
        ([0, 1, 2], [0, 1, 2]),
    ]


def test_a_piece_has_the_rows_and_keeps_nothing_that_was_made():
    made = []

    def column(values):
        def make():
            made.append(values)
            return np.array(values, np.int64)

        return Column.derived(len(values), make, valid=np.array(values) % 3 != 0)

    joined = Column.concat([column([0, 1, 2, 3]), column([4, 5]), column([6, 7, 8])])
    piece = joined.piece(2, 5)
    assert piece.values.tolist() == [2, 3, 4]
    assert piece.valid is not None
    assert piece.valid.tolist() == [True, False, True]
    assert made == [[0, 1, 2, 3], [4, 5]]
    assert joined.piece(6, 9).values.tolist() == [6, 7, 8]
    assert joined.piece(3, 3).values.tolist() == []
    assert joined.values.tolist() == list(range(9))
    made.clear()
    assert joined.piece(1, 8).values.tolist() == list(range(1, 8))
    assert not made


@pytest.mark.parametrize("count", [0, 1, 16_384, 40_000])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int32, np.int64])
def test_codes_are_looked_up_as_indexes_are(count, dtype):
    table = np.arange(7).astype(dtype)
    codes = (np.arange(count) % 8 - 1).astype(np.int32)
    found = look_up(table, codes)
    assert found.dtype == dtype
    assert found.tolist() == table[codes].tolist()


def test_a_code_that_the_table_does_not_have_is_refused():
    with pytest.raises(IndexError):
        look_up(np.arange(3), np.array([0, 3], np.int32))


@pytest.mark.parametrize("texts", [[], [""], ["a", "", "b\0c", "\u00e4\U0001f600", "a"], ["a", "\udc80"]])
def test_copied_texts_are_the_same_and_no_objects_until_they_are_read(texts):
    made = np.array(texts, object)
    valid = np.arange(len(texts)) % 2 == 0
    column = Column.derived(len(texts), lambda: made, valid=valid).copied()
    assert column.is_made == ("\udc80" in texts)  # UTF-8 does not have it
    assert column.read_once().tolist() == texts
    assert column.valid.tolist() == valid.tolist()
    if texts and not column.is_made:
        for joined, expected in (
            (Column.concat([column, column]), 2 * texts),
            (column.between(1, len(texts)), texts[1:]),
            (Column.concat([column, Column.array(made), column.between(0, 1)]), 2 * texts + texts[:1]),
        ):
            data, begins = joined.encoded()
            assert [data[begin:end].tobytes() for begin, end in pairwise(begins)] == [
                text.encode() for text in expected
            ]
            assert begins[-1] == len(data)
            assert joined.values.tolist() == expected
            assert joined.encoded() is None  # they were read
    assert column.between(0, len(texts) // 2).values.tolist() == texts[: len(texts) // 2]
