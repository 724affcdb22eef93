"""On a terminal a fault that is everywhere does not scroll all else away; a pipe gets every finding."""

import json

from lanescope.cli import check


def test_findings_of_one_rule_are_folded_on_a_terminal_only(call, monkeypatch):
    options = ("--tasks", "3000", "--generation", "v3", "--seed", "7")
    assert call("sim", "ascend", *options, "-o", "run").status == 0
    capture = "run/l2_swimlane_records.json"
    findings = json.loads(call("check", capture, "--json").out)["findings"]
    crowd = [finding for finding in findings if finding["code"] == "LS303"]
    assert len(crowd) > 9
    piped = call("check", capture).out
    assert piped.count("LS303") == len(crowd)
    monkeypatch.setattr(check, "is_terminal", lambda stream: True)
    done = call("check", capture)
    assert done.out.count("LS303") == 8
    assert f"({len(crowd) - 8} more places: --json lists all)" in done.err
