"""What cores and control processors store in device memory: records, their buffers, and what the host shares with them.

Source: hw-native-sys/simpler at 83728d2 (v3), 063e1cd and 60742ff (v2), 6ebaf77 (v3c), 129e28e (v4, single
files), pull requests 856 to 1079 (v1);
``src/a2a3/platform/include/common/l2_swimlane_profiling.h``,
``src/common/platform/include/common/chip_swimlane_profiling.h``.; sizes and offsets are those of the compiled headers.
"""

from __future__ import annotations

from lanescope.declaration import frozen_class
from lanescope.wire import Member, Struct

_V3_SOURCE = "simpler 83728d2, l2_swimlane_profiling.h; sizes and offsets checked by compiling"
_V3C_SOURCE = "simpler 6ebaf77, chip_swimlane_profiling.h; sizes and offsets checked by compiling"
KIND_NUMBERS_V3 = dict(enumerate(("complete", "dispatch", "release", "resolve", "early_dispatch", "dummy_task")))
KIND_NUMBERS_V3C = dict(
    enumerate(
        (
            *("complete", "dispatch", "release", "wire", "dummy", "early_dispatch", "resolve", "dummy_task", "drain"),
            *("drain_prepare", "drain_publish", "async_poll", "predicated_skip", "graph_prepare"),
        )
    )
)

AICORE_RECORD = Struct(
    "ascend.aicore_task",
    size=32,
    doc="Written by the core itself, once a dispatch, two to a cache line.",
    source=_V3_SOURCE,
    members=(
        Member("start_time", 0, "u64", unit="cycles"),
        Member("end_time", 8, "u64", unit="cycles"),
        Member("task_token_raw", 16, "u64", "Task id."),
        Member("reg_task_id", 24, "u32", "The core's dispatch counter."),
        Member("receive_to_start_cycles", 28, "u32", "v2: padding.", unit="cycles"),
    ),
)
AICPU_RECORD = Struct(
    "ascend.aicpu_task",
    size=32,
    doc="Written by the scheduler, once a dispatch.",
    source=_V3_SOURCE,
    members=(
        Member("dispatch_time", 0, "u64", unit="cycles"),
        Member("finish_time", 8, "u64", unit="cycles"),
        Member("reg_task_id", 16, "u32"),
        Member("padding", 20, "u8", count=12, default=0),
    ),
)


def _phase_head(kinds: dict[int, str]) -> tuple[Member, ...]:
    return (
        Member("start_time", 0, "u64", unit="cycles"),
        Member("end_time", 8, "u64", unit="cycles"),
        Member("loop_iter", 16, "u32"),
        Member("kind", 20, "u32", values=kinds),
        Member("tasks_processed", 24, "u32"),
    )


