"""Open a capture in the Perfetto UI, offline: served from this machine to its own browser, findings drawn in."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lanescope.cli.arguments import add_input, add_window, non_negative_int
from lanescope.cli.check_settings import add_settings, check_settings
from lanescope.cli.console import echo, warn
from lanescope.cli.context import close
from lanescope.cli.reading import opened, passed
from lanescope.families.family import Family

if TYPE_CHECKING:
    from lanescope.view.server import Viewer

EXAMPLES = ("lanescope view capture.bin", "lanescope view --no-browser capture.bin")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    add_window(parser)
    parser.add_argument(
        "--no-browser", dest="browser", action="store_false", help="print the address, do not start a browser"
    )
    add_settings(parser)
    parser.add_argument("--port", metavar="N", type=_port, default=0, help="port to listen on (default: any free port)")


def _port(text: str) -> int:
    value = non_negative_int(text)
    if value > 65535:
        raise argparse.ArgumentTypeError("must be 0 to 65535")
    return value


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from lanescope.io.atomic_file import scratch
    from lanescope.io.perfetto import PerfettoSink
    from lanescope.pipeline.observers import Annotations
    from lanescope.view.initial_view import initial_view
    from lanescope.view.server import Viewer, find_ui

    # Before decoding, which may take long.
    find_ui()
    found, limits = check_settings(args)
    with scratch() as folder:
        file = folder / "trace.pftrace"
        with opened(args.input, args) as source:
            annotate = Annotations(found.select, found.ignore, limits)
            last = passed(source, args.input, sink=PerfettoSink(file), annotate=annotate).last
        title = f"{Path(args.input).name}.pftrace"
        with Viewer(file, title=title, port=args.port, **initial_view(last)) as viewer:
            print(viewer.address, flush=True)
            status = close(last, args)
            if args.browser and not _open(viewer):
                warn("cannot start a browser; open the address above on this machine")
            try:
                echo("serving until you press Ctrl-C")
                while True:
                    time.sleep(3600)
            except KeyboardInterrupt:
                return status


def _open(viewer: Viewer) -> bool:
    """Start a browser; every user of the machine can read its command line, so the address in it works only once."""
    import webbrowser

    return webbrowser.open(viewer.invitation())
