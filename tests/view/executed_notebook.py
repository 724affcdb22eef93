"""A notebook that is executed by a kernel of IPython, as a person runs it."""

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

#: What a first notebook on a capture does, a cell each: a trace, a table, an answer with a table, the report.
CELLS = (
    "import lanescope\ntrace = lanescope.open({path!r})\ntrace",
    "trace.slices",
    "trace.summary()",
    "trace.critical_path()",
    "trace.view()",
)


def execute(path: Path) -> list[dict[str, Any]]:
    """Return what each cell shows of a capture, by MIME type; a cell that fails raises."""
    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source.format(path=str(path))) for source in CELLS]
    )
    folder = {"metadata": {"path": str(path.parent)}}
    NotebookClient(book, kernel_name="python3", timeout=120, resources=folder).execute()  # on the loopback interface
    nbformat.validate(book)
    shown = []
    for cell in book.cells:
        (output,) = cell.outputs
        assert output.output_type == "execute_result", output
        shown.append(dict(output.data))
    return shown


def page(shown: list[dict[str, Any]]) -> str:
    """Return a page with the HTML of all cells, as a notebook has them below each other."""
    cells = zip(CELLS, shown, strict=True)
    parts = (f"<pre>{source.partition('{')[0] or source}</pre><div>{data['text/html']}</div>" for source, data in cells)
    return f"<!doctype html><meta charset=utf-8><body style='font:13px sans-serif'>{''.join(parts)}"
