"""Every help page ends with two command lines that work."""

import shlex
import shutil
from importlib import import_module

import pytest

from error_text import is_one_error
from lanescope import cli
from lanescope.families import registry


@pytest.mark.parametrize("verb", cli.COMMANDS)
def test_every_help_page_ends_with_two_examples(call, verb):
    module = import_module(f"lanescope.cli.commands.{verb.replace('-', '_')}")
    done = call(verb, "--help")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"usage: lanescope {verb} ")
    assert len(module.EXAMPLES) == 2
    assert done.out.endswith("examples:\n" + "".join(f"  {example}\n" for example in module.EXAMPLES))
    assert all(len(line) <= 120 for line in done.out.splitlines())


@pytest.mark.parametrize("verb", [verb for verb in cli.COMMANDS if verb not in ("view", "mcp")])  # servers
def test_the_examples_run(call, verb, tmp_path):
    for example in import_module(f"lanescope.cli.commands.{verb.replace('-', '_')}").EXAMPLES:
        name, *arguments = shlex.split(example)
        assert (name, arguments[0]) == ("lanescope", verb)
        if "capture.bin" in arguments and not (tmp_path / "capture.bin").exists():
            family = "kineto" if verb == "critical-path" else "aie"  # records of AIE have no causes
            assert call("sim", family, "-o", "capture.bin").status == 0
        if verb == "compact" and not (tmp_path / "fleet").exists():
            assert call("sim", "aie", "-o", "run.bin").status == 0
            assert call("ingest", "run.bin", "-o", "fleet").status == 0
        # Commands that compare take runs of any name.
        for number, argument in enumerate(arguments):
            if (
                verb in ("diff", "baseline", "report")
                and argument.endswith(".bin")
                and not (tmp_path / argument).exists()
            ):
                assert call("sim", "aie", "--seed", str(number), "-o", argument).status == 0
        done = call(*arguments)
        assert done.status in (0, 1), (example, done.err)
        shutil.rmtree(tmp_path / "lanescope-demo", ignore_errors=True)


#: Lines that the help of a verb may have: what all captures have in common fits on a screen.
MOST_LINES = 63


def all_families():
    families = (*registry.builtin(), *registry.plugin_families())
    assert any(family.name == "blinker" for family in families)
    return families


@pytest.mark.parametrize("verb", cli.COMMANDS)
def test_help_shows_what_all_captures_have_in_common(call, verb):
    done = call(verb, "--help")
    assert len(done.out.splitlines()) <= MOST_LINES
    assert not any(line.startswith("options of ") for line in done.out.splitlines())
    for flag in ("--listing", "--deps", "--clock-mhz", "--tolerance-ms", "--lamps", "--drop-aicore"):
        assert flag not in done.out


def test_every_option_of_every_family_stands_in_the_help_of_the_family(call):
    for family in all_families():
        decoding = ("info", "convert", "check", "summary", "sql", "dump", "view")
        for verb, options in (*((verb, family.options) for verb in decoding), ("sim", family.sim_options)):
            done = call(verb, "--help-family", family.name)
            assert (done.status, done.err) == (0, "")
            assert f"options of {family.name} (" in done.out or not options
            said = " ".join(done.out.split())
            for option in options:
                flag = option.flag.replace("--", "--no-", 1) if option.parse is bool and option.default else option.flag
                assert f"{flag} " in said or f"-O {option.name}=" in said
                assert option.help.split()[0] in said


def test_the_help_of_a_family_shows_its_summaries_and_exports(call):
    for family in all_families():
        for verb, declared in (("summary", family.summaries), ("convert", family.exports)):
            said = " ".join(call(verb, "--help-family", family.name).out.split())
            assert all(f"{each.name} {each.doc}" in said for each in declared)


def test_the_help_of_a_family_that_there_is_not_is_one_line(call):
    for verb, *arguments in (("info", "nope"), ("info",), ("completion", "aie")):
        done = call(verb, "--help-family", *arguments)
        assert (done.status, done.out) == (2, "")
        assert is_one_error(done.err)


def test_flags_work_though_the_help_does_not_show_them(call):
    assert call("sim", "blinker", "--changes", "20", "-o", "run.blink").status == 0
    assert call("info", "run.blink", "--lamps", "a,b").status == 0


@pytest.mark.parametrize("family", registry.BUILTIN)
def test_the_table_of_commands_is_what_the_families_declare(family):
    declared = {command.name: (family, command.help) for command in registry.family(family).commands}
    assert {name: known for name, known in cli.FAMILY_COMMANDS.items() if known[0] == family} == declared


@pytest.mark.parametrize("name", cli.FAMILY_COMMANDS)
def test_the_help_of_a_command_of_a_family_ends_with_two_examples(call, name):
    (command,) = [each for each in registry.family(cli.FAMILY_COMMANDS[name][0]).commands if each.name == name]
    done = call(name, "--help")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"usage: lanescope {name} ")
    assert len(command.examples) == 2
    assert done.out.endswith("examples:\n" + "".join(f"  {example}\n" for example in command.examples))
    assert all(argument.help.split()[0] in done.out for argument in command.arguments)
