"""``lanescope cuda-layout``: what it prints, and its status."""

from __future__ import annotations

import csv
import json
import struct
from pathlib import Path

import numpy as np
import pytest

import lanescope
from devices.cuda.declared.producers import WRITERS, Shape
from lanescope.cli import main
from lanescope.devices.cuda.formats.declared import catalog

GOLDEN = Path(__file__).parents[1] / "golden" / "declared"
MPK = str(GOLDEN / "mirage_mpk.bin")


def run(capsys, *words):
    status = main(["cuda-layout", *words])
    out = capsys.readouterr()
    return status, out.out.splitlines(), out.err


def test_a_layout_that_fits(capsys):
    status, lines, _ = run(capsys, "check", "mirage-mpk", MPK)
    assert status == 0
    assert lines == ["mirage-mpk: fits, 1,600 of 1,600 records match", "800 regions, 0 instants"]


def test_a_layout_that_does_not_fit_names_the_test_and_a_better_one(capsys):
    status, lines, _ = run(capsys, "check", "mirage-transpiler", MPK)
    assert status == 1
    assert lines[0].endswith("does not fit: 1,596 of 1,600 records contradict tag == lane % 4096")
    assert lines[-1] == "fits: mirage-mpk: fits, 1,600 of 1,600 records match"


def test_a_layout_whose_records_are_out_of_order_does_not_fit(capsys, tmp_path):
    path = str(tmp_path / "new.toml")
    assert run(capsys, "new", path)[0] == 0
    status, lines, _ = run(capsys, "check", path, MPK)
    assert status == 1
    assert lines[0] == "my-profiler: does not fit: 800 of 1,600 records are out of order"
    assert lines[-1] == "fits: mirage-mpk: fits, 1,600 of 1,600 records match"


def test_a_copy_is_changed_for_an_older_version_that_does_not_come_with_lanescope(capsys, tmp_path):
    """The first timings of ThunderKittens: slots as in Megakernels, but the low half of the counter as it is."""
    slots = np.zeros((6, 5, 64), np.uint32)
    start = np.arange(30, dtype=np.uint32).reshape(6, 5) * np.uint32(20_000) + np.uint32(3 << 30)
    for number, slot in enumerate((0, 1, 5, 7, 11, 54)):
        slots[:, :, slot] = start + np.uint32(50 * number)
    buffer, layout = str(tmp_path / "run.bin"), tmp_path / "run.toml"
    slots.tofile(buffer)
    params = ("--layout-params", "instructions=5,slots=64")
    status, lines, _ = run(capsys, "check", "megakernels", buffer, *params)
    assert (status, lines[0]) == (1, "megakernels: does not fit: 180 of 180 records contradict sign == 0")
    assert run(capsys, "new", str(layout), "--from", "megakernels")[0] == 0
    text = layout.read_text().partition("[example]")[0].replace("[0, 31], sign = [31, 1]", "[0, 32]")
    for old, new in (
        (" and sign == 0", ""),
        ('agree = "sign == 0"\n', ""),
        ("bits = 31", "bits = 32"),
        ('unwrap = "after"\nanchor = "0"\n', ""),
    ):
        assert old in text
        text = text.replace(old, new)
    layout.write_text(text)
    status, lines, _ = run(capsys, "check", str(layout), buffer, *params)
    assert (status, lines) == (0, ["megakernels: fits, 180 of 180 records match", "0 regions, 180 instants"])
    trace = lanescope.open(buffer, layout=str(layout), layout_params={"instructions": 5, "slots": 64})
    assert sorted(trace.instants.values("ts_ticks").tolist()) == sorted(int(tick) for tick in slots[slots > 0])


@pytest.mark.parametrize(
    ("words", "status", "fitting"),
    [
        (("check", "mirage-mpk", MPK), 0, ["mirage-mpk"]),
        (("check", "mirage-transpiler", MPK), 1, ["mirage-mpk"]),
        (("find", MPK), 0, ["mirage-mpk"]),
        (("find", __file__), 1, []),
    ],
)
def test_forms_for_programs_have_the_same_layouts_and_status(capsys, words, status, fitting):
    got, lines, _ = run(capsys, *words, "--json")
    document = json.loads("\n".join(lines))
    rows = document["layouts"]
    assert (got, document["action"]) == (status, words[0])
    assert [row["layout"] for row in rows if row["fits"]] == fitting
    assert all((row["failed"] is None) == row["fits"] for row in rows)
    if words[:2] == ("check", "mirage-transpiler"):
        assert (rows[0]["layout"], rows[0]["records"], rows[0]["matching"]) == (words[1], 1600, 4)
    assert (document["outcome"] is not None) == (words[:2] == ("check", "mirage-mpk"))
    if document["outcome"]:
        assert (document["outcome"]["regions"], document["outcome"]["instants"]) == (800, 0)
    got, lines, _ = run(capsys, *words, "--csv")
    assert got == status
    told = [(row["layout"], row["fits"], row["records"]) for row in csv.DictReader(lines)]
    assert told == [(row["layout"], str(row["fits"]).lower(), str(row["records"])) for row in rows]


