"""The workflow of the page on continuous integration runs: its steps, in order, in a shell of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

PAGE = Path(__file__).parents[2] / "docs/howto/ci.md"
(TEXT,) = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
WORKFLOW = yaml.safe_load(TEXT)
STEPS = WORKFLOW["jobs"]["trace"]["steps"]


def test_it_is_a_workflow_that_may_only_read():
    assert set(WORKFLOW) == {"name", True, "permissions", "jobs"}  # YAML 1.1 reads `on` as true
    assert WORKFLOW["permissions"] == {"contents": "read"}
    for step in STEPS:
        assert ("uses" in step) != ("run" in step)
        assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/x@v1"))


def run(command, folder, summary):
    """Run a step as the service does: ``bash -e`` with the file of the step's summary."""
    environment = os.environ | {"GITHUB_STEP_SUMMARY": str(summary)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    shell = ["bash", "-e", "-c", command]
    return subprocess.run(shell, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False)


def test_its_steps_run(tmp_path):
    names = [step["name"] for step in STEPS if "run" in step]
    assert names == ["Install", "Record", "Check", "Summary"]
    summary = tmp_path / "summary.md"
    for step in STEPS:
        if "run" not in step:
            continue
        if step["name"] == "Install":  # it is: these tests run in an environment that has lanescope
            assert step["run"] == "pip install lanescope"
            continue
        done = run(step["run"], tmp_path, summary)
        assert done.returncode == 0, done.stderr
    text = summary.read_text()
    assert text.startswith("## lanescope check: `run.npy`\n")
    assert "\n## lanescope summary: `run.npy`\n" in text
    assert "| `tile` |" in text


def test_a_capture_with_errors_fails_the_check_and_still_has_a_summary(tmp_path):
    commands = {step["name"]: step["run"] for step in STEPS if "run" in step}
    assert run("lanescope sim cuda --two-writers 1 --seed 7 -o run.npy", tmp_path, "").returncode == 0
    done = run(commands["Check"], tmp_path, tmp_path / "a.md")
    assert done.returncode == 1
    assert "::error file=run.npy" in done.stdout
    assert next(step for step in STEPS if step.get("name") == "Summary")["if"] == "always()"
    done = run(commands["Summary"], tmp_path, tmp_path / "a.md")
    assert (done.returncode, "| error |" in (tmp_path / "a.md").read_text()) == (0, True)
