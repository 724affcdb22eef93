"""The command line. One module a verb, imported when the verb is called: ``--help`` costs nothing but argparse."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import lanescope
from lanescope.errors import InputError, InternalError, LanescopeError, MissingDependencyError, UsageError

#: Verb -> one line of help. Its module is ``lanescope.cli.VERB``.
VERBS = {
    "info": "say what a capture is, what is in it and what is lost",
    "convert": "write a capture as Perfetto, Chrome JSON, Parquet or a family's own format",
    "check": "look for what cannot be true",
    "summary": "add up the time of slices",
    "sql": "ask the tables of a capture in SQL",
    "dump": "show packets, records or rows, one a line",
    "view": "open a capture in the Perfetto UI, offline",
    "record": "run a program and record its calls of Level Zero",
    "sim": "make a capture whose truth is known",
    "demo": "see all of it on simulated captures",
    "doctor": "say what is installed and what is missing",
    "completion": "print what a shell needs to complete all this",
}
#: The same of verbs that families of the tree declare; asking the families would make ``--help`` slow.
FAMILY_VERBS = {
    "aie-config": "set up AMD AIE trace units: JSON, registers, MLIR",
    "path": "show the path that an AMD AIE core took, from its listing",
    "vcd": "compare a capture with the waveforms of a simulator",
    "fan": "show the tasks around an Ascend task, before and behind it",
}

_EXAMPLES = """\
examples:
  lanescope demo
  lanescope convert capture.bin -o timeline.pftrace
"""


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps a verb and what is said of it on one line: argparse forgets that verbs are indented."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):
            self._action_max_length += self._indent_increment


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line like all others."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the call, and where its help is."""
        raise UsageError(message, hint=f"see {self.prog} --help")


class EndedBySignal(BaseException):
    """A signal asks the process to end.

    Attributes:
        status: exit status by which a shell tells it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    0 fine; 1 findings; 2 usage; 3 not a capture we can read; 4 data loss under ``--strict``; 70 a bug; ended by a
    signal: 128 and its number (130 Ctrl-C, 143 SIGTERM).
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    _prepare_streams()
    try:
        try:
            status = _run(arguments)
        except SystemExit as stop:  # argparse: help and version
            status = stop.code if isinstance(stop.code, int) else 0
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except EndedBySignal as end:
        return end.status
    except BrokenPipeError:
        _discard_output()
        return 0
    except Exception as error:
        if os.environ.get("LANESCOPE_DEBUG") == "1":
            import traceback

            traceback.print_exc()
        status = _explain(error)
        try:
            sys.stdout.flush()
        except OSError:  # a full disk: the interpreter would fail on it once more, with a status of its own
            _discard_output()
    return status


def _explain(error: Exception) -> int:
    """Say in one line what went wrong, and return the exit status for it."""
    if isinstance(error, LanescopeError) and not isinstance(error, InternalError):
        return print_error(str(error), error.exit_status)
    if isinstance(error, MemoryError):
        return print_error("there is not enough memory for this capture; take a part of it", InputError.exit_status)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return print_error(f"{where}{error.strerror}; choose another place, or make room", UsageError.exit_status)
    what = str(error) if isinstance(error, InternalError) else f"{type(error).__name__}: {error}"
    return print_error(f"a bug of lanescope: {what}; run again with LANESCOPE_DEBUG=1 and report what it prints", 70)


def _prepare_streams() -> None:
    """Let neither a closed stream nor a character that the terminal's encoding lacks end a command."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 (cheap; as long as the process)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Forget what is still buffered: who reads us has seen enough, and the interpreter would try again at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, sys.stdout.fileno())
    except OSError:  # not a file of the system's
        pass
    finally:
        os.close(null)


def _run(arguments: list[str]) -> int:
    parser = Parser(
        prog="lanescope",
        description="One checked timeline from the raw device-side traces of accelerators.",
        epilog=_EXAMPLES,
        formatter_class=_HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"lanescope {lanescope.__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    if not arguments or arguments[0] not in VERBS:
        family_verbs = _family_verbs() if arguments and not arguments[0].startswith("-") else {}
        if arguments and arguments[0] in family_verbs:
            return _run_verb(arguments[0], family_verbs[arguments[0]], arguments[1:])
        for name, line in {**VERBS, **FAMILY_VERBS}.items():
            verbs.add_parser(name, help=line)
        if not arguments:  # somebody looks around for the first time
            parser.print_help(sys.stderr)
            return UsageError.exit_status
        parser.parse_args(arguments)
        raise AssertionError("argparse accepts no verb that is not listed")
    return _run_verb(arguments[0], f"lanescope.cli.{arguments[0]}", arguments[1:])


def _run_verb(verb: str, module: str, arguments: list[str]) -> int:
    if verb != "record":  # whose program inherits the environment
        # NumPy's library for matrices starts a thread for every core when it is loaded; no verb multiplies matrices of
        # floating-point numbers.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from lanescope.cli.signals import ending_clean

    with ending_clean():
        from lanescope.cli.common import parse

        try:
            command = import_module(module)
        except Exception as error:
            if verb in VERBS or verb in FAMILY_VERBS:
                raise
            from lanescope.devices import UPDATE, described

            what = f"the command {verb!r} of another package cannot be loaded: {described(error)}"
            raise MissingDependencyError(what, hint=UPDATE) from error
        status: int = command.run(parse(verb, command, arguments))
        return status


def _family_verbs() -> dict[str, str]:
    from lanescope import devices

    families = (*devices.plugin_families(), *devices.builtin())  # the tree's own verbs stay what they are
    return {verb: module for family in families for verb, module in family.verbs.items()}


def print_error(message: str, status: int) -> int:
    """Print an error on one line and return the exit status."""
    from lanescope.view.formatting import escape

    with suppress(OSError):  # nobody may listen; the status still tells
        print(f"lanescope: {escape(' '.join(message.split()))}", file=sys.stderr)
    return status
