"""What commands say of a window of each capture of a dataset: the same as of that window of its file."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter, defaultdict
from pathlib import Path

import jsonschema
import pytest

import lanescope
from cli.dataset.contents import write_ranks
from lanescope.io.dataset.records import Catalog
from lanescope.io.dataset.store import open_store

WINDOWS = [
    ("--start", "2us", "--end", "9us"),
    ("--start", "-5us"),
    ("--name", "w*", "--name", "q*"),
    ("--min-dur", "500ns", "--end", "+8us"),
    ("--where", "dur > 300 and name <> 'tile'"),
    ("--lane", "*compute", "--start", "tile#1"),
]
SCHEMAS = Path(__file__).resolve().parents[3] / "docs/reference/schemas"


@pytest.fixture(scope="module")
def kernels(fleet, tmp_path_factory):
    """The dataset of the kernels, and of one more that has other lanes."""
    from lanescope.cli import main

    out = tmp_path_factory.mktemp("windows") / "dataset"
    assert main(["ingest", str(fleet / "kernels"), "-o", str(out), "--jobs", "1"]) == 0
    return out


def rows(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def captures(dataset):
    return Catalog(open_store(str(dataset))).captures


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("by", ["name", "category", "lane", "device"])
def test_a_summary_of_one_capture_is_that_of_its_file(call, fleet, kernels, window, by):
    found = rows(call("summary", kernels, "--ranks", "1", "--by", by, "--csv", *window).out)
    expected = rows(call("summary", fleet / "kernels/rank_1/attention.npy", "--by", by, "--csv", *window).out)
    assert found
    assert {row.pop(by).removeprefix("kernels/rank 1/"): row for row in found} == {row.pop(by): row for row in expected}


@pytest.mark.parametrize("window", WINDOWS)
def test_a_summary_of_many_is_their_sum(call, kernels, window):
    """Of all captures: plain loops over the same windows of the files, by name and by rank."""
    lengths, of_rank = defaultdict(list), Counter()
    asked = defaultdict(list)
    for option, value in zip(window[::2], window[1::2], strict=True):
        asked[option[2:].replace("-", "_")].append(value)
    options = {name: values if name in ("lane", "name") else values[0] for name, values in asked.items()}
    for record in captures(kernels):
        part = lanescope.open(record.path).window(**options)
        for row in part.slices.rows("name", "dur"):
            if row["dur"] is not None:
                lengths[row["name"]].append(row["dur"])
                of_rank[str(record.rank)] += row["dur"]
    done = call("summary", kernels, "--csv", *window)
    found = {row["name"]: row for row in rows(done.out)}
    assert {name: (int(row["count"]), int(row["total_ns"])) for name, row in found.items()} == {
        name: (len(known), sum(known)) for name, known in lengths.items()
    }
    for name, known in lengths.items():
        assert int(found[name]["median_ns"]) == sorted(known)[-(-len(known) // 2) - 1]
    totals = {
        row["rank"]: int(row["total_ns"])
        for row in rows(call("summary", kernels, "--by", "rank", "--csv", *window).out)
    }
    assert totals == of_rank
    assert f"{window[1]}" in done.err
    assert ", in times of each of 3 captures; the accounting is of whole captures" in " ".join(done.err.split())


def test_stragglers_of_a_window_are_of_the_window(call, tmp_path):
    """A rank that is slow in the last tenth alone stands out there and nowhere else."""
    write_ranks(tmp_path, 5, lambda rank, step: 300 if rank == 3 and step >= 18 else 100)
    assert call("ingest", *sorted(tmp_path.glob("r?.json")), "-o", "fleet", "--jobs", "1").status == 0

    def outliers(*window):
        found = rows(call("summary", "fleet", "--by", "stragglers", "--csv", *window).out)
        assert len(found) == 5
        return {row["rank"]: float(row["ratio"]) for row in found if row["is_outlier"].lower() == "true"}

    assert list(outliers("--start", "+17500us")) == ["3"]
    assert outliers("--start", "+17500us")["3"] == pytest.approx(3, abs=0.01)
    assert "3" not in outliers("--end", "+17500us")
    said = json.loads(call("explain", "fleet", "--start", "+17500us", "--json").out)
    (row,) = [row for row in said["rows"] if row["topic"] == "straggler"]
    assert row["ranks"] == "3"
    assert row["command"] == "lanescope summary fleet --start=+17500us --by stragglers"
    assert rows(call(*row["command"].split()[1:], "--csv").out)[0]["rank"] == "3"


@pytest.mark.parametrize("window", WINDOWS[:4])
def test_verdicts_and_findings_are_those_of_the_windows(call, kernels, window):
    said = json.loads(call("explain", kernels, "--json", *window).out)
    document = json.loads(call("check", kernels, "--json", "--fail-on", "never", *window).out)
    expected, wanted = set(), []
    for record in captures(kernels):
        found = json.loads(call("explain", record.path, "--json", *window).out)["rows"]
        expected |= {(row["topic"], row["cause"]) for row in found}
        if record.rank == 0:
            commands = {row["command"] for row in found}
        mine = json.loads(call("check", record.path, "--json", "--fail-on", "never", *window).out)["findings"]
        wanted += [(record.rank, each["code"], each["count"], each["detail"]) for each in mine]
    assert {(row["topic"], row["cause"]) for row in said["rows"]} == expected
    of_first = json.loads(call("explain", kernels, "--ranks", "0", "--json", *window).out)
    assert {row["command"] for row in of_first["rows"]} == commands
    assert [
        (each["rank"], *(each["finding"][name] for name in ("code", "count", "detail")))
        for each in document["findings"]
    ] == wanted
    for each in (said, document, json.loads(call("summary", kernels, "--json", *window).out)):
        schema = json.loads((SCHEMAS / f"{each['schema'].replace('/', '-')}.json").read_text())
        jsonschema.validate(each, schema)
        assert each["window"]


def test_captures_without_the_lane_are_counted(call, fleet):
    assert call("ingest", fleet, "-o", "all", "--jobs", "1").status == 0
    done = call("summary", "all", "--by", "run", "--lane", "*compute", "--csv")
    assert [row["run"] for row in rows(done.out)] == ["kernels"]
    assert "in times of 3 of 7 captures (the others: no lane matches '*compute')" in " ".join(done.err.split())
    none = call("summary", "all", "--lane", "nothing")
    assert (none.status, none.out) == (2, "")
    assert none.err.startswith("lanescope: error: no lane matches 'nothing'\n")


def test_ranks_that_the_window_does_not_fit_end_no_verdicts(call, fleet):
    """Captures with a rank have no such lane: what the others say is said, and no straggler."""
    assert call("ingest", fleet / "train", "-o", "all", "--jobs", "1", "--run", "train").status == 0
    assert (
        call("ingest", fleet / "kernels/rank_1/attention.npy", "-o", "all", "--jobs", "1", "--run", "alone").status == 0
    )
    done = call("explain", "all", "--lane", "*compute", "--json")
    assert done.status == 0, done.err
    assert {row["run"] for row in json.loads(done.out)["rows"]} == {"alone"}
    assert "in times of 1 of 5 captures" in done.err
