"""For which region waits that are alike mostly wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from lanescope.common.intervals import Ints, sums


class ProducerVotes(NamedTuple):
    """How often waits of one kind are charged to a region; int64 [n] each, by kind and name, no two rows alike.

    Attributes:
        alike: number of the kind of wait.
        name: code of the name of the region.
        votes: waits.
    """

    alike: Ints
    name: Ints
    votes: Ints

    @classmethod
    def of(cls, alike: Ints, name: Ints, count: Ints | None = None) -> ProducerVotes:
        """Count pairs.

        Args:
            alike: int64 [n], kinds of waits, 0 or more.
            name: int64 [n], codes of names.
            count: int64 [n], how many waits each row counts; None: one.
        """
        width = int(name.max(initial=0)) + 1
        pairs, inverse = np.unique(alike * width + name, return_inverse=True)
        one = np.ones(len(alike), np.int64) if count is None else count
        return cls(pairs // width, pairs % width, sums(inverse.reshape(-1), one, len(pairs)))

    @classmethod
    def joined(cls, parts: Iterable[ProducerVotes]) -> ProducerVotes:
        """Return the votes of parts together."""
        nothing = np.empty(0, np.int64)
        columns = zip(cls(nothing, nothing, nothing), *parts, strict=True)
        return cls.of(*(np.concatenate(column) for column in columns))

    def usual(self, alike: Ints) -> Ints:
        """Return the name that waits of each kind are charged to most often, int64 [n], -1 for none.

        Of several the one with the smallest code.
        """
        if not len(self.alike):
            return np.full(len(alike), -1, np.int64)
        best = np.lexsort((-self.name, self.votes, self.alike))
        best = best[np.append(np.diff(self.alike[best]) != 0, True)]
        at = np.minimum(np.searchsorted(self.alike[best], alike), len(best) - 1)
        return np.where(self.alike[best][at] == alike, self.name[best][at], -1)
