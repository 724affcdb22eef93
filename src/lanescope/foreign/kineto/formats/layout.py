"""The layout of Kineto files: members, categories and arguments by name.

Source: kineto, libkineto/src/output_json.cpp and include/ActivityType.h at commit 114171d, and files of its
generations since 2021.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.wire.trace_events import Wanted

FORMAT = "kineto"

# --- what an event is ---------------------------------------------------------------------------------------------

#: Classes of events; those of a class share lanes.
OP, ANNOTATION, PYTHON, WORK, DEVICE_ANNOTATION, SYNC, OVERHEAD, SPAN, RANGE, HOST_WAIT = range(10)
CLASSES = (
    "op", "annotation", "python", "work", "device_annotation", "sync", "overhead", "span", "range", "host_wait",
)  # fmt: skip

#: Kernels, and copies and fills of memory, under all their names.
KERNELS = frozenset({"kernel", "Kernel", "concurrent_kernel"})
COPIES = frozenset({"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"})
#: Work whose rows may overlap on one lane: several units take the work of one stream.
FREE_WORK = frozenset({"mtia_ccp_events", "hpu_op"})
RUNTIME = frozenset(
    {
        "cuda_runtime", "cuda_driver", "Runtime", "mtia_runtime", "glow_runtime", "xpu_runtime", "xpu_driver",
        "privateuse1_runtime", "privateuse1_driver",
    }
)  # fmt: skip
#: Class of each category; of those before 2023, too.
CLASS_OF: dict[str, int] = {
    "cpu_op": OP,
    "Operator": OP,
    "user_annotation": ANNOTATION,
    "python_function": PYTHON,
    "PythonFunction": PYTHON,
    "gpu_user_annotation": DEVICE_ANNOTATION,
    "cuda_sync": SYNC,
    "cuda_event": SYNC,
    "xpu_sync": HOST_WAIT,
    "overhead": OVERHEAD,
    "Overhead": OVERHEAD,
    "Trace": SPAN,
    "cuda_profiler_range": RANGE,
    "collective_comm": OP,
    "external_correlation": OP,
    "cpu_instant_event": OP,
    "mtia_insight": RANGE,
    "xpu_scope_profiler": RANGE,
    "mtia_counters": RANGE,
    "hardware_counters": RANGE,
    **dict.fromkeys((*KERNELS, *COPIES, *FREE_WORK), WORK),
    **dict.fromkeys(RUNTIME, OP),
}
#: Categories of flows between forward and backward; those of launches are made of correlations.
BACKWARD_FLOWS = frozenset({"fwdbwd", "forward_backward"})

#: What kernels are called that only carry the counters of another one, around which they lie. Source: kineto,
#: plugin/xpupti/XpuptiScopeProfilerHandlers.cpp.
METRICS = "metrics: "
#: The process that rows of the profiler itself and waits of host threads have.
NO_PROCESS = -1

#: Calls that wait for the device as a whole.
DEVICE_SYNCS = frozenset({"cudaDeviceSynchronize", "hipDeviceSynchronize", "cuCtxSynchronize"})
#: Rows of waits lie on the lane of their stream plus this.
SYNC_THREAD_OFFSET = 1_000_000
#: Name of the instant that ends the record, and what instants of memory and iterations begin with.
RECORD_END, ITERATION, MEMORY = "Record Window End", "Iteration Start", "[memory]"
#: Unsigned numbers that mean none.
NO_ID = (4294967295, 18446744073709551615, -1)


def is_no_id(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which integers, int64 [n] in two's complement, mean none."""
    found: npt.NDArray[np.bool_] = (values == NO_ID[0]) | (values == NO_ID[2])
    return found


def carries_metrics(name: str) -> bool:
    """Return whether a kernel of this name is none: it carries counters of the one that it lies around."""
    return name.startswith(METRICS)


# --- arguments ----------------------------------------------------------------------------------------------------

ARGS: dict[str, Wanted] = {
    "correlation": Wanted("integer", ("correlation",)),
    "external_id": Wanted("integer", ("External id", "external id")),
    "stream": Wanted("integer", ("stream",)),
    "device": Wanted("integer", ("device",)),
    "context": Wanted("integer", ("context",)),
    "sequence": Wanted("integer", ("Sequence number",)),
    "forward_thread": Wanted("integer", ("Fwd thread id",)),
    "grid": Wanted("triple", ("grid",)),
    "block": Wanted("triple", ("block",)),
    "registers": Wanted("integer", ("registers per thread",)),
    "shared_memory": Wanted("integer", ("shared memory",)),
    "blocks_per_sm": Wanted("number", ("blocks per SM",)),
    "warps_per_sm": Wanted("number", ("warps per SM",)),
    "occupancy": Wanted("number", ("est. achieved occupancy %",)),
    "queued": Wanted("integer", ("queued",)),
    "priority": Wanted("integer", ("priority",)),
    "graph": Wanted("integer", ("graph id",)),
    "graph_node": Wanted("integer", ("graph node id",)),
    "bytes": Wanted("integer", ("bytes",)),
    "bandwidth": Wanted("number", ("memory bandwidth (GB/s)",)),
    "kind": Wanted("text", ("kind",)),
    "collective": Wanted("text", ("Collective name",)),
    "in_elements": Wanted("integer", ("In msg nelems",)),
    "out_elements": Wanted("integer", ("Out msg nelems",)),
    "dtype": Wanted("text", ("dtype",)),
    "in_split": Wanted("text", ("In split size",)),
    "out_split": Wanted("text", ("Out split size",)),
    "group_size": Wanted("integer", ("Group size",)),
    "group_name": Wanted("text", ("Process Group Name",)),
    "group_description": Wanted("text", ("Process Group Description",)),
    "group_ranks": Wanted("text", ("Process Group Ranks",)),
    "collective_sequence": Wanted("integer", ("Seq",)),
    "source_rank": Wanted("integer", ("Src Rank",)),
    "destination_rank": Wanted("integer", ("Dst Rank",)),
    "communicator": Wanted("text", ("Comms Id", "Communicator_id")),
    "rank": Wanted("integer", ("Rank",)),
    "sync_kind": Wanted("text", ("cuda_sync_kind",)),
    "wait_stream": Wanted("integer", ("wait_on_stream",)),
    "wait_correlation": Wanted("integer", ("wait_on_cuda_event_record_corr_id",)),
    "wait_event": Wanted("integer", ("wait_on_cuda_event_id",)),
    "python_id": Wanted("integer", ("Python id",)),
    "python_parent": Wanted("integer", ("Python parent id",)),
    "python_module": Wanted("integer", ("Python module id",)),
    "address": Wanted("integer", ("Addr",)),
    "memory_bytes": Wanted("integer", ("Bytes",)),
    "allocated": Wanted("integer", ("Total Allocated",)),
    "reserved": Wanted("integer", ("Total Reserved",)),
    "device_type": Wanted("integer", ("Device Type",)),
    "device_number": Wanted("integer", ("Device Id",)),
    # of metadata
    "name": Wanted("text", ("name",)),
    "labels": Wanted("text", ("labels",)),
    "sort_index": Wanted("integer", ("sort_index",)),
}

#: Multiples of this many nanoseconds are bases: three months of 30.436875 days. Source: output_json.cpp.
BASE_STEP = 7_889_238 * 1_000_000_000
