"""Operations that the recorder could not time: how many, why, and what helps. Standard library only."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

#: What a process leaves in its folder if operations of it were not timed: ``REASON COUNT``, a line each. No part of the
#: trace, hence hidden from its readers.
NOTES = ".untimed"

#: Reason of the recorder -> where or why, and what helps.
#: Source: ``Reason`` in native/recorder/levelzero/api/enums.hpp.
REASONS: Mapping[str, tuple[str, str]] = {
    "out_of_order_no_reset": (
        "in out-of-order command lists, as event resets of this driver do not work",
        "use events with timestamps or in-order lists",
    ),
    "no_memory": ("as the driver had no event or memory for them", "use --start-paused to record a part"),
    "unknown_list": ("in command lists whose creation was not recorded", "use --preload"),
    "cloneable": ("in command lists that may be cloned", "run 'lanescope check' for their number"),
    "mutable": ("in command lists that may change after closing", "run 'lanescope check' for their number"),
    "capturing": ("in command lists that record a graph", "run 'lanescope check' for their number"),
    "captured": (
        "in closed command lists that are part of a graph",
        "use --no-device-timestamps if events are signaled early",
    ),
    "device_error": ("after a failure of the device", "run 'lanescope check' for the rest"),
    "chain_failed": ("as the driver refused to forward a signal", "use --on-failure abort to find the call"),
    "read_by_device": (
        "as command lists made before them query the timestamps of their events",
        "append such queries after the operations",
    ),
    "not_timed": ("as the driver has no functions to time them", "update the driver"),
}


def read(folder: Path) -> Counter[str]:
    """Return how many operations of all processes were not timed, by reason.

    Args:
        folder: what was recorded. A process that was killed has left no notes.
    """
    found: Counter[str] = Counter()
    for path in folder.glob(f"*/{NOTES}"):
        with contextlib.suppress(OSError):
            for line in path.read_text(errors="replace").splitlines():
                reason, _, count = line.partition(" ")
                if count.isdecimal():
                    found[reason] += int(count)
    return found


#: Runs that are timed, but began later than without the recorder.
PROLOGUE = "prologue"
#: Queries of the program that read other timestamps than without the recorder.
FALSE_QUERY = "user_query_untranslated"
#: What helps where resets fail, by ``--event-resets``.
_RESETS: Mapping[str, str] = {
    "off": "omit --event-resets off",
    "watch": "omit --event-resets watch, which times only part of them",
}


def describe(reason: str, count: int, event_resets: str = "auto") -> str:
    """Return the warning of a reason: how many operations, why, and what helps.

    Args:
        reason: the reason of the recorder.
        count: how many operations, or executions with a prologue.
        event_resets: the value of ``--event-resets``.
    """
    if reason == PROLOGUE:
        noun = "execution" if count == 1 else "executions"
        return (
            f"{count:,} {noun} of out-of-order command lists started later: event resets of this driver do not work, "
            "and commands of the recorder reset them first; use --event-resets watch to add no command"
        )
    if reason == FALSE_QUERY:
        noun = "query" if count == 1 else "queries"
        return (
            f"{count:,} {noun} of timestamps by the program may return those of a command of the recorder or of an "
            f"earlier operation ({reason}); use --no-device-timestamps if the program needs them"
        )
    why, option = REASONS.get(reason, ("for a reason that this version does not know", "update lanescope"))
    if reason == "out_of_order_no_reset":
        option = _RESETS.get(event_resets, option)
    noun = "operation" if count == 1 else "operations"
    return f"{count:,} {noun} without timestamps: {why} ({reason}); {option}"
