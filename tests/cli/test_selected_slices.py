"""Commands say how much of an answer is that of the slices that a window selects."""

import json

import pytest

import lanescope
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.view.analysis_report import overlap_words
from lanescope.view.model.view_model import ViewModel

COMMANDS = [
    (("phases", "--by", "all"), "rows", lambda row: row["total_ns"]),
    (("gaps", "--limit", "100000"), "rows", lambda row: row["dur_ns"]),
    (("summary", "--by", "idle"), "rows", lambda row: row["total_ns"]),
]


@pytest.mark.parametrize("selected", [("--name", "q*"), ("--min-dur", "300"), ("--where", "name = 'qk' or dur < 100")])
@pytest.mark.parametrize(("command", "key", "length"), COMMANDS)
def test_commands_say_how_much_the_selected_part_is(call, tmp_path, command, key, length, selected):
    assert call("sim", "cuda", "--seed", 1, "--blocks", 4, "--tiles", 6, "-o", "k.npy").status == 0
    edges = ("--start", "1us", "--end", "7us")
    done = call(*command, "k.npy", *edges, *selected, "--json")
    found = json.loads(done.out)
    whole = json.loads(call(*command, "k.npy", *edges, "--json").out)
    assert found["selected"]["total_ns"] == sum(map(length, found[key])) > 0
    assert found["selected"]["whole_ns"] == sum(map(length, whole[key])) > found["selected"]["total_ns"]
    assert found["selected"]["share"] == found["selected"]["total_ns"] / found["selected"]["whole_ns"]
    assert "selected" not in whole
    said = call(*command, "k.npy", *edges, *selected)
    assert "the answer is that of all slices, and this is the part of the selected ones" in said.err
    option, value = selected
    part = lanescope.open(tmp_path / "k.npy").window("1us", "7us", **{option[2:].replace("-", "_"): value})
    assert found["selected"]["slices"] == len(part.slices)
    if command[0] == "phases":
        assert sum(map(length, found[key])) == sum(row["total"] for row in part.phases("all").rows())


@pytest.mark.parametrize("by", ["occupancy", "block"])
def test_sums_of_units_say_so_too(call, by):
    assert call("sim", "cuda", "--seed", 1, "--blocks", 4, "--tiles", 6, "-o", "k.npy").status == 0
    found = json.loads(call("summary", "--by", by, "k.npy", "--name", "qk", "--json").out)
    assert 0 < found["selected"]["total_ns"] < found["selected"]["whole_ns"]
    assert found["rows"]


def test_sentences_name_the_commands_of_the_same_window(call):
    assert call("sim", "cuda", "--seed", 1, "--blocks", 4, "--tiles", 6, "-o", "k.npy").status == 0
    done = call("explain", "k.npy", "--start", "-5us", "--lane", "*compute", "--name", "q k")
    assert done.status == 0
    commands = [line.strip() for line in done.out.splitlines() if line.startswith("    ")]
    assert commands[0] == "lanescope phases k.npy --start=-5us '--lane=*compute' '--name=q k'"
    assert len(commands) > 1
    assert all(command.endswith("k.npy --start=-5us '--lane=*compute'") for command in commands[1:])


@pytest.mark.parametrize("asked", [("--name", "aten*"), ("--min-dur", "20us"), ("--name", "none")])
def test_a_report_has_the_selected_part_of_its_tables(call, tmp_path, asked):
    assert call("sim", "kineto", "--seed", 3, "-O", "steps=2", "-o", "k.json").status == 0
    option, value = asked
    part = lanescope.open(tmp_path / "k.json").window(**{option[2:].replace("-", "_"): value})
    model = ViewModel(part)
    found = {table.id: table for table in model.tables}
    wanted = part.phases("all")
    assert ("phases" in found) == bool(len(wanted))
    if len(wanted):
        shown = [dict(zip([column.name for column in found["phases"].columns], row, strict=True)) for row in
                 found["phases"].rows]  # fmt: skip
        assert sum(row["total"] for row in shown) == sum(row["total"] for row in wanted.rows())
    assert call("report", "k.json", *asked, "-o", "k.html").status == 0
    if "path" in found:
        assert "It is that of all slices" in found["path"].about


def test_paths_of_windows_without_the_rest_say_so(call):
    assert call("sim", "kineto", "--seed", 3, "-O", "steps=2", "-o", "k.json").status == 0
    edges = ("--start", "+1ms", "--end", "+4ms")
    assert call("convert", "k.json", *edges, "-o", "part.parquet").status == 0
    said = "causes outside of it are not followed"
    part = call("critical-path", "part.parquet")
    assert part.status == 0
    assert said in part.err
    assert said not in call("critical-path", "k.json", *edges).err
    assert "window" in json.loads(call("critical-path", "part.parquet", "--json").out)
    alone = lanescope.open("k.json", window={"start": "+1ms", "end": "+4ms"})
    assert said in repr(alone.critical_path())
    assert said not in repr(lanescope.open("k.json").window("+1ms", "+4ms").critical_path())
    (about,) = [table.about for table in ViewModel(alone).tables if table.id == "path"]
    assert said in about
    # The sentence of a window is that of its part of the whole path.
    path = lanescope.open("k.json").window("+1ms", "+4ms").critical_path().longest
    rows = json.loads(call("explain", "k.json", *edges, "--json").out)["rows"]
    for row in rows:
        if row["topic"] == "path":
            assert f"({path.explained:.1%} of the path is explained)" in row["sentence"]


