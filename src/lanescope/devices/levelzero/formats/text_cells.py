"""Which fields of which records the native scanner of a text reads, and the sheets that its rows go to."""

from __future__ import annotations

from collections.abc import Mapping

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.host_apis import CUDA, HOST_APIS, ITT, OPENCL, HostApi
from lanescope.devices.levelzero.formats.text_itt import DOMAIN, EVENT
from lanescope.devices.levelzero.formats.text_launches import CUDA_API, OPENCL_API
from lanescope.devices.levelzero.formats.text_scopes import KINDS

#: Group, name, kind, whether it is required, table of texts.
Cell = tuple[str, str, str, bool, int]

#: Text columns whose texts the scanner looks up.
TEXTS = (
    ("calls", "result"),
    ("results", "status"),
    ("results", "timestamp_status"),
    ("appends", "function"),
    ("appends", "how"),
    ("appends", "reason"),
    ("appends", "dst_memory"),
    ("appends", "src_memory"),
)
RESULTS = ("result", "status", "timestamp_status")
#: APIs that write the same texts otherwise have tables of their own, after those.
APIS = list(dict.fromkeys(HOST_APIS.values()))
#: Tables of what a success is called, behind those: results of launches.
SUCCESSES = (CUDA_API, OPENCL_API)
#: Behind those: where scopes of OpenMP begin and end, and what they are about.
ENDPOINTS = len(TEXTS) + len(APIS) + len(SUCCESSES)
WORDS = ENDPOINTS + 1
#: How many tables of texts there are.
TABLES = WORDS + 1
#: Bit of the constant of a call: it is an exit.
EXIT = 1 << 32


def cell_of(name: str, kind: str = "integer", *, required: bool = True, group: str = "", texts: int = 0) -> Cell:
    """Return a field that is read."""
    return group, name, kind, required, texts


def texts_of(name: str, column: str, *, kind: str = "maybe_text", table: str = "appends") -> Cell:
    """Return a field with a text of a column; of kind ``text`` it has to be there."""
    return cell_of(name, kind, required=kind == "text", texts=TEXTS.index((table, column)))


def optional_cells(*names: str, kind: str = "integer") -> tuple[Cell, ...]:
    """Return fields that may be missing."""
    return tuple(cell_of(name, kind, required=False) for name in names)


#: Records that are rows of their own: the columns of a table, by cell, and the fields.
_OP = (
    cell_of("op_id"),
    texts_of("how", "how"),
    *optional_cells("bytes"),
    cell_of("list_id"),
    texts_of("api", "function", kind="text"),
    *optional_cells("signal"),
    *optional_cells("waits", kind="integers"),
    *optional_cells("kernel"),
    *optional_cells("groups_x", "groups_y", "groups_z", kind="small"),
    texts_of("dst", "dst_memory"),
    texts_of("src", "src_memory"),
    texts_of("reason", "reason"),
)
OP_COLUMNS = (
    *("op_id", "how", "bytes", "list", "function", "event", "waits", "kernel", "groups_x", "groups_y", "groups_z"),
    *("dst_memory", "src_memory", "reason"),
)
TICKS = ("global_start", "global_end", "context_start", "context_end")
RECORDS: Mapping[str, tuple[str, tuple[Cell, ...]]] = {
    f"{layout.PROFILING}:event_profiling": ("pushes", (cell_of("hEvent"),)),
    f"{layout.PROFILING}:event_profiling_results": (
        "event_results",
        (
            cell_of("hEvent"),
            texts_of("status", "status", kind="text", table="results"),
            texts_of("timestampStatus", "timestamp_status", kind="text", table="results"),
            *(cell_of(name) for name in ("globalStart", "globalEnd", "contextStart", "contextEnd")),
        ),
    ),
    f"{layout.PROPERTIES}:device_timer": ("timers", (cell_of("hDevice"), cell_of("deviceTimestamp"))),
    f"{layout.OURS}:op": ("ops", _OP),
    f"{layout.OURS}:list_run": (
        "runs",
        (
            *(cell_of("list_id"), cell_of("run", "small"), cell_of("queue"), cell_of("t_entry", "small")),
            *(*optional_cells("t_exit", kind="small"), *optional_cells("quiet", kind="flag")),
        ),
    ),
    f"{layout.OURS}:result": ("results", (cell_of("op_id"), cell_of("run", "small"), *map(cell_of, TICKS))),
    f"{layout.OURS}:clock_pair": (
        "pairs",
        (
            cell_of("device"),
            cell_of("host_ns", "small"),
            cell_of("device_ticks"),
            *optional_cells("error_ns", kind="small"),
        ),
    ),
}


def _successes(api: HostApi, *names: str) -> tuple[Cell, ...]:
    """Return cells that hold nothing but a success."""
    table = len(TEXTS) + len(APIS) + SUCCESSES.index(api)
    return tuple(cell_of(name, "text", texts=table) for name in names)


#: Records of launches: their sheet, the API, the fields. The cells that are rows come first.
LAUNCH_RECORDS: Mapping[str, tuple[str, HostApi, tuple[Cell, ...]]] = {
    f"{CUDA}_profiling:event_profiling": ("cuda_events", CUDA_API, (cell_of("hStart"), cell_of("hStop"))),
    f"{OPENCL}_profiling:event_profiling": ("opencl_events", OPENCL_API, (cell_of("event"),)),
    f"{CUDA}_profiling:event_profiling_results": (
        "cuda_results",
        CUDA_API,
        (
            *(cell_of("hStart"), cell_of("hStop"), cell_of("milliseconds", "nanoseconds")),
            *_successes(CUDA_API, "startStatus", "stopStatus", "status"),
        ),
    ),
    f"{OPENCL}_profiling:event_profiling_results": (
        "opencl_results",
        OPENCL_API,
        (
            *(cell_of("event"), cell_of("queued"), cell_of("start"), cell_of("end")),
            *_successes(OPENCL_API, "event_command_exec_status", "queued_status", "start_status", "end_status"),
            cell_of("submit_status", "maybe_text", required=False, texts=len(TEXTS) + len(APIS) + 1),
        ),
    ),
}


