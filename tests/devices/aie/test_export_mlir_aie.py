"""The JSON and the summary of mlir-aie's tools, against what their algorithm makes of the same commands.

The commands of hardware captures are those that their decoder gives (``*.expected.json`` of the corpus). Compared after
a projection, each item with its reason:

* units in the configuration that sent no packet have no process here: the trace does not know them;
* an event that is asserted in the last cycle of a stream has no end, in theirs and here.
"""

import json
from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import some
from lanescope.cli import main
from lanescope.devices.aie.export import mlir_aie
from lanescope.devices.aie.formats import encode, events
from lanescope.devices.aie.formats.encode import Frames

NAMES = {
    "core": [
        *("INSTR_VECTOR", "INSTR_EVENT_0", "INSTR_EVENT_1", "PORT_RUNNING_0"),
        *("PORT_RUNNING_1", "LOCK_STALL", "INSTR_LOCK_ACQUIRE_REQ", "INSTR_LOCK_RELEASE_REQ"),
    ],
    "memtile": ["PORT_RUNNING_0", "NONE", "PORT_RUNNING_1", "PORT_RUNNING_2"],
}
TYPES = ("core", "mem", "shim", "memtile")


def opened(tmp_path, content, tiles):
    path = tmp_path / "run.bin"
    path.write_bytes(content)
    listed = [{"type": module, "col": col, "row": row, "events": NAMES[module]} for module, col, row in tiles]
    if any("PORT" in name for name in NAMES["core"]):
        listed[0]["ports"] = {"0": "DMA:0 master"}
    (tmp_path / "run.config.json").write_text(json.dumps({"tiles": listed}))
    return lanescope.open(path, family="aie")


def written(trace):
    text = b"".join(mlir_aie.blocks(trace)).decode()
    made = json.loads(text)
    # A newline stands before each event, by replacing text.
    assert text == json.dumps(made).replace(", {", ",\n{") + "\n"
    return made


def metadata(units):
    made = []
    for pid, (module, row, col) in enumerate(units):
        process = {"name": f"{module}_trace for tile{row},{col}"}
        made.append({"name": "process_name", "ph": "M", "pid": pid, "args": process})
        for slot, name in enumerate((NAMES[module] + ["NONE"] * 8)[:8]):
            made.append({"name": "thread_name", "ph": "M", "pid": pid, "tid": slot, "args": {"name": name}})
    return made


def theirs(commands, pid, names):
    """Their walk over a unit's commands, for time-coded ones."""
    made, timer, active, cycles, several = [], 0, dict.fromkeys(range(8), 0), 0, []

    def put(phase, slot):
        made.append({"name": names[slot], "ts": timer, "ph": phase, "pid": pid, "tid": slot, "args": {}})

    def deactivate():
        for slot in range(8):
            if cycles > 0 or slot not in several:
                if active[slot]:
                    put("E", slot)
                active[slot] = 0

    def activate():
        for slot in several:
            if not active[slot]:
                put("B", slot)
                active[slot] = 1

    for command in commands:
        kind = command["type"]
        if kind.startswith("Repeat"):
            for _ in range(0 if cycles == 0 else command["repeats"]):
                timer += 1
                deactivate()
                timer += cycles
                activate()
            timer += command["repeats"] if cycles == 0 else 0
        elif kind == "Event_Sync":
            timer += 1 << 18
        elif kind.startswith(("Single", "Multiple")):
            cycles = command["cycles"]
            several = [v for k, v in command.items() if k.startswith("event")]
            timer += 1
            deactivate()
            timer += cycles
            activate()
    return made


def test_the_mode_0_capture_is_written_as_their_parser_does(corpus, tmp_path):
    path = corpus / "aie/mode0_add_one_objfifo_r0.bin"
    trace = opened(tmp_path, path.read_bytes(), [("core", 1, 2), ("memtile", 1, 1)])
    listed = json.loads(path.with_suffix(".expected.json").read_text())["trace_types"]
    expected = metadata([("core", 2, 1), ("memtile", 1, 1)])
    pid = 0
    for kind, tiles in enumerate(listed):
        for commands in tiles.values():
            if commands:
                expected += theirs(commands, pid, (NAMES[TYPES[kind]] + ["NONE"] * 8)[:8])
                pid += 1
    assert pid == 2
    assert written(trace) == expected


