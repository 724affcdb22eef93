"""Rules of other packages: applied to all traces, never in the way of the others, and broken ones are named."""

import json
import os

import numpy as np
import pytest

from error_text import is_one_error
from lanescope import TimeBase, TraceBuilder
from lanescope.analysis import check
from lanescope.families import Rule, Violation, plugin_rules
from lanescope.testing import check_rule

MODULE = """
import numpy as np
from lanescope.families import Rule, Violation

def long(context):
    slices = context.trace.slices
    rows = np.flatnonzero(slices.valid("dur") & (slices.values("dur") > 5_000_000))
    yield from context.violations("slices", rows, lambda mine: f"{len(mine)} above 5 ms")

def fails(context): raise KeyError("magic\\n")
def leaves(context): raise SystemExit(3)
def beyond(context): return [Violation(rows=np.array([1 << 40]))]
def elsewhere(context): return [Violation(table="nowhere")]
def untyped(context): return ["wrong"]

def rule(code, check, **more): return Rule(code, "too long", "warning", "It is long.", "Shorten it.", check, **more)

LONG = rule("HOUSE101", long, scope="rows", url="https://house.test/101")
BAD = (rule("HOUSE201", fails), rule("HOUSE202", leaves, scope="rows"), rule("HOUSE203", beyond),
       rule("HOUSE204", elsewhere, scope="rows"), rule("HOUSE205", untyped))
OURS = rule("LS999", long)
FAMILYS = rule("CUDA101", long)
TWICE = rule("TWICE101", long)
NUMBER = 3
"""


