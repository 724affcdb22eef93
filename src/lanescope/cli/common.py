"""What verbs share: their arguments, reading a capture, and saying what was lost."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lanescope import devices
from lanescope.cli import Parser
from lanescope.devices import Family, Option
from lanescope.errors import DataLossError, InputError, UsageError
from lanescope.source import MINE
from lanescope.view.formatting import escape, format_count

if TYPE_CHECKING:
    from lanescope.trace import Trace

#: Where flags of families' options stand in the parsed arguments.
_OPTION = "option_"
#: Counts have so many digits at most: what they are compared with has 64 bits.
_DIGITS = 18
#: Names of standard output, where the user may name a file.
_STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
#: Tables of events, and what a row is.
_EVENTS = {"slices": "slice", "instants": "instant", "counters": "sample", "flows": "flow", "gaps": "gap"}


# --- arguments ----------------------------------------------------------------------------------------------------


def parse(verb: str, command: ModuleType, arguments: list[str]) -> argparse.Namespace:
    """Parse a verb's arguments.

    Flags of families from other packages are only looked for when one is met that the tree does not know, or for help:
    finding those packages costs more than everything else.
    """
    families = devices.builtin()
    if not {"-h", "--help"} & set(arguments):
        parser = build_parser(verb, command, arguments, families)
        try:
            args, unknown = _parsed(parser, arguments)
        except UsageError:
            unknown = ["?"]
        if not unknown:
            return args
    parser = build_parser(verb, command, arguments, (*families, *devices.plugin_families()))
    args, unknown = _parsed(parser, arguments)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return args


def _parsed(parser: argparse.ArgumentParser, arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse arguments, flags before, between and behind the others; return also those that the parser does not know."""
    if any(action.nargs == argparse.REMAINDER for action in parser._get_positional_actions()):
        return parser.parse_known_args(arguments)
    return parser.parse_known_intermixed_args(arguments)


