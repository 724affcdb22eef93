"""What contradicts itself, or cannot be: each is counted where it stands, and nothing of it in a sound trace."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

import lanescope
from devices.levelzero.helpers import Script, opened, simulated, stats
from lanescope.analysis import check
from lanescope.devices.levelzero.family import FAMILY
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.formats.text_reader import ReferenceTextReader
from lanescope.devices.levelzero.formats.text_scanner import TextReader
from lanescope.devices.levelzero.interpret.resolved import attributed
from lanescope.errors import UsageError

RECORDING = Path(__file__).parents[2] / "mutations/data/recording_resubmit"
LAWFUL = {"levelzero_missing_date", "levelzero_rounded_clock_rate", "levelzero_unnamed_kernel"}


def read_again(script: Script) -> Script:
    """Read the device's clock, which counts once in 80 ns and showed 0 when it was read before."""
    before = next(number for number, line in enumerate(script.lines) if ":device_timer" in line)
    return script.pair((len(script.lines) - before) * script.step // 80)


def numbered(*, operations: int = 3, **about: object) -> Script:
    """A program with an immediate list, whose operations have numbers."""
    script = Script().device().pair(0)
    known = {"handle": 5, "device": 0xD0, "ordinal": 0, "index": 0, "immediate": 1, "in_order": 1}
    script.record("lanescope_ze:list", list_id=1, **{**known, **about})
    for number in range(1, operations + 1):
        script.op(number, "MemoryFill", how="INLINE", bytes=64)
    for number in range(1, operations + 1):
        script.harvest(number)
    return read_again(script)


def regular() -> Script:
    """A program with a regular list that runs twice."""
    script = Script().device().pair(0)
    script.record("lanescope_ze:list", list_id=1, handle=5, device=0xD0, ordinal=0, immediate=0, in_order=1)
    script.op(1, "MemoryFill")
    for run in (1, 2):
        script.list_run(1, run).harvest(1, run)
    return read_again(script)


def thapi() -> Script:
    """A program with a kernel in the way that THAPI traces it."""
    script = Script().device().pair(0).immediate(1)
    script.call("zeKernelCreate", desc_val={"pKernelName": '"mma"'}, out_phKernel_val=0x10)
    script.record("lttng_ust_ze_properties:kernel", hKernel=0x10, pKernelProperties_val={"maxSubgroupSize": 16})
    script.append("LaunchKernel", 0xE1, hKernel=0x10).result(0xE1)
    return read_again(script.call("zeKernelDestroy", hKernel=0x10))


def waiting() -> Script:
    """A program that waits for a list, which has a number and a handle, and for an event."""
    script = numbered().call("zeCommandListHostSynchronize", hCommandList=5, timeout=0)
    return script.call("zeEventHostSynchronize", hEvent=9, timeout=0)


def changed(script: Script, pattern: str, by: str, count: int = 1) -> bytes:
    """Return the text with the first ``count`` matches replaced; there has to be one."""
    made, number = re.subn(pattern, by, script.text.decode(), count=count)
    assert number
    return made.encode()


def found(content: bytes, folder: Path) -> dict[str, int]:
    return {name: count for name, count in stats(opened(content, folder)).items() if name not in LAWFUL}


@pytest.mark.parametrize("script", [numbered, regular, thapi, waiting])
def test_sound_programs_contradict_nothing(script, tmp_path) -> None:
    assert found(script().text, tmp_path) == {}


CHANGES = {
    "result of a second run of an immediate list": (numbered, "run: 1", "run: 2", "levelzero_execution_unmatched"),
    "run 0": (numbered, "run: 1", "run: 0", "levelzero_execution_unmatched"),
    "run that was not recorded": (regular, "op_id: 1, run: 2", "op_id: 1, run: 7", "levelzero_execution_unmatched"),
    "immediate list that is called regular": (
        numbered,
        "immediate: 1",
        "immediate: 0",
        "levelzero_execution_unmatched",
    ),
    "context longer than the whole": (numbered, "context_end: 110", "context_end: 190", "levelzero_context_time"),
    "context that ends before it starts": (numbered, "context_end: 110", "context_end: 90", "levelzero_context_time"),
    "more bits than declared": (
        numbered,
        "context_start: 100",
        f"context_start: {1 << 40}",
        "levelzero_wide_timestamp",
    ),
    "result that does not exist": (numbered, "ZE_RESULT_SUCCESS", "ZE_RESULT_SUCCES", "levelzero_unknown_result"),
    "return without a result": (numbered, "{ zeResult: ZE_RESULT_SUCCESS }", "{ }", "levelzero_missing_result"),
    "unknown way of timing": (numbered, '"?INLINE"?', "INLNE", "levelzero_impossible_value"),
    "count above 32 bits": (numbered, "index: 0", f"index: {1 << 32}", "levelzero_impossible_value"),
    "more memory than there is": (numbered, "bytes: 64", f"bytes: {(1 << 64) - 1}", "levelzero_impossible_value"),
    "numbers that fall": (numbered, "op_id: 2, list", "op_id: 9, list", "levelzero_number_order"),
    "function of another call": (
        numbered,
        'api: "zeCommandListAppendMemoryFill',
        'api: "zeCommandListAppendBarrier',
        "levelzero_append_mismatch",
    ),
    "operation of a failed call": (
        numbered,
        r"(Fill_exit: { zeResult: )ZE_RESULT_SUCCESS",
        r"\1ZE_RESULT_NOT_READY",
        "levelzero_append_mismatch",
    ),
    "in-order list that is not": (numbered, r"op_id: 1, run", "op_id: 99, run", "levelzero_result_unmatched"),
    "execution before its call": (regular, r"t_entry: (\d+)\d{4}", r"t_entry: \g<1>0000", "levelzero_execution_time"),
    "reading of an unknown clock": (numbered, r"hDevice: 208, host", "hDevice: 209, host", "levelzero_unknown_handle"),
    "no width of timestamps": (
        numbered,
        "kernelTimestampValidBits: 32",
        "kernelTimestampValidBits: 0",
        "levelzero_inconsistent_device",
    ),
    "no rate": (numbered, "timerResolution: 80", "timerResolution: 0", "levelzero_inconsistent_device"),
    "wait for a list never made": (waiting, "List: 5", "List: 6", "levelzero_unknown_handle"),
    "wait for no object": (waiting, "Event: 9", "Event: 0", "levelzero_unknown_handle"),
    "properties of no kernel": (thapi, r"(kernel: { hKernel: )16", r"\g<1>17", "levelzero_unknown_handle"),
    "new kind of record": (
        numbered,
        "_properties:device_timer",
        "_properties:device_timher",
        "levelzero_unknown_record",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_contradiction_is_counted(name, tmp_path) -> None:
    script, pattern, by, stat = CHANGES[name]
    content = changed(script(), pattern, by)
    assert stat in found(content, tmp_path)
    assert stat in {finding.stat for finding in check.run(opened(content, tmp_path))}


def test_operations_of_an_in_order_list_that_change_places(tmp_path) -> None:
    text = numbered().text.decode()
    content = text.replace("op_id: 1, run", "op_id: 0, run").replace("op_id: 2, run", "op_id: 1, run")
    assert "levelzero_out_of_order" in found(content.replace("op_id: 0, run", "op_id: 2, run").encode(), tmp_path)


def test_a_kernel_that_is_created_twice(tmp_path) -> None:
    script = thapi()
    again = [line for line in script.lines if "zeKernelCreate" in line]
    script.lines[6:6] = again
    assert found(script.text, tmp_path)["levelzero_handle_duplicate"] == 1


def test_a_handle_that_is_given_again_is_another_kernel(tmp_path) -> None:
    script = thapi().call("zeKernelCreate", desc_val={"pKernelName": '"mma"'}, out_phKernel_val=0x10)
    assert found(script.text, tmp_path) == {"levelzero_incomplete_kernel": 1}
    script.record("lttng_ust_ze_properties:kernel", hKernel=0x10, pKernelProperties_val={"maxSubgroupSize": 16})
    assert found(script.text, tmp_path) == {}


def signal(*results: tuple[int, int]) -> bytes:
    """A program that signals an event, whose timestamps are read several times."""
    script = Script().device().pair(0).immediate(1).append("SignalEvent", 0xE1)
    for start, end in results:
        script.result(0xE1, start, end)
    return read_again(script).text


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([(100, 110)], {}),
        ([(100, 110), (120, 130)], {}),
        ([(100, 110), (100, 110)], {"levelzero_result_duplicate": 1}),
        ([((1 << 32) - 4, 6)], {}),
    ],
)
def test_timestamps_of_an_event_are_read_once(results, expected, tmp_path) -> None:
    assert found(signal(*results), tmp_path) == expected


def test_an_event_that_ends_before_it_starts(tmp_path) -> None:
    content = signal((100, 110)).replace(b"globalStart: 100", b"globalStart: 112")
    assert found(content, tmp_path) == {"levelzero_context_time": 1}


@pytest.mark.parametrize(("ticks", "count"), [(0, 0), (12, 0), (-12, 0), (40, 1), (-40, 1)])
def test_a_clock_is_read_between_two_records(ticks, count, tmp_path) -> None:
    """Records come 12.5 ticks after one another, so that a reading may be 12 ticks older than its own."""
    script = Script().device().pair(1000).immediate(1)
    script.pair(1000 + (len(script.lines) - 1) * script.step // 80 + ticks)
    assert found(script.text, tmp_path).get("levelzero_inconsistent_readings", 0) == count


def test_a_text_ends_with_the_end_of_a_line(tmp_path) -> None:
    content = numbered().text
    assert found(content.rstrip(b"\n"), tmp_path) == {"levelzero_unfinished_line": 1}
    assert found(content + b"# a comment", tmp_path) == {}


def test_a_kernel_without_the_properties_of_others(tmp_path) -> None:
    script = thapi().call("zeKernelCreate", desc_val={"pKernelName": '"other"'}, out_phKernel_val=0x20)
    assert found(script.text, tmp_path)["levelzero_incomplete_kernel"] == 1


@pytest.mark.parametrize("value", ["2", "4294967295"])
def test_truth_values_are_0_or_1(value, tmp_path) -> None:
    assert found(changed(numbered(), "in_order: 1", f"in_order: {value}"), tmp_path)["levelzero_invalid_field"] == 1


def test_flags_have_32_bits(tmp_path) -> None:
    assert found(changed(thapi(), "flags: 0", f"flags: {1 << 32}"), tmp_path)["levelzero_invalid_field"] == 1


# --- dates --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("date", ["2262-01-01", "2262-04-12", "9999-12-31", "1969-12-31", "0001-01-01"])
def test_dates_that_no_timeline_holds_are_refused(date, tmp_path) -> None:
    with pytest.raises(UsageError, match="expected a date from 1970-01-01 to 2261-12-31"):
        numbered().open(tmp_path, start_date=date)


@pytest.mark.parametrize("date", ["1970-01-01", "2023-05-01", "2026-03-01", "2261-12-31"])
def test_the_date_moves_all_times_alike(date, tmp_path) -> None:
    plain, dated = regular().open(tmp_path), regular().open(tmp_path, start_date=date)
    for name in ("ts", "dur", "track_id"):
        assert plain.slices[name].tolist() == dated.slices[name].tolist()
    assert {finding.code for finding in check.run(plain)} == {finding.code for finding in check.run(dated)}


def test_lines_after_the_last_day_are_lost_and_counted(tmp_path) -> None:
    """Midnights lead beyond the last day: those lines are lost, and no time is wrong."""
    script = Script(now=23 * 3600 * 1_000_000_000).call("zeInit")
    script.now = 3600 * 1_000_000_000
    script.call("zeInit")
    trace = script.open(tmp_path, start_date="2261-12-31")
    assert stats(trace)["levelzero_invalid_time"] == 2
    assert len(trace.slices) == 1
    assert trace.slices["dur"].tolist() == [1000]
    assert int(trace.accounting["lost"].sum()) == sum(len(line) + 1 for line in script.lines[2:])
    assert "LS002" in {finding.code for finding in check.run(trace)}


@pytest.mark.parametrize("value", [0, 1, 1_704_067_200_000_000_000, (1 << 63) - 1])
@pytest.mark.parametrize("day_s", [0, 1_704_067_200, 9_214_646_300])
def test_both_readers_move_times_of_fields_alike(value, day_s) -> None:
    content = changed(regular(), r"t_entry: \d+, t_exit: \d+", f"t_entry: {value}, t_exit: {value}", count=2)
    tables = []
    for kind in (TextReader, ReferenceTextReader):
        reader = kind(day_s=day_s)
        reader.feed(content)
        runs = reader.finish()["runs"]
        tables.append(list(runs.rows()))
    assert tables[0] == tables[1]
    assert len(tables[0]) == 2


# --- recordings ---------------------------------------------------------------------------------------------------


def recording(folder: Path, change) -> lanescope.Trace:
    place = folder / "run"
    shutil.copytree(RECORDING, place)
    stream = place / "stream_0"
    stream.write_bytes(change(stream.read_bytes()))
    return lanescope.open(place)


def test_a_sound_recording_misses_nothing(tmp_path) -> None:
    # It is one of a recorder that did not measure its own time yet.
    assert stats(recording(tmp_path, bytes)) == {"levelzero_recorder_unmeasured": 1}


def test_a_packet_that_is_missing(tmp_path) -> None:
    """The number of the packet says that one was there before it."""
    files = {f"run/{path.name}": path.read_bytes() for path in sorted(RECORDING.iterdir())}
    (number,) = (site for site in FAMILY.formats[1].fields(files).fields if site.name == "packet_seq_num")

    def second(content: bytes) -> bytes:
        assert number.read(content, 0) == 0
        return number.write(content, 0, 3)

    assert stats(recording(tmp_path, second))["levelzero_missing_packet"] == 3


def test_a_stream_that_is_missing(tmp_path) -> None:
    """The recorder states at its end how many packets there are; no stream is needed to notice that one is gone."""
    place = tmp_path / "run"
    shutil.copytree(RECORDING.parent / "recording_sampled", place)
    before = stats(lanescope.open(place))
    (place / "stream_1").unlink()
    assert "levelzero_missing_packet" not in before
    assert stats(lanescope.open(place))["levelzero_missing_packet"] == 1


@pytest.mark.parametrize("by", [-1, 1])
def test_a_packet_ends_with_its_last_event(by, tmp_path) -> None:
    files = {f"run/{path.name}": path.read_bytes() for path in sorted(RECORDING.iterdir())}
    (end,) = (site for site in FAMILY.formats[1].fields(files).fields if site.name == "timestamp_end")

    def moved(content: bytes) -> bytes:
        return end.write(content, 0, end.read(content, 0) + by)

    assert stats(recording(tmp_path, moved))["levelzero_late_event"] == 1


@pytest.mark.parametrize(
    ("table", "row", "stat"),
    [
        ("sensor_kinds", {"device": 1, "kind": "power", "count": 2}, "levelzero_inconsistent_device"),
        ("samplings", {"interval": 999_999, "reason": ""}, "levelzero_impossible_value"),
        ("samplings", {"interval": 3_600_000_000_001, "reason": ""}, "levelzero_impossible_value"),
        ("sensors", {"sensor": 0, "device": 1, "kind": "power"}, "levelzero_unknown_handle"),
        ("samples", {"sensor": 0, "value": 1}, "levelzero_unknown_handle"),
    ],
)
def test_declarations_of_sensors_alone(table, row, stat) -> None:
    """Each table is judged where the recording has no other of the kind."""
    threads = {"processes": {"pid": 1}, "threads": {"process_id": 0, "tid": 1}}
    events = Events.of({**threads, table: {"seq": 1, "ts": 1000, "thread_id": 0, **row}})
    builder = Mock()
    attributed(events).operations.notes.emit(builder, 0)
    assert [one.args for one in builder.add_stat.call_args_list] == [(stat, 1)]


def test_a_process_without_its_stream(tmp_path) -> None:
    assert stats(recording(tmp_path, lambda content: b""))["levelzero_abnormal_exit"] == 1


@pytest.mark.parametrize("style", ["numbered", "thapi"])
def test_simulated_programs_contradict_nothing(style, tmp_path) -> None:
    options = simulated(style=style, ops=500, processes=2, threads=2, devices=2)
    files = FAMILY.simulate(options, 5).files
    name, content = next(iter(files.items()))
    assert set(stats(opened(content, tmp_path, name))) == {"levelzero_missing_date"}
