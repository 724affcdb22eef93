"""Every command that reads captures takes a limit on memory, and refuses one that no work can hold."""

import os

import pytest

from lanescope import cli

#: Arguments of commands that need more than a capture.
FURTHER = {
    "convert": ("-o", "out.parquet"),
    "report": ("-o", "out.html"),
    "diff": ("run.npy",),
    "align": ("run.npy",),
    "ingest": ("-o", "fleet"),
    "sql": ("select 1",),
    "baseline": (),
}
#: Commands that read no capture.
OTHERS = {"sim", "demo", "completion"}


@pytest.mark.parametrize("command", sorted(set(cli.COMMANDS) - OTHERS))
def test_sizes_that_no_work_can_hold_are_refused(call, command):
    assert call("sim", "cuda", "-O", "tiles=1", "-o", "run.npy").status == 0
    first = ("check", "kept") if command == "baseline" else ()
    done = call(command, *first, "run.npy", *FURTHER.get(command, ()), "--memory", "1MiB")
    assert done.status == 2
    assert "--memory 1MiB is too small" in done.err
    assert not os.path.exists("fleet")  # noqa: PTH110


@pytest.mark.parametrize("command", sorted(set(cli.FAMILY_COMMANDS) - {"record"}))
def test_commands_of_families_refuse_them_too(call, command):
    first = {"aie-wavediff": ("run.vcd",), "cuda-layout": ("check",)}.get(command, ())
    done = call(command, *first, "run.bin", "--memory", "1MiB")
    assert done.status == 2
    assert "--memory 1MiB is too small" in done.err


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")  # noqa: PTH110
@pytest.mark.parametrize("command", ["check", "summary", "phases", "gaps", "explain", "critical-path", "diff", "info"])
def test_answers_within_a_limit_are_those_without(call, command):
    assert call("sim", "cuda", "-O", "tiles=2", "-o", "run.npy").status == 0
    arguments = (command, "run.npy", *FURTHER.get(command, ()), "--json")
    limited, usual = call(*arguments, "--memory", "8GiB"), call(*arguments)
    assert limited.out == usual.out
    assert limited.status == usual.status
