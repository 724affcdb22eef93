"""Texts within a limit on the memory: the same rows and answers, in memory that hardly grows with the text."""

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

import lanescope
from effort import SANITIZED
from lanescope.pipeline import memory
from lanescope.source import disk_arrays

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")  # noqa: PTH110

PEAK = """
import sys
from lanescope import cli
status = cli.main(sys.argv[1:])
line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(line.split()[1]) >> 10, file=sys.stderr)
sys.exit(status)
"""
COMMANDS = {
    "check": ("check", "--json", "--fail-on", "never"),
    "explain": ("explain", "--json"),
}


@pytest.fixture
def on_disk(monkeypatch):
    """Have small texts go the way of large ones; a list that grows where that is done."""
    done = []
    kept = disk_arrays.kept_on_disk

    @contextmanager
    def counted():
        done.append(True)
        with kept():
            yield

    monkeypatch.setattr(disk_arrays, "kept_on_disk", counted)
    monkeypatch.setattr(disk_arrays, "_KEPT", 1 << 10)
    monkeypatch.setattr(disk_arrays, "_SMALL", 1)
    monkeypatch.setattr(memory, "_LARGE_SHARE", 1 << 17)
    return done


@pytest.mark.parametrize("style", ["numbered", "thapi"])
def test_rows_and_answers_within_a_limit_are_those_without(call, on_disk, style):
    options = ("-O", f"style={style}", "-O", "ops=200", "-O", "lost=0.02", "--seed", "3")
    assert call("sim", "levelzero", *options, "-o", "run.txt").status == 0
    for name, (command, *arguments) in COMMANDS.items():
        usual = call(command, "run.txt", *arguments)
        assert (usual.status, on_disk) == (0, []), usual.err
        limited = call(command, "run.txt", *arguments, "--memory", "8GiB")
        assert (limited.status, limited.out) == (usual.status, usual.out), name
        assert on_disk
        on_disk.clear()
    for output in ("parquet", "json"):
        for limit in ((), ("--memory", "8GiB")):
            assert call("convert", "run.txt", "-o", f"{len(limit)}.{output}", *limit).status == 0
    assert on_disk
    assert Path("2.json").read_bytes() == Path("0.json").read_bytes()
    usual, limited = lanescope.open("0.parquet").tables(), lanescope.open("2.parquet").tables()
    assert len(usual["levelzero_operations"]) > 150
    assert {name: list(table.rows()) for name, table in limited.items()} == {
        name: list(table.rows()) for name, table in usual.items()
    }


def peak(shell, *arguments):
    """Run a command within the least limit; its peak of memory, in MiB."""
    done = shell(*arguments, "--memory", "192MiB", "--quiet", program=["-c", PEAK])
    assert done.status == 0, done.err
    return int(done.err.split()[-1])


@pytest.mark.skipif(bool(SANITIZED), reason="sanitizers take memory of their own")
def test_a_text_is_not_in_memory_while_it_is_read(shell, tmp_path):
    record = "12:00:00.{:09} - host - vpid: 1, vtid: 1 - lttng_ust_ze:zeInit_{}: {{ {} }}\n".format
    calls = record(1, "entry", "") + record(2, "exit", "zeResult: ZE_RESULT_SUCCESS")
    (tmp_path / "run.txt").write_text(calls + ("#" * 9999 + "\n") * 20_000)
    assert peak(shell, "check", "run.txt") <= 192


def operations(count: int) -> str:
    """Return a text of as many fills, one after the other."""
    at = "12:00:00.{:09} - host - vpid: 1, vtid: 1 - ".format
    listed = "handle: 4096, context: 64, device: 16, ordinal: 0, index: 0, immediate: 1, in_order: 1, list_id: 1"
    device = "device: 16, ticks_per_second_num: 1000000000, ticks_per_second_den: 1"
    named = f'uuid: "{0:032}", name: "GPU"'
    bits = "timestamp_bits: 64, kernel_timestamp_bits: 64"
    timer = "{}lttng_ust_ze_properties:device_timer: {{ hDevice: 16, hostTimestamp: 0, deviceTimestamp: {} }}".format
    lines = [
        f"{at(1)}lanescope_ze:device: {{ {device}, {named}, {bits} }}",
        timer(at(2), 2),
        f"{at(3)}lanescope_ze:list: {{ {listed}, compute: 1 }}",
    ]
    for op in range(1, count + 1):
        begin, end = 1000 * op, 1000 * op + 500
        given = f'op_id: {op}, list_id: 1, signal: {op}, dst: "device", how: "INLINE", bytes: {op}'
        ticks = f"global_start: {begin}, global_end: {end}, context_start: {begin}, context_end: {end}"
        lines += [
            f'{at(begin - 400)}lanescope_ze:op: {{ {given}, api: "zeCommandListAppendMemoryFill" }}',
            f"{at(end + 100)}lanescope_ze:result: {{ op_id: {op}, run: 1, {ticks} }}",
        ]
    return "\n".join([*lines, timer(at(1000 * count + 700), 1000 * count + 700), ""])


@pytest.mark.skipif(bool(SANITIZED), reason="sanitizers take memory of their own")
def test_operations_are_on_disk_where_the_memory_is_limited(shell, tmp_path):
    (tmp_path / "run.txt").write_text(operations(110_000))
    assert peak(shell, "convert", "run.txt", "-o", "run.pftrace") <= 192
