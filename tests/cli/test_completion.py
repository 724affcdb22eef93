"""The completion scripts do in a real shell what they promise."""

import subprocess

import pytest

from error_text import is_one_error
from lanescope import cli
from lanescope.families import registry

_TRY = """
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$(($# - 2))
COMPREPLY=()
_shtab_lanescope
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(call, tmp_path):
    """Return a function that asks bash what may stand at the end of a command line."""
    script = tmp_path / "lanescope.bash"
    done = call("completion", "bash")
    assert (done.status, done.err) == (0, "")
    script.write_text(done.out)

    def ask(*words):
        command = ["bash", "--norc", "-c", _TRY, "bash", str(script), "lanescope", *words]
        ran = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
        assert ran.stderr == ""
        return set(ran.stdout.split())

    return ask


def test_verbs(complete):
    assert complete("") >= set(cli.COMMANDS)
    assert complete("co") == {"convert", "completion", "compact"}
    of_families = {command.name for family in registry.builtin() for command in family.commands}
    assert of_families <= complete("")


def test_flags_of_verbs_and_of_families_from_other_packages(complete):
    assert complete("convert", "--fo") == {"--force", "--format", "--format-version"}
    assert complete("info", "--lam") == {"--lamps"}


def test_values(complete, tmp_path):
    assert complete("convert", "--format", "parq") == {"parquet"}
    assert {"aie", "blinker"} <= complete("info", "--family", "")
    assert "cuda" in complete("sim", "")
    (tmp_path / "capture.bin").touch()
    assert complete("info", "capt") == {"capture.bin"}


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_other_shells(call, shell):
    done = call("completion", shell)
    assert (done.status, done.err) == (0, "")
    assert all(verb in done.out for verb in cli.COMMANDS)


def test_an_unknown_shell_is_one_line(call):
    done = call("completion", "dos")
    assert (done.status, done.out) == (2, "")
    assert is_one_error(done.err)
    assert "bash" in done.err
