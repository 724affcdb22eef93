"""Input that is not a capture, or a broken one: one clear line and exit 3, never a traceback, never a hang."""

import gzip
import os
import random
import shutil
import subprocess
import sys

import pytest

import lanescope
from effort import cuts, some
from error_text import is_one_error
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.trace import accounting

VERBS = (
    ("info",),
    ("info", "--json"),
    ("check",),
    ("summary",),
    ("sql",),
    ("dump",),
    ("convert", "-o", "out.pftrace"),
    ("convert", "-o", "out.parquet"),
)
BAD = {
    "empty": b"",
    "text": b"# A README\n\nnot a capture at all, just some words in a file, many of them.\n" * 20,
    "one byte": b"\x00",
    "one word": b"\x01\x02\x03\x04",
    "zeros": bytes(4096),
    "one zero": bytes(1),
    "many zeros": bytes(1 << 17),
    "ones": b"\xff" * 4096,
    "random": random.Random(1).randbytes(70_000),
    "json": b'{"traceEvents": [{"ph": "X", "name": "a"}]}',
    "an empty gzip": gzip.compress(b""),
    "half a gzip": gzip.compress(random.Random(2).randbytes(500))[:250],
    "zeros in a gzip": gzip.compress(bytes(5000)),
    "npy of no known shape": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }",
}


def is_one_line(text):
    return is_one_error(text)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
@pytest.mark.parametrize("name", BAD)
def test_what_is_no_capture_is_refused(call, tmp_path, name, verb):
    (tmp_path / "bad").write_bytes(BAD[name])
    done = call(verb[0], "bad", *verb[1:])
    assert (done.status, done.out) == (3, "")
    assert is_one_line(done.err), done.err
    assert "bad" in done.err
    assert "\n  hint: " in done.err, "no hint what to do next"
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]


@pytest.mark.parametrize("name", BAD)
def test_the_family_that_the_user_names_copes_too(call, tmp_path, name):
    (tmp_path / "bad").write_bytes(BAD[name])
    for family in registry.BUILTIN:
        done = call("info", "bad", "--family", family)
        assert done.status in (0, 3), (family, done.err)
        assert "Traceback" not in done.err
        assert "internal error" not in done.err


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".", "lanescope: error: '.' is a directory\n  hint: pass a capture file or a Parquet dataset\n"),
        ("nowhere", "lanescope: error: cannot open 'nowhere': no such file or directory\n  hint: check the path\n"),
        ("bad/nowhere", "lanescope: error: cannot read 'bad/nowhere': not a directory\n  hint: check the path\n"),
        ("/dev/zero", "lanescope: error: '/dev/zero' is a device, not a file\n  hint: copy the data to a file first\n"),
        ("x" * 300, f"lanescope: error: cannot read {'x' * 300!r}: file name too long\n  hint: check the path\n"),
        ("loop", "lanescope: error: cannot read 'loop': too many levels of symbolic links\n  hint: check the path\n"),
    ],
)
@pytest.mark.parametrize("verb", ["info", "check", "dump"])
def test_what_cannot_be_opened_is_refused(call, tmp_path, verb, path, message):
    (tmp_path / "bad").touch()
    (tmp_path / "loop").symlink_to("loop")
    done = call(verb, path)
    assert (done.status, done.out, done.err) == (3, "", message)


def test_a_file_that_may_not_be_read_is_refused(plugin_path, tmp_path):
    secret = tmp_path / "secret.bin"
    secret.write_bytes(b"x" * 100)
    secret.chmod(0)
    command = [sys.executable, "-m", "lanescope", "info", "secret.bin"]
    if os.geteuid() == 0:
        # Root may read everything: run without that right.
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("root reads every file, and setpriv is not here to drop that right")
        command = [setpriv, "--bounding-set", "-dac_override,-dac_read_search", *command]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (3, "")
    assert (
        done.stderr
        == "lanescope: error: cannot open 'secret.bin': permission denied\n  hint: check the file permissions\n"
    )


