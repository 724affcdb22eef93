"""The content of a file as text that stands in memory for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from lanescope._native import core
    from lanescope.source.file import Source


class MappedText:
    """The content of a source with a zero behind it, uint8 [size + 1], inside a ``with``.

    Args:
        source: what is read.

    Raises:
        InputError: reading fails, or the file has become shorter; at the end of the ``with``, too.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._watch: core.FileWatch | None = None

    def __enter__(self) -> npt.NDArray[np.uint8]:
        text, self._watch = self._source._map()
        return text

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        # What was made of the zeros in place of the content may be wrong in any way: an error of it says nothing.
        if self._watch is not None and (error is None or isinstance(error, Exception)):
            self._source._check_length(self._watch)
