"""The command line. One module a verb, imported when the verb is called: ``--help`` costs nothing but argparse."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import lanescope

#: Verb -> one line of help. Its module is ``lanescope.cli.VERB``.
VERBS = {
    "info": "say what a capture is, what is in it and what is lost",
    "convert": "write a capture as Perfetto, Chrome JSON, Parquet or a family's own format",
    "check": "look for what cannot be true",
    "summary": "add up the time of slices",
    "sql": "ask the tables of a capture in SQL",
    "dump": "show packets, records or rows, one a line",
    "view": "open a capture in the Perfetto UI, offline",
    "sim": "make a capture whose truth is known",
    "demo": "see all of it on simulated captures",
    "doctor": "say what is installed and what is missing",
}

_EXAMPLES = """\
examples:
  lanescope demo
  lanescope convert capture.bin -o timeline.pftrace
"""


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line like all others."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the call, and where its help is."""
        self.exit(_complain(f"{message}; see {self.prog} --help", 2))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    0 fine; 1 findings; 2 usage; 3 not a capture we can read; 4 data loss under ``--strict``; 130 interrupted; 70 a bug.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except SystemExit as stop:  # argparse: help, version, wrong usage
        return stop.code if isinstance(stop.code, int) else 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Who reads us has seen enough. The interpreter would complain again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _complain(
            "there is not enough memory for this capture; convert it to .parquet, or take a part of it", 70
        )
    except Exception as error:
        from lanescope.errors import InternalError, LanescopeError

        if os.environ.get("LANESCOPE_DEBUG") == "1":
            raise
        if isinstance(error, LanescopeError) and not isinstance(error, InternalError):
            return _complain(str(error), error.exit_status)
        what = f"{type(error).__name__}: {error}"
        return _complain(f"a bug of lanescope: {what}; run again with LANESCOPE_DEBUG=1 and report what it prints", 70)
    return status


def _run(arguments: list[str]) -> int:
    parser = Parser(
        prog="lanescope",
        description="One checked timeline from the raw device-side traces of accelerators.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"lanescope {lanescope.__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    if not arguments or arguments[0] not in VERBS:
        family_verbs = _family_verbs() if arguments and not arguments[0].startswith("-") else {}
        if arguments and arguments[0] in family_verbs:
            return _run_verb(arguments[0], family_verbs[arguments[0]], arguments[1:])
        for name, line in VERBS.items():
            verbs.add_parser(name, help=line)
        parser.parse_args(arguments)
        raise AssertionError("argparse accepts no verb that is not listed")
    return _run_verb(arguments[0], f"lanescope.cli.{arguments[0]}", arguments[1:])


def _run_verb(verb: str, module: str, arguments: list[str]) -> int:
    from lanescope.cli.common import parse

    command = import_module(module)
    status: int = command.run(parse(verb, command, arguments))
    return status


def _family_verbs() -> dict[str, str]:
    from lanescope import devices

    return {verb: module for family in devices.in_tree() for verb, module in family.verbs.items()}


def _complain(message: str, status: int) -> int:
    from lanescope.view.text import escape

    print(f"lanescope: {escape(' '.join(message.split()))}", file=sys.stderr)
    return status
