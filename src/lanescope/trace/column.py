"""Columns: arrays, constants, or values derived from others at the first read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)
#: UTF-8 of texts end to end, uint8, and where each begins, int64 [n + 1].
Encoded = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]

#: Codes that are widened at a time.
_WIDENED = 1 << 14

#: So often is what was joined joined again before its values are made: making them takes some calls for each time.
_DEEPEST = 64

#: NumPy types behind the column types. ``text`` holds int32 codes, ``utf8`` Python strings.
DTYPES: dict[str, np.dtype[Any]] = {
    "int64": np.dtype(np.int64),
    "int32": np.dtype(np.int32),
    "uint64": np.dtype(np.uint64),
    "uint32": np.dtype(np.uint32),
    "uint16": np.dtype(np.uint16),
    "uint8": np.dtype(np.uint8),
    "float64": np.dtype(np.float64),
    "bool": np.dtype(np.bool_),
    "text": np.dtype(np.int32),
    "utf8": np.dtype(object),
}


def look_up(table: npt.NDArray[T], codes: npt.NDArray[np.int32]) -> npt.NDArray[T]:
    """Return the entry of ``table`` for each code, [n]; code -1 has the last one.

    ``table[codes]`` says the same, but numpy takes several times as long for indexes that are not of its own width.
    They are widened some at a time, in the processor's caches.

    Example:
        >>> look_up(np.array([5, 7, 9]), np.array([1, -1], np.int32)).tolist()
        [7, 9]
    """
    found = np.empty(len(codes), table.dtype)
    for at in range(0, len(codes), _WIDENED):
        found[at : at + _WIDENED] = table[codes[at : at + _WIDENED].astype(np.intp, copy=False)]
    return found


class Dictionary:
    """The texts of a dictionary column, in order of first sight; it only grows.

    Batches of one decode share it, so a code means the same text in all of them.

    Example:
        >>> names = Dictionary()
        >>> names.code("load"), names.code("compute"), names.code("load")
        (0, 1, 0)
    """

    __slots__ = ("_codes", "texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}
        for text in texts:
            self.code(text)

    def __len__(self) -> int:
        return len(self.texts)

    def code(self, text: str) -> int:
        """Return the code of ``text``, adding it at the end when it is new."""
        code = self._codes.setdefault(text, len(self.texts))
        if code == len(self.texts):
            self.texts.append(text)
        return code

    def codes(self, texts: Iterable[str]) -> npt.NDArray[np.int32]:
        """Return the codes of ``texts``, int32 [n]."""
        listed = list(texts)
        for text in dict.fromkeys(listed):  # each once, in the order of their first use
            self.code(text)
        return np.fromiter(map(self._codes.__getitem__, listed), np.int32, len(listed))


def _spent() -> Array:
    """Stand for a function whose values are known."""
    raise AssertionError


def _null(length: int, dtype: npt.DTypeLike, dictionary: Dictionary | None) -> Column:
    """Return a pickled column of unknown values."""
    return Column.null(length, dtype, dictionary=dictionary)


def _restored(length: int, stored: Array, valid: Mask | None, dictionary: Dictionary | None, constant: Any) -> Column:
    """Return a pickled column; of a constant ``stored`` has the type only."""
    if constant is None:
        return Column.array(stored, valid=valid, dictionary=dictionary)
    column = Column.constant(constant, length, stored.dtype, dictionary=dictionary)
    column._valid = valid
    return column


#: Texts that are encoded at a time: each is an object for that long.
_TEXTS = 1 << 16


def encoded_texts(texts: Array, errors: str = "replace") -> Encoded:
    """Return texts, object [n], as UTF-8, end to end, and where each begins; ``errors``: as ``str.encode`` takes it."""
    begins, joined = np.zeros(len(texts) + 1, np.int64), bytearray()
    for first in range(0, len(texts), _TEXTS):
        encoded = [text.encode("utf-8", errors) for text in texts[first : first + _TEXTS].tolist()]
        begins[first + 1 : first + 1 + len(encoded)] = [len(text) for text in encoded]
        joined += b"".join(encoded)
    np.cumsum(begins, out=begins)
    return np.frombuffer(joined, np.uint8), begins


def _decoded(data: Array, begins: Array) -> Array:
    """Return texts, object [n], of their UTF-8, end to end, and where each begins."""
    found = np.empty(len(begins) - 1, object)
    for first in range(0, len(found), _TEXTS):
        places = begins[first : first + _TEXTS + 1]
        joined = data[places[0] : places[-1]].tobytes()
        ends = (places - places[0]).tolist()
        found[first : first + _TEXTS] = [joined[begin:end].decode() for begin, end in pairwise(ends)]
    return found


def _between(encoded: Encoded, start: int, stop: int) -> Encoded:
    data, begins = encoded
    return data[begins[start] : begins[stop]], begins[start : stop + 1] - begins[start]


def _joined(parts: Sequence[Encoded]) -> Encoded:
    """Join texts end to end."""
    sizes = np.cumsum([0, *(len(data) for data, _ in parts)])
    begins = [begins[:-1] + size for (_, begins), size in zip(parts, sizes.tolist(), strict=False)]
    return np.concatenate([data for data, _ in parts]), np.concatenate([*begins, sizes[-1:]])


class Column:
    """Values of one column, an optional validity mask, an optional dictionary.

    Attributes:
        dictionary: texts that the int32 values index, for ``text`` columns.
        runs: values that follow one another, int64 [runs], and in how many rows each, int64 [runs]; None: not known.
        encode: of a ``utf8`` column whose texts are quicker to encode than to make: returns their UTF-8 end to end,
            uint8, and where each begins, int64 [n + 1]. None of others.
    """

    __slots__ = (
        "_depth",
        "_length",
        "_make",
        "_parts",
        "_valid",
        "_values",
        "constant_value",
        "dictionary",
        "encode",
        "runs",
    )

    def __init__(
        self,
        length: int,
        make: Callable[[], Array],
        *,
        valid: Mask | Callable[[], Mask | None] | None = None,
        dictionary: Dictionary | None = None,
        constant_value: Any = None,
    ) -> None:
        if valid is not None and not callable(valid) and len(valid) != length:
            raise ValueError(f"validity mask has {len(valid)} rows: expected {length}")
        self._length = length
        self._make = make
        self._parts: Sequence[Column] = ()
        self._depth = 0  # of what is joined of what is joined, until the values are made
        self._values: Array | None = None
        self._valid = valid
        self.dictionary = dictionary
        self.constant_value = constant_value
        self.runs: tuple[Array, Array] | None = None
        self.encode: Callable[[], Encoded] | None = None

    @classmethod
    def array(cls, values: Array, *, valid: Mask | None = None, dictionary: Dictionary | None = None) -> Column:
        """Wrap an array as it is; the caller gives up writing to it.

        Args:
            values: [n] of the column's dtype; int32 codes when ``dictionary`` is given.
            valid: bool [n], False where the value is unknown; values under False are set to 0 by the builder.
            dictionary: the texts behind the codes.
        """
        column = cls(len(values), lambda: values, valid=valid, dictionary=dictionary)
        column._values = values
        return column

    @classmethod
    def constant(cls, value: Any, length: int, dtype: npt.DTypeLike, *, dictionary: Dictionary | None = None) -> Column:
        """One value for all rows, stored once."""
        return cls(
            length,
            lambda: np.broadcast_to(np.asarray(value, dtype), (length,)),
            dictionary=dictionary,
            constant_value=value,
        )

    @classmethod
    def null(cls, length: int, dtype: npt.DTypeLike, *, dictionary: Dictionary | None = None) -> Column:
        """All rows unknown, stored once."""
        zero = "" if np.dtype(dtype) == object else 0
        column = cls.constant(zero, length, dtype, dictionary=dictionary)
        column._valid = np.ndarray((length,), np.bool_, b"\0", strides=(0,))
        return column

    @classmethod
    def derived(
        cls,
        length: int,
        make: Callable[[], Array],
        *,
        valid: Mask | Callable[[], Mask | None] | None = None,
        dictionary: Dictionary | None = None,
    ) -> Column:
        """Values computed by ``make`` at the first read and kept from then on; ``valid`` may be computed as well."""
        return cls(length, make, valid=valid, dictionary=dictionary)

    @classmethod
    def repeated(cls, runs: tuple[Array, Array], make: Callable[[], Array]) -> Column:
        """Values that ``make`` repeats, each in as many rows as ``runs`` say, which those can use who go by runs."""
        column = cls(int(runs[1].sum()), make)
        column.runs = runs
        return column

    def __len__(self) -> int:
        return self._length

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the values, which are computed if they have to be; a constant is stored once."""
        if self.is_unknown:
            return _null, (self._length, self.values.dtype, self.dictionary)
        constant = self.constant_value
        stored = self.values if constant is None else self.values[:0]
        return _restored, (self._length, stored, self.valid, self.dictionary, constant)

    @property
    def values(self) -> Array:
        """The values, [n]; dictionary columns give int32 codes; read-only for constants."""
        make = self._make  # first: another thread may make them meanwhile
        if self._values is None:
            self._values = self._made(make)
            self._make, self._parts, self._depth = _spent, (), 0  # what the values were made from may go
        return self._values

    def _made(self, make: Callable[[], Array]) -> Array:
        values = make()
        if len(values) != self._length:
            raise ValueError(f"derived column has {len(values)} rows: expected {self._length}")
        return values

    def read_once(self) -> Array:
        """Return the values, [n], and do not keep them if they have to be made: for columns that are read once."""
        make = self._make
        return self.values if self._values is not None else self._made(make)

    def pieces(self) -> Iterator[Array]:
        """Yield the values in pieces, and neither keep nor join those that have to be made: for one look at each."""
        parts = self._parts  # first: another thread may make them meanwhile
        if not parts:
            yield self.read_once()
        for part in parts:
            yield from part.pieces()

    @staticmethod
    def pieces_of(*columns: Column) -> Iterator[tuple[Array, ...]]:
        """Yield ``pieces`` of columns of one length side by side, those with the same rows together."""
        parts = [column._parts for column in columns]
        lengths = {tuple(map(len, some)) for some in parts}
        if len(lengths) > 1 or not parts[0]:
            yield tuple(column.read_once() for column in columns)
            return
        for some in zip(*parts, strict=True):
            yield from Column.pieces_of(*some)

    @property
    def valid(self) -> Mask | None:
        """Bool [n], False where unknown; None when every value is known."""
        valid = self._valid  # first: another thread may make it meanwhile
        if callable(valid):
            valid = valid()
            if valid is not None and len(valid) != self._length:
                raise ValueError(f"validity mask has {len(valid)} rows: expected {self._length}")
            self._valid = valid
        return valid

    @property
    def texts(self) -> npt.NDArray[np.object_]:
        """The values as Python strings, object [n]."""
        if self.dictionary is None:
            return self.values
        if not self.dictionary.texts:
            return np.full(self._length, "", dtype=object)
        return np.array(self.dictionary.texts, dtype=object)[self.values]

    def encoded(self) -> Encoded | None:
        """Return what ``encode`` does, of a column whose texts were not read yet; None of others."""
        return self.encode() if self.encode is not None and self._values is None else None

    @property
    def is_made(self) -> bool:
        """Whether the values are at hand, or are still to be made."""
        return self._values is not None

    @property
    def is_unknown(self) -> bool:
        """True for a column made by ``null``: all values are unknown, and none is stored."""
        valid = self._valid
        if valid is None or callable(valid):
            return False
        return valid.strides == (0,) and self._length > 0 and not valid[0]

    def copied(self) -> Column:
        """Return the same values in arrays that are made now: what they are made from is referred to no more.

        Texts are UTF-8 in them, and are made of it when they are read.
        """
        if self.is_unknown or self.constant_value is not None:
            return self
        values, valid = self.read_once(), self.valid
        valid = None if valid is None else valid.copy()
        if values.dtype == object:
            try:
                encoded = encoded_texts(values, "strict")
            except UnicodeEncodeError:  # UTF-8 does not have them
                return Column.array(values.copy(), valid=valid)
            data, begins = encoded[0].copy(), encoded[1].copy()
            column = Column.derived(len(values), lambda: _decoded(data, begins), valid=valid)
            column.encode = lambda: (data, begins)
            return column
        return Column.array(values.copy(), valid=valid, dictionary=self.dictionary)

    def take(self, indices: Array) -> Column:
        """Return the rows at ``indices`` (int64 [m])."""
        valid = None if self.valid is None else self.valid[indices]
        if self.constant_value is not None:
            column = Column.constant(self.constant_value, len(indices), self.values.dtype, dictionary=self.dictionary)
            column._valid = valid
            return column
        return Column.array(self.values[indices], valid=valid, dictionary=self.dictionary)

    def between(self, start: int, stop: int) -> Column:
        """Return the rows from ``start`` to before ``stop``, not copied."""
        if self.is_unknown:
            return Column.null(stop - start, self.values.dtype, dictionary=self.dictionary)
        known = self.valid
        valid = None if known is None else known[start:stop]
        if self.constant_value is not None:
            column = Column.constant(self.constant_value, stop - start, self.values.dtype, dictionary=self.dictionary)
            column._valid = valid
            return column
        encode = self.encode
        if encode is not None and self._values is None:
            column = Column.derived(stop - start, lambda: self.values[start:stop], valid=valid)
            column.encode = lambda: _between(encode(), start, stop)
            return column
        return Column.array(self.values[start:stop], valid=valid, dictionary=self.dictionary)

    def piece(self, start: int, stop: int) -> Column:
        """Return the rows from ``start`` to before ``stop``; values that have to be made are copied, and not kept."""
        if self._values is not None or self.constant_value is not None or self.is_unknown:
            return self.between(start, stop)
        if self._parts:
            begins = np.cumsum([0, *map(len, self._parts)]).tolist()
            some = [
                part.piece(max(start - begin, 0), min(stop - begin, len(part)))
                for part, begin in zip(self._parts, begins, strict=False)
                if begin < stop and start < begin + len(part)
            ]
            return Column.concat(some or [self._parts[0].piece(0, 0)])
        if self.encode is not None:
            return self.between(start, stop)
        known = self.valid
        valid = None if known is None else known[start:stop]
        return Column.array(self.read_once()[start:stop].copy(), valid=valid, dictionary=self.dictionary)

    @staticmethod
    def concat(columns: Sequence[Column]) -> Column:
        """Join columns of one type end to end; dictionaries that differ are united, in order of first sight."""
        joined = Column._concat(columns)
        if joined._parts:
            joined._depth = 1 + max(part._depth for part in joined._parts)
        if joined._depth > _DEEPEST:
            _ = joined.values, joined.valid
        return joined

    @staticmethod
    def _concat(columns: Sequence[Column]) -> Column:
        columns = [column for column in columns if len(column)] or columns[:1]
        if len(columns) == 1:
            return columns[0]
        length = sum(len(column) for column in columns)
        if all(column.is_unknown for column in columns):
            return Column.null(length, columns[0].values.dtype, dictionary=columns[0].dictionary)
        first = columns[0]
        dictionary = first.dictionary

        def joined() -> Mask | None:
            if all(column.valid is None for column in columns):
                return None
            return np.concatenate([np.ones(len(c), np.bool_) if c.valid is None else c.valid for c in columns])

        if dictionary is None and any(callable(column._valid) for column in columns):
            column = Column.derived(length, lambda: np.concatenate([c.values for c in columns]), valid=joined)
            column._parts = columns
            return column
        valid = joined()
        if dictionary is not None and any(column.dictionary is not dictionary for column in columns):
            return Column._concat_texts(columns, valid)
        constant = first.constant_value
        if constant is not None and len({repr(column.constant_value) for column in columns}) == 1:
            column = Column.constant(constant, length, first.values.dtype, dictionary=dictionary)
            column._valid = valid
            return column
        column = Column.derived(
            length, lambda: np.concatenate([c.read_once() for c in columns]), valid=valid, dictionary=dictionary
        )
        column._parts = columns
        if any(part.encode is not None for part in columns):
            column.encode = lambda: _joined([part.encoded() or encoded_texts(part.values) for part in columns])
        return column

    @staticmethod
    def _concat_texts(columns: Sequence[Column], valid: Mask | None) -> Column:
        united = Dictionary()
        mappings = [united.codes([] if column.dictionary is None else column.dictionary.texts) for column in columns]

        def translated(column: Column, mapping: Array) -> Column:
            def codes() -> Array:
                return mapping[column.read_once()] if len(mapping) else np.zeros(len(column), np.int32)

            found = Column.derived(len(column), codes, valid=column._valid, dictionary=united)
            found._depth = column._depth
            return found

        parts = [translated(column, mapping) for column, mapping in zip(columns, mappings, strict=True)]
        found = Column.derived(
            sum(map(len, columns)),
            lambda: np.concatenate([part.read_once() for part in parts]),
            valid=valid,
            dictionary=united,
        )
        found._parts = parts
        return found
