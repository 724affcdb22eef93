"""Configurations in all their forms, there and back."""

import csv
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from error_text import is_one_error
from lanescope.cli import main
from lanescope.devices.aie import config
from lanescope.devices.aie.config import (
    ConfigError,
    Unit,
    config_of,
    instruction_stream,
    json_config,
    mlir_parser,
    mlir_writer,
    register_json,
)
from lanescope.devices.aie.config import (
    register_writes as writes,
)
from lanescope.devices.aie.config.model import strip_trailing_zeros
from lanescope.devices.aie.formats import events, registers
from lanescope.errors import UsageError
from lanescope.families import registry

CORE = {"type": "core", "col": 0, "row": 2, "events": ["INSTR_VECTOR", "INSTR_EVENT_0", "INSTR_EVENT_1"]}


#: What a configuration may say, and one word that means something within it.
WORDS = [*json_config.KEYS, *json_config.TILE_KEYS, "0"]


@st.composite
def units(draw, device, *, is_mlir=False):
    module = draw(st.sampled_from(events.MODULES))
    row = {"shim": 0, "memtile": 1}.get(module) if module in ("shim", "memtile") else draw(st.integers(2, 31))
    event = st.sampled_from(sorted(events.names(device, module)))
    watched = strip_trailing_zeros(draw(st.lists(event, max_size=8)))
    known = registers.ports(module)
    ports = [None] * 8
    if known:
        port = st.none() | st.sampled_from(sorted(known.values()))
        ports = draw(st.lists(port, min_size=8, max_size=8))
    start = draw(event)
    unit = Unit(
        module,
        draw(st.integers(0, 31)),
        row,
        watched,
        tuple(ports),
        mode=draw(st.integers(0, 2)) if module == "core" else 0,
        start=start,
        stop=draw(event),
        reset=start if is_mlir else draw(st.none() | event),
        packet_id=draw(st.none() | st.integers(0, 31)),
        packet_type=None if is_mlir else draw(st.none() | st.integers(0, 7)),
    )
    return unit


@st.composite
def configs(draw, *, is_mlir=False):
    device = draw(st.sampled_from(events.DEVICES))
    made = draw(st.lists(units(device, is_mlir=is_mlir), min_size=1, max_size=6))
    more = (
        {}
        if is_mlir
        else {"column_shift": draw(st.none() | st.integers(-3, 5)), "frequency": draw(st.none() | st.just(7))}
    )
    return config.apply_defaults(config_of(device, made, **more))


@given(configs())
@settings(max_examples=some(60))
def test_json_and_back(known):
    assert json_config.parse(json.loads(json.dumps(json_config.to_json(known)))) == known


@given(configs())
@settings(max_examples=some(60))
def test_registers_and_back(known):
    assert register_json.from_document(json.loads(json.dumps(register_json.to_document(known)))) == known
    writes = mlir_parser.read(mlir_writer.to_mlir_writes(known))
    assert (writes.device, dict(writes.units)) == (known.device, dict(known.units))


@given(configs())
@settings(max_examples=some(60))
def test_instruction_streams_and_back(known):
    content = instruction_stream.written(known)
    for form in (content, instruction_stream.lines(content).encode()):
        assert instruction_stream.is_stream(form)
        read = instruction_stream.read(form)
        assert (read.device, dict(read.units), read.trigger) == (known.device, dict(known.units), known.trigger)
        assert not read.other_operations


@given(configs(is_mlir=True))
@settings(max_examples=some(60))
def test_mlir_and_back(known):
    assert mlir_parser.read(mlir_writer.to_mlir(known)) == known


@given(configs(is_mlir=True))
@settings(max_examples=some(50))
def test_what_mlir_declares_is_what_registers_say(known):
    lowered = writes.from_writes(known.device, writes.start_writes(mlir_parser.read(mlir_writer.to_mlir(known))))
    assert dict(lowered.units) == dict(known.units)


def test_the_published_register_writes(corpus):
    """A few lines of JSON give the writes of a design that ran on hardware, register by register."""
    short = json_config.parse({"trigger": 0, "start": "BROADCAST_15", "stop": "BROADCAST_14", "tiles": [CORE]})
    known = config.apply_defaults(short)
    path = corpus / "aie/vector_scalar/input_with_addresses.mlir"
    assert config.load_mlir(path) == known
    text = path.read_text()
    before, after = writes.start_writes(known), writes.stop_writes(known)
    for write in [*before, *after]:
        if write.register.name == "Trace_Event1":
            assert write.value == 0, "the design leaves it as reset puts it"
            continue
        attributes = f"address = {write.register.offset} : ui32, column = {write.col} : i32, row = {write.row} : i32"
        assert f"aiex.npu.write32 {{{attributes}, value = {write.value} : ui32}}" in text


