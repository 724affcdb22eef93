"""``lanescope mcp``: what agents may ask, over the official client and its own protocol on standard streams."""

import asyncio
import json
import os
import shlex
import subprocess
import sys

import pytest

import lanescope
from lanescope.cli import agent_tools
from lanescope.cli.agent_tools import LARGEST, Tools
from lanescope.errors import LanescopeError, UsageError

FAMILIES = ("aie", "ascend", "cuda", "levelzero")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Return a folder with a capture of each family in a folder of its own, and a secret outside of it."""
    top = tmp_path_factory.mktemp("served")
    (top / "secret.npy").write_bytes(b"not yours")
    for family in FAMILIES:
        (top / "root" / family).mkdir(parents=True)
        for name, data in lanescope.simulate(family, seed=1).files.items():
            (top / "root" / family / name).write_bytes(data)
    for number, seed in enumerate((1, 2)):
        folder = top / "root" / f"run{number}"
        folder.mkdir()
        data = next(iter(lanescope.simulate("cuda", blocks=8, seed=seed, unfinished=3).files.values()))
        (folder / "run.npy").write_bytes(data)
    return top / "root"


MAIN = {"aie": "trace.bin", "ascend": "l2_swimlane_records.json", "cuda": "attention.npy"}


def main_of(root, family):
    name = MAIN.get(family) or next(path.name for path in sorted((root / family).iterdir()) if "truth" not in path.name)
    return f"{family}/{name}"


def ask(root, tool, *arguments, **named):
    answer = asyncio.run(getattr(Tools(str(root)), tool)(*arguments, **named))
    assert len(answer.encode()) <= LARGEST
    return json.loads(answer)


def rows_of(root, path, query):
    trace = lanescope.open(root / path)
    return [list(row.values()) for row in lanescope.sql(trace, query).rows()] if query else None


# --- answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("by", ["name", "lane", "category"])
def test_the_numbers_of_a_summary_are_those_of_its_sql_and_of_the_command(root, family, by):
    path = main_of(root, family)
    told = ask(root, "summary", path, by, limit=5)
    found = list(lanescope.sql(lanescope.open(root / path), told["sql"]).rows())
    names = [column["name"] for column in told["columns"]]
    assert [dict(zip(names, row, strict=True)) for row in told["rows"]] == found[: len(told["rows"])]
    of_command = {row[by]: row for row in lanescope.summary(lanescope.open(root / path), by).rows()}
    assert len(of_command) == told["page"]["total"]
    for row in found:
        other = of_command[row[by]]
        pairs = [
            ("count", "count"),
            ("unfinished", "unfinished"),
            ("total", "total"),
            ("shortest", "min"),
            ("longest", "max"),
        ]
        assert {mine: row[mine] for mine, _ in pairs} == {mine: other[theirs] for mine, theirs in pairs}


@pytest.mark.parametrize(
    "window", [{"end": "5us"}, {"start": "5us", "name": "mma*"}, {"min_dur": "2us", "where": "dur < 3000"}]
)
def test_answers_of_a_window_are_those_of_the_window(root, window):
    path = main_of(root, "cuda")
    trace = lanescope.open(root / path, window=window)
    found = ask(root, "sql", path, "select count(*), sum(dur) from slices", window=window)
    assert found["rows"] == [list(row.values()) for row in trace.sql("select count(*), sum(dur) from slices").rows()]
    whole = ask(root, "sql", path, "select count(*), sum(dur) from slices")
    assert found["rows"] != whole["rows"]
    assert "window" not in whole
    answers = [ask(root, tool, path, window=window) for tool in ("check", "summary", "explain")]
    answers.append(ask(root, "diff", [path], [path], window=window))
    assert all(answer["window"] for answer in (found, *answers))
    assert sum(row[1] for row in answers[1]["rows"]) == int(trace.slices.valid("dur").sum())
    flags = {f"--{name.replace('_', '-')}={value}" for name, value in window.items()}
    assert flags <= set(shlex.split(answers[3]["command"]))


def test_a_window_has_no_other_parts(root):
    with pytest.raises(UsageError, match="a window has no 'until'"):
        ask(root, "summary", main_of(root, "cuda"), window={"until": "1ms"})
    with pytest.raises(LanescopeError, match="start"):
        ask(root, "summary", main_of(root, "cuda"), window={"start": "soon"})


@pytest.mark.parametrize("family", FAMILIES)
def test_the_numbers_of_info_are_those_of_its_sql(root, family):
    path = main_of(root, family)
    told = ask(root, "info", path)
    trace = lanescope.open(root / path)
    for name, count in told["rows"].items():
        ((found,),) = rows_of(root, path, told["sql"]["rows"].split(",")[0].replace("TABLE", f'"{name}"'))
        assert found == count
    kinds = dict(rows_of(root, path, told["sql"]["tracks"]))
    assert {kind: kinds.get(kind, 0) for kind in told["tracks"]} == told["tracks"]
    for name in ("stats", "accounting"):
        found = list(lanescope.sql(trace, told["sql"][name]).rows())
        for row, other in zip(told[name], found, strict=False):
            assert {key: value for key, value in row.items() if key in other} == other
    assert "start" not in told["time"], "no query of one table gives it"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_sql_of_a_finding_returns_its_rows(root, family):
    path = main_of(root, family)
    told = ask(root, "check", path)
    assert told["findings"] or family == "levelzero"
    for finding in told["findings"][:5]:
        rows = ask(root, "sql", path, finding["sql"], limit=1000)
        assert rows["page"]["total"] == finding["sql_rows"]


@pytest.mark.parametrize("family", FAMILIES)
def test_explanations_name_the_command_of_each_figure(root, family):
    rows = ask(root, "explain", main_of(root, family))["rows"]
    assert all(row["command"].startswith("lanescope ") for row in rows)
    assert not any({"share", "gain"} & set(row) for row in rows)


def test_groups_that_differ_have_the_query_of_their_slices(root):
    told = ask(root, "diff", ["run0/run.npy"], ["run1/run.npy"], limit=3)
    assert told["page"]["rows"] == len(told["groups"]) == 3 < told["page"]["total"]
    rest = ask(root, "diff", ["run0/run.npy"], ["run1/run.npy"], limit=100, cursor=told["page"]["next"])
    assert len(rest["groups"]) + rest["page"]["left"] == told["page"]["total"] - 3
    for group in told["groups"]:
        for side, path in (("a", "run0/run.npy"), ("b", "run1/run.npy")):
            (row,) = ask(root, "sql", path, group["sql"])["rows"]
            told_of = [group["effects"][name][side] for name in ("count", "median", "p99")]
            assert row == pytest.approx(told_of, abs=1e-6)
    with pytest.raises(LanescopeError, match="a side without runs"):
        ask(root, "diff", [], ["run1/run.npy"])


def test_parts_of_answers_that_are_cut_to_size_are_the_whole(root):
    query = "select id, name, repeat('x', 500) filling from slices where id < 60"
    seen, cursor = [], ""
    while True:
        told = ask(root, "sql", "cuda/attention.npy", query, limit=40, cursor=cursor)
        assert told["page"]["rows"] == len(told["rows"]) < 40
        assert told["page"]["offset"] == len(seen)
        seen += [row[0] for row in told["rows"]]
        assert told["page"]["left"] == 60 - len(seen)
        cursor = told["page"]["next"]
        if cursor is None:
            break
    assert seen == list(range(60))


def test_a_row_that_is_too_large_has_its_texts_cut_and_says_so(root):
    told = ask(root, "sql", "cuda/attention.npy", "select repeat('x', 100000) a, 7 b")
    assert told["cut"] == {"texts": 1}
    assert told["rows"][0][1] == 7
    wide = ", ".join(f"{number} as column_{number}" for number in range(600))
    with pytest.raises(LanescopeError, match="one row takes more than 8 KB"):
        ask(root, "sql", "cuda/attention.npy", f"select {wide}")


def test_a_folder_is_listed_and_what_other_lists_lack_is_counted(root):
    told = ask(root, "info")
    assert {each["family"] for each in told["captures"]} == set(FAMILIES)
    assert told["page"]["total"] == len(told["captures"]) == len(FAMILIES) + 2
    document = {"inputs": [{"path": "x" * 100}] * 300, "n": 1}
    cut = json.loads(agent_tools.fitted(document))
    assert len(cut["inputs"]) + cut["cut"]["inputs"] == 300


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "../secret.npy",
        "/etc/passwd",
        "cuda/../../secret.npy",
        "..",
        "missing.npy",
        "",
        "link/run.npy",
        "-",
        "a\0b",
        "pipe",
    ],
)
def test_nothing_outside_of_the_folder_is_read(root, tmp_path, path):
    for name in ("link", "pipe"):
        if (root / name).is_symlink() or (root / name).exists():
            (root / name).unlink()
    if path.startswith("link"):
        (tmp_path / "run.npy").write_bytes((root / "run0/run.npy").read_bytes())
        (root / "link").symlink_to(tmp_path)
    if path == "pipe":
        os.mkfifo(root / "pipe")
    try:
        if path == "":
            assert ask(root, "info", path)["schema"] == "lanescope.info.folder/1"
            return
        with pytest.raises(LanescopeError, match=r"not a capture below|is a link to"):
            ask(root, "check", path)
    finally:
        for name in ("link", "pipe"):
            (root / name).unlink(missing_ok=True)


def test_a_link_next_to_a_capture_that_leads_outside_is_refused(root, tmp_path):
    (tmp_path / "events.json").write_text("{}")
    (root / "run0/run.events.json").symlink_to(tmp_path / "events.json")
    try:
        with pytest.raises(LanescopeError, match="is a link to a place outside"):
            ask(root, "info", "run0/run.npy")
    finally:
        (root / "run0/run.events.json").unlink()


@pytest.mark.parametrize(
    "query",
    [
        "create table t as select 1",
        "delete from slices",
        "insert into slices select * from slices",
        "copy slices to 'out.csv'",
        "attach 'x.db'",
        "set threads = 4",
        "pragma database_list",
        "install httpfs",
        "select 1; drop view slices",
        "",
        "explain analyze delete from slices",
    ],
)
def test_only_a_select_is_answered(root, query):
    if not query:
        assert ask(root, "sql", "run0/run.npy", query)["columns"][0]["name"] == "table"
        return
    with pytest.raises(LanescopeError, match=r"only one SELECT|invalid query"):
        ask(root, "sql", "run0/run.npy", query)


@pytest.mark.parametrize(
    "query", ["select * from read_text('/etc/passwd')", "select * from '/etc/passwd'", "select * from glob('*')"]
)
def test_a_select_reaches_no_files(root, query):
    with pytest.raises(LanescopeError, match=r"invalid query|unknown table"):
        ask(root, "sql", "run0/run.npy", query)


def test_a_query_that_begins_with_a_comment_is_no_flag(root):
    assert ask(root, "sql", "run0/run.npy", "--json\nselect 7")["rows"] == [[7]]


def test_limits_and_cursors_are_checked(root):
    for limit in (0, -1, 100000):
        with pytest.raises(LanescopeError, match="invalid limit"):
            ask(root, "summary", "run0/run.npy", limit=limit)
    cursor = ask(root, "summary", "run0/run.npy", limit=1)["page"]["next"]
    with pytest.raises(LanescopeError, match="another question"):
        ask(root, "summary", "run1/run.npy", limit=1, cursor=cursor)
    with pytest.raises(LanescopeError, match="unknown by"):
        ask(root, "summary", "run0/run.npy", "sm; drop")


def test_a_question_that_takes_too_long_ends(root):
    endless = "with recursive n as (select 1 i union all select i + 1 from n) select count(*) from n"
    tools = Tools(str(root), 3.0)
    with pytest.raises(LanescopeError, match="took more than 3 s"):
        asyncio.run(tools.sql("run0/run.npy", endless))


# --- the protocol -------------------------------------------------------------------------------------------------


@pytest.fixture
def served(root):
    """Return a function that asks a server in a process of its own, by the official client."""
    mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")
    from mcp.client.stdio import StdioServerParameters

    # Of the environment it passes on a few names only, and a sanitizer has its options there.
    arguments = ["-m", "lanescope", "mcp", str(root)]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))

    async def session(ask):
        async with mcp.Client(server) as client:
            return await ask(client)

    return lambda ask: asyncio.run(session(ask))


def test_the_official_client_gets_the_answers(served, root):
    async def questions(client):
        tools = (await client.list_tools()).tools
        answers = {}
        for tool, arguments in (
            ("info", {}),
            ("check", {"path": "run0/run.npy", "limit": 2}),
            ("summary", {"path": "run0/run.npy", "limit": 2}),
            ("sql", {"path": "run0/run.npy", "query": "select count(*) from slices"}),
            ("explain", {"path": "run0/run.npy"}),
            ("diff", {"a": ["run0/run.npy"], "b": ["run1/run.npy"], "limit": 2}),
            ("sql", {"path": "../secret.npy", "query": "select 1"}),
        ):
            answers[tool, arguments.get("path")] = await client.call_tool(tool, arguments)
        return tools, answers

    tools, answers = served(questions)
    assert {tool.name for tool in tools} == {"info", "check", "summary", "sql", "explain", "diff"}
    for tool in tools:
        assert tool.annotations.read_only_hint
        if tool.name != "explain":
            assert {"limit", "cursor"} <= set(tool.input_schema["properties"])
    *fine, refused = answers.values()
    for answer in fine:
        assert not answer.is_error
        (content,) = answer.content
        assert len(content.text.encode()) <= LARGEST
        assert json.loads(content.text)
    ((count,),) = json.loads(answers["sql", "run0/run.npy"].content[0].text)["rows"]
    assert count == len(lanescope.open(root / "run0/run.npy").slices)
    assert refused.is_error
    assert "not a capture below the served folder" in refused.content[0].text


def test_the_server_ends_with_its_client_and_prints_nothing_else(root):
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "lanescope", "mcp", str(root)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_a_folder_is_required_and_the_package_is_named_where_it_is_missing(call, root, monkeypatch):
    assert call("mcp", root / "cuda/attention.npy").status == 2
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    done = call("mcp", root)
    assert done.status == 2
    assert "pip install 'lanescope[mcp]'" in done.err


def test_only_the_command_imports_the_package():
    code = "import sys; from lanescope.cli.commands import mcp; from lanescope.cli import main; main(['--help']);"
    code += "print([name for name in sys.modules if name.split('.')[0] in ('mcp', 'pydantic', 'anyio')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
