"""Run the probes on a GPU: ``python benchmarks/gpu/run.py [-o FOLDER] [--quick]`` (``make gpu``).

Compiles the kernels beside this file, runs them, checks that the decoded markers say what is known about the kernels,
and measures the timer's step, the cost of a marker and what probes do to a kernel's time. Leaves in the folder the raw
buffers (``.npy`` with the names of their events; ``lanescope.open`` reads them) and ``report.json``.

Needs the driver, and NVRTC (``pip install nvidia-cuda-nvrtc``) or nvcc. Without a GPU it compiles the kernels for
all chips that they are for. Exit status: 0 all is as it must be, 1 a check failed, 2 it could not be run here.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from compiler import compile_, has_compiler
from driver import DriverError, Gpu
from producers import Case, flashinfer_code, proton_code, run_all, tirx_code
from record import keep_captures, keep_figures, write_page
from summary import lines

import lanescope
from lanescope import LanescopeError, MissingDependencyError, Trace
from lanescope.devices.cuda.probes.buffer import BufferPlan
from lanescope.devices.cuda.probes.overhead import smallest_gap

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "out" / "gpu"
#: Compute capabilities without the point.
ARCHITECTURES = (80, 90, 100)
#: Version of the report.
SCHEMA = 1
STAGES = ["LOAD", "COMPUTE", "STORE"]
STEPS = ["WAIT_EMPTY", "FILL", "WAIT_FULL", "SUM", "FULL", "EMPTY", "SLOT"]
WARPS = ["load", "sum 0", "sum 1"]
THREADS, DEPTH, WIDTH, CONSUMERS = 128, 2, 256, 2
REGION_NS = (0, 500, 1_000, 5_000, 20_000, 100_000)
#: Longest accepted excess of a region over its set duration; interrupted GPUs do not count.
SLACK_NS = 5_000
PROBED = {
    "ls2": {},
    "ls2_no_fence": {},
    "ls2_payload": {"payload": True},
    "ls2_clock64": {"clock": "clock64"},
    "tirx": {"layout": "tirx"},
}


@dataclass
class Report:
    """What was measured, and what turned out as it must."""

    figures: dict[str, Any] = field(default_factory=dict)
    checks: list[dict[str, Any]] = field(default_factory=list)

    def check(self, name: str, *, holds: bool, seen: Any) -> None:
        self.checks.append({"name": name, "holds": bool(holds), "seen": seen})

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [check for check in self.checks if not check["holds"]]


@dataclass
class Bench:
    """The GPU, the sizes of the kernels, and where results go."""

    gpu: Gpu
    report: Report
    out: Path
    driver: str
    tiles: int
    work: int
    rounds: int
    cases: list[Case] = field(default_factory=list)

    def save(self, name: str, words: np.ndarray, plan: BufferPlan) -> None:
        np.save(self.out / f"{name}.npy", words)
        names = {"events": dict(plan.events), "groups": list(plan.groups)}
        (self.out / f"{name}.events.json").write_text(json.dumps(names) + "\n")

    def compare(self, off: Callable[[], None], on: Callable[[], None], reset: Callable[[], None]) -> dict[str, float]:
        """Run a kernel without probes and with them in turn; times in ns."""
        times: dict[str, list[float]] = {"baseline": [], "instrumented": []}
        for _ in range(self.rounds + 1):
            times["baseline"].append(self.gpu.elapsed_ns(off))
            reset()
            times["instrumented"].append(self.gpu.elapsed_ns(on))
        found = {f"{name}_ns": median(values[1:]) for name, values in times.items()}
        found |= {f"{name}_min_ns": min(values[1:]) for name, values in times.items()}
        return found | {"slowdown": found["instrumented_ns"] / found["baseline_ns"], "runs": self.rounds}


def computed(values: np.ndarray, work: int) -> np.ndarray:
    """Return what the kernels make of their inputs: so small integers that float32 is exact as long as it is."""
    for _ in range(work):
        values = values * np.float32(0.5) + np.float32(1)
    return values


def sound(report: Report, name: str, trace: Trace, plan: BufferPlan) -> None:
    """Check what holds for every buffer: no error, nothing lost, all lanes there, on multiprocessors that exist."""
    found = [row["name"] for row in trace.stats.rows() if row["severity"] in ("error", "data_loss")]
    # Cycles have no fixed length where the clock of the multiprocessors changes: worth telling, no fault of the probes.
    errors = [stat for stat in found if stat != "cuda_clock_mismatch"]
    report.figures.setdefault("stats", {})[name] = found
    report.check(f"{name}: no error, nothing lost", holds=not errors, seen=errors)
    lanes = list(trace.details["cuda_lanes"].rows())
    report.check(f"{name}: every lane is there", holds=len(lanes) == plan.lanes, seen=len(lanes))


def measure_timer(bench: Bench) -> None:
    """Measure the step of the timer, from every reading that it takes."""
    count = 512
    out = bench.gpu.array(np.zeros(2 * count, np.uint64))
    bench.gpu.kernel("timer", 1, 1, out, np.int32(count), np.uint64(200_000_000))()
    bench.gpu.wait()
    readings = out.get().reshape(-1, 2).astype(np.int64)
    readings = readings[readings[:, 0] > 0]
    steps = np.diff(readings[:, 0])
    step = int(np.gcd.reduce(steps)) if len(steps) else 0
    seen = {"readings": len(readings), "step_ns": step, "common_steps_ns": dict(Counter(steps.tolist()).most_common(4))}
    if len(readings) > 1:
        extent = readings[-1] - readings[0]
        seen["mhz"] = round(float(extent[1] / extent[0] * 1000), 1)
    bench.report.figures["globaltimer"] = seen
    bench.report.check(
        "the timer advances, and only forward", holds=len(steps) > 30 and bool((steps > 0).all()), seen=step
    )
    np.save(bench.out / "timer.npy", readings)


def check_known_regions(bench: Bench) -> None:
    """Regions that waited for known times must last that long."""
    step = bench.report.figures["globaltimer"]["step_ns"]
    blocks = bench.gpu.multiprocessors
    plan = BufferPlan.of(events=[f"{ns} ns" for ns in REGION_NS], blocks=blocks, records_per_lane=2 * len(REGION_NS))
    probes, wanted = bench.gpu.array(plan.new()), bench.gpu.array(np.array(REGION_NS, np.uint64))
    bench.gpu.kernel("known_regions", blocks, 1, wanted, np.int32(len(REGION_NS)), probes)()
    bench.gpu.wait()
    words = probes.get()
    bench.save("known_regions", words, plan)
    trace = plan.decode(words)
    sound(bench.report, "known_regions", trace, plan)
    sms = [row["sm"] for row in trace.details["cuda_lanes"].rows()]
    bench.report.check(
        "known regions: multiprocessors exist", holds=max(sms) < 1024 and len(set(sms)) > 1, seen=len(set(sms))
    )
    worst = 0
    for event, ns in enumerate(REGION_NS):
        mask = trace.slices.values("name") == f"{ns} ns"
        found = trace.slices.values("dur")[mask]
        least, most = (int(found.min()), int(found.max())) if len(found) else (0, 0)
        worst = max(worst, most - ns)
        holds = len(found) == blocks and least >= ns - step and most <= ns + SLACK_NS + 2 * step
        bench.report.check(f"known regions: event {event} lasts {ns} ns", holds=holds, seen=[least, most])
    bench.report.figures["known_regions_over_ns"] = worst


def check_refused(bench: Bench) -> None:
    """Blocks that the buffer has no room for must be counted, every one, however many are at it at a time."""
    room = max(1, bench.gpu.multiprocessors // 2)
    grid = 64 * room
    plan = BufferPlan.of(events=["0 ns"], blocks=room, records_per_lane=2)
    probes, wanted = bench.gpu.array(plan.new()), bench.gpu.array(np.zeros(1, np.uint64))
    bench.gpu.kernel("known_regions", grid, 1, wanted, np.int32(1), probes)()
    bench.gpu.wait()
    words = probes.get()
    bench.save("refused", words, plan)
    (row,) = plan.decode(words).details["cuda_buffers"].rows()
    seen = [row["unallocated_lanes"], row["required_blocks"], row["required_groups"]]
    bench.report.check(
        "refused: every lane without room is counted", holds=seen == [grid - room, grid, None], seen=seen
    )


def measure_cost(bench: Bench) -> None:
    """Measure cycles and ns of one marker by variant: a loop of instants, less the same loop without them."""
    markers = 2000 if bench.rounds > 5 else 500
    out = bench.gpu.array(np.zeros(1, np.uint64))
    found: dict[str, dict[str, float]] = {}
    mhz = bench.report.figures["globaltimer"].get("mhz")

    def cycles(variant: str, probes: Any, slots: int, fresh: np.ndarray | None) -> float:
        launch = bench.gpu.kernel(f"cost_{variant}", 1, 32, out, np.int32(markers), probes, np.uint64(slots))
        taken = []
        for _ in range(bench.rounds + 1):
            if probes is not None:
                probes.put(fresh)
            launch()
            bench.gpu.wait()
            taken.append(int(out.get()[0]) / markers)
        return median(taken[1:])

    bare = cycles("off", None, 0, None)
    for variant, options in PROBED.items():
        ring = {} if variant == "tirx" else {"ring": True}
        plan = BufferPlan.of(
            events=["none", "mark"], blocks=1, records_per_lane=markers if not ring else 256, **options, **ring
        )
        probes = bench.gpu.array(plan.new())
        each = cycles(variant, probes, plan.words, plan.new()) - bare
        words = probes.get()
        bench.save(f"cost-{variant}", words, plan)
        trace = plan.decode(words)
        gap, _ = smallest_gap(trace)
        found[variant] = {"cycles": round(each, 2), "min_delta_ticks": gap}
        if mhz:
            found[variant]["ns"] = round(each / mhz * 1000, 2)
        offered = [row["attempted"] for row in trace.details["cuda_lanes"].rows()]
        if variant != "tirx":
            bench.report.check(f"cost: {variant} counts every marker", holds=offered == [markers], seen=offered)
    bench.report.figures["marker_cost"] = found


def check_stages(bench: Bench) -> None:
    """Load, compute, store in every variant: right results, right regions, and what probes do to its time."""
    gpu, blocks = bench.gpu, 4 * bench.gpu.multiprocessors
    random = np.random.default_rng(1)
    data = random.integers(0, 1000, bench.tiles * blocks * THREADS).astype(np.float32)
    expected = computed(data, bench.work)
    source, target = gpu.array(data), gpu.array(np.zeros_like(data))
    sizes = (np.int32(bench.tiles), np.int32(bench.work))
    found: dict[str, Any] = {}
    variants = [*PROBED, "ls2_no_consume"]
    off = gpu.kernel("stages_off", blocks, THREADS, source, target, *sizes, None, np.uint64(0))
    for variant in variants:
        plan = BufferPlan.of(events=STAGES, blocks=blocks, records_per_lane=6 * bench.tiles, **PROBED.get(variant, {}))
        fresh = plan.new()
        probes = gpu.array(fresh)
        on = gpu.kernel(f"stages_{variant}", blocks, THREADS, source, target, *sizes, probes, np.uint64(plan.words))
        target.put(np.zeros_like(data))
        found[variant] = bench.compare(off, on, lambda p=probes, f=fresh: p.put(f))
        words = probes.get()
        bench.report.check(
            f"stages: {variant} computes what it must", holds=bool((target.get() == expected).all()), seen=None
        )
        trace = plan.decode(words)
        sound(bench.report, f"stages: {variant}", trace, plan)
        per_lane = Counter((row["track_id"], row["name"]) for row in trace.slices.rows())
        right = set(per_lane.values()) == {bench.tiles} and len(per_lane) == 3 * blocks
        bench.report.check(
            f"stages: {variant} has {bench.tiles} of each region a lane", holds=right, seen=len(per_lane)
        )
        wrong = out_of_order(trace, bench.tiles)
        bench.report.check(f"stages: {variant} keeps their order", holds=wrong == 0, seen=wrong)
        gap, step = smallest_gap(trace)
        found[variant] |= {"min_delta_ticks": gap, "resolution_ticks": step}
        found[variant] |= {f"median_{name.lower()}_ns": _median(trace, name) for name in STAGES}
        if variant in ("ls2", "tirx", "ls2_no_consume"):
            bench.save(f"stages-{variant}", words, plan)
        probes.free()
    bench.report.figures["stages"] = found


def out_of_order(trace: Trace, tiles: int) -> int:
    """Return how many lanes have other records than begin and end of each stage in turn."""
    (name,) = (name for name in ("cuda_ls2_records", "cuda_records") if name in trace.records)
    table = trace.records[name]
    is_stage = np.isin(table.values("kind"), ("begin", "end"))
    order = np.lexsort((table.values("slot")[is_stage], table.values("lane")[is_stage]))
    lanes = table.values("lane")[is_stage][order]
    marks = 2 * table.values("event_id")[is_stage][order].astype(np.int64) + (
        table.values("kind")[is_stage][order] == "end"
    )
    expected = list(range(2 * len(STAGES))) * tiles
    return sum(part.tolist() != expected for part in np.split(marks, np.flatnonzero(np.diff(lanes)) + 1))


def _median(trace: Trace, name: str) -> float:
    return float(np.median(trace.slices.values("dur")[trace.slices.values("name") == name]))


def check_pipeline(bench: Bench) -> None:
    """One loading and two computing warps: right sums, every fill waited for, flows between the warps."""
    gpu, blocks, tiles = bench.gpu, 2 * bench.gpu.multiprocessors, bench.tiles
    random = np.random.default_rng(2)
    data = random.integers(0, 8, (tiles, blocks, WIDTH)).astype(np.float32)
    work = bench.work // 8
    expected = np.zeros((blocks, 32), np.float32)
    for tile in range(tiles):
        for part in range(WIDTH // 32):
            expected = expected + computed(data[tile, :, 32 * part : 32 * part + 32], work)
    source, target = gpu.array(data), gpu.array(np.zeros((blocks, CONSUMERS, 32), np.float32))
    sizes = (np.int32(tiles), np.int32(work))
    off = gpu.kernel("pipeline_off", blocks, 32 * len(WARPS), source, target, *sizes, None)
    found: dict[str, Any] = {}
    for variant in ("ls2", "ls2_no_fence"):
        plan = BufferPlan.of(events=STEPS, groups=WARPS, blocks=blocks, records_per_lane=8 * tiles)
        fresh = plan.new()
        probes = gpu.array(fresh)
        on = gpu.kernel(f"pipeline_{variant}", blocks, 32 * len(WARPS), source, target, *sizes, probes)
        found[variant] = bench.compare(off, on, lambda p=probes, f=fresh: p.put(f))
        sums = target.get()
        close = np.allclose(sums[:, 0], expected, rtol=1e-4) and np.allclose(sums[:, 1], -expected, rtol=1e-4)
        bench.report.check(f"pipeline: {variant} computes what it must", holds=close, seen=None)
        words = probes.get()
        bench.save(f"pipeline-{variant}", words, plan)
        trace = plan.decode(words)
        sound(bench.report, f"pipeline: {variant}", trace, plan)
        names = Counter(trace.slices.values("name").tolist())
        expect = {"WAIT_EMPTY": 1, "FILL": 1, "WAIT_FULL": CONSUMERS, "SUM": CONSUMERS}
        wanted = {name: count * blocks * tiles for name, count in expect.items()}
        bench.report.check(f"pipeline: {variant} has every region", holds=dict(names) == wanted, seen=dict(names))
        flows = blocks * (CONSUMERS * tiles + tiles - DEPTH)
        bench.report.check(
            f"pipeline: {variant} has every flow", holds=len(trace.flows) == flows, seen=len(trace.flows)
        )
        late = int((trace.flows.values("dst_ts") < trace.flows.values("src_ts")).sum())
        bench.report.check(f"pipeline: {variant} no effect before its cause", holds=late == 0, seen=late)
        values = Counter(trace.counters.values("value").tolist())
        slots = {float(slot): blocks * len(range(slot, tiles, DEPTH)) for slot in range(DEPTH)}
        bench.report.check(f"pipeline: {variant} counts its slots", holds=dict(values) == slots, seen=dict(values))
    bench.report.figures["pipeline"] = found


def check_triton(bench: Bench) -> None:
    """A Triton matmul with probes, where Triton and PyTorch are there."""
    try:
        from triton_matmul import measure
    except ImportError as error:
        bench.report.figures["triton_matmul"] = {"not_run": f"{error}"}
        return
    try:
        bench.report.figures["triton_matmul"] = measure(bench.report.check, bench.out, rounds=bench.rounds)
    except MissingDependencyError as error:
        bench.report.figures["triton_matmul"] = {"not_run": str(error)}
    except Exception as error:  # whatever Triton and PyTorch may raise
        bench.report.check("check_triton comes to its end", holds=False, seen=f"{type(error).__name__}: {error}")


def make_small_captures(bench: Bench) -> None:
    """Launch a few blocks of the kernels, for the captures that tests keep."""
    gpu, blocks, tiles = bench.gpu, 4, 4
    data = gpu.array(np.ones(tiles * blocks * max(THREADS, WIDTH), np.float32))
    sizes = (np.int32(tiles), np.int32(8))
    for variant, options in PROBED.items():
        plan = BufferPlan.of(events=STAGES, blocks=blocks, records_per_lane=6 * tiles, **options)
        probes = gpu.array(plan.new())
        gpu.kernel(f"stages_{variant}", blocks, THREADS, data, data, *sizes, probes, np.uint64(plan.words))()
        gpu.wait()
        bench.save(f"small-{variant}", probes.get(), plan)
    plan = BufferPlan.of(events=STEPS, groups=WARPS, blocks=blocks, records_per_lane=8 * tiles)
    probes, sums = gpu.array(plan.new()), gpu.array(np.zeros((blocks, CONSUMERS, 32), np.float32))
    gpu.kernel("pipeline_ls2", blocks, 32 * len(WARPS), data, sums, *sizes, probes)()
    gpu.wait()
    bench.save("small-pipeline", probes.get(), plan)


def check_producers(bench: Bench) -> None:
    """TIRx, FlashInfer and Proton, where they are there."""
    bench.report.figures["producers"], bench.cases = run_all(bench.gpu, bench.driver, bench.report.check, bench.out)


def keep(root: Path, bench: Bench, report: dict[str, Any]) -> None:
    """Put captures and figures into the repository, and the figures into the docs."""
    captures = [(path, {}) for path in sorted(bench.out.glob("small-*.npy"))]
    captures += [(case.path, case.options) for case in bench.cases]
    made = keep_captures(root, report["device"]["name"], captures)
    print(f"for the repository: {keep_figures(root, report)}, {write_page(root)}, {len(made)} files of captures")


def compile_only(folder: Path, *, own: bool) -> None:
    """Compile the kernels for the chips that they are for, where there is a compiler: all that needs no GPU."""
    for name, compiled in (
        ("tirx", lambda chip: (tirx_code(chip).code,)),
        ("flashinfer", lambda chip: (flashinfer_code(chip)[0],)),
        ("proton", lambda chip: (proton_code(chip, folder / f"proton.sm_{chip}")[0],)),
    ) * (not own):
        try:
            sizes = [f"{len(compiled(chip)[0]):,}" for chip in ARCHITECTURES]
            print(f"{name}: {', '.join(sizes)} bytes")
        except MissingDependencyError as error:
            print(f"{name}: not compiled: {error}")
    for architecture in ARCHITECTURES:
        try:
            code, compiler = compile_(HERE / "kernels.cu", architecture)
        except MissingDependencyError as error:
            print(f"lanescope: {error}", file=sys.stderr)
            if not has_compiler():
                return
            continue
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"kernels.sm_{architecture}.cubin"
        path.write_bytes(code)
        print(f"{path}: {len(code):,} bytes, {compiler}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=OUT, help="folder for buffers and report")
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    parser.add_argument("--own", action="store_true", help="leave out the probes of others")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository, where figures and captures are kept")
    parser.add_argument("--no-keep", action="store_true", help="leave the repository as it is")
    parser.add_argument("--driver", default="libcuda.so.1", help="the driver's library")
    given = parser.parse_args(arguments)
    try:
        gpu = Gpu(given.driver)
    except MissingDependencyError as error:
        compile_only(given.output, own=given.own)
        print(f"lanescope: {error}", file=sys.stderr)
        return 2
    try:
        code, compiler = compile_(HERE / "kernels.cu", gpu.architecture)
    except MissingDependencyError as error:
        print(f"lanescope: {error}", file=sys.stderr)
        return 2
    gpu.load(code)
    given.output.mkdir(parents=True, exist_ok=True)
    report = Report()
    sizes = {"tiles": 4, "work": 8, "rounds": 2} if given.quick else {"tiles": 16, "work": 256, "rounds": 30}
    bench = Bench(gpu, report, given.output, given.driver, **sizes)
    own = (measure_timer, check_known_regions, check_refused, measure_cost, check_stages, check_pipeline)
    others = () if given.own else (check_producers, check_triton)
    for section in (*own, make_small_captures, *others):
        try:
            section(bench)
        except (DriverError, LanescopeError, subprocess.SubprocessError) as error:
            # What was found so far is worth keeping; behind an error of the driver nothing works any more.
            report.check(f"{section.__name__} comes to its end", holds=False, seen=str(error))
            if isinstance(error, DriverError):
                break
    whole = {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "lanescope": lanescope.__version__,
        "device": {
            "name": gpu.name,
            "architecture": gpu.architecture,
            "multiprocessors": gpu.multiprocessors,
            "driver": gpu.driver,
        },
        "compiler": compiler,
        "sizes": sizes,
        "figures": report.figures,
        "checks": report.checks,
    }
    (given.output / "report.json").write_text(json.dumps(whole, indent=2) + "\n")
    print("\n".join(lines(whole)))
    print(f"report and buffers: {given.output}")
    if report.failed:
        print("nothing is kept in the repository, as checks failed")
    elif not given.no_keep:
        keep(given.root, bench, whole)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
