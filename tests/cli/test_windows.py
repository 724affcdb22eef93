"""Windows from the command line."""

import json
from importlib import import_module
from pathlib import Path

import pytest

import lanescope
from lanescope import Flag, cli
from lanescope.cli.arguments import build_parser, command_parser
from lanescope.families import registry

FLAGS = {"--start", "--end", "--lane", "--name", "--min-dur", "--where"}
PAGE = Path(__file__).parents[2] / "docs/howto/commands.md"


@pytest.fixture
def kernel(call, tmp_path):
    """A simulated kernel."""
    assert call("sim", "cuda", "--seed", 1, "--blocks", 4, "--tiles", 6, "-o", "k.npy").status == 0
    return lanescope.open(tmp_path / "k.npy")


def middle(trace):
    last = int(trace.slices["ts"].max())
    return last // 3, last // 2


def test_every_verb_sees_the_same_window(call, kernel, tmp_path):
    start, end = middle(kernel)
    part = lanescope.window(kernel, start, end)
    edges = ["--start", f"{start / 1000}us", "--end", end]
    rows = json.loads(call("sql", "k.npy", *edges, "--json", "select count(*), sum(dur) from slices").out)
    assert rows["rows"] == [[len(part.slices), int(part.slices["dur"].sum())]]
    assert (rows["window"]["start"], rows["window"]["end"]) == (start, end)
    assert rows["window"]["cut_slices"] == sum(bool(flags & Flag.CUT) for flags in part.slices["flags"].tolist()) > 0
    sums = json.loads(call("summary", "k.npy", *edges, "--json").out)
    assert sum(row["count"] for row in sums["rows"]) == len(part.slices)
    assert sums["window"] == rows["window"]
    info, whole = (json.loads(call("info", "k.npy", *given, "--json").out) for given in (edges, ()))
    assert (info["window"], info["rows"]["slices"]) == (rows["window"], len(part.slices))
    assert (info["accounting"], "window" in whole) == (whole["accounting"], False)
    found = json.loads(call("check", "k.npy", *edges, "--json", "--fail-on", "never").out)
    assert found["totals"]["all"]["slices"] == len(part.slices)
    assert found["window"] == rows["window"]
    assert call("convert", "k.npy", *edges, "-o", "part.parquet").status == 0
    assert list(lanescope.open(tmp_path / "part.parquet").slices.rows()) == list(part.slices.rows())
    lines = call("dump", "k.npy", *edges, "--stage", "row").out.splitlines()
    assert sum(" slice " in line for line in lines) == len(part.slices)
    assert f"window: {start:,} to {end:,} ns (" in call("dump", "k.npy", *edges, "--stage", "row").err
    path = json.loads(call("critical-path", "k.npy", *edges, "--json").out)
    other = json.loads(call("critical-path", "k.npy", "--from", start, "--to", end, "--json").out)
    assert path | {"page": None} == other | {"page": None}
    assert sum(row["dur"] for row in path["summary"]) == end - start
    opened = lanescope.open(tmp_path / "k.npy", window={"start": start, "end": end})
    assert list(opened.slices.rows()) == list(part.slices.rows())
    lanescope.convert(tmp_path / "k.npy", tmp_path / "again.parquet", window={"start": start, "end": end})
    assert len(lanescope.open(tmp_path / "again.parquet").slices) == len(part.slices)
    assert sum(len(batch.slices) for batch in lanescope.iter_batches(tmp_path / "k.npy", window={"start": start})) > 0
    with pytest.raises(lanescope.UsageError, match="unknown part 'begin'"):
        lanescope.open(tmp_path / "k.npy", window={"begin": 3})


