"""Shipped declarations against the reference codec, and against themselves with one bit changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lanescope.devices.cuda.formats.declared import catalog, reference
from lanescope.devices.cuda.formats.declared.arrays import Arrays
from lanescope.devices.cuda.formats.declared.columns import Columns
from lanescope.devices.cuda.formats.declared.geometry import locate
from lanescope.devices.cuda.formats.declared.records import EMPTY, UNREADABLE, records_of
from lanescope.devices.cuda.formats.declared.vectors import vectors
from lanescope.errors import LanescopeError

KINDS = ["begin", "end", "instant", "finalize", "unreadable"]


def outcome(declaration, arrays, params):
    """Everything that the columns say of a file, in the reference's form; None where it is refused."""
    try:
        data = {name: np.frombuffer(content, np.uint8) for name, content in arrays.items()}
        columns = Columns(declaration, arrays_of(data), locate(declaration, arrays_of(data), params))
        records = records_of(declaration, columns)
    except LanescopeError:
        return None
    names = [*KINDS]
    if declaration.is_spans:
        names[0], names[3] = "span", "open"
    lanes = []
    for lane, (block, group) in enumerate(zip(records.block.tolist(), records.group.tolist(), strict=True)):
        rows = []
        for at in range(int(records.start[lane]), int(records.start[lane + 1])):
            kind, byte = int(records.kind[at]), int(records.byte[at])
            if kind == UNREADABLE:
                rows.append(("unreadable", byte))
            elif kind < EMPTY:
                event = int(records.event[at])
                event = event if records.ids is None else int(records.ids[event])
                end = None if records.end is None else int(records.end[at])
                payload = None if records.payload is None else int(records.payload[at])
                payload2 = None if records.payload2 is None else int(records.payload2[at])
                track = None if records.tracks is None else int(records.tracks[int(records.event[at])])
                rows.append((names[kind], event, int(records.begin[at]), end, payload, payload2, track, byte))
        sm = None if records.sm is None or records.sm[lane] < 0 else int(records.sm[lane])
        lost = None if records.lost is None else int(records.lost[lane])
        if records.counted is not None and not records.counted[lane] and declaration.offered is not None:
            lost = None
        anchor = None if records.anchor is None else int(records.anchor[lane])
        pairs = tuple((int(ticks[lane]), int(ns[lane])) for ticks, ns in records.pairs)
        is_full = declaration.overflow == "saturated" and bool(records.is_full[lane])
        lanes.append((block, group, sm, lost, anchor, pairs, is_full, rows))
    return lanes, records.orphans, records.ignored


def arrays_of(data):
    return Arrays(data, dict.fromkeys(data, 0))


def expected(declaration, arrays, params):
    try:
        lanes, orphans, ignored = reference.decode(declaration, arrays, params)
    except LanescopeError:
        return None
    return (
        [
            (
                lane.block,
                lane.group,
                None if lane.sm is None or lane.sm < 0 else lane.sm,
                lane.lost,
                lane.anchor,
                lane.pairs,
                lane.is_full,
                lane.records,
            )
            for lane in lanes
        ],
        orphans,
        ignored,
    )


@pytest.mark.parametrize("name", catalog.shipped())
def test_columns_say_what_the_reference_says(name):
    declaration = catalog.load(name)
    seen = 0
    for vector in vectors(declaration):
        got, want = (read(declaration, vector.arrays, vector.params) for read in (outcome, expected))
        assert got == want, vector.label
        seen += want is not None and any(lane[-1] for lane in want[0])
    assert seen > 10


def used_fields(declaration):
    """Fields that any expression reads, with where they are declared: header, lane, fields or views."""
    record = declaration.record
    expressions = [
        *declaration.roles.values(),
        record.at,
        record.empty,
        record.agree,
        record.extends,
        declaration.capacity,
    ]
    expressions += [declaration.offered, declaration.next, declaration.used, declaration.lane_check]
    expressions += [declaration.clock.anchor, *(part for pair in declaration.clock.pairs for part in pair)]
    expressions += [count for _, count in declaration.dims] + [param.value for param in declaration.params]
    expressions += [declaration.kind[0]] if declaration.kind else []
    expressions += [e for state in declaration.state for e in (state.test, *state.values.values())]
    names = {name for expression in expressions if expression is not None for name in expression.names}
    names |= {field for _, field in declaration.next_names.values()}
    places = {
        "header": declaration.header.fields,
        "lane": declaration.lane.fields,
        "fields": record.fields,
        "views": record.views,
    }
    return [(place, spec) for place, specs in places.items() for spec in specs if spec.name in names]


def with_field(declaration, place, spec):
    def swap(fields):
        return tuple(spec if one.name == spec.name else one for one in fields)

    if place in ("fields", "views"):
        record = replace(declaration.record, **{place: swap(getattr(declaration.record, place))})
        return replace(declaration, record=record)
    area = getattr(declaration, place)
    return replace(declaration, **{place: replace(area, fields=swap(area.fields))})


#: Changes that no file can show: the difference of the two is multiplied by 1000 and wraps at 64 bits.
#: The bit of a processor that no core has is not looked at. The upper half of a payload is shifted beyond 64 bits.
UNSEEN = {
    "open-cuprof": [("c0", {"width": 63}), ("c1", {"width": 63})],
    "tt-metal": [("full", {"width": 6}), ("first", {"width": 33})],
}


def mutants(declaration):
    """The declaration with each field in use one bit lower, higher, narrower or wider."""
    for place, spec in used_fields(declaration):
        for change in (
            {"width": spec.width - 1},
            {"width": spec.width + 1},
            {"bit": spec.bit - 1},
            {"bit": spec.bit + 1},
        ):
            made = replace(spec, **change)
            moves = "bit" in change and spec.byte is not None
            if not moves and made.bit >= 0 and made.width >= 1 and made.bit % 8 + made.width <= 64:
                yield spec.name, change, with_field(declaration, place, made)


@pytest.mark.parametrize("name", catalog.shipped())
def test_a_declaration_changed_by_one_bit_is_noticed(name):
    declaration = catalog.load(name)
    known = [(vector, outcome(declaration, vector.arrays, vector.params)) for vector in vectors(declaration)]
    missed = []
    count = 0
    for field, change, mutant in mutants(declaration):
        count += 1
        ordered = sorted(known, key=lambda pair: pair[0].field != field)
        if not any(outcome(mutant, vector.arrays, vector.params) != want for vector, want in ordered):
            missed.append((field, change))
    assert count >= 3
    assert missed == UNSEEN.get(name, [])