def test_spans_have_the_lengths_of_their_timeline(corpus, tmp_path):
    path = corpus / "aie/mode0_add_one_objfifo_r0.bin"
    made = written(opened(tmp_path, path.read_bytes(), [("core", 1, 2), ("memtile", 1, 1)]))
    spans, begun = defaultdict(list), {}
    for event in made:
        key = (event["pid"], event.get("tid"))
        if event["ph"] == "B":
            begun[key] = event["ts"]
        elif event["ph"] == "E":
            spans[key].append(event["ts"] - begun.pop(key))
    expected = json.loads((path.parent / "mode0_add_one_objfifo_r0.perfetto_expected.json").read_text())
    for place, slots in expected.items():
        pid = ["0", "3"].index(place[0])
        for slot, lengths in slots.items():
            rest = list(lengths)
            for length in spans[pid, int(slot)]:
                rest.remove(length)
            # What has no end in the JSON their timeline ends with the stream.
            assert len(rest) == ((pid, int(slot)) in begun), (place, slot)


def test_the_mode_1_capture_is_written_as_their_parser_does(corpus, tmp_path):
    path = corpus / "aie/mode1_mixed_r0.bin"
    trace = opened(tmp_path, path.read_bytes(), [("core", 1, 2), ("memtile", 1, 1)])
    commands = json.loads((path.parent / "mode1_mixed_r0_core_expected.json").read_text())
    cycles = []
    for command in commands:
        if command["type"] == "EventPC":
            cycles.append((command["event_bits"], command["pc"]))
        elif command["type"] == "Repeat":
            cycles += cycles[-1:] * command["count"]
    expected = [
        {"name": NAMES["core"][slot], "ts": ts, "ph": "i", "s": "t", "pid": 0, "tid": slot, "args": {"pc": pc}}
        for ts, (mask, pc) in enumerate(cycles)
        for slot in range(8)
        if mask >> slot & 1
    ]
    made = written(trace)
    assert made[:18] == metadata([("core", 2, 1), ("memtile", 1, 1)])
    assert [event for event in made if event["pid"] == 0][9:] == expected


RUNS = st.lists(
    st.tuples(st.integers(0, 255), st.sampled_from([1, 1, 2, 3, 17, 1500, 300_000])), min_size=1, max_size=25
)


@given(RUNS, RUNS)
@settings(max_examples=some(80))
def test_any_states_are_written_as_their_algorithm_does(tmp_path_factory, first, second):
    words, expected = [], []
    units = (("core", (0, 1, 2, 1), first), ("memtile", (3, 1, 1, 2), second))
    for pid, (module, header, runs) in enumerate(units):
        mask, length = (np.array(column) for column in zip(*runs, strict=True))
        frames = Frames.join([encode.start(9), encode.encode_runs(mask.astype(np.uint8), length.astype(np.int64))])
        words.append(encode.packets(encode.header(*header), encode.pack(frames)).ravel())
        names = (NAMES[module] + ["NONE"] * 8)[:8]
        # Slots that are not configured but asserted: their table has a name for number 0.
        state, at = [], 0
        for value, cycles in runs:
            state += [(at + 1, at + cycles, value)] if value else []
            at += cycles
        expected += theirs_of(state, pid, names)
    content = np.concatenate(words).astype("<u4").tobytes()
    made = written(opened(tmp_path_factory.mktemp("aie"), content, [("core", 1, 2), ("memtile", 1, 1)]))
    assert made[18:] == expected


def theirs_of(state, pid, names):
    """Their walk over commands that say (first cycle, last cycle, mask)."""
    commands, at = [], 0
    for first, last, mask in state:
        slots = {f"event{slot}": slot for slot in range(8) if mask >> slot & 1}
        idle = first - at - 1
        # Idle cycles before are a frame's own; the state then goes on without any.
        commands.append({"type": "Multiple0", "cycles": idle, **slots})
        if last > first:
            commands.append({"type": "Multiple0", "cycles": 0, **slots})
            commands.append({"type": "Repeat1", "repeats": last - first - 1})
        at = last
    return theirs(commands, pid, names)


