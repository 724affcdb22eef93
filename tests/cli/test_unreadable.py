"""Files of which nothing can be read, and files that are no captures but were made from one."""

import bz2
import gzip
import json
import lzma
import subprocess
from pathlib import Path

import pytest

import lanescope
from error_text import is_one_error
from lanescope.families import registry
from lanescope.families.options import resolve_options

VERBS = [
    ("convert", "-o", "out.pftrace"),
    ("convert", "-o", "out.json"),
    ("convert", "-o", "out.parquet"),
    ("check",),
    ("check", "--json"),
    ("summary",),
    ("sql", "select 1"),
]


@pytest.fixture
def attention(tmp_path):
    """Write the captures that the demo shows: of each family one."""
    made = {}
    for family in registry.builtin():
        options = resolve_options(family.sim_options, dict(family.simulator.demo), what="test")
        files = family.simulate(options, 1).files
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
        made[family.name] = next(iter(files))
    return made


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
@pytest.mark.parametrize("wrong", ["aie", "levelzero"])
def test_a_capture_of_which_every_unit_is_lost_is_refused(call, attention, tmp_path, wrong, verb):
    before = {path.name for path in tmp_path.iterdir()}
    done = call(verb[0], "--family", wrong, attention["cuda"], *verb[1:])
    assert (done.status, done.out) == (3, "")
    assert done.err.startswith(f"lanescope: error: {attention['cuda']}: cannot decode any of ")
    assert done.err.endswith(f" as {wrong}\n  hint: remove --family {wrong}: the file looks like cuda\n")
    assert is_one_error(done.err)
    assert {path.name for path in tmp_path.iterdir()} == before


def test_info_shows_what_it_found_of_a_capture_of_which_every_unit_is_lost(call, attention):
    done = call("info", "--family", "aie", attention["cuda"])
    assert (done.status, "accounting" in done.out or "input_id" in done.out) == (3, True)
    assert " as aie" in done.err


def test_one_such_capture_of_several_is_refused_too(call, attention, tmp_path):
    (tmp_path / "other.npy").write_bytes((tmp_path / attention["cuda"]).read_bytes())
    done = call("convert", "--family", "aie", attention["aie"], "other.npy", "-o", "out.pftrace")
    assert (done.status, "other.npy: cannot decode any of" in done.err) == (3, True)
    assert not (tmp_path / "out.pftrace").exists()


