"""Names under which a viewer shows tracks and findings: what tells them apart comes first, and order and hue are right.

* An address in the name of a track becomes a number, counted per kind: ``list 0x5500000c1680`` is ``list 3``. The
  description of the track has the whole name.
* The top tracks of a trace in cycles end with ``CYCLES``.
* The viewer orders top tracks by name. Where a host would come below a device, hosts begin with a space, which a page
  does not show.
* The label of a finding begins with its severity. The viewer takes the hue of a slice from a hash of its name without
  digits; where that would be red without an error, spaces behind the label lead to another one.

Source: google/perfetto v52, ui/src/components/colorizer.ts (hue), src/trace_processor/perfetto_sql/stdlib/viz
(``_track_event_tracks_ordered_groups``: order of top tracks).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from lanescope.trace import Table, TimeBase

#: Behind the names of top tracks, where the axis counts cycles.
CYCLES = " [cycles: 1 cycle as 1 ns]"
#: Before the whole name of a track, in its description.
WHOLE = "name: "

_ADDRESS = re.compile(r"\b([A-Za-z_-]+) (0x[0-9a-fA-F]{5,16})\b")
_HOSTS = frozenset({"application", "host", "process", "host_thread", "recorder"})
_DIGITS = re.compile(" ?[0-9]+")
#: Hues in degrees that look red, at the viewer's saturation: from the first, over 0, up to the last.
RED = (340, 28)
_MOST_SPACES = 12


def shown_names(tracks: Table, time: TimeBase) -> dict[int, str]:
    """Return the names of the tracks that are shown under another one than their own, by row.

    Args:
        tracks: the tracks of a trace.
        time: its time base.
    """
    names = tracks.values("name")
    rows = [row for row, name in enumerate(names) if "0x" in name]
    found: dict[int, str] = {}
    if rows:
        shown = numbered(names[rows].tolist(), names)
        found = {row: shown[name] for row, name in zip(rows, names[rows].tolist(), strict=True) if name in shown}
    tops = np.flatnonzero(~tracks.valid("parent_id"))
    is_host = [role in _HOSTS for role in tracks.values("role")[tops].tolist()]
    suffix = CYCLES if time.time_unit == "cycles" else ""
    own = dict(zip(tops.tolist(), names[tops].tolist(), strict=True))
    title = {row: found.get(row, name) for row, name in own.items()}
    hosts, others = (
        [name for name, host in zip(title.values(), is_host, strict=True) if host is wanted] for wanted in (True, False)
    )
    indent = " " if hosts and others and max(hosts) >= min(others) else ""
    for (row, name), host in zip(own.items(), is_host, strict=True):
        text = (indent if host else "") + title[row] + suffix
        if text != name:
            found[row] = text
    return found


def numbered(names: Iterable[str], others: Iterable[str] = ()) -> dict[str, str]:
    """Return the names that hold an address, each with a number in its place.

    Numbers count the addresses of a kind from 0, in order of the names.

    Args:
        names: the names.
        others: further names; one that would become the same as another stays as it is.

    Example:
        >>> numbered(["list 0x5500000c1680, index 1", "list 0x5500000c1700", "core 0"])
        {'list 0x5500000c1680, index 1': 'list 0, index 1', 'list 0x5500000c1700': 'list 1'}
    """
    asked = list(dict.fromkeys(names))
    taken = {*asked, *others}
    numbers: dict[str, dict[str, int]] = {}

    def number(match: re.Match[str]) -> str:
        of_kind = numbers.setdefault(match[1], {})
        return f"{match[1]} {of_kind.setdefault(match[2].lower(), len(of_kind))}"

    found: dict[str, str] = {}
    for name in asked:
        shown = _ADDRESS.sub(number, name)
        if shown not in taken:
            found[name] = shown
            taken.add(shown)
    return found


def finding_label(code: str, severity: str, title: str) -> str:
    """Return the text that a finding is drawn with; without an error it does not look red."""
    label = f"{severity} {code}: {title}"
    if severity == "error":
        return label
    for spaces in range(_MOST_SPACES):
        if not is_red(label + " " * spaces):
            return label + " " * spaces
    return label


def is_red(name: str) -> bool:
    """Return whether the viewer draws what has this name in red."""
    hue = viewer_hue(name)
    return hue >= RED[0] or hue <= RED[1]


def viewer_hue(name: str) -> int:
    """Return the hue, in degrees, that the Perfetto UI gives to slices of a name.

    Example:
        >>> viewer_hue("dependency"), viewer_hue("load 7") == viewer_hue("load 8")
        (124, True)
    """
    value = 18652613
    for unit in memoryview(_DIGITS.sub("", name).encode("utf-16-le", "surrogatepass")).cast("H"):
        # As JavaScript does it: a product of floating-point numbers, then its last 32 bits as a signed number.
        value = int(float(_signed(value ^ unit)) * 16777619.0) & 0xFFFF_FFFF
        value = _signed(value)
    return abs(value) % 360


def _signed(value: int) -> int:
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >= 1 << 31 else value