def packages(folder, points):
    """Install a package for each list of entry points, with the module above."""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "house_rules.py").write_text(MODULE)
    for name, lines in points.items():
        info = site / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text("[lanescope.rules]\n" + "\n".join(lines) + "\n")
    return str(site)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return a function that registers entry points for this process."""

    def install(**points):
        monkeypatch.syspath_prepend(packages(tmp_path, points))
        plugin_rules.plugin_rules.cache_clear()
        return plugin_rules.plugin_rules()

    yield install
    monkeypatch.undo()
    plugin_rules.plugin_rules.cache_clear()


def traces():
    """Return a violating and a sound trace."""
    made = []
    for dur in ([1, 6_000_000, 7_000_000, 2], [1, 2, 3, 4]):
        builder = TraceBuilder(TimeBase())
        lane = builder.track("core 0", kind="lane", role="core")
        builder.append("slices", track_id=lane, ts=np.arange(4) * 10_000_000, dur=dur, name="mma")
        made.append(builder.finish())
    return made


def test_no_package_registers_any_here():
    plugin_rules.plugin_rules.cache_clear()
    assert plugin_rules.plugin_rules() == ({}, ())
    assert not plugin_rules._is_any_registered()


def test_rules_of_a_package_are_applied_selected_and_ignored(installed):
    found = installed(house=["long = house_rules:LONG"])
    assert (list(found.packages), found.broken) == (["HOUSE101"], ())
    violating, sound = traces()
    (finding,) = check.run(violating)
    assert (finding.code, finding.detail, finding.evidence.sample) == ("HOUSE101", "2 above 5 ms", [1, 2])
    assert finding.affected_lane_fraction == 1 - 3 / 13_000_003
    assert not check.run(sound)
    assert not check.run(violating, ignore=["HOUSE"])
    assert not check.run(violating, select=["LS"])
    assert [one.code for one in check.run(violating, select=["HOUSE101"])] == ["HOUSE101"]
    checker = check.StreamingChecker()
    checker.add(violating)
    checker.wants_replay()
    assert [one.to_dict() for one in checker.result()] == [finding.to_dict()]


def test_a_rule_that_fails_is_a_finding_and_the_others_are_applied(installed):
    installed(house=["long = house_rules:LONG", "bad = house_rules:BAD"])
    found = {finding.code: finding for finding in check.run(traces()[0])}
    reasons = {
        "HOUSE201": "KeyError: 'magic\\n'",
        "HOUSE202": "SystemExit: 3",
        "HOUSE203": "ValueError: violation of rows 1099511627776 to 1099511627776 of 4 slices",
        "HOUSE204": "ValueError: violation of the table 'nowhere', which the trace does not have",
        "HOUSE205": "TypeError: 'wrong' is not a lanescope.families.Violation",
    }
    assert sorted(found) == ["HOUSE101", *reasons]
    for code, reason in reasons.items():
        told = f"not checked: the rule of package house failed: {reason}; update or uninstall that package"
        assert (found[code].detail, found[code].severity) == (told, "warning")
    assert found["HOUSE101"].detail == "2 above 5 ms"


def test_what_cannot_be_used_is_listed_with_the_reason(installed):
    found = installed(
        one=["twice = house_rules:TWICE", "gone = no_such_module:RULE", "number = house_rules:NUMBER"],
        two=["twice = house_rules:TWICE", "ours = house_rules:OURS", "familys = house_rules:FAMILYS"],
        three=["long = house_rules:LONG"],
    )
    assert list(found.packages) == ["HOUSE101"]
    assert dict(found.broken) == {
        "TWICE101": "more than one rule has this code, of the packages one, two",
        "gone": "package one: ModuleNotFoundError: No module named 'no_such_module'",
        "number": "package one: TypeError: 3 is not a lanescope.families.Rule",
        "ours": "package two: ValueError: rule LS999: the prefix LS is reserved for lanescope",
        "familys": "package two: ValueError: rule CUDA101: the prefix CUDA is reserved for lanescope",
    }


@pytest.fixture
def installed_shell(shell, tmp_path, plugin_path):
    def install(**points):
        site = packages(tmp_path, points)
        path = os.pathsep.join([site, *plugin_path])
        return lambda *arguments: shell(*arguments, env={"PYTHONPATH": path})

    return install


def test_the_commands_know_them_and_name_broken_ones(installed_shell):
    run = installed_shell(house=["long = house_rules:LONG", "bad = house_rules:BAD"], other=["gone = no_such:RULE"])
    assert run("sim", "blinker", "--changes", "20", "--seed", "3", "-o", "run.blink").status == 0
    assert "HOUSE101 too long (warning)" in run("check", "--explain", "HOUSE101").out
    done = run("check", "run.blink", "--json", "--select", "HOUSE1,HOUSE201")
    assert done.status == 1
    told = json.loads(done.out)
    assert told["rules"] == ["HOUSE101", "HOUSE201"]
    assert {finding["code"] for finding in told["findings"]} == {"HOUSE101", "HOUSE201"}
    reason = "package other: ModuleNotFoundError: No module named 'no_such'"
    assert told["broken_rules"] == [{"name": "gone", "reason": reason}]
    warned = f"lanescope: warning: rules 'gone' of another package are not applied: {reason}; "
    assert done.err.splitlines()[0] == f"{warned}update or uninstall that package"
    assert "Traceback" not in done.err
    sarif = json.loads(run("check", "run.blink", "--sarif", "--select", "HOUSE101").out)
    assert sarif["runs"][0]["tool"]["driver"]["rules"][0]["helpUri"] == "https://house.test/101"
    done = run("doctor", "--json")
    assert done.status == 1
    rows = {(row["what"], row["state"]): row["remark"] for row in json.loads(done.out)["rows"]}
    assert rows["rule HOUSE101", "ok"] == "too long (package house)"
    assert rows["rules gone", "broken"] == f"{reason}; update or uninstall that package"
    done = run("check", "run.blink", "--select", "HOUSE9")
    assert (done.status, done.out) == (2, "")
    assert is_one_error(done.err.split("\n", 1)[1])


def rule(check, scope="rows"):
    return Rule("HOUSE101", "too long", "warning", "It is long.", "Shorten it.", check, scope=scope)


def longest(context):
    slices = context.trace.slices
    rows = np.flatnonzero(slices.values("dur") > 5_000_000)
    yield from context.violations("slices", rows[-1:])


def test_the_helper_accepts_sound_rules_and_names_what_is_wrong():
    violating, sound = traces()

    def long(context):
        rows = np.flatnonzero(context.trace.slices.values("dur") > 5_000_000)
        yield from context.violations("slices", rows)

    check_rule(rule(long), violating=[violating], sound=[sound])
    with pytest.raises(AssertionError, match="finds nothing in a violating trace"):
        check_rule(rule(long), violating=[sound])
    with pytest.raises(AssertionError, match="in a sound trace"):
        check_rule(rule(long), sound=[violating])
    check_rule(rule(longest, "whole"), violating=[violating], sound=[sound])
    with pytest.raises(AssertionError, match=r"finds \[\('slices', 1\)\] only in a part"):
        check_rule(rule(longest), violating=[violating])
    with pytest.raises(ValueError, match="violation of rows 9 to 9 of 4 slices"):
        check_rule(rule(lambda context: [Violation(rows=np.array([9]))]), violating=[violating])
    with pytest.raises(AssertionError, match="lacks help"):
        check_rule(Rule("HOUSE101", "too long", "warning", "It is long.", "", long))