def test_a_comparison_of_windows_says_so_in_each_form(call, kernel, tmp_path):
    (tmp_path / "other.npy").write_bytes((tmp_path / "k.npy").read_bytes())
    start, end = middle(kernel)
    asked = ["--start", start, "--end", end, "--lane", "*0*"]
    found = call("diff", "k.npy", "other.npy", *asked, "--json", "--html", "page.html")
    assert found.err.count(f"window: {start:,} to {end:,} ns, lane *0* (") == 2
    assert json.loads(found.out)["window"] == {"start": str(start), "end": str(end), "lane": ["*0*"]}
    assert f"window of each capture: {start} to {end}, lane *0*" in (tmp_path / "page.html").read_text()
    assert "window" not in json.loads(call("diff", "k.npy", "other.npy", "--json").out)
    runs = ["k.npy", "other.npy"] * 4
    series = json.loads(call("diff", "--series", *runs, *asked, "--json").out)
    assert series["window"] == {"start": str(start), "end": str(end), "lane": ["*0*"]}


def test_what_was_excluded_is_stated(call, kernel):
    start, end = middle(kernel)
    done = call("summary", "k.npy", "--start", start, "--end", end)
    counts = json.loads(call("summary", "k.npy", "--start", start, "--end", end, "--json").out)["window"]
    assert f"window: {start:,} to {end:,} ns ({counts['excluded']:,} rows excluded, " in done.err
    assert done.err.splitlines()[0].endswith("; the accounting is of the whole capture")
    whole = json.loads(call("summary", "k.npy", "--json").out)
    assert "window" not in whole


@pytest.mark.parametrize("asked", [("--where", "true"), ("--min-dur", 0), ("--start", "-1s"), ("--lane", "*")])
def test_a_window_that_excludes_nothing_is_stated_too(call, kernel, asked):
    done = call("summary", "k.npy", *asked)
    assert "(nothing excluded); the accounting is of the whole capture" in done.err
    assert json.loads(call("summary", "k.npy", *asked, "--json").out)["window"]["filtered_slices"] == 0


def test_a_window_of_merged_captures_is_on_their_timeline(call, tmp_path):
    for seed in (1, 2):
        assert call("sim", "levelzero", "--seed", seed, "-o", f"{seed}.txt").status == 0
    merged = ["convert", "1.txt", "2.txt", "--side-by-side", "-o"]
    assert call(*merged, "all.parquet").status == 0
    assert call(*merged, "part.parquet", "--start", "+1ms", "--end", "+3ms").status == 0
    everything, part = lanescope.open(tmp_path / "all.parquet"), lanescope.open(tmp_path / "part.parquet")
    assert list(lanescope.window(everything, "+1ms", "+3ms").slices.rows()) == list(part.slices.rows())
    assert 0 < len(part.slices) < len(everything.slices)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("summary", "k.npy", "--start", "noon"), "invalid --start 'noon': expected a time"),
        (("summary", "k.npy", "--start", "-1ns", "--end", "-2ns"), "the window is empty"),
        (("summary", "k.npy", "--lane", "nowhere*"), "no lane matches 'nowhere*'"),
        (("summary", "k.npy", "--where", "duration > 3"), "invalid condition 'duration > 3'"),
        (("summary", "k.npy", "--where", "true) or (false"), "invalid condition 'true) or (false'"),
        (("critical-path", "k.npy", "--window", "qk#0", "--start", "3"), "mutually exclusive"),
        (("dump", "k.npy", "--stage", "record", "--end", "3"), "a window requires rows"),
        (("summary", "k.npy", "--by", "tally", "--follow", "--end", "3"), "--follow takes the whole capture"),
        (("summary", "k.npy", "--ranks", "0"), "k.npy is a capture: --runs and --ranks are for datasets"),
        (("check", "k.npy", "--runs", "a"), "k.npy is a capture: --runs and --ranks are for datasets"),
    ],
)
def test_what_is_refused(call, kernel, arguments, message):
    done = call(*arguments)
    assert done.status == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_a_list_of_captures_takes_no_window(call, kernel, tmp_path):
    (tmp_path / "other.npy").write_bytes((tmp_path / "k.npy").read_bytes())
    done = call("info", ".", "--start", 0)
    assert (done.status, done.err.splitlines()[0]) == (2, "lanescope: error: a list of captures takes no window")


