"""Tables of captures that people and producers made, on terminals of many widths and piped."""

import os
from pathlib import Path

import pytest

from cli.screen_tables import is_number, parts, rules, screened
from cli.test_screens import shown
from effort import QUICK
from lanescope.view.formatting import display_width

ROOT = Path(__file__).resolve().parents[2]
#: In this repository.
OURS = ("ascend", "cuda_lane_off_1ms.npy", "softmax.npy", "pipeline.npy", "tirx_3x2_overflow.npy")
#: From elsewhere.
CORPUS = (
    "foreign/hta/nccl_data.json.gz",
    "foreign/hta/mtia_inference.json.gz",
    "foreign/hta/amd_trace.json.gz",
    "foreign/hta/critical_path_simple_add.json.gz",
    "aie/mode0_add_one_objfifo_r0.bin",
    "cuda/tirx_4x2_nested.npy",
    "ascend/v2_chain/chip_swimlane_records.json",
    "thapi/interval_profiling_normal.thapi_text_pretty",
)
WIDTHS = (60, 110) if QUICK else (60, 80, 110, 160, 200)
COMMANDS = (
    ["info"],
    ["check", "--all"],
    ["summary"],
    ["summary", "--by", "lane"],
    ["summary", "--by", "device"],
    ["summary", "--by", "breakdown"],
    ["summary", "--by", "tally"],
    ["phases", "--by", "lane"],
    ["gaps"],
    ["critical-path"],
    ["explain"],
    ["sql", "select * from slices limit 20"],
    ["sql", "select * from tracks limit 20"],
)
#: What a shell reads is not broken: commands below a statement, and locations with the names of files.
_WHOLE = "    lanescope "


def captures():
    corpus = os.environ.get("LANESCOPE_CORPUS")
    for name in OURS:
        yield pytest.param(ROOT / "examples/captures" / name, id=name)
    for name in CORPUS:
        path = Path(corpus or "") / name
        unset = pytest.mark.skipif(not corpus, reason="LANESCOPE_CORPUS is not set")
        yield pytest.param(path, id=name.rsplit("/", 1)[-1], marks=unset)


def command_line(command, name):
    verb, *rest = command
    return [verb, name, *rest]


@pytest.mark.parametrize("capture", list(captures()))
def test_a_table_shows_the_same_numbers_at_every_width(capture, monkeypatch, capfd):
    monkeypatch.chdir(capture.parent)
    tables = numbers = 0
    for command in COMMANDS:
        arguments = command_line(command, capture.name)
        status, piped = shown(monkeypatch, capfd, arguments)
        if status in (2, 3):  # the capture has no such groups, or no path
            continue
        lines = piped.splitlines()
        at = rules(lines)
        for width in WIDTHS:
            again, text = shown(monkeypatch, capfd, arguments, width)
            where = f"{arguments} at {width}\n{text}"
            assert again == status, where
            kept = [line for line in text.splitlines() if not line.startswith(_WHOLE)]
            assert max(map(display_width, kept), default=0) <= width, where
            found = list(screened(text))
            assert len(found) == len(at), where
            for table, below in zip(found, at, strict=True):
                tables += 1
                titles = [title for title in table.titles if title]
                assert sorted(titles + table.hidden) == sorted(parts(lines[below - 1])), where
                for row, whole in zip(table.rows, lines[below + 1 :], strict=False):
                    known = parts(whole)
                    for cell in row:
                        if is_number(cell):
                            assert cell.strip() in known, f"{cell!r} is not in {whole!r}\n{where}"
                            numbers += 1
    assert tables >= 4 * len(WIDTHS)
    assert numbers >= 40 * len(WIDTHS)
