"""The text reader: cuts, comments, several lines, midnight, and bytes that mean harm."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from devices.levelzero.helpers import Script, opened, simulated, stats
from lanescope.analysis import check
from lanescope.devices.levelzero.encode import encode
from lanescope.devices.levelzero.fields import Fields, parse
from lanescope.devices.levelzero.simulate import simulate_events
from lanescope.devices.levelzero.text import TextReader
from lanescope.testing import assert_accounted, assert_consistent


def read(content: bytes, *cuts: int):
    reader = TextReader()
    edges = [0, *sorted(cut % (len(content) + 1) for cut in cuts), len(content)]
    for begin, end in pairwise(edges):
        reader.feed(memoryview(content)[begin:end])
    events = reader.finish()
    return {name: list(table.rows()) for name, table in events.items()}, reader.report


def sample() -> bytes:
    script = Script().device().immediate(1).pair(5)
    script.call("zeKernelCreate", desc_val={"pKernelName": '"a, { b"'}, out_phKernel_val=0x70)
    counts = {"groupCountX": 1, "groupCountY": 2, "groupCountZ": 3}
    script.append("LaunchKernel", 0x4, hKernel=0x70, pLaunchFuncArgs_val=counts).result(0x4)
    return script.text


SAMPLE = sample()


# --- shape --------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 1 << 16), max_size=6))
def test_cuts_change_nothing(cuts) -> None:
    assert read(SAMPLE, *cuts) == read(SAMPLE)


def test_every_single_cut() -> None:
    whole = read(SAMPLE[:700])
    for cut in range(701):
        assert read(SAMPLE[:700], cut) == whole


@pytest.mark.parametrize("style", ["numbered", "thapi"])
def test_encoder_is_the_inverse(style) -> None:
    events, _ = simulate_events(simulated(style=style, processes=2, ops=600, lost=0.03), 5)
    rows, report = read(encode(events))
    assert rows == {name: list(table.rows()) for name, table in events.items()}
    assert (report.lost, report.filler, report.notes) == (0, 0, {})


def test_comments_and_blank_lines(tmp_path) -> None:
    content = b"# a comment\n\n" + SAMPLE + b"   \n# the end"
    trace = opened(content, tmp_path)
    row = next(trace.accounting.rows())
    assert (row["total"], row["filler"], row["lost"]) == (len(content), len(content) - len(SAMPLE), 0)


def test_windows_line_ends() -> None:
    assert read(SAMPLE.replace(b"\n", b"\r\n"))[0] == read(SAMPLE)[0]


def test_records_over_several_lines() -> None:
    """As iprof prints them today: a brace, a field a line, a brace."""
    lines = []
    for line in SAMPLE.decode().splitlines():
        head, payload = line.split(": { ", 1)
        fields = payload.removesuffix(" }").replace(", ", ",\n  ")
        lines.append(f"{head}: {{\n  {fields}\n}}\n")
    rows, report = read("".join(lines).encode())
    assert rows == read(SAMPLE)[0]
    assert report.lost == 0


def test_midnight(tmp_path) -> None:
    script = Script(now=86_400_000_000_000 - 500).call("zeInit")
    script.lines[1] = script.lines[1].replace("24:00:00", "00:00:00")
    assert script.open(tmp_path).slices["dur"].tolist() == [1000]


def test_backwards_is_noted_and_changes_no_order(tmp_path) -> None:
    script = Script().call("zeInit")
    script.now -= 5000
    script.call("zeDriverGet")
    trace = script.open(tmp_path)
    assert stats(trace)["levelzero_time_backwards"] == 1
    assert [row["name"] for row in trace.slices.rows()] == ["zeInit", "zeDriverGet"]


def test_other_providers_are_filler(tmp_path) -> None:
    script = Script().call("zeInit").record("lttng_ust_cuda:cuInit_entry", Flags=0)
    trace = script.open(tmp_path)
    assert stats(trace)["levelzero_foreign_record"] == 1
    assert next(trace.accounting.rows())["filler"] == len(script.lines[-1]) + 1


# --- loss ---------------------------------------------------------------------------------------------------------


def test_lines_that_are_no_records(tmp_path) -> None:
    lines = SAMPLE.splitlines(keepends=True)
    content = b"".join([lines[0], b"what is this\n", b"\x00\xff\xfe\n", *lines[1:]])
    trace = opened(content, tmp_path)
    assert_accounted(trace, lost=len(b"what is this\n") + 4)
    gap = next(trace.gaps.rows())
    assert (gap["cause"], gap["lost_count"], gap["first_offset"], gap["dur"]) == ("bad_lines", 2, len(lines[0]), 1000)
    assert stats(trace)["levelzero_bad_line"] == 2
    assert "LS002" in [finding.code for finding in check.run(trace)]


@pytest.mark.parametrize("cut", [10, 100, 1])
def test_truncated(cut, tmp_path) -> None:
    trace = opened(SAMPLE[:-cut], tmp_path)
    if cut == 1:
        assert "truncated" not in stats(trace)
    else:
        assert stats(trace)["truncated"] == 1
    assert_accounted(trace)


def test_missing_and_impossible_fields(tmp_path) -> None:
    script = Script().append("Barrier", 0x4)
    script.record("lttng_ust_ze_profiling:event_profiling_results", hEvent="0x4", globalStart="minus one")
    script.record("lttng_ust_ze_profiling:event_profiling_results", hEvent=hex(1 << 64), globalStart=-5)
    trace = script.open(tmp_path)
    assert stats(trace)["levelzero_bad_field"] >= 5
    assert_consistent(trace)


hostile = st.lists(
    st.one_of(
        st.sampled_from(SAMPLE.splitlines(keepends=True)),
        st.binary(max_size=40),
        st.tuples(st.sampled_from(SAMPLE.splitlines(keepends=True)), st.integers(0, 300), st.binary(max_size=3)).map(
            lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + len(parts[2]) :]
        ),
    ),
    max_size=30,
).map(b"".join)


@given(hostile, st.integers(0, 1000))
@example(b"12:00:00.0 - h - vpid: 1, vtid: 1 - lttng_ust_ze:zeInit_exit: {}", 3)
def test_any_bytes_are_accounted_for(tmp_path_factory, content, cut) -> None:
    assume(content and not content.startswith(b"\x1f\x8b"))  # that is gzip, which is another matter
    rows, report = read(content, cut)
    assert rows == read(content)[0]
    assert 0 <= report.lost + report.filler <= report.size == len(content)
    trace = opened(content, tmp_path_factory.mktemp("hostile"))
    assert_accounted(trace)
    assert_consistent(trace)


@pytest.mark.parametrize(
    "content",
    [
        b"x" * (3 << 20),
        b"\n" * (1 << 18),
        b"12:00:00.000000000 - h - vpid: 1, vtid: 1 - lttng_ust_ze:zeKernelCreate_entry: { "
        + b'"\\' * (1 << 18)
        + b" }",
        b"12:00:00.000000000 - h - vpid: 1, vtid: 1 - lttng_ust_ze:zeKernelCreate_entry: " + b"{" * (1 << 18) + b"}",
        b"12:00:00.000000000 - h - vpid: 1, vtid: 1 - lttng_ust_ze:zeKernelCreate_entry: {\n" + b"a: 1,\n" * (1 << 17),
        b"12:00:00.000000000 - h - vpid: 1, vtid: 1 - lttng_ust_ze:zeMemFree_entry: { ptr: 1 }\n" * (1 << 14),
    ],
    ids=["no_newline", "newlines", "quotes", "braces", "never_closed", "entries_only"],
)
@pytest.mark.timeout(120)
def test_hostile_text_comes_to_an_end(content) -> None:
    """Nothing is scanned again and again: if it were, these would take hours."""
    reader = TextReader()
    for begin in range(0, len(content), 1 << 16):
        reader.feed(content[begin : begin + (1 << 16)])
    reader.finish()
    assert reader.report.size == len(content)
    assert reader.report.lost + reader.report.filler <= len(content)


# --- fields -------------------------------------------------------------------------------------------------------


def test_fields_of_all_kinds() -> None:
    fields = parse(
        b'{ a: 1, b: 0x1F, c: "x, y: \\"z\\"", d: { e: [ 1, 2 ], f: ZE_A | ZE_B }, g: [ { h: 1 }, { h: 2 } ], i: }'
    )
    assert fields == {
        "a": "1",
        "b": "0x1F",
        "c": 'x, y: "z"',
        "d": {"e": ["1", "2"], "f": "ZE_A | ZE_B"},
        "g": [{"h": "1"}, {"h": "2"}],
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("0x10", 16),
        ("007", 7),
        (str((1 << 64) - 1), (1 << 64) - 1),
        (str(1 << 64), None),
        ("-1", None),
        ("x", None),
        ("", None),
    ],
)
def test_integers(text, value) -> None:
    complaints = []
    assert Fields({"n": text}, lambda: complaints.append(1)).integer("n") == value
    assert bool(complaints) == (value is None)


def test_flags_by_number_and_by_name() -> None:
    fields = Fields(
        parse(b"{ a: 8, b: [ ZE_COMMAND_LIST_FLAG_IN_ORDER ], c: ZE_COMMAND_QUEUE_FLAG_IN_ORDER | ZE_OTHER, d: [] }")
    )
    assert [fields.flags(name) for name in "abcd"] == [8, 8, 2, 0]


@given(st.binary(max_size=200))
def test_parse_takes_anything(payload) -> None:
    assert isinstance(parse(b"{" + payload + b"}"), dict)
