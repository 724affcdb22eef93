"""CTF 1.8, the trace format of LTTng and babeltrace2: the description of a trace, and its streams of events.

Read is the part of the format whose fields are whole little-endian bytes without gaps: integers, enumerations, texts
and sequences of integers; all streams of a trace are of one kind. The description (the file ``metadata``, written in
TSDL) declares which fields packets and events have. ``Reader`` walks streams natively; ``ReferenceReader`` does the
same in Python, one field after the other.
"""

from lanescope.wire.ctf.metadata import (
    INTEGER,
    MOST_TEXT,
    SEQUENCE,
    SIGNATURE,
    TEXT,
    CtfError,
    EventClass,
    Field,
    Metadata,
    describe,
)
from lanescope.wire.ctf.reference import ReferenceReader
from lanescope.wire.ctf.rewritten import RewrittenReader
from lanescope.wire.ctf.streams import MAGIC, PACKET, Events, Layout, Reader, sequences, texts

__all__ = [
    "INTEGER",
    "MAGIC",
    "MOST_TEXT",
    "PACKET",
    "SEQUENCE",
    "SIGNATURE",
    "TEXT",
    "CtfError",
    "EventClass",
    "Events",
    "Field",
    "Layout",
    "Metadata",
    "Reader",
    "ReferenceReader",
    "RewrittenReader",
    "describe",
    "sequences",
    "texts",
]
