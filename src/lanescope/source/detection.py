"""Input and result of format detection."""

from __future__ import annotations

from typing import NamedTuple

HEAD_BYTES = 65536
#: Scores: below 50 "not mine"; 90 and more: magic, or all checks hold on 8 or more units.
MINE = 50
CERTAIN = 90
#: Two families within this many points are a tie: the user has to say which.
TIE = 10


class FileHead(NamedTuple):
    """The first bytes of an input.

    Attributes:
        data: at most 64 KiB from its start, after decompression.
        size: bytes of content in all.
        name: file name without the folder; ``-`` for a pipe.
    """

    data: bytes
    size: int
    name: str

    @property
    def is_whole(self) -> bool:
        """True if ``data`` is the complete file."""
        return len(self.data) == self.size


class Detection(NamedTuple):
    """Result of the detection of a family, with a score.

    Attributes:
        score: 0 to 100.
        format: the family's name for the format; empty when it is not its own.
        reason: one clause that a user can judge: what was checked and how it came out.
        advice: what to do about it, where the family knows what is wrong with an input that it does not recognise.
    """

    score: int
    format: str = ""
    reason: str = ""
    advice: str = ""

    @property
    def is_recognized(self) -> bool:
        """Whether the input is the family's own."""
        return self.score >= MINE
