"""What paths are good for: tables, SQL, the annotated listing, lcov, the call tree, calls in order; and the command."""

import contextlib
import hashlib
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from devices.aie.path import fitted, language
from effort import some
from lanescope import cli
from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.encode import Frames
from lanescope.devices.aie.path import path_tables, reports, schema
from lanescope.devices.aie.path.path_tables import Paths
from lanescope.devices.aie.path.program import program
from lanescope.devices.aie.simulate import program_runs, sample_program
from lanescope.errors import InputError, UsageError
from lanescope.io import duckdb_sql, perfetto
from lanescope.pipeline import session

LISTING = """
00000000 <main>:
       0: 00 00 00 00  \tmovxm\tp7, #0x10
       4: 00 00 00 00  \tnop
       8: 00 00 00 00  \tnop
       c: 00 00 00 00  \tnop
      10: 00 00 00 00  \tjl\t#0x60
      14: 00 00 00 00  \tnop
      18: 00 00 00 00  \tnop
      1c: 00 00 00 00  \tnop
      20: 00 00 00 00  \tnop
      24: 00 00 00 00  \tnop
      28: 00 00 00 00  \tjnzd\tr17, r17, p7
      2c: 00 00 00 00  \tnop
      30: 00 00 00 00  \tnop
      34: 00 00 00 00  \tnop
      38: 00 00 00 00  \tnop
      3c: 00 00 00 00  \tnop
      40: 00 00 00 00  \tj\t#0x0
      44: 00 00 00 00  \tnop
      48: 00 00 00 00  \tnop
      4c: 00 00 00 00  \tnop
      50: 00 00 00 00  \tnop
      54: 00 00 00 00  \tnop

00000060 <scale>:
      60: 00 00 00 00  \tadd.nc\tlc, r0, #0
      64: 00 00 00 00  \tmovxm\tls, #0x70
      68: 00 00 00 00  \tmovxm\tle, #0x78
      6c: 00 00 00 00  \tnop
      70: 00 00 00 00  \tnop
      74: 00 00 00 00  \tvmul
      78: 00 00 00 00  \tnop
      7c: 00 00 00 00  \tnop
      80: 00 00 00 00  \tnop
      84: 00 00 00 00 00 00 00 00 00 00 00 00 \tnop
      90: 00 00 00 00  \tret\tlr
      94: 00 00 00 00  \tnop
      98: 00 00 00 00  \tnop
      9c: 00 00 00 00  \tnop
      a0: 00 00 00 00  \tnop
      a4: 00 00 00 00  \tnop
"""


@pytest.fixture
def here(tmp_path):
    """A folder with a listing and a capture that fit."""
    (tmp_path / "main.lst").write_text(LISTING)
    known = program_runs.run(program.parse(LISTING), seed=5, bundles=3000)
    (tmp_path / "run.bin").write_bytes(known.data)
    with contextlib.chdir(tmp_path):
        yield known


@pytest.fixture
def paths(here):
    return Paths(lanescope.open("run.bin"), program.read(Path("main.lst")))


def rows(paths, spec):
    return list(paths.table(spec).rows())


def test_counts_are_those_of_the_run(here, paths):
    truth = Counter(here.path)
    (walk,) = rows(paths, schema.WALKS)
    assert walk["certain"] == walk["frames"] == len(here.retired)
    for row in rows(paths, schema.BUNDLES):
        # What follows the last frame is possible only.
        assert row["min_count"] <= truth[row["address"]] <= row["max_count"] + 60
        assert truth[row["address"]] - row["min_count"] <= 60
    pairs = Counter(zip(here.path, here.path[1:], strict=False))
    for row in rows(paths, schema.EDGES):
        if row["kind"] == "loop":
            assert 0 <= pairs[0x78, 0x70] - row["min_count"] <= 60
    trips = Counter(value for what, value in here.retired if what.name == "LOOP")
    found = {row["trip_count"]: row["entry_count"] for row in rows(paths, schema.LOOPS)}
    assert found == trips
    assert {row["trip_count_quality"] for row in rows(paths, schema.LOOPS)} == {"exact"}
    calls = [row for row in rows(paths, schema.CALLS) if row["call_site"] is not None]
    assert [(row["function"], row["call_site"]) for row in calls] == [("scale", 0x10)]
    assert 0 <= truth[0x60] - calls[0]["min_count"] <= 1


