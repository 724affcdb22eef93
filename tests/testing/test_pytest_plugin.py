"""The pytest plugin: its markers are enforced or are errors, with and without xdist, and cost nothing unused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import lanescope
from effort import SANITIZED
from lanescope import TimeBase, TraceBuilder
from lanescope.testing import limits

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/pytest-plugin"
BARE = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:timeout", "-p", "no:anyio")


@pytest.fixture(scope="session")
def simulated():
    """Return two captures: ``sound.npy`` without losses, ``lossy.bin`` with 8 buffer overruns.

    Made here, as ``pytester`` forgets modules that are imported while it is used, and the core can be loaded once only.
    """
    made = {}
    for name, family, options in (("sound.npy", "cuda", {"blocks": 8}), ("lossy.bin", "aie", {"overruns": 2})):
        made[name] = next(iter(lanescope.simulate(family, seed=1, **options).files.values()))
    return made


@pytest.fixture
def folder(simulated, pytester):
    """Return a folder with the captures, where markers are strict."""
    pytester.makeini("[pytest]\naddopts = --strict-markers")
    for name, data in simulated.items():
        (pytester.path / name).write_bytes(data)
    return pytester


def run(pytester, body, *arguments):
    pytester.makepyfile(f"import pytest\n\n{body}")
    return pytester.runpytest_subprocess(*BARE, *arguments)


def test_limits_that_hold_pass(folder):
    done = run(
        folder,
        """
@pytest.mark.max_lost(0)
@pytest.mark.no_findings(select="LS1", fail_on="error")
@pytest.mark.max_idle(1.0)
def test(lanescope_trace):
    assert len(lanescope_trace("sound.npy").slices)

@pytest.mark.max_lost(8)
def test_some(lanescope_trace):
    lanescope_trace("lossy.bin")
""",
    )
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(
        ["*lanescope: worst 4 of 4 measured values*", "holds*max_lost: 8 lost in *lossy.bin, limit 8*"]
    )


def test_a_limit_that_is_exceeded_fails_by_its_own_letter_and_names_rows_and_a_command(folder):
    done = run(folder, "@pytest.mark.max_lost(7)\ndef test(lanescope_trace):\n    lanescope_trace('lossy.bin')\n")
    done.assert_outcomes(failed=1)
    path = folder.path / "lossy.bin"
    done.stdout.fnmatch_lines(
        [
            "*test_*.py L *",
            f"max_lost: 8 lost in {path}, limit 7",
            "*Captured lanescope call*",
            "  stats row 0: aie_restart, count 2, first at offset 0x*",
            f"  lanescope check {path} --select LS002 --show LS002",
            f"EXCEEDED max_lost: 8 lost in {path}, limit 7*",
            "LIMIT *",
        ]
    )


def test_the_command_of_a_report_shows_the_rows(folder):
    done = run(folder, "@pytest.mark.max_lost(7)\ndef test(lanescope_trace):\n    lanescope_trace('lossy.bin')\n")
    (line,) = {line.strip() for line in done.outlines if line.startswith("  lanescope check")}
    command = [sys.executable, "-m", *line.split(), "--fail-on", "never"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = {row.split()[2] for row in shown.stdout.splitlines()[2:]}
    start = "  stats row "
    named = {line.split(":")[0].removeprefix(start) for line in done.outlines if line.startswith(start)}
    assert named
    assert named <= rows


@pytest.mark.parametrize(
    ("marker", "text"),
    [
        ("max_lost()", "marker max_lost is not enforced: *missing 1 required*count*"),
        ("max_lost(-1)", "marker max_lost is not enforced: invalid count -1: expected a non-negative integer"),
        ("max_lost(True)", "*invalid count True*"),
        ("max_lost(0, of='x')", "*unexpected keyword argument 'of'*"),
        ("no_findings(select='LS9')", "*unknown rule 'LS9'*"),
        ("no_findings(fail_on='never')", "*invalid fail_on 'never' (choose from notice, warning, error)*"),
        ("no_findings(select='LS1', ignore='LS1')", "*no rule*"),
        ("max_idle(50)", "*invalid share 50: expected a number from 0 to 1*"),
        ("max_idle(0.5, by='core')", "*invalid by 'core' (choose from lane, group, device, all)*"),
        ("max_regression()", "*baseline*"),
    ],
)
def test_a_marker_with_wrong_arguments_is_an_error_before_the_test_runs(folder, marker, text):
    body = f"@pytest.mark.{marker}\ndef test(lanescope_trace):\n    print('it ran')\n    lanescope_trace('sound.npy')\n"
    done = run(folder, body)
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines([text])
    done.stdout.no_fnmatch_line("*it ran*")


def test_a_marker_without_the_fixture_or_without_a_capture_is_an_error(folder):
    done = run(
        folder,
        """
