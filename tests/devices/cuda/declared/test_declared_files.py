"""Layout files of users: next to a buffer, as an option, wrong in every way."""

from __future__ import annotations

import io
import re
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanescope
from lanescope import cuda
from lanescope.devices.cuda import decoder
from lanescope.devices.cuda.formats.declared import catalog
from lanescope.errors import InputError, UsageError

GOLDEN = Path(__file__).parents[1] / "golden" / "declared"
SHIPPED = Path(catalog.__file__).parent / "shipped"
LAYOUT = """
name = "mine"
source = "me"
lanes = [["block", "blocks"]]
kind = ["type", {"0" = "begin", "1" = "end"}]
id = "event"
time = "stamp"
capacity = "8"
[params]
blocks = {from = "user", default = 2, help = "blocks of the grid"}
[record]
at = "64 * block + 8 * k"
size = 8
fields = {type = [0, 1], event = [1, 15], stamp = [32, 32]}
views = {word = [0, 64]}
empty = "word == 0"
[clock]
bits = 32
"""


def words(*rows):
    """Two lanes of eight words: rows of (lane, position, type, event, stamp)."""
    found = np.zeros(16, np.uint64)
    for lane, k, kind, event, stamp in rows:
        found[8 * lane + k] = kind | event << 1 | stamp << 32
    return found


BUFFER = words((0, 0, 0, 5, 100), (0, 1, 1, 5, 164), (1, 0, 0, 6, 132))


def layout(tmp_path, text=LAYOUT, name="mine.toml"):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


#: Blocks one after the other, each with a header, and the warps of a block in turns: their places within a turn differ
#: from block to block.
TURNS = """
name = "turns"
source = "me"
lanes = [["block", "blocks"], ["warp", "warps"]]
kind = ["type", {"2" = "begin", "1" = "end", "3" = "instant"}]
id = "event"
time = "stamp"
sm = "smid"
payload = "value"
capacity = "room"
match = ["magic == 0x57415645"]
[header]
size = 24
fields = {magic = [0, 32], warps = [48, 16], blocks = [64, 32], room = [96, 32]}
[params]
stride = "8 + 12 * warps * room"
[lane]
at = "24 + stride * block"
size = 8
fields = {smid = [0, 16]}
[record]
at = "24 + stride * block + 8 + 12 * (k * warps + warp)"
size = 12
fields = {stamp = [0, 32], tag = [32, 8], event = [40, 12], type = [62, 2], value = [64, 32]}
empty = "stamp == 4294967295"
agree = "tag == warp"
[clock]
unit = "cycles"
bits = 32
across = "sm"
"""


