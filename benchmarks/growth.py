"""Cost of ingesting, by slice, and what holds under a limit on memory; results are printed as Markdown tables.

``python benchmarks/growth.py [--only PART] [--slices N] [--memory SIZE] [--jobs N]`` measures in a temporary folder.
Its parts: ``growth`` ingests captures of kernels, of a million slices each; ``workers`` does so with two workers of a
Dask cluster beside one; ``limits`` converts and ingests captures of each family under a limit; ``large`` does so with a
buffer of 4 GiB; ``commands`` runs all commands on a Level Zero text of 1.1 GB and on an LTTng folder of 550 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np

PER_CAPTURE = 1_013_760  # slices of a capture of so many tiles
TILES = 640


def lanescope(*arguments):
    return [sys.executable, "-m", "lanescope", *map(str, arguments)]


def run(*arguments, every=0.01):
    """Run a command: its status, seconds, CPU seconds, and the largest sum of resident sets of its processes, bytes.

    Looking for the resident sets, ``every`` so many seconds, takes a millisecond of a core that the command may want.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    process = subprocess.Popen(
        lanescope(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        with suppress(subprocess.TimeoutExpired):
            process.wait(every)
    out, err = process.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return process.returncode, time.perf_counter() - begin, cpu, peak, out, err


def resident(session):
    """The resident sets of all processes of a session, bytes; pages that they share count for each."""
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if os.getsid(int(entry.name)) == session:
                    total += int((entry / "statm").read_bytes().split()[1])
            except (OSError, IndexError):
                continue
    return total * os.sysconf("SC_PAGE_SIZE")


def make_captures(folder, slices):
    """Copies of one simulated capture, each a microsecond later: other content, of which decoding is the same work."""
    first = folder / "first"
    first.mkdir(parents=True)
    status, *_, err = run("sim", "cuda", "-O", f"tiles={TILES}", "-o", first / "run.npy")
    assert status == 0, err
    words = np.load(first / "run.npy")
    stamps = words.view(np.uint32).reshape(-1)[3::2]  # the upper halves of records; the first word is the header
    is_record = stamps != 0
    names = next(first.glob("*.events.json"))
    made = []
    for rank in range(max(1, round(slices / PER_CAPTURE))):
        place = folder / f"run/rank_{rank}"
        place.mkdir(parents=True)
        shutil.copy(names, place / names.name)
        np.save(place / "run.npy", words)
        stamps[is_record] += np.uint32(1024)
        made.append(place / "run.npy")
    shutil.rmtree(first)
    return made


def growth(folder, slices, jobs):
    """Ingest, compact and query so many slices."""
    made = make_captures(folder / "captures", slices)
    out = folder / "dataset"
    status, seconds, cpu, peak, said, err = run(
        "ingest", folder / "captures", "-o", out, "--jobs", jobs, "--json", every=0.1
    )
    found = json.loads(said)
    assert status == 0, err
    count = sum(each["slices"] for each in found["captures"])
    size = sum(path.stat().st_size for path in out.rglob("*.parquet"))
    core = sum(path.stat().st_size for path in (out / "table=slices").rglob("*.parquet"))
    print(f"\n{count:,} slices in {len(made)} captures, {jobs} processes\n")
    print("| what | measured |\n|---|---|")
    print(
        f"| ingest | {seconds:.1f} s, {count / seconds / 1e6:.2f} M slices/s, {cpu / count * 1e9:.0f} ns CPU a slice |"
    )
    print(f"| size | {core / count:.1f} bytes a slice (`slices`), {size / count:.1f} (all tables) |")
    print(f"| RSS, all processes | {peak >> 20:,} MiB |")
    files = sum(1 for _ in out.rglob("*.parquet"))
    print(f"| files per capture | {files / len(made):.1f} |")
    again = run("ingest", folder / "captures", "-o", out, "--jobs", jobs)
    print(f"| ingest again: all present | {again[1]:.1f} s |")
    for name, query in {
        "`group by name`": "select name, count(*), sum(dur) from slices group by 1",
        "a 50 ms window of one rank": "select count(*) from slices where rank = 1 and ts between 0 and 50000000",
    }.items():
        status, seconds, _, peak, _, err = run("sql", out, query)
        assert status == 0, err
        print(f"| {name} | {seconds:.2f} s, {peak >> 20:,} MiB |")
    status, seconds, _, peak, _, err = run("summary", out)
    print(f"| `summary` | {seconds:.1f} s, {peak >> 20:,} MiB |" if not status else f"| `summary` | {err.strip()} |")


def cpu_of(processes):
    """CPU seconds of running processes so far."""
    stats = (Path(f"/proc/{each.pid}/stat").read_text().rpartition(")")[2].split() for each in processes)
    return sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")


def two_workers(folder, slices, rounds=3):
    """Ingest with one worker and with two, in turns, on clusters that have ingested before."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from cli.dataset.dask_cluster import cluster

    made = make_captures(folder / "captures", slices)
    print(f"\n{len(made)} captures on workers of Dask\n")
    print("| one worker | two workers | times as fast | CPU of two, of one |\n|---|---|---|---|")
    with ExitStack() as stack:
        clusters = {}
        for count in (1, 2):
            place = folder / f"cluster-{count}"
            place.mkdir()
            clusters[count] = stack.enter_context(cluster(place, count))
        for number in range(rounds + 1):
            seconds, cpus = {}, {}
            for count, (address, workers) in clusters.items():
                before = cpu_of(workers)
                # Each stays: where files were removed just now, the file system takes long to make new ones.
                out = folder / f"dataset-{number}-{count}"
                command = ("ingest", folder / "captures", "-o", out, "--on", address)
                status, seconds[count], *_, err = run(*command, every=0.2)
                assert status == 0, err
                cpus[count] = cpu_of(workers) - before
            if number:  # the first round is for the workers to import and to have memory
                print(
                    f"| {seconds[1]:.1f} s | {seconds[2]:.1f} s | {seconds[1] / seconds[2]:.2f} |"
                    f" {cpus[2] / cpus[1]:.2f} |",
                    flush=True,
                )


def write_buffer(path, blocks, groups, records):
    """Write a buffer of markers: slices of ten names, one after the other, random lengths, nothing lost.

    Args:
        path: of the ``.npy`` file.
        blocks: of threads.
        groups: of each block; a lane each.
        records: of each lane, an even number, without the last one, which ends it.
    """
    lanes = blocks * groups
    random = np.random.default_rng(1)
    now = (1_000_000_256 + 32 * random.integers(0, 100, lanes)).astype(np.uint64)
    tag = np.arange(lanes, dtype=np.uint64) << np.uint64(12)
    with path.open("wb") as file:
        head = {"descr": "<u8", "fortran_order": False, "shape": (1 + lanes * (records + 1),)}
        np.lib.format.write_array_header_1_0(file, head)
        file.write(np.uint64(groups << 32 | blocks).tobytes())
        step = max(2, 4_000_000 // lanes // 2 * 2)
        for first in range(0, records, step):
            row = np.arange(first, min(first + step, records), dtype=np.uint64)[:, None]
            times = now + np.cumsum(32 * random.integers(1, 30, (len(row), lanes)), axis=0).astype(np.uint64)
            now = times[-1]
            events = row // np.uint64(2) % np.uint64(10) << np.uint64(2)
            file.write((times << np.uint64(32) | tag | events | row % np.uint64(2)).tobytes())
        file.write((now + np.uint64(32) << np.uint64(32) | tag | np.uint64(3)).tobytes())


def large(folder, memory):
    """Convert, check and ingest a buffer of 4 GiB under a limit: lanes as a device has them at a time, and many."""
    print(f"\nA buffer of 4 GiB, `--memory {memory}`: peak RSS of all processes, or the status of the clear error\n")
    print("| lanes | slices | parquet | check | summary | ingest |\n|---|---|---|---|---|---|")
    for blocks, records in ((132, 1_360_000), (7_000, 25_600), (28_000, 6_400)):
        path = folder / "run.npy"
        write_buffer(path, blocks, 3, records)
        cells = []
        for command in (
            ("convert", path, "-o", folder / "out.parquet"),
            ("check", path),
            ("summary", path),
            ("ingest", path, "-o", folder / "dataset", "--jobs", 1),
        ):
            status, seconds, _, peak, _, err = run(*command, "--memory", memory)
            assert status in (0, 3), err
            cells.append(f"{peak >> 20} MiB, {seconds:.0f} s" if status == 0 else f"error {status} at {peak >> 20} MiB")
            for made in (folder / "out.parquet", folder / "dataset"):
                shutil.rmtree(made, ignore_errors=True)
        print(f"| {3 * blocks:,} | {3 * blocks * records // 2:,} | {' | '.join(cells)} |", flush=True)
        path.unlink()


#: Simulations of over a hundred MiB, or as large as they can be made in a minute.
LARGE = {
    "aie": ("-O", "tiles=16", "-O", "records=1000000"),
    "cuda": ("-O", "tiles=6400"),
    "kineto": ("-O", "steps=400"),
    "ascend": ("-O", "tasks=100000"),
    "levelzero": ("-O", "ops=400000"),
}


def limits(folder, memory, families):
    """Convert and ingest large captures of each family under a limit."""
    limit = int(memory.removesuffix("MiB")) << 20
    print(f"\n`--memory {memory}`: peak RSS, or the status of the clear error\n")
    print("| family | capture | parquet | pftrace | json | ingest |\n|---|---|---|---|---|---|")
    for family in families:
        place = folder / family
        place.mkdir()
        main = place / "capture.bin"
        status, *_, err = run("sim", family, *LARGE[family], "-o", main)
        if status:
            print(f"| {family} | {err.strip()[:80]} | | | | |", flush=True)
            continue
        for truth in place.rglob("*.truth.json"):
            truth.unlink()
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        cells = [f"{size / 2**20:.0f} MiB"]
        for suffix in ("parquet", "pftrace", "json"):
            status, _, _, peak, _, err = run("convert", main, "--memory", memory, "-o", place / f"out.{suffix}")
            left = [path.name for path in place.iterdir() if path.name.startswith(".lanescope-")]
            assert not left, (left, err)
            assert (status == 0) == (place / f"out.{suffix}").exists(), err
            over = " (over)" if peak > limit * 1.1 else ""
            cells.append(f"{peak >> 20} MiB{over}" if status == 0 else f"error {status} at {peak >> 20} MiB")
        status, _, _, peak, _, err = run("ingest", main, "-o", place / "dataset", "--memory", memory, "--jobs", 1)
        cells.append(f"{peak >> 20} MiB" if status == 0 else f"error {status} at {peak >> 20} MiB")
        print(f"| {family} | {' | '.join(cells)} |", flush=True)
        shutil.rmtree(place)


def write_text(path):
    """A Level Zero text of 2.4 million commands: what one simulation records, of three times as many processes."""
    one = path.with_name("one.txt")
    status, *_, err = run("sim", "levelzero", "-O", "ops=400000", "-O", "processes=2", "--seed", 3, "-o", one)
    assert status == 0, err
    with one.open("rb") as lines, path.open("wb") as file:
        for line in lines:
            for process in (b"1", b"2", b"3"):
                file.write(line.replace(b"vpid: ", b"vpid: " + process).replace(b"vtid: ", b"vtid: " + process))
    one.unlink()
    return path


def write_folder(path):
    """Nine million events of a program with tracepoints, recorded by LTTng; None where it is not there."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from wire import lttng_session

    if not lttng_session.available():
        return None
    path.mkdir()
    for folder in (path, path.parent, path.parent.parent):
        folder.chmod(0o755)  # LTTng's daemon is of another user
    program = lttng_session.build(path)
    (path / "recorded").mkdir()
    channel = ("--subbuf-size", "8M", "--num-subbuf", "8")
    return lttng_session.record(path / "recorded", program, "1500000", channel=channel)


def commands(folder, memory):
    """Run every command that reads captures on large ones of many events under a limit."""
    print(f"\n`--memory {memory}`: peak RSS and seconds, or the status of the clear error\n")
    print("| command | Level Zero text | LTTng folder |\n|---|---|---|")
    folder.mkdir()
    captures = [write_text(folder / "run.txt"), write_folder(folder / "lttng")]
    outputs = {"convert": ("out.parquet", "out.pftrace", "out.json"), "report": ("out.html",), "ingest": ("dataset",)}
    for name in (
        *("info", "check", "summary", "convert", "ingest", "sql", "gaps", "phases"),
        *("critical-path", "explain", "diff", "report"),
    ):
        for out in outputs.get(name, ("",)):
            cells = []
            for capture in captures:
                if capture is None:
                    cells.append("needs LTTng: make test-tools")
                    continue
                more = {"sql": ("select count(*) from slices",), "diff": (capture,)}.get(name, ())
                more += ("-o", folder / out) if out else ()
                more += ("--jobs", 1) if name == "ingest" else ()
                status, seconds, _, peak, _, err = run(name, capture, *more, "--memory", memory, every=0.02)
                assert status in (0, 1, 3), err
                cells.append(f"error 3 at {peak >> 20} MiB" if status == 3 else f"{peak >> 20} MiB, {seconds:.0f} s")
                if out and (folder / out).is_dir():
                    shutil.rmtree(folder / out)
                elif out:
                    (folder / out).unlink(missing_ok=True)
            print(f"| {' to '.join(filter(None, (name, out)))} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slices", type=float, default=1e7)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--memory", help="limit of each command (512MiB; of the part 'large' 256MiB)")
    parser.add_argument("--families", default=",".join(LARGE))
    parser.add_argument("--only", choices=("growth", "workers", "limits", "large", "commands"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lanescope-growth-") as made:
        folder = Path(made)
        if args.only in (None, "growth"):
            growth(folder / "growth", args.slices, args.jobs)
        if args.only in (None, "workers"):
            two_workers(folder / "workers", args.slices)
        if args.only in (None, "limits"):
            limits(folder, args.memory or "512MiB", args.families.split(","))
        if args.only in (None, "large"):
            large(folder, args.memory or "256MiB")
        if args.only in (None, "commands"):
            commands(folder / "commands", args.memory or "512MiB")


if __name__ == "__main__":
    main()
