"""Following a recording that grows: its tally, again and again, until the recorder ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from lanescope.devices.levelzero.analysis.live_tally import LiveTally
from lanescope.devices.levelzero.formats.ctf_growing import GrowingRecording, check_recording
from lanescope.trace import Table

#: Time between two looks, s. It is longer where a look takes long: following takes a tenth of a processor at most.
INTERVAL_S = 1.0
_SHARE = 10


def tables(path: str) -> Iterator[Table]:
    """Yield the tally of a recording each time it was looked at; the last one is that of all of it.

    Args:
        path: the folder of the recording; it may have no process yet.

    Raises:
        InputError: it is not a recording.
    """
    folder = Path(path)
    check_recording(folder)
    recording, tally = GrowingRecording(folder), LiveTally()
    is_growing = True
    while is_growing:
        begin = time.process_time()
        # Asked before the look: what comes in between is found by the last one.
        is_growing = recording.is_growing()
        tally.add(recording.look(is_last=not is_growing))
        while recording.has_more:
            tally.add(recording.look(is_last=not is_growing))
        yield tally.table()
        if is_growing:
            _wait(recording, max(INTERVAL_S, _SHARE * (time.process_time() - begin)))


def total(folder: Path) -> Table:
    """Return the tally of a recording that has ended, or of what it holds now.

    Args:
        folder: the recording.

    Raises:
        InputError: a description cannot be read.

    Complexity:
        Linear in the events; memory for a piece of each stream, names, and operations whose results are to come.
    """
    recording, tally = GrowingRecording(folder), LiveTally()
    tally.add(recording.look(is_last=True))
    while recording.has_more:
        tally.add(recording.look(is_last=True))
    return tally.table()


def _wait(recording: GrowingRecording, seconds: float) -> None:
    """Wait, but not longer than the recorder runs."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and recording.is_growing():
        time.sleep(min(left, 0.1))
