"""Is it a list of trace events? Judged by its beginning, with the standard library only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanescope.source.detection import Detection

if TYPE_CHECKING:
    from lanescope.source.detection import FileHead

_SPACE = b" \t\r\n"
_KEYS = (b'"ts"', b'"pid"', b'"tid"', b'"name"')


def detect(head: FileHead) -> Detection:
    """Look for events with a phase."""
    text = head.data.removeprefix(b"\xef\xbb\xbf").lstrip(_SPACE)
    if not text.startswith((b"{", b"[")):
        return Detection(0)
    is_array = text.startswith(b"[")
    events = text[1:] if is_array else _events(text)
    if events is None:
        return Detection(0)
    shape = "an array" if is_array else "an object with traceEvents"
    phases = events.count(b'"ph"')
    if not phases:
        # An array of anything else is not a trace; `traceEvents` is one, though its events lie behind the head.
        return Detection(0) if is_array else Detection(60, "chrome-json", f"{shape}, no event in its head")
    if is_array and not events.lstrip(_SPACE).startswith(b"{"):
        return Detection(0)
    known = sum(key in events for key in _KEYS)
    if known < 2:
        return Detection(40, "chrome-json", f"{shape}, {phases} phases, but no times, processes or names")
    return Detection(80, "chrome-json", f"{shape}, {phases} trace events in its head")


def _events(text: bytes) -> bytes | None:
    """Return what follows the key of the events; None without one."""
    at = text.find(b'"traceEvents"')
    if at < 0:
        return None
    rest = text[at + len(b'"traceEvents"') :].lstrip(_SPACE)
    return rest[1:].lstrip(_SPACE) if rest.startswith(b":") else None
