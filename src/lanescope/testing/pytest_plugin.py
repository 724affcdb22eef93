"""The plugin of pytest: the fixture ``lanescope_trace``, and markers that hold the captures of a test to limits.

pytest imports this module in every run of an environment that has lanescope, so it imports nothing but pytest; what
measures captures is imported by the first test that has one of the markers, or uses the fixture.

A marker that cannot be enforced is an error: without the fixture, without a capture, with arguments that it does not
take. A test that fails by itself keeps its own failure.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False  # as in ``typing``
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any

    from lanescope.testing.limits import Captures

FIXTURE = "lanescope_trace"
#: Name of the property of reports that has what was measured: JSON, so that it reaches other processes and files.
PROPERTY = "lanescope"
MARKERS = {
    "max_lost": "max_lost(count): at most so many lost records, bytes and other units in the captures of the test",
    "no_findings": "no_findings(select=(), ignore=(), fail_on='warning'): no rule of 'lanescope check' reports "
    "anything of this severity or a higher one",
    "max_idle": "max_idle(share, by='device', waiting=False): at most this share of the recorded time of the lanes of "
    "each device (group, lane, all) is idle",
    "max_regression": "max_regression(baseline=PATH, metric='busy', tolerance=0.05): the metric is at most this share "
    "above that of the baseline",
}
_CAPTURES = pytest.StashKey["Captures"]()
_WORST = 5


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of the summary."""
    parser.getgroup("lanescope").addoption(
        "--lanescope-worst",
        type=int,
        default=_WORST,
        metavar="N",
        help=f"list the N measured values that are nearest to, or above, their limits (default: {_WORST}, 0: none)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers."""
    for line in MARKERS.values():
        config.addinivalue_line("markers", line)


@pytest.fixture
def lanescope_trace(request: pytest.FixtureRequest, tmp_path: Any) -> Captures:
    """Open or record the captures of a test: call it with a path, bytes or a trace, or use its method ``record``."""
    from lanescope.testing.limits import Captures

    captures = Captures(tmp_path)
    request.node.stash[_CAPTURES] = captures
    return captures


def _marks(item: pytest.Item) -> list[pytest.Mark]:
    """Return all markers of a test that are ours: those of its class and module hold, too."""
    return [mark for mark in item.iter_markers() if mark.name in MARKERS]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse markers that cannot be enforced before the test runs."""
    marks = _marks(item)
    if not marks:
        return
    names = ", ".join(dict.fromkeys(mark.name for mark in marks))
    if FIXTURE not in getattr(item, "fixturenames", ()):
        hint = f"add the fixture {FIXTURE} to {item.nodeid}, and open a capture by it"
        pytest.fail(f"markers are not enforced: {names}\n  hint: {hint}", pytrace=False)
    _limits(marks)


def _limits(marks: Sequence[pytest.Mark]) -> list[Any]:
    """Return the limits that markers set; fails on arguments that they do not take."""
    from lanescope.testing import limits

    made = []
    for mark in marks:
        try:
            made.append(limits.LIMITS[mark.name](*mark.args, **mark.kwargs))
        except (TypeError, ValueError, limits.LanescopeError) as error:
            reason = str(error).replace("__init__()", mark.name)
            pytest.fail(f"marker {mark.name} is not enforced: {reason}\n  usage: {MARKERS[mark.name]}", pytrace=False)
    return made


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Measure the captures of a test that has passed by itself, and fail it where they exceed a limit."""
    result = yield
    # A test case of unittest keeps its failure to itself.
    if getattr(item, "_excinfo", None):
        return result
    marks = _marks(item)
    if not marks:
        return result
    captures = item.stash.get(_CAPTURES, None)
    if captures is None or not captures.opened:
        names = ", ".join(dict.fromkeys(mark.name for mark in marks))
        text = f"markers are not enforced, no capture was opened: {names}\n  hint: open one by the fixture {FIXTURE}"
        pytest.fail(text, pytrace=False)
    from lanescope.testing import limits

    measured, texts = limits.measure(_limits(marks), captures.opened)
    item.user_properties.append((PROPERTY, measured))
    if texts:
        item.add_report_section("call", "lanescope", "\n\n".join(texts))
        pytest.fail("\n".join(text.partition("\n")[0] for text in texts), pytrace=False)
    return result


def _measured(report: Any) -> list[dict[str, Any]]:
    """Return what was measured in the test of a report."""
    found = [value for name, value in getattr(report, "user_properties", ()) if name == PROPERTY]
    if not found:
        return []
    import json

    return [each for text in found for each in json.loads(text)]


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> Any:
    """Show a test that failed because of a limit by a letter of its own; it counts as failed."""
    if report.when == "call" and report.failed and any(not each["holds"] for each in _measured(report)):
        return "failed", "L", ("LIMIT", {"red": True})
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the measured values that are worst, compared with their limits, whether they hold or not."""
    number = config.getoption("--lanescope-worst")
    reports = [each for listed in terminalreporter.stats.values() for each in listed]
    found = [
        (measured, report.nodeid)
        for report in reports
        if getattr(report, "when", "") == "call"
        for measured in _measured(report)
    ]
    if not found or not number:
        return
    found.sort(key=lambda each: (each[0]["holds"], -each[0]["ratio"], each[1], each[0]["marker"]))
    terminalreporter.section(f"lanescope: worst {min(number, len(found))} of {len(found)} measured values")
    for measured, nodeid in found[:number]:
        state = "holds" if measured["holds"] else "EXCEEDED"
        terminalreporter.write_line(f"{state:8} {measured['marker']}: {measured['text']} ({nodeid})")
        if not measured["holds"] and measured["command"]:
            terminalreporter.write_line(f"         {measured['command']}")
