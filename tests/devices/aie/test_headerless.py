"""Streams whose packets have no headers, or headers without an id: packet and circuit switches on the way."""

import numpy as np
import pytest

import lanescope
from effort import some
from lanescope import cli
from lanescope.devices.aie.decoder import AieDecoder
from lanescope.devices.aie.family import FAMILY
from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.detect import PAYLOAD, detect
from lanescope.devices.aie.formats.raw_frames import Packets, Words, frames_of
from lanescope.errors import UsageError
from lanescope.families.options import resolve_options
from lanescope.source import Capture
from lanescope.source.detection import FileHead
from lanescope.trace import Trace

HARDWARE = ("mode0_add_one_objfifo_r0", "mode1_mixed_r0", "mode2_mixed_r0")
TYPES = ("core", "mem", "shim", "memtile")
TABLES = ("slices", "instants", "tracks", "stats")
DETAILS = ("aie_pc_events", "aie_program_flow", "aie_segments")


def simulated(seed, **options):
    options = resolve_options(FAMILY.sim_options, {"zeros": 0, **options}, what="the simulator")
    content = next(value for name, value in FAMILY.simulate(options, seed).files.items() if name.endswith(".bin"))
    return np.frombuffer(content, "<u4").reshape(-1, 8)


def detected(words):
    data = np.ascontiguousarray(words, "<u4").tobytes()
    return detect(FileHead(data[: 1 << 16], len(data), "run.bin"))


def shown(trace):
    """What a trace holds, but for where it lies in the file and the ids that its headers told."""
    left_out = ("start_offset", "first_offset", "offset", "packet_id", "input_id")
    tables = [getattr(trace, name) for name in TABLES] + [trace.details[name] for name in DETAILS]
    return [[{k: v for k, v in row.items() if k not in left_out} for row in table.rows()] for table in tables]


def name_of(header):
    return f"{header >> 21 & 127},{header >> 16 & 31},{TYPES[header >> 12 & 3]}"


def decoded(path, tile, block_bytes):
    """A trace whose capture came in pieces."""
    with Capture(path) as capture:
        decoder = AieDecoder(capture, {"tile": tile}, block_bytes=block_bytes)
        data = path.read_bytes()
        batches = [batch for at in range(0, len(data), 50) for batch in decoder.feed(memoryview(data[at : at + 50]))]
        return Trace.concat([*batches, *decoder.finish()])


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("form", ["binary", "text", "pieces"])
def test_a_stream_without_headers_is_what_it_was_with_them(mode, form, tmp_path):
    for seed in range(some(8, 2)):
        packets = simulated(seed, tiles=1, records=300, mode=mode, overruns=seed % 2).copy()
        place = name_of(int(packets[0, 0]))
        # Its id is nowhere.
        packets[:, 0] = encode.header(*(int(part) for part in (0, *place.split(",")[:2])), 0)
        (tmp_path / "with.bin").write_bytes(packets.tobytes())
        words = np.append(packets[:, 1:].ravel(), np.zeros(30, np.uint32))
        content = words.astype("<u4").tobytes()
        if form == "text":
            content = "".join(f"{word:08x}\n" for word in words.tolist()).encode()
        path = tmp_path / "without.bin"
        path.write_bytes(content)
        found = decoded(path, place, 100) if form == "pieces" else lanescope.open(path, tile=place)
        assert [row["format"] for row in found.inputs.rows()] == [PAYLOAD]
        assert shown(found) == shown(lanescope.open(tmp_path / "with.bin"))
        for row in found.accounting.rows():
            assert row["total"] == row["decoded"] + row["padding"] + row["lost"]
            assert row["lost"] == 0
        assert {row["layer"]: row["total"] for row in found.accounting.rows()} == {0: len(content), 1: len(words)}