@pytest.mark.parametrize(("blocks", "warps", "room"), [(3, 4, 10), (1, 7, 3), (5, 1, 4), (17, 5, 2)])
@pytest.mark.parametrize("whole", [1 << 20, 0])
def test_lanes_that_take_turns_within_a_block(tmp_path, monkeypatch, blocks, warps, room, whole):
    monkeypatch.setattr(decoder, "WHOLE_BYTES", whole)
    data = bytearray(struct.pack("<IHHIIQ", 0x57415645, 2, warps, blocks, room, 0))
    truth = []
    for block in range(blocks):
        data += struct.pack("<HHI", 40 + block, 0, 9)
        rows = np.full((room, warps, 3), 0xFFFF_FFFF, np.uint32)
        for warp in range(warps):
            time = 4_294_960_000 + 7 * warp
            for k in range((room - warp % 2) // 2 * 2):
                event, kind = 4095 - k // 2, 2 - k % 2
                rows[k, warp] = time & 0xFFFF_FFFF, kind << 30 | event << 8 | warp, 77 * k + block
                if kind == 1:
                    truth.append((block, warp, 40 + block, event, 50 + 1000 * k, 77 * (k - 1) + block))
                time += 50 + 1000 * k
        data += rows.tobytes()
    (tmp_path / "turns.bin").write_bytes(data)
    trace = lanescope.open(tmp_path / "turns.bin", "cuda", layout=layout(tmp_path, TURNS))
    regions = {row["slice_id"]: row for row in trace.tables()["cuda_regions"].rows()}
    found = [
        (of["block"], of["group"], of["sm"], of["event_id"], row["dur_ticks"], of["payload"])
        for row in trace.slices.rows()
        for of in [regions[row["id"]]]
    ]
    assert sorted(found) == sorted((*row[:4], 50 + 1000 * (2 * (4095 - row[3])), row[5]) for row in truth)
    assert not {"cuda_corrupt_record", "cuda_trailing_bytes"} & {row["name"] for row in trace.stats.rows()}


def test_lanes_of_two_blocks_may_not_overlap(tmp_path):
    data = bytearray(struct.pack("<IHHIIQ", 0x57415645, 2, 2, 3, 4, 0)) + bytes(3 * 104)
    text = TURNS.replace('stride = "8 +', 'stride = "8 - 12 +')
    with pytest.raises(InputError, match="records of two lanes overlap"):
        cuda.decode(bytes(data), layout=layout(tmp_path, text))


def test_a_layout_file_is_an_option(tmp_path):
    trace = cuda.decode(BUFFER, layout=layout(tmp_path))
    rows = [(row["name"], row["ts"], row["dur"]) for row in trace.slices.rows()]
    assert rows == [("event_5", 0, 64), ("event_6", 32, None)]


def test_a_layout_file_next_to_a_buffer_is_used(tmp_path):
    path = tmp_path / "run.bin"
    path.write_bytes(BUFFER.tobytes())
    with pytest.raises(InputError):
        lanescope.open(path)
    layout(tmp_path, name="run.layout.toml")
    trace = lanescope.open(path)
    assert len(trace.slices) == 2
    shutil.copyfile(SHIPPED / "tileops.toml", tmp_path / "other.toml")
    with pytest.raises(UsageError, match="requires the parameter max_events"):
        lanescope.open(path, layout=str(tmp_path / "other.toml"))


def test_a_layout_file_is_parsed_once_and_again_when_it_has_changed(tmp_path):
    path = layout(tmp_path)
    first = catalog.load(path)
    assert catalog.load(path) is first
    Path(path).write_text(LAYOUT.replace('"event"', '"0"'))
    assert catalog.load(path).roles["id"].text == "0"
    for _ in range(2):
        Path(path).write_text("name = 1")
        with pytest.raises(InputError, match="expected a string"):
            catalog.load(path)


def test_stack_pairing_needs_no_event_at_the_end(tmp_path):
    text = LAYOUT.replace('id = "event"', 'id = "event if type == 0 else 0"\npairing = "stack"')
    buffer = words((0, 0, 0, 5, 100), (0, 1, 0, 6, 110), (0, 2, 1, 0, 120), (0, 3, 1, 0, 150), (0, 4, 1, 0, 160))
    trace = cuda.decode(buffer, layout=layout(tmp_path, text))
    assert sorted((row["name"], row["dur"]) for row in trace.slices.rows()) == [("event_5", 50), ("event_6", 10)]
    assert [row["category"] for row in trace.instants.rows()] == ["unmatched_end"]


def test_boundaries_end_the_region_before(tmp_path):
    text = LAYOUT.replace('kind = ["type", {"0" = "begin", "1" = "end"}]', 'kind = "instant"\npairing = "boundary"')
    buffer = words((0, 0, 0, 5, 100), (0, 1, 0, 6, 110), (0, 2, 0, 7, 150))
    trace = cuda.decode(buffer, layout=layout(tmp_path, text))
    rows = [(row["name"], row["dur"]) for row in trace.slices.rows()]
    assert rows == [("event_5", 10), ("event_6", 40), ("event_7", None)]


def test_tokens_pair_across_the_lanes_of_a_block(tmp_path):
    text = LAYOUT.replace(
        'lanes = [["block", "blocks"]]', 'pairing = "token"\nlanes = [["block", "1"], ["warp", "blocks"]]'
    )
    text = text.replace("64 * block", "64 * warp")
    buffer = words((0, 0, 0, 5, 100), (1, 0, 1, 5, 164))
    trace = cuda.decode(buffer, layout=layout(tmp_path, text))
    [row] = trace.slices.rows()
    assert (row["dur"], row["category"]) == (64, "async")
    assert len(trace.flows) == 1


def test_tokens_pair_in_a_block_whatever_the_numbers_of_its_groups(tmp_path):
    text = LAYOUT.replace(
        'lanes = [["block", "blocks"]]',
        'pairing = "token"\ngroup = "3 * warp"\nlanes = [["block", "2"], ["warp", "blocks // 2"]]',
    )
    text = text.replace("64 * block", "64 * lane")
    buffer = np.zeros(32, np.uint64)
    buffer[:16], buffer[16:] = words((0, 0, 0, 5, 100), (1, 0, 1, 5, 164)), words((0, 0, 0, 5, 110), (1, 0, 1, 5, 120))
    trace = cuda.decode(buffer, layout=layout(tmp_path, text), layout_params={"blocks": 4})
    assert sorted(row["dur"] for row in trace.slices.rows()) == [10, 64]


TOKENS = """
name = "mine"
source = "me"
pairing = "token"
lanes = [["block", "2"], ["warp", "size // (2 * 16 * rows)"]]
kind = ["type", {"0" = "begin", "1" = "end"}]
id = "event"
token = "token"
time = "stamp"
payload = "value"
capacity = "rows"
[params]
rows = {from = "user"}
[record]
at = "16 * (lane * rows + k)"
size = 16
fields = {stamp = [0, 40], token = [40, 24], event = [64, 8], type = [72, 1], value = [96, 32]}
views = {word = [0, 64]}
empty = "word == 0"
[clock]
bits = 40
"""


@given(
    regions=st.lists(
        st.tuples(
            st.integers(0, 1), st.integers(0, 2), st.integers(0, 2), st.integers(0, 255), st.integers(1, 2**24 - 1)
        ),
        min_size=1,
        max_size=40,
        unique_by=lambda row: (row[0], row[4]),
    ),
    bits=st.randoms(),
)
def test_events_and_tokens_pair_across_the_lanes_of_a_block(tmp_path_factory, regions, bits):
    lanes = [[] for _ in range(6)]
    truth = []
    for number, (block, first, last, event, token) in enumerate(regions):
        begin, end = sorted(bits.sample(range(1, 1 << 30), 2))
        lanes[3 * block + first].append((begin, token, event, 0, number))
        lanes[3 * block + last].append((end, token, event, 1, 0))
        truth.append((block, first, last if last != first else None, event, token, number, end - begin))
    rows = max(map(len, lanes)) + 1
    data = bytearray(6 * 16 * rows)
    for lane, records in enumerate(lanes):
        for k, (stamp, token, event, kind, value) in enumerate(sorted(records)):
            struct.pack_into("<QII", data, 16 * (lane * rows + k), stamp | token << 40, event | kind << 8, value)
    path = layout(tmp_path_factory.mktemp("tokens"), TOKENS)
    trace = cuda.decode(bytes(data), layout=path, layout_params={"rows": rows})
    of = {row["slice_id"]: row for row in trace.details["cuda_regions"].rows()}
    names = ("block", "group", "end_group", "event_id", "token", "payload")
    got = [(*(of[row["id"]][name] for name in names), row["dur"]) for row in trace.slices.rows()]
    assert sorted(got, key=str) == sorted(truth, key=str)
    assert {row["name"] for row in trace.slices.rows()} == {f"event_{region[3]}" for region in regions}


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('name = "mine"', "name = ", "invalid TOML"),
        ('name = "mine"', 'name = "mine"\nnam = 1', "nam: unknown key"),
        ('time = "stamp"', "", "time: missing"),
        ('time = "stamp"', 'time = "stmp"', "time: unknown name 'stmp'"),
        ('time = "stamp"', 'time = "stamp +"', "time: invalid expression at column"),
        ('time = "stamp"', 'time = "abs(stamp)"', "time: unsupported expression at column 1"),
        ('time = "stamp"', 'time = "stamp.real"', "time: unsupported expression"),
        ('time = "stamp"', 'time = "stamp // event"', "divisor or shift depends on the field 'event'"),
        ('time = "stamp"', 'time = "event"', "reads the field 'event', which is part of the time"),
        ("8 * k", "8 * k * k", "not affine in k"),
        ("8 * k", "8 * (k % 4)", "not affine in k"),
        ("event = [1, 15]", "event = [0, 16]", "overlaps the field"),
        ("stamp = [32, 32]", "stamp = [33, 32]", "outside of the 8 bytes"),
        ("stamp = [32, 32]", "stamp = [32, 65]", "expected a width from 1 to 64 bits"),
        ("stamp = [32, 32]", 'stamp = ["other", "8 * k", 32]', "unknown array 'other'"),
        ('"1" = "end"', '"1" = "finish"', "unknown kind 'finish'"),
        ('"1" = "end"', '"1" = "instant"', "one of begin and end is missing"),
        ("bits = 32", "bits = 32\nunwrap = 'after'", "clock.anchor: required unless"),
        ("bits = 32", "bits = 32\nunit = 'ticks'", "clock.hz: required for ticks"),
        ('capacity = "8"', 'overflow = "drop"', "capacity: missing: overflow is 'drop', so a lane"),
        ("word == 0", "stamp == -1", "record.empty: 'stamp' is never -1: its bits are 32, 0 to 4294967295"),
        ("word == 0", "event != 65536", "'event' is never 65536: its bits are 15"),
        ('"1" = "end"', '"2" = "end"', "kind: 'type' is never 2: its bits are 1, 0 to 1"),
        ("default = 2", "default = 0", "does not fit: 0 for 'block'"),
        ("default = 2", "default = 4611686018427387904", "does not fit"),
        ('capacity = "8"', "capacity = 8", 'capacity: expected a string, as "8"'),
        ("[record]", "[records]", "record: missing .there is an unknown key records"),
        ('id = "event"', 'id = "event"\ntoken = "event"', "token: used with pairing = 'token' only"),
        ('capacity = "8"', "", "records of two lanes overlap"),
        ("64 * block", "56 * block", "records of two lanes overlap"),
        ("8 * k", "4 * k", "records of two lanes overlap"),
    ],
)
def test_a_wrong_layout_file_is_refused_with_its_place(tmp_path, old, new, error):
    assert old in LAYOUT
    path = layout(tmp_path, LAYOUT.replace(old, new))
    with pytest.raises((InputError, UsageError), match=error) as caught:
        cuda.decode(BUFFER, layout=path)
    assert "\n" not in str(caught.value.message)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"layout": "nope"}, "there are tirx"),
        ({"layout": "tileops", "layout_params": {"max": 1}}, "has no parameter 'max'"),
        ({"layout": "tileops", "layout_params": "max_events"}, "expected NAME=NUMBER"),
        ({"layout": "tileops", "layout_params": {"max_events": "4"}}, "expected numbers by name"),
        ({"layout": "tirx", "layout_params": {"x": 1}}, "has no parameters"),
        ({"layout": "tileops", "stride": 4}, "mutually exclusive"),
        ({"layout": "ikp", "layout_params": "max_events=8,warps=1"}, "requires the arrays buffer, counters"),
        ({"layout": "missing.toml"}, "cannot read missing.toml"),
    ],
)
def test_wrong_options_are_refused(options, error):
    with pytest.raises((InputError, UsageError), match=error):
        cuda.decode(BUFFER, **options)


