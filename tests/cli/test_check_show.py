"""``check --show`` prints the evidence rows."""

import json

import pytest

from cli.conftest import csv_rows
from lanescope.cli.commands import check


@pytest.fixture
def faulty(call):
    """Return a capture with many unfinished slices, some crossing ones and stats."""
    arguments = ("--unfinished", "40", "--two-writers", "1", "--seed", "7")
    assert call("sim", "cuda", *arguments, "-o", "run.npy").status == 0
    return "run.npy"


def table(text):
    head, *rows = csv_rows(text)
    head = [name.removesuffix("_ns") for name in head]
    assert head == ["code", "table", "id", "lane", "ts", "dur", "name"]
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_the_rows_are_those_that_sql_finds(call, faulty):
    findings = json.loads(call("check", faulty, "--json").out)["findings"]
    shown = table(call("check", faulty, "--show", "LS103,LS3", "--csv").out)
    expected = set()
    for finding in findings:
        if finding["code"] != "LS103" and not finding["code"].startswith("LS3"):
            continue
        answer = json.loads(call("sql", faulty, finding["sql"], "--json").out)
        names = [column["name"] for column in answer["columns"]]
        for values in answer["rows"]:
            row = dict(zip(names, values, strict=True))
            expected.add((finding["code"], finding["evidence"]["table"], row["id"], row["ts"], row["dur"], row["name"]))
    found = {
        (
            row["code"],
            row["table"],
            int(row["id"]),
            int(row["ts"]),
            int(row["dur"]) if row["dur"] else None,
            row["name"],
        )
        for row in shown
    }
    assert found == expected
    assert {row["code"] for row in shown} >= {"LS103", "LS301"}
    assert all(row["lane"].startswith("GPU/block ") for row in shown)


def test_json_has_the_same_rows_next_to_all_findings(call, faulty):
    told = json.loads(call("check", faulty, "--show", "LS103", "--json").out)
    rows = table(call("check", faulty, "--show", "LS103", "--csv").out)
    assert [str(row["id"]) for row in told["evidence"]] == [row["id"] for row in rows]
    assert len({finding["code"] for finding in told["findings"]}) > 1


@pytest.mark.parametrize("codes", ["LS0", "LS2,LS3"])
def test_rows_of_stats_have_no_lane_and_no_rows_are_said(call, faulty, codes):
    done = call("check", faulty, "--show", codes, "--csv")
    assert {row["table"] for row in table(done.out)} == ({"stats"} if codes == "LS0" else {"slices"})
    done = call("check", faulty, "--show", "LS404")
    assert (done.out, done.err.splitlines()[0]) == ("", "no findings of LS404")


def test_a_terminal_shows_the_first_rows_of_each_finding(call, faulty, monkeypatch):
    monkeypatch.setattr(check, "is_terminal", lambda stream: True)
    monkeypatch.setattr(check, "_ROWS", 2)
    everything = table(call("check", faulty, "--show", "LS3", "--csv").out)
    done = call("check", faulty, "--show", "LS3")
    rows = [line.split() for line in done.out.splitlines()[2:]]
    assert [row[0] for row in rows[:2]] == [row["code"] for row in everything[:2]]
    assert f"... {len(everything) - len(rows):,} more rows (use --all, --json, or the SQL of --json)" in done.err


def test_an_unknown_rule_and_a_format_without_rows_are_refused(call, faulty):
    assert "unknown rule 'LS999'" in call("check", faulty, "--show", "LS999").err
    for format in ("--sarif", "--format=github", "--format=markdown"):
        done = call("check", faulty, "--show", "LS1", format)
        assert (done.status, done.out) == (2, "")
    assert call("check", faulty, "--json", "--sarif").status == 2


def test_the_exit_status_is_that_of_the_findings(call, faulty):
    assert call("check", faulty, "--show", "LS103").status == 1
    assert call("check", faulty, "--show", "LS103", "--fail-on", "never").status == 0
