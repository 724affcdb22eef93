"""Texts with several designs or runtime sequences, and texts that say more than is read: no label is a guess."""

import json

import numpy as np
import pytest

import lanescope
from error_text import is_one_error
from lanescope.analysis import check
from lanescope.cli import main
from lanescope.devices.aie import config
from lanescope.devices.aie.config import ConfigError, mlir_parser
from lanescope.devices.aie.formats import encode
from lanescope.errors import UsageError


def write(slots, *, address=0x340E0, col=0, row=2):
    place = f"address = {address} : ui32, column = {col} : i32, row = {row} : i32"
    return f"aiex.npu.write32 {{{place}, value = {slots} : ui32}}"


def sequence(name, *writes):
    return "\n".join([f"aie.runtime_sequence @{name}(%arg0: memref<64xi32>) {{", *writes, "}"])


def traced(name, event, tile="(0, 2)"):
    return f"""
    %{name}_tile = aie.tile{tile}
    aie.trace @{name}(%{name}_tile) {{
      aie.trace.packet id=1 type=core
      aie.trace.event<"{event}">
      aie.trace.start broadcast=15
      aie.trace.stop broadcast=14
    }}"""


def device(name, *parts):
    return "\n".join([f"aie.device(npu1_1col) @{name} {{", *parts, "}"])


MAIN = device("main", sequence("main_seq", "aiex.configure @dev_a { aiex.run @seq_a (%arg0) : (memref<64xi32>) }"))
STARTED = "aie.trace.host_config {{buffer_size = 8192 : i32}}\naie.trace.start_config @{0}"


def designs(first, second):
    made = [
        device(f"dev_{name}", traced(name, event), sequence(f"seq_{name}", STARTED.format(name)))
        for name, event in (("a", first), ("b", second))
    ]
    return "\n".join(["module {", MAIN, *made, "}"])


CONTRADICTORY = {
    "designs": designs("INSTR_EVENT_0", "LOCK_STALL"),
    "sequences": device("main", sequence("seq_a", write(33)), sequence("seq_b", write(26))),
    "declared for a sequence each": device(
        "main",
        traced("a", "INSTR_EVENT_0"),
        traced("b", "LOCK_STALL"),
        sequence("seq_a", STARTED.format("a")),
        sequence("seq_b", STARTED.format("b")),
    ),
    "declared twice": device("main", traced("a", "INSTR_EVENT_0"), traced("b", "LOCK_STALL")),
    "one after the other": device("main", sequence("seq", write(33), write(26))),
    "a port": device(
        "main",
        sequence("seq_a", write(0x4B), write(0x21, address=0x3FF00)),
        sequence("seq_b", write(0x4B), write(0x02, address=0x3FF00)),
    ),
}
AGREEING = {
    "designs": designs("INSTR_EVENT_0", "INSTR_EVENT_0"),
    "sequences": device("main", sequence("seq_a", write(33)), sequence("seq_b", write(33))),
    "other tiles": device("main", sequence("seq_a", write(33)), sequence("seq_b", write(26, row=3))),
    "ids": device(
        "main",
        sequence("seq_a", write(33), write(1, address=0x340D4)),
        sequence("seq_b", write(33), write(2, address=0x340D4)),
    ),
    "cleared afterwards": device("main", sequence("seq", write(33), write(0))),
    "bit by bit": device(
        "main",
        sequence("seq", write(33), write(0x2100).replace("write32 {", "maskwrite32 {mask = 65280 : ui32, ")),
    ),
}


def asserted():
    """Frames of a recording in which slot 0 is asserted for 10 cycles."""
    return encode.Frames.join([encode.start(0), encode.encode_runs(np.array([0, 1], np.uint8), np.array([50, 10]))])


def dump(path, *headers):
    """A dump in which each of these sources (type, column, row) asserts slot 0."""
    words = [encode.packets(encode.header(*header), encode.pack(asserted())) for header in headers]
    path.write_bytes(np.concatenate([part.ravel() for part in words]).astype("<u4").tobytes())


def opened(tmp_path, text, *headers):
    (tmp_path / "run.mlir").write_text(text)
    dump(tmp_path / "run.bin", *(headers or [(0, 0, 2, 1)]))
    return lanescope.open(tmp_path / "run.bin")


def stats(trace):
    return {row["name"]: row["count"] for row in trace.stats.rows()}


