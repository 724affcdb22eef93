"""What captures of a family cannot prove."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from lanescope.families.declaration import Reference, declared_class

if TYPE_CHECKING:
    from lanescope.trace import Trace


@declared_class
class Limit:
    """Something that a capture cannot prove, because of how it was recorded: ``lanescope doctor CAPTURE``.

    Attributes:
        name: lower case, with dashes, unique in the family.
        cannot: what cannot be proven, one sentence.
        instead: what to record differently, in the imperative.
        where: what of a trace it concerns, in a few words each; empty: nothing. The trace has all tables but those of
            events (slices, instants, counters, flows) and their details.
    """

    name: str
    cannot: str
    instead: str
    where: Reference[Callable[[Trace], Iterable[str]]]
