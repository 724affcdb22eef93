"""Reports of two captures: what is paired, what is compared, and that no row of either is lost or moved."""

import io
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from tests.view.report.decoded import Decoded

import lanescope
from lanescope.errors import UsageError
from lanescope.testing.strategies import valid_traces
from lanescope.trace import TimeBase, TraceBuilder
from lanescope.view.report.write import write_report


def side_by_side(one, other, **options):
    out = io.BytesIO()
    write_report(one, out, other=other, **options)
    return Decoded(out.getvalue())


def made(lanes, start=0, unit="ns", stretch=1, pid=7):
    """Return a trace of a process with lanes, each of which has slices named as in ``lanes``."""
    builder = TraceBuilder(TimeBase(time_unit=unit))
    group = builder.track(f"process {pid}", kind="group", role="process")
    for name, slices in lanes.items():
        lane = builder.track(name, kind="lane", role="thread", parent=group)
        at = start + np.arange(len(slices)) * 100
        builder.append("slices", track_id=lane, ts=at, dur=[40 * stretch] * len(slices), name=list(slices))
    return builder.finish()


def contents(trace):
    """Return how often a lane's path has each slice, by begin since the first time."""
    low = int(trace.slices.values("ts").min())
    tracks = trace.tracks.values("name").tolist()
    return Counter(
        (tracks[track], ts - low, name)
        for track, ts, name in zip(
            trace.slices.values("track_id").tolist(),
            trace.slices.values("ts").tolist(),
            trace.slices.values("name").tolist(),
            strict=True,
        )
    )


def test_every_slice_is_on_its_side_at_its_time_since_the_capture_began():
    one = made({"a": ["x", "y"], "b": ["z"]}, start=10**12)
    other = made({"b": ["z", "z"], "c": ["x"]}, start=5, pid=4711)
    report = side_by_side(one, other)
    tracks, side = report.head["tracks"], report.head["side"]
    found = [Counter(), Counter()]
    for row in report.rows():
        found[side[row["track"]]][tracks[row["track"]][2], row["begin"], row["name"]] += 1
    assert found == [contents(one), contents(other)]
    assert [entry["low"] for entry in report.head["sides"]] == [str(10**12), "5"]


def test_lanes_of_one_name_are_one_below_the_other_under_one_row_of_their_group():
    report = side_by_side(
        made({"a": ["x"], "b": ["x"], "only A": ["x"]}), made({"only B": ["x"], "b": ["x"], "a": ["x"]}, pid=4711)
    )
    head = report.head
    names = [
        (" ".join(head["tracks"][at][2] for at in chain), [head["tracks"][at][2] for at in other],
         head["side"][chain[-1]], depth)
        for chain, depth, _, other in head["tree"]
    ]  # fmt: skip
    assert names == [
        ("process 7", ["process 4711"], 0, 0), ("a", [], 0, 1), ("a", [], 1, 1), ("b", [], 0, 1), ("b", [], 1, 1),
        ("only A", [], 0, 1), ("only B", [], 1, 1),
    ]  # fmt: skip
    lanes = next(table for table in head["tables"] if table["id"] == "lanes")
    assert [[None if value is None else round(value, 3) for value in row[3:5]] for row in lanes["rows"]] == [
        [40, 40], [40, 40], [40, None], [None, 40],
    ]  # fmt: skip


def test_what_differs_is_what_diff_finds():
    one, other = (lanescope.open(lanescope.simulate("cuda", seed=seed).files["attention.npy"]) for seed in (1, 2))
    report = side_by_side(one, other)
    expected = lanescope.compare(one, other)
    table = next(table for table in report.head["tables"] if table["id"] == "compare")
    columns = [column["name"] for column in table["columns"]]
    rows = [dict(zip(columns, row, strict=True)) for row in table["rows"]]
    assert [(row["name"], row["verdict"], row["contribution"], row["A"], row["B"]) for row in rows] == [
        (group.key[0], group.verdict, group.contribution.change,
         *(value if value is None else round(value) for value in group.effects["total"][:2]))
        for group in expected.groups
    ]  # fmt: skip
    assert [row["change"] for row in rows] == [group.effects["total"].change for group in expected.groups]
    heads = [head for head, _ in report.head["words"]]
    assert {"Busy time", "Span", "A", "B"} <= set(heads)
    assert any("critical path" in sentence for sentence in report.head["left_out"])


def test_findings_say_which_capture_has_them():
    one, other = (lanescope.open(lanescope.simulate("cuda", seed=seed).files["attention.npy"]) for seed in (1, 2))
    report = side_by_side(one, other)
    counts = [sum(found.count for found in lanescope.check(trace)) for trace in (one, other)]
    assert all(counts)
    assert sum(found["count"] for found in report.head["findings"]) == sum(counts)
    for found in report.head["findings"]:
        for place in found["places"]:
            if place["track"] is not None:
                assert place["detail"][0] == "AB"[report.head["side"][place["track"]]]


def test_a_capture_against_itself_differs_in_nothing():
    one = lanescope.open(lanescope.simulate("cuda", seed=1).files["attention.npy"])
    report = side_by_side(one, one)
    table = next(table for table in report.head["tables"] if table["id"] == "compare")
    names = [column["name"] for column in table["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in table["rows"]]
    # What has no time of its own has no change of it either.
    assert {row["change"] for row in rows} == {row["change"] if row["A"] is None else 0 for row in rows}
    assert sum(row["change"] == 0 for row in rows) > len(rows) / 2
    assert all((row["A"], row["slices A"]) == (row["B"], row["slices B"]) for row in rows)
    assert not any("only" in found["title"] for found in report.head["findings"])
    own, second = ([row for row in report.rows() if report.head["side"][row["track"]] == side] for side in (0, 1))
    assert [(row["begin"], row["end"], row["name"]) for row in own] == [
        (row["begin"], row["end"], row["name"]) for row in second
    ]


@given(valid_traces(max_slices=20), valid_traces(max_slices=20))
def test_any_two_traces(one, other):
    if one.time.time_unit != other.time.time_unit:
        with pytest.raises(UsageError):
            side_by_side(one, other)
        return
    head = side_by_side(one, other).head
    assert head["rows"] == len(one.slices) + len(other.slices)
    shown = [track for chain, _, _, second in head["tree"] for track in (*chain, *second)]
    assert len(shown) == len(set(shown))
    used = {*one.slices.values("track_id").tolist(), *(other.slices.values("track_id") + len(one.tracks)).tolist()}
    assert used <= set(shown)


def test_the_command_takes_two_captures_and_refuses_three(tmp_path):
    files = []
    for seed in (1, 2, 3):
        path = tmp_path / f"run{seed}.npy"
        path.write_bytes(lanescope.simulate("cuda", seed=seed).files["attention.npy"])
        files.append(str(path))

    def report(*arguments):
        command = [sys.executable, "-m", "lanescope", "report", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    done = report(*files[:2], "-o", str(tmp_path / "two.html"))
    assert done.returncode == 0, done.stderr
    assert Decoded((tmp_path / "two.html").read_bytes()).head["title"] == "A run1.npy · B run2.npy"
    refused = report(*files, "-o", str(tmp_path / "three.html"))
    assert refused.returncode == 2
    assert "3 captures: a report has one, or two side by side" in refused.stderr
    assert not (tmp_path / "three.html").exists()


def test_cycles_and_nanoseconds_are_not_compared():
    with pytest.raises(UsageError, match="A has times in ns, B in cycles"):
        side_by_side(made({"a": ["x"]}), made({"a": ["x"]}, unit="cycles"))