def test_the_path_is_the_run(here, paths):
    found = []
    bundles = paths.program.bundles
    index = paths.program.index
    for row in rows(paths, schema.PATH):
        if row["quality"] in ("certain", "loop"):
            stretch = [b.address for b in bundles[index[row["first_address"]] : index[row["last_address"]] + 1]]
            assert len(stretch) == row["bundle_count"]
            found += stretch * row["iterations"]
    assert len(found) > 2900
    assert found == here.path[: len(found)]
    frames = [row["first_frame"] for row in rows(paths, schema.PATH) if row["quality"] != "assumption"]
    assert frames == sorted(frames)


@settings(max_examples=some(40))
@given(seed=st.integers(0, 1 << 40), lc_at=st.sampled_from(["write", "body", "end"]))
def test_certain_rows_are_what_happened_in_that_order(seed, lc_at, tmp_path_factory):
    case = language.make(seed, lc_at=lc_at, computed=0.1)
    capture = tmp_path_factory.mktemp("case") / "run.bin"
    capture.write_bytes(case.file())
    known = program.parse(case.source.listing())
    at = 0
    for row in rows(Paths(lanescope.open(capture), known), schema.PATH):
        if row["quality"] not in ("certain", "loop") or row["iterations"] is None:
            continue
        first = known.index[row["first_address"]]
        stretch = [bundle.address for bundle in known.bundles[first : first + row["bundle_count"]]]
        assert stretch[-1] == row["last_address"] or row["quality"] == "loop"
        assert row["iterations"] > 0
        wanted = stretch * row["iterations"] if stretch[-1] == row["last_address"] else []
        # Somewhere after the previous row; the other rows leave the part in between unspecified.
        while case.path[at : at + len(wanted)] != wanted:
            at += 1
            assert at <= len(case.path), row
        at += len(wanted)


def test_sql_sees_the_tables(here):
    trace = lanescope.open("run.bin", listing="main.lst")
    with duckdb_sql.connect(trace, session.derived_tables(trace).values()) as connection:
        told = connection.execute("select sum(frames), sum(certain) from aie_path_stats").fetchone()
        executed = connection.execute(
            "select sum(executed_bundles), sum(bundle_count) from aie_path_functions"
        ).fetchone()
    assert told == (len(here.retired), len(here.retired))
    assert executed == (len(set(here.path)), len(program.parse(LISTING).bundles))


def test_without_a_listing_there_are_no_such_tables(here):
    assert not any(name.startswith("aie_path") for name in session.derived_tables(lanescope.open("run.bin")))


def test_what_is_wrong_with_a_listing_is_said_when_a_capture_is_opened(here):
    with pytest.raises(InputError, match="no-such"):
        lanescope.open("run.bin", listing="no-such.lst")
    with pytest.raises(UsageError, match="lc-at-end"):
        lanescope.open("run.bin", listing="main.lst", errata="nonsense")
    with pytest.raises(InputError, match="no-such"):
        lanescope.open("run.bin", elf="no-such.elf")
    with pytest.raises(UsageError, match="--xclbin"):
        lanescope.open("run.bin", program_tile="0,2")


def test_listing_and_elf_are_inputs_with_their_hash(here):
    inputs = lanescope.open("run.bin", listing="main.lst").inputs
    (row,) = [row for row in inputs.rows() if row["role"] == "listing"]
    content = Path("main.lst").read_bytes()
    assert (row["path"], row["size"], row["sha256"]) == ("main.lst", len(content), hashlib.sha256(content).hexdigest())