def test_losses_are_part_of_the_answer(capsys):
    path = str(GOLDEN / "nuggets_legacy.bin")
    status, lines, _ = run(capsys, "check", "nuggets-legacy", path, "--layout-params", "max_events=16")
    assert (status, lines[-1]) == (0, "16 dropped records")


def test_new_files_are_valid_and_copies_are_equal(capsys, tmp_path):
    path = tmp_path / "copy.toml"
    assert run(capsys, "new", str(path), "--from", "tileops")[0] == 0
    assert path.read_text() == catalog.load("tileops").text
    status, lines, _ = run(capsys, "check", str(path))
    assert (status, lines[0]) == (0, f"{path}: valid layout tileops")
    assert run(capsys, "new", str(path))[0] == 2


def test_explain_shows_fields_with_their_places_and_reasons(capsys):
    status, lines, _ = run(capsys, "explain", "mirage-transpiler", MPK, "--lane", "5", "--limit", "1")
    assert status == 0
    assert "header num_blocks = 200  byte 0x0, bits 31..0" in lines
    assert "    event = 512  byte 0x30, bits 11..2" in lines
    assert "    UNREADABLE: tag == lane % 4096 does not hold (lane = 5, tag = 2)" in lines


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (("explain", "mirage-mpk"), 2, "explain requires a buffer"),
        (("explain", "mirage-mpk", MPK, "--json"), 2, "--json is a form of check and find"),
        (("check", "mirage-mpk", "--csv"), 2, "--csv is a form of check and find"),
        (("explain", "mirage-mpk", MPK, "--lane", "400"), 3, "lane 400 not found"),
        (("check", "nope"), 2, "unknown layout 'nope'"),
        (("check", "mirage-mpk", "missing.bin"), 3, "missing.bin"),
        (("new", "layout.txt"), 2, "expected a .toml file"),
        (("check", "mirage-mpk", MPK, "--layout-params", "x"), 2, "expected NAME=NUMBER"),
    ],
)
def test_wrong_calls(capsys, words, status, error):
    try:
        got, _, text = run(capsys, *words)
    except SystemExit as end:
        got, text = end.code, capsys.readouterr().err
    assert got == status
    assert error in text


@pytest.mark.parametrize("name", catalog.shipped())
def test_explain_reads_the_example_of_every_shipped_layout(capsys, name, tmp_path):
    from lanescope.devices.cuda.formats.declared.encode import example

    declaration = catalog.load(name)
    if len(declaration.arrays) > 1:
        pytest.skip("several arrays: covered by the golden of its archive")
    path = tmp_path / "run.bin"
    path.write_bytes(example(declaration)[0]["buffer"])
    params = ",".join(f"{key}={value}" for key, value in declaration.example.params.items())
    options = ["--layout-params", params] if params else []
    status, lines, _ = run(capsys, "explain", name, str(path), *options)
    assert status == 0
    assert any(line.startswith("    ") for line in lines)


def test_find_names_the_layouts_of_a_buffer_with_their_parameters(capsys, tmp_path):
    status, lines, _ = run(capsys, "find", str(GOLDEN / "open_cuprof.bin"))
    assert status == 0
    assert lines[0].startswith("--layout open-cuprof --layout-params max_events=8,max_warps=4  (headers of all lanes")
    assert run(capsys, "find", MPK)[1][0].startswith("--layout mirage-mpk  (header fits the size")
    status, lines, _ = run(capsys, "find", str(GOLDEN / "cutez.bin"))
    assert (status, lines) == (1, ["no shipped layout fits"])
    assert run(capsys, "find", MPK, MPK)[0] == 2


