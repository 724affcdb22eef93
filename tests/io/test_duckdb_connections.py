"""Nothing that DuckDB draws gets into what a command prints."""

import re
from pathlib import Path

import lanescope
from lanescope.io import connected, cursor


def is_drawn(connection):
    return connection.execute("select current_setting('enable_progress_bar')").fetchone()[0]


def test_no_connection_draws_a_bar():
    with connected(threads=1) as connection, cursor(connection) as other:
        assert not is_drawn(connection)
        assert not is_drawn(other)
        assert connection.execute("select current_setting('threads')").fetchone() == (1,)


def test_all_connections_are_made_in_one_place():
    sources = Path(lanescope.__file__).parent.rglob("*.py")
    made = [
        path.relative_to(path.parents[1]).as_posix()
        for path in sources
        if re.search(r"duckdb\.connect\(|\.cursor\(\)", path.read_text())
    ]
    assert made == ["io/__init__.py"]
