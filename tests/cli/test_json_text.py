"""JSON documents are printed as ``json.dumps`` writes them with an indent."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from enum import IntEnum
from io import StringIO
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope.analysis.check.impact import Impact
from lanescope.cli.console import print_json


class Level(IntEnum):
    LOW = 1


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.sampled_from([Level.LOW, np.int64(3), Path("a")]),
)
KEYS = st.one_of(st.text(), st.integers(), st.booleans(), st.none(), st.floats())
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner), st.tuples(inner, inner), st.dictionaries(KEYS, inner), st.dictionaries(st.text(), inner)
    ),
)


def printed(capsys, **content):
    print_json("lanescope.test/1", **content)
    return capsys.readouterr().out


@given(st.dictionaries(st.text(min_size=1).filter(lambda name: name != "schema"), VALUES))
@settings(max_examples=some(300))
def test_any_document_is_that_of_the_standard_library(content):
    with redirect_stdout(StringIO()) as out:
        print_json("lanescope.test/1", **content)
    assert out.getvalue() == json.dumps({"schema": "lanescope.test/1", **content}, indent=2, default=str) + "\n"


@given(st.lists(VALUES), VALUES)
@settings(max_examples=some(100))
def test_what_is_iterated_is_the_list_of_it(rows, behind):
    with redirect_stdout(StringIO()) as streamed:
        print_json("lanescope.test/1", rows=iter(rows), behind=behind)
    assert (
        streamed.getvalue()
        == json.dumps({"schema": "lanescope.test/1", "rows": rows, "behind": behind}, indent=2, default=str) + "\n"
    )


def test_what_is_iterated_is_printed_before_the_next_comes():
    seen = []

    def rows(out):
        for row in range(3):
            seen.append(out.getvalue().count("row"))
            yield f"row {row}"

    with redirect_stdout(StringIO()) as out:
        print_json("lanescope.test/1", all=rows(out))
    assert seen == [0, 1, 2]


def test_named_tuples_and_empty_containers(capsys):
    content = {"impact": Impact(0.5, 1, 2, None, 3, 4, changes_order=False), "empty": [{}, [], ()], "é\n": "\u2028"}
    assert (
        printed(capsys, **content)
        == json.dumps({"schema": "lanescope.test/1", **content}, indent=2, default=str) + "\n"
    )
