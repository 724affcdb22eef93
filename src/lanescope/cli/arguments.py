"""Arguments of commands: the common ones, and how they are parsed."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lanescope.cli.parser import HelpFormatter, Parser
from lanescope.errors import UsageError, flag
from lanescope.families import registry

if TYPE_CHECKING:
    from lanescope.analysis.windows.window import Window
    from lanescope.families.command import Argument
    from lanescope.families.family import Command, Export, Family, Summary
    from lanescope.families.options import Option

#: Where flags of families' options stand in the parsed arguments.
_OPTION = "option_"
#: Counts have so many digits at most: what they are compared with has 64 bits.
_DIGITS = 18
#: Flags whose values may begin with a minus: times before the end.
_SIGNED = ("--start", "--end", "--from", "--to")
#: Arguments that ask for a part of the timeline: times and lanes of it, and what is selected of its slices.
_WINDOW, _FILTERS = ("start", "end", "lane"), ("name", "min_dur", "where")
_WINDOW_FLAGS = frozenset("--" + name.replace("_", "-") for name in (*_WINDOW, *_FILTERS))
#: The flag that shows the options of one family.
_FAMILY_HELP = "--help-family"


# --- verbs --------------------------------------------------------------------------------------------------------


def parse(verb: str, module: ModuleType, arguments: list[str]) -> argparse.Namespace:
    """Parse a verb's arguments.

    Flags of other tools' files and of families from other packages are only looked for when one is met that no device
    family knows: finding those packages costs more than everything else.
    """
    families = registry.devices()
    arguments = _with_signed_values(arguments)
    if not {"-h", "--help"} & set(arguments):
        parser = build_parser(verb, module, arguments, families)
        try:
            args, unknown = _parsed(parser, arguments)
        except UsageError:
            unknown = ["?"]
        if not unknown:
            return args
        families = (*registry.builtin(), *registry.plugin_families())
    parser = build_parser(verb, module, arguments, families)
    args, unknown = _parsed(parser, arguments)
    if unknown:
        _refuse(parser, verb, unknown, getattr(module, "WINDOWLESS", ""))
    return args


def _refuse(parser: Parser, verb: str, unknown: Sequence[str], windowless: str) -> None:
    """Refuse arguments that a verb does not know; where they ask for a window, with the reason why it takes none."""
    if windowless and any(argument.partition("=")[0] in _WINDOW_FLAGS for argument in unknown):
        parser.error(f"{verb} takes no window: {windowless}")
    parser.error(f"unrecognized arguments: {' '.join(unknown)}")


def _with_signed_values(arguments: list[str]) -> list[str]:
    """Return the arguments with ``--start -1ms`` as ``--start=-1ms``: argparse would take the value for a flag."""
    found: list[str] = []
    is_ended = False
    for argument in arguments:
        if found and found[-1] in _SIGNED and not is_ended and argument[:1] == "-" and argument[1:2].isdecimal():
            found[-1] += f"={argument}"
        else:
            found.append(argument)
        is_ended |= argument == "--"
    return found


def _parsed(parser: argparse.ArgumentParser, arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse arguments, flags before, between and behind the others; return also those that the parser does not know."""
    if any(action.nargs == argparse.REMAINDER for action in parser._get_positional_actions()):
        return parser.parse_known_args(arguments)
    usage = parser.usage
    if not any(_may_ask_for_help(argument) for argument in arguments):
        # Or argparse lays it out, for messages that ``Parser.error`` writes without it.
        parser.usage = argparse.SUPPRESS
    try:
        return parser.parse_known_intermixed_args(arguments)
    finally:
        parser.usage = usage


def _may_ask_for_help(argument: str) -> bool:
    return argument == "--help" or (argument[:1] == "-" and argument[1:2] != "-" and "h" in argument)


def build_parser(verb: str, module: ModuleType, arguments: list[str], families: Sequence[Family]) -> Parser:
    """Return the parser of a verb, with flags for the options of the families, which its help does not show."""
    parser = _parser(verb, (module.__doc__ or "").strip(), module.EXAMPLES)
    module.configure(parser, families, arguments)
    return parser