def build_parser(
    verb: str, command: ModuleType, arguments: list[str], families: Sequence[Family]
) -> argparse.ArgumentParser:
    """Return the parser of a verb, with flags for the options of the families."""
    parser = Parser(
        prog=f"lanescope {verb}",
        description=(command.__doc__ or "").strip(),
        epilog="examples:\n" + "\n".join(f"  {example}" for example in command.EXAMPLES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.configure(parser, families, arguments)
    return parser


def add_input(
    parser: argparse.ArgumentParser, families: Sequence[Family], *, many: bool = False, is_strict: bool = True
) -> None:
    """Add the arguments by which a verb takes captures."""
    if many:
        parser.add_argument("inputs", metavar="INPUT", nargs="+", help="captures; - is standard input")
    else:
        parser.add_argument("input", metavar="INPUT", help="a capture; - is standard input")
    parser.add_argument("--family", metavar="NAME", help="device family, when the bytes do not tell")
    add_option_pairs(parser)
    if is_strict:
        parser.add_argument("--strict", action="store_true", help="exit with 4 when anything was lost")
    add_options(parser, [(family, family.options) for family in families])


def add_options(parser: argparse.ArgumentParser, groups: Sequence[tuple[Family, Sequence[Option]]]) -> None:
    """Add a flag for each option; one that several families have is one flag, whose help says what it is to each."""
    known: dict[str, argparse.Action] = {}
    for family, options in groups:
        group = parser.add_argument_group(f"options of {family.name} ({family.title})")
        for option in options:
            flag, text, extra = _flag(option)
            if option.name in known:
                known[option.name].help = f"{known[option.name].help}; for {family.name}: {text}"
                continue
            # Where the verb has this flag itself, -O still reaches the option.
            with suppress(argparse.ArgumentError):
                known[option.name] = group.add_argument(flag, dest=_OPTION + option.name, help=text, **extra)


def _flag(option: Option) -> tuple[str, str, dict[str, Any]]:
    """Return the flag of an option, its help, and how argparse takes it; what is on by itself can be put off."""
    text = option.help.replace("%", "%%")
    if option.parse is bool:
        if option.default:
            flag = option.flag.replace("--", "--no-", 1)
            return flag, f"do without: {text}", {"action": "store_const", "const": "no"}
        return option.flag, text, {"action": "store_const", "const": "yes"}
    if option.default not in (None, ""):
        text += f"; default: {option.default}".replace("%", "%%")
    return option.flag, text, {"metavar": option.metavar or option.name.upper()}


def add_option_pairs(parser: argparse.ArgumentParser) -> None:
    """Add ``-O``, which reaches every option of a family."""
    parser.add_argument(
        "-O", dest="options", metavar="NAME=VALUE", action="append", default=[], help="an option of the family"
    )


def non_negative_int(text: str) -> int:
    """Return a count that the user gave, 0 or more."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise argparse.ArgumentTypeError(f"{text!r} is not a count")
    return int(text)


def whole(text: str) -> int:
    """Return a whole number that the user gave, of either sign."""
    sign = -1 if text.startswith("-") else 1
    return sign * non_negative_int(text.removeprefix("-"))


def positive(text: str) -> int:
    """Return a limit that the user gave, 1 or more."""
    value = non_negative_int(text)
    if not value:
        raise argparse.ArgumentTypeError("0 leaves nothing to show; leave it out to see all")
    return value


def parse_options(args: argparse.Namespace) -> dict[str, str]:
    """Return the families' options that the user gave, as text."""
    given = {
        name.removeprefix(_OPTION): value
        for name, value in vars(args).items()
        if name.startswith(_OPTION) and value is not None
    }
    for pair in getattr(args, "options", []):
        name, equals, value = pair.partition("=")
        name = name.replace("-", "_")
        if not equals:
            raise UsageError(f"-O {pair}: there is no =", hint="write -O NAME=VALUE")
        if name in given:
            raise UsageError(f"option {name} is given twice", hint="give it once")
        given[name] = value
    return given


# --- reading ------------------------------------------------------------------------------------------------------


def batches(path: str, args: argparse.Namespace) -> Iterator[Trace]:
    """Decode a capture piece by piece, with progress for those who wait."""
    from lanescope.pipeline import session  # and with it numpy, which starts threads: see ``levelzero.record.run``

    last: Trace | None = None
    with progress(path) as shown:
        for batch in session.read(path, args.family, parse_options(args), progress=shown):
            last = batch
            yield batch
    if last is not None:
        refuse_unreadable(last, path)


def read(path: str, args: argparse.Namespace) -> Trace:
    """Decode a capture into one trace."""
    from lanescope.trace import Trace

    return Trace.concat(batches(path, args))


def read_all(paths: Sequence[str], args: argparse.Namespace) -> list[Trace]:
    """Decode several captures; each takes those options that its family knows.

    Raises:
        UsageError: an option that none of their families knows; or standard input twice.
    """
    from lanescope.pipeline import session
    from lanescope.trace import Trace

    if paths.count("-") > 1:
        raise UsageError("standard input is named twice", hint="name it once")
    given, known = parse_options(args), set[str]()
    traces = []
    for path in paths:
        if session.is_parquet_dataset(path):
            traces.append(session.open(path))
            continue
        with session.capture(path) as capture, progress(path) as shown:
            family, _ = session.detect_family(capture, args.family)
            names = {option.name for option in family.options}
            known |= names
            own = {name: value for name, value in given.items() if name in names}
            traces.append(Trace.concat(session.decode(capture, family, own, progress=shown)))
        refuse_unreadable(traces[-1], path)
    for name in given:
        if name not in known:
            raise UsageError(
                f"none of the families has an option {name!r}", hint="they know " + (", ".join(sorted(known)) or "none")
            )
    return traces


@contextmanager
def progress(path: str) -> Iterator[Callable[[int, int], object] | None]:
    """Give a function that shows how far reading is, once it has taken a second; None when nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    start = last = time.monotonic()
    name = escape(os.path.basename(path))  # noqa: PTH119
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


def loss_counts(trace: Trace) -> dict[str, int]:
    """Return what a trace, or the last batch of a decode, has lost.

    By name: stats of severity ``data_loss`` and ``error``, then units of the accounting.
    """
    from lanescope.pipeline.run import losses

    return losses(trace)


def unsettled_labels(trace: Trace) -> dict[str, int]:
    """Return the stats of a trace, or of the last batch of a decode, about a configuration that leaves labels open."""
    from lanescope.trace.stats import CONFIG

    found: dict[str, int] = {}
    for row in trace.stats.rows():
        if row["name"].endswith(CONFIG):
            found[row["name"]] = found.get(row["name"], 0) + row["count"]
    return found


def refuse_unreadable(trace: Trace, path: str) -> None:
    """Refuse a trace, or the last batch of a decode, in which every unit of the capture is lost.

    Raises:
        InputError: nothing but padding and lost units was found; the hint says what the file may be.
    """
    inputs = trace.inputs
    main = set(inputs.values("id")[inputs.values("part") == "main"].tolist())
    deepest: dict[int, dict[str, Any]] = {}
    for row in trace.accounting.rows():
        number = row["input_id"]
        if row["scope"] == "input" and number in main and row["layer"] >= deepest.get(number, row)["layer"]:
            deepest[number] = row
    rows = list(deepest.values())
    if any(row["decoded"] for row in rows) or not any(row["lost"] for row in rows):
        return
    row = max(rows, key=lambda row: row["lost"])
    family = inputs.values("family").tolist()[0]
    raise InputError(
        f"{path}: none of its {format_count(row['total'], row['unit'])} could be decoded as {family}",
        hint=_what_else(path, family),
    )


def _what_else(path: str, family: str) -> str:
    """Return what to do with a file of which a family has read nothing."""
    from lanescope.io import other_formats as known
    from lanescope.pipeline import session

    if os.path.isfile(path):  # noqa: PTH113
        candidates = [found.family for found in session.probe(path) if found.score >= MINE]
        if candidates and candidates[0] != family:
            return f"it looks like {candidates[0]}: leave out --family {family}"
        with session.capture(path) as capture:
            found = known.what_is(capture.main.head().data, capture.main.name)
        if found is not None:
            return f"it is {found.what}: {found.hint}"
    return "is it the right file, and the right --family?"


def _say_nothing_there(trace: Trace) -> None:
    """Say of captures that hold no record what that means."""
    from lanescope.trace.stats import NO_RECORDS

    for row in trace.stats.rows():
        if row["name"].endswith(NO_RECORDS):
            file = list(trace.inputs.rows())[row["input_id"]]
            meaning = {spec.name: spec.doc for spec in devices.family(file["family"]).stats()}[row["name"]]
            echo(f"lanescope: {escape(file['path'])}: {row['count']} {meaning}")


def close(trace: Trace, args: argparse.Namespace, status: int = 0) -> int:
    """Warn if there is nothing, data was lost or labels are not settled, and return the exit status that follows.

    Raises:
        InputError: all of it was lost.
    """
    _say_nothing_there(trace)
    refuse_unreadable(trace, args.input if "input" in args else "the capture")
    unsettled = ", ".join(f"{escape(name)} {count}" for name, count in unsettled_labels(trace).items())
    if unsettled:
        print(f"lanescope: labels are not settled: {unsettled}; `lanescope check` says why", file=sys.stderr)
    lost = loss_counts(trace)
    if not lost:
        return status
    listed = ", ".join(f"{escape(name)} {count}" for name, count in lost.items())
    print(f"lanescope: data was lost: {listed}; `lanescope check` says where", file=sys.stderr)
    return DataLossError.exit_status if args.strict else status


# --- output -------------------------------------------------------------------------------------------------------


def is_stdout(path: str | None) -> bool:
    """Tell whether an output is standard output, which is written to as it is and never replaced."""
    return path in _STDOUT


def check_output(path: str, inputs: Sequence[str] = (), *, force: bool, is_folder: bool = False) -> None:
    """Refuse, before the work is done, a path where no file, or no folder, can be or may be written.

    Raises:
        UsageError: it is an input, a folder, a device, in a folder that is not there; or a file, and not ``force``.
    """
    from lanescope.io import atomic_file

    atomic_file.check_room(path, is_folder=is_folder)
    target = Path(path)
    if not target.exists():
        return
    if any(each != "-" and Path(each).exists() and target.samefile(each) for each in inputs):
        raise UsageError(f"{path} is an input", hint="write to another file")
    if not force:
        raise UsageError(f"{path} is there already", hint="say --force to replace it")


def print_json(schema: str, **content: Any) -> None:
    """Print one JSON document with the name and version of its schema."""
    import json

    print(json.dumps({"schema": schema, **content}, indent=2, default=str))


def echo(message: str) -> None:
    """Talk to the user, beside the data."""
    print(message, file=sys.stderr)


def time_span(trace: Trace) -> tuple[int, int] | None:
    """Return the first and the last time of a trace, None when nothing has one."""
    span = TimeSpan()
    span.add(trace)
    return None if span.begin is None or span.end is None else (span.begin, span.end)


class TimeSpan:
    """The first and the last time of batches, None while nothing has one."""

    def __init__(self) -> None:
        self.begin: int | None = None
        self.end: int | None = None

    def add(self, trace: Trace) -> None:
        """Take in the rows of one batch."""
        for table in (trace.slices, trace.instants, trace.counters, trace.coverage, trace.gaps):
            if len(table):
                ts = table.values("ts")
                ends = [ts + table.values("dur") if "dur" in table.spec.names else ts]
                if "last_known_ts" in table.spec.names:
                    ends.append(table.values("last_known_ts"))
                begin, end = int(ts.min()), max(int(times.max()) for times in ends)
                self.begin = begin if self.begin is None else min(self.begin, begin)
                self.end = end if self.end is None else max(self.end, end)


def format_row_counts(rows: Mapping[str, int]) -> str:
    """Return how many events there are, in words, from the number of rows by table."""
    return ", ".join(format_count(rows[name], one) for name, one in _EVENTS.items() if rows.get(name))


def row_counts(trace: Trace) -> dict[str, int]:
    """Return the number of rows by table."""
    return {name: len(table) for name, table in trace.tables().items()}
