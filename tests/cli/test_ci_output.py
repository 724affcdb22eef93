"""``--format github`` prints what a workflow of GitHub reads, ``--format markdown`` what its summaries show."""

import json
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lanescope.view.ci import github_annotations, markdown

HOSTILE = "a|b`c\\|<script>*x*[l](http://www.e.com)\n::error::no, %0A\r\x1b[2J @me #1 &amp; www.x.com"


@pytest.fixture
def faulty(call):
    """Return a capture with many unfinished slices, some crossing ones and stats."""
    assert call("sim", "cuda", "--unfinished", "40", "--two-writers", "1", "--seed", "7", "-o", "run.npy").status == 0
    return "run.npy"


# --- annotations --------------------------------------------------------------------------------------------------

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


def finding(**changes):
    class One:
        def to_dict(self):
            told = {"code": "LS101", "severity": "warning", "title": "title", "detail": "", "count": 3, "help": "help"}
            return told | {"location": {"track": "lane", "input": "run.bin", "offset": None}} | changes

    return One()


def test_each_finding_is_an_annotation_of_its_severity(call, faulty):
    findings = json.loads(call("check", faulty, "--json").out)["findings"]
    done = call("check", faulty, "--format", "github", "--all")
    assert done.status == 1
    annotations = [decoded(line) for line in done.out.splitlines()]
    assert len(annotations) == len(findings)
    for each, (level, properties, text) in zip(findings, annotations, strict=True):
        assert level == each["severity"]
        assert properties == {"title": f"{each['code']}: {each['title']}", "file": faulty}
        assert text.startswith(each["detail"])
        assert text.endswith(each["help"])
        assert each["location"]["track"] in text


def test_a_step_has_ten_of_each_level_and_says_what_it_does_not_show(call, faulty):
    findings = json.loads(call("check", faulty, "--json").out)["findings"]
    lines = [decoded(line) for line in call("check", faulty, "--format", "github").out.splitlines()]
    assert max(Counter(level for level, *_ in lines).values()) == 10
    *shown, (level, properties, text) = lines
    assert (level, properties["title"]) == ("notice", "lanescope check")
    hidden = Counter(each["code"] for each in findings)
    hidden -= Counter(properties["title"].split(":")[0] for _, properties, _ in shown)
    counted = ", ".join(f"{code} ({count})" for code, count in hidden.items())
    assert text.startswith(f"{hidden.total()} more findings without an annotation: {counted}; ")
    assert len(shown) + hidden.total() == len(findings)
    # One rule has most of them; all others are there in full.
    assert set(hidden) == {"LS103"}


@given(st.lists(st.tuples(st.sampled_from(["error", "warning", "notice"]), st.sampled_from(["A1", "B2", "C3"]))))
def test_no_step_has_more_than_ten_of_a_level_and_none_is_lost(listed):
    findings = [finding(code=code, severity=severity) for severity, code in listed]
    lines = [decoded(line) for line in github_annotations.lines(findings, "run.bin")]
    assert all(count <= 10 for count in Counter(level for level, *_ in lines).values())
    rest = [text for _, properties, text in lines if properties["title"] == "lanescope check"]
    told = int(rest[0].split()[0]) if rest else 0
    assert len(lines) - len(rest) + told == len(findings)
    if len(findings) > 9 and not rest:
        assert max(Counter(severity for severity, _ in listed).values()) <= 10
    # Before a rule has two annotations of a level, each rule that is found there has one.
    for severity in {severity for severity, _ in listed}:
        titles = Counter(
            properties["title"] for level, properties, _ in lines[: len(lines) - len(rest)] if level == severity
        )
        rules = {code for level, code in listed if level == severity}
        assert len(titles) == len(rules)


def test_no_text_of_a_trace_ends_a_command():
    place = {"track": "lane\n::error::no, %0A\r\x1b[2J", "input": "a,b:c\nd", "offset": None}
    hostile = finding(title="a: b, c", detail="50% off\n::stop-commands::x", location=place)
    (line,) = github_annotations.lines([hostile])
    assert "\n" not in line
    level, properties, text = decoded(line)
    assert (level, properties) == ("warning", {"title": "LS101: a: b, c", "file": "a,b:c\\x0ad"})
    assert text == ("50% off\\x0a::stop-commands::x; lane\\x0a::error::no, %0A\\x0d\\x1b[2J; count: 3\nhelp")


