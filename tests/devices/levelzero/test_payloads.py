"""Fields of CTF written natively as texts have them, beside what Python writes of the same fields."""

import sys

import numpy as np
import pytest

from devices.levelzero import thapi_ctf
from devices.levelzero.helpers import simulated
from lanescope._native import core
from lanescope.devices.levelzero.family import FAMILY
from lanescope.devices.levelzero.formats.foreign import payloads, streams
from lanescope.devices.levelzero.formats.foreign.value_texts import written
from lanescope.source import Capture
from wire.tsdl_writer import Writer


def by_python(stream, row, rows):
    """Return the payloads of events as the reference writes them."""
    reader = stream.trace.reader
    event = reader.events[row][1].name.partition(":")[2]
    parts = []
    for name, column in reader.columns(stream.walk, row, rows).items():
        root, _, name = name.partition(":")
        if root == "event.fields" and not name.startswith("_") and "." not in name:
            parts.append(written(event, name, column))
    fields = zip(*parts, strict=True) if parts else [()] * len(rows)
    return ["{ " + ", ".join(part for part in each if part is not None) + " }" for each in fields]


def compare(folder):
    """Compare all events of a folder; return how many there were, and in which forms their fields were written."""
    forms, count = set(), 0
    original = core.levelzero_payloads

    def noting(fields, data, events):
        forms.update(field[1] for field in fields)
        return original(fields, data, events)

    with Capture(folder) as capture, pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "levelzero_payloads", noting)
        for stream in streams.read(capture).streams:
            for row in np.unique(stream.walk.kinds).tolist():
                rows = np.flatnonzero(stream.walk.kinds == row)
                text, ends = payloads.payloads(stream, row, rows)
                begins = [0, *ends[:-1].tolist()]
                found = [text[begin:end].decode() for begin, end in zip(begins, ends.tolist(), strict=True)]
                assert found == by_python(stream, row, rows)
                count += len(rows)
    return count, forms


def test_payloads_of_any_trace_are_what_python_writes(tmp_path):
    forms = set()
    for seed in range(40):
        writer = Writer(seed, ("le", "be")[seed % 2])
        writer.save(tmp_path / f"{seed}")
        count, found = compare(tmp_path / f"{seed}")
        assert count == len(writer.events)
        forms |= found
    assert forms >= {"number", "signed_number", "text", "written"}


@pytest.mark.parametrize("seed", range(3))
def test_payloads_of_thapi_are_what_python_writes(seed, tmp_path):
    lines = next(iter(FAMILY.simulate(simulated(style="thapi", ops=60), seed).files.values()))
    thapi_ctf.write(lines, tmp_path / "trace")
    count, forms = compare(tmp_path / "trace")
    assert count == lines.count(b"\n")
    assert forms >= {"number", "text", "words64", "structure"}


def field(form, values, extents, *, labels=(), members=(), written=b""):
    arrays = np.array(values, np.uint64), np.array(extents, np.uint64)
    return "f", form, *arrays, list(labels), list(members), written


@pytest.mark.parametrize("form", ["text", "words32", "words64", "structure", "written"])
@pytest.mark.parametrize("value", [0, 8, 1 << 40, sys.maxsize * 2 + 1])
@pytest.mark.parametrize("extent", [2, 10, 1 << 61, sys.maxsize * 2 + 1])
def test_fields_beyond_the_data_are_refused(form, value, extent):
    row = field(form, [value], [extent], members=[("a", 0, 4), ("b", 1 << 63, 8), ("c", 0, 9)], written=b"abc")
    data = np.arange(4, dtype=np.uint8)
    begin = value if form in ("text", "written") else value // 8
    size = {"words32": 4, "words64": 8}.get(form, 1)
    if begin + (extent - 1) * size <= (3 if form == "written" else 4):
        assert core.levelzero_payloads([row], data, 1)[0].startswith(b"{ f: ")
    else:
        with pytest.raises(ValueError, match="beyond the data"):
            core.levelzero_payloads([row], data, 1)


def test_arrays_and_structures_that_begin_within_a_byte_are_not_read_natively():
    with pytest.raises(ValueError, match="beyond the data"):
        core.levelzero_payloads([field("words32", [1], [2])], np.zeros(16, np.uint8), 1)
