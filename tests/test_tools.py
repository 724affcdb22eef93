"""The tools that other tests rely on are what they seem."""

from __future__ import annotations

import json

import pytest


def test_trace_processor_answers_queries(trace_processor, tmp_path):
    trace = tmp_path / "two slices.json"
    events = [
        {"ph": "X", "name": "load", "ts": 1, "dur": 2, "pid": 1, "tid": 1},
        {"ph": "X", "name": "mma", "ts": 5, "dur": 4, "pid": 1, "tid": 1},
    ]
    trace.write_text(json.dumps({"traceEvents": events}))
    slices, total = trace_processor(
        trace, "select name, ts, dur from slice order by ts", "select count(*) as n, null as absent from slice"
    )
    assert slices == [{"name": "load", "ts": 1000, "dur": 2000}, {"name": "mma", "ts": 5000, "dur": 4000}]
    assert total == [{"n": 2, "absent": None}]


def test_trace_processor_reports_a_failed_query(trace_processor, tmp_path):
    trace = tmp_path / "empty.json"
    trace.write_text('{"traceEvents": []}')
    with pytest.raises(AssertionError, match="no such table"):
        trace_processor(trace, "select * from nowhere")


def test_a_missing_tool_fails_only_where_tools_are_required(require_tool, monkeypatch):
    monkeypatch.delenv("LANESCOPE_REQUIRE_TOOLS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="make test-tools"):
        require_tool("no-such-program")
    monkeypatch.setenv("LANESCOPE_REQUIRE_TOOLS", "1")
    with pytest.raises(pytest.fail.Exception, match="make test-tools"):
        require_tool("no-such-program")
