"""The task graph: levels, reduction, times, and its pictures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import some
from lanescope.cli import main
from lanescope.devices.ascend.analysis import graph_order
from lanescope.devices.ascend.analysis.graph_order import order, transitive_reduction
from lanescope.devices.ascend.analysis.task_graph import task_graph
from lanescope.devices.ascend.export.graph import page
from lanescope.devices.ascend.export.graph.drawing import HEAD, duration, plain
from lanescope.devices.ascend.export.graph.layered import WIDTH, layout
from lanescope.devices.ascend.formats.graph_file import parse

from . import graph_truth
from .helpers import graph, records, simulated

SVG = "{http://www.w3.org/2000/svg}"
DRIVER = Path(__file__).parents[2] / "tools" / "open_viewer.js"


@st.composite
def edges_of(draw, *, acyclic=True):
    """Draw a number of tasks and distinct edges between them."""
    tasks = draw(st.integers(1, 14))
    one = st.tuples(st.integers(0, tasks - 1), st.integers(0, tasks - 1)).filter(lambda pair: pair[0] != pair[1])
    pairs = draw(st.lists(one.map(lambda pair: tuple(sorted(pair)) if acyclic else pair), unique=True, max_size=40))
    if not acyclic or not tasks:
        return tasks, pairs
    names = draw(st.permutations(range(tasks)))  # ids need not rise along the edges
    return tasks, [(names[pred], names[succ]) for pred, succ in pairs]


def columns(pairs):
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


@settings(max_examples=some(300), deadline=None)
@given(edges_of(), st.sampled_from([1, 3, 1 << 14]))
def test_levels_and_reduction_of_any_graph_without_cycles(made, block):
    tasks, pairs = made
    found = order(*columns(pairs), tasks)
    assert sorted(found.rank.tolist()) == list(range(tasks))
    assert not found.goes_back.any()
    assert dict(enumerate(found.level.tolist())) == graph_truth.levels(range(tasks), pairs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_order, "_BLOCK", block)
        needed = transitive_reduction(*columns(pairs), found)
    kept = [pair for pair, is_needed in zip(pairs, needed, strict=True) if is_needed]
    assert sorted(kept) == sorted(graph_truth.reduction(pairs))


@settings(max_examples=some(200), deadline=None)
@given(edges_of(acyclic=False))
def test_cycles_are_ordered_and_lose_no_path(made):
    tasks, pairs = made
    found = order(*columns(pairs), tasks)
    assert sorted(found.rank.tolist()) == list(range(tasks))
    forward = [pair for pair, back in zip(pairs, found.goes_back, strict=True) if not back]
    assert all(found.rank[pred] < found.rank[succ] for pred, succ in forward)
    assert dict(enumerate(found.level.tolist())) == graph_truth.levels(range(tasks), forward)
    needed = transitive_reduction(*columns(pairs), found)
    kept = [pair for pair, is_needed in zip(pairs, needed, strict=True) if is_needed]
    assert all(graph_truth.reaches(kept, *pair) for pair in pairs)


@settings(max_examples=some(100), deadline=None)
@given(edges_of(acyclic=False), st.lists(st.floats(10, 200), min_size=14, max_size=14))
def test_no_two_boxes_overlap(made, sizes):
    tasks, pairs = made
    found = order(*columns(pairs), tasks)
    placed = layout(found.level, sizes[:tasks], *columns(pairs))
    boxes = list(zip(placed.x.tolist(), placed.y.tolist(), sizes, strict=False))
    for at, (x, y, high) in enumerate(boxes):
        assert x >= -0.01
        assert x + WIDTH <= placed.width + 0.01
        assert y >= -0.01
        assert y + high <= placed.height + 0.01
        for other_x, other_y, other_high in boxes[:at]:
            assert abs(x - other_x) >= WIDTH or y + high <= other_y + 0.01 or other_y + other_high <= y + 0.01


def captures(corpus):
    found = sorted((corpus / "producers" / "ascend").glob("*/*/chip_swimlane_records.json"))
    return [path.parent for path in found if path.with_name("deps.json").exists()]


def test_graphs_of_the_producer(corpus):
    """Tasks, edges, levels, reduction and times equal what a script of its own derives from the files."""
    folders = captures(corpus)
    assert len(folders) >= 40
    graphs = 0
    for folder in folders:
        capture, deps = graph_truth.load(folder)
        path = folder / "chip_swimlane_records.json"
        found = task_graph(lanescope.open(path), parse((folder / "deps.json").read_bytes(), "deps.json"))
        edges = graph_truth.pairs(deps)
        ids = sorted({int(task["task_id"]) for task in deps["tasks"]} | {end for edge in edges for end in edge})
        assert found.ids.tolist() == ids, folder
        name = dict(enumerate(ids))
        got = [(name[pred], name[succ]) for pred, succ in zip(found.pred.tolist(), found.succ.tolist(), strict=True)]
        assert sorted(got) == edges, folder
        level = graph_truth.levels(ids, edges)
        assert found.order.level.tolist() == [level[task] for task in ids], folder
        if len(edges) < 200:
            kept = [edge for edge, is_needed in zip(got, found.is_needed, strict=True) if is_needed]
            assert sorted(kept) == sorted(graph_truth.reduction(edges)), folder
        ran = graph_truth.ends(capture)
        spans = zip(found.times.begin, found.times.end, strict=True)
        lengths = {task: end - begin for task, (begin, end) in zip(ids, spans, strict=True) if task in ran}
        assert all(abs(lengths[task] - (ran[task][1] - ran[task][0])) <= 1 for task in lengths), folder
        for task, kind in enumerate(found.kinds):
            if kind == "graph":
                before = {
                    name[pred]
                    for pred, succ in zip(found.pred.tolist(), found.succ.tolist(), strict=True)
                    if succ == task
                }
                last = max(found.times.end[ids.index(pred)] for pred in before)
                assert found.times.ready[task] == last <= found.times.begin[task], folder
                graphs += 1
        assert {len(reasons) for reasons in found.reasons} <= set(range(1, 99)), folder
        assert sum(map(len, found.reasons)) == len(deps["edges"]), folder
    assert graphs > 0


def test_slack_and_marks_by_hand(tmp_path):
    capture, deps = by_hand()
    found = task_graph(opened(tmp_path, capture, deps), parse(json.dumps(deps).encode(), "deps.json"))
    assert found.names == ["t1", "t2", "t3", "t9"]
    assert found.kinds == ["kernel", "kernel", "kernel", "alloc"]
    # 20 ns a cycle: t1 runs 100..150, t2 160..190, t3 200..260 with its start judged at 200 - 5.
    assert found.slack == [200, 100, 0, None]
    assert [times - found.times.begin[0] for times in found.times.begin[:3]] == [0, 1200, 2000]
    assert found.times.early == [None, 600, None, None]  # t2 was dispatched at 120
    assert found.is_needed.tolist() == [True, False, True, True]
    assert found.allows_early == [True, False, False, None]
    assert [[argument.shape for argument in inputs] for inputs in found.inputs] == [[], ["FLOAT32[4x2]"], [], []]
    assert found.tensors[0] == "FLOAT32[8] version 1"


def by_hand():
    rows = [[0, 1, 1, 100, 150, 5], [0, 2, 2, 160, 190, 40], [1, 3, 1, 200, 260, 5]]
    aicpu = [[0, 1, 90, 155], [0, 2, 120, 195], [1, 3, 192, 265]]
    capture = records(rows, aicpu, level=2, key="chip_swimlane_level")
    tensor = {"tensor_id": "77", "buffer_addr": "0", "version": 1, "dtype": "FLOAT32", "buffer_numel": "8"}
    argument = {"idx": 0, "type": "INPUT", "tensor_id": "77", "dtype": "FLOAT32", "shape": [4, 2]}
    tasks = [
        {"task_id": str(number), "early_dispatch": number == 1, "kernel_ids": [number, -1, -1], "args": []}
        for number in (1, 2, 3)
    ]
    tasks[1]["args"] = [argument]

    def edge(pred, succ, source, **more):
        return {"pred": str(pred), "succ": str(succ), "arg": 0, "source": source, "flags": ["wait"], **more}

    edges = [
        edge(1, 2, "creator", tensor_id="77"),
        edge(1, 3, "explicit"),
        edge(2, 3, "tensormap"),
        edge(9, 1, "creator"),
    ]
    return capture, {"tasks": tasks, "tensors": [tensor], "edges": edges}


def written(folder, capture, deps, names=None):
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "chip_swimlane_records.json").write_text(json.dumps(capture))
    (folder / "deps.json").write_text(json.dumps(deps))
    if names is not None:
        (folder / "name_map.json").write_text(json.dumps({"callable_id_to_name": names}))
    return folder / "chip_swimlane_records.json"


def opened(folder, capture, deps):
    return lanescope.open(written(folder, capture, deps))


def page_data(text):
    """Return the data of a page; its script and its data are the only elements of that name."""
    found = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)
    assert len(found) == 2
    assert text.count("<script") == 2
    return json.loads(found[0])


def test_the_text_of_a_graph(tmp_path, capsys):
    path = written(tmp_path, *by_hand())
    assert main(["ascend-deps", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[3:]] == [
        ["t9", "0", "alloc"],
        ["t1", "1", "kernel"],
        ["t2", "2", "kernel"],
        ["t3", "3", "kernel"],
    ]
    assert lines[-1].endswith("  t2")
    assert main(["ascend-deps", str(path), "--csv"]) == 0
    assert capsys.readouterr().out.startswith("task,level,kind,name,record,executions,begin_ns,duration_ns,slack_ns,")
    assert main(["ascend-deps", str(path), "--json"]) == 0
    given = json.loads(capsys.readouterr().out)
    assert given["schema"] == "lanescope.ascend-graph/1"
    assert given["tasks"][3]["waits_for"] == ["t2"]
    assert given["edges"][1] == {
        "producer": "t1", "consumer": "t3", "is_implied": True, "is_violated": False, "slack": 900,
        "sources": ["explicit"],
    }  # fmt: skip


HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a\u202eb\x1b[2J",
    "{{data}}",
    "]]>&<x",
]


@pytest.fixture
def hostile(tmp_path):
    tasks = {number: (number, -1, -1) for number in range(len(HOSTILE))}
    deps = graph(tasks, [(number, number + 1) for number in range(len(HOSTILE) - 1)])
    for task in deps["tasks"]:
        task["args"] = [{"idx": 0, "type": HOSTILE[0], "tensor_id": "5", "dtype": HOSTILE[1], "shape": [1]}]
    for edge in deps["edges"]:
        edge |= {"arg": 0, "source": HOSTILE[0], "tensor_id": "5"}
    rows = [[0, number, number + 1, 100 + number * 50, 140 + number * 50, 1] for number in tasks]
    folder = tmp_path / '<b onclick="x">&amp;'
    return written(
        folder,
        records(rows, level=1, key="chip_swimlane_level"),
        deps,
        {str(number): HOSTILE[number] for number in tasks},
    )


def test_hostile_names_stay_text(hostile, tmp_path):
    for suffix in ("html", "svg", "dot"):
        assert main(["ascend-deps", str(hostile), "-o", str(tmp_path / f"graph.{suffix}")]) == 0
    html = (tmp_path / "graph.html").read_text("utf-8")
    assert sorted(page_data(html)["functions"]) == sorted(map(plain, HOSTILE))
    assert "<img" not in html
    assert "<b onclick" not in html
    picture = ET.parse(tmp_path / "graph.svg").getroot()
    assert {element.tag for element in picture.iter()} <= {
        SVG + tag for tag in ("svg", "style", "rect", "path", "g", "title", "text", "circle")
    }
    titles = [element.text for element in picture.iter(SVG + "title")]
    assert [title.split("\n")[0] for title in titles] == [f"{plain(name)} (t{at})" for at, name in enumerate(HOSTILE)]
    dot = (tmp_path / "graph.dot").read_text("utf-8")
    assert "\x1b" not in dot + html
    assert "\u202e" not in dot + html
    assert not re.search(r"<(script|img|x|b)\b", dot, re.IGNORECASE)
    assert dot.count(" label=<") == len(HOSTILE)
    assert dot.count(" -> ") == len(HOSTILE) - 1


def test_hostile_names_in_a_browser(hostile, tmp_path, require_tool):
    node, chromium, modules = require_tool("node"), require_tool("chromium"), require_tool("puppeteer")
    written_page = tmp_path / "graph.html"
    assert main(["ascend-deps", str(hostile), "t2", "-o", str(written_page)]) == 0
    done = subprocess.run(
        [str(node), str(DRIVER), written_page.as_uri(), str(tmp_path / "shot.png"), "copy SQL"],
        env={**os.environ, "NODE_PATH": str(modules), "CHROMIUM": str(chromium)},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["found"], seen
    assert not seen["errors"]
    assert [request["url"].split("#")[0] for request in seen["requests"]] == [written_page.as_uri()]
    assert "a\\u202eb\\u001b[2J" in seen["text"]


def test_ten_thousand_tasks(tmp_path):
    made = simulated(3, tasks=10_000, format_version="v3c", level=2)
    for name, content in made.files.items():
        (tmp_path / name).write_bytes(content)
    path = tmp_path / next(iter(made.files))
    deps = json.loads((tmp_path / "deps.json").read_bytes())
    keys = ("pred", "succ", "flags", "source")
    deps["tasks"] = [{**task, "args": []} for task in deps["tasks"]]
    deps["edges"] = [{key: edge[key] for key in keys} for edge in deps["edges"]]
    (tmp_path / "deps.json").write_text(json.dumps(deps | {"tensors": []}))
    edges = graph_truth.pairs(deps)
    for suffix in ("html", "svg"):
        assert main(["ascend-deps", str(path), "-o", str(tmp_path / f"graph.{suffix}")]) == 0
    data = page_data((tmp_path / "graph.html").read_text("utf-8"))
    # Allocations are not listed, but others wait for them.
    ids = {task["task_id"] for task in deps["tasks"]} | {edge["pred"] for edge in deps["edges"]}
    assert len(data["tasks"]["name"]) == len(set(data["tasks"]["name"])) == len(ids)
    assert len(data["edges"]["pred"]) == len(edges)
    picture = (tmp_path / "graph.svg").read_text("utf-8")
    assert picture.count("<g id=") == len(ids)
    assert picture.count("<path") == sum(data["edges"]["needed"])  # without tensors one line an edge
    assert (tmp_path / "graph.html").stat().st_size < 8 << 20


def test_what_cannot_be_drawn_is_said(tmp_path, capsys):
    path = written(tmp_path, *by_hand())
    assert main(["ascend-deps", str(path), "-o", str(tmp_path / "graph.png")]) == 2
    assert "use .html, .svg or .dot" in capsys.readouterr().err
    assert main(["ascend-deps", str(path), "t1", "-o", str(tmp_path / "graph.svg")]) == 2
    assert "pass no task" in capsys.readouterr().err
    assert main(["ascend-deps", str(path), "t77", "-o", str(tmp_path / "graph.html")]) == 2
    assert "task t77 not found" in capsys.readouterr().err
    assert main(["ascend-deps", str(path), "--deps", "none"]) == 2
    assert "--deps FILE" in capsys.readouterr().err
    (tmp_path / "graph.html").write_text("mine")
    assert main(["ascend-deps", str(path), "-o", str(tmp_path / "graph.html")]) == 2
    assert (tmp_path / "graph.html").read_text() == "mine"
    assert main(["ascend-deps", str(path), "-o", str(tmp_path / "graph.html"), "--force"]) == 0


def test_tensors_that_cannot_be_read_are_left_out(tmp_path, capsys):
    capture, deps = by_hand()
    deps["tensors"] = [{"version": "none"}]
    path = written(tmp_path, capture, deps)
    assert main(["ascend-deps", str(path), "-o", str(tmp_path / "graph.html")]) == 0
    assert "graph shows no tensors" in capsys.readouterr().err
    assert page_data((tmp_path / "graph.html").read_text("utf-8"))["tasks"]["into"] == [[], [], [], []]


@pytest.mark.parametrize("cut", [0, 20])
def test_an_unreadable_task_graph_is_named(tmp_path, capsys, cut):
    capture, deps = by_hand()
    path = written(tmp_path, capture, deps)
    whole = (tmp_path / "deps.json").read_bytes()
    (tmp_path / "deps.json").write_bytes(whole[:cut])
    assert main(["ascend-deps", str(path)]) == 3
    told = capsys.readouterr().err
    assert f"capture has no task graph: {tmp_path / 'deps.json'}: invalid task graph: " in told
    assert "as the runtime wrote it: --deps FILE" in told


def test_several_runs_show_no_times(tmp_path, capsys):
    made = simulated(1, tasks=40, format_version="v4", epochs=2)
    for name, content in made.files.items():
        (tmp_path / name).write_bytes(content)
    path = tmp_path / next(iter(made.files))
    assert main(["ascend-deps", str(path), "-o", str(tmp_path / "graph.svg")]) == 0
    assert "several runs" in capsys.readouterr().err


def test_an_edge_without_tensor_joins_the_titles(tmp_path):
    path = written(tmp_path, *by_hand())
    assert main(["ascend-deps", str(path), "-o", str(tmp_path / "graph.html")]) == 0
    data = page_data((tmp_path / "graph.html").read_text("utf-8"))
    height = {}
    for edge, points in zip(data["lines"]["edge"], data["lines"]["points"], strict=True):
        pred, succ = data["edges"]["pred"][edge], data["edges"]["succ"][edge]
        height[pred, succ] = points[1] - data["tasks"]["y"][pred], points[-1] - data["tasks"]["y"][succ]
    assert height[0, 1] == (HEAD + 6, HEAD + 6)
    assert height[1, 2] == (HEAD / 2, HEAD / 2)


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [(999, "ns", "999 ns"), (-1500, "ns", "-1.5 µs"), (999_600, "ns", "1 ms"), (7, "cycles", "7 cycles")],
)
def test_durations(value, unit, said):
    assert duration(value, unit) == said


def test_the_query_of_the_page_finds_the_slices_of_a_task(tmp_path, require_tool, trace_processor):
    """What the page copies for the timeline is a query that its engine answers with the slices of the task."""
    node = require_tool("node")
    path = written(tmp_path, *by_hand())
    assert main(["ascend-deps", str(path), "-o", str(tmp_path / "graph.html")]) == 0
    assert main(["convert", str(path), "-o", str(tmp_path / "run.pftrace")]) == 0
    data = page_data((tmp_path / "graph.html").read_text("utf-8"))
    source = (Path(page.__file__).parent / "selection.js").read_text("utf-8")
    function = source[source.index("function query") : source.index("async function copy")]
    program = f"const T = {json.dumps({'ids': data['tasks']['ids']})};\n{function}\nconsole.log(query(1));"
    said = subprocess.run([str(node), "-e", program], capture_output=True, text=True, check=True, timeout=60).stdout
    (rows,) = trace_processor(tmp_path / "run.pftrace", said.strip())
    assert {"func_2_c", "func_2_c in flight"} == {row["name"] for row in rows}


@pytest.mark.parametrize("asked", [{"start": 100_000, "end": 250_000}, {"lane": "AIC_1*"}, {"name": "silu*"}])
def test_a_window_of_the_graph_has_the_tasks_that_ran_in_it(tmp_path, capsys, asked):
    """Against the executions and edges, one at a time; times and slack are those of the whole."""
    simulation = lanescope.simulate("ascend")
    for name, content in simulation.files.items():
        (tmp_path / name).write_bytes(content)
    path = tmp_path / next(iter(simulation.files))
    whole = lanescope.open(path)
    part = whole.window(**asked)
    ran = {row["task"] for row in part.details["ascend_tasks"].rows()}
    if "lane" not in asked and "name" not in asked:
        slices = list(whole.slices.rows())
        overlapping = {
            row["task"]
            for row in whole.details["ascend_tasks"].rows()
            if (each := slices[row["slice_id"]])["ts"] < asked["end"] and each["ts"] + each["dur"] > asked["start"]
        }
        assert overlapping <= ran
    flags = [word for name, value in asked.items() for word in (f"--{name}", str(value))]
    assert main(["ascend-deps", str(path), "--json"]) == 0
    every = {row["task"]: row for row in json.loads(capsys.readouterr().out)["tasks"]}
    assert main(["ascend-deps", str(path), "--json", *flags]) == 0
    done = capsys.readouterr()
    found = json.loads(done.out)
    assert found["window"]["asked"][0].keys() == asked.keys()
    assert "window: " in done.err
    shown = {row["task"]: row for row in found["tasks"]}
    executed = {task for task in shown if every[task]["executions"]}
    assert executed == ran
    assert 0 < len(executed) < len(every)
    for task in set(shown) - executed:
        assert "start" in asked
        assert asked["start"] <= every[task]["begin"] < asked["end"]
    for task, row in shown.items():
        for name in ("kind", "name", "record", "executions", "begin", "duration", "slack"):
            assert row[name] == every[task][name]
    name_of = {row["task_id"]: row["task"] for row in whole.details["ascend_graph_tasks"].rows()}
    edges = {
        (name_of[row["pred_task_id"]], name_of[row["succ_task_id"]]) for row in whole.details["ascend_edges"].rows()
    }
    edges = {pair for pair in edges if set(pair) <= set(shown)}
    assert {(row["producer"], row["consumer"]) for row in found["edges"]} == edges
    assert {task: row["level"] for task, row in shown.items()} == graph_truth.levels(sorted(shown), sorted(edges))
    picture = tmp_path / "part.svg"
    assert main(["ascend-deps", str(path), "-o", str(picture), *flags]) == 0
    assert f"({len(shown):,} tasks, {len(edges):,} edges, " in capsys.readouterr().err
    task = max(every, key=lambda each: len(every[each]["waits_for"]))
    around = []
    for more in ((), flags):
        assert main(["ascend-deps", str(path), task, "--depth", "9", "--json", *more]) == 0
        around.append(json.loads(capsys.readouterr().out)["rows"])
    assert around[1] == [row for row in around[0] if row["task"] in ran]
