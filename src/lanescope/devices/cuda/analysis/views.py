"""Tables that analyses make of a CUDA trace on request, in the words of people who write kernels."""

from __future__ import annotations

from lanescope.devices.base import View

_BLOCK = {"instance_id": "block"}

VIEWS = (
    View(
        "cuda_overlap",
        "overlap_each",
        ("block",),
        "one pair of regions that run at the same time in one block, each as the innermost region of a lane",
        _BLOCK,
    ),
    View(
        "cuda_blocks",
        "utilization",
        ("block",),
        "one block: resident from its first stamp to its last; busy + stalled + unknown + vacant = window",
        {**_BLOCK, "groups": None, "mean_resident": None},
    ),
    View(
        "cuda_sms",
        "utilization",
        ("sm",),
        "one SM; none where the layout does not say on which one a lane ran",
        {"instance_id": "sm", "groups": "blocks", "mean_resident": "mean_blocks"},
    ),
    View(
        "cuda_residency",
        "residency",
        ("block",),
        "a stretch of time in which the number of resident blocks does not change",
        {"counted": None, "active": "blocks"},
    ),
    View(
        "cuda_sm_residency",
        "residency_each",
        ("sm",),
        "a stretch of time in which the number of blocks on one SM does not change; none where the layout "
        "does not say on which one a lane ran",
        {"instance_id": "sm", "active": "blocks"},
    ),
    View(
        "cuda_idle",
        "idle_causes_each",
        ("block",),
        "idle stretches of one lane alike: in one region that waits, or between the same two regions",
    ),
    View(
        "cuda_region_stats",
        "region_stats",
        ("sm", "block"),
        "all slices of one region: their lengths, and how evenly SMs share them (blocks, where the layout "
        "does not say the SM)",
    ),
)
