"""How a binary layout is declared once, as data, and what follows from the declaration.

``Record`` is a word of bit fields, ``Struct`` a C struct, ``FrameSet`` a stream of prefix-coded records in words. Each
has the slow, obvious codec against which the fast one is tested; ``lanescope.wire.strategies`` makes hypothesis
strategies from it and ``lanescope.wire.reference_docs`` its reference table. A packet is a ``Struct`` whose first
member is the header ``Record`` and whose second is the array of payload words.
"""

from __future__ import annotations

from lanescope.wire.c_struct import Member, Struct
from lanescope.wire.dump_lines import dump_lines
from lanescope.wire.frame_codec import Frame, FrameSet
from lanescope.wire.record import STATUSES, Field, Record

__all__ = ["STATUSES", "Field", "Frame", "FrameSet", "Member", "Record", "Struct", "dump_lines"]
