"""Reads a report as its page does, from the written bytes alone."""

import base64
import json
import re
import struct
import zlib

import numpy as np


def block(page: bytes, name: str) -> bytes:
    """Return the inflated content of a block of the page."""
    found = re.findall(rb'<script type="text/plain" id="' + name.encode() + rb'">([^<]*)</script>', page)
    assert len(found) == 1
    stream = zlib.decompressobj(-15)
    data = stream.decompress(base64.b64decode(found[0], validate=True)) + stream.flush()
    assert stream.eof
    assert not stream.unused_data
    return data


def varints(data: bytes) -> list[int]:
    """Return LEB128 numbers."""
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(value)
            value = shift = 0
    assert not shift
    return found


class Decoded:
    """A report: ``head``, and columns by name, running sums not yet made."""

    def __init__(self, page: bytes) -> None:
        self.page = page
        self.head = json.loads(block(page, "header"))
        self._data = block(page, "columns")

    def raw(self, name: str) -> np.ndarray:
        """Return a column as it is stored."""
        at, size, count, kind = self.head["columns"][name]
        data = self._data[at : at + size]
        if kind == "f":
            return np.array(struct.unpack(f"<{count}d", data))
        values = varints(data)
        assert len(values) == count
        if kind == "z":
            values = [-(value + 1) // 2 if value % 2 else value // 2 for value in values]
        return np.array(values, object if any(value >= 2**63 for value in values) else np.int64)

    def sums(self, name: str) -> np.ndarray:
        """Return a column that is stored as differences."""
        return np.cumsum(self.raw(name))

    def rows(self) -> list[dict]:
        """Return each row: strip, track, begin, end, name, id, slices, busy; times since ``lo``."""
        head, starts = self.head, self.sums("strip.start").tolist()
        gap, dur = self.raw("s.gap").tolist(), self.raw("s.dur").tolist()
        name, ids = self.raw("s.name").tolist(), self.sums("s.id").tolist()
        bundles = dict(
            zip(
                self.sums("b.row").tolist(),
                zip(self.raw("b.count").tolist(), self.raw("b.busy").tolist(), strict=True),
                strict=True,
            )
        )
        found = []
        for strip, drawn in enumerate(self.raw("strip.row").tolist()):
            time = 0
            for row in range(starts[strip], starts[strip + 1]):
                begin = time + gap[row] * head["scale"]
                time = begin + dur[row] * head["scale"]
                count, busy = bundles.get(row, (1, dur[row]))
                found.append(
                    {
                        "strip": strip, "track": head["row_track"][drawn], "begin": begin, "end": time,
                        "name": head["names"][name[row]], "id": ids[row], "slices": count,
                        "busy": busy * head["scale"],
                    }
                )  # fmt: skip
        assert len(found) == head["rows"] == starts[-1]
        return found
