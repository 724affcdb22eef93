"""What a run leaves in the memory of its device: the records, and the counts of those that were lost."""

from __future__ import annotations

import numpy as np

from lanescope.devices.ascend.formats.device_structs import REGIONS
from lanescope.devices.ascend.formats.encode_dump import encode_dump
from lanescope.devices.ascend.formats.records import Records
from lanescope.devices.ascend.simulate.chip import Run
from lanescope.devices.ascend.simulate.phases import Phases
from lanescope.devices.ascend.simulate.recorder import Recorded
from lanescope.errors import UsageError

DUMP_NAME = "swimlane_memory.bin"


def device_memory(run: Run, found: Recorded, work: Phases | None, records: Records, used: np.random.Generator) -> bytes:
    """Return the dump that the scenario asks for, of a device that was in use before.

    Args:
        run: the run.
        found: its streams of tasks: cores lose records without notice, schedulers count what they drop.
        work: its phases, None below level 3.
        records: what was recorded.
        used: what memory held before.

    Raises:
        UsageError: the run does not fit the chip.
    """
    s = run.scenario
    region = next((one for one in REGIONS if (one.platform, one.format_version) == (s.dump, s.format_version)), None)
    if region is not None and (s.cores > region.cores or s.threads > region.threads):
        raise UsageError(
            f"{s.dump} has at most {region.cores} cores and {region.threads} scheduler threads",
            hint="use fewer with --aic, --aiv or --threads",
        )
    losses: dict[tuple[str, int], tuple[int, int]] = {}
    for stream, has_record in (("aicore_task", found.has_aicore), ("aicpu_task", found.has_aicpu)):
        if stream == "aicpu_task" and s.level == 1:
            continue
        for core, count in enumerate(np.bincount(run.core[~has_record], minlength=s.cores).tolist()):
            losses[stream, core] = (0, count) if stream == "aicore_task" else (count, 0)
    if work is not None:
        losses |= {("sched_phase", thread): (count, 0) for thread, count in enumerate(work.dropped.tolist())}
    return encode_dump(records, region, format_version=s.format_version, losses=losses, used=used)
