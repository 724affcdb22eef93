"""SARIF against its own schema."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given

from effort import TRACES
from lanescope.analysis import check
from lanescope.io import sarif
from lanescope.testing import strategies

RULE_PAGES = Path(__file__).resolve().parents[2] / "docs/reference/rules"


@pytest.fixture(scope="module")
def validate(require_tool):
    schema = json.loads(require_tool("sarif").read_text())
    kind = jsonschema.validators.validator_for(schema)
    return kind(schema).validate


@given(strategies.traces(**TRACES))
def test_any_findings_make_a_valid_document(validate, trace):
    findings = check.run(trace)
    document = json.loads(json.dumps(sarif.document(findings, check.RULES, "a folder/run.bin", version="1.2.3")))
    validate(document)
    (run,) = document["runs"]
    assert [result["ruleId"] for result in run["results"]] == [finding.code for finding in findings]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_help_links_to_the_page_of_each_rule(validate):
    of_a_package = check.Rule(
        "TOY101", "odd", "notice", "It is odd.", "Look.", lambda _: (), url="https://toy.test/101"
    )
    rules = (*check.RULES, of_a_package)
    for url in ("https://docs.test/lanescope/latest/", "https://docs.test/lanescope/latest"):
        document = sarif.document((), rules, "run.bin", version="1", docs_url=url)
        validate(document)
        told = {rule["id"]: rule for rule in document["runs"][0]["tool"]["driver"]["rules"]}
        pages = {path.stem for path in RULE_PAGES.glob("LS*.md")}
        for rule in check.RULES:
            link = f"https://docs.test/lanescope/latest/reference/rules/{rule.code}.html"
            assert rule.code in pages
            assert told[rule.code]["helpUri"] == link
            assert told[rule.code]["help"]["markdown"].endswith(f"[{rule.code}]({link})")
        assert told["TOY101"]["helpUri"] == "https://toy.test/101"
    document = sarif.document((), rules, "run.bin", version="1")
    validate(document)
    told = {rule["id"]: rule for rule in document["runs"][0]["tool"]["driver"]["rules"]}
    assert [code for code, rule in told.items() if "helpUri" in rule] == ["TOY101"]
    for rule in rules:
        assert rule.description in told[rule.code]["help"]["markdown"]
        assert rule.help in told[rule.code]["help"]["markdown"]


def test_the_command_prints_one(validate, tmp_path):
    lanescope = [sys.executable, "-m", "lanescope"]
    capture = str(tmp_path / "run.bin")
    subprocess.run([*lanescope, "sim", "aie", "--overruns", "1", "-o", capture], check=True, timeout=60)
    settings = str(tmp_path / "lanescope.toml")
    Path(settings).write_text('docs-url = "https://docs.test"\n')
    done = subprocess.run(
        [*lanescope, "check", "--sarif", "--settings", settings, capture], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 1
    document = json.loads(done.stdout)
    validate(document)
    (run,) = document["runs"]
    assert {"LS002", "LS104"} <= {result["ruleId"] for result in run["results"]}
    assert all(rule["helpUri"].startswith("https://docs.test/") for rule in run["tool"]["driver"]["rules"])
    assert all(result["properties"]["sql"].startswith("select * from ") for result in run["results"])