def summarised(made):
    """Their summary of such a JSON."""
    deltas = [[event["args"]["name"]] for event in made if event["name"] == "process_name"]
    begun = [None] * len(deltas)
    for event in made:
        if event["ph"] == "B" and event["name"] == "INSTR_EVENT_0" and begun[event["pid"]] is None:
            begun[event["pid"]] = event["ts"]
        if event["ph"] == "B" and event["name"] == "INSTR_EVENT_1" and begun[event["pid"]] is not None:
            deltas[event["pid"]].append(event["ts"] - begun[event["pid"]])
            begun[event["pid"]] = None
    text = ""
    for name, *cycles in deltas:
        text += f"{name}\nTotal number of full kernel invocations is {len(cycles)}\n"
        if cycles:
            mean = sum(cycles) / len(cycles)
            text += f"First/Min/Avg/Max cycles is {cycles[0]}/ {min(cycles)}/ {mean}/ {max(cycles)}\n"
    return text


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 4, 3, 5, 32]), st.integers(1, 30)), max_size=40))
@settings(max_examples=some(80))
def test_the_summary_is_theirs(tmp_path_factory, runs):
    mask, length = (np.array(column) for column in (list(zip(*runs, strict=True)) or [(), ()]))
    frames = Frames.join([encode.start(9), encode.encode_runs(mask.astype(np.uint8), length.astype(np.int64))])
    words = encode.packets(encode.header(0, 1, 2, 1), encode.pack(frames)).ravel()
    trace = opened(tmp_path_factory.mktemp("aie"), words.astype("<u4").tobytes(), [("core", 1, 2)])
    assert b"".join(mlir_aie.summary(trace)).decode() == summarised(written(trace))


def test_a_second_recording_goes_on_where_the_first_one_ended(tmp_path):
    frames = [encode.start(5), encode.encode_runs(np.array([1, 0, 2], np.uint8), np.array([3, 4, 1]), idle=9)]
    words = encode.packets(encode.header(0, 1, 2, 1), encode.pack(Frames.join(frames))).ravel()
    made = written(opened(tmp_path, np.concatenate([words, words]).astype("<u4").tobytes(), [("core", 1, 2)]))
    commands = [
        {"type": "Single0", "event": 0, "cycles": 0},
        {"type": "Repeat0", "repeats": 2},
        {"type": "Single0", "event": 1, "cycles": 4},
    ]
    assert made[9:] == theirs(commands * 2, 0, NAMES["core"])


def test_the_commands(corpus, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = corpus / "aie/vector_scalar"
    given = [str(folder / "trace_emu.bin"), "--mlir", str(folder / "input_with_addresses.mlir")]
    assert main(["convert", *given, "-o", "out.pftrace"]) == 0
    assert main(["convert", *given, "--format", "mlir-aie", "-o", "trace.json"]) == 0
    made = json.loads((tmp_path / "trace.json").read_text())
    threads = [event["args"]["name"] for event in made if event["name"] == "thread_name"]
    assert threads == ["INSTR_VECTOR", "INSTR_EVENT_0", "INSTR_EVENT_1", *["NONE"] * 5]
    assert main(["convert", *given, "--format", "summary", "-o", "summary.txt"]) == 0
    # Theirs would pair the events around a gap, too: the emulator's file has some.
    assert (tmp_path / "summary.txt").read_text() == (
        "core_trace for tile2,0\nTotal number of full kernel invocations is 1\n"
        "First/Min/Avg/Max cycles is 10246/ 10246/ 10246.0/ 10246\n"
    )
    capsys.readouterr()


def test_other_captures_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["sim", "cuda", "-o", "run.npy"]) == 0
    for name in ("mlir-aie", "summary"):
        assert main(["convert", "run.npy", "--format", name, "-o", "out.txt"]) == 2
        assert "trace contains no AI Engine data" in capsys.readouterr().err


def test_names_of_the_test_exist():
    for module, names in NAMES.items():
        for name in names:
            assert events.number("aie2", module, name) >= 0


def test_without_a_configuration_lanes_give_the_names(corpus):
    made = written(lanescope.open(corpus / "aie/mode2_mixed_r0.bin"))
    processes = [event["args"]["name"] for event in made if event["name"] == "process_name"]
    assert processes == ["core_trace for tile2,1", "memtile_trace for tile1,1"]
    # Their format has nothing for an execution trace.
    assert {event["pid"] for event in made if event["ph"] != "M"} == {1}