PHASE_RECORD_V3 = Struct(
    "ascend.sched_phase_v3",
    size=64,
    doc="One scheduler phase; the thread is that of the buffer.",
    source=_V3_SOURCE,
    members=(
        *_phase_head(KIND_NUMBERS_V3),
        Member("pop_hit", 28, "u32"),
        Member("pop_miss", 32, "u32"),
        Member("local_depth_at_start", 36, "i16", "AIC, AIV, MIX.", count=3),
        Member("local_depth_at_end", 42, "i16", count=3),
        Member("shared_depth_at_start", 48, "i16", count=3),
        Member("shared_depth_at_end", 54, "i16", count=3),
        Member("padding", 60, "u8", "Not initialised.", count=4, default=0),
    ),
)
PHASE_RECORD_V3C = Struct(
    "ascend.sched_phase_v3c",
    size=64,
    doc="One scheduler phase; the thread is that of the buffer.",
    source=_V3C_SOURCE,
    members=(
        *_phase_head(KIND_NUMBERS_V3C),
        Member("pop_hit_or_local_id", 28, "u32", "dispatch: pops that hit; markers: low half of the task id."),
        Member("pop_miss_or_ring_id", 32, "u32", "dispatch: pops that missed; markers: high half of the task id."),
        Member("shared_depth_at_start", 36, "i16", "AIC, AIV, MIX.", count=3),
        Member("shared_depth_at_end", 42, "i16", count=3),
        Member("padding", 48, "u8", "Not initialised.", count=16, default=0),
    ),
)
SUBMIT_RECORD = Struct(
    "ascend.orch_phase",
    size=32,
    doc="One submit of the orchestrator.",
    source=_V3_SOURCE,
    members=(
        Member("start_time", 0, "u64", unit="cycles"),
        Member("end_time", 8, "u64", unit="cycles"),
        Member("task_id", 16, "u64"),
        Member("submit_idx", 24, "u32"),
        Member("padding", 28, "u8", "Not initialised.", count=4, default=0),
    ),
)
_HOST_KINDS = (
    *("args", "arena_build", "static_arena", "gm_heap", "shared_mem", "runtime_init", "host_orch", "graph_upload"),
    *("relocate", "sm_h2d", "arena_h2d", "host_view_close", "submit_task", "alloc_tensors", "record_node"),
    *("graph_submit", "build_definition"),
)
HOST_RECORD = Struct(
    "ascend.host_phase",
    size=40,
    doc="One phase of a host that orchestrates.",
    source=_V3C_SOURCE,
    members=(
        Member("start_ns", 0, "u64", unit="ns"),
        Member("end_ns", 8, "u64", unit="ns"),
        Member("payload", 16, "u64", "submit_task, alloc_tensors, graph_submit: task id; uploads: bytes."),
        Member("kind", 24, "u32", values=dict(enumerate(_HOST_KINDS))),
        Member("index", 28, "u32"),
        Member("thread_id", 32, "u32"),
        Member("padding", 36, "u8", count=4, default=0),
    ),
)
QUEUE_ENTRY = Struct(
    "ascend.ready_entry",
    size=32,
    doc="A full buffer, handed to the host.",
    source=_V3_SOURCE,
    members=(
        Member("core_index", 0, "u32", "Core, or number of the thread's pool."),
        Member("kind", 4, "u32", values={0: "aicpu_task", 1: "sched_phase", 2: "orch_phase", 3: "aicore_task"}),
        Member("buffer_ptr", 8, "u64"),
        Member("buffer_seq", 16, "u32"),
        Member("padding", 20, "u8", count=12, default=0),
    ),
)
POOL = Struct(
    "ascend.pool",
    size=192,
    doc="The buffers of one stream of one core or thread.",
    source=_V3_SOURCE,
    members=(
        Member("current_buf_ptr", 0, "u64"),
        Member("current_buf_seq", 8, "u32"),
        Member("total_record_count", 12, "u32", "Every attempt to write a record; AICore: every dispatch."),
        Member("dropped_record_count", 16, "u32", "Attempts that found no buffer."),
        Member("head_padding", 20, "u8", count=44, default=0),
        Member("free_ptrs", 64, "u64", count=4),
        Member("free_head", 96, "u32"),
        Member("free_tail", 100, "u32"),
        Member("padding", 104, "u8", count=88, default=0),
    ),
)
#: Streams of records on the device, by the kind of their ready entries.
STREAMS = ("aicpu_task", "sched_phase", "orch_phase", "aicore_task")


