"""An executed notebook: each result has HTML and a text, and the report of a trace lies in a frame of its own."""

import re
from base64 import b64decode
from html import unescape

import lanescope
from lanescope.view import notebook
from view import executed_notebook


def test_results_of_an_executed_notebook(tmp_path):
    name, content = next(iter(lanescope.simulate("cuda", layout="ls2", blocks=40, seed=1).files.items()))
    (tmp_path / name).write_bytes(content)
    trace, slices, summary, path, view = executed_notebook.execute(tmp_path / name)
    for data in (trace, slices, summary, path, view):
        assert data["text/plain"]
        assert "<object" not in data["text/plain"]
    assert "lanes" in trace["text/html"]
    picture = re.search('src="data:image/svg[+]xml;base64,([^"]*)"', trace["text/html"])
    height = re.search('height="([0-9]+)"', b64decode(picture[1]).decode())
    assert 200 < int(height[1]) <= notebook.HEIGHT
    for data in (slices, summary, path):
        assert "<table" in data["text/html"]
    frame = re.fullmatch(r'<iframe .*sandbox="allow-scripts" .*srcdoc="([^"]*)"></iframe>', view["text/html"])
    assert "Content-Security-Policy" in unescape(frame[1])
