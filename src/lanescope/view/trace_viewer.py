"""A trace that is in memory, in the Perfetto UI."""

from __future__ import annotations

import webbrowser
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from lanescope.io.perfetto import PerfettoSink
from lanescope.pipeline.observers import Annotations
from lanescope.pipeline.run import run
from lanescope.pipeline.sources import InMemory
from lanescope.trace import Trace
from lanescope.view.initial_view import initial_view
from lanescope.view.server import Viewer, find_ui


class TraceViewer(Viewer):
    """Serves a trace, with its findings drawn in, until it is closed.

    Args:
        trace: the trace.
        port: 0 for any free one.

    Raises:
        MissingDependencyError: the viewer is not installed.
        UsageError: the port is taken.
    """

    def __init__(self, trace: Trace, *, port: int = 0) -> None:
        ui = find_ui()
        self._folder = TemporaryDirectory(prefix="lanescope-")
        file = Path(self._folder.name) / "trace.pftrace"
        try:
            run(InMemory(trace), sink=PerfettoSink(file), annotate=Annotations())
            super().__init__(file, ui=ui, port=port, **initial_view(trace))
        except BaseException:
            self._folder.cleanup()
            raise

    def __repr__(self) -> str:
        return f"<TraceViewer: {self.address}>"

    def _repr_html_(self) -> str:
        return f'<a href="{escape(self.address)}" target="_blank" rel="noopener">open in the Perfetto UI</a>'

    def close(self) -> None:
        """Stop serving, and remove the file."""
        super().close()
        self._folder.cleanup()


def serve(trace: Trace, *, browser: bool = True, port: int = 0) -> TraceViewer:
    """Serve a trace on this machine, and start a browser.

    Args:
        trace: the trace.
        browser: start one; where there is none, the address is in the returned viewer.
        port: port to listen on, 0 for any free one.
    """
    viewer = TraceViewer(trace, port=port)
    if browser:
        webbrowser.open(viewer.invitation())
    return viewer
