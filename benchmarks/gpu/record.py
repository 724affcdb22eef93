"""What a run on a GPU leaves in the repository: small captures for tests, figures of chips, a table in the docs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lanescope
from lanescope import Trace

#: Places in the repository.
FIGURES = Path("benchmarks/gpu/chips")
CAPTURES = Path("tests/devices/cuda/golden/gpu")
PAGE = Path("docs/explain/probe-cost.md")
BEGIN, END = "<!-- measured by make gpu -->", "<!-- end of what make gpu measures -->"
NOTHING = "**No GPU has been measured yet.**"
#: Larger buffers are left where they are.
MAX_BYTES = 256 << 10
_COLUMNS = (
    ("LS2", "ls2"),
    ("LS2, `Fence::none`", "ls2_no_fence"),
    ("LS2, payload", "ls2_payload"),
    ("LS2, `clock64`", "ls2_clock64"),
    ("TIRx v1", "tirx"),
)


def chip(name: str) -> str:
    """Return a GPU's name as part of a path."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "unknown"


def truth(trace: Trace) -> dict[str, Any]:
    """Return what is compared when a capture is decoded again: regions by lane, in ticks, and how many of the rest."""
    rows = zip(trace.details["cuda_regions"].rows(), trace.slices.rows(), strict=True)
    regions = [[at["block"], at["group"], at["sm"], row["name"], row["ts_ticks"], row["dur_ticks"]] for at, row in rows]
    counts = {name: len(getattr(trace, name)) for name in ("instants", "counters", "flows", "gaps")}
    stats = sorted((row["name"], row["count"]) for row in trace.stats.rows())
    return {"regions": sorted(regions, key=repr), **counts, "stats": [list(row) for row in stats]}


def keep_captures(root: Path, device: str, captures: Sequence[tuple[Path, dict[str, Any]]]) -> list[Path]:
    """Copy small captures, with the names of their events and what they decode to.

    Args:
        root: of the repository.
        device: the GPU's name.
        captures: files, and the options with which they are decoded.

    Returns:
        The files that were made.
    """
    folder = root / CAPTURES / chip(device)
    made = []
    for path, options in captures:
        if path.stat().st_size > MAX_BYTES:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / path.name)
        names = path.with_name(f"{path.stem}.events.json")
        if names.exists():
            shutil.copy(names, folder / names.name)
        expected = {"options": options, **truth(lanescope.open(folder / path.name, **options))}
        (folder / f"{path.stem}.truth.json").write_text(json.dumps(expected) + "\n")
        made += [folder / path.name, folder / f"{path.stem}.truth.json"]
    return made


def kept(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield captures below a folder, and what they decode to."""
    for path in sorted(folder.rglob("*.truth.json")):
        stem = path.name.removesuffix(".truth.json")
        capture = next(
            path.parent / f"{stem}{end}" for end in (".npy", ".bin") if (path.parent / f"{stem}{end}").exists()
        )
        yield capture, json.loads(path.read_text())


def keep_figures(root: Path, report: dict[str, Any]) -> Path:
    """Keep the figures of a chip, in place of older ones."""
    path = root / FIGURES / f"{chip(report['device']['name'])}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    figures = report["figures"]
    names = ("globaltimer", "marker_cost", "stages", "pipeline", "triton_matmul", "producers")
    found = {key: report[key] for key in ("date", "lanescope", "device", "compiler", "sizes")}
    found["figures"] = {name: figures[name] for name in names if name in figures}
    found["checks"] = len(report["checks"])
    path.write_text(json.dumps(found, indent=2) + "\n")
    return path


def table(root: Path) -> str:
    """Return the table of all chips that were measured, as Markdown."""
    rows = [json.loads(path.read_text()) for path in sorted((root / FIGURES).glob("*.json"))]
    if not rows:
        return NOTHING
    titles = [
        "chip",
        "step of `globaltimer`",
        *(f"{title}, cycles (ns)" for title, _ in _COLUMNS),
        "kernel's time",
        "date",
    ]
    lines = [f"| {' | '.join(titles)} |", f"| {' | '.join('---' for _ in titles)} |"]
    for row in rows:
        figures = row["figures"]
        costs = figures.get("marker_cost", {})
        cells = [row["device"]["name"], f"{figures['globaltimer']['step_ns']} ns"]
        for _, variant in _COLUMNS:
            cost = costs.get(variant)
            ns = f" ({cost['ns']:.1f})" if cost and "ns" in cost else ""
            cells.append(f"{cost['cycles']:.1f}{ns}" if cost else "-")
        slowdown = figures.get("stages", {}).get("ls2", {}).get("slowdown")
        cells += [f"x {slowdown:.3f}" if slowdown else "-", row["date"]]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *_compared(rows)]
    return "\n".join(lines).strip()


def _compared(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a row for each producer that was run and compared with its exporter."""
    yield "| producer | chip | recognized as | regions as in its exporter | only in lanescope | only in exporter |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in rows:
        for name, found in row["figures"].get("producers", {}).items():
            seen = found.get("exporter", found)
            why = f"not run: {seen['not_run']}" if "not_run" in seen else None
            shown = [why, "-", "-"] if why else [seen[key] for key in ("same", "only_lanescope", "only_exporter")]
            cells = [name, row["device"]["name"], found.get("recognized", "-"), *shown]
            yield f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"


def write_page(root: Path) -> Path:
    """Put the table into the docs."""
    page = root / PAGE
    text = page.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    page.write_text(f"{before}{BEGIN}\n\n{table(root)}\n\n{END}{after}")
    return page
