"""The page's modules without a browser: what they print, decode and draw is what Python prints, packs and draws."""

import base64
import json
import random
import re
import shutil
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

from lanescope.view.formatting import escape
from lanescope.view.model.lod import Detail
from lanescope.view.report.page_source import FOLDER, MODULES, assemble

HERE = Path(__file__).parent
CASES = json.loads((HERE.parents[1] / "number_cases.json").read_text())
ODD = (
    "core",
    "a\u202eb\x1b",
    "名前",
    "\U000e0041tag",
    "\U000f0000",
    "\ue000",
    "\ud800",
    "a\udc80",
    "\u0378",
    "😀\u200d",
    "a\r\nb",
    "\xa0",
)
NAMES = {**{name: escape(name) for name in ODD}, "x" * 500: "x" * 400 + "…", "x" + "😀" * 300: "x" + "😀" * 199 + "…"}
CUT = {
    ("short", 9): "short",
    ("😀" * 9, 8): "😀😀…😀",
    ("😀" * 9, 3): "😀…",
    ("shared_ready_queue AIC", 12): "shared_… AIC",
    ("abcdef", 3): "ab…",
    ("abc", 1): "",
}
#: Moment, step, unit, largest, whether it is the first shown.
AXIS = (
    (0, 1000, "cycles", 5000, True), (3000, 1000, "cycles", 5000, True), (4000, 1000, "cycles", 5000, False),
    (1500, 500, "ns", 5000, False), (0, 200, "ns", 900, True), (-2_000_000, 10**6, "ns", 2_000_000, True),
)  # fmt: skip

#: Names of siblings, which are cut to nine characters: those of a group of them differ, if they can.
APART = (
    ["list 1, ordinal 0", "list 2, ordinal 0"], ["shared_ready_queue AIC", "shared_ready_queue AIV"],
    ["a long beginning 1", "short"], ["same long name here", "same long name here"],
)  # fmt: skip


def leb128(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def strips(seed):
    """Random strips: short and long slices, bundles, several windows."""
    dice = random.Random(seed)
    begin, end, busy, start = [], [], [], [0]
    for _ in range(3):
        t = 0
        for _ in range(dice.choice([0, 1, 40, 300])):
            t += dice.choice([0, 0, 1, 5, 1000])
            begin.append(t)
            t += dice.choice([0, 1, 2, 7, 400, 5000])
            end.append(t)
            busy.append((end[-1] - begin[-1]) // dice.choice([1, 1, 2]))
        start.append(len(begin))
    last = max(end, default=10) + 10
    a, b = sorted(dice.sample(range(-5, last + 5), 2))
    colour = [dice.randrange(3) for _ in begin]
    names = ("begin", "end", "busy", "start", "colour", "window", "width")
    return dict(zip(names, (begin, end, busy, start, colour, [a, b], dice.choice([7, 100, 640])), strict=True))


@pytest.fixture(scope="module")
def asked():
    numbers = [0, 1, 127, 128, 300, 2**31, 2**53 - 1]
    signed = [0, -1, 1, -(2**40), 2**40]
    first = b"".join(map(leb128, numbers))
    second = b"".join(leb128(2 * v if v >= 0 else -2 * v - 1) for v in signed)
    third = np.array([0.5, -2.0], "<f8").tobytes()
    deflate = zlib.compressobj(wbits=-15)
    data = deflate.compress(first + second + third) + deflate.flush()
    entries = {
        "a": [0, len(first), len(numbers), "u"],
        "b": [len(first), len(second), len(signed), "z"],
        "c": [len(first) + len(second), len(third), 2, "f"],
    }
    return {
        "numbers": CASES, "names": list(NAMES), "cut": list(CUT), "strips": [strips(seed) for seed in range(40)],
        "axis": AXIS, "apart": APART,
        "activity": [[[0, 5, 5], [10, 6, 5], 0, 10], [[], [], 0, 1]],
        "columns": {"bytes": base64.b64encode(data).decode(), "entries": entries},
    }  # fmt: skip


@pytest.fixture
def answers(require_tool, asked, tmp_path):
    node = require_tool("node")
    for name in MODULES:
        shutil.copy(FOLDER / name, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    done = subprocess.run(
        [str(node), str(HERE / "modules.mjs"), str(tmp_path)], input=json.dumps(asked), capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_numbers_and_names_are_printed_alike(answers):
    assert answers["numbers"] == [case["text"] for case in CASES]
    assert answers["names"] == list(NAMES.values())
    assert answers["cut"] == list(CUT.values())
    assert answers["apart"] == [
        ["list 1,…0", "list 2,…0"], ["share…AIC", "share…AIV"], ["a lon…g 1", "short"], ["same …ere"] * 2
    ]  # fmt: skip
    assert answers["axis"] == ["0 cycles", "3,000 cycles", "4,000", "1.5 µs", "0 ns", "-2 ms"]


def test_columns_are_decoded(answers):
    assert answers["columns"] == [[0, 1, 127, 128, 300, 2**31, 2**53 - 1], [0, -1, 1, -(2**40), 2**40], [0.5, -2.0]]
    assert answers["sums"] == [5, 3, 6]
    assert answers["mean"] == [pytest.approx(1.1), 0]


def test_the_same_rectangles_are_drawn(answers, asked):
    compared = 0
    for given, drawn in zip(asked["strips"], answers["drawn"], strict=True):
        columns = (np.array(given[name], np.int64) for name in ("begin", "end", "start", "colour", "busy"))
        detail = Detail(*columns)
        for strip, found in enumerate(drawn):
            expected = list(detail.strip(strip, tuple(given["window"]), given["width"]))
            assert [one[2:] for one in found] == [[r.row, r.opacity, r.slices, r.is_alone] for r in expected]
            assert [one[:2] for one in found] == [[pytest.approx(r.left), pytest.approx(r.right)] for r in expected]
            compared += len(found)
    assert compared > 500


def test_modules_become_one_script():
    page = assemble()
    assert sorted(MODULES) == sorted(path.name for path in FOLDER.glob("*.js"))
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", page.script, re.MULTILINE)
    names += [n for group in re.findall(r"^const \{([^}]*)\} =", page.script, re.MULTILINE) for n in group.split(",")]
    assert len(names) == len(set(names)) > 80
    assert not re.search(r"^(import|export)\b", page.script, re.MULTILINE)
    assert "</script" not in page.script.lower()
    assert "innerHTML" not in page.script
    assert page == assemble()


def test_types_hold(require_tool):
    node, typescript = require_tool("node"), require_tool("typescript")
    options = ["--noEmit", "--allowJs", "--checkJs", "--strict", "--noUnusedLocals", "--target", "es2022"]
    options += ["--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable"]
    files = ["main.js", "types.js"]
    done = subprocess.run(
        [str(node), str(typescript), *options, *files],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