def small_capture(name, folder):
    """Write a small simulated capture of a family into a folder; return its main file and what is in it."""
    family = registry.family(name)
    small = {
        "tiles": 2,
        "records": 12,
        "tasks": 4,
        "blocks": 2,
        "events": 6,
        "ops": 12,
        "changes": 20,
        "steps": 1,
        "kernels": 4,
        "slices": 12,
    }
    given = {option.name: small[option.name] for option in family.sim_options if option.name in small}
    files = family.simulate(resolve_options(family.sim_options, given, what="test"), 1).files
    for other, data in files.items():
        (folder / other).write_bytes(data)
    main = next(iter(files))
    assert len(files[main]) <= 20_000, f"the option that makes a capture of {name} small has another name"
    return folder / main, files[main]


def opened(path):
    """Open a capture; None when it is refused as bad input, or as something that two families could read."""
    try:
        return lanescope.open(path)
    except (lanescope.InputError, lanescope.UsageError):
        return None


@pytest.mark.parametrize("family", [*registry.BUILTIN, "blinker"])
def test_a_capture_cut_anywhere_is_read_as_far_as_it_goes(call, tmp_path, family):
    """Every cut of a small capture is refused, or decoded with every byte accounted for."""
    path, content = small_capture(family, tmp_path)
    for cut in (*cuts(len(content), max(1, len(content) // 300)), len(content) - 1):
        path.write_bytes(content[:cut])
        trace = opened(path)
        if trace is not None:
            accounting.verify(trace.accounting, trace.inputs)
            assert trace.inputs["size"][0] == cut
    done = call("info", path.name)  # all but the last byte
    assert done.status in (0, 3)
    assert "a bug" not in done.err


@pytest.mark.parametrize("family", [*registry.BUILTIN, "blinker"])
def test_a_capture_with_wrong_bytes_is_refused_or_decoded(call, tmp_path, family):
    path, content = small_capture(family, tmp_path)
    dice = random.Random(7)
    for _ in range(some(150, 40)):
        broken = bytearray(content)
        for _ in range(dice.choice((1, 1, 2, 10, 100))):
            broken[dice.randrange(len(broken))] = dice.choice((0, 0xFF, dice.randrange(256)))
        path.write_bytes(broken)
        trace = opened(path)
        if trace is not None:
            accounting.verify(trace.accounting, trace.inputs)


NAMES = [
    "with space.blink",
    "größe 漢字.blink",
    "semi;colon 'quote\".blink",
    "new\nline\ttab.blink",
    "\x1b[31mred\u202e.blink",
]


@pytest.mark.parametrize("name", [*NAMES, os.fsdecode(b"r\xff\xfen.blink"), "-dash.blink", "[a].blink"])
def test_any_file_name_will_do(call, run_file, name):
    run_file.rename(run_file.with_name(name))
    argument = f"./{name}" if name.startswith("-") else name
    for verb in VERBS:
        if verb[0] == "dump":
            continue  # the example has none
        done = call(verb[0], argument, *verb[1:])
        assert done.status == 0, done.err
        for text in (done.out, done.err):
            assert all(line.isprintable() for line in text.replace("\t", "\n").split("\n"))
    assert {"out.pftrace", "out.parquet"} <= {path.name for path in run_file.parent.iterdir()}


def test_standard_input_is_a_capture_like_any_other(shell, run_file):
    with run_file.open("rb") as stdin:
        done = shell("info", "-", stdin=stdin, check=True)
    assert done.out.startswith("-\n  format     blinker-1 (blinker), ")
    with subprocess.Popen(["cat", run_file], stdout=subprocess.PIPE) as cat:
        done = shell("sql", "-", "--csv", "select count(*) from slices", stdin=cat.stdout, check=True)
        assert done.out == "count_star()\r\n12\r\n"
    done = shell("info", "-")
    assert (done.status, done.err) == (
        3,
        "lanescope: error: '-' is empty (0 bytes)\n  hint: check that the capture completed\n",
    )


def test_a_packed_capture_is_a_capture(call, run_file):
    packed = run_file.with_name("run.blink.gz")
    packed.write_bytes(gzip.compress(run_file.read_bytes()))
    assert call("info", "run.blink.gz").out.splitlines()[:3:2] == ["run.blink.gz", "  size       176 bytes"]


def test_large_holes_are_refused_at_once(tmp_path, shell):
    with (tmp_path / "hole").open("wb") as hole:
        hole.truncate(4 << 30)
    done = shell("info", "hole")
    assert (done.status, done.err) == (
        3,
        "lanescope: error: hole starts with 65,536 zero bytes\n"
        f"  hint: use --family NAME to force a decoder: {', '.join(registry.BUILTIN)}\n",
    )
