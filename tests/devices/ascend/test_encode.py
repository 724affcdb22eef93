"""What is written reads back as it was, element by element."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.ascend.helpers import CASES, GOLDEN, NAMINGS, read, text
from lanescope.devices.ascend.formats.device_structs import DEVICE_RECORDS
from lanescope.devices.ascend.formats.encode import encode_deps, encode_names, encode_records
from lanescope.devices.ascend.formats.files import read_deps, read_names
from lanescope.devices.ascend.formats.layout import DEPS, RECORD_BYTES, RECORDS, V1, V4
from lanescope.devices.ascend.formats.records import Deps, Records, section
from lanescope.devices.ascend.schema import CLOCK_STEPS, TABLES, raw
from lanescope.wire.reference_docs import table


def assert_same(first, second):
    assert first.layout is second.layout
    assert first.groups == second.groups
    assert first.group.tolist() == second.group.tolist()
    assert first.present.tolist() == second.present.tolist()
    for cell in first.layout.cells:
        if cell.kind == "text":
            texts = [
                [
                    made.texts[code] if there else None
                    for code, there in zip(made[cell.name], made.has(cell.name), strict=True)
                ]
                for made in (first, second)
            ]
            assert texts[0] == texts[1]
        else:
            assert first[cell.name].tolist() == second[cell.name].tolist()


@st.composite
def sections(draw, layout):
    """A section with values at the ends of what cells take, and cells missing where they may."""
    count = draw(st.integers(0, 6))
    columns, texts = {}, ("complete", 'a "quoted" \u00e9 \\ name', "x\n")
    last = len(layout.cells)
    for place, cell in enumerate(layout.cells):
        width = cell.count
        one = {
            "number": st.integers(0, 3) | st.sampled_from([0, cell.limit]),
            "integer": st.integers(-3, 3) | st.sampled_from([-cell.limit, cell.limit]),
            "token": st.integers(0, 3) | st.sampled_from([2**63, 2**64 - 1]),
            "boolean": st.booleans(),
            "text": st.integers(0, len(texts) - 1),
            "words": st.integers(0, 2 ** (len(cell.words) + 1) - 1),
        }[cell.kind]
        dtype = np.uint64 if cell.kind == "token" else np.int64
        values = [draw(st.lists(one, min_size=width, max_size=width)) for _ in range(count)]
        columns[cell.name] = np.array(values, dtype).reshape((count, width) if width > 1 else count)
        if not cell.is_required and layout.is_object:
            columns[f"{cell.name}_valid"] = np.array(
                draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool
            )
        if not cell.is_required and not layout.is_object and place == last - 1 and draw(st.booleans()):
            del columns[cell.name]
    group = np.sort(np.array(draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)), np.int64))
    return section(layout, columns, group=group if layout.depth == 2 else None, texts=texts)


@given(st.data())
def test_records_read_back(data):
    made = Records(
        "l2_swimlane_level",
        data.draw(st.integers(1, 4)),
        {"clock_freq_hz": 1, "core_types": ["aic"]},
        {layout.name: data.draw(sections(layout)) for layout in RECORDS},
    )
    found = read(encode_records(made))
    assert (found.level_key, found.level, found.metadata) == (made.level_key, made.level, made.metadata)
    assert found.unknown == ()
    for layout in RECORDS:
        assert_same(made[layout], found[layout])
        assert found[layout].tally.bad_count == 0


@given(st.data(), st.booleans())
def test_graphs_read_back(data, is_annotated):
    made = Deps(*(data.draw(sections(layout)) for layout in DEPS))
    content = encode_deps(made, is_annotated=is_annotated)
    found = read_deps(text(content), "deps.json")
    assert_same(made.tasks, found.tasks)
    assert_same(made.edges, found.edges)
    json.loads(content)


@given(
    st.dictionaries(st.integers(0, 10**6), st.text(st.characters(codec="utf-8"))),
    st.none() | st.text(st.characters(codec="utf-8")),
)
def test_name_maps_read_back(names, orchestrator):
    assert read_names(encode_names(names, orchestrator), "name_map.json") == (names, orchestrator)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("naming", NAMINGS)
def test_golden_files_are_written_as_they_stand(case, naming):
    content = (GOLDEN / case / f"{naming}_swimlane_records.json").read_bytes()
    written = encode_records(read(content))
    # The metadata of the golden files is spread over lines.
    body = re.compile(rb'"metadata": \{.*?\}', re.DOTALL)
    assert body.sub(b"", written) == body.sub(b"", content)
    assert json.loads(written) == json.loads(content)


def test_device_records_have_the_sizes_of_their_headers():
    sizes = {layout.name: layout.size for layout in DEVICE_RECORDS}
    assert sizes == {
        "ascend.aicore_task": 32,
        "ascend.aicpu_task": 32,
        "ascend.sched_phase_v3": 64,
        "ascend.sched_phase_v3c": 64,
        "ascend.orch_phase": 32,
        "ascend.host_phase": 40,
        "ascend.ready_entry": 32,
        "ascend.pool": 192,
        "ascend.aicore_task_buffer": 32832,
        "ascend.aicpu_task_buffer": 32064,
        "ascend.sched_phase_v3_buffer": 1048640,
        "ascend.sched_phase_v3c_buffer": 1048640,
        "ascend.orch_phase_buffer": 524352,
        "ascend.header_a2a3_v3": 127104,
        "ascend.header_a2a3_v3c": 127168,
        "ascend.header_a5_v3": 340672,
        "ascend.header_a5_v3c": 233152,
    }
    assert set(RECORD_BYTES.values()) <= set(sizes.values())


@pytest.mark.parametrize("layout", DEVICE_RECORDS, ids=lambda layout: layout.name)
def test_device_records_are_documented(layout):
    assert layout.source in table(layout)
    assert layout.doc


def test_every_cell_of_a_layout_is_documented():
    for layout in (*RECORDS, *DEPS):
        for cell in layout.cells:
            assert cell.doc
            assert layout.bit(cell.name) == 1 << layout.cells.index(cell)


def test_detail_tables_name_their_key_first():
    for spec in (*TABLES, *map(raw, (*RECORDS, *V1, *V4))):
        assert spec.columns[0].name == (spec.key or ("track_id" if spec is CLOCK_STEPS else "offset"))
        assert all(column.doc for column in spec.columns)
