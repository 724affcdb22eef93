"""What a machine lacks or takes away while a capture is read and written: outputs are complete or absent.

``docs/explain/faults.md`` names each of these tests.
"""

import errno
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lanescope
from effort import OWN_MEMORY, SANITIZED, some
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


@pytest.mark.skipif(bool(SANITIZED), reason=OWN_MEMORY)
@pytest.mark.parametrize("target", TARGETS)
def test_a_memory_limit_is_one_line_or_does_no_harm(capture, target):
    refused = 0
    for mebibytes in (64, 96, 128, 180, 220, 260, 350, 500, 650, 900, 3000):
        limit = limited(resource.RLIMIT_AS, mebibytes << 20)
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        status, _, err = ended("convert", "attention.npy", "-o", target, "--force", preexec_fn=limit, env=env)
        assert "Traceback" not in err, (mebibytes, err)
        refused += status != 0
        if status:
            # Of 64 MiB, NumPy cannot even be imported.
            assert mebibytes == 64 or (status, "not enough memory" in err) == (3, True), (mebibytes, err)
            assert not Path(target).exists()
            continue
        assert whole(target) == 19_008
        break
    assert refused


@pytest.mark.skipif(bool(SANITIZED), reason="what starts that interpreter needs more of them")
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


def cut(path, _):
    os.truncate(path, 1000)


def grow(path, newer):
    with path.open("ab") as file:
        file.write(newer[-4096:])


def replace(path, newer):
    Path("new").write_bytes(newer)
    Path("new").replace(path)


def write_over(path, newer):
    """Change the second half first: what is read from the start on would be of both."""
    with path.open("r+b", buffering=0) as file:
        half = len(newer) // 2
        file.seek(half)
        file.write(newer[half:])
        file.seek(0)
        file.write(newer[:half])


@pytest.mark.parametrize("change", [cut, grow, replace, write_over])
def test_a_capture_that_changes_while_it_is_read_is_one_of_both_or_refused(capture, change):
    path = Path("attention.npy")
    content = path.read_bytes()
    other = dict(lanescope.simulate("cuda", seed=2).files)["attention.npy"]
    assert len(other) == len(content)
    assert other != content
    answers = set()
    for data in (content, other, content + other[-4096:]):
        path.write_bytes(data)
        if ended("convert", "attention.npy", "-o", "out.json", "--force")[0] == 0:
            answers.add(slices_of("out.json"))
    times = some(20)
    for moment in range(times):
        path.write_bytes(content)
        with started("convert", "attention.npy", "-o", "out.json", "--force") as running:
            time.sleep(1.0 * (moment + 0.5) / times)
            change(path, other)
            _, err = running.communicate(timeout=120)
        assert running.returncode >= 0, (moment, running.returncode, err)
        assert "Traceback" not in err
        if running.returncode == 0:
            assert slices_of("out.json") in answers, (moment, err)
        else:
            assert err.startswith("lanescope: error: "), (moment, err)


def slices_of(target):
    """Return the digest of all slices of an output, however often it was replaced."""
    slices = lanescope.open(target).slices
    return hashlib.sha256(slices["ts"].tobytes() + slices["dur"].tobytes()).hexdigest()


EXTRAS = {
    "viewer": (["view", "attention.npy", "--no-browser"], "viztracer"),
    "wave": (["convert", "attention.npy", "-o", "out.vcd"], "vcd"),
    "mcp": (["mcp", "."], "mcp"),
}


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_extra_is_one_line_that_names_it(capture, extra):
    arguments, package = EXTRAS[extra]
    hidden = (
        f"import sys; sys.modules[{package!r}] = None; from lanescope.cli import main; sys.exit(main({arguments!r}))"
    )
    with subprocess.Popen([sys.executable, "-c", hidden], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as running:
        err = running.communicate(timeout=120)[1].decode()
    assert running.returncode == 2
    assert err.startswith("lanescope: error: ")
    assert f"lanescope[{extra}]" in err
    assert "Traceback" not in err
    assert not Path("out.vcd").exists()


def own_mounts(script, *arguments):
    """Run a shell script with mounts of its own; skip where the system does not let us."""
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    try:
        able = subprocess.run([*command, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("unshare is missing (Debian package util-linux)")
    if able.returncode:
        pytest.skip("mounts in a namespace of one's own are not permitted here")
    return subprocess.run(
        [*command, "sh", "-c", script, "sh", *map(str, arguments)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_a_full_file_system_is_one_line_and_nothing_is_left(capture, target):
    small = capture / "small"
    small.mkdir()
    script = (
        'mount -t tmpfs -o size=32k none "$1" && "$2" -m lanescope convert attention.npy -o "$1/$3"'
        '; status=$?; ls -A "$1"; exit $status'
    )
    done = own_mounts(script, small, sys.executable, target)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("lanescope: error: ")
    assert "no space left on device" in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_a_read_only_installation_makes_no_difference(capture):
    root = Path(lanescope.__file__).parents[1]
    script = (
        'for folder in "$1" "$2"; do mount --bind "$folder" "$folder" && mount -o remount,bind,ro "$folder" || exit 90;'
        ' done; touch "$1/made" 2>/dev/null && exit 91; exec "$3" -m lanescope convert attention.npy -o out.parquet'
    )
    done = own_mounts(script, root, sys.prefix, sys.executable)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") <= 1
    assert whole("out.parquet") == 19_008


def test_a_clock_that_jumps_makes_no_difference(capture):
    assert ended("convert", "attention.npy", "-o", "usual.json")[0] == 0
    jumping = (
        "import sys, time, itertools; real = time.time; sign = itertools.cycle((1, -1));"
        "time.time = lambda: real() + next(sign) * 86400 * 365;"
        "time.time_ns = lambda: int(time.time() * 1e9);"
        "from lanescope.cli import main; sys.exit(main(['convert', 'attention.npy', '-o', 'jumped.json']))"
    )
    done = subprocess.run([sys.executable, "-c", jumping], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert Path("jumped.json").read_bytes() == Path("usual.json").read_bytes()


def test_two_writers_of_one_dataset_leave_one_that_is_whole(capture):
    both = [started("convert", "attention.npy", "-o", "out.parquet", "--force") for _ in range(2)]
    for running in both:
        _, err = running.communicate(timeout=120)
        assert running.returncode in (0, 2), err
        assert "Traceback" not in err
    assert whole("out.parquet") == 19_008
    assert sorted(path.name for path in capture.iterdir() if "attention" not in path.name) == ["out.parquet"]


def test_a_dataset_of_another_version_is_read_or_refused_in_one_line(capture):
    assert ended("convert", "attention.npy", "-o", "out.parquet")[0] == 0
    path = Path("out.parquet") / parquet.METADATA
    known = json.loads(path.read_text())
    name, _, number = known["schema"].rpartition("/")
    for other, status in ((number, 0), (str(int(number) + 1), 3), ("", 3)):
        path.write_text(json.dumps({**known, "schema": f"{name}/{other}"}))
        found, _, err = ended("summary", "out.parquet")
        assert found == status, err
        assert "Traceback" not in err
        if status:
            assert err.startswith("lanescope: error: ")
