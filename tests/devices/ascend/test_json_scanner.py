"""The native scanner against the slow reader, and against input that is not JSON."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ascend import reference
from devices.ascend.helpers import GOLDEN, graph, read, read_cut, records, text
from effort import cuts, some
from lanescope._native import core
from lanescope.devices.ascend.formats.files import read_deps
from lanescope.devices.ascend.formats.layout import (
    AICORE,
    AICPU,
    DEPS_EDGES,
    DEPS_TASKS,
    PHASES,
    RECORDS,
    SUBMITS,
    UPLOADS,
    JsonField,
    Layout,
)
from lanescope.errors import InputError, InternalError

INTEGERS = st.one_of(
    st.integers(0, 100),
    st.sampled_from([0, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62 - 1, 2**62, 2**63, 2**64 - 1, 2**64, -(2**63)]),
    st.integers(-(2**65), 2**65),
)
LEAVES = st.one_of(st.none(), st.booleans(), INTEGERS, st.floats(allow_nan=False, allow_infinity=False), st.text())
ANYTHING = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=6
)


def cells(cell):
    """Values that a cell takes, and some that it does not."""
    one = {
        "number": INTEGERS,
        "integer": INTEGERS,
        "token": INTEGERS | INTEGERS.map(str) | st.sampled_from(["", "-", "01", "1.0", " 1", "1 "]),
        "boolean": st.booleans(),
        "text": st.text() | st.sampled_from(["complete", "dispatch", "resolve"]),
        "words": st.lists(st.sampled_from([*cell.words, "x"]), max_size=4),
    }[cell.kind]
    if cell.count > 1:
        one = st.lists(st.integers(-5, 5), min_size=cell.count, max_size=cell.count) | st.lists(one, max_size=4)
    return one if cell.kind in ("text", "boolean", "words") else one | ANYTHING


def elements(layout):
    """Elements of a layout, and others."""
    if layout.is_object:
        known = st.fixed_dictionaries({}, optional={cell.name: cells(cell) for cell in layout.cells})
        mostly = st.fixed_dictionaries(
            {cell.name: st.integers(0, 9) for cell in layout.cells if cell.is_required},
            optional={cell.name: cells(cell) for cell in layout.cells if not cell.is_required},
        )
        other = st.dictionaries(st.text(alphabet="abcxyz"), ANYTHING, max_size=2)
        shuffled = st.tuples(known | mostly, other).flatmap(
            lambda pair: st.permutations([*pair[0].items(), *pair[1].items()])
        )
        return shuffled.map(dict) | ANYTHING
    small = st.lists(st.integers(0, 65535), min_size=3, max_size=7)
    return small | st.lists(INTEGERS, max_size=7) | ANYTHING


@st.composite
def repeating(draw, layout):
    """Objects as writers write them: of few kinds, one like the other but for a value or a key at the end."""
    required = [cell.name for cell in layout.cells if cell.is_required]
    optional = [cell.name for cell in layout.cells if not cell.is_required]
    others = st.lists(st.sampled_from([*optional, "a", "b", "c", "d"]), max_size=6, unique=True)
    values = st.sampled_from([0, 7, "x", [1, 2], {"a": 1}, None])
    kinds = draw(st.lists(others, min_size=1, max_size=3))
    items = []
    for kind, changed, value, more in draw(
        st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 9), values, st.booleans()), max_size=8)
    ):
        item = {**dict.fromkeys(required, 1), **dict.fromkeys(kind, 7)}
        item[list(item)[changed % len(item)]] = value
        items.append(item | ({"e": value} if more else {}))
    return items


def spaced(value, gap):
    """Write JSON with ``gap`` wherever white space is allowed."""
    if type(value) is dict:
        inner = f"{gap},{gap}".join(f"{json.dumps(k)}{gap}:{gap}{spaced(v, gap)}" for k, v in value.items())
        return f"{{{gap}{inner}{gap}}}"
    if type(value) is list:
        return f"[{gap}{f'{gap},{gap}'.join(spaced(v, gap) for v in value)}{gap}]"
    return json.dumps(value)


def assert_same(section, expected, layout):
    good, bad = expected
    assert len(section) == len(good)
    assert section.tally.bad_count == bad
    assert section.group.tolist() == [group for group, _ in good]
    for cell in layout.cells:
        there = [cell.name in values for _, values in good]
        assert section.has(cell.name).tolist() == there
        blank = [0] * cell.count if cell.count > 1 else 0
        found = section[cell.name].tolist()
        if cell.kind == "text":
            found = [section.texts[code] if known else 0 for code, known in zip(found, there, strict=True)]
        wanted = [values.get(cell.name, blank) for _, values in good]
        assert found == wanted


@pytest.mark.parametrize("layout", RECORDS, ids=lambda layout: layout.name)
@given(data=st.data())
@settings(max_examples=some(150))
def test_lists_read_as_the_slow_reader_reads_them(layout, data):
    items = st.lists(elements(layout), max_size=8)
    if layout.is_object:
        items |= repeating(layout)
    if layout.depth == 2:
        items = st.lists(items | ANYTHING, max_size=4)
    items = data.draw(items)
    gap = data.draw(st.sampled_from(["", " ", "\n\t ", "\r\n"]))
    content = spaced(records(**{layout.name: items} if layout.name not in ("aicore_tasks", "aicpu_tasks") else {}), gap)
    if layout in (AICORE, AICPU):
        content = spaced({**records(), layout.name: items}, gap)
    found = read(content.encode())
    assert_same(found[layout], reference.elements(items, layout), layout)
    tally = found[layout].tally
    spans = sum((found[layout].end - found[layout].begin).tolist())
    assert spans == tally.good_bytes
    assert (tally.bad_first is None) == (tally.bad_count == 0)
    assert tally.unknown_keys == reference.unknown_keys(items, layout)
    assert (tally.unknown_first is None) == (tally.unknown_keys == 0)


@pytest.mark.parametrize("layout", [DEPS_TASKS, DEPS_EDGES], ids=lambda layout: layout.name)
@given(data=st.data())
@settings(max_examples=some(150))
def test_graphs_read_as_the_slow_reader_reads_them(layout, data):
    items = data.draw(st.lists(elements(layout), max_size=8) | repeating(layout))
    found = read_deps(text(json.dumps({**graph(), layout.name: items}).encode()), "deps.json")
    section = found.tasks if layout is DEPS_TASKS else found.edges
    assert_same(section, reference.elements(items, layout), layout)
    assert section.tally.unknown_keys == reference.unknown_keys(items, layout)


def test_keys_that_no_writer_has_are_counted():
    phase = {"start_cycles": 1, "end_cycles": 2}
    rows = [phase | {"more": [1]}, {"other": {"more": 1}} | phase, {"lost": 1}, phase | {"more": None, "": "x"}, phase]
    content = json.dumps(records(aicpu_scheduler_phases=[rows, [phase, phase | {"more": 3}]])).encode()
    tally = read(content)[PHASES].tally
    assert (tally.bad_count, tally.unknown_keys) == (1, 5)
    assert content[tally.unknown_first :].startswith(b'more": [1]')


@pytest.mark.parametrize("count", [1, 40, 47, 48, 49, 64, 65, 200])
def test_any_number_of_unknown_keys_is_counted(count):
    phase = {"start_cycles": 1, "end_cycles": 2}
    keys = [f"key_{place}" for place in range(count)]
    together = phase | dict.fromkeys(keys, 0)
    apart = [phase | {key: 0} for key in keys]
    tally = read(records(aicpu_scheduler_phases=[[together, *apart, together]]))[PHASES].tally
    assert tally.unknown_keys == 3 * count


def test_where_an_element_stands():
    content = (GOLDEN / "v3_spec_dummy" / "l2_swimlane_records.json").read_bytes()
    found = read(content)
    for layout in (AICORE, AICPU, PHASES, SUBMITS):
        section = found[layout]
        assert len(section)
        for begin, end, group in zip(section.begin, section.end, section.group, strict=True):
            item = json.loads(content[begin:end])
            assert reference.element(item, layout) is not None
            assert item in (json.loads(content)[layout.name][group] if layout.depth == 2 else [item])


def test_long_lists_come_in_pieces_and_keep_their_order():
    rows = [[row % 7, row, row, 1000 + row, 2000 + row, 3] for row in range(30_000)]
    phases = [
        [{"start_cycles": 10 * row + lane, "end_cycles": 10 * row + 5} for row in range(9000)] for lane in range(3)
    ]
    found = read(records(rows, aicpu_scheduler_phases=[*phases, []]))
    assert found[AICORE]["start_cycles"].tolist() == [1000 + row for row in range(30_000)]
    assert found[AICORE]["task_token_raw"].tolist() == list(range(30_000))
    assert found[PHASES].groups == 4
    assert found[PHASES].group.tolist() == [0] * 9000 + [1] * 9000 + [2] * 9000
    assert found[PHASES]["start_cycles"][9000] == 1


def test_more_kinds_than_the_table_has_room_for():
    kinds = [f'kind {number}\n\u00e9"' for number in range(400)]
    phases = [{"kind": kind, "start_cycles": 1, "end_cycles": 2} for kind in (*kinds, *kinds)]
    section = read(records(aicpu_scheduler_phases=[phases]))[PHASES]
    assert [section.texts[code] for code in section["kind"]] == [*kinds, *kinds]


def test_kinds_in_broken_utf_8_are_kept():
    content = json.dumps(
        records(aicpu_scheduler_phases=[[{"kind": "XX", "start_cycles": 1, "end_cycles": 2}]])
    ).encode()
    section = read(content.replace(b"XX", b"a\xff\\n"))[PHASES]
    assert section.texts == ("a\\udcff\n",)


def test_nothing_is_left_over_between_rows():
    # What a row leaves out must not show the value of the row before.
    phases = [{"start_cycles": 1, "end_cycles": 2, "pop_hit": 9, "task_id": 7}, {"start_cycles": 3, "end_cycles": 4}]
    section = read(records(aicpu_scheduler_phases=[phases]))[PHASES]
    assert section["pop_hit"].tolist() == [9, 0]
    assert section["task_id"].tolist() == [7, 0]


@pytest.mark.parametrize("case", ["v2_chain/l2", "v3_cold_first/chip", "v3_spec_dummy/l2", "v3_spec_dummy/chip"])
def test_every_truncated_records_file_is_read_as_far_as_it_goes(case):
    content = (GOLDEN / f"{case}_swimlane_records.json").read_bytes().rstrip()
    whole = read(content)
    found = [read_cut(content, size, whole) for size in (0, *cuts(len(content), 5), len(content) - 1)]
    assert found[0] is None
    assert found[-1] is not None  # nothing but the last bracket is missing


def test_a_list_that_is_cut_off_ends_with_its_last_whole_element():
    # Two elements that are no rows stand among them; the cut goes through the next one, and through the list after it.
    rows = b'{"l2_swimlane_level": 2, "metadata": {"clock_freq_hz": 50000000}, "aicore_tasks": ['
    rows += b'[0, 1, 1, 10, 20], "x", [0, 2, 2, 30, 40], {"y": 1}, '
    for torn in (b"[0, 3, 3, 50, 6", b"[0, 3, 3, 50, [", b'"', b"tru", b""):
        found = read(rows + torn)
        section = found[AICORE]
        assert section["reg_task_id"].tolist() == [1, 2]
        assert (section.tally.bad_count, section.tally.bad_bytes) == (2, 11)
        assert found.cut == len(rows)
        assert found.partial == {layout.name for layout in RECORDS}
    whole = read(rows[:-2] + b'], "aicpu_tasks": [[0, 1, 5, 25], [0, 2,')
    assert (len(whole[AICORE]), len(whole[AICPU])) == (2, 1)
    assert whole.partial == {layout.name for layout in RECORDS} - {AICORE.name}


def test_every_truncated_graph_is_refused():
    content = (GOLDEN / "v3_spec_dummy" / "deps.json").read_bytes().rstrip()
    for size in cuts(len(content)):
        with pytest.raises(InputError, match="file is truncated"):
            read_deps(text(content[:size]), "deps.json")


@given(data=st.data())
@settings(max_examples=some(400))
def test_what_is_no_json_is_refused_and_nothing_else(data):
    content = bytearray(
        json.dumps(records([[0, 1, 1, 10, 20, 1]], aicpu_scheduler_phases=[[{"kind": "a\\n"}]])).encode()
    )
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.sampled_from(
                [b"", b"0", b"-", b".", b"e5", b'"', b"\\", b"[", b"]", b"{", b"}", b",", b":", b"\0", b"\x01"]
            )
            | st.sampled_from([b"tru", b"true", b"null", b" ", b"\\u12", b"\\u00e9", b"\xff", b"1.5", b"-0", b"01"])
        )
    scanner = core.AscendScanner(text(bytes(content)))
    is_open = scanner.open()
    while is_open and scanner.key() is not None:
        scanner.skip()
    assert (is_open and not scanner.fault) == reference.is_json_object(bytes(content))
    assert scanner.offset <= len(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "file is truncated"),
        (b"[]", "invalid JSON at byte 0"),
        (b"{} {}", "invalid JSON at byte 3"),
        (b'{"a": 1,}', "invalid JSON at byte 8"),
        (b'{"a" 1}', "invalid JSON at byte 5"),
        (b'{"aicore_tasks": [1 2]}', "invalid JSON at byte 20 inside `aicore_tasks`"),
        (b'{"aicore_tasks": [[1,2,3,4,5,]]}', "invalid JSON at byte 29 inside `aicore_tasks`"),
        (b'{"a": ' + b"[" * 3000 + b"]" * 3000 + b"}", "nested too deeply"),
        (b'{"a": 1}\0', "invalid JSON at byte 8"),
        (b'{"metadata": {}, "metadata": {}}', "duplicate key `metadata`"),
    ],
)
def test_the_message_names_the_place(content, message):
    with pytest.raises(InputError) as caught:
        read(content)
    assert message in str(caught.value)
    assert caught.value.hint


def test_the_scanner_wants_its_nul():
    with pytest.raises(ValueError, match="NUL"):
        core.AscendScanner(np.frombuffer(b"{}", np.uint8))
    scanner = core.AscendScanner(text(b'{"a": []}'))
    shape = core.AscendShape(False, [("", "number", 1, 9, True, [])])
    with pytest.raises(ValueError, match="columns"):
        scanner.take(shape, 1, np.zeros((2, 4), np.uint64))
    with pytest.raises(ValueError, match="kind"):
        core.AscendShape(False, [("", "colour", 1, 9, True, [])])


def test_uploads_have_no_groups():
    found = read(records(host_device_uploads=[{"phase": "sm_h2d", "start_host_ns": 1, "end_host_ns": 5, "detail": 64}]))
    assert found[UPLOADS]["detail"].tolist() == [64]
    assert found[UPLOADS].groups == 0


def test_a_list_with_two_cells_of_one_name_is_refused():
    cells = tuple(JsonField(name, "a number") for name in ("start", "end", "start"))
    assert Layout("rows", "a row", cells[:2])["end"] is cells[1]
    with pytest.raises(InternalError, match="list rows declares a cell twice: start"):
        Layout("rows", "a row", cells)
