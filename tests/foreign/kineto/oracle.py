"""A reader of Kineto files in plain Python: slow, obvious, and not made of anything that the decoder uses."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

#: Files of the corpus, by folder.
FILES = (
    "hta/amd_trace", "hta/benchmark_simple_add_trace", "hta/cpu_only", "hta/critical_path_simple_add",
    "hta/cuda_event_sync", "hta/cuda_event_sync_multi_stream", "hta/mtia_inference", "hta/nccl_data",
    "hta/trace_compare_base", "hta/trace_compare_test", "hta/trace_diff_control", "hta/triton_example",
    "tracelens/h100_bert_small", "tracelens/mi210_gpu_only", "tracelens/mi300_bert_small",
    "tracelens/vllm_piecewise_graph_execution",
)  # fmt: skip
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events")
CALLS = ("cuda_runtime", "cuda_driver", "mtia_runtime")


def load(path: Path) -> dict[str, Any]:
    """Read a file, numbers with a point as Decimal."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    found: dict[str, Any] = json.loads(content, parse_float=Decimal, strict=False)
    return found


def ns(value: Any) -> int:
    """Return 1000 times a number, exactly."""
    found = Decimal(value) * 1000
    assert found == int(found), value
    return int(found)


def unix_ns(document: dict[str, Any], event: dict[str, Any]) -> int:
    return int(document.get("baseTimeNanoseconds", 0)) + ns(event["ts"])


def complete(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if event["ph"] == "X"]


def arguments(event: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = event.get("args") or {}
    return found


def launches(document: dict[str, Any]) -> list[tuple[str, str, int, int]]:
    """Return name of call and row, and when both begin, of all device rows with a call."""
    calls: dict[int, dict[str, Any]] = {}
    for event in complete(document):
        if event.get("cat") in CALLS and "correlation" in arguments(event):
            calls.setdefault(arguments(event)["correlation"], event)
    found = []
    for event in complete(document):
        call = calls.get(arguments(event).get("correlation", -1))
        if event.get("cat") in DEVICE and call is not None:
            found.append((call["name"], event["name"], unix_ns(document, call), unix_ns(document, event)))
    return found


def phases(document: dict[str, Any]) -> Counter[str]:
    return Counter(event["ph"] for event in document["traceEvents"])