def test_what_is_left_open_is_chosen():
    tiles = [{"type": "shim", "col": 1, "row": 0, "events": []}, {"type": "memtile", "col": 1, "row": 1, "events": []}]
    tiles += [{"type": "mem", "col": 0, "row": 2, "events": []}, CORE, {"type": "shim", "col": 0, "row": 0}]
    known = config.apply_defaults(json_config.parse({"trigger": 0, "tiles": tiles, "device": "aie2p"}))
    by_place = known.units
    assert [by_place[p].packet_id for p in sorted(by_place, key=lambda p: (p[1], p[2], p[0]))] == [1, 2, 3, 4, 5]
    assert [unit.packet_type for unit in by_place.values()] == [2, 3, 1, 0, 2]
    named = {
        place: (known.event_name(place[0], unit.start), known.event_name(place[0], unit.stop))
        for place, unit in by_place.items()
    }
    assert named == {
        ("shim", 1, 0): ("BROADCAST_A_15", "BROADCAST_A_14"),
        ("memtile", 1, 1): ("BROADCAST_15", "BROADCAST_14"),
        ("mem", 0, 2): ("BROADCAST_15", "BROADCAST_14"),
        ("core", 0, 2): ("BROADCAST_15", "BROADCAST_14"),
        ("shim", 0, 0): ("USER_EVENT_1", "USER_EVENT_0"),
    }
    assert all(unit.reset == unit.start for unit in by_place.values())


def tile(**more):
    return {"tiles": [CORE | more]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            tile(events=["INSTR_EVNT_0"]),
            "tile 1: unknown event 'INSTR_EVNT_0' of aie2 core; did you mean INSTR_EVENT_0",
        ),
        (tile(events=["instr_vector"]), "did you mean INSTR_VECTOR"),
        (tile(events=[54]), "unknown event 54"),
        (tile(events=[True]), "invalid event True: must be an integer from 0 to 255"),
        (tile(type="cor"), "unknown type 'cor'; did you mean core"),
        (tile(evnets=[]), "unknown tile key 'evnets'; did you mean events"),
        (tile(mode="event-tme"), "did you mean event-time"),
        (tile(mode=3), "invalid mode 3: must be an integer from 0 to 2"),
        (tile(type="mem", mode="execution"), "mem supports event-time (0) only"),
        (tile(packet_id=32), "invalid packet_id 32: must be an integer from 0 to 31"),
        (tile(ports={"0": "DMA:0"}), "did you mean DMA:0"),
        (tile(ports={"8": "DMA:0 master"}), "unknown PORT event '8'"),
        (tile(type="mem", events=[], ports={"0": "DMA:0 master"}), "mem has no ports"),
        (tile(start="BROADCAST_99"), "did you mean BROADCAST_9"),
        ({"tiles": [CORE, CORE]}, "tile 2: core (0, 2) is listed twice"),
        ({"device": "aie2x", "tiles": []}, "did you mean aie2"),
        ({"tils": []}, "did you mean tiles"),
        ({"start_writes": [{"address": "0x34", "value": 1}]}, "no register writes of a trace unit found"),
        ({"start_writes": [{"address": "x", "value": 1}]}, "start_writes 1: invalid address 'x': expected an integer"),
        ({"start_writes": 7}, "invalid start_writes: expected a list"),
        ({"schema": "other/1", "start_writes": []}, "schema 'other/1'"),
        ([], "expected a JSON object"),
    ],
)
def test_nonsense_is_one_line_that_says_where(tmp_path, content, said):
    path = tmp_path / "traced.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError) as caught:
        config.read(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda x: (
            st.lists(x, max_size=4)
            | st.dictionaries(st.sampled_from([*json_config.KEYS, *json_config.TILE_KEYS, "0"]), x)
        ),
        max_leaves=20,
    )
)
@settings(max_examples=some(300))
def test_any_json_is_a_configuration_or_one_line(content):
    try:
        known = json_config.parse(content)
    except ConfigError:
        return
    assert json_config.parse(json_config.to_json(known)) == known


def test_too_many_units_and_two_broadcasts():
    tiles = [CORE | {"col": col, "row": row} for col in range(8) for row in range(2, 6)]
    with pytest.raises(ConfigError, match="too many units for packet ids"):
        config.apply_defaults(json_config.parse({"tiles": tiles}))
    tiles = [CORE | {"start": "BROADCAST_3"}, CORE | {"col": 1}]
    with pytest.raises(ConfigError, match="broadcasts 3, 15"):
        writes.start_writes(config.apply_defaults(json_config.parse({"trigger": 0, "tiles": tiles})))
    with pytest.raises(ConfigError, match="cannot be broadcast by a trigger"):
        writes.start_writes(config.apply_defaults(json_config.parse({"trigger": 0, **tile(start="TRUE")})))


def test_the_documentation_lists_all_keys():
    page = (Path(__file__).parents[3] / "docs/howto/aie-configure.md").read_text()
    rows = [line.partition("|")[2].partition("|")[0] for line in page.splitlines() if line.startswith("| `")]
    listed = [word for row in rows for word in re.findall(r"`([a-z_]+)`", row)]
    assert sorted(listed) == sorted([*json_config.KEYS, *json_config.TILE_KEYS])


