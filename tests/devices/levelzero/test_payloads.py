"""Fields of CTF written natively as texts have them, beside what Python writes of the same fields."""

import sys
from random import Random

import numpy as np
import pytest

import lanescope
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


def made_of(stream, row):
    """Return the fields of events of one kind as they are given to the native reader: name and form first."""
    columns = stream.trace.reader.columns(stream.walk, row, np.flatnonzero(stream.walk.kinds == row)).values()
    event = stream.trace.reader.events[row][1].name.partition(":")[2]
    return [payloads._field(event, column) for column in columns if payloads._is_field(column.leaf)]


def compare(folder):
    """Compare all events of a folder; return how many there were, and in which forms their fields were written."""
    forms, count = set(), 0
    original = core.LevelZeroColumns

    def noting(fields, data, *events):
        forms.update(field[1] for field in fields)
        return original(fields, data, *events)

    with Capture(folder) as capture, pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "LevelZeroColumns", noting)
        for stream in streams.read(capture).streams:
            for row in np.unique(stream.walk.kinds).tolist():
                rows = np.flatnonzero(stream.walk.kinds == row)
                made = payloads.payloads(stream, row, rows)
                found = [made.payload(place).decode() for place in range(len(made))]
                wanted = by_python(stream, row, rows)
                assert found == wanted
                count += len(rows)
                # Taken out of the stream one by one, in any order.
                lazy = payloads.records(stream, row)
                assert (lazy is None) == ("written" in [field[1] for field in made_of(stream, row)])
                order = Random(row).sample(range(len(rows)), len(rows))
                if lazy is not None:
                    assert len(lazy) == len(stream.walk.kinds)
                    assert [lazy.payload(int(rows[place])).decode() for place in order] == [wanted[p] for p in order]
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
        assert core.LevelZeroColumns([row], data, 1).payload(0).startswith(b"{ f: ")
    else:
        with pytest.raises(ValueError, match="beyond the data"):
            core.LevelZeroColumns([row], data, 1).payload(0)


def test_arrays_and_structures_that_begin_within_a_byte_are_not_read_natively():
    with pytest.raises(ValueError, match="beyond the data"):
        core.LevelZeroColumns([field("words32", [1], [2])], np.zeros(16, np.uint8), 1).payload(0)


# --- read without being written -------------------------------------------------------------------------------------

#: Cells of a record that is read: group, name, kind, whether it has to be there, and which texts it may be.
CELLS = [
    ("", "a", "integer", True, 0),
    ("", "b", "small", False, 0),
    ("", "c", "flag", False, 0),
    ("", "d", "text", False, 0),
    ("", "e", "maybe_text", False, 0),
    ("", "f", "integers", False, 0),
    ("", "g", "nanoseconds", False, 0),
    ("", "h", "refused", False, 0),
    ("", "i", "count", False, 0),
    ("s", "x", "integer", True, 0),
    ("s", "y", "small", False, 0),
]
TEXTS = ("one", "two", "7", "1")
DATA = b'one two"7\\1\x80' + bytes(range(64)) * 4


def numbers(random, count, most):
    """Return values that are small, large, or negative in two's complement."""
    return [random.choice([0, 1, 2, 7, random.randrange(most), (1 << 63) + 5, (1 << 64) - 1]) for _ in range(count)]


def any_field(random, name, count):
    """Return a field of any form; some events lack it."""
    form = random.choice(["number", "number", "signed_number", "text", "words32", "words64", "structure", "written"])
    extents = [random.choice([0, 1, 2, 4]) for _ in range(count)]
    values = numbers(random, count, 100)
    labels, members, written_text = [], [], b""
    if form in ("number", "signed_number"):
        labels = random.choice([[], [(1, "one"), (2, "true"), (7, "8")]])
    elif form == "text":
        values = [random.randrange(12) for _ in values]
    elif form in ("words32", "words64", "structure"):
        values = [8 * random.randrange(100) for _ in values]
        if form == "structure":
            extents = [random.choice([0, 1, 9, 17]) for _ in extents]
            members = [("x", 0, 8), ("y", 8, random.choice([4, 8])), ("z", 12, 4)]
    else:
        written_text = b"0.5 one { x: 3 } [ 1 ] 12"
        spans = [random.choice([(0, 3), (4, 3), (8, 8), (17, 5), (23, 2)]) for _ in values]
        values = [begin for begin, _ in spans]
        extents = [extent and size + 1 for extent, (_, size) in zip(extents, spans, strict=True)]
    arrays = np.array(values, np.uint64), np.array(extents, np.uint64)
    return name, form, *arrays, labels, members, written_text


def taken(fields, count, as_text):
    """Return what a scanner reads of events: rows, lists, and which events it leaves."""
    scanner = core.LevelZeroScanner(1, [len(CELLS)], 1)
    for code, text in enumerate(TEXTS):
        scanner.add_text(0, text, code)
    scanner.add_record(b"p:e", (0, 0), CELLS)
    data = np.frombuffer(DATA, np.uint8)
    if as_text:
        made = core.LevelZeroColumns(fields, data, count)
        texts = [made.payload(place) for place in range(count)]
        left = []
        for place, text in enumerate(texts):
            scanner.add_context(b"h - vpid: 1, vtid: 1", 0)
            line = b"00:00:00.000000001 - h - vpid: 1, vtid: 1 - p:e: " + text + b"\n"
            if scanner.scan(line, 0, 0, place, 0, 0)[0] == 0:
                left.append(place)
        columns, lists = scanner.take(0)
        return [column.tolist() for column in (columns[0], *columns[4:])], lists.tolist(), left
    columns, left, place = core.LevelZeroColumns(fields, data, count), [], 0
    zeros, small = np.zeros(count, np.int64), np.zeros(count, np.int32)
    rows, seq = np.arange(count), np.arange(1, count + 1)
    while place < count:
        place = scanner.take_records(["p:e"], small, rows, seq, zeros, small, [columns], [count], place)
        if place < count:
            left.append(place)
            place += 1
    columns, lists = scanner.take(0)
    return [column.tolist() for column in (columns[0], *columns[4:])], lists.tolist(), left


@pytest.mark.parametrize("seed", range(60))
def test_columns_are_read_as_their_text_is(seed):
    random = Random(seed)
    names = random.sample(["b", "c", "d", "e", "f", "g", "h", "s", "other"], random.randrange(7))
    # A field that has to be there mostly is; the same name may come twice.
    names += ["a"] * random.choice([1, 1, 1, 0, 2])
    random.shuffle(names)
    fields = [any_field(random, name, 30) for name in names]
    fields = [
        (n, "number", v, np.ones(30, np.uint64), [], [], b"") if n == "a" else (n, *rest)
        for n, *rest in fields
        for v in rest[1:2]
    ]
    assert taken(fields, 30, as_text=False) == taken(fields, 30, as_text=True)


def test_few_events_are_left_to_the_reference(tmp_path):
    lines = next(iter(FAMILY.simulate(simulated(style="thapi", ops=300), 1).files.values()))
    thapi_ctf.write(lines, tmp_path / "trace")
    written_ones = []
    original = core.LevelZeroColumns

    class Noting(original):
        def payload(self, row):
            written_ones.append(row)
            return super().payload(row)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "LevelZeroColumns", Noting)
        lanescope.open(tmp_path / "trace")
    assert 0 < len(written_ones) < lines.count(b"\n") / 4
