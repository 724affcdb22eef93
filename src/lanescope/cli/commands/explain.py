"""Say what bounds a run, what of it is exposed, what is uncertain and what was not recorded: at most five sentences."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

from lanescope.cli.arguments import add_dataset, add_input, add_window, window_words
from lanescope.cli.console import print_json
from lanescope.cli.context import close, window_of
from lanescope.cli.reading import is_dataset, with_rest
from lanescope.cli.tables import add_formats, print_table, print_wrapped
from lanescope.families.family import Family
from lanescope.view.formatting import escape

EXAMPLES = ("lanescope explain capture.bin", "lanescope explain --json capture.bin")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    add_window(parser)
    add_dataset(parser)
    add_formats(parser, "lanescope.explain/1", is_timed=False)


def run(args: argparse.Namespace) -> int:
    """Print the sentences, each with the command that shows its figure."""
    if is_dataset(args.input):
        from lanescope.cli import dataset_explain

        return dataset_explain.explain(args)
    from lanescope.pipeline import session
    from lanescope.pipeline.memory import analyzed_on_disk

    trace = with_rest(args)
    window, filters = window_words(args)
    with analyzed_on_disk(trace):
        table = session.explain(trace, f"{shlex.quote(args.input)} {window}".strip(), filters=filters)
    rows = list(table.rows())
    if args.json:
        listed = [{name: value for name, value in row.items() if name != "id"} for row in rows]
        print_json("lanescope.explain/1", **window_of(trace), rows=listed)
    elif args.csv:
        columns = [column for column in table.spec.columns if column.name != "id"]
        print_table(args, columns, [[row[column.name] for column in columns] for row in rows])
    else:
        for row in rows:
            print_wrapped(args, row["sentence"])
            print(f"    {escape(row['command'])}")
    return close(trace, args)
