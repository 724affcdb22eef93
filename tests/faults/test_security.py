"""What a capture must never make lanescope do; ``SECURITY.md`` names each of these tests."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lanescope
from effort import OWN_MEMORY, SANITIZED, giving_back
from lanescope.families import registry

#: Runs a command, and prints what it did to the world besides reading: audit events of Python (PEP 578).
WATCHED = """
import json, os, sys
output = os.path.abspath(sys.argv.pop(1))
said = []
scratch = {"/dev/null", "/dev/tty"}
starts = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn", "pty.spawn")
def watch(event, args):
    if event.startswith(starts) or event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "urllib.Request"):
        said.append([event, repr(args)[:200]])
    elif event == "open" and isinstance(args[0], str):
        path, mode, flags = os.path.abspath(args[0]), args[1] or "", args[2] or 0
        writes = set(mode) & set("wxa+") or flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        # An output is written next to its place, and renamed.
        unfinished = os.path.join(os.path.dirname(output), ".lanescope-")
        allowed = path in scratch or not output.endswith("none") and (path == output or path.startswith(unfinished))
        if writes and not allowed:
            said.append([event, path])
    elif event in ("os.remove", "os.rename", "shutil.rmtree", "os.chmod", "os.symlink", "os.link"):
        if not all(os.path.dirname(os.path.abspath(str(each))) == os.path.dirname(output) for each in args[:1]):
            said.append([event, repr(args)[:200]])
    elif event == "pickle.find_class" or (event == "exec" and str(args[0].co_filename).startswith(os.getcwd())):
        said.append([event, repr(args)[:200]])
sys.addaudithook(watch)
from lanescope.cli import main
status = main(sys.argv[1:])
print(json.dumps([status, said]), file=sys.stderr)
"""


def watched(output, *arguments):
    """Return the status of a command, and what it did; as for its script, Python does not search the folder."""
    done = subprocess.run(
        [sys.executable, "-B", "-P", "-c", WATCHED, str(output), *arguments],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return json.loads(done.stderr.splitlines()[-1])


@pytest.mark.parametrize("family", sorted(registry.BUILTIN))
def test_reading_a_capture_starts_nothing_and_writes_only_the_output(family, tmp_path, monkeypatch):
    folder = tmp_path / "capture"
    folder.mkdir()
    monkeypatch.chdir(folder)
    # Next to it lie what Python, DuckDB and loaders take on their own, if they look where they should not.
    for name in ("numpy.py", "duckdb.py", "lanescope.py", "sitecustomize.py", "conftest.py"):
        Path(name).write_text("raise SystemExit(99)")
    Path(".duckdbrc").write_text("select 1/0;")
    files = lanescope.simulate(family, seed=1).files
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)
    main_file = next(iter(files))
    for output, *arguments in (
        ("none", "info", main_file),
        ("none", "check", main_file, "--fail-on", "never"),
        ("out.json", "convert", main_file, "-o", "out.json"),
        ("out.pftrace", "convert", main_file, "-o", "out.pftrace"),
    ):
        assert watched(folder / output, *arguments) == [0, []], arguments


def test_what_is_watched_is_seen(tmp_path):
    """The watch itself: a command that writes elsewhere is found."""
    (tmp_path / "attention.npy").write_bytes(lanescope.simulate("cuda", seed=1, tiles=1).files["attention.npy"])
    status, done = watched(
        tmp_path / "folder/none", "convert", str(tmp_path / "attention.npy"), "-o", str(tmp_path / "out.json")
    )
    assert status == 0
    assert any(".lanescope-" in place for _, place in done)


@pytest.mark.skipif(SANITIZED == "thread", reason=OWN_MEMORY)
def test_a_small_file_that_unpacks_to_much_takes_little_memory(tmp_path):
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(256):
            file.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 20

    # A child begins with the peak of its parent, but not with the pages: the peak of these is in the status file.
    program = (
        "import sys; from pathlib import Path; from lanescope.cli import main; status = main(sys.argv[1:]); "
        "print(Path('/proc/self/status').read_text()); sys.exit(status)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, "info", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=giving_back(),
    )
    assert run.returncode == 3
    assert "Traceback" not in run.stderr
    assert int(re.search(r"^VmHWM:\s+(\d+) kB$", run.stdout, re.MULTILINE)[1]) < 200 << 10
