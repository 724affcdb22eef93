"""What commands print of datasets: the same as of the captures, added up."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import jsonschema
import pytest

from cli.dataset.contents import write_ranks
from lanescope.io.dataset.records import Catalog
from lanescope.io.dataset.store import open_store
from lanescope.pipeline import session


@pytest.fixture(scope="session")
def whole(fleet, tmp_path_factory):
    """The dataset of the fleet."""
    from lanescope.cli import main

    out = tmp_path_factory.mktemp("answers") / "dataset"
    assert main(["ingest", str(fleet), "-o", str(out), "--jobs", "1"]) == 0
    return out


def rows(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("by", ["name", "category"])
@pytest.mark.parametrize("path", ["train/r1.json", "kernels/rank_1/attention.npy"])
def test_the_summary_of_one_capture_is_that_of_its_file(call, fleet, tmp_path, by, path):
    assert call("ingest", fleet / path, "-o", "one", "--jobs", "1").status == 0
    expected = rows(call("summary", fleet / path, "--by", by, "--csv").out)
    found = rows(call("summary", "one", "--by", by, "--csv").out)
    assert expected
    assert sorted(found, key=lambda row: row[by]) == sorted(expected, key=lambda row: row[by])


@pytest.mark.parametrize("by", ["lane", "device"])
def test_lanes_have_run_and_rank_before_their_paths(call, fleet, whole, by):
    found = rows(call("summary", whole, "--by", by, "--ranks", "2", "--runs", "train", "--csv").out)
    expected = rows(call("summary", fleet / "train/r2.json", "--by", by, "--csv").out)
    assert {row.pop(by).removeprefix("train/rank 2/"): row for row in found} == {row.pop(by): row for row in expected}


def test_sums_over_ranks_are_those_of_the_captures(call, whole):
    catalog = Catalog(open_store(str(whole)))
    found = {row["capture"]: row for row in rows(call("summary", whole, "--by", "capture", "--csv").out)}
    for record in catalog.captures:
        slices = session.open(record.path).slices
        assert int(found[record.path]["count"]) == int(slices.valid("dur").sum())
        assert int(found[record.path]["total_ns"]) == int(slices.values("dur").sum())


def test_names_of_many_captures_are_summed_up_exactly(call, whole):
    """Medians of all captures together, and the time that a name covers in each of them, as plain loops tell them."""
    lengths, unfinished, covered, busy = defaultdict(list), Counter(), Counter(), 0
    for record in Catalog(open_store(str(whole))).captures:
        lanes = defaultdict(list)
        for row in session.open(record.path).slices.rows("track_id", "name", "ts", "dur", "last_known_ts"):
            ts, dur = row["ts"], row["dur"]
            if dur is None:
                unfinished[row["name"]] += 1
                end = max(ts, row["last_known_ts"] if row["last_known_ts"] is not None else ts)
            else:
                lengths[row["name"]].append(dur)
                end = ts + max(dur, 0)
            for key in (row["name"], None):
                lanes[key, row["track_id"]].append((ts, end))
        for (key, _), times in lanes.items():
            last, length = -(1 << 63), 0
            for ts, end in sorted(times):
                length += max(0, end - max(ts, last))
                last = max(last, end)
            if key is None:
                busy += length
            else:
                covered[key] += length
    found = {row["name"]: row for row in rows(call("summary", whole, "--csv").out)}
    assert set(found) == {*lengths, *unfinished}
    assert max(map(len, lengths.values())) > 100
    for name, row in found.items():
        known = sorted(lengths[name])
        count = len(known)
        assert (int(row["count"]), int(row["unfinished"]), int(row["total_ns"])) == (
            count,
            unfinished[name],
            sum(known),
        )
        ranks = [int(row[f"{key}_ns"]) if row[f"{key}_ns"] else None for key in ("min", "median", "p99", "max")]
        places = (0, -(-count // 2) - 1, -(-count * 99 // 100) - 1, -1)
        assert ranks == [known[at] if known else None for at in places]
        assert float(row["share"]) == covered[name] / busy


def test_a_slow_rank_is_a_straggler(call, tmp_path):
    """One of eight ranks takes half as long again: it comes first, and is marked."""
    write_ranks(tmp_path, 8, lambda rank, step: 150 if rank == 5 else 100)
    assert call("ingest", *sorted(tmp_path.glob("r?.json")), "-o", "fleet", "--jobs", "1").status == 0
    found = rows(call("summary", "fleet", "--by", "stragglers", "--csv").out)
    assert [(row["rank"], row["is_outlier"].lower()) for row in found[:1]] == [("5", "true")]
    assert round(float(found[0]["ratio"]), 2) == 1.5
    assert [row["rank"] for row in found if row["is_outlier"].lower() == "true"] == ["5"]


def test_the_query_of_the_page_finds_the_rank_that_collectives_wait_for(call, fleet, whole):
    """The page's SQL against a plain loop over the captures."""
    page = (Path(__file__).parents[3] / "docs/howto/ingest.md").read_text()
    (query,) = re.findall(r"^```sql\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    calls = defaultdict(list)
    for rank in range(4):
        trace = session.open(fleet / f"train/r{rank}.json")
        slices = trace.slices
        for row in trace.details["kineto_collectives"].rows("slice_id", "collective", "group_name", "sequence"):
            if slices.values("category")[row["slice_id"]] == "kernel":
                key = (row["group_name"], row["sequence"], row["collective"])
                calls[key].append((int(slices.values("dur")[row["slice_id"]]), rank))
    assert len(calls) > 5
    waited = Counter()
    for ranks in calls.values():
        assert sorted(rank for _, rank in ranks) == [0, 1, 2, 3]
        shortest, last = min(ranks)
        waited[last] += sum(dur - shortest for dur, _ in ranks)
    found = rows(call("sql", whole, query, "--csv").out)
    assert {int(row["last_rank"]): int(row["waited"]) for row in found} == waited
    assert sum(int(row["collectives"]) for row in found) == len(calls)
    summed = rows(call("summary", whole, "--by", "collectives", "--csv").out)
    assert {int(row["rank"]): int(row["waited_ns"]) for row in summed} == waited
    assert [int(row["waited_ns"]) for row in summed] == sorted(waited.values(), reverse=True)
    length = sum(dur for ranks in calls.values() for dur, _ in ranks)
    assert sum(float(row["share"]) for row in summed) == pytest.approx(sum(waited.values()) / length)
    worst = max(sum(dur for dur, _ in ranks) - len(ranks) * min(ranks)[0] for ranks in calls.values())
    assert max(int(row["worst_ns"]) for row in summed) == worst


def test_a_collective_that_a_rank_may_leave_early_blames_no_rank(call, tmp_path):
    """The root of a broadcast is done when its data is sent; no other rank has waited for it because of that."""
    for rank, lengths in enumerate(((5, 100), (100, 40))):
        events = [
            {
                "ph": "X",
                "cat": "kernel",
                "name": f"ncclDevKernel_{name}",
                "pid": 0,
                "tid": 7,
                "ts": 1000.0 * at,
                "dur": length,
                "args": {"device": 0, "stream": 7, "correlation": at, "Collective name": name, "Group size": 2,
                         "Process Group Name": "0", "Seq": at},
            }
            for at, (name, length) in enumerate(zip(("broadcast", "_allgather_base"), lengths, strict=True), 1)
        ]  # fmt: skip
        document = {
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
            "schemaVersion": 1,
            "traceEvents": events,
        }
        (tmp_path / f"r{rank}.json").write_text(json.dumps(document))
    assert call("ingest", *sorted(tmp_path.glob("r?.json")), "-o", "fleet", "--jobs", "1").status == 0
    (only,) = rows(call("summary", "fleet", "--by", "collectives", "--csv").out)
    assert (only["rank"], only["collectives"], only["waited_ns"]) == ("1", "1", "60000")


def test_collectives_of_which_a_rank_is_missing_do_not_count(call, whole):
    done = call("summary", whole, "--by", "collectives", "--ranks", "0-2", "--csv")
    assert rows(done.out) == []
    assert "no run with whole collectives" in done.err


def test_the_verdicts_are_those_of_the_captures(call, whole):
    found = json.loads(call("explain", whole, "--json").out)
    assert found["captures"] == 7
    expected = defaultdict(list)
    for record in Catalog(open_store(str(whole))).captures:
        for row in json.loads(call("explain", record.path, "--json").out)["rows"]:
            expected[record.run, row["topic"], row["cause"]].append((record.rank, row["share"], row["sentence"]))
    told = {(row["run"], row["topic"], row["cause"]): row for row in found["rows"] if row["cause"] != "rank"}
    assert set(told) == set(expected)
    for key, mine in expected.items():
        assert told[key]["captures"] == len(mine)
        assert told[key]["largest_share"] == max(share for _, share, _ in mine)
        assert max(mine, key=lambda each: each[1])[2] in told[key]["sentence"]
        assert told[key]["ranks"] == ", ".join(str(rank) for rank, *_ in sorted(mine))
    (first, *_) = rows(call("summary", whole, "--by", "collectives", "--csv").out)
    of_ranks = [row for row in found["rows"] if row["topic"] == "collectives"]
    assert of_ranks[0]["ranks"] == first["rank"]
    only = json.loads(call("explain", whole, "--runs", "train", "--ranks", "1", "--json").out)
    assert {(row["run"], row["captures"], row["ranks"]) for row in only["rows"]} == {("train", 1, "1")}


def test_verdicts_as_text_and_csv(call, whole):
    text, table = call("explain", whole).out, rows(call("explain", whole, "--csv").out)
    assert len(table) == text.count("\n    lanescope ")
    assert all(row["sentence"].split(":")[0] in " ".join(text.split()) for row in table)


def test_the_findings_are_those_of_the_captures(call, whole):
    document = json.loads(call("check", whole, "--json", "--fail-on", "never").out)
    for record in Catalog(open_store(str(whole))).captures:
        expected = json.loads(call("check", record.path, "--json", "--fail-on", "never").out)["findings"]
        mine = [each["finding"] for each in document["findings"] if each["capture"] == record.capture]
        assert [(each["code"], each["count"], each["detail"]) for each in mine] == [
            (each["code"], each["count"], each["detail"]) for each in expected
        ]


@pytest.mark.parametrize(
    "command", ["info", "check --fail-on never", "summary", "summary --by stragglers", "explain", "sql"]
)
def test_documents_follow_their_schemas(call, whole, command):
    verb, *flags = command.split()
    done = call(verb, whole, *flags, "--json")
    assert done.status == 0, done.err
    document = json.loads(done.out)
    folder = Path(__file__).resolve().parents[3] / "docs/reference/schemas"
    schema = json.loads((folder / f"{document['schema'].replace('/', '-')}.json").read_text())
    jsonschema.validate(document, schema)


def test_the_document_of_ingest_follows_its_schema(call, fleet):
    document = json.loads(call("ingest", fleet, "missing.bin", "-o", "one", "--json").out)
    folder = Path(__file__).resolve().parents[3] / "docs/reference/schemas"
    jsonschema.validate(document, json.loads((folder / "lanescope.ingest-1.json").read_text()))
    assert document["counts"] == {"ingested": 7, "present": 0, "failed": 1}


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("summary", "--by", "overlap"), 2),
        (("summary", "--by", "collectives", "--start", "0"), 2),
        (("summary", "--start", "5us", "--end", "4us"), 2),
        (("summary", "--lane", "nothing"), 2),
        (("check", "--where", "no_column > 3"), 2),
        (("info", "--start", "0"), 2),
        (("info", "--family", "cuda"), 2),
        (("sql", "--ranks", "99", "select 1"), 2),
        (("sql", "--ranks", "5-2", "select 1"), 2),
        (("check", "--sarif"), 2),
    ],
)
def test_what_a_dataset_cannot_answer_is_a_clear_error(call, whole, arguments, status):
    verb, *rest = arguments
    done = call(verb, whole, *rest)
    assert done.status == status
    assert done.err.startswith("lanescope")
    assert "Traceback" not in done.err