@pytest.mark.max_lost(0)
def test_without_fixture():
    pass

@pytest.mark.max_lost(0)
def test_without_capture(lanescope_trace):
    pass

@pytest.mark.max_lost(0)
class TestClass:
    def test_method(self):
        pass
""",
    )
    done.assert_outcomes(failed=1, errors=2)
    done.stdout.fnmatch_lines(["*add the fixture lanescope_trace*", "*no capture was opened: max_lost*"])


def test_a_test_keeps_its_own_result(folder):
    done = run(
        folder,
        """
pytestmark = pytest.mark.max_lost(0)

def test_fails(lanescope_trace):
    lanescope_trace("lossy.bin")
    assert 1 == 2, "of its own"

def test_fails_without_capture(lanescope_trace):
    raise RuntimeError("mine")

def test_skips(lanescope_trace):
    pytest.skip("not here")

@pytest.mark.xfail(strict=True)
def test_is_known_to_exceed(lanescope_trace):
    lanescope_trace("lossy.bin")

@pytest.mark.xfail(strict=True)
def test_holds_unexpectedly(lanescope_trace):
    lanescope_trace("sound.npy")
""",
    )
    done.assert_outcomes(failed=3, skipped=1, xfailed=1)
    done.stdout.fnmatch_lines(["*AssertionError: of its own*", "*RuntimeError: mine*", "[[]XPASS(strict)[]]*"])
    done.stdout.no_fnmatch_line("max_lost: *")
    assert "L" not in next(line for line in done.outlines if line.startswith("test_")).split(".py")[1]


def test_markers_of_all_levels_hold(folder):
    done = run(
        folder,
        """
pytestmark = pytest.mark.max_lost(0)

@pytest.mark.max_lost(100)
def test(lanescope_trace):
    lanescope_trace("lossy.bin")
""",
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["holds*limit 100*"])


def test_every_capture_of_a_test_is_measured(folder):
    body = "@pytest.mark.max_lost(0)\ndef test(lanescope_trace):\n    lanescope_trace('lossy.bin')\n"
    done = run(folder, body + "    lanescope_trace('sound.npy')\n")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*worst 2 of 2*"])


def test_a_failing_case_of_unittest_keeps_its_failure(folder):
    done = run(
        folder,
        """
import unittest

