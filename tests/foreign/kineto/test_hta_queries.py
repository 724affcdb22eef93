"""The queries of the page on HolisticTraceAnalysis (HTA), on a file of its tests: what HTA 0.5.0 answers there."""

import re
from pathlib import Path

import pytest

import lanescope

PAGE = Path(__file__).resolve().parents[3] / "docs/migrate/from-hta.md"
#: HTA looks at rows whose call began before the last step.
BEFORE_LAST_STEP = (
    "f.kind = 'submit' and c.ts < (select max(ts) from slices where category = 'user_annotation'"
    " and name like 'ProfilerStep%')"
)


@pytest.fixture
def answers(corpus):
    """Rows of the query that has a text, of those before the last step."""
    trace = lanescope.open(corpus / "foreign/hta/nccl_data.json.gz")
    queries = re.findall(r'trace\.sql\("""\n(.*?)"""\)', PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(queries) == 4

    def ask(text, changed=("", "")):
        (query,) = [query for query in queries if text in query]
        return trace.sql(query.replace(*changed).replace("f.kind = 'submit'", BEFORE_LAST_STEP)).rows()

    return ask


def test_lengths_of_queues(answers):
    assert {row["stream"]: (row["longest"], row["full_ns"]) for row in answers("lengths")} == {
        "stream 7": (10, 0),
        "stream 40": (1, 0),
    }


def test_delays_of_kernels_of_an_operator(answers):
    """HTA groups by the sequence of kernels, too: 322 times the first of these two, 9.003 and 38.807 us of whole us."""
    of_one = "where k.name like '%AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor%' and"
    rows = {row["operator"]: row for row in answers("kineto_ops i")}
    assert rows["aten::mul"]["kernels"] == 326
    (row,) = [row for row in answers("kineto_ops i", ("where", of_one)) if row["operator"] == "aten::mul"]
    assert row["kernels"] == 322
    assert row["to_call_ns"] == pytest.approx(9_003, abs=1_000)
    assert row["to_kernel_ns"] == pytest.approx(38_807, abs=1_000)


def test_kernels_of_annotations(answers):
    found = {row["annotation"]: row["rows"] for row in answers("arg_max")}
    assert found["DistributedDataParallel.forward"] == 900
    assert (found["Optimizer.step#SGD.step"], found["nccl:all_reduce"], found["nccl:broadcast"]) == (18, 10, 4)


def test_bandwidth(answers):
    found = {row["copy"]: row["most"] for row in answers("bandwidth")}
    assert round(found["Memcpy DtoD (Device -> Device)"], 6) == 605.200946
    assert round(found["Memset (Device)"], 6) == 1925.218225
