"""One table for all families: every stage at three sizes, beside what bounds it and what else does the work.

``memcpy``: a copy of the bytes that the stage reads or writes; no program is faster. ``reference``: the slow codec made
from the declared layout, or the standard library. ``bindings``: the official protobuf bindings. ``peer``: a package
from PyPI that does the same work. Comparisons are of processor time a slice; ours at the largest size, theirs at the
middle one, because some take seconds for it.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lanescope
import peers
from case import STAGES

HERE = Path(__file__).resolve().parent

#: Slices asked for; the last size only of families that get there in seconds: text of Level Zero has 275 bytes a slice.
SIZES = (10_000, 100_000, 1_000_000)
FAMILIES = ("aie", "ascend", "cuda", "levelzero")
SLOW = ("levelzero",)


def simulated(family: str, slices: int) -> dict[str, Any]:
    """Return the simulator's options for about so many slices."""
    return {
        "aie": {"tiles": 4, "records": slices * 0.522},
        "ascend": {"tasks": slices / 4.95, "truth": "totals"},
        "cuda": {"tiles": slices / 1584},
        "levelzero": {"ops": slices / 3.35},
        "chrome": {"events": slices / 1.01},
        "kineto": {"steps": slices / 216},
        "perfetto": {"slices": slices / 5.36},
    }[family]


def make(family: str, slices: int, folder: Path) -> Path:
    """Simulate a capture; return its main file."""
    asked = simulated(family, slices).items()
    options = {name: value if isinstance(value, str) else round(value) for name, value in asked}
    files = lanescope.simulate(family, **options).files
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder / next(iter(files))


