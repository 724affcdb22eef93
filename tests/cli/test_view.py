"""``lanescope view`` as a process: what other users see of it, and what stays when it ends."""

import http.client
import signal
import stat
from urllib.parse import urlsplit

import pytest

from error_text import is_one_error

BROWSER = """#!/bin/sh
printf '%s\\n' "$@" >"$0.arguments.new"
mv "$0.arguments.new" "$0.arguments"
"""


@pytest.fixture
def viewing(start, run_file, tmp_path):
    """Return a function that starts ``lanescope view``: the process, its address, and its temporary folder."""
    pytest.importorskip("viztracer")
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def viewing(*arguments, env=(), **options):
        running = start(
            "-m", "lanescope", "view", "run.blink", *arguments, env={"TMPDIR": str(temporary), **dict(env)}, **options
        )
        address = running.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), running.stderr.read()
        return running, address, temporary

    return viewing


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 0), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_and_nothing_stays(viewing, number, status):
    running, _, temporary = viewing("--no-browser")
    (folder,) = temporary.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    # From this line on it serves until it is interrupted.
    assert running.stderr.readline() == "serving until you press Ctrl-C\n"
    running.send_signal(number)
    assert (running.wait(60), running.stderr.read()) == (status, "")
    assert list(temporary.iterdir()) == []


def test_sigterm_ends_it_where_sigint_is_ignored(viewing):
    running, _, temporary = viewing("--no-browser", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert running.stderr.readline() == "serving until you press Ctrl-C\n"
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGTERM)
    assert running.wait(60) == 143
    assert list(temporary.iterdir()) == []


def test_the_command_line_of_the_browser_does_not_hold_the_token(viewing, tmp_path):
    browser = tmp_path / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o755)
    running, address, _ = viewing(env={"BROWSER": str(browser)})
    assert running.stderr.readline() == "serving until you press Ctrl-C\n"
    (given,) = (tmp_path / "browser.arguments").read_text().splitlines()
    token = urlsplit(address).path.strip("/")
    assert len(token) > 24
    assert token not in given
    connection = http.client.HTTPConnection(urlsplit(given).netloc)
    for expected in ((303, address), (404, None)):
        connection.request("GET", urlsplit(given).path)
        answer = connection.getresponse()
        answer.read()
        assert (answer.status, answer.headers["Location"]) == expected
        connection.close()


@pytest.mark.parametrize(
    ("port", "message"),
    [("65536", "must be 0 to 65535"), ("-1", "must be a non-negative"), ("x", "must be a non-negative")],
)
def test_what_is_not_a_port_is_refused(call, run_file, port, message):
    done = call("view", "run.blink", "--no-browser", f"--port={port}")
    assert (done.status, message in done.err, is_one_error(done.err)) == (2, True, True)