def _parser(name: str, description: str, examples: Sequence[str]) -> Parser:
    listed = "examples:\n" + "\n".join(f"  {example}" for example in examples)
    parser = Parser(
        prog=f"lanescope {name}",
        description=description,
        epilog=listed if examples else None,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress and no remarks")
    return parser


def family_named_for_help(arguments: Sequence[str]) -> str | None:
    """Return the family whose options the arguments ask for, None when they do not.

    Raises:
        UsageError: the flag is there and names none.
    """
    for at, argument in enumerate(arguments):
        flag, equals, name = argument.partition("=")
        if argument == "--":
            return None
        if flag == _FAMILY_HELP:
            name = name if equals else next(iter(arguments[at + 1 :]), "")
            if not name:
                raise UsageError(f"{_FAMILY_HELP} requires a family (choose from {', '.join(registry.BUILTIN)})")
            return name
    return None


def family_help(verb: str, module: ModuleType, family: Family) -> str:
    """Return what a verb takes for captures of one family only.

    Raises:
        UsageError: the verb takes no options of families.
    """
    parser = Parser(prog=f"lanescope {verb}", add_help=False, allow_abbrev=False)
    parser.shown = (family.name,)
    module.configure(parser, [family], [family.name])
    if not any(_FAMILY_HELP in action.option_strings for action in parser._actions):
        raise UsageError(f"lanescope {verb} has no family options", hint=f"see lanescope {verb} --help")
    groups = [group for group in parser._action_groups if group.title and group.title.startswith("options of ")]
    formatter = parser._get_formatter()
    declared: dict[str, tuple[Summary | Export, ...]] = {"summary": family.summaries, "convert": family.exports}
    own = declared.get(verb, ())
    if own:
        formatter.start_section(f"--{'by' if verb == 'summary' else 'format'} takes as well")
        for each in own:
            formatter.add_argument(argparse.Action((), each.name, metavar=each.name, help=each.doc.replace("%", "%%")))
        formatter.end_section()
    for group in groups:
        formatter.start_section(group.title)
        formatter.add_text(group.description)
        formatter.add_arguments(group._group_actions)
        formatter.end_section()
    return formatter.format_help() if groups or own else f"lanescope {verb} has no options of {family.name}\n"


def add_input(
    parser: argparse.ArgumentParser,
    families: Sequence[Family],
    *,
    many: bool = False,
    is_strict: bool = True,
    is_optional: bool = False,
    is_positional: bool = True,
) -> None:
    """Add the arguments by which a verb takes captures."""
    if not is_positional:
        pass  # the verb has captures of its own
    elif many:
        parser.add_argument("inputs", metavar="INPUT", nargs="+", help="captures (- for standard input)")
    elif is_optional:
        parser.add_argument("input", metavar="INPUT", nargs="?", help="capture (- for standard input)")
    else:
        parser.add_argument("input", metavar="INPUT", help="capture (- for standard input)")
    _add_family(parser)
    add_option_pairs(parser)
    if is_strict:
        parser.add_argument("--strict", action="store_true", help="exit with status 4 on data loss")
    add_memory(parser)
    add_options(parser, [(family, family.options) for family in families])


def add_window(parser: argparse.ArgumentParser, *, names: tuple[str, ...] = ()) -> None:
    """Add the arguments that ask for a part of the timeline; ``names``: other names of its start and its end."""
    group = parser.add_argument_group("window: only a part of the timeline")
    first, last = ((name,) for name in names) if names else ((), ())
    start = "from 1.5ms, 34567 (ns), -1ms (before the end), NAME#K"
    group.add_argument("--start", *first, dest="start", metavar="TIME", help=start)
    group.add_argument("--end", *last, dest="end", metavar="TIME", help="up to this time, or the end of slice NAME#K")
    group.add_argument("--lane", metavar="GLOB", action="append", help="only lanes, or groups, of this name or path")
    group.add_argument("--name", metavar="GLOB", action="append", help="only slices and instants of this name")
    group.add_argument("--min-dur", metavar="DURATION", help="only slices of at least this duration")
    group.add_argument("--where", metavar="SQL", help='only slices that meet a SQL condition: "dur > 1000"')


def add_dataset(parser: argparse.ArgumentParser, *, names_runs: bool = False) -> None:
    """Add the arguments that select captures of a dataset; ``names_runs``: those that inputs name."""
    group = parser.add_argument_group("datasets: only some captures of one that `lanescope ingest` made")
    if not names_runs:
        group.add_argument("--runs", metavar="GLOB", action="append", default=[], help="only captures of this run")
    group.add_argument(
        "--ranks", metavar="RANKS", type=_ranks, default=[], help="only these ranks: 3, 0-7, or 0,4,8-15"
    )


def _ranks(text: str) -> list[range]:
    found = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        begin = non_negative_int(first)
        end = non_negative_int(last) if dash else begin
        if end < begin:
            raise argparse.ArgumentTypeError(f"invalid range {part!r}: the end is before the start")
        found.append(range(begin, end + 1))
    return found


def add_memory(parser: argparse.ArgumentParser) -> None:
    """Add the argument that limits memory."""
    parser.add_argument("--memory", metavar="SIZE", help="most memory, e.g. 512MiB (default: no limit)")


def add_format(parser: argparse._ActionsContainer) -> None:
    """Add the argument that asks for what services of continuous integration show."""
    parser.add_argument(
        "--format",
        metavar="FOR",
        choices=("github", "markdown"),
        default="",
        help="output for a workflow: github or markdown",
    )


def parse_window(args: argparse.Namespace) -> Window | None:
    """Return the window that the user asks for; None without one.

    Raises:
        UsageError: a time is none.
    """
    given = {name: value for name in (*_WINDOW, *_FILTERS) if (value := getattr(args, name, None)) is not None}
    if not given:
        return None
    from lanescope.analysis.windows.window import make_window

    return make_window(**given)


def window_words(args: argparse.Namespace) -> tuple[str, str]:
    """Return the words of a command line that ask for the same window: its times and lanes, and what it selects."""

    def words(names: Sequence[str]) -> str:
        found = []
        for name in names:
            given = getattr(args, name, None)
            values = given if isinstance(given, list) else [] if given is None else [given]
            found += [f"--{name.replace('_', '-')}={value}" for value in values]
        return shlex.join(found)

    return words(_WINDOW), words(_FILTERS)


def _add_family(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--family", metavar="NAME", help="device family (default: detect)")


def add_options(parser: argparse.ArgumentParser, groups: Sequence[tuple[Family, Sequence[Option]]]) -> None:
    """Add a flag for each option of several families, and the one that shows those of one of them.

    An option that several families have is one flag. Where the verb has such a flag itself, ``-O`` reaches the option.
    """
    families = ", ".join(registry.BUILTIN)
    parser.add_argument(_FAMILY_HELP, metavar="NAME", help=f"show the options of one family: {families}, or a plugin")
    _add_flags(parser, groups)


def _add_flags(parser: argparse.ArgumentParser, groups: Sequence[tuple[Family, Sequence[Option]]]) -> None:
    shown = parser.shown if isinstance(parser, Parser) else ()
    for family, options in groups:
        if not options:
            continue
        group = parser.add_argument_group(f"options of {family.name} ({family.title})")
        taken = []
        for option in options:
            flag, text, extra = _flag(option)
            if flag not in parser._option_string_actions:
                text = text if family.name in shown else argparse.SUPPRESS
                group.add_argument(flag, dest=_OPTION + option.name, help=text, **extra)
            else:
                taken.append(f"-O {option.name}={option.metavar or option.name.upper()}: {option.help}")
        if taken and family.name in shown:
            group.description = "\n".join(taken)


def _flag(option: Option) -> tuple[str, str, dict[str, Any]]:
    """Return the flag of an option, its help, and how argparse takes it; what is on by itself can be put off."""
    text = option.help.replace("%", "%%")
    if option.parse is bool:
        if option.default:
            flag = option.flag.replace("--", "--no-", 1)
            return flag, f"turn off: {text}", {"action": "store_const", "const": "no"}
        return option.flag, text, {"action": "store_const", "const": "yes"}
    if option.default not in (None, ""):
        text += f" (default: {_shown(option.default)})".replace("%", "%%")
    return option.flag, text, {"metavar": option.metavar or option.name.upper()}


def _shown(default: Any) -> str:
    """Return a default as the help shows it: 10.0 is 10."""
    return f"{default:g}" if isinstance(default, float) else str(default)


def add_option_pairs(parser: argparse.ArgumentParser) -> None:
    """Add ``-O``, which reaches every option of a family."""
    parser.add_argument(
        "-O", dest="options", metavar="NAME=VALUE", action="append", default=[], help="decode option of the family"
    )


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
            raise UsageError(f"invalid -O {pair!r}: expected NAME=VALUE")
        if name in given:
            raise UsageError(f"{flag(name)} is specified twice", hint="pass the option once")
        given[name] = value
    return given


# --- commands of families -----------------------------------------------------------------------------------------


def command_parser(command: Command, family: Family) -> Parser:
    """Return the parser of a family's command; its help shows the options of that family."""
    from inspect import getdoc

    parser = _parser(command.name, getdoc(command.run) or command.help, command.examples)
    configure_command(parser, command, family)
    return parser


def configure_command(parser: Parser, command: Command, family: Family) -> None:
    """Add what a family's command takes."""
    parser.shown = (family.name,)
    if command.takes_capture:
        parser.add_argument("input", metavar="INPUT", help="capture (- for standard input)")
    groups: dict[str, Any] = {}
    for argument in command.arguments:
        if argument.group and argument.group not in groups:
            groups[argument.group] = parser.add_mutually_exclusive_group()
        _add_argument(groups.get(argument.group, parser), argument)
        if argument.is_rest:
            parser.usage = f"lanescope {command.name} [options] -- {argument.metavar} [ARGUMENTS]"
    # A command of another package may have flags of these names itself.
    if command.takes_capture and not command.windowless and not _WINDOW_FLAGS & set(parser._option_string_actions):
        add_window(parser)
    if any(argument.key == "json" for argument in command.arguments):
        from lanescope.cli.tables import add_look

        add_look(parser, parser)
    if not command.runs_programs:
        add_memory(parser)
    if command.has_output:
        parser.add_argument("--force", action="store_true", help="overwrite existing output")
    if command.takes_capture:
        _add_family(parser)
        parser.add_argument("--strict", action="store_true", help="exit with status 4 on data loss")
        add_option_pairs(parser)
        _add_flags(parser, [(family, family.options)])


def _add_argument(parser: Any, argument: Argument) -> None:
    text = argument.help.replace("%", "%%")
    if argument.default not in (None, False, ""):
        text += f" (default: {_shown(argument.default)})".replace("%", "%%")
    names = (argument.short, argument.name) if argument.short else (argument.name,)
    if argument.parse is bool:
        parser.add_argument(*names, action="store_true", help=text)
        return
    extra: dict[str, Any] = {"help": text, "default": argument.default}
    if argument.metavar or not argument.choices:
        extra["metavar"] = argument.metavar or argument.key.upper()
    if argument.choices:
        extra["choices"] = argument.choices
    if argument.is_rest:
        extra["nargs"] = argparse.REMAINDER
    elif argument.parse is not str:
        extra["type"] = _typed(argument)
    if argument.is_optional:
        extra["nargs"] = "?"
    if argument.is_repeated:
        extra |= {"action": "append", "default": []}
    parser.add_argument(*names, **extra)


def _typed(argument: Argument) -> Any:
    def parse(text: str) -> Any:
        try:
            return argument.parse(text)
        except (ValueError, ZeroDivisionError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def parse_command(command: Command, family: Family, arguments: list[str]) -> argparse.Namespace:
    """Parse the arguments of a family's command."""
    parser = command_parser(command, family)
    if command.takes_capture:
        arguments = _with_signed_values(arguments)
    args, unknown = _parsed(parser, arguments)
    if unknown:
        _refuse(parser, command.name, unknown, command.windowless)
    return args


# --- numbers ------------------------------------------------------------------------------------------------------


def non_negative_int(text: str) -> int:
    """Parse a non-negative integer."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise argparse.ArgumentTypeError("must be a non-negative integer")
    return int(text)


def whole(text: str) -> int:
    """Parse an integer."""
    sign = -1 if text.startswith("-") else 1
    return sign * non_negative_int(text.removeprefix("-"))


def positive(text: str) -> int:
    """Parse a positive integer."""
    value = non_negative_int(text)
    if not value:
        raise argparse.ArgumentTypeError("must be a positive integer")
    return value
