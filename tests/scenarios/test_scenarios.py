"""Each file of these folders is a capture and what every command answers about it."""

import os
import re
import tomllib
from pathlib import Path

import pytest

from error_text import is_one_error
from scenarios import answers, scenario

ALL = scenario.all_scenarios()


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in ALL])
def test_scenario(one, call, tmp_path, install):
    for name, module in one.plugins.items():
        install(name, module)
    corpus = os.environ.get("LANESCOPE_CORPUS")
    path = scenario.make(one, tmp_path, Path(corpus) if corpus else None, call)
    wrong, found = [], None
    if "refused" in one.expect:
        wrong += refusals(one, path, call)
    elif one.expect:
        found = answers.ask(one, path, call)
        wrong += answers.differences(one.expect, found)
    for run in one.runs:
        wrong += ending(run, call)
    judge(one, wrong, found)


def judge(one, wrong, found):
    """Fail unless nothing is wrong, or just what a known defect makes wrong."""
    if one.known_defect:
        other = [each for each in wrong if not re.search(one.defect_shows, each)]
        if wrong and not other:
            pytest.xfail(one.known_defect)
        wrong = other or ["the known defect is gone: take known_defect and defect_shows out"]
    if wrong:
        told = f"\nthe answers, in the words of the file:\n\n{answers.as_toml(found)}\n" if found else ""
        pytest.fail(f"{one.path.name}: {one.title}\n" + "\n".join(wrong) + told, pytrace=False)


def refusals(one, path, call):
    """Return which commands do not refuse the capture, or say more or less than one line about it."""
    for name, words in answers.READERS.items():
        done = call(*answers.command(one, words, path))
        if (
            done.status != one.expect.get("exit", 3)
            or not is_one_error(done.err)
            or not re.search(one.expect["refused"], done.err)
        ):
            yield f"{name} ends with {done.status} and writes {done.err!r}, not {one.expect['refused']!r}"
        if done.out or Path(words[-1]).exists():
            yield f"{name} writes although it refuses: {done.out[:200]!r}"


def ending(run, call):
    """Return how a command line ends otherwise than the file expects."""
    done = call(*run["args"], stdin=run.get("stdin", os.devnull))
    if done.status != run.get("exit", 0):
        yield f"{run['args']} ends with {done.status}, not {run.get('exit', 0)}: {done.err}"
    for stream in ("out", "err"):
        wanted = run.get(stream, [])
        for pattern in [wanted] if isinstance(wanted, str) else wanted:
            if not re.search(pattern, getattr(done, stream), re.MULTILINE):
                yield f"{run['args']}: {pattern!r} is not in {stream}: {getattr(done, stream)[:2000]}"
    if "Traceback" in done.err:
        yield f"{run['args']} writes a traceback: {done.err}"


def test_titles_are_told_apart():
    titles = [one.title for one in ALL]
    assert len(set(titles)) == len(titles)


def test_data_files_are_used_and_small():
    named = set()
    for one in ALL:
        for capture in one.captures:
            named.add(capture.get("data"))
            named |= {value.removeprefix("data:") for value in capture.get("files", {}).values()}
    files = {path.relative_to(scenario.TESTS).as_posix(): path for path in scenario.DATA.rglob("*") if path.is_file()}
    assert not set(files) - named, "no scenario uses these"
    assert all(path.stat().st_size <= 32_000 for path in files.values())


# --- what is met ------------------------------------------------------------------------------------------------


def not_yet():
    lists = tomllib.loads((scenario.HERE / "not_yet.toml").read_text())
    return set(lists["rules"]), set(lists["stats"])


def test_every_rule_is_met_or_listed():
    from lanescope.analysis import check
    from lanescope.families import registry

    met = {finding["code"] for one in ALL for finding in one.expect.get("findings", []) if "code" in finding}
    declared = {rule.code for rule in check.rules(families=registry.BUILTIN)}
    assert met <= declared
    assert declared - met == not_yet()[0]


def test_every_stat_of_a_loss_is_met_or_listed():
    from lanescope.families import registry
    from lanescope.trace.stats import CORE_STATS

    declared = {spec.name: spec.severity for spec in CORE_STATS}
    declared |= {spec.name: spec.severity for family in registry.builtin() for spec in family.stats}
    met = {name for one in ALL for name in one.expect.get("stats", {})}
    assert met <= declared.keys()
    losses = {name for name, severity in declared.items() if severity in answers.LOSSES}
    assert losses - met == not_yet()[1]
