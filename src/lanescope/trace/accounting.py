"""Accounting invariants: the units of every input and every layer add up."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from lanescope.declaration import frozen_class
from lanescope.errors import InternalError
from lanescope.trace.table import Table

MAX_LAYERS = 2


@frozen_class
class Imbalance:
    """A violated accounting invariant.

    Attributes:
        text: one line, the invariant and the values.
        input_id: the input.
        rows: ids of the accounting rows.
    """

    text: str
    input_id: int
    rows: tuple[int, ...] = ()


def imbalances(accounting: Table, inputs: Table) -> Iterator[Imbalance]:
    """Yield every violated invariant of the accounting.

    Each row: ``total == decoded + padding + lost``, none negative. Each input: layer 0 counts its bytes; layer n + 1's
    ``total * unit_bytes`` is layer n's ``decoded``; two layers at most. Rows of scope ``producer`` count what never
    reached the file and are not part of the layers.
    """
    sizes = dict(zip(inputs.values("id").tolist(), inputs.values("size").tolist(), strict=True))
    layers: dict[int, list[dict[str, int]]] = {input_id: [] for input_id in sizes}
    for row in accounting.rows():
        input_id, parts = row["input_id"], (row["decoded"], row["padding"], row["lost"])
        where = f"accounting of input {input_id}"
        if min(parts) < 0 or sum(parts) != row["total"]:
            yield Imbalance(
                f"{where}: {row['total']} {row['unit']}s, but"
                f" {parts[0]} decoded + {parts[1]} padding + {parts[2]} lost",
                input_id,
                (row["id"],),
            )
        if input_id not in layers:
            yield Imbalance(f"{where}: unknown input", input_id, (row["id"],))
        elif row["scope"] == "input":
            layers[input_id].append(row)
    for input_id, rows in layers.items():
        rows.sort(key=lambda row: row["layer"])
        ids = tuple(row["id"] for row in rows)
        where = f"accounting of input {input_id}"
        if [row["layer"] for row in rows] != list(range(len(rows))) or not 1 <= len(rows) <= MAX_LAYERS:
            yield Imbalance(f"{where}: invalid layers {[row['layer'] for row in rows]}", input_id, ids)
            continue
        if rows[0]["total"] * rows[0]["unit_bytes"] != sizes[input_id]:
            yield Imbalance(f"{where}: {rows[0]['total']} of {sizes[input_id]} bytes in layer 0", input_id, ids[:1])
        for below, above in pairwise(rows):
            if above["total"] * above["unit_bytes"] != below["decoded"] * below["unit_bytes"]:
                yield Imbalance(
                    f"{where}: {above['total']} {above['unit']}s of {above['unit_bytes']} bytes, but"
                    f" {below['decoded']} {below['unit']}s decoded by the layer below",
                    input_id,
                    (below["id"], above["id"]),
                )


def verify(accounting: Table, inputs: Table) -> None:
    """Raise ``InternalError`` unless every input is accounted for; see ``faults``."""
    for fault in imbalances(accounting, inputs):
        raise InternalError(fault.text)
