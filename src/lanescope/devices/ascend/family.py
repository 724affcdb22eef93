"""The Ascend family: swimlane captures of the task runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from lanescope.families.family import ClockSpec, Command, Export, Family, Format, Simulator, Summary
from lanescope.families.options import Option, non_negative_int, number, whole_hertz

if TYPE_CHECKING:
    from lanescope.trace import Table, Trace

_HERE = "lanescope.devices.ascend."


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError("must be one of " + ", ".join(words))
        return text

    return parse


def _average(text: str) -> float:
    value = number(text)
    if value < 0:
        raise ValueError("must not be negative")
    return value


def _summary(name: str, doc: str) -> Summary:
    def make(trace: Trace) -> Table:
        from lanescope.devices.ascend.analysis.report import summarize

        return summarize(name, trace)

    def remarks(table: Table) -> Iterable[str]:
        from lanescope.devices.ascend.analysis.report import remarks_on

        return remarks_on(name, table)

    return Summary(name, doc, make, remarks)


FAMILY = Family(
    name="ascend",
    title="Huawei Ascend swimlane: tasks on AI cores, scheduler phases, submits, dependencies",
    formats=(
        Format(
            "swimlane",
            detect=_HERE + "formats.detect:detect",
            decode=_HERE + "decoder:AscendDecoder",
            random_access=True,
            layouts=_HERE + "formats.device_structs:DEVICE_RECORDS",
            fields=_HERE + "formats.field_map.capture:field_map",
            stages={"packet": _HERE + "dump:packet_lines", "record": _HERE + "dump:record_lines"},
            # Text and columns of an execution with its phases, submit and edges.
            bytes_per_row=1200,
        ),
    ),
    options=(
        Option("deps", str, "task graph (default: deps.json next to the capture)", metavar="FILE|none"),
        Option("names", str, "name map (default: name_map*.json next to the capture)", metavar="FILE|none"),
        Option(
            "host_phases",
            str,
            "phases of the host (default: host_phase_records.jsonl next to the capture)",
            metavar="FILE|none",
        ),
        Option("pmu", str, "hardware counters (default: pmu.csv next to the capture)", metavar="FILE|none"),
        Option(
            "scope_stats",
            str,
            "resources of scopes (default: scope_stats/scope_stats.jsonl next to the capture)",
            metavar="FILE|none",
        ),
        Option(
            "log",
            str,
            "log of the host with its spans (default: host.*.log or *.log next to the capture)",
            metavar="FILE|none",
        ),
        Option(
            "rank",
            non_negative_int,
            "rank of the process (default: N of a parent directory rankN)",
            metavar="N",
        ),
        Option(
            "device",
            str,
            "chip name, to merge captures that share its counter",
            metavar="NAME",
            settles="device",
        ),
        Option("index", non_negative_int, "core or thread of a raw dump without headers", metavar="N"),
        Option(
            "frequency",
            whole_hertz,
            "counter frequency in Hz, for raw dumps without a chip name",
            metavar="HZ",
            settles="frequency",
        ),
        Option("format_version", str, "format version of raw dumps without a header: v2, v3 or v3c", metavar="NAME"),
        Option(
            "detail",
            _one_of("low", "full"),
            "low shows only executions, phases, submits and edges (default: full)",
            metavar="low|full",
        ),
        Option("arrows", _one_of("edge", "block"), "one flow per edge, or per pair of blocks", metavar="edge|block"),
        Option("overhead", bool, "add eight counters: idle cores, ready tasks, and both at once"),
    ),
    limits=_HERE + "analysis.limits:LIMITS",
    tables=_HERE + "schema:TABLES",
    stats=_HERE + "schema:STATS",
    # 50 MHz up to generation A3, 1 GHz from A5 on.
    clocks=(ClockSpec("syscnt", ((49e6, 51e6), (0.98e9, 1.02e9))),),
    bounds=_HERE + "analysis.bounds:bounds",
    summaries=(
        _summary("phase", "phases of one kind, of all scheduler threads"),
        _summary("thread-phase", "phases of one kind of one scheduler thread"),
        _summary("scheduler", "where the time of one scheduler thread went"),
        _summary("core", "where the time of one core, or of all of a type, went"),
        _summary("function", "executions of one function"),
        _summary("setup", "local setups of one function"),
        _summary("overhead", "time with idle cores and ready tasks, and whether the schedulers limit the run"),
        _summary("core-idle", "idle time of one core, or of all of a type, by what it could have run"),
        _summary("switch", "switches of one core, or of all of a type, to a dispatch that waited for it"),
        _summary("head", "percentiles of the exposed head of one function"),
        _summary("tail", "percentiles of the tail of one function, and how many iterations of a scheduler it takes"),
        _summary("round", "one run of the program within the file"),
    ),
    exports=(
        Export("swimlane", "Chrome JSON as the runtime's own converter draws it", _HERE + "export.swimlane:export"),
    ),
    commands=(
        Command(
            "ascend-deps",
            "show dependencies of Ascend tasks",
            _HERE + "commands.ascend_deps:run",
            _HERE + "commands.ascend_deps:ARGUMENTS",
            examples=(
                "lanescope ascend-deps chip_swimlane_records.json -o graph.html",
                "lanescope ascend-deps chip_swimlane_records.json t12 --depth 3 --direction in",
            ),
            takes_capture=True,
            has_output=True,
        ),
    ),
    causes=_HERE + "analysis.causes:causes",
    clock_pairs="lanescope.common.time_domains:flow_pairs",
    views=_HERE + "analysis.causes:views",
    simulator=Simulator(
        _HERE + "simulate:simulate",
        options=(
            Option("tasks", non_negative_int, "tasks of the graph", 400),
            Option("format_version", str, "v1a, v1b, v1c, v2, v3, v3c or v4", "v3", metavar="NAME"),
            Option(
                "level", non_negative_int, "1 core timing, 2 and dispatches, 3 and scheduler phases, 4 and submits", 4
            ),
            Option("aic", non_negative_int, "cube cores", 24),
            Option("aiv", non_negative_int, "vector cores", 48),
            Option("threads", non_negative_int, "scheduler threads", 3),
            Option("clock", whole_hertz, "frequency of the counter", 50_000_000, metavar="HZ"),
            Option("mix", number, "share of tasks with parts on cube and vector cores", 0.05),
            Option("spmd", number, "share of tasks that run as several blocks", 0.03),
            Option("dummy", number, "share of tasks without a kernel", 0.02),
            Option("alloc", number, "share of allocations", 0.02),
            Option("predicated", number, "share of tasks that are skipped (v3c, v4)", 0.01),
            Option("speculative", number, "share of waiting tasks that are staged early (v3, v3c, v4)", 0.15),
            Option("producers", _average, "producers of a task, on average", 1.4),
            Option("fan_in", non_negative_int, "explicit dependencies of one task (v3c)", 0),
            Option("graphs", number, "share of tasks that are graphs with nodes (v3c, v4, with host)", 0.0),
            Option("violations", non_negative_int, "tasks that do not wait for their producers", 0),
            Option("epochs", non_negative_int, "runs in the file (v4)", 1),
            Option("host", bool, "the host orchestrates (v3c, v4)", default=False),
            Option("anchors", bool, "readings that join the host's clock", default=True),
            Option("deps", bool, "write the task graph", default=True),
            Option("names", bool, "write a name map", default=True),
            Option("pmu", bool, "write hardware counters of executions", default=False),
            Option("scopes", bool, "write resources of scopes", default=False),
            Option("log", bool, "write the log of the host", default=False),
            Option("drop_aicore", non_negative_int, "executions whose record is lost", 0),
            Option("drop_aicpu", non_negative_int, "dispatches whose record is lost", 0),
            Option("drop_both", non_negative_int, "dispatches that both streams drop", 0),
            Option("drop_phases", non_negative_int, "scheduler phases that are lost", 0),
            Option("overflow", non_negative_int, "buffers of single cores that are lost as a whole", 0),
            Option("buffer", non_negative_int, "records in a buffer", 1024),
            Option("clock_steps", non_negative_int, "cores whose clock steps", 0),
            Option(
                "clock_step_ns",
                non_negative_int,
                "smallest clock step, half of the largest (0: 20 ms)",
                0,
                metavar="NS",
            ),
            Option("duplicates", non_negative_int, "rows that are written twice", 0),
            Option("ambiguous", non_negative_int, "rows contradicted by another one of the same key", 0),
            Option("bad_rows", non_negative_int, "invalid rows", 0),
            Option("unknown_kinds", non_negative_int, "phases of unknown kinds", 0),
            Option("wrap", bool, "let the dispatch counters wrap", default=False),
            Option("shuffle", bool, "rows in any order, as several collectors leave them", default=False),
            Option(
                "dump",
                str,
                "write a raw dump in place of the records file: a2a3 or a5 (sets the clock), or buffers alone",
                "",
                metavar="CHIP|buffers",
            ),
            Option(
                "truth", str, "ground truth with all executions (rows) or only sums (totals)", "rows", metavar="WHAT"
            ),
        ),
    ),
)
