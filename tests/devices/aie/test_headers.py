"""What packet headers contradict: the row of their tile, the configuration, each other."""

import json
from itertools import combinations

import numpy as np
import pytest

import lanescope
from effort import some
from lanescope.analysis import check
from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.encode import Frames

NAMES = ("aie_packet_type", "aie_packet_id", "aie_shared_packet_id", "aie_unknown_tile")
CORE, MEM, SHIM, MEMTILE = range(4)


def recording(packet_type, col, row, packet_id):
    runs = encode.encode_runs(np.array([0, 1], np.uint8), np.array([50, 9]), stop=True, idle=6)
    header = encode.header(packet_type, col, row, packet_id)
    return encode.packets(header, encode.pack(Frames.join([encode.start(100), runs])))


def opened(tmp_path, *units, tiles=None):
    (tmp_path / "run.bin").write_bytes(np.concatenate([recording(*unit) for unit in units]).astype("<u4").tobytes())
    if tiles:
        (tmp_path / "run.config.json").write_text(json.dumps({"tiles": tiles}))
    return lanescope.open(tmp_path / "run.bin", family="aie")


def said(trace):
    return {name for name in trace.stats["name"].tolist() if name in NAMES}


def modules(trace):
    return trace.details["aie_segments"]["module"].tolist()


@pytest.mark.parametrize("packet_type", range(8))
@pytest.mark.parametrize("row", [0, 1, 2, 3, 5])
def test_a_type_is_one_of_the_row(tmp_path, packet_type, row):
    fits = {0: [SHIM], 1: [MEMTILE], 2: [CORE, MEM, MEMTILE]}.get(row, [CORE, MEM])
    trace = opened(tmp_path, (packet_type, 1, row, 3))
    assert said(trace) == (set() if packet_type in fits else {"aie_packet_type"})
    assert [f.severity for f in check.run(trace) if f.code == "LS404"] == ["warning"] * (packet_type not in fits)


@pytest.mark.parametrize(("row", "module"), list(enumerate(["shim", "memtile", "core", "core"])))
def test_a_header_without_type_and_id_is_placed_by_its_row(tmp_path, row, module):
    trace = opened(tmp_path, (0, 1, row, 0))
    assert (said(trace), modules(trace)) == (set(), [module])


def test_an_id_of_two_units_is_noted(tmp_path):
    assert said(opened(tmp_path, (CORE, 1, 2, 3), (CORE, 1, 3, 4), (MEM, 1, 3, 5))) == set()
    trace = opened(tmp_path, (CORE, 1, 2, 3), (CORE, 1, 3, 3))
    assert said(trace) == {"aie_shared_packet_id"}
    assert [f.severity for f in check.run(trace) if f.code == "LS404"] == ["notice"]
    # Circuit-switched routes need no ids.
    assert said(opened(tmp_path, (CORE, 1, 2, 0), (CORE, 1, 3, 0))) == set()


def test_an_id_is_the_configured_one(tmp_path):
    tile = {"type": "core", "col": 1, "row": 2, "events": ["INSTR_VECTOR"], "packet_id": 3}
    assert said(opened(tmp_path, (CORE, 1, 2, 3), tiles=[tile])) == set()
    assert said(opened(tmp_path, (CORE, 1, 2, 4), tiles=[tile])) == {"aie_packet_id"}
    assert said(opened(tmp_path, (CORE, 1, 2, 0), tiles=[tile])) == set()
    del tile["packet_id"]
    assert said(opened(tmp_path, (CORE, 1, 2, 4), tiles=[tile])) == set()


#: Bits of a header that mean something; two of them change it and keep its parity.
BITS = [bit for bit in range(32) if not 0x70008FE0 >> bit & 1]


@pytest.mark.parametrize("name", ["mode0_add_one_objfifo_r0", "mode1_mixed_r0", "mode2_mixed_r0"])
def test_what_headers_of_captures_contradict(corpus, tmp_path, name):
    """Of all changes of two bits in all headers of a unit, those that no design could have made are found."""
    words = np.fromfile(corpus / "aie" / f"{name}.bin", "<u4")
    packets = words[: len(words) // 8 * 8].reshape(-1, 8)
    packets = packets[packets.any(axis=1)]
    path = tmp_path / "run.bin"
    path.write_bytes(packets.tobytes())
    assert said(lanescope.open(path, family="aie")) == set()
    pairs = list(combinations(BITS, 2))
    found = 0
    for first, second in pairs[:: 210 // some(210, 42)]:
        for header in np.unique(packets[:, 0]):
            changed = packets.copy()
            changed[changed[:, 0] == header, 0] ^= np.uint32(1 << first | 1 << second)
            path.write_bytes(changed.tobytes())
            found += bool(said(lanescope.open(path, family="aie")))
    assert found > 0.35 * 2 * len(pairs[:: 210 // some(210, 42)])


def above(trace):
    """Names of groups and of what is above them."""
    names, parents = trace.tracks["name"].tolist(), trace.tracks["parent_id"].tolist()
    valid, kinds = trace.tracks.valid("parent_id").tolist(), trace.tracks["kind"].tolist()
    return {names[i]: names[parents[i]] if valid[i] else None for i, kind in enumerate(kinds) if kind == "group"}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("is_text", [False, True])
def test_units_of_one_tile_are_in_a_group_without_a_configuration(tmp_path, order, is_text):
    units = [(CORE, 1, 2, 1), (MEM, 1, 2, 2), (MEMTILE, 1, 1, 3)]
    words = np.concatenate([recording(*units[i]) for i in order]).ravel()
    if is_text:
        (tmp_path / "run.txt").write_text("".join(f"{word:08x}\n" for word in words.tolist()))
    else:
        (tmp_path / "run.bin").write_bytes(words.astype("<u4").tobytes())
    assert above(lanescope.open(tmp_path / ("run.txt" if is_text else "run.bin"), family="aie")) == {
        "core (1, 2)": "tile (1, 2)",
        "mem (1, 2)": "tile (1, 2)",
        "memtile (1, 1)": "tile (1, 1)",
        "tile (1, 2)": None,
        "tile (1, 1)": None,
    }


def test_units_of_different_tiles_are_in_no_group(tmp_path):
    assert above(opened(tmp_path, (CORE, 1, 2, 1), (MEM, 1, 3, 2))) == {"core (1, 2)": None, "mem (1, 3)": None}


def test_a_configuration_decides_about_groups(tmp_path):
    tiles = [{"type": "core", "col": 1, "row": 2, "packet_id": 1, "events": [37]}]
    trace = opened(tmp_path, (CORE, 1, 2, 1), (MEM, 1, 2, 2), tiles=tiles)
    assert above(trace) == {"core (1, 2)": None, "mem (1, 2)": None}
