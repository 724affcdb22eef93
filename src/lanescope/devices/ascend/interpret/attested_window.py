"""The attested window of a capture: the time with more evidence than a few timestamps far from all others.

Time beyond the window is not known for any lane, and one wrong timestamp must not make other lanes idle.
"""

from __future__ import annotations

import numpy as np

from lanescope.common.islands import attested_window
from lanescope.devices.ascend.formats.records import Section
from lanescope.devices.ascend.interpret.execution_table import Executions


def of_capture(runs: Executions, phases: Section, submits: Section) -> tuple[int, int]:
    """Return first and last timestamp of the device that is attested, cycles."""
    lanes = [(runs.core, runs.start), (runs.core, runs.end)]
    lanes += [(runs.core + (1 << 20), stamps) for stamps in (runs.dispatch, runs.finish)]
    for role, rows in enumerate((phases, submits), 2):
        group = rows.group.astype(np.int64) + (role << 20)
        lanes += [(group, rows[name]) for name in ("start_cycles", "end_cycles")]
    lane, time = (np.concatenate(column).astype(np.int64) for column in zip(*lanes, strict=True))
    return attested_window(time[time > 0], lane[time > 0])
