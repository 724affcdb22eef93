"""On a terminal a fault that is everywhere does not scroll all else away; a pipe gets every finding."""

import json

from lanescope.cli.commands import check


def test_findings_of_one_rule_are_folded_on_a_terminal_only(call, monkeypatch):
    capture = "run.npy"
    assert call("sim", "cuda", "--unfinished", "40", "--seed", "7", "-o", capture).status == 0
    findings = json.loads(call("check", capture, "--json").out)["findings"]
    crowd = [finding for finding in findings if finding["code"] == "LS103"]
    assert len(crowd) > 9
    piped = call("check", capture).out
    assert sum(" unfinished" in line for line in piped.splitlines()) == len(crowd) + 1, "and the heading"
    monkeypatch.setattr(check, "is_terminal", lambda stream: True)
    done = call("check", capture)
    assert sum(" unfinished" in line for line in done.out.splitlines()) == 8 + 1
    assert f"... {len(crowd) - 8} more locations (use --all or --json)" in done.out
    assert call("check", capture, "--all").out == piped
