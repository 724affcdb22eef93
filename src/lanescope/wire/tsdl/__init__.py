"""TSDL, the language of CTF 1.8 descriptions, the JSON of CTF 2, and any trace that is described in one of them.

``parse`` reads TSDL into types, ``describe`` makes of them, or of JSON, what a trace has: clocks, streams, events.
``Reader`` walks streams natively; ``ReferenceReader`` does the same in Python, one field after the other, and gives
the values of any event. Traces of lanescope's own recorder are read by ``lanescope.wire.ctf``, which is told less and
repairs more.
"""

from lanescope.wire.tsdl.description import describe
from lanescope.wire.tsdl.files import metadata_text
from lanescope.wire.tsdl.program import Leaf
from lanescope.wire.tsdl.reader import ABSENT, Columns, Extraction, Reader, Walk
from lanescope.wire.tsdl.reference import ReferenceReader
from lanescope.wire.tsdl.trace_kinds import Clock, Description, EventKind, StreamKind
from lanescope.wire.tsdl.types import Array, Integer, Real, Struct, Text, TsdlError, Type, Variant, alignment

__all__ = [
    "ABSENT",
    "Array",
    "Clock",
    "Columns",
    "Description",
    "EventKind",
    "Extraction",
    "Integer",
    "Leaf",
    "Reader",
    "Real",
    "ReferenceReader",
    "StreamKind",
    "Struct",
    "Text",
    "TsdlError",
    "Type",
    "Variant",
    "Walk",
    "alignment",
    "describe",
    "metadata_text",
]