def test_the_runner_cuts_no_message_and_the_help_stays():
    (line,) = github_annotations.lines([finding(detail="\U0001f600" * 9000, title="t" * 900)])
    _, properties, text = decoded(line)
    assert len(text.encode("utf-16-le")) / 2 < 4096
    assert text.endswith("count: 3\nhelp")
    assert len(properties["title"]) <= 255


def test_a_summary_is_one_annotation_with_the_first_groups(call, faulty):
    rows = json.loads(call("summary", faulty, "--json").out)["rows"]
    done = call("summary", faulty, "--format", "github", "--limit", "3")
    (line,) = done.out.splitlines()
    level, properties, text = decoded(line)
    assert (level, properties) == ("notice", {"file": faulty, "title": "lanescope summary --by name"})
    *listed, more = text.split("\n")
    assert [one.split(": count ")[0] for one in listed] == [row["name"] for row in rows[:3]]
    assert more == f"{len(rows) - 3} more rows"


# --- Markdown -----------------------------------------------------------------------------------------------------

READER = MarkdownIt("gfm-like", {"linkify": False})


def tables(text):
    """Return the tables of a document as the reader of another project finds them: rows of texts."""
    found, row = [], []
    for token in READER.parse(text):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            row = []
            found[-1].append(row)
        elif token.type == "inline" and token.level >= 3 and found:
            row.append("".join(child.content for child in token.children if child.type != "html_inline"))
    return found


def kinds(text):
    return {child.type for token in READER.parse(text) for child in (token.children or ())}


@given(st.text(max_size=40) | st.text("`|\\<>*_[]()!#&;:@/. \n\ta1-+~w", max_size=40))
def test_no_name_breaks_a_table(name):
    document = markdown.Document(1 << 16)
    document.table(("name", "x"), [[markdown.code(name), "1"], [markdown.plain(name), "2"]])
    text = document.text()
    assert text.count("\n") == 4
    (((*_, head), *rows),) = tables(text)
    assert head == "x"
    assert [row[1] for row in rows] == ["1", "2"]
    shown = " ".join(markdown.escape(name).split())
    assert [" ".join(row[0].split()) for row in rows] == [shown, shown]
    assert kinds(text) <= {"text", "code_inline", "html_inline", "text_special"}
    assert set(re.findall(r"<[^>]*>", text)) <= {"<code>", "</code>"} or "`" in text


def test_hostile_names_of_a_capture_stay_names(call, tmp_path):
    events = [
        {"ph": "X", "pid": 1, "tid": 1, "ts": 10 * n, "dur": 5, "name": name} for n, name in enumerate([HOSTILE, "b"])
    ]
    (tmp_path / "hostile.json").write_text(json.dumps({"traceEvents": events}))
    done = call("summary", "hostile.json", "--format", "markdown")
    assert done.status == 0, done.err
    ((head, *rows),) = tables(done.out)
    assert [len(row) for row in rows] == [len(head)] * 2
    assert {row[0] for row in rows} == {markdown.escape(HOSTILE), "b"}
    assert "link_open" not in kinds(done.out)
    assert "<script" not in READER.render(done.out)


def test_check_as_markdown_has_all_findings_and_what_they_mean(call, faulty):
    findings = json.loads(call("check", faulty, "--json").out)["findings"]
    done = call("check", faulty, "--format", "markdown", "--all")
    assert done.status == 1
    ((_, *rows),) = tables(done.out)
    assert [(row[0], row[1]) for row in rows] == [(each["severity"], each["code"]) for each in findings]
    assert "**Inconsistent data**: " in done.out
    rendered = READER.render(done.out)
    assert all(each["help"].replace("`lanescope dump`", "") in rendered or "`" in each["help"] for each in findings)
    short = call("check", faulty, "--format", "markdown").out
    crowd = sum(each["code"] == "LS103" for each in findings)
    assert f"{crowd - 8} more locations" in short


