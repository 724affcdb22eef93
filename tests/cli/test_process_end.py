"""The process of a command ends at once; nothing that was written, registered or running may be lost by it."""

import sys
from pathlib import Path

import pytest

#: Runs a command line as the installed program does; LATER is reached only where the interpreter ends as usual.
PROGRAM = """
import atexit, os, sys, threading, time
from lanescope import cli
{before}
status = cli.program()
os.write(2, b"later")
sys.exit(status)
"""


@pytest.fixture
def end(shell):
    """Return a function that runs a command line after some code, and tells how its process ended."""

    def end(*arguments, before="", flags=(), **options):
        return shell("-c", PROGRAM.format(before=before), *arguments, program=flags, **options)

    return end


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4, 70, 130, 143])
def test_the_exit_status_is_the_command_s(end, status):
    done = end("--version", before=f"cli._run = lambda arguments: {status}")
    assert (done.status, done.out, done.err) == (status, "", "")


@pytest.mark.parametrize(
    ("raised", "status"), [("KeyboardInterrupt()", 130), ("cli.EndedBySignal(15)", 143), ("SystemExit(2)", 2)]
)
def test_a_command_that_is_ended_keeps_its_status(end, raised, status):
    before = f"def run(arguments): raise {raised}\ncli._run = run"
    assert end("--version", before=before) == (status, "", "")


def test_all_output_gets_through_a_pipe(end, call, run_file):
    expected = call("dump", "run.blink", "--stage", "record")
    done = end("dump", "run.blink", "--stage", "record")
    assert len(expected.out) > 100
    assert done == expected


def test_all_output_gets_into_a_file(end, call, run_file):
    expected = call("info", "run.blink")
    with run_file.with_name("said.txt").open("wb") as out:
        assert end("info", "run.blink", stdout=out).status == 0
    assert run_file.with_name("said.txt").read_text() == expected.out != ""


def test_a_full_disk_is_an_error(end, run_file):
    with Path("/dev/full").open("wb") as full:
        done = end("info", "run.blink", stdout=full)
    assert (done.status, done.err.splitlines()[0]) == (2, "lanescope: error: no space left on device")


def test_output_that_cannot_be_written_at_the_very_end_is_an_error(end):
    """As the interpreter has it: status 120."""
    with Path("/dev/full").open("wb") as full:
        done = end("--version", before="cli._run = lambda _: 0; atexit.register(print, 'bye')", stdout=full)
    assert done.status == 120
    assert "No space left on device" in done.err


def test_functions_of_atexit_run_and_what_they_print_appears(end):
    done = end("--version", before="atexit.register(print, 'bye')")
    assert (done.status, done.out.splitlines()[-1], done.err) == (0, "bye", "")


def test_a_temporary_folder_goes(end, tmp_path):
    before = "import tempfile; kept = tempfile.TemporaryDirectory(dir='.')"
    assert end("--version", before=before).status == 0
    assert list(tmp_path.iterdir()) == []


def test_a_thread_that_works_is_waited_for(end, tmp_path):
    before = "threading.Thread(target=lambda: (time.sleep(0.3), open('made', 'w').close())).start()"
    assert end("--version", before=before).status == 0
    assert (tmp_path / "made").exists()


def test_a_daemon_is_not_waited_for(end):
    before = "threading.Thread(target=time.sleep, args=(10_000,), daemon=True).start()"
    assert end("--version", before=before).err == ""


@pytest.mark.parametrize("before", ["sys.settrace(lambda *_: None)", "sys.setprofile(lambda *_: None)"])
def test_who_traces_or_profiles_sees_the_end(end, before):
    assert end("--version", before=before).err == "later"


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="sys.monitoring requires Python 3.12")
def test_who_monitors_sees_the_end(end):
    assert end("--version", before="sys.monitoring.use_tool_id(1, 'test')").err == "later"


@pytest.mark.parametrize(("flags", "env"), [(["-i"], {}), ([], {"PYTHONINSPECT": "1"})])
def test_where_a_prompt_is_asked_for_the_process_goes_on(end, flags, env):
    assert "later" in end("no-such-command", flags=flags, env=env).err


def test_the_function_for_callers_in_python_returns(call):
    assert call("--version").status == 0
