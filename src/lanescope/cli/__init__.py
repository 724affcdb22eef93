"""The command line. One module per command, imported on use: ``--help`` costs nothing but argparse.

More than 14 modules: each holds what several commands share, and a start imports those alone that its command needs.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

import lanescope
from lanescope.cli.parser import HelpFormatter, Parser
from lanescope.errors import InputError, InternalError, LanescopeError, UsageError, os_reason

TYPE_CHECKING = False  # as in ``typing``, which costs more to import than all of this
if TYPE_CHECKING:
    from lanescope.families.family import Family

#: Command -> one line of help. Its module is ``lanescope.cli.commands.COMMAND``, with ``_`` for ``-``.
COMMANDS = {
    "info": "show the format, contents and data loss of a capture",
    "convert": "export a capture: Perfetto, Chrome JSON, Parquet, VCD, formats of the family",
    "check": "find lost data and impossible timings",
    "summary": "show where the time goes",
    "phases": "show where the time of lanes went, to the last nanosecond",
    "gaps": "list the longest stretches without work, with what ended each",
    "explain": "say what bounds a run, what is exposed and what is uncertain",
    "critical-path": "show what each nanosecond waited for, and what a change would gain",
    "align": "show the offsets between clocks, as intervals that contain them",
    "diff": "compare runs: what is slower, faster, new or gone",
    "baseline": "keep summaries of runs, and compare a run with them",
    "ingest": "collect captures of many runs and ranks in a dataset",
    "compact": "join small files of a dataset",
    "sql": "query a capture or dataset with SQL",
    "dump": "print packets, records or rows, one per line",
    "view": "open a capture in the Perfetto UI, offline",
    "report": "write one HTML file with verdict, findings, timeline and tables, to send on",
    "sim": "simulate a capture with known ground truth",
    "mcp": "serve the captures of a folder to agents (Model Context Protocol, stdio)",
    "demo": "simulate, decode, check and plot a capture of each family",
    "doctor": "check the installation",
    "completion": "print the completion script of a shell",
}
#: Command of a family of the tree -> the family, and one line of help; asking the families would make ``--help`` slow.
FAMILY_COMMANDS = {
    "record": ("levelzero", "run a program and record its Level Zero calls"),
    "aie-config": ("aie", "generate or inspect AMD AIE trace configurations: JSON, registers, MLIR"),
    "aie-path": ("aie", "reconstruct the executed path of an AMD AIE core from its ELF file or listing"),
    "aie-wavediff": ("aie", "compare an AMD AIE capture with simulator waveforms"),
    "ascend-deps": ("ascend", "show dependencies of Ascend tasks"),
    "cuda-layout": ("cuda", "write, check, find or explain layouts of in-kernel profilers"),
    "levelzero-tally": ("levelzero", "sum the calls of CTF traces of any size"),
}

#: Commands that show themselves how far they are, or serve until they are told to end.
_OWN_PROGRESS = {"ingest", "view", "mcp"}
#: Allocations between two garbage collections: more than a start makes, and few compared with a capture in memory.
_GARBAGE_THRESHOLD = 100_000

_EXAMPLES = """\
examples:
  lanescope demo
  lanescope convert capture.bin -o timeline.pftrace
"""


class _HelpFormatter(HelpFormatter):
    """Keeps a verb and what is said of it on one line: argparse forgets that verbs are indented."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):
            self._action_max_length += self._indent_increment


class EndedBySignal(BaseException):
    """A signal asks the process to end.

    Attributes:
        status: exit status by which a shell tells it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


def program() -> int:
    """Run the command of this process: ``main``, with little time spent on its begin and its end.

    What is imported at a start is never garbage; looking through it again and again is a part of reading a small
    capture that one notices. So is taking the interpreter apart in the end, where the system frees everything at once.
    """
    gc.set_threshold(_GARBAGE_THRESHOLD)
    status = main()
    if _may_end_at_once():
        # What users of ``atexit`` rely on; an error in one of them is reported, as always.
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):  # the interpreter knows the status for it
            return status
        os._exit(status)
    return status


def _may_end_at_once() -> bool:
    """Return whether the interpreter's own end is not needed: no thread, no prompt, no tracer, no profiler."""
    if sys.flags.inspect or os.environ.get("PYTHONINSPECT") or sys.gettrace() or sys.getprofile():
        return False
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None and any(monitoring.get_tool(tool) for tool in range(6)):
        return False
    threading = sys.modules.get("threading")
    return threading is None or all(
        thread.daemon or thread is threading.main_thread() for thread in threading.enumerate()
    )


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