def test_a_lane_and_a_condition(call, kernel):
    assert call("summary", "k.npy", "--lane", "*nowhere*", "--json").status == 2
    name = str(kernel.tracks["name"][kernel.tracks["kind"] == "lane"][0])
    found = json.loads(call("summary", "k.npy", "--lane", name, "--where", "dur >= 500", "--json").out)
    lanes = [row["id"] for row in kernel.tracks.rows() if row["name"] == name]
    rows = [row for row in kernel.slices.rows() if row["track_id"] in lanes and (row["dur"] or 0) >= 500]
    assert sum(row["count"] for row in found["rows"]) == len(rows) > 0
    assert found["window"]["filtered_slices"] > 0


def test_phases_and_gaps_of_a_window(call, kernel):
    start, end = middle(kernel)
    content = json.loads(call("phases", "k.npy", "--by", "all", "--json", "--start", start, "--end", end).out)
    assert (content["schema"], content["unit"]) == ("lanescope.phases/1", "ns")
    lanes = int((kernel.tracks["kind"] == "lane").sum())
    assert sum(row["total_ns"] for row in content["rows"]) == lanes * (end - start)
    assert content["window"]["start"] == start
    table = call("phases", "k.npy", "--limit", 2).out.splitlines()
    assert table[0] == "k.npy: 9.70 µs, 12 lanes, 288 slices"
    assert table[2].split()[:3] == ["track", "state", "name"]
    assert len(table) == 6
    gaps = json.loads(call("gaps", "k.npy", "--limit", 3, "--json").out)
    assert gaps["schema"] == "lanescope.gaps/1"
    lengths = [row["dur_ns"] for row in gaps["rows"]]
    assert lengths == sorted(lengths, reverse=True)
    assert len(lengths) == 3
    assert len(call("gaps", "k.npy", "--limit", 3, "--csv").out.splitlines()) == 4


@pytest.mark.parametrize(
    "table", ["phases", "longest_gaps", "idle", "idle_causes", "occupancy", "utilization", "cuda_blocks"]
)
def test_tables_about_lanes_are_the_same_from_the_command_line(call, kernel, table):
    query = f"select * from {table} order by id"
    found = json.loads(call("sql", "k.npy", query, "--name", "qk", "--json").out)
    part = kernel.window(name="qk").sql(query)
    assert found["rows"] == [list(row.values()) for row in part.rows()]
    assert 0 < len(part) <= len(kernel.sql(query))


def commands():
    """Each verb: the flags that it takes, and why it takes no window."""
    for verb in cli.COMMANDS:
        module = import_module(f"lanescope.cli.commands.{verb.replace('-', '_')}")
        yield verb, build_parser(verb, module, [], registry.devices()), getattr(module, "WINDOWLESS", "")
    for verb, (name, _) in cli.FAMILY_COMMANDS.items():
        family = registry.family(name)
        command = next(command for command in family.commands if command.name == verb)
        yield verb, command_parser(command, family), command.windowless


def test_each_verb_takes_a_window_or_says_why_not(call):
    rows = {}
    windowed = []
    for verb, parser, reason in commands():
        taken = set(parser._option_string_actions) & FLAGS
        if not reason:
            assert taken == FLAGS, verb
            windowed.append(verb)
            continue
        assert not taken - {"--lane"}, verb  # the lane of a layout is a number of its own
        rows[verb] = reason
        done = call(verb, *(("bash",) if verb == "completion" else ()), "--min-dur=3")
        assert done.status == 2
        if f"{verb} takes no window: {reason}" not in done.err:
            assert "required" in done.err, verb  # argparse misses the arguments first
    assert len(windowed) >= 15
    page = PAGE.read_text(encoding="utf-8")
    listed = [line.strip("| ").split(" | ") for line in page.splitlines() if line.count(" | ") == 1]
    known = {verb.strip("`"): why.strip() for verb, why in listed}
    assert {verb: known.get(verb) for verb in rows} == rows
