"""Is it JSON of IKET, or of FlyDSL? Every JSON file of any family is asked, so this loads nothing else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lanescope.source import CERTAIN, Detection

if TYPE_CHECKING:
    from lanescope.source import FileHead

FORMAT = "iket-json"
_KEYS = (b'"launches"', b'"graphLaunches"', b'"stringTable"', b'"locationTable"', b'"warpLifetimes"')
#: So many of them in the beginning of a file are no coincidence.
_ENOUGH_KEYS = 2

FLYTRACE_FORMAT = "flytrace-json"
_FLYTRACE = re.compile(rb'"format"\s*:\s*"flytrace\.raw\.v1"')
#: Keys of a wave: where they come first, the name of the form may be behind them all.
_WAVE_KEYS = (b'"waves"', b'"epoch"', b'"end_tick"', b'"attempted_events"')


def detect_flytrace(head: FileHead) -> Detection:
    """Detect files by the name of their form, or by the keys of their waves."""
    if head.data[:64].lstrip().startswith(b"{"):
        if _FLYTRACE.search(head.data):
            return Detection(CERTAIN, FLYTRACE_FORMAT, 'JSON object with "format": "flytrace.raw.v1"')
        if not head.is_whole and all(key in head.data for key in _WAVE_KEYS):
            return Detection(CERTAIN, FLYTRACE_FORMAT, "JSON object with waves of FlyDSL")
    return Detection(0, "", "not a JSON object of FlyDSL")


def detect(head: FileHead) -> Detection:
    """Detect files by the keys of their objects."""
    if not head.data[:64].lstrip().startswith(b"{"):
        return Detection(0, "", "not a JSON object")
    found = [key.decode().strip('"') for key in _KEYS if key in head.data]
    if len(found) < _ENOUGH_KEYS:
        return Detection(0, "", "keys of IKET not found")
    return Detection(CERTAIN, FORMAT, f"JSON object with {', '.join(found)}")
