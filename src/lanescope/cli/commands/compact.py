"""Join the files of small captures of a dataset, run by run.

Many small files cost more to open than to read. Rows and answers stay the same. Nothing else may read or write the
dataset meanwhile: files that were joined are removed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lanescope.cli.arguments import add_memory
from lanescope.cli.console import echo
from lanescope.families.family import Family
from lanescope.view.formatting import escape, format_count

WINDOWLESS = "it joins files of whole captures: summary, check, explain and diff of a dataset take one"
EXAMPLES = ("lanescope compact fleet", "lanescope compact fleet --target 64MiB")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    parser.add_argument("dataset", metavar="DATASET", help="folder or URL that `lanescope ingest` wrote")
    parser.add_argument("--target", metavar="SIZE", default="256MiB", help="captures per joined file (default: 256MiB)")
    add_memory(parser)


def run(args: argparse.Namespace) -> int:
    """Join the files."""
    from lanescope.io.dataset import compact
    from lanescope.io.dataset.records import Catalog
    from lanescope.io.dataset.store import open_store
    from lanescope.pipeline.memory import parse_size

    target = parse_size(args.target)
    store = open_store(args.dataset)
    catalog = Catalog(store)
    store.sweep()
    done = [made for group in compact.plan(catalog, target) if (made := compact.compact(catalog, group)) is not None]
    removed = compact.clean(Catalog(store))
    captures, files = sum(len(each.captures) for each in done), sum(len(each.files) for each in done)
    echo(
        f"wrote {escape(args.dataset)} ({format_count(captures, 'capture')} joined in {format_count(files, 'file')}; "
        f"{format_count(removed, 'file')} removed)"
    )
    return 0