def _buffer(name: str, record: Struct, count: int) -> Struct:
    end = record.size * count
    size = -(-(end + 4) // 64) * 64
    return Struct(
        f"ascend.{name}_buffer",
        size=size,
        doc="What a producer fills before it hands it over; the whole struct is aligned to 64 bytes.",
        source=record.source,
        members=(
            Member("records", 0, record, count=count),
            Member(
                "count",
                end,
                "u32",
                "Records that are valid; slots behind are old. AICore at level 1: all.",
            ),
            Member("padding", end + 4, "u8", "Not initialised.", count=size - end - 4, default=0),
        ),
    )


AICPU_BUFFER = _buffer("aicpu_task", AICPU_RECORD, 1000)
AICORE_BUFFER = _buffer("aicore_task", AICORE_RECORD, 1024)
PHASE_BUFFER_V3 = _buffer("sched_phase_v3", PHASE_RECORD_V3, 16384)
PHASE_BUFFER_V3C = _buffer("sched_phase_v3c", PHASE_RECORD_V3C, 16384)
SUBMIT_BUFFER = _buffer("orch_phase", SUBMIT_RECORD, 16384)


@frozen_class
class Region:
    """The memory that a chip shares with its host: a header, and the pools behind it.

    Attributes:
        platform: the chip.
        format_version: v3 or v3c.
        threads, cores, entries: how many the header has room for: threads, cores, ready entries a thread.
        header: its struct.
        frequency: of the chip's counter, Hz.
    """

    platform: str
    format_version: str
    threads: int
    cores: int
    entries: int
    header: Struct
    frequency: int

    def pools(self, live: int) -> tuple[tuple[str, int], ...]:
        """Return stream and core (or thread) of each pool, in order, with ``live`` cores in use.

        Pools exist for the cores in use; those of threads for as many as the header has room for.
        """
        counts = {"aicpu_task": live, "aicore_task": live, "sched_phase": self.threads, "orch_phase": self.threads}
        return tuple((stream, index) for stream, count in counts.items() for index in range(count))

    def size(self, live: int) -> int:
        """Return the bytes of header and pools with ``live`` cores in use."""
        return self.header.size + 2 * (live + self.threads) * POOL.size


_COUNTS = {
    "num_cores": "Cores in use: as many have pools.",
    "level": "",
    "num_sched_phase_threads": "Threads that record phases.",
    "num_orch_phase_threads": "",
    "num_phase_cores": "Cores that have a thread; 0 below level 3.",
}


def _region(platform: str, format_version: str, threads: int, cores: int, entries: int, frequency: int) -> Region:
    at = threads * entries * QUEUE_ENTRY.size
    members = [
        Member("queues", 0, QUEUE_ENTRY, "Ready entries, by thread.", count=threads * entries),
        Member("queue_heads", at, "u32", "Next entry that the host takes, by thread.", count=threads),
        Member("queue_tails", at + 4 * threads, "u32", "Next free entry, by thread.", count=threads),
    ]
    at += 8 * threads
    for name, doc in _COUNTS.items():
        members.append(Member(name, at, "u32", doc))
        at += 4
    members.append(Member("core_to_thread", at, "i8", "-1: not assigned.", count=cores))
    at += cores
    if format_version == "v3c":
        for name in ("rq_freeze_active", "rq_contended", "fq_freeze_active", "fq_contended"):
            members.append(Member(name, at, "u32", "Back pressure."))
            at += 4
    size = -(-at // 64) * 64
    if size > at:
        members.append(Member("padding", at, "u8", count=size - at, default=0))
    header = Struct(
        f"ascend.header_{platform}_{format_version}",
        size=size,
        doc="Begin of the shared memory; pools follow: AICPU tasks, AICore tasks, scheduler phases, orchestrator.",
        source=_V3_SOURCE if format_version == "v3" else _V3C_SOURCE,
        members=tuple(members),
    )
    return Region(platform, format_version, threads, cores, entries, header, frequency)


REGIONS = (
    _region("a2a3", "v3c", 4, 72, 992, 50_000_000),
    _region("a2a3", "v3", 4, 72, 992, 50_000_000),
    _region("a5", "v3c", 5, 108, 1456, 1_000_000_000),
    _region("a5", "v3", 7, 108, 1520, 1_000_000_000),
)

DEVICE_RECORDS = (
    *(AICORE_RECORD, AICPU_RECORD, PHASE_RECORD_V3, PHASE_RECORD_V3C, SUBMIT_RECORD, HOST_RECORD),
    *(AICORE_BUFFER, AICPU_BUFFER, PHASE_BUFFER_V3, PHASE_BUFFER_V3C, SUBMIT_BUFFER),
    *(QUEUE_ENTRY, POOL, *(region.header for region in REGIONS)),
)
