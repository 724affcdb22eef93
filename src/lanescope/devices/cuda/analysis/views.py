"""Tables that analyses make of a CUDA trace on request, in the words of people who write kernels."""

from __future__ import annotations

from lanescope.families.family import Derived

_BLOCK = {"number": "block"}

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
        "units",
        ("block",),
        "one block: resident from its first stamp to its last; work + stalled + unknown + empty = window",
        {**_BLOCK, "groups": None, "mean_groups": None},
    ),
    Derived(
        "cuda_sms",
        "units",
        ("sm",),
        "one multiprocessor; none where the layout does not say on which one a lane ran",
        {"number": "sm", "groups": "blocks", "mean_groups": "mean_blocks"},
    ),
    Derived(
        "cuda_residency",
        "residence",
        ("block",),
        "a stretch of time in which the number of resident blocks does not change",
        {"what": None, "active": "blocks"},
    ),
    Derived(
        "cuda_sm_residency",
        "residence_each",
        ("sm",),
        "a stretch of time in which the number of blocks on one multiprocessor does not change; none where the layout "
        "does not say on which one a lane ran",
        {"number": "sm", "active": "blocks"},
    ),
    Derived(
        "cuda_idle",
        "idle_causes_each",
        ("block",),
        "idle stretches of one lane alike: in one region that waits, or between the same two regions",
    ),
    Derived(
        "cuda_region_stats",
        "regions",
        ("sm", "block"),
        "all slices of one region: their lengths, and how evenly multiprocessors share them (blocks, where the layout "
        "does not say the multiprocessor)",
    ),
)
