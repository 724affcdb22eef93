"""One list of the records of all lanes: in memory or put in order on disk, it has the same rows."""

import io
import struct

import numpy as np
import pytest

import lanescope
from devices.cuda.test_large import differing
from lanescope.devices.cuda import decoder as decoding
from lanescope.devices.cuda.emit import batches
from lanescope.devices.cuda.formats.declared import record_list

#: A list that counts, of starts, ends and instants, some of them unreadable, empty, or no events.
LIST = """
name = "list"
source = "this test"
lanes = [["stream", "1"]]
kind = ["type", {"0" = "begin", "1" = "end", "2" = "instant", "3" = "ignored"}]
id = "event"
block = "program"
group = "warp"
payload = "value"
time = "timestamp"
capacity = "(size - 8) // 24"
offered = "count"
overflow = "OVERFLOW"

[header]
size = 8
fields = {count = [0, 64]}

[record]
at = "8 + 24 * k"
size = 24
empty = "mark == 0"
agree = "mark == 7"

[record.fields]
timestamp = [0, 64]
event = [64, 16]
type = [80, 8]
mark = [88, 8]
value = [96, 32]
program = [128, 32]
warp = [160, 32]
[clock]
bits = 64
"""


def written(folder, records, count, *, overflow="ring", layout=LIST):
    """The file of a list and its layout; the records as they are stored."""
    (folder / "list.toml").write_text(layout.replace("OVERFLOW", overflow))
    path = folder / "list.bin"
    path.write_bytes(struct.pack("<Q", count) + b"".join(struct.pack("<QHBBIII", *record) for record in records))
    return path


def records_of(seed, number, *, programs=9, wide=0):
    draw = np.random.default_rng(seed)
    found = []
    for at in range(number):
        odd = draw.random()
        kind = 3 if odd < 0.05 else 9 if odd < 0.08 else int(draw.integers(0, 3))
        mark = 0 if 0.1 < odd < 0.13 else 5 if 0.13 < odd < 0.16 else 7
        stamp = (1 << 60) + 40 * at if odd < 0.98 else (1 << 63) + 5
        program = wide + int(draw.integers(0, programs))
        found.append((stamp, int(draw.integers(0, 4)), kind, mark, at, program % (1 << 32), int(draw.integers(0, 3))))
    return found


def either_way(path, monkeypatch, *, least=3, **options):
    """The trace of a file whose list is in memory, and of one that is put in order in many parts."""
    options = {"layout": str(path.with_name("list.toml")), **options}
    monkeypatch.setattr(batches, "PART_RECORDS", 400)
    whole = lanescope.open(path, "cuda", **options)
    monkeypatch.setattr(record_list, "FEW_RECORDS", 0)
    monkeypatch.setattr(record_list, "PIECE_RECORDS", 7)
    made = []
    put = record_list.RecordList.put_in_order
    monkeypatch.setattr(
        record_list.RecordList, "put_in_order", lambda self, parts: (made.append(len(parts)), put(self, parts))
    )
    found = []
    for limit in (1 << 30, 0):
        monkeypatch.setattr(decoding, "WHOLE_BYTES", limit)
        found.append(lanescope.open(path, "cuda", **options))
    assert all(parts >= least for parts in made)
    assert len(made) == (2 if least else 0)
    return whole, found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("overflow", ["ring", "drop"])
def test_a_list_that_is_put_in_order_has_the_same_rows(seed, overflow, tmp_path, monkeypatch):
    # Less than is there, exactly as much, more, and so much more that a ring has turned several times.
    count = (1800, 2000, 2630, 11000)[seed]
    path = written(tmp_path, records_of(seed, 2000), count, overflow=overflow)
    whole, found = either_way(path, monkeypatch)
    stats = {row["name"] for row in whole.stats.rows()}
    assert {"cuda_corrupt_record", "cuda_end_unmatched"} <= stats
    assert len(whole.slices) > 15
    assert len(set(whole.slices["track_id"].tolist())) > 10
    for trace in found:
        assert not differing(trace, whole)


@pytest.mark.parametrize("programs", [1, 9])
def test_what_a_list_counted_is_said_of_a_lane_that_is_alone(programs, tmp_path, monkeypatch):
    records = [(*record[:-1], 0) for record in records_of(5, 900, programs=programs)]
    path = written(tmp_path, records, 1200, overflow="drop")
    whole, found = either_way(path, monkeypatch, least=1)
    assert whole.details["cuda_lanes"]["dropped"].tolist() == ([300] if programs == 1 else [None] * 9)
    for trace in found:
        assert not differing(trace, whole)


def test_numbers_of_more_than_32_bits_are_put_in_order_in_memory(tmp_path, monkeypatch):
    layout = LIST.replace('block = "program"', 'block = "program - 4"')
    path = written(tmp_path, records_of(2, 1500), 1500, layout=layout)
    whole, found = either_way(path, monkeypatch, least=0)
    assert int(whole.details["cuda_lanes"]["block"].min()) == -4
    assert not differing(found[0], whole)


def test_the_largest_numbers_of_lanes(tmp_path, monkeypatch):
    path = written(tmp_path, records_of(3, 1500, wide=(1 << 32) - 4), 1500)
    whole, found = either_way(path, monkeypatch)
    assert int(whole.details["cuda_lanes"]["block"].max()) == (1 << 32) - 1
    for trace in found:
        assert not differing(trace, whole)


def test_a_list_without_a_readable_record(tmp_path, monkeypatch):
    path = written(tmp_path, [(5, 1, 9, 7, 0, 0, 0)] * 30, 30)
    whole, found = either_way(path, monkeypatch, least=1)
    assert not len(whole.slices)
    for trace in found:
        assert not differing(trace, whole)


def test_arrays_of_records_are_not_read_whole(tmp_path, monkeypatch):
    """All columns of iris are large."""
    count, into = 5000, io.BytesIO()
    start = np.arange(count, dtype="<i8") * 50 + 1000
    small = {
        name: (np.arange(count) % size).astype("<i4") for name, size in (("event_id", 5), ("pid", 40), ("xcc_id", 3))
    }
    np.savez(into, timestamp=start, duration_cycles=start + 30, counter=np.array([count], "<i4"), **small)
    path = tmp_path / "iris.npz"
    path.write_bytes(into.getvalue())
    sizes = []
    read = decoding.content_in

    def opened(reader, size):
        at = reader.at

        def counted(offset, length):
            sizes.append(length)
            return at(offset, length)

        reader.at = counted
        return read(reader, size)

    monkeypatch.setattr(decoding, "content_in", opened)
    monkeypatch.setattr(decoding, "WHOLE_BYTES", 0)
    monkeypatch.setattr("lanescope.source.npy.MAX_HEADER", 4096)
    monkeypatch.setattr(batches, "PART_RECORDS", 600)
    monkeypatch.setattr(record_list, "FEW_RECORDS", 100)
    monkeypatch.setattr(record_list, "PIECE_RECORDS", 300)
    trace = lanescope.open(path, "cuda", layout="iris")
    assert len(trace.slices) == count
    assert sizes
    assert max(sizes) <= 4096 + 12
    assert "cuda_read_whole" not in {row["name"] for row in trace.stats.rows()}
