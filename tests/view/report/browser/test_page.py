"""The report in a real browser: keyboard, mouse, pixels, narrow windows, print, hostile names, accessibility."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from view import executed_notebook

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
SHOTS = ROOT / "build" / "report-shots"
HOSTILE = (
    "<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "a\u202egnp.exe", "{{columns}}", "__proto__",
    "constructor", "x" * 100_000, "y" * 65_536, "a\0b", "\ud800 half", "\udfff\ud800", "${alert(5)}",
    "javascript:alert(6)", "<style>*{display:none}</style>", "\u2066\u2067\u200b\ufeff",
    "<!--", "]]>", "\\u003cb>", "a\r\nb", "&lt;b&gt;",
    "\x1b[31mred\x07", "'\"><svg/onload=alert(4)>", "\U000e0041\U000e0042 tags", "\ue000 private", "\u0378 unassigned",
)  # fmt: skip
PAGES = ("run", "bad", "lost", "cell", "pair")
TITLE = "</title><script>alert(9)</script> {{header}}"


def command(*arguments):
    subprocess.run([sys.executable, "-m", "lanescope", *map(str, arguments)], check=True, timeout=120)


@pytest.fixture(scope="session")
def seen(tmp_path_factory):
    """What happened in Chromium, once for all tests."""
    return {}


@pytest.fixture
def happened(require_tool, seen, tmp_path_factory):
    node, chromium, modules = require_tool("node"), require_tool("chromium"), require_tool("puppeteer")
    if not seen:
        folder = tmp_path_factory.mktemp("report")
        capture = folder / "run"
        command("sim", "levelzero", "--seed", "3", "-o", capture)
        command("report", capture, "-o", folder / "run.html")
        events = [
            {"ph": "X", "pid": 1, "tid": 1, "name": n, "ts": 10 * k, "dur": 9, "args": {n: n}}
            for k, n in enumerate(HOSTILE)
        ]
        for k, n in enumerate(HOSTILE):
            events.append({"ph": "M", "pid": 2 + k, "name": "process_name", "args": {"name": n}})
            events.append({"ph": "M", "pid": 2 + k, "tid": 1, "name": "thread_name", "args": {"name": n}})
            events.append({"ph": "X", "pid": 2 + k, "tid": 1, "name": "x", "ts": 5, "dur": 5})
        (folder / "bad.json").write_text(json.dumps({"traceEvents": events}))
        command("report", folder / "bad.json", "-o", folder / "bad.html", "--title", TITLE)
        command(
            "sim", "cuda", "--blocks", "4", "--tiles", "8", "--slots", "200", "--seed", "1", "-o", folder / "lost.npy"
        )
        command("report", folder / "lost.npy", "-o", folder / "lost.html")
        for seed in (1, 2):
            command("sim", "cuda", "--blocks", 2 + 2 * seed, "--seed", seed, "-o", folder / f"{seed}.npy")
        command("report", folder / "1.npy", folder / "2.npy", "-o", folder / "pair.html")
        shown = executed_notebook.execute(folder / "lost.npy")
        (folder / "cell.html").write_text(executed_notebook.page(shown))
        SHOTS.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [str(node), str(HERE / "drive.cjs"), *(folder / f"{page}.html" for page in PAGES), SHOTS],
            env={**os.environ, "NODE_PATH": str(modules), "CHROMIUM": str(chromium)},
            capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        seen.update(json.loads(done.stdout))
    return seen


def test_the_header_is_shown_before_the_timeline(happened):
    assert happened["marks"].index("lanescope-header") == 0
    assert happened["errors"] == {"requests": 1, "dialogs": 0, "errors": []}


def test_keys(happened):
    keys = happened["keys"]
    assert keys["first"]["row"] >= 0
    assert keys["first"]["live"]
    assert keys["focused"]["t1"] - keys["focused"]["t0"] < keys["first"]["t1"] - keys["first"]["t0"]
    assert keys["next"]["row"] == keys["first"]["row"] + 1
    assert keys["next"]["tab"] == "selection"
    assert keys["zoomed"]["t1"] - keys["zoomed"]["t0"] < keys["next"]["t1"] - keys["next"]["t0"]
    assert keys["panned"]["t0"] > keys["zoomed"]["t0"]
    assert keys["whole"]["t0"] == pytest.approx(0, abs=1)
    assert keys["whole"]["t1"] == pytest.approx(keys["whole"]["span"], abs=1)
    assert keys["onward"]["row"] != keys["source"]["row"]
    assert keys["back"]["row"] != keys["onward"]["row"]
    assert keys["lane"]["row"] != keys["back"]["row"]
    assert keys["searched"]["found"] > 0
    assert keys["hit"]["hits"].startswith("1/")
    assert keys["searched"]["name"] in keys["hitName"]
    assert keys["tab"]["tab"] == "names"
    assert (keys["help"]["theme"], keys["dark"]["theme"]) == ("light", "dark")
    assert keys["help"]["help"]
    assert not keys["cleared"]["help"]


def test_groups_fold_by_keyboard(happened):
    folding = happened["keys"]["folding"]
    assert folding["folding"]
    assert folding["closed"] < folding["before"] == folding["opened"]


def test_mouse(happened):
    mouse = happened["mouse"]
    assert mouse["click"]["wanted"] is not None
    assert mouse["click"]["got"] == mouse["click"]["wanted"]
    assert mouse["wheel"]["factor"] > 2
    assert mouse["wheel"]["pixels"] <= 1
    assert mouse["drag"] == pytest.approx(120, abs=1)
    assert mouse["measured"] == pytest.approx(200, abs=1)


def test_pixels_are_where_slices_are(happened):
    assert happened["coverage"]["checked"] > 500
    assert happened["coverage"]["wrong"] == 0


def test_no_text_of_the_ruler_is_cut(happened):
    assert happened["ruler"]["texts"] > 100
    assert happened["ruler"]["cut"] == 0


def test_what_a_screen_reader_finds(happened):
    roles = happened["accessibility"]["roles"]
    assert roles["application"] == roles["tree"] == roles["tablist"] == 1
    assert roles["treeitem"] > 3
    assert happened["accessibility"]["unnamed"] == 0
    assert {"aria-level", "aria-posinset", "aria-setsize"} <= set(happened["treeitem"])


def test_a_narrow_window_and_print(happened):
    assert happened["narrow"]["wide"] <= 480
    assert happened["narrow"]["canvas"] > 300
    assert happened["low"]["wide"] <= 360
    assert happened["low"]["lanes"] >= 100
    assert happened["low"]["cut"] == 0
    assert happened["print"]["tables"] >= 2
    assert happened["print"]["rows"] <= 30
    assert happened["print"]["pages"] <= 6
    assert (happened["print"]["theme"], happened["print"]["after"]) == ("light", 0)


def test_hostile_names_are_inert(happened):
    own, blocked = happened["security"]["own"], happened["security"]["blocked"]
    assert own["violations"] == own["images"] == 0
    assert own["names"] == len(HOSTILE) + 1
    assert own["raw"] == []
    assert own["elements"] == []
    assert own["title"].startswith(TITLE)
    assert own["polluted"] == "undefined"
    assert (blocked["injected"], blocked["style"], blocked["fetched"]) == (None, "", "blocked")
    assert blocked["violations"] >= 3
    assert happened["security"]["seen"]["dialogs"] == 0
    assert happened["security"]["seen"]["requests"] <= 2  # the page, and the one that was tried and blocked


def test_what_the_device_lost_is_in_the_header_and_findings_are_stepped_through(happened):
    """No byte of this file is lost, but records are: the header says so, and never that nothing is."""
    lost = happened["lost"]
    assert lost["facts"] == ["2kinds of data loss"]
    assert "records dropped by full lanes, at least: 15" in lost["titles"][0]
    assert lost["gaps"] > 0
    assert {name for name, _ in lost["stats"]} >= {"cuda_dropped_at_least", "cuda_lane_full"}
    assert all(is_whole for _, is_whole in lost["stats"]), "cards of one rule differ in the stat, which is not cut"
    steps = [(lost[at]["t0"], lost[at]["t1"], lost[at]["live"]) for at in ("before", "next", "second", "back")]
    assert len(set(steps[:3])) == 3
    assert steps[3][:2] == pytest.approx(steps[1][:2])
    assert steps[3][2] == steps[1][2]


def test_a_high_row_that_is_half_out_of_sight_has_its_name_in_sight(happened):
    assert len(happened["named"]) > 5
    assert [row for row in happened["named"] if row[0] >= 24 and not row[1]] == []


def test_two_captures_are_side_by_side(happened):
    pair = happened["pair"]
    assert pair["errors"] == {"requests": 1, "dialogs": 0, "errors": []}
    letters = [letter for letter in pair["labels"] if letter]
    assert letters[:6] == ["A", "B"] * 3
    assert "12 | 18lanes" in pair["facts"]
    assert [", on A: GPU / block 0" in pair["said0"], ", on B: GPU / block 0" in pair["said1"]] == [True, True]
    assert max(pair["activity"]) <= 2  # pixels, against the exact number of busy lanes


def test_a_notebook_has_the_picture_and_the_report_which_reaches_nothing_of_it(happened):
    cell = happened["notebook"]
    assert cell["errors"] == []
    assert len(cell["pictures"]) == 1
    assert cell["pictures"][0] > 0
    assert cell["reach"] == "refused"