def test_check_without_findings_and_with_losses(call, run_file, lossy_file):
    done = call("check", "run.blink", "--format", "markdown", "--ignore", "LS103")
    assert (done.status, tables(done.out)) == (0, [])
    assert "All checks passed (31 rules)." in done.out
    assert call("check", "run.blink", "--format", "github", "--ignore", "LS103").out == ""
    assert "**Data loss**: missing sequence numbers (10)." in call("summary", "lossy.blink", "--format", "markdown").out


def test_a_summary_never_exceeds_what_a_step_may_have(call, faulty, tmp_path, monkeypatch):
    size = markdown.LIMIT - (1 << 14) - 400
    (tmp_path / "step.md").write_bytes(b"x" * size)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    done = call("summary", faulty, "--format", "markdown")
    assert size + len(done.out.encode()) <= markdown.LIMIT
    ((_, *rows),) = tables(done.out)
    hidden = int(re.search(r"^(\d+) more rows?: the summary", done.out, re.MULTILINE)[1])
    total = len(json.loads(call("summary", faulty, "--json").out)["rows"])
    assert hidden > 0
    assert len(rows) + hidden == total
    (tmp_path / "step.md").write_bytes(b"x" * markdown.LIMIT)
    done = call("summary", faulty, "--format", "markdown")
    assert done.out == ""
    assert "the summary of this step is full" in done.err


@pytest.fixture
def slower(call, tmp_path):
    """Return two captures: in the second one ``load`` is half as long again, and ``new`` is new."""
    for name, dur, others in (("a.json", 100, []), ("b.json", 150, ["new|`x`"])):
        named = [("load", dur)] * 50 + [("other", 10)] * 50 + [(other, 5) for other in others * 10]
        events = [
            {"ph": "X", "pid": 1, "tid": 1, "ts": 1000 * at, "dur": dur + at % 3, "name": name}
            for at, (name, dur) in enumerate(named)
        ]
        (tmp_path / name).write_text(json.dumps({"traceEvents": events}))
    return "a.json", "b.json"


def test_a_comparison_as_annotations(call, slower):
    fails = ("--floor", "1%", "--fail-if", "total(load) > +5%")
    groups = json.loads(call("diff", *slower, "--json").out)["groups"]
    named = [group for group in groups if group["verdict"] not in ("no difference found", "not tested")]
    done = call("diff", *slower, "--format", "github", *fails)
    assert done.status == 1, done.err
    lines = [decoded(line) for line in done.out.splitlines()]
    assert [level for level, *_ in lines][:1] == ["error"]
    assert "total(load) > +5%: load" in lines[0][2]
    notices = [text for level, _, text in lines if level == "notice"]
    assert len(notices) == len(named) > 1
    assert any(text.startswith(("load, ", "load:")) for text in notices)
    assert all(properties["file"] == "b.json" for _, properties, _ in lines)


def test_a_comparison_as_markdown(call, slower):
    groups = json.loads(call("diff", *slower, "--json").out)["groups"]
    done = call("diff", *slower, "--format", "markdown", "--floor", "1%", "--fail-if", "total(load) > +5%")
    assert done.status == 1, done.err
    assert "**Failed**: " in done.out
    head, *rows = tables(done.out)[-1]
    assert [row[0] for row in rows] == [group["key"]["name"] for group in groups]
    assert all(len(row) == len(head) for row in rows)
    assert call("diff", *slower, "--format", "markdown", "--json").status == 2


@pytest.mark.parametrize("by", ["lane", "device", "category", "region", "overlap", "idle", "occupancy", "block"])
@pytest.mark.parametrize("format", ["github", "markdown"])
def test_all_summaries_have_both_formats(call, faulty, by, format):
    done = call("summary", faulty, "--by", by, "--format", format)
    assert done.status == 0, done.err
    rows = json.loads(call("summary", faulty, "--by", by, "--json").out)["rows"]
    if format == "github":
        (line,) = done.out.splitlines()
        shown = decoded(line)[2].splitlines()
        assert len(shown) == min(len(rows), 10) + (len(rows) > 10)
    else:
        ((head, *listed),) = tables(done.out)
        assert len(listed) == min(len(rows), 50)
        assert all(len(row) == len(head) for row in listed)


def test_formats_exclude_each_other(call, faulty):
    for verb in ("check", "summary"):
        assert call(verb, faulty, "--json", "--format", "github").status == 2
