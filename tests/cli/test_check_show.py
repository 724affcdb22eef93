"""``check --show`` prints the evidence rows; ``--github`` prints what a workflow of GitHub reads."""

import json
import re

import pytest

from lanescope.cli.commands import check
from lanescope.view import github_annotations


@pytest.fixture
def faulty(call):
    """Return a capture with many unfinished slices, some crossing ones and stats."""
    arguments = ("--unfinished", "40", "--two-writers", "1", "--seed", "7")
    assert call("sim", "cuda", *arguments, "-o", "run.npy").status == 0
    return "run.npy"


def table(text):
    head, *rows = [line.split("\t") for line in text.splitlines()]
    assert head == ["code", "table", "id", "lane", "ts", "dur", "name"]
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_the_rows_are_those_that_sql_finds(call, faulty):
    findings = json.loads(call("check", faulty, "--json").out)["findings"]
    shown = table(call("check", faulty, "--show", "LS103,LS3").out)
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
    rows = table(call("check", faulty, "--show", "LS103").out)
    assert [str(row["id"]) for row in told["evidence"]] == [row["id"] for row in rows]
    assert len({finding["code"] for finding in told["findings"]}) > 1


@pytest.mark.parametrize("codes", ["LS0", "LS2,LS3"])
def test_rows_of_stats_have_no_lane_and_no_rows_are_said(call, faulty, codes):
    done = call("check", faulty, "--show", codes)
    assert {row["table"] for row in table(done.out)} == ({"stats"} if codes == "LS0" else {"slices"})
    done = call("check", faulty, "--show", "LS404")
    assert (done.out, done.err.splitlines()[0]) == ("", "no findings of LS404")


def test_a_terminal_shows_the_first_rows_of_each_finding(call, faulty, monkeypatch):
    monkeypatch.setattr(check, "is_terminal", lambda stream: True)
    monkeypatch.setattr(check, "_ROWS", 2)
    everything = table(call("check", faulty, "--show", "LS3", "--all").out)
    done = call("check", faulty, "--show", "LS3")
    rows = table(done.out)
    assert rows[:2] == everything[:2]
    assert f"... {len(everything) - len(rows)} more rows (use --all, --json, or the SQL of --json)" in done.err


def test_an_unknown_rule_and_a_format_without_rows_are_refused(call, faulty):
    assert "unknown rule 'LS999'" in call("check", faulty, "--show", "LS999").err
    for format in ("--sarif", "--github"):
        done = call("check", faulty, "--show", "LS1", format)
        assert (done.status, done.out) == (2, "")
    assert call("check", faulty, "--json", "--sarif").status == 2


def test_the_exit_status_is_that_of_the_findings(call, faulty):
    assert call("check", faulty, "--show", "LS103").status == 1
    assert call("check", faulty, "--show", "LS103", "--fail-on", "never").status == 0


COMMAND = re.compile(r"::(notice|warning|error)( [a-z]+=[^,:]*(?:,[a-z]+=[^,:]*)*)?::(.*)")


def decoded(line):
    """Read a workflow command as the runner does: properties end at a comma, the command at two colons."""
    level, properties, text = COMMAND.fullmatch(line).groups()
    parts = dict(part.split("=", 1) for part in (properties or "").strip().split(",") if part)

    def plain(value):
        for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
            value = value.replace(code, character)
        return value

    return level, {name: plain(value) for name, value in parts.items()}, plain(text)


def test_each_finding_is_an_annotation_of_its_severity(call, faulty):
    findings = json.loads(call("check", faulty, "--json").out)["findings"]
    done = call("check", faulty, "--github", "--all")
    assert done.status == 1
    annotations = [decoded(line) for line in done.out.splitlines()]
    assert len(annotations) == len(findings)
    for finding, (level, properties, text) in zip(findings, annotations, strict=True):
        assert level == finding["severity"]
        assert properties == {"title": f"{finding['code']}: {finding['title']}", "file": faulty}
        assert text.startswith(finding["detail"])
        assert text.endswith(finding["help"])
        assert finding["location"]["track"] in text


def test_what_is_everywhere_does_not_use_up_what_github_shows(call, faulty):
    findings = json.loads(call("check", faulty, "--json").out)["findings"]
    crowd = sum(finding["code"] == "LS103" for finding in findings)
    lines = [decoded(line) for line in call("check", faulty, "--github").out.splitlines()]
    assert sum(properties["title"].startswith("LS103:") for _, properties, _ in lines) == 8
    assert ("notice", {"title": "LS103"}, f"{crowd - 8} more locations (use --all or --json)") in lines


class Hostile:
    def to_dict(self):
        track = "lane\n::error::no, %0A\r\x1b[2J"
        return {
            "code": "LS101",
            "severity": "warning",
            "title": "a: b, c",
            "detail": "50% off\n::stop-commands::x",
            "count": 3,
            "location": {"track": track, "input": "a,b:c\nd", "offset": None},
            "help": "x",
        }


def test_no_text_of_a_trace_ends_a_command():
    (line,) = github_annotations.lines([Hostile()])
    assert "\n" not in line
    level, properties, text = decoded(line)
    assert (level, properties) == ("warning", {"title": "LS101: a: b, c", "file": "a,b:c\\x0ad"})
    assert text == ("50% off\\x0a::stop-commands::x; lane\\x0a::error::no, %0A\\x0d\\x1b[2J; count: 3\nx")
