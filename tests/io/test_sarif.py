"""SARIF against its own schema."""

import json
import subprocess
import sys

import jsonschema
import pytest
from hypothesis import given

from effort import TRACES
from lanescope.analysis import check
from lanescope.io import sarif
from lanescope.testing import strategies


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


def test_the_command_prints_one(validate, tmp_path):
    lanescope = [sys.executable, "-m", "lanescope"]
    capture = str(tmp_path / "run.bin")
    subprocess.run([*lanescope, "sim", "aie", "--overruns", "1", "-o", capture], check=True, timeout=60)
    done = subprocess.run([*lanescope, "check", "--sarif", capture], capture_output=True, timeout=60, check=False)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    validate(document)
    assert {"LS002", "LS104"} <= {result["ruleId"] for result in document["runs"][0]["results"]}
