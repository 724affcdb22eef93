"""Numbers as every output prints them: the cases that the page of a report prints too."""

import json
from pathlib import Path

import pytest

from lanescope.view.model.numbers import KINDS, number_text

CASES = json.loads((Path(__file__).parents[1] / "number_cases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']} {case['value']} {case['unit']}")
def test_cases(case):
    assert number_text(case["value"], case["kind"], case["unit"]) == case["text"]


def test_there_are_cases_of_every_kind():
    assert {case["kind"] for case in CASES} == set(KINDS)


def test_cycles_are_never_time():
    texts = [case["text"] for case in CASES if case["unit"] == "cycles" and case["value"] is not None]
    assert all(text.endswith(("cyc", " cycles", " cycle")) for text in texts)
