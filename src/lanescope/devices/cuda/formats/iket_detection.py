"""Is it JSON of IKET, or of FlyDSL? Every JSON file of any family is asked, so this loads nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanescope.source import CERTAIN, Detection

if TYPE_CHECKING:
    from lanescope.source import FileHead

FORMAT = "iket-json"
_KEYS = (b'"launches"', b'"graphLaunches"', b'"stringTable"', b'"locationTable"', b'"warpLifetimes"')
#: So many of them in the beginning of a file are no coincidence.
_ENOUGH_KEYS = 2


FLYTRACE_FORMAT = "flytrace-json"
_FLYTRACE = b'"flytrace.raw.v1"'
#: The name of the form is the first key of the object.
_FIRST = 64


def detect_flytrace(head: FileHead) -> Detection:
    """Detect files by the name of their form."""
    start = head.data[:_FIRST].lstrip()
    if not start.startswith(b"{") or _FLYTRACE not in start:
        return Detection(0, "", "not a JSON object of FlyDSL")
    return Detection(CERTAIN, FLYTRACE_FORMAT, 'JSON object with "format": "flytrace.raw.v1"')


def detect(head: FileHead) -> Detection:
    """Detect files by the keys of their objects."""
    if not head.data[:64].lstrip().startswith(b"{"):
        return Detection(0, "", "not a JSON object")
    found = [key.decode().strip('"') for key in _KEYS if key in head.data]
    if len(found) < _ENOUGH_KEYS:
        return Detection(0, "", "keys of IKET not found")
    return Detection(CERTAIN, FORMAT, f"JSON object with {', '.join(found)}")
