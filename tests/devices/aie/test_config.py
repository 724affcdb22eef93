import json
from fractions import Fraction

import pytest

from lanescope.devices.aie import config, events
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
    path.write_text(json.dumps({"device": "aie2p", "frequency_hz": 1.8e9, "colshift": 1, "tiles": [tile]}))
    made = config.load(path)
    assert made.slot_names("core", 1, 2) == ("INSTR_VECTOR", "INSTR_EVENT_0", "", "INSTR_EVENT_1", "", "", "", "")
    assert made.slot_names("core", 0, 2) == ("",) * 8
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