# --- the command --------------------------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traced.json").write_text(
        json.dumps({"start": "BROADCAST_15", "stop": "BROADCAST_14", "tiles": [CORE]})
    )

    def run(*arguments):
        status = main(["aie-config", *arguments])
        return status, *capsys.readouterr()

    return run


def test_the_command_turns_each_form_into_each(command, tmp_path):
    expected = json.loads(command("traced.json", "--to", "json")[1])
    assert expected["tiles"][0]["packet_id"] == 1
    for form, name in (
        ("json", "json.json"),
        ("registers", "registers.json"),
        ("mlir", "mlir.mlir"),
        ("writes", "writes.mlir"),
        ("insts", "insts.bin"),
        ("insts", "insts.txt"),
        ("cdo", "trace.cdo"),
        ("packets", "ctrlpkt.bin"),
        ("packets", "ctrlpkt.txt"),
    ):
        status, out, err = command("traced.json", "-o", name, "--to", form)
        assert (status, out) == (0, "")
        assert name in err
        assert json.loads(command(name, "--to", "json")[1]) == expected
    # The suffix tells the form.
    assert command("registers.json", "-o", "again.cdo")[0] == 0
    assert (tmp_path / "again.cdo").read_bytes() == (tmp_path / "trace.cdo").read_bytes()
    assert command("registers.json", "-o", "again.mlir")[0] == 0
    assert command("registers.json", "-o", "again.bin")[0] == 0
    assert (tmp_path / "again.bin").read_bytes() == (tmp_path / "insts.bin").read_bytes()
    assert (tmp_path / "again.mlir").read_text() == (tmp_path / "mlir.mlir").read_text()


def test_what_is_loaded_before_a_run_does_not_stop_it(command, tmp_path):
    traced = json.loads((tmp_path / "traced.json").read_text()) | {"trigger": 0}
    (tmp_path / "traced.json").write_text(json.dumps(traced))
    for form in ("cdo", "packets"):
        status, _, err = command("traced.json", "-o", f"{form}.bin", "--to", form)
        assert status == 0
        assert "the writes that stop the trace are not in it" in err
        made = config.read(tmp_path / f"{form}.bin")
        assert (made.trigger, made.units["core", 0, 2].stop) == (0, events.number("aie2", "core", "BROADCAST_14"))


def test_the_command_shows_register_writes(command):
    status, out, err = command("traced.json")
    assert (status, err) == (0, "")
    (row,) = [line.split(maxsplit=6) for line in out.splitlines() if "Trace_Control0" in line]
    assert row[:6] == ["start", "0", "2", "Trace_Control0", "0x340d0", "0x797a0000"]
    assert row[6].startswith("stop=BROADCAST_14 start=BROADCAST_15")


def test_the_command_complains_in_one_line(command, tmp_path):
    (tmp_path / "bad.json").write_text(json.dumps(tile(events=["INSTR_VECTR"])))
    for arguments, said in (
        (("bad.json",), "did you mean INSTR_VECTOR"),
        (("none.json",), "cannot open 'none.json': no such file"),
        (("traced.json", "-o", "traced.json"), "is an input"),
        (("traced.json", "-o", "bad.json"), "--force"),
        (("traced.json", "-o", "table.txt"), "--to"),
        (("traced.json", "-o", "design.xclbin"), "cannot write an xclbin: it holds the programs"),
        (("traced.json", "-o", "design.pdi", "--to", "cdo"), "cannot write a PDI"),
        (("traced.json", "--to", "html"), "invalid value 'html' for --to (choose from"),
    ):
        status, out, err = command(*arguments)
        assert (status, out) == (2, "")
        assert said in err
        assert is_one_error(err)
    assert command("traced.json", "-o", "bad.json", "--force")[0] == 0


def test_its_help_ends_with_two_examples_that_run(command):
    (declared,) = [each for each in registry.family("aie").commands if each.name == "aie-config"]
    status, out, _ = command("--help")
    assert status == 0
    assert len(declared.examples) == 2
    assert out.endswith("".join(f"  {example}\n" for example in declared.examples))
    for example in declared.examples:
        assert command(*example.split()[2:])[0] == 0


def test_register_writes_as_tables_for_programs(capfd, tmp_path):
    """JSON, CSV and the text have the same rows; other forms are not mixed with them."""
    path = tmp_path / "config.json"
    path.write_text('{"device": "aie2", "tiles": [{"col": 0, "row": 2, "type": "core", "events": ["LOCK_STALL"]}]}')

    def printed(*arguments):
        assert main(["aie-config", str(path), *arguments]) == 0
        return capfd.readouterr().out

    document = json.loads(printed("--json"))
    assert document["device"] == "aie2"
    found = list(csv.DictReader(printed("--csv").splitlines()))
    assert found == [{name: str(value) for name, value in row.items()} for row in document["writes"]]
    assert found
    for more in (["--to", "mlir"], ["-o", str(tmp_path / "out.json")]):
        assert main(["aie-config", str(path), "--json", *more]) == 2
        err = capfd.readouterr().err
        assert is_one_error(err)
        assert "--to json" in err