#: What Python, the loader of the system and DuckDB call a lack of memory, if not ``MemoryError``.
_NO_MEMORY = (
    "can't start new thread",
    "failed to map segment from shared object",
    "annot allocate memory",
    "Out of Memory Error",
)


def _explain(error: Exception) -> int:
    """Print what went wrong and what to do next, and return the exit status for it."""
    from lanescope.cli.console import print_error

    if isinstance(error, LanescopeError) and not isinstance(error, InternalError):
        print_error(error.message, error.hint)
        return error.exit_status
    if isinstance(error, MemoryError) or any(sign in str(error) for sign in _NO_MEMORY):
        print_error("not enough memory for this capture", "record a shorter run, or convert the capture in parts")
        return InputError.exit_status
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        print_error(f"{where}{os_reason(error)}", "use another path, or free some space")
        return UsageError.exit_status
    what = str(error) if isinstance(error, InternalError) else f"{type(error).__name__}: {error}"
    print_error(what, "rerun with LANESCOPE_DEBUG=1 and report the traceback", kind="internal error")
    return InternalError.exit_status


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
    first = arguments[0] if arguments else ""
    if first in COMMANDS:
        return _run_verb(first, arguments[1:])
    if first in FAMILY_COMMANDS:
        from lanescope.families import registry

        return _run_command(first, registry.family(FAMILY_COMMANDS[first][0]), arguments[1:])
    if first and not first.startswith("-"):
        from lanescope.families import registry

        for family in registry.plugin_families():
            if any(command.name == first for command in family.commands):
                return _run_command(first, family, arguments[1:])
    parser = Parser(
        prog="lanescope",
        description="One checked timeline from the raw device-side traces of accelerators.",
        epilog=_EXAMPLES,
        formatter_class=_HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"lanescope {lanescope.__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    for name, line in COMMANDS.items():
        verbs.add_parser(name, help=line, formatter_class=HelpFormatter)
    for name, (_, line) in FAMILY_COMMANDS.items():
        verbs.add_parser(name, help=line, formatter_class=HelpFormatter)
    if not arguments:
        parser.print_help(sys.stderr)
        return UsageError.exit_status
    parser.parse_args(arguments)
    raise AssertionError("argparse accepts listed commands only")


def _run_verb(verb: str, arguments: list[str]) -> int:
    _spare_threads()
    from lanescope.cli import arguments as parsing
    from lanescope.cli.signals import ending_clean

    with ending_clean():
        module = import_module(f"lanescope.cli.commands.{verb.replace('-', '_')}")
        named = parsing.family_named_for_help(arguments)
        if named is not None:
            from lanescope.families import registry

            print(parsing.family_help(verb, module, registry.family(named)), end="")
            return 0
        args = parsing.parse(verb, module, arguments)
        with _surrounded(args, verb, has_progress=verb not in _OWN_PROGRESS):
            status: int = module.run(args)
        return status


def _run_command(name: str, family: Family, arguments: list[str]) -> int:
    command = next(command for command in family.commands if command.name == name)
    if not command.runs_programs:
        _spare_threads()
    from lanescope.cli import arguments as parsing
    from lanescope.cli.signals import ending_clean

    with ending_clean():
        args = parsing.parse_command(command, family, arguments)
        from lanescope.cli.context import Context

        context = Context(args)
        with _surrounded(args, name, has_progress=not command.runs_programs):
            return context.finish(command.run(context, vars(args)))


@contextmanager
def _surrounded(args: argparse.Namespace, name: str, *, has_progress: bool) -> Iterator[None]:
    """Run a command within its memory, with its progress and without remarks as the user wishes."""
    from lanescope.cli import console, progress
    from lanescope.cli.memory import within_memory

    with (
        within_memory(args, name),
        console.remarks(is_quiet=args.quiet),
        progress.shown(is_quiet=args.quiet or not has_progress),
    ):
        yield


def _spare_threads() -> None:
    """Keep NumPy's library for matrices from starting a thread for every core when it is loaded.

    No verb multiplies matrices of floating-point numbers. Programs that we start inherit what is set here.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
