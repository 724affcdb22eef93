"""Files that others read: workflows call what exists and may do little, forms and citations parse."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import lanescope

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))


def load(path):
    return yaml.safe_load(path.read_text())


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_make_targets_and_ci_steps_only(path):
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [step["run"] for step in steps(load(path)) if "run" in step]
    assert commands
    for command in commands:
        program, *arguments = command.split()
        if program == "make":
            assert {word for word in arguments if "=" not in word} <= targets
        else:
            assert (ROOT / program).stat().st_mode & 0o100
            assert program.startswith(".ci/")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_pins_its_actions(path):
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in workflow["jobs"].values())
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert all(re.fullmatch(r"actions/[a-z-]+@v[0-9]+", action) for action in used)


def test_the_tested_pythons_begin_with_the_one_that_is_required():
    tested = load(ROOT / ".github/workflows/tests.yml")["jobs"]["quick"]["strategy"]["matrix"]["python"]
    assert f'requires-python = ">={tested[0]}"' in (ROOT / "pyproject.toml").read_text()
    assert tested == [f"3.{minor}" for minor in range(11, 11 + len(tested))]


def test_a_wheel_is_tried_on_each_tested_python():
    tested = load(ROOT / ".github/workflows/tests.yml")["jobs"]["quick"]["strategy"]["matrix"]["python"]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert {f"cp{version.replace('.', '')}-*" for version in tested} <= set(settings["build"])
    assert "lanescope doctor" in settings["test-command"]
    for machine in settings["linux"]["archs"]:
        assert settings["linux"][f"manylinux-{machine}-image"] == "manylinux_2_28"
        assert settings["linux"][f"musllinux-{machine}-image"] == "musllinux_1_2"


def test_the_core_keeps_to_the_stable_abi():
    """Only wheels for 3.12 and later are built with the limited headers; the usual build would take anything."""
    sources = [path for path in (ROOT / "native/bind").rglob("*.[ch]pp") if path.is_file()]
    assert sources
    # All that is private, and what looks like a function but reads the insides of an object.
    unstable = re.compile(r"\b(_Py\w+|Py(Bytes|ByteArray|List|Tuple)_(AS_STRING|GET_SIZE|GET_ITEM|SET_ITEM))\b")
    used = [f"{path.name}: {found[0]}" for path in sources for found in unstable.finditer(path.read_text())]
    assert not used


@pytest.mark.parametrize("path", [path for path in FORMS if path.name != "config.yml"], ids=lambda path: path.name)
def test_a_form_has_what_forms_need(path):
    form = load(path)
    assert form.keys() == {"name", "description", "labels", "body"}
    ids = [field["id"] for field in form["body"]]
    assert len(set(ids)) == len(ids)
    for field in form["body"]:
        assert field["type"] in ("textarea", "input", "dropdown", "checkboxes")
        assert field["attributes"]["label"]


def test_commands_that_forms_ask_for_exist(capsys):
    from lanescope.cli import main

    text = "".join(path.read_text() for path in FORMS)
    asked = re.findall(r"`lanescope ([a-z]+)", text)
    assert set(asked) == {"info", "dump", "doctor"}
    for command in asked:
        assert main([command, "--help"]) == 0
        assert f"usage: lanescope {command} " in capsys.readouterr().out


def test_hooks_use_the_tools_of_the_environment():
    config = load(ROOT / ".pre-commit-config.yaml")
    local = [hook for repository in config["repos"] if repository["repo"] == "local" for hook in repository["hooks"]]
    lint = (ROOT / "Makefile").read_text()
    assert local
    for hook in local:
        program, command = re.match(r"\.venv/bin/([a-z-]+) ?([a-z]*)", hook["entry"]).groups()
        assert f"$(BIN)/{program} {command}".strip() in lint
    re.compile(config["exclude"])


def test_the_citation_names_this_version():
    citation = load(ROOT / "CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= citation.keys()
    assert citation["version"] == lanescope.__version__
    assert f'license = "{citation["license"]}"' in (ROOT / "pyproject.toml").read_text()


def test_the_pull_request_template_is_three_lines():
    assert len((ROOT / ".github/pull_request_template.md").read_text().splitlines()) == 3
