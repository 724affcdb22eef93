"""What no trace unit writes, though it can be read: a unit has exactly one encoding for what it saw.

A unit takes the shortest frame, says that a state goes on by Repeats of at most 1023 cycles, and begins a new word only
where the next frame does not fit in the rest of the old one. Encoding what was decoded of hardware captures by these
rules gives their words bit for bit (modes 0 and 1; mode 2 without Repeats). A stream that breaks them was changed, or
misses, repeats or exchanges packets: where one packet ends and another begins that did not follow it, a Repeat stands
that repeats nothing, or a frame that the rest of the last word had room for.

This is the measure of the native decoder, which counts the same frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lanescope.devices.aie.formats.layout import FILLERS, MODE0
from lanescope.wire import Frame

#: Grades: captures of hardware show what a unit writes instead; or no capture that we know shows the case.
NEVER, UNSEEN = "never", "unseen"

_EVENT_TIME, _EVENT_PC, _EXECUTION = range(3)
_MOST_REPEATS = MODE0["repeat1"]["repeats"].mask
#: Least idle cycles, or repeats, for which a unit takes a frame of this kind.
_LEAST = {
    "single1": 1 << 4,
    "single2": 1 << 10,
    "multiple1": 1 << 4,
    "multiple2": 1 << 10,
    "repeat0": 1,
    "repeat1": 1 << 4,
}


@dataclass(slots=True)
class _Before:
    """What the frames before say about the next one.

    Attributes:
        mask: events of the last event frame of mode 0; None where it is unknown.
        idle: its idle cycles.
        is_synced: whether a Sync lies between it, or its Repeats, and now.
        repeats: those of the last frame; None if it was no Repeat.
        padding: bits of padding behind the last frame.
    """

    mask: int | None = None
    idle: int = 0
    is_synced: bool = False
    repeats: int | None = None
    padding: int = 0


def departures(frames: Sequence[tuple[int, Frame]]) -> Iterator[tuple[int, str]]:
    """Yield the frames of one source that no trace unit writes where they are.

    Args:
        frames: mode and frame, of ``layout.decode_stream``: the frames of packets that follow each other.

    Yields:
        Index and grade, ``NEVER`` or ``UNSEEN``. Frames outside of Start and Stop, and those next to one that cannot be
        read, are not judged.
    """
    is_open, before = False, _Before()
    for index, (mode, frame) in enumerate(frames):
        if frame.record is None:
            is_open &= mode <= _EXECUTION
            if frame.error == "truncated":
                is_open = False
            before = _Before()
            continue
        name = frame.record.name
        if name == "start":
            is_open, before = mode <= _EXECUTION, _Before()
        elif not is_open:
            continue
        elif name in FILLERS:
            before.padding += frame.bits
        else:
            # Padding in the same word, or as much as this frame needs at the end of the word before.
            had_room = before.padding > 0 if frame.bit else 0 < frame.bits <= before.padding
            grade = NEVER if had_room else ""
            found = _judge(before, mode, name, frame)
            before.padding = 0
            is_open = name != "stop"
            if grade or found:
                yield index, grade or found


def _judge(before: _Before, mode: int, name: str, frame: Frame) -> str:
    """Return the grade of a frame by its content, and note it; "" if it is sound."""
    if name in ("repeat0", "repeat1"):
        return _repeat(before, mode, name, frame.values["repeats"])
    if name == "sync":
        before.is_synced = True
        return ""
    if mode == _EVENT_TIME and name != "stop":
        return _event(before, name, frame)
    before.is_synced, before.repeats = False, None
    return NEVER if mode == _EVENT_PC and name == "event_pc" and not frame.values["mask"] else ""


def _repeat(before: _Before, mode: int, name: str, repeats: int) -> str:
    is_wrong = repeats < _LEAST[name] or before.repeats not in (None, _MOST_REPEATS) or before.is_synced
    is_late = mode == _EVENT_TIME and before.mask is not None and before.idle > 0
    before.repeats, before.is_synced = repeats, False
    if mode == _EXECUTION:
        return UNSEEN if is_wrong else ""
    return NEVER if is_wrong else UNSEEN if is_late else ""


def _event(before: _Before, name: str, frame: Frame) -> str:
    cycles = frame.values["cycles"]
    mask = 1 << frame.values["slot"] if "slot" in frame.values else frame.values["mask"]
    is_repeated = not before.is_synced and before.idle == 0 and cycles == 0 and mask == before.mask
    before.mask, before.idle, before.is_synced, before.repeats = mask, cycles, False, None
    if is_repeated or (name.startswith("multiple") and mask.bit_count() < 2):
        return NEVER
    if cycles >= _LEAST.get(name, 0):
        return ""
    # No capture that we know holds several events after so many cycles.
    return UNSEEN if name == "multiple2" and cycles >= _LEAST["multiple1"] else NEVER