def test_sentences_on_overlap_are_those_of_all_slices(call, tmp_path):
    assert call("sim", "cuda", "--seed", 1, "--blocks", 4, "--tiles", 6, "-o", "k.npy").status == 0
    trace = lanescope.open(tmp_path / "k.npy")
    whole = overlap_words(AnalysisCache(trace), "block")
    assert len(whole) == 3
    # What is not selected computes and hides loads as before.
    part = AnalysisCache(trace.window(name="load*"))
    assert overlap_words(part, "block") == [line for line in whole if not line.startswith("store")]
    assert "no lane works in" in overlap_words(part, "block")[-1]


def test_a_report_of_what_was_read_without_some_slices_says_what_it_lacks(call, tmp_path, monkeypatch):
    assert call("sim", "cuda", "--seed", 1, "--blocks", 4, "--tiles", 6, "-o", "k.npy").status == 0
    whole = ViewModel(lanescope.open(tmp_path / "k.npy"))
    assert {"lanes", "idle", "phases"} < {table.id for table in whole.tables}
    assert not whole.left_out
    model = ViewModel(lanescope.open(tmp_path / "k.npy", window={"name": "qk"}))
    assert [table.id for table in model.tables] == ["names"]
    assert model.words == []
    missing = len(whole.trace.slices) - len(model.trace.slices)
    assert model.left_out == [
        "Lanes, idle time, phases and the critical path: time of lanes is told by all of their slices, and this trace "
        f"was read without {missing:,} of them."
    ]
    # The path of a few selected slices is that of all.
    monkeypatch.setattr("lanescope.view.model.view_model._PATH", len(whole.trace.slices) - 1)
    part = ViewModel(whole.trace.window(name="qk"))
    assert part.path is None
    assert [line.partition(":")[0] for line in part.left_out] == ["The critical path"]
    (said,) = ViewModel(whole.trace.window("1us", "2us")).left_out
    assert said.startswith("Causes outside of the window: ")


def test_sums_of_families_say_that_they_are_of_selected_slices_alone(call):
    assert call("sim", "kineto", "--seed", 3, "-O", "steps=2", "-o", "k.json").status == 0
    said = "sums are of the selected slices alone: in time that is idle here, others may have run"
    part = ("--where", "dur > 10")
    assert said in call("summary", "--by", "breakdown", "k.json", *part).err
    assert said in json.loads(call("summary", "--by", "breakdown", "k.json", *part, "--json").out)["remarks"]
    assert said not in call("summary", "--by", "breakdown", "k.json", "--start", "+1ms").err


def test_selected_slices_alone_are_no_ground_for_a_verdict(call):
    assert call("sim", "ascend", "--seed", 3, "-o", "run").status == 0
    for by, words in (("overhead", "verdict: "), ("core-idle", "idle time of all cores: ")):
        whole = call("summary", "--by", by, "run/l2_swimlane_records.json")
        part = call("summary", "--by", by, "run/l2_swimlane_records.json", "--min-dur", "30us")
        assert words in whole.err
        assert words not in part.err
        assert "sums are of the selected slices alone" in part.err


@pytest.mark.parametrize("asked", [("--name", "q*"), ("--min-dur", "300"), ("--name", "q*", "--min-dur", "0.5us")])
def test_batches_of_all_times_are_not_cut(call, tmp_path, monkeypatch, asked):
    """What a window selects is found batch by batch, and is that of a window whose batches are cut."""
    monkeypatch.setattr("lanescope.devices.cuda.emit.batches.PART_RECORDS", 1 << 7)
    monkeypatch.setattr("lanescope.analysis.lanes_on_disk.IN_MEMORY", 50)
    assert call("sim", "cuda", "--seed", 1, "--blocks", 4, "--tiles", 6, "-o", "k.npy").status == 0
    batches = list(lanescope.iter_batches(tmp_path / "k.npy"))
    assert len(batches) > 2
    for command, *_ in COMMANDS:
        found, cut = (
            json.loads(call(*command, "k.npy", *asked, *more, "--json").out) for more in ((), ("--lane", "*"))
        )
        assert (found["rows"], found["selected"]) == (cut["rows"], cut["selected"])
        kept = ("filtered_slices", "cut_slices", "excluded", "start", "end")
        assert [found["window"][name] for name in kept] == [cut["window"][name] for name in kept]


@pytest.mark.parametrize("option", [("--name", "qk"), ("--min-dur", "500ns"), ("--where", "dur > 500")])
def test_lanes_of_what_was_read_without_some_slices_are_no_idle_ones(call, option):
    assert call("sim", "cuda", "--seed", 1, "--blocks", 4, "--tiles", 6, "-o", "k.npy").status == 0
    assert call("convert", "k.npy", *option, "-o", "part.parquet").status == 0
    ends = [call("summary", "--by", by, "part.parquet") for by in ("idle", "occupancy", "block", "overlap")]
    ends += [call(*verb, "part.parquet") for verb in (["phases"], ["gaps"], ["explain"], ["critical-path"])]
    for ended in ends:
        assert (ended.status, ended.out) == (2, "")
        assert "this trace was read without" in ended.err
        assert "--name" in ended.err