def test_dump_shows_the_records_of_an_archive_and_of_a_layout_next_to_the_buffer(tmp_path, capsys):
    from lanescope.cli import main

    path = tmp_path / "run.npz"
    np.savez(path, buffer=BUFFER)
    layout(tmp_path, name="run.layout.toml")
    assert main(["dump", "--stage", "record", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    data = path.read_bytes()
    for line, word in zip(lines, BUFFER[BUFFER != 0].tolist(), strict=True):
        at = int(line.split()[0], 16)
        assert data[at : at + 8] == word.to_bytes(8, "little")
        assert word.to_bytes(8, "little").hex(" ") in line
    assert "begin        lane=0 time=100 event_id=5" in lines[0]


def test_archives_of_arrays(tmp_path):
    path = tmp_path / "run.npz"
    golden = {
        "buffer": np.frombuffer((GOLDEN / "mori.bin").read_bytes(), np.uint64),
        "offsets": np.frombuffer((GOLDEN / "mori.offsets.bin").read_bytes(), np.uint32),
    }
    options = {"layout": "mori", "layout_params": "max_events=16"}
    np.savez(path, **golden)
    assert len(lanescope.open(path, **options).slices) > 20
    np.savez(path, buffer=golden["buffer"])
    with pytest.raises(InputError, match="array 'offsets' not found"):
        lanescope.open(path, **options)
    np.savez(path, buffer=golden["buffer"], offsets=np.zeros(4))
    with pytest.raises(InputError, match="'offsets' has the type '<f8': expected little-endian integers"):
        lanescope.open(path, **options)
    np.savez(path, **golden)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match="damaged"):
        lanescope.open(path, **options)


def test_compressed_archives_are_read_as_others(tmp_path, capsys):
    from lanescope.cli import main

    golden = {
        "buffer": np.frombuffer((GOLDEN / "mori.bin").read_bytes(), np.uint64),
        "offsets": np.frombuffer((GOLDEN / "mori.offsets.bin").read_bytes(), np.uint32),
    }
    options = {"layout": "mori", "layout_params": "max_events=16"}
    seen = []
    for save in (np.savez, np.savez_compressed):
        path = tmp_path / f"{save.__name__}.npz"
        save(path, **golden)
        trace = lanescope.open(path, **options)
        [bytes_of] = [row for row in trace.accounting.rows() if row["layer"] == 0]
        assert bytes_of["lost"] == 0
        words = ["dump", "--stage", "record", "--layout-params", "max_events=16", "--layout", "mori", str(path)]
        assert main(words) == 0
        lines = [line.split("  ", 1)[1] for line in capsys.readouterr().out.splitlines()]
        seen.append([lines, [(row["name"], row["ts"], row["dur"]) for row in trace.slices.rows()]])
    assert seen[0] == seen[1]
    assert len(seen[0][0]) == 64
    assert len(cuda.decode(path.read_bytes(), **options).slices) == len(seen[0][1])


def test_bytes_behind_the_last_slot_of_a_compressed_array_are_counted(tmp_path):
    path = tmp_path / "run.npz"
    np.savez_compressed(path, buffer=np.frombuffer(BUFFER.tobytes() + b"abc", np.uint8))
    layout(tmp_path, name="run.layout.toml")
    trace = lanescope.open(path)
    assert [row["count"] for row in trace.stats.rows() if row["name"] == "cuda_trailing_bytes"] == [3]


def packed(tmp_path, content, *, claimed=None, method=zipfile.ZIP_DEFLATED):
    """An archive whose only member is any bytes; ``claimed``: the size that its directory states."""
    path = tmp_path / "run.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("buffer.npy", content)
    if claimed is not None:
        data = bytearray(path.read_bytes())
        at = data.rindex(b"PK\x01\x02")
        data[at + 24 : at + 28] = claimed.to_bytes(4, "little")
        path.write_bytes(data)
    return path


def npy_of(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


ARRAY = npy_of(BUFFER)


@pytest.mark.parametrize(
    ("content", "options", "error"),
    [
        (ARRAY, {"claimed": (1 << 31)}, "unpacks to 2,147,483,648 bytes, the limit is 1,073,741,824"),
        (ARRAY, {"claimed": 100}, "damaged .npz file: Bad CRC-32"),
        (ARRAY[:-8], {}, "shorter than its header promises"),
        (ARRAY, {"method": zipfile.ZIP_BZIP2}, ""),
        (b"text", {}, "'buffer' is not an .npy array"),
        (npy_of(np.zeros(4, ">u4")), {}, "has the type '>u4'"),
        (npy_of(np.zeros(4, "V2")), {}, "has the type '|V2'"),
        (npy_of(np.zeros(4, np.float16)), {}, "has the type '<f2'"),
        (npy_of(np.zeros(4, np.complex64)), {}, "has the type '<c8'"),
        (npy_of(np.zeros((2, 3), np.uint32).T), {}, "Fortran order"),
        (npy_of(np.zeros(4, [("a", "<u4")])), {}, "expected a plain array"),
    ],
)
def test_hostile_archives_are_refused_in_one_line(tmp_path, content, options, error):
    path = packed(tmp_path, content, **options)
    options = {"layout": layout(tmp_path)}
    if not error:
        assert len(lanescope.open(path, **options).slices) == 2
        return
    with pytest.raises(InputError, match=re.escape(error)) as caught:
        lanescope.open(path, **options)
    assert "\n" not in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("at", range(0, 400, 7))
def test_a_damaged_compressed_archive_is_read_or_refused(tmp_path, at):
    path = packed(tmp_path, ARRAY)
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 0xFF
    path.write_bytes(data)
    try:
        lanescope.open(path, layout=layout(tmp_path))
    except (InputError, UsageError) as error:
        words = error.message
    else:
        words = ""
    assert "\n" not in words


@pytest.mark.parametrize("size", [0, 7, 8, 16, 100, 127])
def test_cut_files_are_read_as_far_as_they_go(tmp_path, size):
    data = np.frombuffer(BUFFER.tobytes()[:size], np.uint8)
    if size == 0:
        with pytest.raises(InputError):
            cuda.decode(data, layout=layout(tmp_path))
        return
    trace = cuda.decode(data, layout=layout(tmp_path))
    assert len(trace.slices) == (size >= 8) + (size >= 72)
    assert trace.accounting.rows()
