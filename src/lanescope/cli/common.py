"""What verbs share: their arguments, reading a capture, and saying what was lost."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lanescope import devices, session
from lanescope.cli import Parser
from lanescope.devices import Family, Option
from lanescope.errors import UsageError
from lanescope.view.text import count_text, escape

if TYPE_CHECKING:
    from lanescope.trace import Trace

#: Where flags of families' options stand in the parsed arguments.
_OPTION = "option_"


# --- arguments ----------------------------------------------------------------------------------------------------


def parse(verb: str, command: ModuleType, arguments: list[str]) -> argparse.Namespace:
    """Parse a verb's arguments.

    Flags of families from other packages are only looked for when one is met that the tree does not know: finding
    those packages costs more than everything else.
    """
    parser = _parser(verb, command, arguments, devices.in_tree())
    _, unknown = parser.parse_known_args(arguments)
    if unknown and devices.strangers():
        parser = _parser(verb, command, arguments, (*devices.in_tree(), *devices.strangers()))
    return parser.parse_args(arguments)


def _parser(
    verb: str, command: ModuleType, arguments: list[str], families: Sequence[Family]
) -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"lanescope {verb}",
        description=(command.__doc__ or "").strip(),
        epilog="examples:\n" + "\n".join(f"  {example}" for example in command.EXAMPLES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.configure(parser, families, arguments)
    return parser


def add_input(parser: argparse.ArgumentParser, families: Sequence[Family], *, many: bool = False) -> None:
    """Add the arguments by which a verb takes captures."""
    if many:
        parser.add_argument("inputs", metavar="INPUT", nargs="+", help="captures; - is standard input")
    else:
        parser.add_argument("input", metavar="INPUT", help="a capture; - is standard input")
    parser.add_argument("--family", metavar="NAME", help="device family, when the bytes do not tell")
    parser.add_argument(
        "-O", dest="options", metavar="NAME=VALUE", action="append", default=[], help="an option of the family"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 4 when anything was lost")
    add_options(parser, [(f"options of {family.name}", family.options) for family in families])


def add_options(parser: argparse.ArgumentParser, groups: Sequence[tuple[str, Sequence[Option]]]) -> None:
    """Add a flag for each option; one that several families have stands with the first."""
    known: set[str] = set()
    for title, options in groups:
        group = parser.add_argument_group(title)
        for option in options:
            if option.name in known:
                continue
            known.add(option.name)
            extra: dict[str, Any] = {"action": "store_const", "const": "yes"} if option.parse is bool else {}
            if not extra:
                extra["metavar"] = option.metavar or option.name.upper()
            group.add_argument(option.flag, dest=_OPTION + option.name, help=option.help, **extra)


def given_options(args: argparse.Namespace) -> dict[str, str]:
    """Return the families' options that the user gave, as text."""
    given = {
        name.removeprefix(_OPTION): value
        for name, value in vars(args).items()
        if name.startswith(_OPTION) and value is not None
    }
    for pair in getattr(args, "options", []):
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"-O {pair}: there is no =", hint="write -O NAME=VALUE")
        given[name.replace("-", "_")] = value
    return given


# --- reading ------------------------------------------------------------------------------------------------------


def batches(path: str, args: argparse.Namespace) -> Iterator[Trace]:
    """Decode a capture piece by piece, with progress for those who wait."""
    with _progress(path) as progress:
        yield from session.read(path, args.family, given_options(args), progress=progress)


def read(path: str, args: argparse.Namespace) -> Trace:
    """Decode a capture into one trace."""
    from lanescope.trace import Trace

    return Trace.concat(batches(path, args))


@contextmanager
def _progress(path: str) -> Iterator[Callable[[int, int], object] | None]:
    """Give a function that shows how far reading is, once it has taken a second; None when nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    start = last = time.monotonic()
    name = escape(Path(path).name)
    shown = False

    def show(done: int, size: int) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if now - start > 1 and now - last > 0.1:
            last, shown = now, True
            print(f"\r{name}: {done * 100 // max(size, 1)} %", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            print("\r" + " " * (len(name) + 8) + "\r", end="", file=sys.stderr, flush=True)


# --- loss ---------------------------------------------------------------------------------------------------------


def losses(trace: Trace) -> dict[str, int]:
    """Return what a trace has lost: stats of severity data_loss and error by name, then units by layer."""
    found: dict[str, int] = {}
    for row in trace.stats.rows():
        if row["severity"] in ("data_loss", "error"):
            found[row["name"]] = found.get(row["name"], 0) + row["count"]
    for row in trace.accounting.rows():
        if row["lost"] and row["scope"] == "input":
            key = f"{row['unit']}s lost"
            found[key] = found.get(key, 0) + row["lost"]
    return found


def close(trace: Trace, args: argparse.Namespace, status: int = 0) -> int:
    """Warn if data was lost, and return the exit status that follows."""
    lost = losses(trace)
    if not lost:
        return status
    listed = ", ".join(f"{escape(name)} {count}" for name, count in lost.items())
    print(f"lanescope: data was lost: {listed}; `lanescope check` says where", file=sys.stderr)
    return 4 if args.strict else status


# --- output -------------------------------------------------------------------------------------------------------


def print_json(schema: str, **content: Any) -> None:
    """Print one JSON document with the name and version of its schema."""
    print(json.dumps({"schema": schema, **content}, indent=2, default=str))


def say(message: str) -> None:
    """Talk to the user, beside the data."""
    print(message, file=sys.stderr)


def span_text(trace: Trace) -> tuple[int, int] | None:
    """Return the first and the last time of a trace, None when nothing has one."""
    edges: list[int] = []
    for table in (trace.slices, trace.instants, trace.counters, trace.coverage, trace.gaps):
        if len(table):
            begin = table["ts"]
            edges.append(int(begin.min()))
            edges.append(int((begin + table["dur"]).max()) if "dur" in table.spec.names else int(begin.max()))
    return (min(edges), max(edges)) if edges else None


def rows_text(trace: Trace) -> str:
    """Return how much is in a trace, in words."""
    return ", ".join(
        count_text(len(table), name[:-1], name)
        for name, table in trace.tables().items()
        if name in ("slices", "instants", "counters", "flows", "gaps") and len(table)
    )