class TestCase(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _opened(self, lanescope_trace):
        self.open = lanescope_trace

    @pytest.mark.max_lost(0)
    def test_lossy(self):
        self.open("lossy.bin")

    @pytest.mark.max_lost(0)
    def test_fails(self):
        self.open("lossy.bin")
        self.fail("of its own")

    @pytest.mark.max_lost(0)
    def test_sound(self):
        self.open("sound.npy")
""",
    )
    done.assert_outcomes(failed=2, passed=1)
    done.stdout.fnmatch_lines(["*AssertionError: of its own*", "max_lost: 8 lost*"])


def test_without_the_plugin_strict_markers_and_the_fixture_are_errors(folder):
    """What is not caught: a marker without the fixture, where markers are not strict."""
    body = "@pytest.mark.max_lost(0)\ndef test(lanescope_trace):\n    lanescope_trace('lossy.bin')\n"
    done = run(folder, body, "-p", "no:lanescope")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*'max_lost' not found in `markers` configuration option*"])
    folder.makeini("[pytest]")
    done = run(folder, body, "-p", "no:lanescope", "-W", "ignore::pytest.PytestUnknownMarkWarning")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*fixture 'lanescope_trace' not found*"])


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_the_example(pytester, workers):
    pytester.copy_example(str(EXAMPLE))
    done = pytester.runpytest_subprocess(*BARE, *workers, "--junitxml=report.xml")
    done.assert_outcomes(passed=2, failed=4, errors=1)
    done.stdout.fnmatch_lines_random(
        [
            "max_lost: 8 lost in */trace.bin, limit 0",
            "  lanescope check */trace.bin --select LS002 --show LS002",
            "no_findings: 1 finding in */attention.npy: LS101",
            "    rows of slices: *",
            "  lanescope check */attention.npy --show LS101",
            "max_idle: Ascend is idle for *% of its recorded time in */l2_swimlane_records.json, limit 5.0%*",
            "  lanescope gaps */l2_swimlane_records.json",
            "*lanescope: worst 5 of 6 measured values*",
            "LIMIT tests/test_exceeded.py::test_records_are_lost*",
            "FAILED tests/test_exceeded.py::test_without_a_capture*",
            "ERROR tests/test_exceeded.py::test_without_the_fixture*",
        ]
    )
    summary = [line for line in done.outlines if line.startswith(("EXCEEDED", "holds"))]
    assert [line.split()[0] for line in summary] == ["EXCEEDED"] * 3 + ["holds"] * 2
    assert "&quot;marker&quot;: &quot;max_lost&quot;" in Path("report.xml").read_text()


def test_the_number_of_listed_values_is_an_option(folder):
    body = "@pytest.mark.max_lost(9)\ndef test(lanescope_trace):\n    lanescope_trace('lossy.bin')\n"
    assert "worst" not in run(folder, body, "--lanescope-worst", "0").stdout.str()
    body += "    lanescope_trace('sound.npy')\n"
    done = run(folder, body, "--lanescope-worst", "1")
    assert [line.split(":")[0] for line in done.outlines if line.startswith("holds")] == ["holds    max_lost"]
    done.stdout.fnmatch_lines(["*worst 1 of 2*", "*8 lost*"])


@pytest.mark.skipif(bool(SANITIZED), reason="that build has no recorder")
def test_a_program_that_fails_to_record_is_an_error_of_the_test(tmp_path):
    captures = limits.Captures(tmp_path)
    with pytest.raises(lanescope.LanescopeError):
        captures.record([sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(lanescope.InputError, match="still running"):
        captures.record([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.5)
    assert not captures.opened


# --- measures -----------------------------------------------------------------------------------------------------


def opened(**tables):
    builder = TraceBuilder(TimeBase())
    device = builder.track("device 0", kind="group", role="device")
    lanes = [builder.track(name, kind="lane", role="core", parent=device) for name in ("a", "b")]
    builder.append("slices", track_id=lanes, ts=[0, 0], dur=[100, 25], name=["work", "work"])
    for coverage in tables.get("coverage", ()):
        builder.append("coverage", track_id=[lanes[coverage[0]]], ts=[coverage[1]], dur=[coverage[2]])
    return limits.Opened(builder.finish(), "")


def test_idle_time_is_a_share_of_recorded_time():
    (measured,) = limits.MaxIdle(0.5).measured(opened(coverage=[(0, 0, 100), (1, 0, 100)]))
    assert "idle for 37.5% of its recorded time" in measured.text
    assert measured.holds
    assert measured.ratio == pytest.approx(0.75)
    (measured,) = limits.MaxIdle(0.2).measured(opened(coverage=[(0, 0, 100), (1, 0, 50)]))
    assert "idle for 16.7% of its recorded time" in measured.text
    assert "(25.0% not recorded)" in measured.text
    lanes = {
        each.text.split(" is ")[0]: each.holds
        for each in limits.MaxIdle(0.2, "lane").measured(opened(coverage=[(0, 0, 100), (1, 0, 100)]))
    }
    assert lanes == {"device 0/a": True, "device 0/b": False}


def test_time_that_is_not_recorded_is_not_taken_for_work():
    trace = TraceBuilder(TimeBase()).finish()
    (measured,) = limits.MaxIdle(1.0).measured(limits.Opened(trace, ""))
    assert not measured.holds
    assert "is unknown" in measured.text


def test_a_capture_in_memory_has_no_command():
    measured, texts = limits.measure([limits.MaxIdle(0.0)], [opened(coverage=[(1, 0, 100)])])
    assert json.loads(measured)[0]["command"] == ""
    assert "pass a path to the fixture" in texts[0]


def chrome(path, durations):
    """Write a capture with a slice ``load`` of each duration in µs, and one ``other`` of 100 µs."""
    named = [("load", dur) for dur in durations] + [("other", 100)]
    events = [
        {"ph": "X", "pid": 1, "tid": 1, "ts": 1000 * at, "dur": dur, "name": name}
        for at, (name, dur) in enumerate(named)
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def regressions(baseline, capture, *arguments):
    limit = limits.MaxRegression(baseline, *arguments)
    return list(limit.measured(limits.Opened(lanescope.open(capture), str(capture))))


@pytest.mark.parametrize(
    ("metric", "change"),
    [
        ("busy", 380 / 300),
        ("total(load)", 280 / 200),
        ("count(load)", 1.0),
        ("mean(load)", 140 / 100),
        ("total(other)", 1.0),
    ],
)
def test_a_regression_is_the_change_of_the_metric(tmp_path, metric, change):
    before, after = chrome(tmp_path / "a.json", [100, 100]), chrome(tmp_path / "b.json", [130, 150])
    (measured,) = regressions(before, after, metric, change - 1 + 1e-6)
    assert measured.holds
    assert f"changed by {change - 1:+.2%}" in measured.text
    assert measured.command == f"lanescope diff {before} -- {after}"
    if change > 1:
        (measured,) = regressions(before, after, metric, change - 1 - 1e-6)
        assert not measured.holds
        (measured,) = regressions(after, before, metric, 0.0)
        assert measured.holds, "a faster one holds"


def test_a_baseline_may_be_a_folder_of_summaries(tmp_path):
    from lanescope.pipeline import comparing

    for number, dur in enumerate((100, 101, 99, 100, 102)):
        trace = lanescope.open(chrome(tmp_path / f"{number}.json", [dur, dur]))
        comparing.add_to_baseline(tmp_path / "kept", comparing.summarize(trace, f"{number}.json", ["name"]))
    (measured,) = regressions(tmp_path / "kept", chrome(tmp_path / "new.json", [120, 120]), "mean(load)", 0.1)
    assert not measured.holds
    assert "interval of the baseline" in measured.text
    (kept, *_) = sorted((tmp_path / "kept").iterdir())
    (measured,) = regressions(kept, tmp_path / "new.json", "mean(load)", 0.3)
    assert measured.holds


def test_what_cannot_be_compared_does_not_hold(tmp_path):
    before, after = chrome(tmp_path / "a.json", [100]), chrome(tmp_path / "b.json", [])
    (measured,) = regressions(before, after, "total(store)", 9.0)
    assert (measured.holds, "no slices 'store'" in measured.text) == (False, True)
    (measured,) = regressions(before, after, "total(load)", 9.0)
    assert (measured.holds, "is unknown" in measured.text) == (False, True)
    for arguments, text in (
        (("nowhere.json",), "not found"),
        ((before, "speed"), "invalid metric"),
        ((before, "p99"), "invalid metric"),
        ((before, "busy", -1), "invalid tolerance"),
    ):
        with pytest.raises(ValueError, match=text):
            limits.MaxRegression(*arguments)


def test_a_regression_fails_a_test(pytester, tmp_path):
    before, after = chrome(tmp_path / "a.json", [100, 100]), chrome(tmp_path / "b.json", [130, 150])
    marker = f"@pytest.mark.max_regression(baseline={str(before)!r}, metric='total(load)', tolerance=0.05)"
    done = run(pytester, f"{marker}\ndef test(lanescope_trace):\n    lanescope_trace({str(after)!r})\n")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            f"max_regression: total(load)* changed by +40.00% in {after}, limit +5.0%",
            "  total(load)*: 200,000 -> 280,000 ns",
            f"  lanescope diff {before} -- {after}",
        ]
    )


# --- cost ---------------------------------------------------------------------------------------------------------


def test_the_plugin_imports_nothing_but_pytest():
    code = (
        "import pytest, sys; before = set(sys.modules); import lanescope.testing.pytest_plugin;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = {"lanescope", "lanescope.lazy_names", "lanescope.testing", "lanescope.testing.pytest_plugin"}
    assert set(done.stdout.split()) == expected


def test_tests_without_markers_import_nothing_of_lanescope(pytester):
    pytester.makepyfile("""
        import sys

        def test():
            assert "lanescope.testing.pytest_plugin" in sys.modules
            assert not {"numpy", "lanescope.errors", "lanescope.trace"} & set(sys.modules)
    """)
    pytester.runpytest_subprocess(*BARE).assert_outcomes(passed=1)
