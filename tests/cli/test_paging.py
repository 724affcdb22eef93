"""Parts of an answer are the answer: the cursors of ``--limit`` lead through all rows once, in one order."""

import json
import os

import pytest

QUERY = "select name, track_id, count(*), sum(dur) from slices group by all"


@pytest.fixture
def capture(call):
    """Return a capture with findings of several rules."""
    arguments = ("--blocks", "8", "--unfinished", "9", "--two-writers", "1", "--seed", "7")
    assert call("sim", "cuda", *arguments, "-o", "run.npy").status == 0
    return "run.npy"


QUESTIONS = {
    "sql": (("sql", "run.npy", QUERY), "rows"),
    "tables": (("sql", "run.npy"), "rows"),
    "summary": (("summary", "run.npy"), "rows"),
    "lanes": (("summary", "run.npy", "--by", "lane"), "rows"),
    "overlap": (("summary", "run.npy", "--by", "overlap"), "rows"),
    "phases": (("phases", "run.npy", "--by", "lane"), "rows"),
    "critical path": (("critical-path", "run.npy"), "summary"),
    "check": (("check", "run.npy", "--fail-on", "never"), "findings"),
    "evidence": (("check", "run.npy", "--fail-on", "never", "--show", "LS103"), "evidence"),
    "info": (("info", "run.npy"), "stats"),
    "diff": (("diff", "run.npy", "run.npy"), "groups"),
}


def told(call, *arguments):
    done = call(*arguments, "--json")
    assert done.status == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize("question", QUESTIONS)
def test_all_parts_are_the_whole(call, capture, question):
    arguments, of = QUESTIONS[question]
    # Without an order a query has one only where it is asked for in parts.
    whole = told(call, *arguments, *(("--limit", "1000000") if question == "sql" else ()))
    total = len(whole[of])
    assert whole["page"].pop("cursor").startswith("0-")
    assert whole["page"] == {"of": of, "offset": 0, "rows": total, "total": total, "left": 0, "next": None}
    size = max(1, total // 3)
    parts, cursor = [], ()
    while True:
        page = told(call, *arguments, "--limit", size, *cursor)
        assert page["page"]["offset"] == len(parts)
        assert page["page"]["total"] == total
        parts += page[of]
        assert page["page"]["rows"] == len(page[of]) <= size
        assert page["page"]["left"] == total - len(parts)
        if page["page"]["next"] is None:
            break
        cursor = ("--cursor", page["page"]["next"])
    assert parts == whole[of]
    assert total > 1


def test_the_longest_gaps_are_twenty_unless_more_are_asked_for(call, capture):
    first = told(call, "gaps", "run.npy")
    assert len(first["rows"]) == 20 < first["page"]["total"]
    second = told(call, "gaps", "run.npy", "--cursor", first["page"]["next"])
    both = told(call, "gaps", "run.npy", "--limit", 40)
    assert first["rows"] + second["rows"] == both["rows"]


def test_captures_of_a_folder_come_in_parts(call, tmp_path):
    for seed in range(3):
        (tmp_path / "runs" / str(seed)).mkdir(parents=True)
        assert call("sim", "cuda", "--blocks", "2", "--seed", seed, "-o", f"runs/{seed}/run.npy").status == 0
    whole = told(call, "info", "runs")["captures"]
    first = told(call, "info", "runs", "--limit", 2)
    rest = told(call, "info", "runs", "--cursor", first["page"]["next"])
    assert (len(whole), first["captures"] + rest["captures"]) == (3, whole)
    assert "1 more capture: use --cursor" in call("info", "runs", "--limit", 2).err


def test_a_table_states_what_is_left_on_standard_error(call, capture):
    done = call("summary", "run.npy", "--limit", 2)
    (line,) = [line for line in done.err.splitlines() if "--cursor" in line]
    total = told(call, "summary", "run.npy")["page"]["total"]
    assert line.startswith(f"{total - 2} more rows: use --cursor 2-")
    assert len(call("summary", "run.npy", "--cursor", line.split()[-1]).out.splitlines()) == 4 + total - 2
    assert "--cursor" not in call("summary", "run.npy").err


def test_a_cursor_of_another_question_or_of_a_capture_that_changed_is_refused(call, capture):
    cursor = told(call, "summary", "run.npy", "--limit", 2)["page"]["next"]
    assert call("summary", "run.npy", "--cursor", cursor, "--limit", 7).status == 0, "the size of parts may change"
    for other in (
        ("summary", "run.npy", "--by", "lane"),
        ("phases", "run.npy"),
        ("summary", "run.npy", "--start", "1us"),
    ):
        done = call(*other, "--cursor", cursor)
        assert (done.status, done.out) == (2, "")
        assert "belongs to another question" in done.err
    os.utime("run.npy", ns=(1, 1))
    assert "the capture has changed" in call("summary", "run.npy", "--cursor", cursor).err


@pytest.mark.parametrize("cursor", ["x", "-", "-1-0123456789ab", "9" * 30 + "-0123456789ab", "2-", "²-0123456789ab"])
def test_no_cursor(call, capture, cursor):
    done = call("summary", "run.npy", f"--cursor={cursor}")
    assert (done.status, done.out) == (2, "")
    assert "invalid cursor" in done.err


def test_findings_come_in_parts_in_json_only(call, capture):
    assert call("check", "run.npy", "--limit", 2).status == 2


@pytest.mark.parametrize("by", ["region", "block"])
def test_the_next_part_of_a_table_has_its_columns_and_cells(call, capture, by):
    whole = call("summary", "run.npy", "--by", by).out.splitlines()
    first = call("summary", "run.npy", "--by", by, "--limit", 1)
    cursor = first.err.split("--cursor ")[1].split()[0]
    rest = call("summary", "run.npy", "--by", by, "--cursor", cursor).out.splitlines()
    rows = 5 if by == "region" else 4
    assert [line.split() for line in rest[: rows - 2]] == [line.split() for line in whole[: rows - 2]]
    assert rest[rows].split() == whole[rows + 1].split()
