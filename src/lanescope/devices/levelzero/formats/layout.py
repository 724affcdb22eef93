"""What a Level Zero trace says, as data: records, their fields, and what the functions of the API mean to a timeline.

Two producers write such traces. THAPI's tracer (provider ``lttng_ust_ze`` and its relatives) names events by handle,
which is ambiguous; lanescope's own (provider ``lanescope_ze``) numbers operations and runs. Both may lie in a file as
text, one record a line.

Without numpy: ``family.py`` looks in here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lanescope.declaration import frozen_class
from lanescope.devices.levelzero.formats.host_apis import HOST_APIS, ITT, OPENMP

#: The file that ``record`` leaves in the folder while it runs: its process and the boot of the machine.
RECORDER_MARK = ".recorder"
#: Names of the formats: THAPI text and lanescope's recordings.
TEXT_FORMAT = "thapi_text"
CTF_FORMAT = "lanescope_ctf"
#: CTF of any other producer.
FOREIGN_FORMAT = "ctf"
#: How times of the day are to be read.
TIMES = ("auto", "exact", "thapi")

API = "lttng_ust_ze"
PROFILING = "lttng_ust_ze_profiling"
PROPERTIES = "lttng_ust_ze_properties"
OURS = "lanescope_ze"
#: Providers of entries and exits of Level Zero's functions: the core, tools, sysman, the loader, experimental ones.
APIS = (API, *(f"lttng_ust_{part}" for part in ("zet", "zes", "zel", "zex")))
#: Providers whose records are Level Zero's; ``host_apis.HOST_APIS`` has those of other APIs.
PROVIDERS = (*APIS, PROFILING, PROPERTIES, OURS)
#: What the description of a recording names its recorder by: a pattern, which texts have no need of.
DOMAIN = rb'domain"?\s*[=:]\s*"lanescope_ze"'

SUCCESS = "ZE_RESULT_SUCCESS"
NOT_READY = "ZE_RESULT_NOT_READY"
#: Results that answer a question; all others but these say that a function failed.
ANSWERS = ("", SUCCESS, NOT_READY, "ZE_RESULT_QUERY_TRUE", "ZE_RESULT_QUERY_FALSE")
#: Result of ``zeInit`` without a driver.
UNINITIALIZED = 0x78000001
#: Results by number, as a plain integer field shows them; others stay numbers. Source: ze_api.h of API 1.17.
RESULTS: Mapping[int, str] = {
    0: SUCCESS,
    1: NOT_READY,
    0x78000022: "ZE_RESULT_QUERY_TRUE",
    0x78000023: "ZE_RESULT_QUERY_FALSE",
}
#: All results by number. Source: ze_result_t of the Level Zero specification 1.17.
ALL_RESULTS: Mapping[int, str] = {
    0: SUCCESS,
    1: NOT_READY,
    0x70000001: "ZE_RESULT_ERROR_DEVICE_LOST",
    0x70000002: "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY",
    0x70000003: "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY",
    0x70000004: "ZE_RESULT_ERROR_MODULE_BUILD_FAILURE",
    0x70000005: "ZE_RESULT_ERROR_MODULE_LINK_FAILURE",
    0x70000006: "ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET",
    0x70000007: "ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE",
    0x70010000: "ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS",
    0x70010001: "ZE_RESULT_ERROR_NOT_AVAILABLE",
    0x70020000: "ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE",
    0x70020001: "ZE_RESULT_WARNING_DROPPED_DATA",
    0x78000001: "ZE_RESULT_ERROR_UNINITIALIZED",
    0x78000002: "ZE_RESULT_ERROR_UNSUPPORTED_VERSION",
    0x78000003: "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE",
    0x78000004: "ZE_RESULT_ERROR_INVALID_ARGUMENT",
    0x78000005: "ZE_RESULT_ERROR_INVALID_NULL_HANDLE",
    0x78000006: "ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE",
    0x78000007: "ZE_RESULT_ERROR_INVALID_NULL_POINTER",
    0x78000008: "ZE_RESULT_ERROR_INVALID_SIZE",
    0x78000009: "ZE_RESULT_ERROR_UNSUPPORTED_SIZE",
    0x7800000A: "ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT",
    0x7800000B: "ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT",
    0x7800000C: "ZE_RESULT_ERROR_INVALID_ENUMERATION",
    0x7800000D: "ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION",
    0x7800000E: "ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT",
    0x7800000F: "ZE_RESULT_ERROR_INVALID_NATIVE_BINARY",
    0x78000010: "ZE_RESULT_ERROR_INVALID_GLOBAL_NAME",
    0x78000011: "ZE_RESULT_ERROR_INVALID_KERNEL_NAME",
    0x78000012: "ZE_RESULT_ERROR_INVALID_FUNCTION_NAME",
    0x78000013: "ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION",
    0x78000014: "ZE_RESULT_ERROR_INVALID_GLOBAL_WIDTH_DIMENSION",
    0x78000015: "ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX",
    0x78000016: "ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE",
    0x78000017: "ZE_RESULT_ERROR_INVALID_KERNEL_ATTRIBUTE_VALUE",
    0x78000018: "ZE_RESULT_ERROR_INVALID_MODULE_UNLINKED",
    0x78000019: "ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE",
    0x7800001A: "ZE_RESULT_ERROR_OVERLAPPING_REGIONS",
    0x7800001B: "ZE_RESULT_WARNING_ACTION_REQUIRED",
    0x7800001C: "ZE_RESULT_ERROR_INVALID_KERNEL_HANDLE",
    0x7800001D: "ZE_RESULT_EXT_RTAS_BUILD_RETRY",
    0x7800001E: "ZE_RESULT_EXT_RTAS_BUILD_DEFERRED",
    0x7800001F: "ZE_RESULT_EXT_ERROR_OPERANDS_INCOMPATIBLE",
    0x78000020: "ZE_RESULT_ERROR_SURVIVABILITY_MODE_DETECTED",
    0x78000021: "ZE_RESULT_ERROR_ADDRESS_NOT_FOUND",
    0x78000022: "ZE_RESULT_QUERY_TRUE",
    0x78000023: "ZE_RESULT_QUERY_FALSE",
    0x78000024: "ZE_RESULT_ERROR_INVALID_GRAPH",
    0x78000025: "ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED",
    0x78000026: "ZE_RESULT_ERROR_GRAPH_CAPTURE_INVALIDATED",
    0x78000027: "ZE_RESULT_ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT",
    0x78000028: "ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING",
    0x78000029: "ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS",
    0x7800002A: "ZE_RESULT_ERROR_GRAPH_INTERNAL_EVENT",
    0x7FF00001: "ZE_RESULT_EXP_ERROR_DEVICE_IS_NOT_VERTEX",
    0x7FF00002: "ZE_RESULT_EXP_ERROR_VERTEX_IS_NOT_DEVICE",
    0x7FF00003: "ZE_RESULT_EXP_ERROR_REMOTE_DEVICE",
    0x7FF00004: "ZE_RESULT_EXP_ERROR_OPERANDS_INCOMPATIBLE",
    0x7FF00005: "ZE_RESULT_EXP_RTAS_BUILD_RETRY",
    0x7FF00006: "ZE_RESULT_EXP_RTAS_BUILD_DEFERRED",
    0x7FFFFFFE: "ZE_RESULT_ERROR_UNKNOWN",
}

#: The date that THAPI's reader gives to times of the day: 2024-01-01 UTC, in seconds since the Unix epoch.
#: Source: utils/thapi_log_to_bt_source_component.rb.
THAPI_DATE_S = 1_704_067_200
#: Times that a timeline holds, in ns since the Unix epoch: until the end of 2261, so that there is room below 63 bits.
LATEST_NS = 9_214_646_400_000_000_000
#: Shortest and longest time between samples of sensors: they change slower, and reading them takes time.
SAMPLING_NS = (1_000_000, 3600 * 1_000_000_000)
#: Its tests hand fractions of a second to a parameter that takes microseconds: all of them shrink by this.
THAPI_SHRINK = 1_000_000
#: Number of the Level Zero backend in interval records.
BACKEND = 1

#: Beginning of a record: time of day, fraction of a second; host, process and thread; provider and event.
#: Source: the published test files.
RECORD_START = re.compile(
    rb"(\d\d:\d\d:\d\d)\.(\d{1,9}) - (\S{1,255} - vpid: \d{1,10}, vtid: \d{1,10}) - "
    rb"(\w{1,128}):(\w{1,255}): (.*)",
    re.DOTALL,
)
#: Processes and threads are numbered by a 32-bit integer, from 0.
MOST_PID = (1 << 31) - 1


@frozen_class
class TextRecord:
    """One kind of record in a text trace.

    Attributes:
        name: ``provider:event``.
        doc: one line, when it is written.
        fields: the fields that are read, or written by the encoder, in order; a dot leads into a structure.
        source: where the field list comes from.
        status: ``documented``, ``observed``, ``published`` or ``unknown``.
    """

    name: str
    doc: str
    fields: tuple[str, ...]
    source: str
    status: str = "published"


_YAML = "THAPI backends/ze/ze_events.yaml"
_OWN = "lanescope's recorder"

RECORDS: tuple[TextRecord, ...] = (
    TextRecord(f"{API}:FUNCTION_entry", "entry of an API function", ("its parameters",), _YAML),
    TextRecord(f"{API}:FUNCTION_exit", "return of an API function", ("zeResult", "its out values"), _YAML),
    *(
        TextRecord(f"{provider}:FUNCTION_{end}", doc, fields, api.source)
        for provider, api in HOST_APIS.items()
        for end, doc, fields in (
            ("entry", f"entry of a function of {api.title}", (api.size,) if api.size else ()),
            ("exit", f"return of a function of {api.title}", (api.result,)),
        )
    ),
    TextRecord(
        f"{OPENMP}:CALLBACK",
        "begin or end of a scope",
        ("endpoint", "kind", "optype", "bytes"),
        "THAPI backends/omp/btx_ompmatching_model.yaml",
    ),
    TextRecord(
        f"{ITT}:FUNCTION",
        "event, task or name of ITT",
        ("ittResult", "name_val", "str_val", "event", "domain", "name", "name__strA_val"),
        "THAPI backends/itt/btx_ittinterval_callbacks.cpp",
    ),
    TextRecord(f"{PROFILING}:event_profiling", "an Append will be timed through this event", ("hEvent",), _YAML),
    TextRecord(
        f"{PROFILING}:event_profiling_results",
        "the timestamps of an event were read",
        ("hEvent", "status", "timestampStatus", "globalStart", "globalEnd", "contextStart", "contextEnd"),
        _YAML,
    ),
    TextRecord(f"{PROPERTIES}:device", "properties of a root device", ("hDevice", "pDeviceProperties_val"), _YAML),
    TextRecord(
        f"{PROPERTIES}:subdevice",
        "properties of a sub-device",
        ("hDevice", "hSubDevice", "pDeviceProperties_val"),
        _YAML,
    ),
    TextRecord(
        f"{PROPERTIES}:device_timer",
        "a reading of the device's clock",
        ("hDevice", "hostTimestamp", "deviceTimestamp"),
        _YAML,
    ),
    TextRecord(f"{PROPERTIES}:kernel", "properties of a kernel", ("hKernel", "pKernelProperties_val"), _YAML),
    TextRecord(
        f"{PROPERTIES}:memory_info_properties", "kind of a pointer", ("ptr", "pMemAllocProperties_val.type"), _YAML
    ),
    TextRecord(f"{PROPERTIES}:memory_info_range", "allocation behind a pointer", ("ptr", "base", "size"), _YAML),
    TextRecord(
        f"{OURS}:device",
        "a device or sub-device was seen",
        (
            "device",
            "parent",
            "uuid",
            "name",
            "subdevice",
            "ticks_per_second_num",
            "ticks_per_second_den",
            "timestamp_bits",
            "kernel_timestamp_bits",
        ),
        _OWN,
        "documented",
    ),
    TextRecord(
        f"{OURS}:queue", "a command queue was created", ("queue", "device", "ordinal", "index"), _OWN, "documented"
    ),
    TextRecord(
        f"{OURS}:list",
        "a command list was created, or emptied by a Reset and so became another one",
        (
            "list_id",
            "handle",
            "context",
            "device",
            "ordinal",
            "index",
            "immediate",
            "in_order",
            "compute",
            "reason",
        ),
        _OWN,
        "documented",
    ),
    TextRecord(
        f"{OURS}:kernel",
        "a kernel was created, or its group size set",
        ("kernel", "name", "simd", "group_x", "group_y", "group_z"),
        _OWN,
        "documented",
    ),
    TextRecord(
        f"{OURS}:op",
        "an Append succeeded; written before the call returns",
        (
            "op_id",
            "list_id",
            "api",
            "how",
            "reason",
            "signal",
            "waits",
            "kernel",
            "groups_x",
            "groups_y",
            "groups_z",
            "bytes",
            "dst",
            "src",
        ),
        _OWN,
        "documented",
    ),
    TextRecord(
        f"{OURS}:list_run",
        "a regular list was executed; written before the call returns",
        ("list_id", "run", "queue", "t_entry", "t_exit", "quiet"),
        _OWN,
        "documented",
    ),
    TextRecord(
        f"{OURS}:result",
        "the ticks of one run of an operation were harvested",
        ("op_id", "run", "global_start", "global_end", "context_start", "context_end"),
        _OWN,
        "documented",
    ),
    TextRecord(f"{OURS}:lost", "a run will have no result", ("op_id", "run", "reason"), _OWN, "documented"),
    TextRecord(
        f"{OURS}:degraded",
        "a degradation of the recording",
        ("scope", "id", "reason", "code", "count"),
        _OWN,
        "documented",
    ),
    TextRecord(
        f"{OURS}:clock_pair",
        "a reading of both clocks with its maximum error",
        ("device", "host_ns", "device_ticks", "error_ns"),
        _OWN,
        "documented",
    ),
)

#: Kinds of operations. ``signal`` only sets an event: it counts for attribution but not as device work.
KERNEL, COPY, FILL, BARRIER, SIGNAL, OTHER = KINDS = ("kernel", "copy", "fill", "barrier", "signal", "other")

_APPEND = "zeCommandListAppend"
#: What an Append does, by function; any other that can signal an event is ``other``.
#: Source: Level Zero specification 1.17, section on command lists.
APPENDS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            _APPEND + "LaunchKernel",
            _APPEND + "LaunchCooperativeKernel",
            _APPEND + "LaunchKernelIndirect",
            _APPEND + "LaunchMultipleKernelsIndirect",
            _APPEND + "LaunchKernelWithParameters",
            _APPEND + "LaunchKernelWithArguments",
        ),
        KERNEL,
    ),
    **dict.fromkeys(
        (
            _APPEND + "MemoryCopy",
            _APPEND + "MemoryCopyWithParameters",
            _APPEND + "MemoryCopyRegion",
            _APPEND + "MemoryCopyFromContext",
            _APPEND + "ImageCopy",
            _APPEND + "ImageCopyRegion",
            _APPEND + "ImageCopyToMemory",
            _APPEND + "ImageCopyFromMemory",
            _APPEND + "ImageCopyToMemoryExt",
            _APPEND + "ImageCopyFromMemoryExt",
            "zeRTASBuilderCommandListAppendCopyExt",
        ),
        COPY,
    ),
    **dict.fromkeys((_APPEND + "MemoryFill", _APPEND + "MemoryFillWithParameters"), FILL),
    **dict.fromkeys((_APPEND + "Barrier", _APPEND + "MemoryRangesBarrier"), BARRIER),
    _APPEND + "SignalEvent": SIGNAL,
}

#: Kinds of memory and their letters in names such as ``zeCommandListAppendMemoryCopy(S2D)``.
#: Source: THAPI backends/ze/btx_zeinterval_callbacks.cpp.
SHARED, DEVICE, HOST, SYSTEM = MEMORIES = ("shared", "device", "host", "system")
MEMORY_LETTERS: Mapping[str, str] = {SHARED: "S", DEVICE: "D", HOST: "H", SYSTEM: "M"}

#: Functions that allocate, and the kind of what they return.
ALLOCATIONS: Mapping[str, str] = {
    "zeMemAllocShared": SHARED,
    "zeMemAllocDevice": DEVICE,
    "zeMemAllocHost": HOST,
    "zeModuleGetGlobalPointer": SHARED,
}
MEMORY_TYPES: Mapping[str, str] = {
    "ZE_MEMORY_TYPE_HOST": HOST,
    "ZE_MEMORY_TYPE_DEVICE": DEVICE,
    "ZE_MEMORY_TYPE_SHARED": SHARED,
}

#: Functions that execute closed lists: name -> parameters of the queue, and of the lists.
EXECUTES: Mapping[str, tuple[str, str]] = {
    "zeCommandQueueExecuteCommandLists": ("hCommandQueue", "phCommandLists_vals"),
    "zeCommandListImmediateAppendCommandListsExp": ("hCommandListImmediate", "phCommandLists_vals"),
    "zeCommandListImmediateAppendCommandListsWithParameters": ("hCommandListImmediate", "phCommandLists_vals"),
}

#: Calls that wait for work on devices: the kind of object that they wait for, and the parameter with its handle.
WAITS: Mapping[str, tuple[str, str]] = {
    "zeCommandQueueSynchronize": ("queue", "hCommandQueue"),
    "zeCommandListHostSynchronize": ("list", "hCommandList"),
    "zeEventHostSynchronize": ("event", "hEvent"),
    "zeFenceHostSynchronize": ("fence", "hFence"),
    "zeDeviceSynchronize": ("device", "hDevice"),
}
#: The function that is given a fence, and the parameter with its handle.
FENCED = ("zeCommandQueueExecuteCommandLists", "hFence")

#: How an operation is timed, as lanescope's recorder says it.
HOW = ("UNTIMED", "INLINE", "CHAINED", "BARE", "WATCH")
#: Counts, indices and flags of the API are integers of 32 bits.
MOST_COUNT = (1 << 32) - 1
#: Largest size of memory: addresses have 64 bits, and no program has all of them.
MOST_SIZE = (1 << 63) - 1
#: The counter of the context and the global one are read one after the other: each of two readings may be a tick late.
CONTEXT_TICKS = 2
#: Timestamps are integers of 64 bits, of which a device may use fewer.
MOST_BITS = 64
MOST_TICKS = (1 << MOST_BITS) - 1

#: Why an execution of an operation has no result: its end was not observed.
NOT_DRAINED = "not_drained"

#: Why an operation is not timed: its out-of-order list may run again, and events stay signalled.
NO_RESET = "out_of_order_no_reset"

#: Why executions of a list began later: commands of the recorder came first, and reset its events.
PROLOGUE = "prologue"
#: Why an execution has no result: it was not the only one to signal the event that was watched for it, or that is gone.
AMBIGUOUS = ("shared_event", "event_destroyed", "overlapping")

#: Bits of the ``flags`` of descriptors. Source: ze_api.h of API 1.17.
LIST_IN_ORDER, QUEUE_IN_ORDER = 1 << 3, 1 << 1
FLAG_NAMES: Mapping[str, int] = {
    "ZE_COMMAND_LIST_FLAG_IN_ORDER": LIST_IN_ORDER,
    "ZE_COMMAND_QUEUE_FLAG_IN_ORDER": QUEUE_IN_ORDER,
}
#: Device properties of this structure type give the timer's resolution in cycles per second, others in ns per cycle.
STYPE_CYCLES = "ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2"
NS_PER_SECOND = 1_000_000_000
#: Highest plausible frequency of a device clock; larger values are rejected.
FASTEST_HZ = 100_000_000_000


def bits_of(width: int) -> int:
    """Return the valid bits of timestamps; all where a driver gives no usable number of them."""
    return width if 1 <= width <= MOST_BITS else MOST_BITS
