"""Thresholds: each has a range, its default is in it, and the rules run with its ends."""

from typing import get_args, get_type_hints

import numpy as np
import pytest

from lanescope.analysis import check
from lanescope.cli.settings import Settings, thresholds
from lanescope.declaration import value_names
from lanescope.errors import UsageError
from plausibility import captures
from plausibility.columns import Columns
from plausibility.lies import LIES

GROUPS = get_type_hints(check.Thresholds)
DECLARED = [(group, name) for group, kind in GROUPS.items() for name in value_names(kind)]


def declared(group, name):
    """Type, lowest and highest value of a threshold."""
    type_, limits = get_args(get_type_hints(GROUPS[group], include_extras=True)[name])
    return type_, *limits


def setting(group, name, value):
    return thresholds(check.Thresholds, Settings("lanescope.toml", thresholds={group: {name: value}}))


@pytest.fixture(scope="module")
def traces():
    """A capture per family, each with another lie."""
    made = []
    for seed, family in enumerate(("aie", "cuda", "ascend", "levelzero")):
        columns = Columns.of(captures.simulated(family, seed))
        lies = (lie.make(columns, np.random.default_rng(seed)) for lie in LIES[5 * seed :])
        made.append(next(damaged for damaged in lies if damaged is not None).to_trace())
    return made


@pytest.mark.parametrize(("group", "name"), DECLARED, ids=lambda part: part)
def test_the_default_is_in_the_range_and_values_outside_are_refused(group, name):
    type_, low, high = declared(group, name)
    default = getattr(getattr(check.Thresholds(), group), name)
    assert getattr(getattr(setting(group, name, default), group), name) == default
    for wrong in (low - 1, high + 1, -(10**400), 10**400, "x", True, float("nan"), float("inf")):
        with pytest.raises(UsageError) as error:
            setting(group, name, wrong)
        noun = "an integer" if type_ is int else "a number"
        assert error.value.message.startswith(f"lanescope.toml: thresholds.{group}.{name}: invalid value {wrong!r}: ")
        assert f"expected {noun} from {low:g}" in error.value.message


@pytest.mark.parametrize("group", GROUPS)
def test_rules_run_with_the_ends_of_each_range(group, traces):
    for name in value_names(GROUPS[group]):
        _, low, high = declared(group, name)
        for end in (low, high):
            limit = setting(group, name, end)
            for trace in traces:
                check.run(trace, select=["LS5"], thresholds=limit)
