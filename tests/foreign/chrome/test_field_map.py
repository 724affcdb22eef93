"""Which values of a file could be other ones, so that no reader could notice."""

import json

from lanescope.families.field_sites import CUT
from lanescope.foreign.chrome.formats.field_map import field_map


def test_other_values_are_possible_where_the_format_allows_them():
    event = {"ph": "X", "pid": 1, "tid": 2, "ts": 1, "dur": 2, "name": "a", "cat": "c", "args": {"k": 1}, "odd": 1}
    made = field_map({"a.json": json.dumps({"traceEvents": [event], "other": 1}).encode()})
    of = {field.name: field.possible for field in made.fields}
    possible = {
        name: [value for value in (7, 1 << 64, b"word", rb"\u12") if allows({0: value})] for name, allows in of.items()
    }
    sound = [7, b"word"]
    assert possible == {
        "ph": sound, "pid": [7], "tid": [7], "ts": [7], "dur": [7], "name": sound, "cat": sound,
        "args.k": sound, "odd": [], "other": sound,
    }  # fmt: skip
    (record,) = made.records
    assert record.possible("dropped", 0)
    assert not record.possible(CUT, 0)
