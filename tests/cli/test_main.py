"""Properties of every command: exit status, imports, and no traceback for users."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from error_text import is_one_error
from lanescope import cli
from lanescope.declaration import replace
from lanescope.errors import InternalError
from lanescope.families import Argument, Command, registry
from lanescope.view.formatting import escape

HEAVY = ("numpy", "duckdb", "rich", "msgspec", "isal", "importlib.metadata", "lanescope.trace", "lanescope.devices")


@pytest.mark.parametrize("argument", ["--help", "-h", "--version"])
def test_help_and_version_import_nothing_heavy(argument):
    program = (
        "import sys\nfrom lanescope.cli import main\nstatus = main(sys.argv[1:])\n"
        f"found = [name for name in {HEAVY} if name in sys.modules]\n"
        "assert not found, found\nsys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", program, argument], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("lanescope 0." if argument == "--version" else "usage: lanescope")
    assert done.stderr == ""


def test_the_help_lists_every_verb(call):
    done = call("--help")
    assert done.status == 0
    of_families = {verb: line for verb, (_, line) in cli.FAMILY_COMMANDS.items()}
    for verb, line in {**cli.COMMANDS, **of_families}.items():
        assert f"  {verb} " in done.out
        assert line.split()[0] in done.out


def test_piped_reports_do_without_the_terminal_and_sql(shell, run_file):
    program = (
        "import sys\nfrom lanescope.cli import main\nassert main(['info', 'run.blink']) == 0\n"
        "found = [name for name in ('rich', 'duckdb', 'msgspec') if name in sys.modules]\nassert not found, found"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], cwd=run_file.parent, env=environment, check=True, stdout=-3)


def test_without_a_verb_the_help_is_shown(call):
    done = call()
    assert (done.status, done.out) == (2, "")
    assert all(verb in done.err for verb in cli.COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "unknown command 'nope' (choose from info, "),
        (("inof", "x.bin"), "\n  hint: did you mean 'info'?"),
        (("summary", "run.blink", "--by", "nmae"), "\n  hint: did you mean 'name'?"),
        (("--nope",), "the following arguments are required: COMMAND"),
        (("info",), "the following arguments are required: INPUT\n  hint: see lanescope info --help"),
        (("info", "a", "b"), "unrecognized arguments: b\n  hint: see lanescope info --help"),
        (("info", "x.bin", "--nope"), "unrecognized arguments: --nope"),
        (("info", "x.bin", "--stric"), "unrecognized arguments: --stric"),
        (("info", "run.blink", "-O", "lamps"), "invalid -O 'lamps': expected NAME=VALUE"),
        (("info", "run.blink", "-O", "lamp=a"), "unknown option 'lamp' for blinker (available: lamps)"),
        (("info", "run.blink", "-O", "lamps=a", "--lamps", "b"), "--lamps is specified twice"),
        (("info", "run.blink", "--family", "nope"), "unknown device family 'nope' (choose from "),
        (("dump", "run.blink", "--limit", "-1"), "invalid value '-1' for --limit: must be a non-negative integer"),
        (("dump", "run.blink", "--stage", "none"), "invalid value 'none' for --stage (choose from "),
        (
            ("check", "run.blink", "--select", "LS9"),
            "unknown rule 'LS9'\n  hint: use rule codes or prefixes, e.g. LS101",
        ),
        (("check", "--explain", "XX"), "unknown rule 'XX'"),
        (("summary", "run.blink", "--by", "x"), "invalid value 'x' for --by (choose from name, "),
        (("convert", "run.blink"), "the following arguments are required: -o/--output"),
        (
            ("convert", "run.blink", "-o", "out.txt"),
            "cannot infer the format from '.txt'\n  hint: use --format or one of .pftrace",
        ),
        (("sim", "nope", "-o", "x"), "unknown device family 'nope' (choose from "),
        (("sim", "blinker", "--changes", "many", "-o", "x"), "invalid value 'many' for --changes: "),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(call, run_file, arguments, message):
    done = call(*arguments)
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert done.err.startswith("lanescope: error: ")
    assert is_one_error(done.err)


def test_a_bug_of_ours_is_one_line_and_exit_70(call, run_file, monkeypatch):
    def broken(*_):
        raise KeyError("x\x1b[2J")

    monkeypatch.setattr("lanescope.cli.commands.info.run", broken)
    done = call("info", "run.blink")
    assert (done.status, done.out) == (70, "")
    assert done.err == (
        "lanescope: internal error: KeyError: 'x\\x1b[2J'\n"
        "  hint: rerun with LANESCOPE_DEBUG=1 and report the traceback\n"
    )
    monkeypatch.setenv("LANESCOPE_DEBUG", "1")
    done = call("info", "run.blink")
    assert done.status == 70
    assert done.err.startswith("Traceback (most recent call last)")


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (InternalError("7 bytes are nowhere"), 70, "internal error: 7 bytes are nowhere\n  hint: rerun"),
        (MemoryError(), 3, "error: not enough memory for this capture"),
        (OSError(28, "No space left on device"), 2, "error: no space left on device\n  hint: use another path"),
        (PermissionError(13, "Permission denied", "out.bin"), 2, "error: out.bin: permission denied"),
        (RecursionError("too deep"), 70, "internal error: RecursionError: too deep"),
    ],
)
def test_whatever_happens_is_one_line(call, monkeypatch, run_file, error, status, message):
    def broken(*_):
        raise error

    monkeypatch.setattr("lanescope.cli.commands.info.run", broken)
    done = call("info", "run.blink")
    assert (done.status, is_one_error(done.err)) == (status, True)
    assert done.err.startswith(f"lanescope: {message}")


def test_a_broken_pipe_is_silent(plugin_path, shell, call, tmp_path):
    assert call("sim", "blinker", "--changes", 40_000, "-o", "run.blink").status == 0
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(plugin_path)}
    with subprocess.Popen(
        [sys.executable, "-m", "lanescope", "sql", "run.blink", "select * from slices"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout.readline().split()[:2] == [b"id", b"track_id"]
        running.stdout.close()
        assert (running.wait(60), running.stderr.read()) == (0, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["doctor"], ["info", "run.blink"]])
def test_a_full_disk_is_one_line(plugin_path, run_file, arguments, unbuffered):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(plugin_path), "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "lanescope", *arguments],
            cwd=run_file.parent,
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    message = "lanescope: error: no space left on device\n  hint: use another path, or free some space\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_no_standard_streams_at_all(plugin_path, run_file):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(plugin_path)}
    command = f'exec "{sys.executable}" -m lanescope info run.blink >&- 2>&- <&-'
    done = subprocess.run(["sh", "-c", command], cwd=run_file.parent, env=environment, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_with_128_and_its_number(start, tmp_path, number, status):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    running = start("-m", "lanescope", "info", "pipe")
    writer = os.open(pipe, os.O_WRONLY)  # comes back when the other end is open
    running.send_signal(number)
    assert (running.wait(60), running.stderr.read()) == (status, "")
    os.close(writer)


def test_interrupting_a_query_ends_it_at_once(plugin_path, run_file):
    """The shell reports 130 for a process that SIGINT has ended, as for one that exits with 130."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(plugin_path)}
    query = "select sum(a.range * b.range) from range(1000000000) a, range(100000) b"
    with subprocess.Popen(
        [sys.executable, "-m", "lanescope", "sql", "run.blink", query],
        cwd=run_file.parent,
        env=environment,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as running:
        status = Path(f"/proc/{running.pid}/status")
        while "SigCgt:" in (text := status.read_text()) and int(text.split("SigCgt:")[1].split()[0], 16) & 2 == 0:
            time.sleep(0.01)  # Python has not started yet
        while int(status.read_text().split("SigCgt:")[1].split()[0], 16) & 2:
            time.sleep(0.01)  # the query has not started yet
        running.send_signal(signal.SIGINT)
        assert (running.wait(60), running.stderr.read()) == (-signal.SIGINT, b"")


def test_any_terminal_can_be_written_to(shell, run_file):
    done = shell("sql", "run.blink", "select 'µ' as \"größe\"", env={"PYTHONIOENCODING": "ascii"})
    assert (done.status, done.out, done.err) == (0, "gr\\xf6\\xdfe\n-----------\n\\xb5\n1 row, 1 column\n", "")


def test_families_bring_commands_of_their_own(call, monkeypatch, plugins, run_file):
    def count(context, values):
        """Count the lamps."""
        trace = context.open(values["input"])
        context.show(("lamps",), [[sum(trace.tracks["role"] == "lamp")]])
        context.echo("a\x1b[2Jb")
        return values["status"]

    arguments = (Argument("--status", "exit status", int, 0),)
    command = Command("blinker-count", "count lamps", count, arguments, takes_capture=True)
    (blinker,) = [family for family in registry.plugin_families() if family.name == "blinker"]
    monkeypatch.setattr(registry, "plugin_families", lambda: (replace(blinker, commands=(command,)),))
    assert call("blinker-count", "run.blink", "--lamps", "a,b", "--status", "1") == (
        1,
        "lamps\n─────\n    4\n",
        "a\\x1b[2Jb\n",
    )
    assert "Count the lamps." in call("blinker-count", "--help").out
    assert "unrecognized arguments: --by" in call("blinker-count", "run.blink", "--by").err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain name", "plain name"),
        ("größe µs 漢字", "größe µs 漢字"),
        ("a\tb\nc\rd", r"a\x09b\x0ac\x0dd"),
        ("\x1b]0;owned\x07", r"\x1b]0;owned\x07"),
        ("\x9b31m\x7f", r"\x9b31m\x7f"),
        ("a\u202eb\u2066c\u200bd\u2028e", r"a\u202eb\u2066c\u200bd\u2028e"),
        (os.fsdecode(b"r\xff"), r"r\xff"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_text_is_escaped(text, shown):
    assert escape(text) == shown
