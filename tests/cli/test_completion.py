"""The completion scripts do in a real shell what they promise."""

import os
import pty
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
    assert {"LS101", "LS105"} <= complete("check", "--explain", "LS1")
    assert {"aie", "blinker"} <= complete("info", "--family", "")
    assert "cuda" in complete("sim", "")
    (tmp_path / "capture.bin").touch()
    assert complete("info", "capt") == {"capture.bin"}


#: What an interactive zsh is told: print what is offered after a tab, then go.
_ZSH = """
PS1=
fpath=({folder} $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {{
  local -a hits
  if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return $?; fi
  builtin compadd -A hits "$@"
  (( $#hits )) && print -rl -- "offer:"$^hits
  builtin compadd "$@"
}}
offers() {{ _main_complete "$@"; print -r -- "the end"; exit 0 }}
zle -C complete-word complete-word offers
bindkey '^I' complete-word
print "rea""dy"
"""


def ask_zsh(program, folder, line):
    """Type a command line into an interactive zsh and press tab; return what it offers."""
    (folder / "rc").write_text(_ZSH.format(folder=folder))
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.environ.update(TERM="vt100", HOME=str(folder))
        os.execv(program, [str(program), "-f", "-i"])
    try:
        os.write(terminal, b"source ./rc\n")
        read_until(terminal, b"ready")
        os.write(terminal, line.encode() + b"\t")
        shown = read_until(terminal, b"the end").decode()
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    return {part.strip() for part in shown.replace("\r", "\n").split("offer:")[1:] for part in part.split("\n")[:1]}


def read_until(terminal, mark):
    """Return what a terminal shows, up to a mark; the test's own limit of time ends what never comes."""
    shown = b""
    while mark not in shown:
        shown += os.read(terminal, 4096)  # raises where the other side is gone
    return shown


def ask_fish(program, folder, line):
    """Return what fish offers at the end of a command line."""
    command = 'source lanescope.fish; complete -C "$argv[1]"'
    environment = {**os.environ, "HOME": str(folder)}
    ran = subprocess.run(
        [program, "--no-config", "-c", command, line],
        check=True, capture_output=True, text=True, cwd=folder, env=environment,
    )  # fmt: skip
    assert ran.stderr == ""
    return {offer.partition("\t")[0] for offer in ran.stdout.splitlines()}


SHELLS = {"zsh": ("_lanescope", ask_zsh), "fish": ("lanescope.fish", ask_fish)}


@pytest.mark.parametrize("shell", SHELLS)
def test_zsh_and_fish_offer_verbs_options_values_and_files(require_tool, call, tmp_path, shell):
    name, asked = SHELLS[shell]
    program = require_tool(shell)
    done = call("completion", shell)
    assert (done.status, done.err) == (0, "")
    (tmp_path / name).write_text(done.out)
    (tmp_path / "capture.bin").touch()
    (tmp_path / "captures").mkdir()

    def ask(*words):
        return {offer.rstrip("/") for offer in asked(program, tmp_path, "lanescope " + " ".join(words))}

    assert ask("") >= set(cli.COMMANDS) | {"cuda-layout", "levelzero-tally"}
    assert ask("co") == {"convert", "completion", "compact"}
    assert ask("convert", "--fo") == {"--force", "--format", "--format-version"}
    assert ask("info", "--lam") == {"--lamps"}
    assert ask("convert", "--format", "parq") == {"parquet"}
    assert {"aie", "blinker"} <= ask("info", "--family", "")
    assert "cuda" in ask("sim", "")
    for words in (
        ("info", "capt"),
        ("convert", "capture.bin", "-o", "capt"),
        ("cuda-layout", "check", "mirage-mpk", "capt"),
        ("info", "--config", "capt"),
    ):
        assert ask(*words) == {"capture.bin", "captures"}, words
    assert ask("levelzero-tally", "capt") == {"captures"}


def test_beside_each_verb_is_its_line_of_help(call):
    for shell in ("zsh", "fish"):
        out = call("completion", shell).out
        assert "None" not in out
        assert "print the completion script of a shell" in out
        assert "where to put it" not in out


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
