"""Selections: a path is that of all slices, whatever a window leaves out; what the window has of it is shown."""

import json
import pickle
import random
from fnmatch import fnmatchcase

import pytest

import lanescope
from effort import seeds
from lanescope import UsageError
from lanescope.cli import main

WORK = ("work", "wait without cause")
NAMED = (*WORK, "latency", "delay beyond", "resource")


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("capture")
    for name, content in lanescope.simulate("cuda", seed=3, layout="ls2", across=True, blocks=6, sms=2).files.items():
        (folder / name).write_bytes(content)
    return str(folder / "attention.npy")


@pytest.fixture(scope="module")
def trace(capture):
    return lanescope.open(capture)


@pytest.fixture(scope="module")
def rows(trace):
    """Rows of slices, by id, each with the path of its lane."""
    paths = {row["id"]: row["name"] for row in trace.tracks.rows()}
    return [{**row, "lane": paths[row["track_id"]]} for row in trace.slices.rows()]


def parts_of(path, *, drops=("id", "slice_id", "from_slice_id")):
    return [{name: value for name, value in row.items() if name not in drops} for row in path.parts.rows()]


def asked_at_random(draw, trace):
    """Return arguments of a window, and what they select: of a slice, and whether a part is of it."""
    asked, tests = {}, []
    if draw.random() < 0.5:
        asked["lane"] = lane = draw.choice(["compute", "load*", "store", "*async"])
        tests.append(lambda row, named: fnmatchcase(row["lane"], lane))
    if draw.random() < 0.5:
        asked["name"] = name = draw.choice(["qk", "wait_*", "*e*", "fetch"])
        tests.append(lambda row, named: named and fnmatchcase(row["name"], name))
    if draw.random() < 0.5:
        asked["min_dur"] = least = draw.randint(100, 2_000)
        tests.append(lambda row, named: named and row["dur"] >= least)
    if draw.random() < 0.3:
        asked["where"] = f"ts % 3 <> {(rest := draw.randrange(3))}"
        tests.append(lambda row, named: named and row["ts"] % 3 != rest)
    return asked, lambda row, named: all(test(row, named) for test in tests)


@pytest.mark.parametrize("seed", seeds(60, least=12))
def test_a_selection_shows_parts_of_the_same_path(trace, rows, seed):
    draw = random.Random(seed)
    asked, is_selected = asked_at_random(draw, trace)
    times = {}
    if draw.random() < 0.7:
        begin, end = sorted(draw.sample(range(200, 45_000), 2))
        times = {"start": begin, "end": end}
    whole = trace.critical_path(**times)
    expected = [part for part in whole.parts.rows() if is_selected(rows[part["slice_id"]], part["cause"] in NAMED)]
    part = trace.window(**times, **asked)
    found = part.critical_path()
    kept = parts_of(found)
    assert kept == [{name: row[name] for name in kept[0]} for row in expected] if kept else not expected
    assert sum(found.summary["dur"].tolist()) == sum(row["dur"] for row in expected)
    assert found.longest.length == whole.longest.length
    assert found.longest.shares == whole.longest.shares
    # Ids are those of the window, which has the slice as the whole has it, but for what is cut.
    for row, old in zip(found.parts.rows(), expected, strict=True):
        if row["slice_id"] is not None:
            (mine,) = part.slices.take([row["slice_id"]]).rows()
            assert (mine["name"], mine["track_id"]) == (rows[old["slice_id"]]["name"], row["track_id"])
            if row["cause"] in WORK:
                assert ("cut" in flags_of(mine)) == row["is_cut"]
    same = trace.critical_path(**times, **asked)
    assert parts_of(same) == kept
    assert parts_of(pickle.loads(pickle.dumps(part)).critical_path()) == kept
    if times:
        nested = trace.window(**asked).window(**times) if "where" not in asked else part
        assert parts_of(nested.critical_path()) == kept


def flags_of(row):
    return ["cut"] if row["flags"] & lanescope.Flag.CUT else []


def test_slices_cut_by_the_window_are_flagged(trace):
    parts = list(trace.critical_path(start=10_000, end=20_000).parts.rows())
    assert (parts[0]["is_cut"], parts[-1]["is_cut"]) == (True, True)
    assert not any(row["is_cut"] for row in trace.critical_path().parts.rows())
    for row in parts:
        (one,) = trace.slices.take([row["slice_id"]]).rows()
        reaches = one["ts"] < 10_000 or one["ts"] + one["dur"] > 20_000
        assert row["is_cut"] == (reaches and row["cause"] in WORK)


def test_slack_is_that_of_the_selected_slices(trace, rows):
    whole = {row["slice_id"]: row["slack"] for row in trace.critical_path().slack.rows()}
    part = trace.window(name="qk")
    found = list(part.critical_path().slack.rows())
    expected = [whole[row["id"]] for row in rows if row["name"] == "qk" and row["id"] in whole]
    assert [row["slack"] for row in found] == expected
    assert part.slices.take([row["slice_id"] for row in found])["name"].tolist() == ["qk"] * len(found)


def test_queries_of_a_window_have_the_path_of_the_whole(trace, capture, capsys):
    part = trace.window(10_000, 40_000, name="*e*")
    expected = sum(part.critical_path().parts["dur"].tolist())
    (row,) = part.sql("select sum(dur) as dur from critical_path_parts").rows()
    assert 0 < row["dur"] == expected
    query = "select sum(p.dur) from critical_path_parts p join slices s on s.id = p.slice_id where s.name like '%e%'"
    assert main(["sql", capture, query, "--start", "10000", "--end", "40000", "--name", "*e*", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [[expected]]


def test_a_window_that_was_named_is_not_asked_of_a_part(trace):
    with pytest.raises(UsageError, match="asked of a window of time"):
        trace.window(10_000, 20_000).critical_path(window="tile#1")
    assert trace.window(lane="compute").critical_path(window="tile#1").longest.window.name == "tile#1"
    with pytest.raises(UsageError, match="no lane matches"):
        trace.critical_path(lane="nothing")
    with pytest.raises(UsageError, match="is empty"):
        trace.window(10_000, 20_000).critical_path(start=30_000)


def test_the_command_says_what_it_selects(trace, capture, tmp_path, capsys):
    expected = trace.critical_path(start=1_000, lane="block ?", min_dur=300)
    more = ["--start", "1us", "--lane", "block ?", "--min-dur", "300"]
    assert main(["critical-path", capture, *more]) == 0
    out, err = capsys.readouterr()
    dur, length = expected.selected_of(expected.longest), expected.longest.length
    assert 0 < dur < length
    assert f"selected: lane block ?, at least 300: {dur:,} ns, {dur / length:.1%} of the window" in err
    assert "of it selected" in out
    assert main(["critical-path", capture, *more, "--json", "-o", str(tmp_path / "path.pftrace")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["windows"][0]["selected"] == sum(row["dur"] for row in found["summary"]) == dur
    assert found["window"]["asked"] == [{"lane": ["block ?"], "min_dur": "300"}]
    drawn = lanescope.open(tmp_path / "path.pftrace")
    (lane,) = [row["id"] for row in drawn.tracks.rows() if row["name"] == "critical path"]
    assert sum(row["dur"] for row in drawn.slices.rows() if row["track_id"] == lane) == dur
    assert main(["critical-path", capture, "--name", "nothing"]) == 0
    assert "0 ns, 0.0% of the window" in capsys.readouterr().err
