"""Open a capture in the Perfetto UI, offline: served from this machine to its own browser, findings drawn in."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from lanescope.cli.common import add_input, close, read, say
from lanescope.devices import Family

EXAMPLES = ("lanescope view capture.bin", "lanescope view --no-browser capture.bin")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    parser.add_argument("--no-browser", dest="browser", action="store_false", help="print the address, open nothing")
    parser.add_argument("--port", metavar="N", type=int, default=0, help="a port of your choice; default: any free one")


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    import webbrowser

    from lanescope.analysis import check
    from lanescope.exchange import perfetto
    from lanescope.view.opening import groups_to_open
    from lanescope.view.server import Viewer, find_ui

    find_ui()  # before an hour of decoding
    trace = read(args.input, args)
    with tempfile.TemporaryDirectory(prefix="lanescope-") as folder:
        file = Path(folder) / "trace.pftrace"
        perfetto.write(trace, file, findings=check.to_table(check.run(trace)))
        title = f"{Path(args.input).name}.pftrace"
        with Viewer(file, title=title, port=args.port, expanded=groups_to_open(trace.tracks)) as viewer:
            print(viewer.address, flush=True)
            status = close(trace, args)
            if args.browser and not webbrowser.open(viewer.address):
                say("lanescope: no browser could be started; open the address above in one on this machine")
            say("lanescope: serving until you press Ctrl-C")
            try:
                while True:
                    time.sleep(3600)
            except KeyboardInterrupt:
                return status