def test_a_capture_of_which_something_is_read_is_no_error(call, attention, lossy_file, tmp_path):
    assert call("convert", "lossy.blink", "-o", "out.pftrace").status == 0
    # Half of a capture, and the rest of the file overwritten.
    content = (tmp_path / attention["aie"]).read_bytes()
    (tmp_path / "half.bin").write_bytes(content[: len(content) // 2] + b"\xff" * 4096)
    assert call("convert", "half.bin", "--family", "aie", "-o", "half.pftrace").status == 0


def test_real_captures_read_by_the_wrong_family_are_refused(call, corpus, tmp_path):
    done = call("convert", "--family", "aie", corpus / "cuda/tirx_4x2_nested.npy", "-o", "x.pftrace")
    assert (done.status, list(tmp_path.iterdir())) == (3, [])


# --- what lanescope wrote -------------------------------------------------------------------------------------------

MADE = {
    "out.vcd": "a file of waveforms (VCD)",
    "out.sarif": "a SARIF report",
    "report.json": "a JSON report of lanescope",
    "out.parquet/slices/part-00000.parquet": "one Parquet file",
}


@pytest.fixture
def made(call, run_file):
    """Write all that lanescope writes."""
    for name in ("out.pftrace", "out.json", "out.json.gz", "out.vcd", "out.parquet"):
        assert call("convert", "run.blink", "-o", name).status == 0
    assert call("convert", "run.blink", "-o", "plain.pftrace", "--no-compress").status == 0
    run_file.with_name("out.sarif").write_text(call("check", "--sarif", "run.blink").out)
    run_file.with_name("report.json").write_text(call("summary", "--json", "run.blink").out)
    return run_file.parent


def test_own_outputs_are_named_for_what_they_are(call, made):
    for name, what in MADE.items():
        for path in (name, "renamed"):
            (made / "renamed").write_bytes((made / name).read_bytes())
            done = call("info", path)
            assert (done.status, done.out) == (3, "")
            assert done.err.startswith(f"lanescope: error: {path} is {what}, not a capture\n  hint: ")
            assert "--family" not in done.err
    done = call("convert", "--family", "aie", "out.pftrace", "-o", "again.pftrace")
    assert (done.status, "remove --family aie: the file looks like perfetto" in done.err) == (3, True)


# How a file begins that was packed or encoded otherwise than lanescope reads; the rest of it is of no account.
ENCODED = {
    "packed by zstd": b"\x28\xb5\x2f\xfd\x24\x10",
    "packed by xz": lzma.compress(b"{}"),
    "packed by bzip2": bz2.compress(b"{}"),
    "packed by lz4": b"\x04\x22\x4d\x18\x64\x40",
    "packed by gzip twice": gzip.compress(gzip.compress(b"{}")),
    "JSON in UTF-16": '{"traceEvents": []}'.encode("utf-16"),
}


@pytest.mark.parametrize("what", ENCODED)
def test_what_is_packed_otherwise_is_named_with_what_unpacks_it(call, tmp_path, what):
    (tmp_path / "trace.json").write_bytes(ENCODED[what])
    done = call("info", "trace.json")
    assert (done.status, done.out) == (3, "")
    assert done.err.startswith(f"lanescope: error: trace.json is {what}, not a capture\n  hint: ")
    assert ("unpack it" in done.err, "iconv" in done.err) == ("UTF" not in what, "UTF" in what)


def test_the_start_of_cut_gzip_is_recovered_as_the_hint_says(call, tmp_path):
    content = json.dumps([{"ph": "X", "name": str(at), "pid": 1, "tid": 1, "ts": at, "dur": 1} for at in range(999)])
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(content.encode())[:-30])
    done = call("info", "cut.json.gz")
    assert (done.status, "gzip -dc FILE > PART" in done.err) == (3, True)
    part = subprocess.run(["gzip", "-dc", "cut.json.gz"], cwd=tmp_path, capture_output=True).stdout
    (tmp_path / "part.json").write_bytes(part)
    assert call("info", "part.json").status == 0


def test_timelines_of_our_own_are_read(call, made):
    for name in ("out.pftrace", "plain.pftrace", "out.json", "out.json.gz"):
        for path in (name, "renamed"):
            (made / "renamed").write_bytes((made / name).read_bytes())
            assert call("info", path).status == 0
            direct = call("summary", "run.blink").out
            assert call("summary", path).out == direct.replace("run.blink", path)


def test_timelines_of_others_are_read(call, tmp_path):
    events = [{"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]
    (tmp_path / "list.json").write_text(json.dumps(events))
    (tmp_path / "object.json.gz").write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode()))
    for name in ("list.json", "object.json.gz"):
        assert "1 slice" in call("info", name).out
    # Text that begins with an empty line begins with the byte of a trace packet.
    (tmp_path / "text").write_text("\n" + "some words\n" * 300)
    assert "unrecognized format" in call("info", "text").err


# --- folders --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["info", "check", "summary", "sql", "dump", "convert"])
def test_a_folder_with_one_capture_is_that_capture(call, tmp_path, verb):
    assert call("sim", "ascend", "--tasks", 20, "-o", "run").status == 0
    more = ("-o", "out.json", "--no-annotations") if verb == "convert" else ()
    main = tmp_path / "run" / next(iter(lanescope.open(tmp_path / "run").inputs["path"].tolist())).rpartition("/")[2]
    named = call(verb, main, *more)
    done = call(verb, "run", *more, *(["--force"] if more else []))
    assert done.status == named.status
    # The line of context names the capture as the user did.
    shown = done.out.replace("run: ", f"{main.name}: ", 1) if verb == "summary" else done.out
    assert shown.replace("run/", "") == named.out.replace(f"{tmp_path}/run/", "")


def test_a_folder_with_several_captures_names_them(call, run_file):
    run_file.with_name("other.blink").write_bytes(run_file.read_bytes())
    for verb in ("check", "summary", "dump"):
        done = call(verb, ".")
        assert (done.status, done.err) == (
            3,
            "lanescope: error: '.' contains 2 captures: other.blink, run.blink\n"
            "  hint: pass one of them; 'lanescope info FOLDER' lists all\n",
        )
    run_file.with_name("other.blink").unlink()
    assert call("info", ".").out.startswith("run.blink\n  format     blinker-1 (blinker), ")


# --- demo -----------------------------------------------------------------------------------------------------------


def test_the_demo_does_not_contradict_itself(call):
    """What the device lost before it wrote the file, and what of the file is lost, are two things."""
    done = call("demo", "-o", "demo")
    assert done.status == 0
    lines = [line for line in done.out.splitlines() if line.startswith("accounting: ")]
    assert lines[0] == (
        "accounting: 1,600 bytes: 1,600 decoded, 0 padding, 0 lost; missing or inconsistent data: buffer overruns (3)"
    )
    for line, family in zip(lines, registry.BUILTIN, strict=True):
        trace = lanescope.open(next(path for path in _captures(family)))
        assert ("padding, 0 lost" in line) == (
            sum(trace.accounting["lost"][trace.accounting["layer"] == 0].tolist()) == 0
        )


def _captures(family):
    return sorted(path for path in Path("demo", family).iterdir() if "truth" not in path.name and _is_main(path))


def _is_main(path):
    found = lanescope.detect(path)
    return bool(found) and found[0].score >= 50


def test_the_demo_counts_what_is_lost_in_units(call, tmp_path):
    from lanescope.cli.commands.demo import accounted

    assert call("sim", "aie", "--records", 300, "--bad-headers", 0.2, "-o", "bad.bin").status == 0
    trace = lanescope.open(tmp_path / "bad.bin")
    lost = {row["unit"]: row["lost"] for row in trace.accounting.rows() if row["lost"]}
    assert lost
    text = accounted(trace)
    for unit, count in lost.items():
        assert f"{count:,} lost" in text if unit == "byte" else f"{unit}s lost ({count:,})" in text