def test_a_trace_outlives_its_listing_but_not_its_paths(here):
    assert cli.main(["convert", "run.bin", "--listing", "main.lst", "-o", "run.parquet"]) == 0
    assert cli.main(["sql", "run.parquet", "select certain from aie_path_stats"]) == 0
    Path("main.lst").write_text(LISTING.replace("vmul", "vmac"))
    assert cli.main(["sql", "run.parquet", "select count(*) from slices"]) == 0
    with pytest.raises(InputError, match="file changed after the capture was opened"):
        session.derived_tables(session.open("run.parquet"))["aie_path_stats"].table  # noqa: B018
    Path("main.lst").unlink()
    assert cli.main(["sql", "run.parquet", "select count(*) from slices"]) == 0
    assert cli.main(["sql", "run.parquet", "select certain from aie_path_stats"]) == 3


@pytest.mark.parametrize("as_text", [False, True])
def test_unresolved_rows_say_where_in_the_capture_they_begin(as_text, here, tmp_path):
    content = Path("run.bin").read_bytes()
    if as_text:
        words = np.frombuffer(content, "<u4")
        Path("run.bin").write_text("".join(f"{word:08x}\n" for word in words))
    trace = lanescope.open("run.bin")
    found = Paths(trace, program.parse(LISTING.replace("jl\t#0x60", "nop")))
    unresolved = [row for row in rows(found, schema.PATH) if row["quality"] == "unresolved"]
    assert len(unresolved) > 20
    assert all(row["offset"] is None for row in rows(found, schema.PATH) if row["quality"] != "unresolved")
    # Each row of the flow is a frame of the file that is neither padding nor Repeat.
    frames = trace.records["aie.frame"]
    is_row = np.isin(frames["name"].astype(str), ("start", "new_pc", "taken", "not_taken", "loop", "stop"))
    offsets = frames["offset"][is_row]
    assert [row["offset"] for row in unresolved] == [int(offsets[row["first_frame"]]) for row in unresolved]
    Path("run.bin").unlink()
    again = Paths(trace, program.parse(LISTING.replace("jl\t#0x60", "nop")))
    assert {row["offset"] for row in rows(again, schema.PATH)} == {None}


def test_the_annotated_listing_has_every_line_and_the_visits(here, paths):
    lines = list(reports.annotated(paths))
    listed = [line.split(" | ", 1)[1] for line in lines[1:] if " | " in line]
    for line in LISTING.splitlines():
        if line:
            assert any(shown.startswith(line) for shown in listed)
    least = {row["address"]: row["min_count"] for row in rows(paths, schema.BUNDLES)}
    numbered = [line for line in lines[1:] if " | " in line]
    shown = {text.split(":")[0].strip(): line for line, text in zip(numbered, listed, strict=True)}
    assert shown["74"].split("|")[0].strip().split("..")[0] == str(least[0x74])
    outcomes = [value for what, value in here.retired if what.name == "BRANCH"]
    # The way behind the very last frame is not certain.
    for n, least, most in zip(
        (sum(outcomes), len(outcomes) - sum(outcomes)), *zip(*_bounds(shown["28"]), strict=True), strict=True
    ):
        assert least <= n <= most <= least + 1
    assert "passes" in shown["78"]


def _bounds(line):
    return [(int(least), int(most or least)) for least, most in re.findall(r"taken (\d+)(?:\.\.(\d+))?", line)]


def test_lcov_adds_up(here, paths, tmp_path):
    lines = list(reports.lcov(paths, tmp_path / "main.lst"))
    assert lines[1] == f"SF:{(tmp_path / 'main.lst').resolve()}"
    data = dict(map(int, line[3:].split(",")) for line in lines if line.startswith("DA:"))
    assert f"LF:{len(data)}" in lines
    assert f"LH:{sum(n > 0 for n in data.values())}" in lines
    text = (tmp_path / "main.lst").read_text().splitlines()
    assert all(": 00 00" in text[number - 1] for number in data)
    (function,) = [line for line in lines if line.startswith("FN:") and line.endswith(",scale")]
    assert "60: 00" in text[int(function[3:].split(",")[0]) - 1]
    assert len([line for line in lines if line.startswith("BRDA:")]) == 2


