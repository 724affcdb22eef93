"""The report of a run on a GPU as text."""

from __future__ import annotations

from typing import Any


def lines(report: dict[str, Any]) -> list[str]:
    """Return the report as text."""
    figures, device = report["figures"], report["device"]
    found = [
        f"{device['name']}, compute capability {device['architecture'] / 10}, driver for CUDA {device['driver']}, "
        f"{report['compiler']}, {report['date']}"
    ]
    if "globaltimer" in figures:
        timer = figures["globaltimer"]
        found.append(f"globaltimer: steps of {timer['step_ns']} ns; multiprocessors at {timer.get('mhz', '?')} MHz")
    for variant, cost in figures.get("marker_cost", {}).items():
        time = f", {cost['ns']:.1f} ns" if "ns" in cost else ""
        found.append(f"marker {variant}: {cost['cycles']:.1f} cycles{time} in a loop of nothing else")
    compared = {
        f"{kernel} {name}": row for kernel in ("stages", "pipeline") for name, row in figures.get(kernel, {}).items()
    }
    matmul = figures.get("triton_matmul", {"not_run": "not asked for, or see the checks"})
    if "not_run" in matmul:
        found.append(f"Triton matmul: not run: {matmul['not_run']}")
    else:
        compared["Triton matmul"] = matmul
    for name, row in compared.items():
        found.append(
            f"{name}: {row['instrumented_ns']:,.0f} ns, {row['baseline_ns']:,.0f} ns without, x {row['slowdown']:.4f}"
        )
    loads = {name: row.get("median_load_ns") for name, row in figures.get("stages", {}).items()}
    if {"ls2", "ls2_no_consume"} <= set(loads):
        found.append(f"LOAD, median: {loads['ls2']:,.0f} ns with consume, {loads['ls2_no_consume']:,.0f} ns without")
    good = [check for check in report["checks"] if check["holds"]]
    for name, row in figures.get("producers", {}).items():
        seen = row.get("exporter", row)
        if "not_run" in seen:
            found.append(f"{name}: not run: {seen['not_run']}")
            continue
        only = f"{seen['only_lanescope']} only here, {seen['only_exporter']} only there"
        found.append(f"{name}: {seen['same']} regions as its own exporter draws them, {only}")
    found.append(f"checks: {len(good)} of {len(report['checks'])} hold")
    found += [f"  FAILED {check['name']}: {check['seen']}" for check in report["checks"] if not check["holds"]]
    return found