def test_offsets_are_those_of_the_file(tmp_path):
    words = simulated(3, tiles=1, records=200)[:, 1:].ravel()
    path = tmp_path / "run.bin"
    path.write_bytes(words.tobytes())
    with Capture(path) as capture:
        rows = list(frames_of(capture.main, encode.header(0, 1, 2, 0)).rows())
    assert len(rows) > 100
    for row in rows:
        rest = 32 - row["bit"] - row["bits"]
        if rest >= 0:
            assert row["raw"] == int(words[row["offset"] // 4]) >> rest & (1 << row["bits"]) - 1
    path.write_bytes(words.tobytes() + b"abc")
    assert list(lanescope.open(path, tile="1,2,core").stats["name"]) == ["truncated"]


def test_headerless_streams_of_hardware_are_recognized(corpus, tmp_path):
    streams = 0
    for name in HARDWARE:
        words = Words.of(np.fromfile(corpus / "aie" / f"{name}.bin", np.uint8))
        packets = Packets.of(words)
        whole = lanescope.open(corpus / "aie" / f"{name}.bin")
        slices = instants = 0
        for source, header in enumerate(packets.headers):
            payload = words.values[packets.payload(source)]
            assert detected(payload).format == PAYLOAD
            (tmp_path / "run.bin").write_bytes(payload.tobytes())
            found = lanescope.open(tmp_path / "run.bin", tile=name_of(header))
            slices += len(found.slices)
            instants += len(found.instants)
            streams += 1
        assert (slices, instants) == (len(whole.slices), len(whole.instants))
        parts = [words.values[packets.payload(source)].reshape(-1, 7) for source in range(2)]
        # Two units without headers: a packet may be of either.
        mixed = np.concatenate([np.concatenate([part[i : i + 1] for part in parts]) for i in range(2)]).ravel()
        assert not detected(mixed).is_recognized
    assert streams == 6


def test_what_is_no_stream_of_one_unit_is_refused(tmp_path, capsys):
    """Bytes that begin like a recording are no stream for that."""
    rng = np.random.default_rng(7)
    streams = [simulated(seed, tiles=1, records=60, mode=seed % 3)[:, 1:].ravel() for seed in range(3)]
    for number in range(some(3000, 300)):
        words = rng.integers(0, 1 << 32, 56, dtype=np.uint32)
        if number % 2:
            words[:2] = streams[number % 3][:2]
        assert detected(words).format != PAYLOAD
    for stream in streams:
        changed = stream.copy()
        changed[9] = 0xF8F8F8F8
        assert detected(changed).format != PAYLOAD
    two = simulated(1, tiles=2, records=100)
    (tmp_path / "run.bin").write_bytes(two[:, 1:].tobytes())
    assert cli.main(["info", str(tmp_path / "run.bin")]) == 3
    said = capsys.readouterr().err
    assert "a Start without a packet header, but not the frames of one trace unit" in said
    assert "keep_pkt_header" in said
    # A place does not help: the stream is of two units.
    with pytest.raises(UsageError, match="several units without headers cannot be separated"):
        lanescope.open(tmp_path / "run.bin", family="aie", tile="1,2,core")


def test_the_place_is_asked_for_or_taken_from_the_configuration(tmp_path):
    path = tmp_path / "run.bin"
    path.write_bytes(simulated(1, tiles=1, records=60)[:, 1:].tobytes())
    with pytest.raises(UsageError, match=r"without headers: its tile is unknown.*--tile COL,ROW,TYPE"):
        lanescope.open(path)
    for wrong in ("1,2", "1,2,gpu", "200,2,core", "1,99,core", "a,b,core"):
        with pytest.raises(UsageError, match="expected COL,ROW,TYPE"):
            lanescope.open(path, tile=wrong)
    config = tmp_path / "run.config.json"
    one = '{"tiles": [{"type": "core", "col": 3, "row": 2, "events": ["INSTR_EVENT_0"]}]}'
    config.write_text(one)
    found = lanescope.open(path, config=str(config))
    assert [(row["col"], row["row"]) for row in found.details["aie_segments"].rows()] == [(3, 2)]
    config.write_text(one.replace("]}]}", ']}, {"type": "core", "col": 4, "row": 2, "events": ["INSTR_EVENT_0"]}]}'))
    with pytest.raises(UsageError, match="2 units of the configuration fit"):
        lanescope.open(path, config=str(config))
    assert lanescope.open(path, config=str(config), tile="4,2,core")
    packets = tmp_path / "packets.bin"
    packets.write_bytes(simulated(1, tiles=1, records=60).tobytes())
    with pytest.raises(UsageError, match="--tile is only for"):
        lanescope.open(packets, tile="1,2,core")


@pytest.mark.parametrize(("column", "row"), [(0, 0), (1, 1), (1, 2), (4, 5)])
def test_circuit_switched_streams_have_headers_without_id_and_type(column, row, tmp_path):
    """A unit without a configured id sends packets all the same; its header is little more than its place."""
    packets = simulated(5, tiles=1, records=200).copy()
    whole = packets.copy()
    packets[:, 0] = encode.header(0, column, row, 0)
    path = tmp_path / "run.bin"
    path.write_bytes(packets.tobytes())
    found = lanescope.open(path)
    (unit,) = found.details["aie_segments"].rows()
    assert (unit["col"], unit["row"], unit["packet_type"], unit["packet_id"]) == (column, row, 0, 0)
    assert found.inputs.rows().__next__()["format"] == "aie-trace"
    path.write_bytes(whole.tobytes())
    assert len(found.slices) == len(lanescope.open(path).slices)
    assert "lost" not in "".join(found.stats["name"].tolist())


def test_dump_and_info_show_a_stream_without_headers(tmp_path, capsys):
    path = tmp_path / "run.bin"
    path.write_bytes(simulated(1, tiles=1, records=60)[:, 1:].tobytes())
    for stage in ("packet", "record"):
        assert cli.main(["dump", str(path), "--stage", stage, "--tile", "1,2,core", "--limit", "3"]) == 0
        assert "core" in capsys.readouterr().out
