"""Tables that analyses make of a CUDA trace on request, in the words of people who write kernels."""

from __future__ import annotations

from lanescope.families.family import Derived

_BLOCK = {"instance_id": "block"}

VIEWS = (
    Derived(
        "cuda_overlap",
        "overlap_each",
        ("block",),
        "one pair of regions that run at the same time in one block, each as the innermost region of a lane",
        _BLOCK,
    ),
    Derived(
        "cuda_blocks",
        "utilization",
        ("block",),
        "one block: resident from its first stamp to its last; busy + stalled + unknown + vacant = window",
        {**_BLOCK, "groups": None, "mean_resident": None},
    ),
    Derived(
        "cuda_sms",
        "utilization",
        ("sm",),
        "one SM; none where the layout does not say on which one a lane ran",
        {"instance_id": "sm", "groups": "blocks", "mean_resident": "mean_blocks"},
    ),
    Derived(
        "cuda_residency",
        "residency",
        ("block",),
        "a stretch of time in which the number of resident blocks does not change",
        {"counted": None, "active": "blocks"},
    ),
    Derived(
        "cuda_sm_residency",
        "residency_each",
        ("sm",),
        "a stretch of time in which the number of blocks on one SM does not change; none where the layout "
        "does not say on which one a lane ran",
        {"instance_id": "sm", "active": "blocks"},
    ),
    Derived(
        "cuda_idle",
        "idle_causes_each",
        ("block",),
        "idle stretches of one lane alike: in one region that waits, or between the same two regions",
    ),
    Derived(
        "cuda_region_stats",
        "region_stats",
        ("sm", "block"),
        "all slices of one region: their lengths, and how evenly SMs share them (blocks, where the layout "
        "does not say the SM)",
    ),
)
