"""The text reader: cuts, comments, several lines, midnight, and bytes that mean harm."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from devices.levelzero.helpers import Script, epoch, opened, plain, simulated, stats
from lanescope.analysis import check
from lanescope.devices.levelzero.formats import fields as fields_module
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.formats.fields import BadField, Fields, parse
from lanescope.devices.levelzero.formats.text_scanner import TextReader
from lanescope.devices.levelzero.simulate.encode_text import encode
from lanescope.devices.levelzero.simulate.simulator import simulate_events
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
#: Noon of the day that text traces are given, ns since the Unix epoch.
NOON = epoch(12 * 3600 * 1_000_000_000)


# --- shape --------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 1 << 16), max_size=6))
def test_cuts_change_nothing(cuts) -> None:
    assert plain(list(read(SAMPLE, *cuts))) == plain(list(read(SAMPLE)))


def test_every_single_cut() -> None:
    whole = plain(list(read(SAMPLE[:700])))
    for cut in range(701):
        assert plain(list(read(SAMPLE[:700], cut))) == whole


@pytest.mark.parametrize("style", ["numbered", "thapi"])
def test_encoder_is_the_inverse(style) -> None:
    events, _ = simulate_events(simulated(style=style, processes=2, ops=600, lost=0.03), 5)
    rows, report = read(encode(events))
    assert rows == {name: list(table.rows()) for name, table in events.items()}
    assert (report.lost, report.padding, report.notes) == (0, 0, {})


def test_comments_and_blank_lines(tmp_path) -> None:
    content = b"# a comment\n\n" + SAMPLE + b"   \n# the end"
    trace = opened(content, tmp_path)
    row = next(trace.accounting.rows())
    assert (row["total"], row["padding"], row["lost"]) == (len(content), len(content) - len(SAMPLE), 0)


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


def test_records_that_are_not_understood_are_lost_and_named(tmp_path) -> None:
    kinds = ("other:thing", "lttng_ust_ze:zeInit", "lttng_ust_ze_profiling:event_profilin", "other:thing")
    script = Script().call("zeInit")
    for kind in kinds:
        script.record(kind, a=1)
    script.call("zeInit")
    trace = script.open(tmp_path)
    lines = [len(line) + 1 for line in script.lines]
    assert_accounted(trace, lost=sum(lines[2:6]))
    assert next(trace.accounting.rows())["padding"] == 0
    tracks = trace.tracks["name"].tolist()
    found = {
        tracks[row["track_id"]]: (row["count"], row["first_offset"])
        for row in trace.stats.rows()
        if row["name"] == "levelzero_unknown_record"
    }
    offsets = [sum(lines[:number]) for number in range(len(lines))]
    assert found == {kinds[0]: (2, offsets[2]), kinds[1]: (1, offsets[3]), kinds[2]: (1, offsets[4])}
    gap = next(trace.gaps.rows())
    assert (gap["lost_count"], gap["first_offset"], gap["dur"]) == (4, offsets[2], 5000)
    findings = [finding for finding in check.run(trace) if finding.stat == "levelzero_unknown_record"]
    assert {(finding.code, finding.location.track.split("/")[-1]) for finding in findings} == {
        ("LS002", kind) for kind in kinds
    }


def test_kinds_beyond_the_most_are_counted_together(tmp_path) -> None:
    script = Script().call("zeInit")
    for number in range(1003):
        script.record(f"other:thing{number}")
    trace = script.open(tmp_path)
    counts = trace.stats["count"].tolist()
    assert (len(counts), sum(counts)) == (1001 + ("levelzero_missing_date" in stats(trace)), 1003 + 1)
    assert "other kinds of records" in trace.tracks["name"].tolist()


# --- loss ---------------------------------------------------------------------------------------------------------


def test_lines_that_are_no_records(tmp_path) -> None:
    lines = SAMPLE.splitlines(keepends=True)
    content = b"".join([lines[0], b"what is this\n", b"\x00\xff\xfe\n", *lines[1:]])
    trace = opened(content, tmp_path)
    assert_accounted(trace, lost=len(b"what is this\n") + 4)
    gap = next(trace.gaps.rows())
    assert (gap["cause"], gap["lost_count"], gap["first_offset"], gap["dur"]) == ("bad_lines", 2, len(lines[0]), 1000)
    assert stats(trace)["levelzero_invalid_line"] == 2
    (finding,) = (found for found in check.run(trace) if found.stat == "levelzero_invalid_line")
    assert (finding.code, finding.location.track, finding.location.ts) == ("LS002", "unreadable lines", gap["ts"])


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
    assert stats(trace)["levelzero_invalid_field"] == 2
    assert_accounted(trace, lost=sum(len(line) + 1 for line in script.lines[-2:]))
    assert_consistent(trace)


def numbered() -> bytes:
    script = Script().record("lanescope_ze:device", device=1, uuid='""', name='"GPU"', timestamp_bits=64, subdevice=1)
    script.lines[-1] = script.lines[-1].replace(" }", ", kernel_timestamp_bits: 32 }")
    script.record("lanescope_ze:list", list_id=1, immediate=1, in_order=0)
    script.op(7, "MemoryCopy", how='"INLINE"', bytes=4096, dst='"device"', src='"host"', signal=0x5, waits=[0x6])
    return script.harvest(7).pair(5).text


#: What damage makes of a line: which sample, a part of a line in it, what stands there instead.
FAULTS = {
    "hour": (SAMPLE, "12:00:00.000003", "32:00:00.000003"),
    "hour_24": (SAMPLE, "12:00:00.000003", "24:00:00.000003"),
    "minute": (SAMPLE, "12:00:00.000003", "12:60:00.000003"),
    "second": (SAMPLE, "12:00:00.000003", "12:00:60.000003"),
    "digit_of_the_time": (SAMPLE, "12:00:00.000003", "12:00:0O.000003"),
    "no_fraction": (SAMPLE, "12:00:00.000003000", "12:00:00."),
    "fraction_too_long": (SAMPLE, "12:00:00.000003000", "12:00:00.0000030001"),
    "process": (SAMPLE, "000003000 - testhost - vpid: 10,", "000003000 - testhost - vpid: 2147483648,"),
    "thread": (SAMPLE, "000003000 - testhost - vpid: 10, vtid: 1", "000003000 - testhost - vpid: 10, vtid: 4294967297"),
    "host": (SAMPLE, "000003000 - testhost", "000003000 - test\x01host"),
    "quote_lost_at_the_begin": (numbered(), 'api: "ze', "api: yze"),
    "quote_lost_at_the_end": (numbered(), 'Copy", how', "Copy, how"),
    "quote_lost_at_the_very_end": (SAMPLE, '{ b" }', "{ b }"),
    "zeros_in_a_quote": (numbered(), 'AppendMemoryCopy"', 'Append\0\0\0\0\0\0\0\0\0\0"'),
    "behind_a_quote": (numbered(), '"INLINE"', '"INLINE"x'),
    "quotes_in_a_quote": (numbered(), '"INLINE"', '"INL"INE"'),
    "escape": (numbered(), '"INLINE"', '"INLIN\\E"'),
    "escape_of_no_character": (numbered(), '"INLINE"', '"\\u{110000}"'),
    "escape_of_half_a_character": (numbered(), '"INLINE"', '"\\ud800"'),
    "no_utf8": (numbered(), "list_id: 1, api", "list_id: 1,\udced\udca0\udc80 api"),
    "no_utf8_in_a_quote": (numbered(), '"INLINE"', '"\udcff"'),
    "comma_lost": (numbered(), "bytes: 4096, ", "bytes: 4096 "),
    "comma_twice": (numbered(), "bytes: 4096, ", "bytes: 4096,, "),
    "comma_at_the_end": (SAMPLE, "contextEnd: 110 }", "contextEnd: 110, }"),
    "colon_lost": (numbered(), "bytes: 4096", "bytes 4096"),
    "blank_lost": (numbered(), "bytes: 4096", "bytes:4096"),
    "name_lost": (numbered(), "bytes: 4096", ": 4096"),
    "field_twice": (numbered(), "bytes: 4096", "op_id: 4096"),
    "value_lost": (numbered(), "bytes: 4096", "bytes: "),
    "no_number": (numbered(), "bytes: 4096", "bytes: 4O96"),
    "underscore": (numbered(), "bytes: 4096", "bytes: 4_096"),
    "negative": (numbered(), "bytes: 4096", "bytes: -4096"),
    "too_big": (numbered(), "bytes: 4096", f"bytes: {1 << 64}"),
    "too_big_for_the_column": (numbered(), "run: 1,", f"run: {1 << 63},"),
    "no_number_in_a_list": (numbered(), "waits: [ 0x6 ]", "waits: [ 0x6g ]"),
    "list_never_closed": (numbered(), "waits: [ 0x6 ]", "waits: [ 0x6 "),
    "list_closed_as_structure": (numbered(), "waits: [ 0x6 ]", "waits: [ 0x6 }"),
    "structure_never_closed": (SAMPLE, "flags: 0 }", "flags: 0 "),
    "flags": (SAMPLE, "flags: 0 }", "flags: 0x }"),
    "structure_lost": (SAMPLE, "altdesc_val: { ordinal: 0, index: 0, flags: 0 }", "altdesc_val: 7"),
    "structure_never_opened": (SAMPLE, "{ groupCountX", " groupCountX"),
    "group_count": (SAMPLE, "groupCountY: 2", "groupCountY: two"),
    "behind_the_brace": (SAMPLE, "110 }", "110 } }"),
    "kind_of_memory": (numbered(), 'dst: "device"', 'dst: "devize"'),
    "kind_of_memory_is_no_text": (numbered(), 'dst: "device"', "dst: [ ]"),
    "uuid": (SAMPLE, "0000000000ab", "0000000000ag"),
    "uuid_too_long": (SAMPLE, "0000000000ab", "0000000000abc"),
    "bits": (SAMPLE, "timestampValidBits: 64", "timestampValidBits: 364"),
    "result": (SAMPLE, "phKernel_val: 112", "phKernel_val: pool"),
    "result_of_the_call": (SAMPLE, "{ zeResult: ZE_RESULT_SUCCESS }", "{ zeResult: ZE_RESULT-SUCCESS }"),
    "result_in_other_digits": (SAMPLE, "{ zeResult: ZE_RESULT_SUCCESS }", "{ zeResult: \xb2 }"),
    "state": (SAMPLE, "timestampStatus: ZE_RESULT_SUCCESS", "timestampStatus: ZE RESULT"),
    "field_missing": (SAMPLE, "globalStart: 100, ", ""),
    "field_of_ours_missing": (numbered(), "op_id: 7, run", "run"),
    "function_missing": (numbered(), 'api: "zeCommandListAppendMemoryCopy", ', ""),
    "switch": (numbered(), "immediate: 1", "immediate: yes"),
    "unused_entry": (numbered(), "MemoryCopy_entry: {  }", 'MemoryCopy_entry: { "x" }'),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_line_is_parsed_whole_or_lost(name, tmp_path) -> None:
    """A damaged line is as one that was never written, but for the account of it."""
    sample, part, damaged = FAULTS[name]
    lines = sample.splitlines(keepends=True)
    (place,) = (index for index, line in enumerate(lines) if part.encode() in line)
    good, rest = lines[place], [*lines[:place], *lines[place + 1 :]]
    lines[place] = good.replace(part.encode(), damaged.encode(errors="surrogateescape"))
    assert lines[place] != good
    rows, report = read(b"".join(lines))
    assert rows == read(b"".join(rest))[0]
    assert rows != read(sample)[0]
    offset = sum(map(len, lines[:place]))
    assert report.lost == len(lines[place])
    assert list(report.notes.values()) == [1]
    assert set(report.notes) < {"levelzero_invalid_line", "levelzero_invalid_field"}
    assert list(report.offsets.values()) == [offset]
    assert [(run.offset, run.lines) for run in report.bad_runs] == [(offset, 1)]
    trace = opened(b"".join(lines), tmp_path)
    assert_accounted(trace, lost=len(lines[place]))
    assert_consistent(trace)


@pytest.mark.parametrize("fields", ["a: 1, a: 2", 'a: "1', 'a: "\\u{110000}"', "a: { b: 1, b: 2 }"])
def test_unused_fields_are_judged_too(fields) -> None:
    lines = Script().call("zeInit").call("zeInit").lines
    content = "".join(f"{line}\n" for line in lines)
    damaged = content.replace("{  }", f"{{ {fields} }}")
    assert len(read(content.replace("{  }", "{ a: 1, b: 2 }").encode())[0]["calls"]) == 4
    rows, report = read(damaged.encode())
    assert report.notes == {"levelzero_invalid_field": 2}
    assert [row["is_exit"] for row in rows["calls"]] == [True, True]


def test_an_hour_that_is_none_moves_no_day(tmp_path) -> None:
    """It was taken for a step over midnight: all that followed was drawn a day late."""
    lines = Script().call("zeInit").call("zeDriverGet").lines
    lines[1] = lines[1].replace("12:00:00", "32:00:00")
    trace = opened("".join(f"{line}\n" for line in lines).encode(), tmp_path)
    assert stats(trace)["levelzero_invalid_line"] == 1
    assert max(trace.slices["ts"].tolist()) < 10_000


def test_a_damaged_line_makes_no_thread() -> None:
    script = Script().call("zeInit")
    script.tid = 2
    script.record("lttng_ust_ze_profiling:event_profiling", hEvent="4x")
    rows, _ = read(script.text)
    assert [row["tid"] for row in rows["threads"]] == [1]
    script.record("lttng_ust_ze_profiling:event_profiling", hEvent=4)
    rows, _ = read(script.text)
    assert [row["tid"] for row in rows["threads"]] == [1, 2]
    assert [row["thread_id"] for row in rows["pushes"]] == [1]


@pytest.mark.parametrize("name", ["a\tb", "line\nbreak", "\x00\x1b[0m", "\\n", "\u00e9\U0001f600"])
def test_names_of_any_characters_come_back(name) -> None:
    columns = {"seq": [1], "ts": [NOON], "thread_id": [0], "action": ["update"], "kernel": [1], "name": [name]}
    tables = {"processes": {"host": ["h"], "pid": [1]}, "threads": {"process_id": [0], "tid": [1]}, "kernels": columns}
    rows, report = read(encode(Events.of(tables)))
    assert (report.lost, [row["name"] for row in rows["kernels"]]) == (0, [name])


def test_names_as_the_tracer_escapes_them() -> None:
    text = rb'"\e\n\"\\ \#{x} \u0001 \u{1F600} \xC3\xA9 \xFF"'
    assert parse(b"{ n: " + text + b" }")["n"] == '\x1b\n"\\ #{x} \x01 \U0001f600 \xe9 \\xff'


def test_device_names_that_hold_brackets() -> None:
    assert parse(b"{ d: { name: Intel(R) Graphics [0x0bd6] }, l: [ a, b [0x1] ] }") == {
        "d": {"name": "Intel(R) Graphics [0x0bd6]"},
        "l": ["a", "b [0x1]"],
    }


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
    assert 0 <= report.lost + report.padding <= report.size == len(content)
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
    assert reader.report.lost + reader.report.padding <= len(content)


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
        "i": "",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("0x10", 16),
        ("007", 7),
        (str((1 << 64) - 1), (1 << 64) - 1),
        ("0xFFFFFFFFFFFFFFFF", (1 << 64) - 1),
        *(
            (text, None)
            for text in (str(1 << 64), "0x1" + 16 * "0", 21 * "0", "-1", "+1", "1.5", "1e3", "12x", "x", "")
        ),
        *((text, None) for text in ("1_000", "0x1_0", "0b1", "0o7", "0x", "0xg", "0x-1", "0x 1", "\u0661", "\xb2")),
    ],
)
def test_integers(text, value) -> None:
    if value is None:
        with pytest.raises(BadField):
            Fields({"n": text}).integer("n")
    else:
        assert Fields({"n": text}).integer("n") == value


def test_flags_by_number_and_by_name() -> None:
    fields = Fields(
        parse(b"{ a: 8, b: [ ZE_COMMAND_LIST_FLAG_IN_ORDER ], c: ZE_COMMAND_QUEUE_FLAG_IN_ORDER | ZE_OTHER, d: [] }")
    )
    assert [fields.flags(name) for name in "abcd"] == [8, 8, 2, 0]


WRITTEN = ["0", "0x1F", "ZE_A | ZE_B", "a::b", "Intel(R) [0x56a0] x", "-1", "", '""', r'"a\"b, {\\\n\x41"']
characters = st.characters(codec="utf-8", exclude_characters='"\\\x7f', min_codepoint=32)
values = st.recursive(
    st.one_of(st.sampled_from(WRITTEN), st.text(characters, max_size=8).map('"{}"'.format)),
    lambda inner: st.one_of(
        st.lists(inner.filter(bool), max_size=3).map(lambda items: f"[ {', '.join(items)} ]"),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
            lambda items: "{ " + ", ".join(f"{name}: {item}" for name, item in items.items()) + " }"
        ),
    ),
    max_leaves=8,
)


@given(st.one_of(values.map(str.encode), st.binary(max_size=200)), st.integers(0, 60), st.binary(max_size=2))
def test_any_payload_is_parsed_or_refused(payload, place, damage) -> None:
    """The quick way and the thorough one agree on all of it."""
    whole = b"{ x: " + payload[:place] + damage + payload[place + len(damage) :] + b" }"
    results = []
    for read_fields in (parse, lambda content: fields_module._nested(content.decode())):
        try:
            results.append(read_fields(whole))
        except (BadField, UnicodeDecodeError):
            results.append(None)
    assert results[0] == results[1]


@given(values)
def test_a_value_of_a_producer_is_taken(value) -> None:
    assert set(parse(f"{{ x: {value}, y: 1 }}".encode())) == {"x", "y"}
