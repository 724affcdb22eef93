"""Commands that end early, by a signal or on a full disk: nothing unfinished stays, nothing old is lost."""

import os
import resource
import signal

import pytest

from error_text import is_one_error
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.io import parquet

#: Runs a command line whose first write says so and goes on for ever; what is written later is written.
STOPPED = """
import sys, time
from lanescope import cli
from lanescope.io import atomic_file, parquet

stopped = []

def stop():
    if not stopped:
        stopped.append(True)
        print("writing", flush=True)
        while True:
            time.sleep(0.01)

def write(self, data, written=atomic_file._Raw.write):
    stop()
    return written(self, data)

def write_table(*arguments, written=parquet.write_table):
    written(*arguments)
    stop()

atomic_file._Raw.write = write
parquet.write_table = write_table
sys.exit(cli.main(sys.argv[1:]))
"""
#: The same, and the first removal of an unfinished output hangs.
HANGING = STOPPED.replace(
    "atomic_file._Raw.write = write",
    """
removed = []

def remove(path, removing=atomic_file._remove):
    if not removed:
        removed.append(True)
        print("removing", flush=True)
        while True:
            time.sleep(0.01)
    removing(path)

atomic_file._remove = remove
atomic_file._Raw.write = write
""",
)
#: What writes, and what is there before with --force.
WRITERS = [
    ("convert", "run.blink", "-o", "out.pftrace"),
    ("convert", "run.blink", "-o", "out.json"),
    ("convert", "run.blink", "-o", "out.json.gz"),
    ("convert", "run.blink", "-o", "out.vcd"),
    ("convert", "run.blink", "-o", "out.parquet"),
    ("convert", "tasks.json", "-o", "out.json", "--format", "swimlane"),
    ("sim", "blinker", "-o", "out.blink"),
    ("aie-config", "config.json", "-o", "out.mlir"),
]
CONFIG = '{"device": "aie2", "tiles": [{"col": 0, "row": 2, "type": "core", "events": ["LOCK_STALL"]}]}'


@pytest.fixture
def writers_input(run_file):
    """Write what the writers read beside ``run.blink``."""
    family = registry.family("ascend")
    options = resolve_options(family.sim_options, {"tasks": 4, "deps": False, "names": False}, what="test")
    simulated = family.simulate(options, 1).files
    run_file.with_name("tasks.json").write_bytes(next(iter(simulated.values())))
    run_file.with_name("config.json").write_text(CONFIG)
    return run_file.parent


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("arguments", WRITERS, ids=" ".join)
def test_a_signal_removes_what_is_unfinished(start, writers_input, arguments, number, status):
    before = names(writers_input)
    running = start("-c", STOPPED, *arguments)
    assert running.stdout.readline() == "writing\n", running.stderr.read()
    assert names(writers_input) != before, "nothing is being written: this test would show nothing"
    running.send_signal(number)
    assert (running.wait(60), running.stderr.read()) == (status, "")
    assert names(writers_input) == before


def test_sigterm_ends_what_was_told_to_ignore_sigint(start, run_file):
    """As a shell without job control tells what it starts in the background."""
    running = start("-c", STOPPED, *WRITERS[0], preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert running.stdout.readline() == "writing\n"
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGTERM)
    assert (running.wait(60), running.stderr.read()) == (143, "")
    assert names(run_file.parent) == ["run.blink", "run.blink.truth.json"]


def test_a_second_signal_ends_what_hangs_and_leaves_nothing(start, run_file):
    running = start("-c", HANGING, *WRITERS[0])
    assert running.stdout.readline() == "writing\n"
    running.send_signal(signal.SIGTERM)
    assert running.stdout.readline() == "removing\n"
    running.send_signal(signal.SIGTERM)
    assert running.wait(60) == -signal.SIGTERM
    assert names(run_file.parent) == ["run.blink", "run.blink.truth.json"]


def test_an_interrupted_query_of_parquet_is_no_bug(start, run_file):
    """DuckDB replaces the exception of a signal's handler by one of its own."""
    program = STOPPED.replace("    stop()\n    return", "    return").replace(
        "        while True:\n            time.sleep(0.01)",
        "        import duckdb\n        duckdb.sql('select sum(a.range * b.range) from range(1000000000) a,"
        " range(100000) b').fetchall()",
    )
    running = start("-c", program, "convert", "run.blink", "-o", "out.parquet")
    assert running.stdout.readline() == "writing\n"
    running.send_signal(signal.SIGINT)
    assert (running.wait(60), running.stderr.read()) == (130, "")
    assert names(run_file.parent) == ["run.blink", "run.blink.truth.json"]


def room_for(size):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize("arguments", WRITERS, ids=" ".join)
def test_no_room_is_one_line_that_names_the_output(start, writers_input, arguments):
    before = names(writers_input)
    running = start("-m", "lanescope", *arguments, preexec_fn=room_for(8))
    _, said = running.communicate(timeout=60)
    target = arguments[arguments.index("-o") + 1]
    where, _, message = said.partition(": file")
    assert message == " too large\n  hint: use another path, or free some space\n"
    # A simulation has a file of the truth as well.
    assert where in (f"lanescope: error: {target}", f"lanescope: error: {target}.truth.json")
    assert running.returncode == 2
    assert names(writers_input) == before


