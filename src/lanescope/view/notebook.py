"""A trace in a notebook: as a result its facts, verdict, picture and names, and its report where it is to be viewed."""

from __future__ import annotations

import base64
import sys
from html import escape as html_escape
from io import BytesIO

from lanescope.trace import Trace
from lanescope.view.formatting import escape

#: Traces of more slices show their facts alone: what a cell prints has to be there at once. ``view`` shows them.
MOST_SLICES = 200_000
#: Pixels of the report in a cell, and of a picture at most: further results are not pushed away.
HEIGHT = 720


class InlineReport:
    """The report of a trace, drawn where a notebook shows a result.

    The page is in the notebook itself, in a frame that may run its own script and nothing else: no access to the
    notebook, no network.

    Args:
        trace: the trace, or a window of it.
        height: pixels of the frame.

    Attributes:
        left_out: sentences: what the trace has and the page has not.
    """

    def __init__(self, trace: Trace, *, height: int = HEIGHT) -> None:
        from lanescope.view.report.write import write_report

        page = BytesIO()
        self.height = height
        self.left_out = write_report(trace, page).left_out
        self._page = page.getvalue().decode()
        self._what = repr(trace)

    def __repr__(self) -> str:
        return f"<InlineReport of {self._what}>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="lanescope report" sandbox="allow-scripts" width="100%" height="{self.height}" '
            f'style="border:1px solid #d5dbe3" srcdoc="{html_escape(self._page, quote=True)}"></iframe>'
        )


def is_in_notebook() -> bool:
    """Return whether results are shown by a notebook: whether a kernel of IPython runs this."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


def picture_html(trace: Trace) -> str:
    """Return verdict, picture and names of a trace as HTML; nothing of a very large one."""
    if len(trace.slices) == 0 or len(trace.slices) > MOST_SLICES:
        return ""
    from lanescope.view.model.view_model import ViewModel
    from lanescope.view.picture.svg import draw

    safe = [(html_escape(escape(head)), html_escape(escape(rest))) for head, rest in ViewModel(trace).words]
    words = (f"<li><b>{head}</b> {rest}</li>" for head, rest in safe)
    # As an image, names and patterns of one picture never meet those of another.
    data = base64.b64encode(draw(trace, height=HEIGHT)).decode()
    picture = f'<img alt="timeline" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'
    return f"<ul>{''.join(words)}</ul>{picture}{trace.summary()._repr_html_()}"