def test_check_names_the_parameters_of_a_layout_that_fits_better(capsys):
    path = str(GOLDEN / "tileops.bin")
    status, lines, _ = run(capsys, "check", "mosaic-gpu", path, "--layout-params", "words=12")
    assert status == 1
    assert lines[-1] == "fits: tileops max_events=12: fits, 72 of 72 records match"


INVENTED = """
name = "inv"
source = "me"
lanes = [["block", "size // (136 * warps)"], ["warp", "warps"]]
kind = ["is_end", {"0" = "begin", "1" = "end"}]
id = "event"
time = "t0 + dt"
sm = "smid"
payload = "arg"
capacity = "10"
offered = "count"
overflow = "drop"
[params]
warps = {from = "user", help = "warps of a block"}
[lane]
at = "136 * lane + 120"
size = 16
fields = {t0 = [0, 64], count = [64, 32], smid = [96, 32]}
[record]
at = "136 * lane + 12 * k"
size = 12
fields = {dt = [0, 32], event = [32, 15], is_end = [47, 1], arg = [64, 32]}
"""


@pytest.fixture
def invented(tmp_path):
    """A layout that is not shipped: the header of a warp is behind its records, and times count from there."""
    data = bytearray()
    for lane in range(6):
        count, time = 6 + 2 * (lane % 3) + 2 * (lane % 2), 0
        rows = bytearray(120)
        for k in range(min(count, 10)):
            time += 20 + 7 * k + lane
            struct.pack_into("<IHHI", rows, 12 * k, time, k // 2 % 3 | (k & 1) << 15, 0xBEEF, k)
        data += rows + struct.pack("<QII", 1_761_000_000_000_000_000 + lane, count, 40)
    path = tmp_path / "inv.bin"
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize(
    ("change", "params", "status", "first"),
    [
        (("", ""), "warps=2", 0, "inv: fits, 52 of 52 records match"),
        (("+ 12 * k", "+ 16 * k"), "warps=2", 1, "inv: does not fit: records of two lanes overlap"),
        (("[32, 15], is_end = [47, 1]", "[32, 14], is_end = [46, 1]"), "warps=2", 1, "inv: does not fit: no record of"),
        (('"0" = "begin", "1" = "end"', '"1" = "begin", "0" = "end"'), "warps=2", 1, "inv: does not fit: 18 of 52"),
        (("136", "128"), "warps=2", 1, "inv: does not fit: "),
        (("", ""), "warps=4", 1, "inv: does not fit: 272 of 816 bytes are behind the last lane: room for 2 more lanes"),
        (("", ""), "warps=7", 1, "inv: does not fit: 0 for 'block' in a file of 816 bytes"),
        (('["is_end"', '["2 * is_end"'), "warps=2", 1, "inv: does not fit: 26 of 52 records are of an unknown kind"),
    ],
)
def test_a_wrong_declaration_is_told_what_is_wrong(capsys, tmp_path, invented, change, params, status, first):
    path = tmp_path / "inv.toml"
    path.write_text(INVENTED.replace(*change) if change[0] else INVENTED)
    got, lines, _ = run(capsys, "check", str(path), invented, "--layout-params", params)
    assert (got, lines[0][: len(first)]) == (status, first)
    if "unknown kind" in first:
        assert "first in lane 0: use lanescope cuda-layout explain with --lane 0" in lines


ACROSS = """
name = "across"
source = "me"
pairing = "token"
lanes = [["block", "1"], ["warp", "2"]]
kind = ["is_end", {"0" = "begin", "1" = "end"}]
id = "event"
time = "stamp"
capacity = "2"
[record]
at = "16 * warp + 8 * k"
size = 8
fields = {event = [0, 16], is_end = [31, 1], stamp = [32, 32]}
"""


@pytest.mark.parametrize(
    ("old", "new", "status", "expected"),
    [
        ("", "", 0, ["across: fits, 4 of 4 records match", "2 regions, 0 instants"]),
        ('["is_end"', '["0 * is_end"', 1, ["across: does not fit: no record of 4 starts is an end"]),
        (
            'id = "event"',
            'id = "2 * event + is_end"',
            1,
            [
                "across: does not fit: 2 of 4 records are out of order",
                "0 regions, 0 instants",
                "2 starts without an end",
                "2 ends without a start",
            ],
        ),
    ],
)
def test_regions_over_two_lanes_are_counted_as_regions(capsys, tmp_path, old, new, status, expected):
    """An event begins in each of two warps of a block, and ends in the other one."""
    path, buffer = tmp_path / "across.toml", tmp_path / "across.bin"
    path.write_text(ACROSS.replace(old, new) if old else ACROSS)
    rows = [(4, 0, 100), (5, 1, 164), (5, 0, 132), (4, 1, 180)]
    np.array([event | is_end << 31 | stamp << 32 for event, is_end, stamp in rows], np.uint64).tofile(buffer)
    got, lines, _ = run(capsys, "check", str(path), str(buffer))
    assert (got, lines[: len(expected)]) == (status, expected)


def test_a_parameter_that_is_missing_is_asked_for(capsys, tmp_path, invented):
    path = tmp_path / "inv.toml"
    path.write_text(INVENTED)
    status, _, error = run(capsys, "check", str(path), invented)
    assert status == 2
    assert "requires the parameter warps: warps of a block" in error


def test_a_key_that_is_misspelled_is_named_with_the_right_one(capsys, tmp_path):
    path = tmp_path / "inv.toml"
    path.write_text(INVENTED.replace("offered", "offred"))
    status, _, error = run(capsys, "check", str(path))
    assert status == 3
    assert "offred: unknown key (did you mean offered?)" in error


def test_explain_shows_the_numbers_of_a_header_that_does_not_fit(capsys, tmp_path):
    path = tmp_path / "other.bin"
    path.write_bytes((0x46525031 | 4 << 32).to_bytes(8, "little") + bytes(200))
    status, lines, error = run(capsys, "explain", "mirage-mpk", str(path))
    assert status == 3
    assert "header num_blocks = 1179799601 (0x46525031)  byte 0x0, bits 31..0" in lines
    assert "does not fit" in error


def test_check_of_a_full_ring_has_no_empty_positions(capsys, tmp_path):
    made = WRITERS["quack"][0](Shape(blocks=3, groups=1, capacity=16, regions=40))
    path = tmp_path / "ring.bin"
    path.write_bytes(made.file())
    given = ",".join(f"{name}={value}" for name, value in made.params.items())
    status, lines, _ = run(capsys, "check", "quack", str(path), "--layout-params", given)
    assert status == 0
    assert any(line.endswith(" dropped records") for line in lines)
    assert not any("empty positions" in line for line in lines)


def test_info_tells_that_recognition_knows_nothing_of_a_layout_that_was_given(capsys):
    parameters = "max_events=12,groups=2"
    assert main(["info", str(GOLDEN / "tileops.bin"), "--layout", "tileops", "--layout-params", parameters]) == 0
    assert "tileops (cuda), as given (not recognized: invalid header" in capsys.readouterr().out
    assert main(["info", MPK]) == 0
    assert "mirage-mpk (cuda), score" in capsys.readouterr().out
    assert main(["info", MPK, "--layout", "mirage-transpiler"]) == 0
    assert "mirage-transpiler (cuda), as given (recognized: mirage-mpk, header fits" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "notes"),
    [
        ("", "", []),
        ("low = [32, 32]", "low = [33, 31]", ["no field reads bit 32 of records, not 0 in all of them"]),
        ("event = [4, 12]", "event = [4, 8]", ["no field reads bits 15..13 of records, not 0 in all of them"]),
        ("bits = 48", "bits = 40", ["3 of 4 timestamps have bits beyond the 40 of [clock], which are ignored"]),
    ],
)
def test_check_notes_what_a_layout_that_fits_leaves_out(capsys, tmp_path, old, new, notes):
    layout = """
name = "split"
title = "timestamps in two fields"
source = "ours"
lanes = [["warp", "1"]]
kind = ["kind", {"1" = "begin", "2" = "end"}]
id = "event"
time = "low | high << 32"
capacity = "4"
[record]
at = "12 * k"
size = 12
fields = {kind = [0, 4], event = [4, 12], low = [32, 32], high = [64, 16]}
[clock]
bits = 48
"""
    times = [1, (1 << 47) + 2, (1 << 47) + 3, (1 << 47) + 300]
    rows = [(1 + k % 2 | 0xEBC << 4, time & 0xFFFF_FFFF, time >> 32) for k, time in enumerate(times)]
    (tmp_path / "split.toml").write_text(layout.replace(old, new, 1) if old else layout)
    (tmp_path / "split.bin").write_bytes(np.array(rows, np.uint32).tobytes())
    status, lines, _ = run(capsys, "check", str(tmp_path / "split.toml"), str(tmp_path / "split.bin"))
    assert status == 0, lines
    assert [line for line in lines if line.startswith("note: ")] == [f"note: {note}" for note in notes]
