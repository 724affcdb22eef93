"""The bytes of a span are the value that is reached by its path."""

import json

from hypothesis import given
from hypothesis import strategies as st

from lanescope.wire.json_spans import spans

NAMES = st.text(st.characters(codec="ascii", exclude_characters='"\\', exclude_categories=("Cc",)), max_size=4)
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
VALUES = st.recursive(LEAVES, lambda some: st.lists(some, max_size=3) | st.dictionaries(NAMES, some, max_size=3))


def parts(value, path=()):
    """Return all values in the order of their ends, by their paths."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*(found for key, part in items for found in parts(part, (*path, key))), (path, value)]


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_each_value_has_its_path_and_its_bytes(value, indent, is_ascii):
    content = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()
    found = list(spans(content))
    assert [(span.path, json.loads(content[span.begin : span.end])) for span in found] == parts(value)
    assert [span.is_leaf for span in found] == [not isinstance(part, dict | list) for _, part in parts(value)]