def case(family: str, name: str, path: Path) -> dict[str, Any]:
    """Measure one case in a fresh process."""
    command = [sys.executable, str(HERE / "case.py"), family, name, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{family}, {name}: {(done.stderr.strip().splitlines() or ['no word of why'])[-1][:200]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


#: Feeds slices one by one, as the exporters that use it do: a group and a track for each lane.
_TG4PERFETTO = """
import json, sys, time
import numpy as np
from tg4perfetto import TraceGenerator
columns = np.load(sys.argv[1] + "/truth-events.npz")
names = json.load(open(sys.argv[1] + "/truth-names.json"))
rows = list(zip(*(columns[name].tolist() for name in ("ts", "kind", "track", "name"))))
best = 1e9
for _ in range(2):
    begin = time.process_time()
    trace = TraceGenerator(sys.argv[1] + "/truth-peer.pftrace")
    group, tracks = trace.create_group("device"), {}
    for ts, kind, lane, name in rows:
        track = tracks.get(lane)
        if track is None:
            track = tracks[lane] = group.create_group("lane %d" % lane).create_track()
        if kind:
            track.close(ts)
        else:
            track.open(ts, names[name])
    trace.flush()
    best = min(best, time.process_time() - begin)
print(json.dumps({"slices": len(rows) // 2, "seconds": best}))
"""

#: Decodes the same buffer of the same format.
_WARPSCOPE = """
import json, sys, time
import numpy as np
import warpscope._decode
words = np.load(sys.argv[1])
best = 1e9
for _ in range(2):
    begin = time.process_time()
    found = warpscope._decode.decode(words)
    best = min(best, time.process_time() - begin)
print(json.dumps({"slices": len(found.spans), "seconds": best}))
"""


@dataclass(frozen=True, slots=True)
class Rival:
    """Something that does the work of a stage.

    Attributes:
        column: ``reference``, ``bindings`` or ``peer``.
        name: what it is, with its version.
        run: returns ``slices`` and ``seconds`` for a capture.
    """

    column: str
    name: str
    run: Callable[[Path], dict[str, Any]]


def rivals(family: str, stage: str) -> Iterator[Rival]:
    """Yield what there is to compare a stage with."""
    if stage == "decode":
        what = {
            **dict.fromkeys(("ascend", "chrome", "kineto"), "json.loads, nothing made of it"),
            "perfetto": "official protobuf bindings, nothing made of it",
            "levelzero": "lines split in plain Python, nothing made of them",
        }.get(family, "slow codec made from the layout, records only")
        yield Rival("reference", what, lambda path: case(family, "reference", path))
        if family == "cuda":
            yield Rival("peer", peers.version("warpscope"), lambda path: json.loads(peers.run(_WARPSCOPE, path)))
    elif stage == "perfetto":
        yield Rival("bindings", "protobuf, shortest packets", lambda path: case(family, "bindings", path))

        def tg4perfetto(path: Path) -> dict[str, Any]:
            case(family, "events", path)
            found: dict[str, Any] = json.loads(peers.run(_TG4PERFETTO, path.parent))
            return found

        yield Rival("peer", peers.version("tg4perfetto"), tg4perfetto)
    elif stage == "chrome":
        yield Rival("reference", "json.dumps of dicts that are there", lambda path: case(family, "dumps", path))
    elif stage == "parquet":
        yield Rival("peer", "pyarrow", lambda path: case(family, "pyarrow", path))


def measure(families: Sequence[str], *, extent: str, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Measure all; return one row for each family, stage and size.

    Args:
        families: which.
        extent: ``quick``: without the largest size; ``usual``: with it where that takes seconds; ``full``: with it.
        say: is told what is going on.
    """
    rows = []
    for family in families:
        sizes = SIZES if extent == "full" or (extent == "usual" and family not in SLOW) else SIZES[:-1]
        for number, size in enumerate(sizes):
            say(f"{family}, {size} slices")
            with tempfile.TemporaryDirectory() as name:
                path = make(family, size, Path(name))
                for stage in STAGES:
                    row = {"family": family, "stage": stage, "size": size, **case(family, stage, path)}
                    # Where all can do it in seconds: at the middle size, or at the smaller of two.
                    is_compared = number == len(sizes) - 2
                    row["rivals"] = [compared(rival, path) for rival in rivals(family, stage) if is_compared]
                    rows.append(row)
    return rows


def compared(rival: Rival, path: Path) -> dict[str, Any]:
    """Return a rival's figures; one that cannot be had is named, with the reason and no figure."""
    named = {"column": rival.column, "name": rival.name}
    try:
        return {**named, **rival.run(path)}
    except (peers.MissingPeerError, RuntimeError) as error:
        return {**named, "slices": 0, "seconds": None, "missing": str(error)}


def lines(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one line of the table for each family and stage: the largest size, with growth from the one before it."""
    found = []
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault((row["family"], row["stage"]), []).append(row)
    for (family, stage), sizes in grouped.items():
        sizes.sort(key=lambda row: row["slices"])
        large, before = sizes[-1], sizes[-2] if len(sizes) > 1 else None
        ours = large["seconds"] / large["slices"]
        line = {
            "family": family,
            "stage": stage,
            "slices": large["slices"],
            "ns_a_slice": 1e9 * ours,
            "of_memcpy": large["seconds"] / large["memcpy_seconds"],
            "reference": None,
            "bindings": None,
            "peer": None,
            "bytes_a_slice": large["bytes"] / large["slices"] if large["bytes"] else None,
            "rss_mib": large["peak_rss"] / 2**20,
            "time_for_10x": None,
            "rss_a_slice": None,
        }
        for row in sizes:
            for rival in row["rivals"]:
                if rival["seconds"] is not None:
                    line[rival["column"]] = rival["seconds"] / rival["slices"] / ours
        if before is not None:
            decades = math.log10(large["slices"] / before["slices"])
            line["time_for_10x"] = (large["seconds"] / before["seconds"]) ** (1 / decades)
            line["rss_a_slice"] = (large["peak_rss"] - before["peak_rss"]) / (large["slices"] - before["slices"])
        found.append(line)
    return found


#: Key, heading, digits that count, suffix.
COLUMNS = (
    ("slices", "slices", 0, ""),
    ("ns_a_slice", "ns/slice", 3, ""),
    ("of_memcpy", "of memcpy", 3, "x"),
    ("reference", "reference", 3, "x"),
    ("bindings", "bindings", 3, "x"),
    ("peer", "peer", 3, "x"),
    ("bytes_a_slice", "B/slice", 3, ""),
    ("rss_mib", "RSS MiB", 3, ""),
    ("rss_a_slice", "RSS B/slice", 3, ""),
    ("time_for_10x", "10x takes", 3, "x"),
)


def cells(line: dict[str, Any]) -> list[str]:
    """Return the texts of one line."""

    def text(value: float | None, digits: int, suffix: str) -> str:
        if value is None:
            return "-"
        whole = not digits or abs(value) >= 10 ** (digits - 1)
        return (f"{value:.0f}" if whole else f"{value:.{digits}g}") + suffix

    return [line["family"], line["stage"], *(text(line[key], digits, suffix) for key, _, digits, suffix in COLUMNS)]


HEAD = ["family", "stage", *(heading for _, heading, _, _ in COLUMNS)]


def text_table(rows: list[dict[str, Any]]) -> str:
    """Return the table for a terminal."""
    body = [HEAD, *map(cells, lines(rows))]
    widths = [max(len(row[column]) for row in body) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in body
    )


def markdown_table(rows: list[dict[str, Any]]) -> str:
    """Return the table for a page."""
    body = [HEAD, ["---", "---", *["---:"] * len(COLUMNS)], *map(cells, lines(rows))]
    return "\n".join("| " + " | ".join(row) + " |" for row in body)


def legend(rows: list[dict[str, Any]]) -> list[str]:
    """Return what the columns mean and who was compared."""
    names: dict[str, set[str]] = {}
    for row in rows:
        for rival in row["rivals"]:
            lacking = f" (not measured: {rival['missing']})" if "missing" in rival else ""
            names.setdefault(f"{row['stage']}, {rival['column']}", set()).add(rival["name"] + lacking)
    return [
        "ns/slice: processor time of all threads. of memcpy: times a copy of the bytes read or written (check, "
        "summary: of the slices' columns).",
        "reference, bindings, peer: how many times our processor time they take for a slice (below 1x: they are "
        "faster). json.dumps, bindings and tg4perfetto write slices only, we also arguments, flows, counters and gaps; "
        "pyarrow writes the same tables.",
        "B/slice: decode reads, writers write. RSS: peak of a fresh process that decodes and runs the stage; "
        "RSS B/slice: its growth between the two largest sizes. 10x takes: time for ten times the slices.",
        *(f"{key}: {'; '.join(sorted(found))}." for key, found in names.items()),
    ]