def test_calls_in_order_are_nested_slices(here, paths, tmp_path):
    trace = reports.timeline(paths)
    names = trace.slices["name"].tolist()
    calls = sum(row["min_count"] for row in rows(paths, schema.CALLS) if row["call_site"] is not None)
    assert names.count("scale") in (calls, calls + 1)
    assert names.count("main") == 1
    # One after the other, inside of their caller.
    begin, end = trace.slices["ts"], trace.slices["ts"] + trace.slices["dur"]
    assert (begin[1:] >= begin[0]).all()
    assert (end[1:] <= end[0]).all()
    perfetto.write(trace, tmp_path / "calls.pftrace")
    assert (tmp_path / "calls.pftrace").stat().st_size > 100


def test_events_of_pc_mode_have_a_function_and_a_few_bundles(tmp_path):
    mask, length = np.array([1, 0, 1, 0, 1], np.uint8), np.array([1, 3, 1, 2, 1], np.int64)
    pc = np.array([0x74, 0, 0x2000, 0, 0x30], np.int64)
    frames = Frames.join([encode.start(0, mode=1), encode.encode_pc_runs(mask, pc, length)])
    packets = encode.packets(encode.header(0, 1, 2, 2), encode.pack(frames, mode=1))
    (tmp_path / "pc.bin").write_bytes(packets.tobytes())
    found = rows(Paths(lanescope.open(tmp_path / "pc.bin"), program.parse(LISTING)), schema.PC_PLACES)
    assert [
        (row["function"], row["first_address"], row["last_address"], row["is_exact_function"]) for row in found
    ] == [
        ("scale", 0x64, 0x74, True),
        ("", None, None, False),
        # Behind a call's slots: the event may be of the end of what was called.
        ("main", 0x20, 0x30, False),
    ]


def test_recordings_decide_where_loop_frames_come(tmp_path):
    """A loop with a branch in its body says it; from then on all is walked with that."""
    text = LISTING.replace("74: 00 00 00 00  \tvmul", "74: 00 00 00 00  \tjz r0, #0x90")
    slots = "".join(f"      {0x78 + 4 * i:x}: 00 00 00 00  \tnop\n" for i in range(6))
    head, rest = text.split("      78:", 1)
    tail = rest[rest.index("      90:") :]
    text = (head + slots + tail).replace("le, #0x78", "le, #0x8c")
    known = program_runs.run(program.parse(text), seed=3, bundles=2000, taken=0.2)
    (tmp_path / "run.bin").write_bytes(known.data)
    paths = Paths(lanescope.open(tmp_path / "run.bin"), program.parse(text))
    assert "last bundle of the body" in " ".join(row["note"] for row in rows(paths, schema.ASSUMPTIONS))
    (walk,) = rows(paths, schema.WALKS)
    assert walk["certain"] == walk["frames"]


# --- the command


def command(*arguments):
    return cli.main(["aie-path", *arguments])


