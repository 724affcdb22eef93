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
        "one block: resident from its first to its last timestamp; busy + stalled + unknown + vacant = window",
        {**_BLOCK, "groups": None, "mean_resident": None},
    ),
    Derived(
        "cuda_sms",
        "utilization",
        ("sm",),
        "one SM; empty if the layout does not record the SM of a lane",
        {"instance_id": "sm", "groups": "blocks", "mean_resident": "mean_blocks"},
    ),
    Derived(
        "cuda_residency",
        "residency",
        ("block",),
        "a period with a constant number of resident blocks",
        {"counted": None, "active": "blocks"},
    ),
    Derived(
        "cuda_sm_residency",
        "residency_each",
        ("sm",),
        "a period with a constant number of blocks on one SM; empty if the layout does not record the SM of a lane",
        {"instance_id": "sm", "active": "blocks"},
    ),
    Derived(
        "cuda_idle",
        "idle_causes_each",
        ("block",),
        "similar idle periods of one lane: in one wait region, or between the same two regions",
    ),
    Derived(
        "cuda_region_stats",
        "region_stats",
        ("sm", "block"),
        "all slices of one region: durations and distribution over SMs, or over blocks if the layout does not record "
        "the SM",
    ),
)
