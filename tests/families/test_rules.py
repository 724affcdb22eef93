"""Rules that families declare: found in whole traces and batch by batch, explained, selected, and kept apart."""

import dataclasses

import numpy as np
import pytest

from lanescope.analysis import check
from lanescope.errors import MissingDependencyError, UsageError
from lanescope.families import Family, Format, Rule, registry
from lanescope.pipeline.run import run
from lanescope.trace import TimeBase, Trace, TraceBuilder
from passes import Passes


def short(context):
    """Find slices that are short; the rows of each lane are one finding."""
    rows = np.flatnonzero(context.trace.slices.values("dur") < 3)
    yield from context.violations("slices", rows, detail=lambda mine: "below 3")


def many(context):
    """Find a trace of many slices."""
    if len(context.trace.slices) > 25:
        yield check.Violation(detail=f"{len(context.trace.slices)} slices", count=1)


def fails(context):
    raise KeyError("magic")


ROWS = Rule("TOY101", "short", "warning", "it is short", "look at it", short, scope="rows")
WHOLE = Rule("TOY102", "many", "notice", "there are many", "take fewer", many)
FAILS = Rule("TOY103", "fails", "notice", "never", "never", fails)


@pytest.fixture
def declare(monkeypatch):
    """Return a function that makes rules those of the family ``toy``."""
    known = registry.family

    def declare(*rules):
        toy = Family("toy", "a toy", (Format("toy", "json:loads", "json:loads"),), rules=rules)
        monkeypatch.setattr(registry, "family", lambda name: toy if name == "toy" else known(name))
        monkeypatch.setattr(registry, "plugin_families", lambda: (toy,))

    return declare


def batches(seed=0, count=4, each=30):
    """Yield batches of two lanes whose slices lie end to end."""
    random = np.random.default_rng(seed)
    builder = TraceBuilder(TimeBase())
    number = builder.input(capture="a", path="a", size=1, sha256="", family="toy", format="toy")
    builder.add_accounting(input_id=number, layer=0, unit="byte", unit_bytes=1, total=1, decoded=1)
    lanes = [builder.track(name, kind="lane", role="core") for name in "ab"]
    begin = 0
    for number in range(count):
        dur = random.integers(1, 9, each)
        builder.append(
            "slices", track_id=random.choice(lanes, each), ts=begin + np.cumsum(dur) - dur, dur=dur, name="work"
        )
        begin += int(dur.sum())
        yield builder.batch() if number < count - 1 else builder.finish()


def found(rows, **chosen):
    checker = check.StreamingChecker(**chosen)
    run(Passes(list(rows)), observers=[checker])
    return checker.result()


@pytest.mark.parametrize("rules", [(ROWS,), (WHOLE,), (ROWS, WHOLE)])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_batches_give_what_the_whole_trace_does(declare, rules, count):
    declare(*rules)
    streamed = found(batches(count=count))
    whole = check.run(Trace.concat(batches(count=count)))
    assert [finding.to_dict() for finding in streamed] == [finding.to_dict() for finding in whole]
    for one, other in zip(streamed, whole, strict=True):
        assert one.evidence.ids.tolist() == other.evidence.ids.tolist()
    if ROWS in rules:
        assert {finding.location.track for finding in streamed if finding.code == "TOY101"} == {"a", "b"}
        assert all(0 < finding.affected_fraction < 1 for finding in streamed if finding.code == "TOY101")


def test_codes_of_families_are_selected_and_ignored(declare):
    declare(ROWS, WHOLE)
    assert {finding.code for finding in found(batches(), select=["TOY"])} == {"TOY101", "TOY102"}
    assert {finding.code for finding in found(batches(), ignore=["TOY101"])} == {"TOY102"}
    assert not found(batches(), select=["LS1"])
    assert check.rules(["TOY10"]) == (ROWS, WHOLE)
    assert check.rules() == check.RULES
    with pytest.raises(UsageError, match="unknown rule 'TOY2'"):
        check.rules(["TOY2"])


def test_a_rule_that_fails_is_named_with_the_way_out(declare):
    declare(FAILS)
    with pytest.raises(MissingDependencyError, match=r"rule TOY103 of a device family failed: KeyError: 'magic'"):
        found(batches())
    assert found(batches(), ignore=["TOY103"]) == []


@pytest.mark.parametrize("change", [{"code": "toy101"}, {"code": "T101"}, {"code": "TOY10"}, {"scope": "lane"}])
def test_a_rule_that_no_report_could_name_is_refused(change):
    with pytest.raises(ValueError, match="rule "):
        dataclasses.replace(ROWS, **change)