def test_the_command_shows_each_product(here, capsys):
    for flags in ((), ("--path",), ("--path", "--limit", "3"), ("--annotate",), ("--calls",)):
        assert command("run.bin", "--listing", "main.lst", *flags) == 0
        out = capsys.readouterr().out
        assert "scale" in out
    assert command("run.bin", "--listing", "main.lst", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "lanescope.aie-path/1"
    assert document["stats"][0]["certain"] == len(here.retired)
    assert {row["quality"] for row in document["path"]} >= {"certain", "loop"}


def test_the_command_writes_files_and_replaces_none(here, capsys, tmp_path):
    assert command("run.bin", "--listing", "main.lst", "--lcov", "run.info") == 0
    assert (tmp_path / "run.info").read_text().endswith("end_of_record\n")
    assert command("run.bin", "--listing", "main.lst", "--lcov", "run.info") == 2
    assert command("run.bin", "--listing", "main.lst", "--lcov", "main.lst", "--force") == 2
    for name in ("calls.pftrace", "calls.json"):
        assert command("run.bin", "--listing", "main.lst", "--timeline", name) == 0
    assert command("run.bin", "--listing", "main.lst", "--timeline", "calls.txt") == 2
    assert (tmp_path / "main.lst").read_text() == LISTING


def test_the_command_says_what_is_missing(here, capsys):
    assert command("run.bin") == 2
    assert "--listing" in capsys.readouterr().err
    assert command("run.bin", "--listing", "main.lst", "--core", "7,7") == 2
    assert command("run.bin", "--listing", "main.lst", "--core", "seven") == 2
    assert command("run.bin", "--listing", "main.lst", "--core", "1,2") == 0


def test_a_listing_of_another_program_is_noticed(here, capsys, tmp_path):
    (tmp_path / "other.lst").write_text(LISTING.replace("jl\t#0x60", "nop"))
    assert command("run.bin", "--listing", "other.lst") == 0
    said = capsys.readouterr().err
    assert "another program" in said
    assert "first at byte 8" in said


def test_the_hardware_capture(corpus, tmp_path, capsys):
    """Annotated: four passes, and the loop branch with its outcomes; ambiguous, where the constant is missing."""
    capture = str(corpus / "aie" / "mode2_mixed_r0.bin")
    (tmp_path / "main.lst").write_text(fitted.listing())
    (tmp_path / "open.lst").write_text(fitted.listing(is_computed=True))
    assert command(capture, "--listing", str(tmp_path / "main.lst"), "--annotate") == 0
    shown = capsys.readouterr().out.splitlines()
    (branch,) = [line for line in shown if "jnzd" in line]
    assert branch.split("|")[0].strip() == "4"
    assert branch.endswith("// taken 3, not taken 1")
    assert [line.split("|")[0].strip() for line in shown if "jl #8" in line] == ["3", "3", "4", "4", "4", "4", "4", "4"]
    assert command(capture, "--listing", str(tmp_path / "open.lst"), "--path") == 0
    ambiguous = [line for line in capsys.readouterr().out.splitlines() if line.startswith("ambiguous")]
    assert len(ambiguous) == 3
    assert all("0x100..0x12c | 0x10c..0x12c" in line for line in ambiguous)


def test_the_example_is_what_its_truth_says(tmp_path, capsys):
    with contextlib.chdir(tmp_path):
        assert cli.main(["sim", "aie", "--program", "example", "--seed", "1", "-o", "run.bin"]) == 0
        truth = json.loads(Path("run.bin.truth.json").read_text())["path"]
        capsys.readouterr()
        assert command("run.bin", "--listing", "run.lst", "--json") == 0
        document = json.loads(capsys.readouterr().out)
        # The listing that was written runs again, from a file.
        assert cli.main(["sim", "aie", "--program", "run.lst", "--seed", "4", "-o", "other.bin"]) == 0
        assert command("other.bin", "--listing", "run.lst", "--calls") == 0
    visits = Counter(truth)
    for row in document["bundles"]:
        assert row["min_count"] <= visits[row["address"]] <= row["max_count"]
    assert visits[sample_program.LOOP_BRANCH] == 4
    called = {row["function"]: row["min_count"] for row in document["calls"] if row["call_site"] is not None}
    assert called == dict.fromkeys(("acquire_input", "acquire_output", "scale", "release_both"), 4)


def test_bounds_without_an_end_are_null():
    counts = path_tables.Counts()
    counts.most["visit", 4] = 3
    counts.unbounded.add(("visit", 4))
    assert path_tables.bounds(counts, ("visit", 4)) == (0, None)
