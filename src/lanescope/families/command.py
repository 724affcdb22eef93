"""Commands of a family, and the context that the command line hands to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from lanescope.trace import ColumnSpec, Trace
    from lanescope.trace.column import Mask

#: Values of a command's arguments, by the names that ``Argument.key`` gives them.
Values = Mapping[str, Any]


class Argument(NamedTuple):
    """One argument of a command.

    Attributes:
        name: ``"task"``, or ``"--depth"`` for a flag.
        help: one line.
        parse: from text to the value; ``ValueError`` says what is wrong. ``bool`` makes a switch.
        default: the value of a flag that is not given; a repeated flag has an empty list.
        metavar: placeholder of the value in the help.
        choices: the values there are; empty: any.
        short: a second name of one letter: ``"-o"``.
        is_repeated: the flag may be given several times; its value is the list of them.
        is_rest: the argument takes all that follows, flags as well, as a list.
        group: flags of one group exclude each other.
        is_optional: the argument may be left out; its value is then the default. Flags always may.
    """

    name: str
    help: str
    parse: Callable[[str], Any] = str
    default: Any = None
    metavar: str = ""
    choices: tuple[str, ...] = ()
    short: str = ""
    is_repeated: bool = False
    is_rest: bool = False
    group: str = ""
    is_optional: bool = False

    @property
    def key(self) -> str:
        """The name of its value."""
        return self.name.lstrip("-").replace("-", "_")


class CommandContext(Protocol):
    """Services for the commands of a family: captures in, tables, files and messages out."""

    def open(self, path: str, **options: Any) -> Trace:
        """Decode a capture into one trace, with the options of the command line and those given here.

        Where the command line asks for a window it is that part, which keeps the whole as its ``origin``.
        When the command has ended, the house warns of what the capture lost and settles the exit status.
        """

    def chosen_tracks(self, trace: Trace) -> Mask:
        """Return which tracks of a capture that was opened the window of the command line has, bool [tracks]."""

    def read(self, path: str) -> Trace:
        """Decode a capture into one trace; the command says itself what is to be said of it."""

    def option(self, name: str) -> str | None:
        """Return the text that the command line gave for a decode option, None when it gave none."""

    def show(
        self,
        columns: Sequence[str | ColumnSpec],
        rows: Iterable[Sequence[Any]],
        *,
        title: str = "",
        is_talk: bool = False,
        is_long: bool = False,
    ) -> None:
        """Show a table on standard output; ``is_talk``: on standard error.

        Of one that ``is_long``, a terminal is given the first rows, and told how many follow.

        A column is a name, and shown by its values; or a declaration, whose unit and type tell how values are shown.
        With ``--csv``, which commands with ``--json`` have as well, the first table is printed as CSV.
        """

    def is_csv(self) -> bool:
        """Return whether the command line asks for CSV."""

    def lines(self, lines: Iterable[str]) -> None:
        """Print lines on standard output, control characters escaped except tabs."""

    def json(self, schema: str, **content: Any) -> None:
        """Print one JSON document with the name and version of its schema."""

    def echo(self, message: str) -> None:
        """Print a line on standard error, control characters escaped."""

    def warn(self, message: str) -> None:
        """Print ``lanescope: warning: MESSAGE`` on standard error, control characters escaped."""

    def wrote(self, target: str, *content: str, size: int) -> None:
        """Report an output on standard error: ``wrote TARGET (CONTENT, SIZE)``; ``size`` is in bytes."""

    def is_stdout(self, target: str | None) -> bool:
        """Return whether a target names standard output."""

    def check_target(self, target: str | None, inputs: Sequence[str] = ()) -> None:
        """Refuse, before the work is done, a file that cannot be written, is an input, or is there without --force.

        Raises:
            UsageError: with the reason.
        """

    def write(self, target: str | None, blocks: Iterable[bytes], *, inputs: Sequence[str] = ()) -> int:
        """Write a file as a whole or not at all, and return its size; standard output for None and ``-``.

        Raises:
            UsageError: as ``check_target``.
        """

    def convert(self, trace: Trace, target: str) -> int:
        """Write a trace as a timeline, the suffix tells the format; return the size.

        Raises:
            UsageError: the suffix tells none; or as ``check_target``.
        """
