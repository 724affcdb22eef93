import http.client
import json
import os
import socket
import threading
import time
from urllib.parse import unquote, urlsplit

import pytest

from lanescope.errors import MissingDependencyError, UsageError
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


def test_queries_and_formats_are_handed_to_the_ui(ui, tmp_path):
    (tmp_path / "out.pftrace").write_bytes(b"")
    with Viewer(tmp_path / "out.pftrace", ui=ui, expanded="a", query="select 1", time_format="traceNsLocale") as viewer:
        commands = json.loads(unquote(urlsplit(viewer.address).fragment.partition("startupCommands=")[2]))
        assert [command["args"] for command in commands] == [["a"], ["select 1"]]
        _, page, headers = ask(viewer, prefix(viewer))
        assert ask(viewer, prefix(viewer) + "index.html")[1] == page
        assert page.endswith(b"<script>start()</script>")
        assert b'{"timestampFormat": "traceNsLocale"}' in page
        assert headers["Content-Security-Policy"].count("'sha256-") == 2, "its script is allowed, as the page's own"
        assert headers["Content-Type"] == "text/html"
        assert ask(viewer, prefix(viewer), method="HEAD")[1] == b""


# --- the address in a browser's command line ------------------------------------------------------------------------


def test_an_invitation_leads_to_the_address_once_and_holds_no_token(viewer):
    path = urlsplit(viewer.invitation()).path
    token = prefix(viewer).strip("/")
    assert token not in viewer.invitation()
    assert ask(viewer, path, method="HEAD")[0] == 404, "a look at it does not use it up"
    status, body, headers = ask(viewer, path)
    assert (status, body, headers["Location"]) == (303, b"", viewer.address)
    assert ask(viewer, path)[:2] == (404, b"")
    assert urlsplit(viewer.invitation()).path != path


def test_an_invitation_is_not_for_other_users(viewer, monkeypatch):
    path = urlsplit(viewer.invitation()).path
    assert ask(viewer, path, host="evil.example")[0] == 404 or ask(viewer, path, host="evil.example")[0] == 403
    with monkeypatch.context() as patch:
        patch.setattr(server, "_user_of", lambda *_: os.getuid() + 1)
        status, _, headers = ask(viewer, path)
        assert (status, headers["Location"]) == (403, None)
    assert ask(viewer, path)[0] == 303, "who may not use it does not use it up"


def test_the_user_of_a_connection_is_known():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            found = server._user_of(client.getsockname()[1], port)
            if found is None:
                pytest.skip("this system does not tell whose a connection is")
            assert found == os.getuid()
            assert server._user_of(1, port) is None


# --- connections ----------------------------------------------------------------------------------------------------


@pytest.fixture
def served(ui, tmp_path):
    """Return a function that serves a trace with a patience of so many seconds."""
    (tmp_path / "out.pftrace").write_bytes(b"trace bytes")
    made = []

    def serve(patience):
        made.append(Viewer(tmp_path / "out.pftrace", ui=ui, patience=patience))
        return made[-1]

    yield serve
    for viewer in made:
        viewer.close()


def connect(viewer):
    address = urlsplit(viewer.address)
    return socket.create_connection((address.hostname, address.port))


def test_a_connection_without_a_request_is_closed(served):
    with connect(served(0.1)) as idle:
        assert idle.recv(1) == b""


def is_closed(connection, more):
    """Send more, and tell whether the other end has closed the connection."""
    try:
        connection.sendall(more)
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_a_request_that_comes_byte_by_byte_is_closed(served):
    """Each byte is in time: the whole request is not."""
    with connect(served(0.3)) as slow:
        slow.settimeout(0.05)
        while not is_closed(slow, b"G"):
            pass


def test_the_number_of_threads_is_bounded(served):
    viewer = served(3600)
    before = set(threading.enumerate())
    idle = [connect(viewer) for _ in range(server.CONNECTIONS + 20)]
    while len(viewer._server.silent) < server.CONNECTIONS:
        time.sleep(0.01)
    assert len(set(threading.enumerate()) - before) <= server.CONNECTIONS
    viewer._server.patience = 0.1  # those that wait are let in as soon as the first ones are given up
    assert ask(viewer, prefix(viewer))[0] == 200
    for connection in idle:
        connection.close()


def test_a_full_server_can_be_closed(served):
    viewer = served(3600)
    idle = [connect(viewer) for _ in range(server.CONNECTIONS + 1)]
    while len(viewer._server.silent) < server.CONNECTIONS:
        time.sleep(0.01)
    viewer.close()
    assert not viewer._thread.is_alive()
    for connection in idle:
        connection.close()


def test_a_taken_port_is_one_line(viewer, ui, tmp_path):
    with pytest.raises(UsageError, match="address already in use; remove --port"):
        Viewer(tmp_path / "out.pftrace", ui=ui, port=urlsplit(viewer.address).port)


def test_without_the_extra_one_line_tells_how_to_get_it(monkeypatch):
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="pip install 'lanescope\\[viewer\\]'"):
        server.find_ui()


def test_the_installed_ui_is_found():
    manifest = next(server.find_ui().glob("v*/manifest.json"))
    assert "frontend_bundle.js" in json.loads(manifest.read_text())["resources"]