@pytest.mark.parametrize("arguments", WRITERS[:-1], ids=" ".join)
def test_what_is_replaced_stays_where_writing_fails(call, start, writers_input, arguments):
    assert call(*arguments).status == 0
    target = writers_input / arguments[arguments.index("-o") + 1]
    content = {path: path.read_bytes() for path in (target, *target.rglob("*")) if path.is_file()}
    before = names(writers_input)
    running = start("-m", "lanescope", *arguments, "--force", preexec_fn=room_for(8))
    assert running.wait(60) == 2
    assert {path: path.read_bytes() for path in content} == content
    assert names(writers_input) == before


# --- Parquet ------------------------------------------------------------------------------------------------------


def test_folders_with_the_names_of_ours_are_left_alone(call, run_file):
    """What ``convert`` once took for its own, and removed."""
    mine = run_file.with_name(".a.parquet.new")
    mine.mkdir()
    (mine / "precious").touch()
    assert call("convert", "run.blink", "-o", "a.parquet").status == 0
    assert call("convert", "run.blink", "-o", "a.parquet", "--force").status == 0
    assert (mine / "precious").exists()
    assert parquet.is_folder(run_file.with_name("a.parquet"))


@pytest.mark.parametrize(
    "name", ["notes.txt", "slices/notes.txt", "slices/part-00000.parquet.bak", "more/part-0.parquet"]
)
def test_a_folder_to_which_something_was_added_is_not_replaced(call, run_file, name):
    assert call("convert", "run.blink", "-o", "a.parquet").status == 0
    added = run_file.with_name("a.parquet") / name
    added.parent.mkdir(exist_ok=True)
    added.write_text("precious")
    done = call("convert", "run.blink", "-o", "a.parquet", "--force")
    assert (done.status, "which is not written by lanescope" in done.err) == (2, True)
    assert added.read_text() == "precious"


@pytest.mark.parametrize("content", ["{}", "[]", '{"schema": "mine/1", "tables": {}}', "no JSON", "[" * 100_000])
def test_a_folder_with_a_metadata_file_of_others_is_not_replaced(call, run_file, content):
    folder = run_file.with_name("a.parquet")
    folder.mkdir()
    (folder / parquet.METADATA).write_text(content)
    done = call("convert", "run.blink", "-o", "a.parquet", "--force")
    assert (done.status, "is a directory not written by lanescope" in done.err) == (2, True)
    assert (folder / parquet.METADATA).read_text() == content


def test_a_file_is_replaced_by_a_folder_when_told(call, run_file):
    out = run_file.with_name("a.parquet")
    out.write_text("old")
    assert call("convert", "run.blink", "-o", "a.parquet").status == 2
    assert out.read_text() == "old"
    assert call("convert", "run.blink", "-o", "a.parquet", "--force").status == 0
    assert parquet.is_folder(out)
    assert names(run_file.parent) == ["a.parquet", "run.blink", "run.blink.truth.json"]


# --- where nothing can be written -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("convert", "run.blink", "-o", "/dev/null", "--format", "chrome"), "'/dev/null' is a device or a pipe"),
        (("sim", "blinker", "-o", "/dev/null"), "'/dev/null' is a device or a pipe"),
        (("sim", "blinker", "-o", "pipe"), "'pipe' is a device or a pipe"),
        (("sim", "blinker", "-o", "-"), "cannot write several files to standard output"),
        (("sim", "blinker", "-o", "/dev/stdout"), "cannot write several files to standard output"),
        (("demo", "-o", "-"), "cannot write several files to standard output"),
        (("record", "-o", "-", "--", "true"), "cannot write a recording to standard output"),
        (("aie-config", "config.json", "-o", "pipe", "--to", "json"), "'pipe' is a device or a pipe"),
        (("convert", "run.blink", "-o", "."), "cannot infer the format from '.'"),
        (("convert", "run.blink", "-o", ".", "--format", "chrome"), "'.' is a directory"),
        (("convert", "run.blink", "-o", "-"), "writing to standard output requires --format"),
        (
            ("convert", "run.blink", "-o", "-", "--format", "parquet"),
            "cannot write a Parquet dataset to standard output",
        ),
        (("convert", "run.blink", "-o", "loop.json"), "loop.json: too many levels of symbolic links"),
        (("convert", "run.blink", "-o", "loop.parquet"), "loop.parquet: too many levels of symbolic links"),
        (("convert", "run.blink", "-o", "x" * 300 + ".json"), "x" * 300 + ".json: file name too long"),
        (("convert", "run.blink", "-o", "run.blink/x.json"), "run.blink/x.json: not a directory"),
    ],
)
def test_outputs_that_cannot_be_are_refused(call, run_file, arguments, message):
    os.mkfifo(run_file.with_name("pipe"))
    run_file.with_name("config.json").write_text(CONFIG)
    for name in ("loop.json", "loop.parquet"):
        run_file.with_name(name).symlink_to(name)
    before = names(run_file.parent)
    for force in ((), ("--force",)) if arguments[0] in ("convert", "sim", "aie-config") else ((),):
        done = call(*arguments, *force)
        assert (done.status, done.out, is_one_error(done.err)) == (2, "", True)
        assert done.err.startswith(f"lanescope: error: {message}")
    assert names(run_file.parent) == before


def test_standard_output_has_other_names_too(shell, run_file):
    expected = shell("convert", "run.blink", "-o", "-", "--format", "chrome", check=True).out
    assert expected.startswith("{")
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        assert shell("convert", "run.blink", "-o", name, "--format", "chrome", check=True).out == expected
