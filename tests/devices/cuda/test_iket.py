"""Files of IKET, in both forms, to the truth of whoever wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lanescope
from devices.cuda.helpers import json_file
from lanescope.errors import InputError

GOLDEN = Path(__file__).parent / "golden" / "iket"
FORMS = ["iket_pid_1.trace.json", "inline.trace.json"]


def rows_of(trace):
    """Ranges, markers and lifetimes, as the truth has them."""
    tables = trace.tables()
    slices = {row["id"]: row for row in trace.slices.rows()}
    instants = {row["id"]: row for row in trace.instants.rows()}
    found = []
    for row in tables["cuda_iket_ranges"].rows():
        of = slices[row["slice_id"]]
        found.append(
            {
                "kind": "range",
                "stack": of["category"] == "region",
                "name": of["name"],
                "begin": of["ts_ticks"],
                "end": of["ts_ticks"] + of["dur_ticks"],
                "to": row["warp"] if row["end_warp"] is None else row["end_warp"],
                **identity(row),
            }
        )
    for row in tables["cuda_iket_marks"].rows():
        of = instants[row["instant_id"]]
        found.append({"kind": "mark", "name": of["name"], "begin": of["ts_ticks"], "end": None, **identity(row)})
    return found


def identity(row):
    names = ("launch", "kernel", "block", "warp", "sm", "tpc", "gpc")
    payload = int(row["payload"]) if row["payload"] else None
    return {name: row[name] for name in names} | {"graph": row["graph"] or None, "payload": payload}


def by_text(rows):
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.mark.parametrize("name", FORMS)
def test_a_golden_is_decoded_to_its_truth(name):
    truth = json.loads((GOLDEN / "truth.json").read_text())
    trace = lanescope.open(GOLDEN / name)
    assert trace.inputs.values("format").tolist() == ["iket-json"]
    assert by_text(rows_of(trace)) == by_text(row for row in truth if row["kind"] != "life")
    lives = [row for row in truth if row["kind"] == "life"]
    t0 = min(row["begin"] for row in truth)
    covered = sorted((row["ts"] + t0, row["ts"] + row["dur"] + t0) for row in trace.coverage.rows())
    assert covered == sorted((row["begin"], row["end"]) for row in lives)


def changed(tmp_path, change, form=FORMS[0]):
    content = json.loads((GOLDEN / form).read_text())
    change(content)
    return json_file(tmp_path, content)


def test_all_kernels_may_be_in_graphs(tmp_path):
    def move(content):
        content["graphLaunches"] = {"12": content["launches"]}
        content["launches"] = []

    trace = lanescope.open(changed(tmp_path, move))
    assert {row["graph"] for row in trace.tables()["cuda_iket_ranges"].rows()} == {"12"}
    assert len(trace.slices) == 2


def test_a_range_that_ends_in_another_warp_is_a_region_and_a_flow(tmp_path):
    def move(content):
        content["launches"][0]["ranges"][1]["warpLocIdxs"] = [1, 0]

    trace = lanescope.open(changed(tmp_path, move))
    [flow] = trace.flows.rows()
    [row] = [row for row in trace.tables()["cuda_iket_ranges"].rows() if row["end_warp"] is not None]
    assert (row["block"], row["warp"], row["end_block"], row["end_warp"]) == (1, 4, 0, 0)
    assert flow["src_slice_id"] == row["slice_id"]
    assert flow["dst_ts"] - flow["src_ts"] == 64


def test_events_within_a_range_are_instants(tmp_path):
    def add(content):
        events = [{"eventId": 3, "timestamp": 1152921504606847008 + 16 * n} for n in range(3)]
        content["launches"][0]["ranges"][1] |= {"rangeType": 3, "internalEvents": events}

    trace = lanescope.open(changed(tmp_path, add))
    assert [row["name"] for row in trace.instants.rows()].count("k_tile") == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["launches"][0]["ranges"][0].pop("startTs"),
        lambda content: content["launches"][0]["ranges"][0].update(rangeNameIdx=9),
        lambda content: content["launches"][0]["ranges"][0].update(warpLocIdxs=[7, 7]),
        lambda content: content["launches"][0]["ranges"][0].update(startTs=1 << 63),
        lambda content: content["launches"][0]["markers"].append(5),
        lambda content: content["launches"].append(None),
        lambda content: content["locationTable"][0].update(ctaId=[0, 0]),
    ],
)
def test_entries_that_lack_something_are_counted(tmp_path, change):
    trace = lanescope.open(changed(tmp_path, change))
    assert sum(row["count"] for row in trace.stats.rows() if row["name"] == "cuda_iket_unreadable") >= 1


def test_open_ranges_stay_open(tmp_path):
    def cut(content):
        content["launches"][0]["ranges"][0].pop("endTs")

    trace = lanescope.open(changed(tmp_path, cut))
    [row] = [row for row in trace.slices.rows() if row["dur"] is None]
    assert row["name"] == "mainloop"
    assert row["last_known_ts"] == 1152921504606847676 - 1152921504606846944


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"launches": [], "stringTable": []', "invalid JSON"),
        ('{"meta": {"version": 2}, "launches": [], "stringTable": []}', "unsupported IKET version 2"),
        ('{"stringTable": [], "locationTable": []}', "neither launches nor graphLaunches"),
    ],
)
def test_other_files_are_refused(tmp_path, text, error):
    with pytest.raises(InputError, match=error):
        lanescope.open(json_file(tmp_path, text))


CONTRADICTIONS = {
    "block outside of the grid": lambda launch, _: launch.update(gridDimX=1),
    "warp outside of the block": lambda launch, _: launch.update(blockDimX=128),
    "two clusters of an SM": lambda _, content: content["locationTable"][1].update(smId=2, tpcId=3),
    "no number of a grid": lambda launch, _: launch.update(gridId=1 << 63),
    "no unit": lambda _, content: content["locationTable"][0].update(gpcId=-1),
    "event after its warp": lambda launch, _: launch["markers"][0].update(timestamp=(1 << 60) + 10_000),
    "warp without a lifetime": lambda launch, _: launch["warpLifetimes"].pop(),
    "a warp lives twice": lambda launch, _: launch["warpLifetimes"].append(launch["warpLifetimes"][0]),
    "unknown kind": lambda launch, _: launch["ranges"][0].update(rangeType=9),
    "payload out of its type": lambda launch, _: launch["ranges"][0]["internalEvents"][0].update(payloadVal=1 << 40),
    "event before its range": lambda launch, _: launch["ranges"][0]["internalEvents"][1].update(timestamp=1 << 59),
}


@pytest.mark.parametrize("change", CONTRADICTIONS)
def test_contradictions_are_counted(tmp_path, change):
    def both(content):
        CONTRADICTIONS[change](content["launches"][0], content)

    before, after = (
        {row["name"]: row["count"] for row in lanescope.open(path).stats.rows()}
        for path in (GOLDEN / FORMS[0], changed(tmp_path, both))
    )
    assert "cuda_iket_contradicts" not in before
    assert after["cuda_iket_contradicts"] >= 1
