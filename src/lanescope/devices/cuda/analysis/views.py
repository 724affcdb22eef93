"""Tables that analyses make of a CUDA trace on request, in the words of people who write kernels."""

from __future__ import annotations

from lanescope.devices.base import View

_BLOCK = {"number": "block"}

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
        "units",
        ("block",),
        "one block: resident from its first to its last timestamp; work + stalled + unknown + empty = window",
        {**_BLOCK, "groups": None, "mean_groups": None},
    ),
    View(
        "cuda_sms",
        "units",
        ("sm",),
        "one SM; empty if the layout does not record the SM of a lane",
        {"number": "sm", "groups": "blocks", "mean_groups": "mean_blocks"},
    ),
    View(
        "cuda_residency",
        "residence",
        ("block",),
        "a period with a constant number of resident blocks",
        {"what": None, "active": "blocks"},
    ),
    View(
        "cuda_sm_residency",
        "residence_each",
        ("sm",),
        "a period with a constant number of blocks on one SM; empty if the layout does not record the SM of a lane",
        {"number": "sm", "active": "blocks"},
    ),
    View(
        "cuda_idle",
        "idle_causes_each",
        ("block",),
        "similar idle periods of one lane: in one wait region, or between the same two regions",
    ),
    View(
        "cuda_region_stats",
        "regions",
        ("sm", "block"),
        "all slices of one region: durations and distribution over SMs, or over blocks if the layout does not record "
        "the SM",
    ),
)
