"""Change captures field by field, and say what lanescope makes of each change; inject lies, and say which are found.

The numbers are the same on every run. ``--write`` keeps them in tests/mutations/ledger.json and writes the page
docs/reference/detection.md from them; without it they are only printed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from mutations import lies, page
from mutations.ledger import Ledger, run, to_json
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
    parser.add_argument("--write", action="store_true", help="keep the ledger, and write the page")
    given = parser.parse_args()
    if given.write and (given.family or given.no_lies):
        parser.error("--write keeps the ledger of all families, with the lies")
    return given


def main() -> int:
    """Run; return the exit status."""
    given = arguments()
    found: Ledger = {}
    for family in given.family or FAMILIES:
        begin = time.process_time()
        found[family] = run(seeds(family), given.count)
        total = sum(row.total for row in found[family].values())
        print("\n".join(page.family_lines(family, found[family], only_open=given.open)))
        print(f"{family}: {total} mutants in {time.process_time() - begin:.0f} CPU seconds\n", flush=True)
    injected = {} if given.no_lies else lies.found(given.family or FAMILIES)
    for family, rows in injected.items():
        print("\n".join(page.lie_lines(family, rows)) + "\n")
    if given.write:
        small = {family: run(seeds(family), SMALL) for family in FAMILIES}
        kept = {"count": given.count, "ledger": to_json(found), "small": {"count": SMALL, "ledger": to_json(small)}}
        KEPT.write_text(json.dumps({**kept, "lies": injected}, indent=1) + "\n")
        PAGE.write_text(page.page(json.loads(KEPT.read_text())))
        print(f"wrote {KEPT.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
