"""Traces by LTTng's own tools: a program with tracepoints, recorded by a session of its own."""

import fcntl
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = ROOT / ".tools/bin"
#: LTTng and babeltrace2 that write CTF 2.
NEWEST = ROOT / ".tools/lttng-newest/bin"
_DEBIAN = ROOT / ".tools/debian/usr"
_SOURCES = Path(__file__).parent / "lttng"
_NOBODY = 65534


def available():
    """Return whether LTTng is there, and a C compiler."""
    headers = [_DEBIAN / "include", *(_DEBIAN / "include").glob("*")]
    found = any((folder / "lttng/tracepoint.h").is_file() for folder in headers)
    return found and (BIN / "lttng").exists() and shutil.which("gcc") is not None


def build(folder):
    """Compile the program; return its path."""
    libraries = next((_DEBIAN / "lib").glob("*-linux-gnu"))
    program = folder / "program"
    includes = [f"-I{_SOURCES}", f"-I{_DEBIAN / 'include'}", f"-I{_DEBIAN / 'include' / libraries.name}"]
    links = [f"-L{libraries}", "-llttng-ust", "-llttng-ust-common", "-llttng-ust-tracepoint", "-ldl", "-pthread"]
    command = ["gcc", "-O1", *includes, _SOURCES / "program.c", "-o", program, *links, "-Wl,--allow-shlib-undefined"]
    subprocess.run(command, check=True, capture_output=True)
    return program


def record(folder, program, *arguments, **options):
    """Record a program as ``_record`` does, one at a time: daemons of one user get into each other's way."""
    with (Path(tempfile.gettempdir()) / f"lanescope-lttng-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _record(folder, program, *arguments, **options)


def _run(command, daemon, **options):
    """Run a program; whenever it stops itself, hold the daemon with its consumers, or let them go on if they are held.

    Buffers that are not emptied overflow on every machine, however fast it is.
    """
    program = subprocess.Popen(command, **options)
    for next_one in itertools.cycle([signal.SIGSTOP, signal.SIGCONT]):
        _, status = os.waitpid(program.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
        os.killpg(daemon.pid, next_one)
        program.send_signal(signal.SIGCONT)
    program.returncode = os.waitstatus_to_exitcode(status)
    assert program.returncode == 0


def _record(folder, program, *arguments, channel=(), contexts=("vpid", "vtid"), setup=(), newest=False):
    """Record a program; return the folder of the traces.

    Args:
        folder: an empty one, in folders that all users may enter (those of pytest are not).
        program: what to run.
        arguments: of the program.
        channel: options of ``lttng enable-channel``.
        contexts: what to add to all events.
        setup: further commands of lttng, each a sequence of arguments.
        newest: whether by the newest LTTng, in CTF 2.
    """
    libraries = next((_DEBIAN / "lib").glob("*-linux-gnu"))
    home = folder / "home"
    home.mkdir()
    environment = {
        **os.environ,
        "HOME": str(home),
        "LTTNG_HOME": str(home),
        "LD_LIBRARY_PATH": str(libraries),
        "LTTNG_UST_REGISTER_TIMEOUT": "10000",
    }
    tools, create, run = BIN, (), [program]
    if newest:
        # It has libraries of its own.
        tools, create, run = NEWEST, ("--trace-format=ctf-2",), [NEWEST / "run", program]
        del environment["LD_LIBRARY_PATH"]
    # A daemon of root would be the machine's only one.
    options = {"env": environment, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    if os.getuid() == 0:
        for path in (folder, home):
            os.chown(path, _NOBODY, _NOBODY)
        options |= {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
    output = folder / "traces"
    daemon = subprocess.Popen(
        [tools / "lttng-sessiond", "--no-kernel", "--pidfile", home / "pid"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        **{name: options[name] for name in ("user", "group", "extra_groups") if name in options},
    )
    try:
        deadline = time.monotonic() + 20
        while not (home / "pid").exists() and time.monotonic() < deadline:
            time.sleep(0.02)

        def lttng(*words):
            made = subprocess.run(
                [tools / "lttng", "--no-sessiond", *words], stderr=subprocess.PIPE, timeout=60, **options
            )
            assert made.returncode == 0, (words, made.stderr)

        while True:
            try:
                lttng("create", "test", "--output", output, *create)
                break
            except AssertionError:
                # It may not listen yet.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        lttng("enable-channel", "-u", *channel, "c")
        for context in contexts:
            lttng("add-context", "-u", "-c", "c", "-t", context)
        for words in setup:
            lttng(*words)
        lttng("enable-event", "-u", "-c", "c", "program:*")
        lttng("start")
        _run([*run, *arguments], daemon, stderr=subprocess.DEVNULL, **options)
        lttng("stop")
        lttng("destroy")
    finally:
        # With its consumers, which are of its session.
        os.killpg(daemon.pid, signal.SIGTERM)
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()
    return output