def append_cells(function: str) -> tuple[Cell, ...]:
    """Return the cells of the entry of an Append, by ``APPEND_COLUMNS``; a cell without a name is never read."""
    kind = layout.APPENDS.get(function, layout.OTHER)
    is_kernel, is_sized = kind == layout.KERNEL, kind in (layout.COPY, layout.FILL)
    group = "pLaunchFuncArgs_val" if is_kernel else ""
    axes = (f"groupCount{axis}" if is_kernel else "" for axis in "XYZ")
    # Counts of groups by other names: rare enough.
    others = ("pGroupCounts_val", "groupCounts", "groupCounts_val") if is_kernel else ("", "", "")
    return (
        cell_of("hCommandList"),
        *optional_cells("hKernel"),
        *(cell_of(axis, "small", required=is_kernel, group=group) for axis in axes),
        *(optional_cells("dstptr", "srcptr", "size", "ptr") if is_sized else optional_cells("", "", "", "")),
        cell_of("hEvent" if kind == layout.SIGNAL else "hSignalEvent"),
        *optional_cells("numWaitEvents", kind="small"),
        *optional_cells("phWaitEvents_vals", kind="integers"),
        *optional_cells(*others, kind="refused"),
    )


APPEND_COLUMNS = (
    *(
        "list",
        "kernel",
        "groups_x",
        "groups_y",
        "groups_z",
        "dstptr",
        "src",
        "bytes",
        "ptr",
        "event",
        "waits",
        "listed",
    ),
    *("", "", ""),
)

#: What functions that create something are given, cell by cell, as the scanner keeps it until they return: names of
#: ``text_calls``' descriptions, and the field of the exit with the handle.
CREATIONS: Mapping[str, tuple[str, tuple[str, ...], tuple[Cell, ...], str]] = {
    "zeCommandListCreate": (
        "regular_lists",
        ("context", "device", "ordinal", "flags"),
        (
            *optional_cells("hContext", "hDevice"),
            cell_of("commandQueueGroupOrdinal", "small", required=False, group="desc_val"),
            cell_of("flags", "count", required=False, group="desc_val"),
        ),
        "phCommandList_val",
    ),
    "zeCommandListCreateImmediate": (
        "immediate_lists",
        ("context", "device", "ordinal", "index", "flags"),
        (
            *optional_cells("hContext", "hDevice"),
            *(cell_of(name, "small", required=False, group="altdesc_val") for name in ("ordinal", "index")),
            cell_of("flags", "count", required=False, group="altdesc_val"),
        ),
        "phCommandList_val",
    ),
    "zeCommandQueueCreate": (
        "created_queues",
        ("device", "ordinal", "index"),
        (
            *optional_cells("hDevice"),
            *(cell_of(name, "small", required=False, group="desc_val") for name in ("ordinal", "index")),
        ),
        "phCommandQueue_val",
    ),
}

#: The sheets, and how many cells their rows have.
SHEETS = {
    "calls": 2,
    "appends": len(APPEND_COLUMNS),
    **{name: len(cells) for name, cells in RECORDS.values()},
    "executions": 3,
    "lists": 1,
    "event_ends": 1,
    "freed": 1,
    "allocated": 2,
    **{name: len(cells) for name, _, cells in LAUNCH_RECORDS.values()},
    "cuda_launches": 2,
    "opencl_launches": 2,
    **{name: len(cells) + 1 for name, _, cells, _ in CREATIONS.values()},
}
NUMBERS = {name: number for number, name in enumerate(SHEETS)}

#: What the scanner remembers of the entries of these functions, and what their return makes of it: how, the sheet, and
#: the texts that the row needs: table, column, text.
HANDLES: Mapping[str, tuple[str, str, str, str, str]] = {
    "zeEventDestroy": ("hEvent", "value", "event_ends", "", ""),
    "zeCommandListReset": ("hCommandList", "value", "lists", "action", "reset"),
    "zeCommandListDestroy": ("hCommandList", "value", "lists", "action", "destroy"),
    "zeMemFree": ("ptr", "nonzero", "freed", "memory", ""),
    "zeMemFreeExt": ("ptr", "nonzero", "freed", "memory", ""),
    **{
        name: ("size", "allocation", "allocated", "memory", memory)
        for name, memory in layout.ALLOCATIONS.items()
        if name.startswith("zeMem")
    },
}
#: Tables of those rows.
ROW_TABLES = {"freed": "allocations", "allocated": "allocations"}

#: Tasks and events of ITT: the fields with the lane and with the name, the kind of lane, whether they end, and whether
#: there has to be something to end.
TASKS: Mapping[str, tuple[tuple[Cell, ...], str, bool, bool]] = {
    f"{ITT}:__itt_event_start": ((cell_of("event"),), EVENT, False, False),
    f"{ITT}:__itt_event_end": ((cell_of("event"),), EVENT, True, False),
    f"{ITT}:__itt_task_begin": ((cell_of("domain"), cell_of("name")), DOMAIN, False, False),
    f"{ITT}:__itt_task_end": ((cell_of("domain"),), DOMAIN, True, True),
}
#: Fields of scopes.
SCOPE = (
    cell_of("endpoint", "text", texts=ENDPOINTS),
    *(cell_of(name, "text", required=False, texts=WORDS) for name in KINDS),
    *optional_cells("bytes"),
)
