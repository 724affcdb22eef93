"""Calls from entries and exits, against a stack per thread."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from devices.levelzero.helpers import Script, stats
from lanescope.analysis import check
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.interpret.call_matching import NEVER, match
from lanescope.trace import Flag


def model(steps):
    return Events.of(
        {
            "calls": {
                "seq": list(range(len(steps))),
                "ts": list(range(len(steps))),
                "thread_id": [step[0] for step in steps],
                "function": [step[1] for step in steps],
                "is_exit": [step[2] for step in steps],
                "result": [None] * len(steps),
                "bytes": [None] * len(steps),
            }
        }
    )["calls"]


def by_stack(steps):
    """Return {entry: exit or None}, and the exits without an entry."""
    stacks, found, stray = {}, {}, []
    for number, (thread, function, is_exit) in enumerate(steps):
        stack = stacks.setdefault(thread, [])
        if not is_exit:
            stack.append(number)
            found[number] = None
        elif function in [steps[entry][1] for entry in stack]:
            while steps[stack[-1]][1] != function:
                stack.pop()
            found[stack.pop()] = number
        else:
            stray.append(number)
    return found, stray


def matched(steps):
    calls = match(model(steps))
    pairs = zip(calls.entry.tolist(), calls.exit.tolist(), strict=True)
    found = {entry: None if exit_ < 0 else exit_ for entry, exit_ in pairs}
    for entry, exit_seq in zip(calls.entry.tolist(), calls.exit_seq.tolist(), strict=True):
        assert exit_seq == (NEVER if found[entry] is None else found[entry])
    return found, calls.stray.tolist()


anything = st.lists(st.tuples(st.integers(0, 2), st.sampled_from("fgh"), st.booleans()), max_size=60)


@given(anything)
def test_equals_a_stack(steps) -> None:
    if steps:
        assert matched(steps) == by_stack(steps)


def test_nested_calls_keep_their_own_begins(tmp_path) -> None:
    script = Script()
    script.call("zeCommandQueueSynchronize", inside=lambda: script.call("zeFenceQueryStatus", "ZE_RESULT_NOT_READY"))
    trace = script.open(tmp_path)
    rows = [(row["name"], row["ts"], row["dur"]) for row in trace.slices.rows()]
    assert rows == [("zeCommandQueueSynchronize", 0, 3000), ("zeFenceQueryStatus", 1000, 1000)]
    assert trace.details["levelzero_calls"]["error"].tolist() == [False, False]
    assert not check.run(trace)


def test_missing_return_and_missing_entry(tmp_path) -> None:
    script = Script().exit("zeInit").entry("zeCommandQueueSynchronize").call("zeEventQueryStatus")
    trace = script.open(tmp_path)
    rows = list(trace.slices.rows())
    assert [(row["name"], row["dur"]) for row in rows] == [
        ("zeCommandQueueSynchronize", None),
        ("zeEventQueryStatus", 1000),
    ]
    assert rows[0]["flags"] == Flag.UNFINISHED
    assert rows[0]["last_known_ts"] == 3000
    assert stats(trace) == {"levelzero_exit_unmatched": 1, "levelzero_unfinished_call": 1, "levelzero_missing_date": 1}


def test_errors_are_results_that_are_neither_success_nor_not_ready(tmp_path) -> None:
    script = Script()
    for result in ("ZE_RESULT_SUCCESS", "ZE_RESULT_NOT_READY", "ZE_RESULT_ERROR_DEVICE_LOST", "0", "1", "2013265921"):
        script.call("zeEventQueryStatus", result)
    calls = script.open(tmp_path).details["levelzero_calls"]
    assert calls["error"].tolist() == [False, False, True, False, False, True]
    assert calls["result"].tolist()[3:] == ["ZE_RESULT_SUCCESS", "ZE_RESULT_NOT_READY", "0x78000001"]
