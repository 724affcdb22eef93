import json
from fractions import Fraction

import numpy as np
import pytest

import lanescope
from lanescope.devices.aie import config
from lanescope.devices.aie.formats import encode, events
from lanescope.errors import UsageError


@pytest.mark.parametrize("device", events.DEVICES)
def test_event_tables_equal_those_of_the_corpus(corpus, device):
    tables = json.loads((corpus / "aie" / f"events_{device}.json").read_text())["tile_types"]
    for module in events.MODULES:
        assert events.names(device, module) == {int(number): name for number, name in tables[module].items()}


def test_the_devices_differ_in_one_event():
    differing = [
        (module, number)
        for module in events.MODULES
        for number, name in events.names("aie2", module).items()
        if events.names("aie2p", module)[number] != name
    ]
    assert differing == [("core", 70)]


def test_names_and_numbers_name_slots(tmp_path):
    path = tmp_path / "run.config.json"
    tile = {"type": "core", "col": 0, "row": 2, "events": ["INSTR_VECTOR", 33, 0, 34]}
    path.write_text(json.dumps({"device": "aie2p", "frequency_hz": 1.8e9, "column_shift": 1, "tiles": [tile]}))
    made = config.load(path)
    assert made.slot_names("core", 0, 2) == ("INSTR_VECTOR", "INSTR_EVENT_0", "", "INSTR_EVENT_1", "", "", "", "")
    assert made.slot_names("core", 1, 2) == ("",) * 8
    assert made.column_shift == 1
    assert made.frequency == Fraction(1_800_000_000)


@pytest.mark.parametrize(
    "content",
    [
        "nonsense",
        "[]",
        "{}",
        '{"tiles": [{"type": "core"}]}',
        '{"tiles": [{"type": "moon", "col": 0, "row": 2, "events": []}]}',
        '{"tiles": [{"type": "core", "col": 0, "row": 2, "events": ["NO_SUCH"]}]}',
        '{"tiles": [{"type": "core", "col": 0, "row": 2, "events": [54]}]}',
        '{"tiles": [{"type": "core", "col": 0, "row": 2, "events": [1,1,1,1,1,1,1,1,1]}]}',
        '{"device": "aie9", "tiles": [{"type": "core", "col": 0, "row": 2, "events": [1]}]}',
        '{"frequency_hz": "fast", "tiles": []}',
    ],
)
def test_nonsense_is_one_line(tmp_path, content):
    path = tmp_path / "run.config.json"
    path.write_text(content)
    with pytest.raises(UsageError) as caught:
        config.load(path)
    assert "\n" not in str(caught.value)


def shifted(tmp_path, tiles, packets, **options):
    """The groups of a dump of these units, (module, column, row), beside a configuration of these tiles."""
    types = {"core": 0, "mem": 1, "shim": 2, "memtile": 3}
    words = [
        encode.packets(encode.header(types[module], col, row, 1), encode.pack(encode.start(0)))
        for module, col, row in packets
    ]
    listed = [{"type": module, "col": col, "row": row, "events": ["TRUE"]} for module, col, row in tiles]
    (tmp_path / "run.config.json").write_text(json.dumps({"tiles": listed}))
    path = tmp_path / "run.bin"
    path.write_bytes(np.concatenate([part.ravel() for part in words]).astype("<u4").tobytes())
    trace = lanescope.open(path, family="aie", **options)
    names = {row["name"] for row in trace.tracks.rows() if row["kind"] == "group"}
    return names, {row["name"]: row["count"] for row in trace.stats.rows()}


def test_the_column_shift_is_found(tmp_path):
    tiles = [("core", 0, 2), ("memtile", 0, 1), ("core", 1, 3)]
    names, stats = shifted(tmp_path, tiles, [("core", 3, 2), ("memtile", 3, 1), ("core", 4, 3)])
    assert names == {"core (0, 2)", "memtile (0, 1)", "core (1, 3)"}
    assert not {"aie_unknown_tile", "aie_ambiguous_config", "aie_silent_unit"} & set(stats)


def test_the_column_shift_is_found_when_the_leftmost_tile_sent_nothing(tmp_path):
    tiles = [("core", 0, 2), ("core", 1, 3), ("core", 2, 4)]
    names, stats = shifted(tmp_path, tiles, [("core", 2, 3), ("core", 3, 4)])
    assert names == {"core (1, 3)", "core (2, 4)"}
    assert "aie_unknown_tile" not in stats
    assert stats["aie_silent_unit"] == 1


def test_an_ambiguous_column_shift_is_told_and_can_be_given(tmp_path):
    tiles = [("core", 0, 2), ("core", 1, 2)]
    names, stats = shifted(tmp_path, tiles, [("core", 3, 2)])
    assert names == {"core (0, 2)"}
    assert stats["aie_ambiguous_config"] == 2
    names, stats = shifted(tmp_path, tiles, [("core", 3, 2)], column_shift=2)
    assert names == {"core (1, 2)"}
    assert "aie_ambiguous_config" not in stats


def test_rows_beyond_the_eighth_are_tiles_like_others(tmp_path):
    names, stats = shifted(tmp_path, [], [("core", 2, 9), ("core", 2, 31)])
    assert names == {"core (2, 9)", "core (2, 31)"}
    assert "aie_bad_header" not in stats
