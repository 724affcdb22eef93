"""The sums that every decoder must keep: nothing of an input may go missing between two layers."""

from __future__ import annotations

from itertools import pairwise

from lanescope.errors import InternalError
from lanescope.trace.table import Table

MAX_LAYERS = 2


def verify(accounting: Table, inputs: Table) -> None:
    """Raise ``InternalError`` unless every input is accounted for.

    Each row: ``total == decoded + filler + lost``, none negative. Each input: layer 0 counts its bytes; layer n + 1's
    ``total * unit_bytes`` is layer n's ``decoded``; two layers at most. Rows of scope ``producer`` count what never
    reached the file and stand outside the layers.
    """
    sizes = dict(zip(inputs["id"].tolist(), inputs["size"].tolist(), strict=True))
    layers: dict[int, list[dict[str, int]]] = {input_id: [] for input_id in sizes}
    for row in accounting.rows():
        parts = (row["decoded"], row["filler"], row["lost"])
        if min(parts) < 0 or sum(parts) != row["total"]:
            raise InternalError(f"accounting of input {row['input_id']}: {row['total']} {row['unit']}s are not {parts}")
        if row["scope"] == "input":
            layers[row["input_id"]].append(row)
    for input_id, rows in layers.items():
        rows.sort(key=lambda row: row["layer"])
        if [row["layer"] for row in rows] != list(range(len(rows))) or not 1 <= len(rows) <= MAX_LAYERS:
            raise InternalError(f"accounting of input {input_id}: layers {[row['layer'] for row in rows]}")
        if rows[0]["total"] * rows[0]["unit_bytes"] != sizes[input_id]:
            raise InternalError(f"accounting of input {input_id}: {rows[0]['total']} of {sizes[input_id]} bytes")
        for below, above in pairwise(rows):
            if above["total"] * above["unit_bytes"] != below["decoded"] * below["unit_bytes"]:
                raise InternalError(
                    f"accounting of input {input_id}: {above['total']} {above['unit']}s of {above['unit_bytes']} bytes"
                    f" are not the {below['decoded']} {below['unit']}s below"
                )
