"""Arguments that follow from others: of launches from the device, of process groups from their ranks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.families.rules import RuleContext, Violation
from lanescope.trace import Column, Table

#: The producer writes some seven digits.
_SHARE, _LEAST = 1e-4, 1e-5
_MOST_OCCUPANCY = 100
_NO_GRAPH = np.iinfo(np.int64).min


def _differs(told: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = np.abs(told - wanted) > np.maximum(_SHARE * np.abs(wanted), _LEAST)
    return found


def launch_contradictions(context: RuleContext) -> Iterator[Violation]:
    """Yield kernels whose blocks and warps on an SM are not those of their grid and block on their device."""
    details = context.trace.details
    kernels, devices, ops = (details.get(name) for name in ("kineto_kernels", "kineto_devices", "kineto_ops"))
    if kernels is None or not len(kernels):
        return
    row = kernels.values("slice_id")
    wrong = kernels.valid("occupancy") & (kernels.values("occupancy") > _MOST_OCCUPANCY)
    if devices is not None and ops is not None and len(devices) and len(ops):
        sms, warp, known = _of_devices(devices, ops, row)
        shape = kernels.valid("grid_x") & kernels.valid("block_x") & known
        grid, block = (
            np.prod([kernels.values(f"{name}_{axis}").astype(np.float64) for axis in "xyz"], axis=0)
            for name in ("grid", "block")
        )
        blocks = np.divide(grid, sms, out=np.zeros(len(row)), where=known)
        warps = np.divide(blocks * block, warp, out=np.zeros(len(row)), where=known & (warp > 0))
        wrong |= shape & kernels.valid("blocks_per_sm") & _differs(kernels.values("blocks_per_sm"), blocks)
        wrong |= shape & (warp > 0) & kernels.valid("warps_per_sm") & _differs(kernels.values("warps_per_sm"), warps)
    yield from context.violations("slices", np.sort(row[wrong]), lambda rows: f"{len(rows)} kernels")


def _of_devices(devices: Table, ops: Table, row: npt.NDArray[np.int64]) -> tuple[Any, Any, npt.NDArray[np.bool_]]:
    """Return SMs and threads of a warp of the device of each slice of ``row``, and whether they are known."""
    place = np.searchsorted(ops.values("slice_id"), row)
    place = np.minimum(place, len(ops) - 1)
    has = (ops.values("slice_id")[place] == row) & ops.valid("device")[place]
    device = ops.values("device")[place]
    sms, warp = np.zeros(len(row)), np.zeros(len(row))
    for known in devices.rows():
        mine = has & (device == known["device"])
        sms[mine], warp[mine] = known["sms"] or 0, known["warp"] or 0
    return sms, warp, sms > 0


def group_contradictions(context: RuleContext) -> Iterator[Violation]:
    """Yield the rank of a file and process groups that are not what their sizes allow."""
    details = context.trace.details
    runs, groups, collectives = (details.get(f"kineto_{name}") for name in ("runs", "groups", "collectives"))
    world = None
    for run in runs.rows() if runs is not None else ():
        world = run["world_size"]
        if world is not None and run["rank"] is not None and not 0 <= run["rank"] < world:
            yield Violation(detail=f"rank {run['rank']} of {world}", table="inputs", count=1, input_id=run["input_id"])
    for group in groups.rows() if groups is not None else ():
        ranks, size = _ranks(group["ranks"]), group["size"]
        is_outside = ranks is not None and world is not None and any(not 0 <= rank < world for rank in ranks)
        if is_outside or (ranks and size is not None and len(ranks) != size):
            detail = f"group {group['name']} of size {size}: ranks {group['ranks']}"
            yield Violation(detail=detail, table="inputs", count=1, input_id=group["input_id"])
    if collectives is None or not len(collectives):
        return
    texts = collectives.column("group_ranks")
    known = texts.dictionary.texts if texts.dictionary is not None else ()
    sizes = np.array([*(len(_ranks(text) or ()) for text in known), 0], np.int64)[texts.values]
    valid = collectives.valid("group_ranks") & collectives.valid("group_size") & (sizes > 0)
    wrong = valid & (sizes != collectives.values("group_size"))
    rows = np.sort(collectives.values("slice_id")[wrong])
    yield from context.violations("slices", rows, lambda ids: f"{len(ids)} rows of another group size")
    if groups is not None and len(groups):
        others = valid & _of_another_group(collectives, groups, "ranks", _sorted_ranks)
        rows = np.sort(collectives.values("slice_id")[others])
        yield from context.violations("slices", rows, lambda ids: f"{len(ids)} rows of other ranks than their group")
        others = collectives.valid("group_description")
        others = others & _of_another_group(collectives, groups, "description", lambda text: text or None)
        rows = np.sort(collectives.values("slice_id")[others])
        for found in context.violations(
            "slices", rows, lambda ids: f"{len(ids)} rows with another description than their group"
        ):
            yield Violation(
                detail=found.detail, rows=found.rows, severity="notice", track_id=found.track_id, ts=found.ts
            )


def graph_contradictions(context: RuleContext) -> Iterator[Violation]:
    """Yield device rows of one launch that name another graph than most of them."""
    trace = context.trace
    kernels, flows = trace.details.get("kineto_kernels"), trace.flows
    if kernels is None or not len(kernels) or not len(flows) or not kernels.valid("graph").any():
        return
    graph = np.full(len(trace.slices), _NO_GRAPH)
    has = kernels.valid("graph")
    graph[kernels.values("slice_id")[has]] = kernels.values("graph")[has]
    mine = flows.column("kind").texts == "submit"
    call, work = flows.values("src_slice_id")[mine], flows.values("dst_slice_id")[mine]
    has = graph[work] != _NO_GRAPH
    call, work = call[has], work[has]
    if not len(work):
        return
    known, code = np.unique(graph[work], return_inverse=True)
    if len(known) == 1:
        return
    pairs, which, count = np.unique(call * len(known) + code.reshape(-1), return_inverse=True, return_counts=True)
    launch = pairs // len(known)
    most = np.zeros(int(call.max()) + 1, np.int64)
    np.maximum.at(most, launch, count)
    is_most = count == most[launch]
    # Of equal numbers the first graph is taken.
    is_first = np.zeros(len(count), np.bool_)
    is_first[np.flatnonzero(is_most)[np.unique(launch[is_most], return_index=True)[1]]] = True
    rows = np.sort(work[~is_first[which.reshape(-1)]])
    yield from context.violations("slices", rows, lambda ids: f"{len(ids)} device rows")


def _of_another_group(
    collectives: Table, groups: Table, value: str, read: Callable[[str], Any]
) -> npt.NDArray[np.bool_]:
    """Return which rows say something else of their group than the run does, bool [n].

    Args:
        collectives: their table.
        groups: of the run.
        value: column of the groups; that of the rows has ``group_`` before it.
        read: returns what is compared of a text; None: nothing is.
    """
    listed: dict[tuple[int, str], Any] = {}
    for group in groups.rows():
        listed[group["input_id"], group["name"]] = read(group[value])
    inputs = {key[0] for key in listed}
    if len(inputs) != 1:  # rows do not have their file
        return np.zeros(len(collectives), np.bool_)
    names, texts = collectives.column("group_name"), collectives.column(f"group_{value}")
    step = int(texts.values.max(initial=0)) + 1
    known, which = np.unique(names.values.astype(np.int64) * step + texts.values, return_inverse=True)
    differs = []
    for pair in known.tolist():
        name, text = divmod(pair, step)
        wanted = listed.get((next(iter(inputs)), _text(names, name)))
        found = read(_text(texts, text))
        differs.append(wanted is not None and found is not None and wanted != found)
    return np.array(differs, np.bool_)[which] & collectives.valid("group_name")


def _text(column: Column, code: int) -> str:
    texts = column.dictionary.texts if column.dictionary is not None else ()
    return texts[code] if 0 <= code < len(texts) else ""


def _sorted_ranks(text: str) -> list[int] | None:
    ranks = _ranks(text)
    return None if ranks is None else sorted(ranks)


def _ranks(text: str) -> list[int] | None:
    """Return the ranks that a text lists; None if it is shortened or lists anything else."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, list) and all(isinstance(rank, int) for rank in found) else None
