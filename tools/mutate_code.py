"""Change the code of a room one place at a time, and say which changes its tests notice (mutation testing).

Usage: mutate_code.py ROOM [--sample N] [--seed S] [--minutes M] [--only MODULE:LINE] [--again]; rooms are those of
``ROOMS``. A change is one comparison, operator, number, truth value, condition, returned value or statement. Each is
tried in a process of its own: it imports the changed module in place of the one on the disk and runs the tests that run
the statement when nothing is changed (`room_tests.py`), the quickest first, until one fails. Other tests cannot notice
the change and are left out; where the statement runs at an import, all tests of the room are run.

A change that no test notices survives, and is printed with its line. ``--write`` keeps the result in
tests/mutations/code.json, next to those of other seeds, and writes docs/reference/mutation-testing.md from it; reasons
why a survivor changes nothing are kept there in ``explained``. A larger sample of a seed begins with the smaller one.

Packages such as mutmut copy the whole source and try every change; with our tests that takes days, so this one samples.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import time
from typing import Any

from code_changes import ROOT, Change, changes

KEPT = ROOT / "tests/mutations/code.json"
PAGE = ROOT / "docs/reference/mutation-testing.md"

#: The folder of each room, and the tests that are to notice its changes.
ROOMS = {
    "trace": ("trace", ["tests/trace", "tests/io/test_vcd.py", "tests/analysis/test_check.py"]),
    "wire": ("wire", ["tests/wire", "tests/devices/aie", "tests/devices/levelzero/test_foreign.py"]),
    "check": (
        "analysis/check",
        ["tests/analysis/test_check.py", "tests/analysis/test_check_streaming.py",
         "tests/analysis/test_streaming_totals.py", "tests/analysis/test_stat_findings.py",
         "tests/analysis/test_family_rules.py", "tests/analysis/test_intervals.py",
         "tests/analysis/test_evidence_sql.py", "tests/cli/test_check_show.py", "tests/test_findings.py",
         "tests/plausibility/test_impact.py", "tests/pipeline/test_suspect_marks.py"],
    ),
    "chrome": (
        "foreign/chrome",
        ["tests/foreign/chrome", "tests/foreign/test_detection.py", "tests/foreign/test_one_timeline.py"],
    ),
    "ascend": ("devices/ascend/interpret", ["tests/devices/ascend", "tests/scenarios"]),
}  # fmt: skip


def write_page(kept: dict[str, Any]) -> None:
    """Write the table of what was tried, and the changes that survived with their reasons, into the page."""
    rows = ["| Room | Changes | Tried | Noticed | Change nothing | Open |", "|---|--:|--:|--:|--:|--:|"]
    lines = []
    for room in ROOMS:
        if (tried := kept["rooms"].get(room)) is None:
            continue
        samples = tried["samples"].values()
        count = sum(one["tried"] for one in samples)
        reasons = {key: kept["explained"].get(key, "") for one in samples for key in one["survivors"]}
        explained = sum(map(bool, reasons.values()))
        rows.append(
            f"| `{tried['folder']}` | {tried['all']:,} | {count} | {count - len(reasons)} "
            f"| {explained} | {len(reasons) - explained} |"
        )
        lines += [f"- `{key}`: {reason or 'open'}" for key, reason in reasons.items()]
    head, _, rest = PAGE.read_text().partition("<!-- result -->\n")
    tail = rest.partition("<!-- end of result -->\n")[2]
    body = "\n".join(rows + (["", "Changes that no test notices:", "", *lines] if lines else []))
    PAGE.write_text(f"{head}<!-- result -->\n{body}\n<!-- end of result -->\n{tail}")


def kept_results() -> dict[str, Any]:
    """Return what is kept."""
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {"explained": {}, "rooms": {}}
    return kept


def keep(given: argparse.Namespace, everything: list[Change], tried: list[Change], survivors: list[Change]) -> None:
    """Keep what a sample, or another try of its survivors, has shown, and write the page."""
    kept = kept_results()
    room = kept["rooms"].setdefault(given.room, {"samples": {}})
    room |= {"folder": ROOMS[given.room][0], "all": len(everything)}
    alive = [one.key for one in survivors]
    if given.again:
        noticed = {one.key for one in tried} - set(alive)
        for sample in room["samples"].values():
            sample["survivors"] = [key for key in sample["survivors"] if key not in noticed]
    else:
        room["samples"][str(given.seed)] = {"tried": len(tried), "survivors": alive}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    write_page(kept)


def main() -> int:
    """Try a sample of changes; return 1 where one survives that nobody explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room", choices=ROOMS)
    parser.add_argument("--sample", type=int, default=50, help="changes to try (50)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no more changes after that")
    parser.add_argument("--only", metavar="MODULE:LINE", help="all changes of a line, or of a module")
    parser.add_argument("--again", action="store_true", help="only what survived in the samples that are kept")
    parser.add_argument("--write", action="store_true", help="keep the result")
    given = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of a set is the same on every run, and so is what tests notice.
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONHASHSEED": "0"})
    os.environ.setdefault("LANESCOPE_EFFORT", "quick")
    sys.path.insert(0, str(ROOT / "tests"))
    # What children need not import again.
    for name in ("numpy", "pandas", "duckdb", "hypothesis.strategies", "msgspec", "rich.table"):
        __import__(name)
    from room_tests import BUILD, is_noticed, record  # imports pytest: not for ``--help``

    explained = kept_results()["explained"]
    everything = changes(ROOMS[given.room][0])
    if given.only:
        chosen = [one for one in everything if f"{one.module}:{one.line}:".startswith(f"{given.only}:")]
    elif given.again:
        samples = kept_results()["rooms"].get(given.room, {"samples": {}})["samples"].values()
        chosen = [one for one in everything if any(one.key in sample["survivors"] for sample in samples)]
    else:
        chosen = random.Random(given.seed).sample(everything, len(everything))[: given.sample]
    tests = record(given.room, *ROOMS[given.room])
    begin, tried, survivors = time.monotonic(), [], []
    for change in chosen:
        print(f"{len(tried)} of {len(chosen)} tried", end="\r", file=sys.stderr, flush=True)
        if time.monotonic() - begin > 60 * given.minutes:
            break
        tried.append(change)
        names = tests.of(change)
        if is_noticed(change, names, tests, BUILD / f"{given.room}.log"):
            continue
        survivors.append(change)
        print(f"{change.key}: survived {len(names)} tests: {explained.get(change.key, 'open')}\n{change.difference()}",
              flush=True)  # fmt: skip
    open_ones = [one for one in survivors if one.key not in explained]
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    print(f"{given.room}: {len(tried)} of {len(everything)} changes tried, {len(tried) - len(survivors)} noticed, "
          f"{len(survivors) - len(open_ones)} explained, {len(open_ones)} open, {spent:.0f} CPU s")  # fmt: skip
    if given.write and not given.only:
        keep(given, everything, tried, survivors)
    return 1 if open_ones else 0


if __name__ == "__main__":
    sys.exit(main())
