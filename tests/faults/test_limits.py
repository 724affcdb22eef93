"""What a machine lacks or takes away while a capture is read and written: outputs are complete or absent.

``docs/explain/faults.md`` names each of these tests.
"""

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lanescope
from effort import some
from lanescope.cli import main
from lanescope.io import parquet

TARGETS = ("out.pftrace", "out.json", "out.parquet")


@pytest.fixture
def capture(tmp_path, monkeypatch):
    """Return the folder of a simulated capture of 20,000 slices, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    for name, content in lanescope.simulate("cuda", seed=1).files.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def started(*arguments, env=None, **options):
    """Start a command as a process of its own."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([sys.executable, "-m", "lanescope", *arguments], text=True, env=env, **pipes)


def ended(*arguments, **options):
    with started(*arguments, **options) as running:
        out, err = running.communicate(timeout=120)
    return running.returncode, out, err


def limited(kind, size):
    return lambda: resource.setrlimit(kind, (size, size))


def whole(target):
    """Return the number of slices of an output; reading fails where it is cut."""
    if target.endswith(".parquet"):
        return len(parquet.read(Path(target)).slices)
    return len(lanescope.open(target).slices)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_at_any_moment_leaves_a_whole_output_or_none(capture, target, number):
    begin = time.monotonic()
    assert ended("convert", "attention.npy", "-o", target)[0] == 0
    usual = time.monotonic() - begin
    slices = whole(target)
    assert slices == 19_008
    times = some(20)
    for moment in range(times):
        other = f"again{moment}{Path(target).suffix}"
        with started("convert", "attention.npy", "-o", other) as running:
            time.sleep(usual * (moment + 0.5) / times)
            running.send_signal(number)
            running.communicate(timeout=120)
        if Path(other).exists():
            assert whole(other) == slices, (moment, running.returncode)
        else:
            assert running.returncode != 0


@pytest.mark.parametrize("target", TARGETS)
def test_a_memory_limit_is_one_line_or_does_no_harm(capture, target):
    refused = 0
    for mebibytes in (64, 96, 128, 160, 200, 300, 400, 600, 900):
        limit = limited(resource.RLIMIT_AS, mebibytes << 20)
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        status, _, err = ended("convert", "attention.npy", "-o", target, "--force", preexec_fn=limit, env=env)
        assert "Traceback" not in err, (mebibytes, err)
        refused += status != 0
        if status:
            # Of 64 MiB, NumPy cannot even be imported; and DuckDB's import may end the process itself.
            is_ended = status == -signal.SIGSEGV and target.endswith(".parquet")
            assert mebibytes == 64 or is_ended or (status, "not enough memory" in err) == (3, True), (mebibytes, err)
            assert not Path(target).exists()
            continue
        assert whole(target) == 19_008
        break
    assert refused


def test_few_file_handles_are_one_line_or_do_no_harm(capture):
    seen = set()
    for handles in (5, 6, 8, 12, 64):
        limit = limited(resource.RLIMIT_NOFILE, handles)
        status, _, err = ended("convert", "attention.npy", "-o", "out.pftrace", "--force", preexec_fn=limit)
        assert "Traceback" not in err, (handles, err)
        seen.add(status)
        if status:
            assert not Path("out.pftrace").exists()
    assert 0 in seen


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("target", ["out.pftrace", "out.json"])
def test_a_write_that_fails_leaves_nothing(capture, target, number, monkeypatch, capfd):
    before = sorted(path.name for path in capture.iterdir())

    def fails(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", fails)
    monkeypatch.setattr(Path, "replace", fails)
    monkeypatch.setattr(os, "rename", fails)
    monkeypatch.setattr(os, "link", fails)
    status = main(["convert", "attention.npy", "-o", target])
    err = capfd.readouterr().err
    assert status == 2
    assert err.startswith("lanescope: error: ")
    assert os.strerror(number).lower() in err.lower()
    assert sorted(path.name for path in capture.iterdir()) == before


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="/proc is Linux's")
def test_a_folder_that_takes_no_files_is_one_line(capture):
    status, _, err = ended("convert", "attention.npy", "-o", "/proc/out.pftrace")
    assert status == 2
    assert err.startswith("lanescope: error: ")
    assert "Traceback" not in err


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2), (0, 1, 2)])
def test_closed_streams_do_no_harm(capture, closed):
    def close():
        for number in closed:
            os.close(number)

    status, _, err = ended("convert", "attention.npy", "-o", "out.pftrace", preexec_fn=close)
    assert "Traceback" not in err
    assert Path("out.pftrace").exists() == (status == 0)
    if status == 0:
        assert whole("out.pftrace") == 19_008


@pytest.mark.parametrize("home", [None, "/nowhere/at/all", ""])
def test_no_home_does_no_harm(capture, home):
    env = {name: value for name, value in os.environ.items() if name != "HOME" and not name.startswith("XDG_")}
    env |= {} if home is None else {"HOME": home}
    for arguments in (["info", "attention.npy"], ["convert", "attention.npy", "-o", "out.parquet", "--force"]):
        status, _, err = ended(*arguments, env=env)
        assert (status, "Traceback" in err) == (0, False), err
    assert whole("out.parquet") == 19_008


@pytest.mark.parametrize("change", ["cut", "grows", "replaced"])
def test_a_capture_that_changes_while_it_is_read_is_whole_or_refused(capture, change):
    path = Path("attention.npy")
    content = path.read_bytes()
    times = some(20)
    for moment in range(times):
        path.write_bytes(content)
        with started("convert", "attention.npy", "-o", "out.json", "--force") as running:
            time.sleep(1.0 * (moment + 0.5) / times)
            if change == "cut":
                os.truncate(path, 1000)
            elif change == "grows":
                with path.open("ab") as file:
                    file.write(content[-4096:])
            else:
                Path("new").write_bytes(content)
                Path("new").replace(path)
            _, err = running.communicate(timeout=120)
        assert running.returncode >= 0, (moment, running.returncode, err)
        assert "Traceback" not in err
