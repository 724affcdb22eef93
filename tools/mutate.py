"""Change captures field by field, and say what lanescope makes of each change; inject lies, and say which are found.

The numbers are the same on every run. ``--write`` keeps them in tests/mutations/ledger.json and writes the page
docs/reference/detection.md from them; without it they are only printed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from mutations import lies, page
from mutations.ledger import Key, Ledger, Row, run, to_json
from mutations.seeds import FAMILIES, seeds

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "tests/mutations/ledger.json"
PAGE = ROOT / "docs/reference/detection.md"
#: Mutants of each family: of the page, and of the run that `make test-full` repeats.
COUNT, SMALL = 10_000, 600


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT, help="mutants of each family (10000)")
    parser.add_argument("--family", action="append", choices=FAMILIES, help="only this family; may be repeated")
    parser.add_argument("--open", action="store_true", help="print only fields with mutants that nothing found")
    parser.add_argument("--no-lies", action="store_true", help="leave out the injected lies")
    parser.add_argument("--jobs", type=int, default=2, help="families at a time (2)")
    parser.add_argument(
        "--write", action="store_true", help="keep the ledger, and write the page; with --family only of that family"
    )
    given = parser.parse_args()
    if given.write and given.no_lies:
        parser.error("--write keeps the lies, too: leave out --no-lies")
    if given.write and given.family and given.count != (kept := json.loads(KEPT.read_text())["count"]):
        parser.error(f"other families are kept with {kept} mutants each: pass --count {kept}")
    return given


def judged(task: tuple[str, int]) -> tuple[dict[Key, Row], float]:
    """Return the ledger of one family, and the CPU seconds that it took."""
    family, count = task
    begin = time.process_time()
    return run(seeds(family), count), time.process_time() - begin


def in_order(rows: dict[str, Any]) -> dict[str, Any]:
    """Return what is known of families in their order."""
    return {family: rows[family] for family in FAMILIES if family in rows}


def main() -> int:
    """Run; return the exit status."""
    given = arguments()
    families = given.family or FAMILIES
    found: Ledger = {}
    with ProcessPoolExecutor(given.jobs) as pool:
        lying = {family: pool.submit(lies.found, [family]) for family in (() if given.no_lies else families)}
        small = {family: pool.submit(judged, (family, SMALL)) for family in families if given.write}
        for family, (rows, used) in zip(
            families, pool.map(judged, [(name, given.count) for name in families]), strict=True
        ):
            found[family] = rows
            print("\n".join(page.family_lines(family, rows, only_open=given.open)))
            print(
                f"{family}: {sum(row.total for row in rows.values())} mutants in {used:.0f} CPU seconds\n", flush=True
            )
        injected = {family: future.result()[family] for family, future in lying.items()}
        repeated = {family: future.result()[0] for family, future in small.items()}
    for family, rows in injected.items():
        print("\n".join(page.lie_lines(family, rows)) + "\n")
    if given.write:
        kept = json.loads(KEPT.read_text()) if given.family else {"ledger": {}, "small": {"ledger": {}}, "lies": {}}
        # Of one family only: the others stay as they are kept.
        for part, rows in ((kept, to_json(found)), (kept["small"], to_json(repeated))):
            part["ledger"] = in_order({**part["ledger"], **rows})
        lies_now = in_order({**kept["lies"], **injected})
        small = {"count": SMALL, "ledger": kept["small"]["ledger"]}
        made = {"count": given.count, "ledger": kept["ledger"], "small": small, "lies": lies_now}
        text = json.dumps(made, separators=(",", ":"))
        # A line for each field, so that a change of the ledger can be read.
        KEPT.write_text(text.replace('{"format"', '\n{"format"') + "\n")
        PAGE.write_text(page.page(json.loads(KEPT.read_text())))
        print(f"wrote {KEPT.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