def slot_names(trace):
    lanes = trace.details["aie_slots"]["track_id"]
    return [trace.tracks["name"].tolist()[lane] for lane in lanes.tolist()]


@pytest.mark.parametrize("which", CONTRADICTORY)
def test_contradictory_configurations_of_a_tile_label_nothing(tmp_path, which):
    trace = opened(tmp_path, CONTRADICTORY[which])
    assert slot_names(trace) == ["slot 0"]
    [row] = trace.details["aie_slots"].rows()
    assert (row["event"], row["event_name"]) == (None, "")
    assert stats(trace)["aie_contradictory_config"] == 1
    assert "aie_unknown_tile" not in stats(trace)
    [finding] = [f for f in check.run(trace) if f.code == "LS404"]
    assert (finding.severity, finding.location.track) == ("warning", "core (0, 2)")


@pytest.mark.parametrize("which", AGREEING)
def test_configurations_that_agree_on_a_tile_label_it(tmp_path, which):
    trace = opened(tmp_path, AGREEING[which])
    assert slot_names(trace)[0] == "INSTR_EVENT_0"
    assert not {"aie_contradictory_config", "aie_unread_config"} & set(stats(trace))


def test_a_contradictory_tile_still_tells_the_column_shift(tmp_path):
    text = device("main", sequence("seq_a", write(33)), sequence("seq_b", write(26)))
    trace = opened(tmp_path, text, (0, 3, 2, 1))
    assert "core (0, 2)" in trace.tracks["name"].tolist()


def test_contradictory_registers_of_a_document_label_nothing(tmp_path):
    writes = [{"col": 0, "row": 2, "address": "0x340e0", "value": value} for value in (33, 26)]
    (tmp_path / "run.config.json").write_text(json.dumps({"start_writes": writes}))
    dump(tmp_path / "run.bin", (0, 0, 2, 1))
    trace = lanescope.open(tmp_path / "run.bin")
    assert slot_names(trace) == ["slot 0"]
    assert stats(trace)["aie_contradictory_config"] == 1


def test_designs_for_two_devices_are_refused():
    text = designs("INSTR_EVENT_0", "INSTR_EVENT_0").replace("npu1_1col) @dev_b", "npu2) @dev_b")
    with pytest.raises(ConfigError, match="aie2 and aie2p"):
        mlir_parser.read(text)


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        status = main(list(arguments))
        done = capsys.readouterr()
        return status, done.out, done.err

    return run


def test_a_contradictory_configuration_is_not_written_in_another_form(command, tmp_path):
    (tmp_path / "two.mlir").write_text(designs("INSTR_EVENT_0", "LOCK_STALL"))
    status, out, err = command("aie-config", "two.mlir", "--to", "json")
    assert (status, out) == (2, "")
    assert "core (0, 2)" in err
    assert "dev_a:seq_a and dev_b:seq_b differ in events" in err
    assert is_one_error(err)


def test_check_and_convert_tell_a_contradictory_configuration(command, tmp_path):
    opened(tmp_path, designs("INSTR_EVENT_0", "LOCK_STALL"))
    status, out, _ = command("check", "run.bin")
    assert status == 1
    assert "units with contradictory configurations" in out
    for target in ("out.json", "out.pftrace", "out.parquet"):
        status, _, err = command("convert", "run.bin", "-o", target)
        assert status == 0
        assert "units with contradictory configurations (1)" in err


def test_check_and_convert_tell_an_ambiguous_column_shift(command, tmp_path):
    text = device("main", sequence("seq", *(write(33 + col, col=col) for col in range(3))))
    trace = opened(tmp_path, text, (0, 2, 2, 1), (0, 3, 2, 1))
    assert stats(trace)["aie_ambiguous_config"] == 2
    status, out, err = command("check", "run.bin")
    assert status == 1
    assert "LS404" in out
    assert "--column-shift" in out
    for target in ("out.json", "out.pftrace"):
        _, _, err = command("convert", "run.bin", "-o", target)
        assert "column shifts that fit the configuration equally well (2)" in err
    assert command("check", "run.bin", "--column-shift", "1")[0] == 0
    assert "ambiguous" not in command("convert", "run.bin", "--column-shift", "1", "-o", "more.json")[2]


