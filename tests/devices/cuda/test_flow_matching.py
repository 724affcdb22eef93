"""Flows and enclosing regions against slow definitions."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope.devices.cuda.formats.lanes import Rows
from lanescope.devices.cuda.interpret import flow_matching


@settings(max_examples=some(400))
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 9), st.booleans()), max_size=40))
def test_effects_find_the_latest_cause(records):
    records.sort(key=lambda row: row[0])
    group, key, ts, effect = (np.array([row[i] for row in records], np.int64) for i in range(4))
    wanted, lonely, used = {}, [], set()
    for at, (g, k, t, is_effect) in enumerate(records):
        if not is_effect:
            continue
        causes = [(u, i) for i, (h, c, u, e) in enumerate(records) if (h, c) == (g, k) and not e and u <= t]
        if causes:
            wanted[at] = max(causes)[1]
            used.add(wanted[at])
        else:
            lonely.append(at)
    effects, causes, without, idle = flow_matching.join(group, key, ts, effect.astype(np.bool_))
    assert dict(zip(effects.tolist(), causes.tolist(), strict=True)) == wanted
    assert without.tolist() == lonely
    assert idle.tolist() == [i for i, row in enumerate(records) if not row[3] and i not in used]


@settings(max_examples=some(400))
@given(st.data())
def test_innermost_region_around_a_record(data):
    """Regions of lanes that begin at lane 5; of those that cross, the one that began last is the innermost."""
    regions, records = [], []
    count = data.draw(st.integers(1, 3))
    for lane in range(5, 5 + count):
        opened = []
        steps = data.draw(st.lists(st.sampled_from("(()..x"), max_size=30))
        for at, step in enumerate(steps):
            if step == "(":
                opened.append([lane, at, at])
                regions.append(opened[-1])
            elif step in ")x" and opened:
                opened.pop(-1 if step == ")" else 0)[2] = at
            elif step == ".":
                records.append((lane, at))
    begin, end = (np.array([row[i] for row in regions], np.uint32) for i in (1, 2))
    counts = np.bincount([row[0] - 5 for row in regions] or [0], minlength=count) * bool(regions)
    rows = Rows({"begin_index": begin, "end_index": end}, counts.astype(np.int64), 5)
    found = flow_matching.enclosing(rows, *(np.array([row[i] for row in records], np.uint32) for i in range(2)))
    for (lane, at), row in zip(records, found.tolist(), strict=True):
        around = [
            i for i, (other, one, two) in enumerate(regions) if other == lane and one < at and (two == one or two > at)
        ]
        assert row == (max(around, key=lambda i: regions[i][1]) if around else -1)
