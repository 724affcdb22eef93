"""``explain`` of datasets: what bounds the captures of each run, and which ranks differ."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from lanescope.cli.arguments import parse_window, window_words
from lanescope.cli.console import print_json
from lanescope.cli.dataset_input import close, listed_ranks, selected, state_window, window_document
from lanescope.cli.tables import print_table, print_wrapped
from lanescope.view.formatting import escape, format_count, format_duration

if TYPE_CHECKING:
    from lanescope.io.dataset.records import CaptureRecord
    from lanescope.pipeline.dataset.capture_parts import CaptureParts

_COLUMNS = ("run", "topic", "cause", "captures", "ranks", "share", "largest_share", "sentence", "command")
#: Ranks and names that stand out, at most so many of each run.
_MOST = 3


def explain(args: argparse.Namespace) -> int:
    """Print what holds for the captures of each run, then the ranks that differ; one capture is in memory at a time."""
    from lanescope.pipeline.dataset.capture_parts import CaptureParts

    catalog, records = selected(args, takes_window=True)
    parts = CaptureParts(catalog, parse_window(args))
    rows = _verdicts(parts, records, window_words(args))
    words = " ".join(word for word in window_words(args) if word)
    command = f"lanescope summary {shlex.quote(args.input)} {words}".strip()
    for unit in dict.fromkeys(str(record.time["time_unit"]) for record in records):
        mine = [record for record in records if record.time["time_unit"] == unit]
        rows += _of_ranks(parts, mine, unit, command)
    order = {run: at for at, run in enumerate(dict.fromkeys(record.run for record in records))}
    rows.sort(key=lambda row: order[row["run"]])
    if args.json:
        told = window_document(args)
        print_json("lanescope.dataset.explain/1", dataset=args.input, **told, captures=len(records), rows=rows)
    elif args.csv:
        print_table(args, list(_COLUMNS), [[row[name] for name in _COLUMNS] for row in rows])
    else:
        for row in rows:
            print_wrapped(args, f"{escape(row['run'])}: {row['sentence']}")
            print(f"    {escape(row['command'])}")
    state_window(args, records, parts.refused)
    return close(args, records)


def _verdicts(parts: CaptureParts, records: Sequence[CaptureRecord], words: tuple[str, str]) -> list[dict[str, Any]]:
    """Return one row for each verdict of a run: how many captures it holds for, and the one where it weighs most.

    Args:
        parts: the dataset, and which part of its captures counts.
        records: the captures.
        words: how commands ask for that part: its times and lanes, and what it selects.
    """
    from lanescope.pipeline import session

    window, filters = words
    found: dict[tuple[str, str, str], list[tuple[CaptureRecord, dict[str, Any]]]] = {}
    captures: dict[str, int] = {}
    for record, trace in parts.each(records, keeps_whole=True):
        captures[record.run] = captures.get(record.run, 0) + 1
        verdicts = session.explain(trace, f"{shlex.quote(record.path)} {window}".strip(), filters=filters)
        for row in verdicts.rows():
            found.setdefault((record.run, row["topic"], row["cause"]), []).append((record, row))
        del trace
    rows = []
    for (run, topic, cause), mine in found.items():
        record, most = max(mine, key=lambda each: each[1]["share"])
        ranks = sorted({each.rank for each, _ in mine if each.rank is not None})
        about = f"in {len({each.capture for each, _ in mine}):,} of {format_count(captures[run], 'capture')}"
        where = f"rank {record.rank}" if record.rank is not None else record.path
        rows.append({
            "run": run,
            "topic": topic,
            "cause": cause,
            "captures": len({each.capture for each, _ in mine}),
            "ranks": listed_ranks(ranks),
            "share": median(row["share"] for _, row in mine),
            "largest_share": most["share"],
            "sentence": most["sentence"] if captures[run] == 1 else f"{about}, most of all {where}: {most['sentence']}",
            "command": most["command"],
        })  # fmt: skip
    return rows


def _of_ranks(parts: CaptureParts, records: Sequence[CaptureRecord], unit: str, command: str) -> list[dict[str, Any]]:
    """Return a row for each rank that is waited for in collectives, and for each that takes longer than the others.

    Collectives are compared whole: of a window there are none.
    """
    from lanescope.pipeline.dataset import summaries

    rows = []
    kept: dict[tuple[str, str], int] = {}
    collectives = summaries.collectives(parts.catalog, records if parts.window is None else [], unit)
    for row in collectives.rows():
        said = (
            f"in {format_count(row['collectives'], 'collective')} the other ranks wait for rank {row['rank']}: "
            f"{format_duration(row['waited'], unit)}, {row['share']:.0%} of their time in collectives"
        )
        rows.append(_of_rank(row, "collectives", row["share"], said, f"{command} --by collectives"))
    for row in summaries.stragglers(parts, records, unit).rows():
        if not row["is_outlier"] or row["excess"] <= 0:
            continue
        said = (
            f"rank {row['rank']} spends {format_duration(row['total'], unit)} in {row['name']}, "
            f"the median of the ranks is {format_duration(row['median_of_ranks'], unit)}"
        )
        share = row["excess"] / row["total"]
        rows.append(_of_rank(row, "straggler", share, said, f"{command} --by stragglers"))
    shown = []
    for row in rows:
        kept[row["run"], row["topic"]] = kept.get((row["run"], row["topic"]), 0) + 1
        if kept[row["run"], row["topic"]] <= _MOST:
            shown.append(row)
    return shown


def _of_rank(row: dict[str, Any], topic: str, share: float, sentence: str, command: str) -> dict[str, Any]:
    ranks = listed_ranks([row["rank"]])
    return {
        "run": row["run"], "topic": topic, "cause": "rank", "captures": 1, "ranks": ranks, "share": share,
        "largest_share": share, "sentence": sentence, "command": command,
    }  # fmt: skip