UNREAD = {
    "aie.trace.combo_event": 'aie.trace.combo_event<0> <"INSTR_EVENT_0"> XOR <"INSTR_VECTOR">',
    "aie.trace.edge_event": 'aie.trace.edge_event<2> event=<"LOCK_STALL"> trigger=BOTH',
    "aie.trace.something_newer": "aie.trace.something_newer 7",
    "aie.trace.event": "\n".join(['aie.trace.event<"TRUE">'] * 8),
    "aie.trace.port": "aie.trace.port<0> port=DMA direction=S2MM",
    "aie.trace.mode": 'aie.trace.mode "Event-Color"',
    "aie.trace.packet": "aie.trace.packet id=1 type=moon",
    "aie.trace.start": "aie.trace.start never=7",
}


@pytest.mark.parametrize("operation", UNREAD)
def test_operations_that_are_not_read_are_not_dropped_without_a_word(tmp_path, command, operation):
    body = traced("a", "INSTR_EVENT_0").rstrip().removesuffix("}")
    text = device("main", f"{body}\n{UNREAD[operation]}\n}}")
    assert list(mlir_parser.read(text).unread) == [operation]
    trace = opened(tmp_path, text)
    assert stats(trace)["aie_unread_config"] == 1
    assert "LS404" in [f.code for f in check.run(trace)]
    status, _, err = command("aie-config", "run.mlir")
    assert status == 0
    assert f"{operation} 1" in err


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (write(0x0A09, address=0x34400), "Combo_event_inputs"),
        (write(0x0807, address=0x14400), "Combo_event_inputs"),
        ("%v = arith.addi %a, %a : i32\n%k = arith.constant 0x340E4 : i32\n"
         "aiex.npu.write32(%k, %v) {column = 0 : i32, row = 2 : i32} : i32, i32", "Trace_Event1"),
    ],
)  # fmt: skip
def test_register_writes_that_are_not_read_are_not_dropped_without_a_word(text, what):
    known = mlir_parser.read(device("main", sequence("seq", write(33), text)))
    assert [told for told in known.unread if what in told] == list(known.unread) != []


def test_a_document_of_registers_that_are_not_read_says_so(tmp_path):
    path = tmp_path / "registers.json"
    writes = {"0x340e0": 33, "0x34400": 0x0A09}
    listed = [{"col": 0, "row": 2, "address": address, "value": value} for address, value in writes.items()]
    path.write_text(json.dumps({"start_writes": listed}))
    assert sum(config.load(path).unread.values()) == 1


def test_a_logical_tile_that_is_placed_is_a_tile():
    text = device("main", traced("a", "INSTR_EVENT_0").replace("aie.tile(", "aie.logical_tile<CoreTile>("))
    known = mlir_parser.read(text)
    assert (known.slot_names("core", 0, 2)[0], known.unread) == ("INSTR_EVENT_0", {})


def test_a_trace_on_a_logical_tile_without_a_place_is_not_dropped_without_a_word(tmp_path):
    nowhere = traced("a", "LOCK_STALL", tile="(?, ?)").replace("aie.tile", "aie.logical_tile<CoreTile>")
    known = mlir_parser.read(device("main", nowhere, traced("b", "INSTR_EVENT_0")))
    assert list(known.units) == [("core", 0, 2)]
    assert sum(known.unread.values()) == 1
    (tmp_path / "run.mlir").write_text(device("main", nowhere))
    with pytest.raises(UsageError, match="input_with_addresses") as caught:
        config.load_mlir(tmp_path / "run.mlir")
    assert "without a position" in str(caught.value)


def test_the_mlir_aie_format_says_that_it_leaves_an_execution_trace_out(command, tmp_path):
    core = encode.packets(encode.header(0, 1, 2, 2), encode.pack(encode.start_flow(0x100), mode=2))
    memory = encode.packets(encode.header(3, 1, 1, 1), encode.pack(asserted()))
    words = np.concatenate([core.ravel(), memory.ravel()])
    (tmp_path / "run.bin").write_bytes(words.astype("<u4").tobytes())
    status, _, err = command("convert", "run.bin", "--format", "mlir-aie", "-o", "out.json")
    assert status == 0
    [line] = [line for line in err.splitlines() if "core (1, 2)" in line]
    assert "mode 2" in line
    assert "pftrace" in line
    status, _, err = command("convert", "run.bin", "--format", "summary", "-o", "out.txt")
    assert [line for line in err.splitlines() if "core (1, 2)" in line and "mode 2" in line]
    assert "mode 2" not in command("convert", "run.bin", "-o", "out.pftrace")[2]
