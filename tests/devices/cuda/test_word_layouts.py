"""What the words of a buffer tell of its layout: the quick looks find what slow ones over every word do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.cuda.helpers import buffer
from effort import some
from lanescope.devices.cuda.formats import word_layouts, word_source
from lanescope.devices.cuda.formats.layout import FINALIZE, TIRX_RECORD
from lanescope.devices.cuda.formats.word_source import FileStore, WordStore
from lanescope.source import Source


@st.composite
def words(draw):
    """Return a buffer whose header is sound and whose records may be anything, finalizes among them."""
    blocks, groups = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    kinds, others = draw(st.sampled_from([[0, 1, 2], [0, 1, 2, 3]])), draw(st.sampled_from([[], [1, 0xFFFFF]]))
    found = [blocks | groups << 32]
    for slot in range(draw(st.integers(blocks * groups, 60))):
        fields = {
            "kind": draw(st.sampled_from(kinds)),
            "event": draw(st.sampled_from([0, 0, 1, 1023])),
            "lane": draw(st.sampled_from([(slot - 1) % (blocks * groups) if others else 0, 0, *others])),
            "time": draw(st.sampled_from([0, 7, 0xFFFF_FFFF])),
        }
        is_empty = draw(st.booleans())
        found.append(0 if is_empty else sum(value << TIRX_RECORD[name].lsb for name, value in fields.items()))
    return np.array(found, np.uint64)


def fields_of(word):
    return {field.name: word >> field.lsb & field.mask for field in TIRX_RECORD.fields}


def finalizes(of):
    """The slots of finalize records that are of the lane of their slot."""
    lanes = (int(of[0]) & 0xFFFF_FFFF) * (int(of[0]) >> 32)
    found = {slot: fields_of(word) for slot, word in enumerate(of.tolist()) if slot}
    return [
        slot
        for slot, row in found.items()
        if row["kind"] == FINALIZE and not row["event"] and row["lane"] == (slot - 1) % lanes
    ]


@settings(max_examples=some(300))
@given(words(), st.integers(1, 20))
def test_a_finalize_is_found_wherever_it_is(of, piece):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_source, "SEARCHED_WORDS", piece)
        assert word_layouts.is_finalized(WordStore(of)) == bool(finalizes(of))


@settings(max_examples=some(300))
@given(words())
def test_the_beginning_of_a_buffer_is_looked_at_as_word_by_word(of):
    rows = [fields_of(word) for word in of[1:].tolist() if word]
    ends = [row["event"] for row in rows if row["kind"] == FINALIZE]
    is_named = any(row["lane"] for row in rows)
    assert word_layouts._is_finalized(of, None) == (is_named and bool(ends) and not any(ends))


def test_of_a_file_that_is_finalized_only_its_end_is_read(tmp_path, monkeypatch):
    lane = [(kind, 0, 10 * at) for at in range(200) for kind in "BE"]
    of = buffer([[*lane, ("F", 0, 9_000)], lane])
    path = tmp_path / "words.bin"
    path.write_bytes(of.tobytes())
    monkeypatch.setattr(word_source, "SEARCHED_WORDS", 10)
    source = Source(path)
    store = FileStore(source.reader(), 0, len(of))
    source.close()
    read, window = [], store.window

    def counted(first, last):
        read.append((first, last))
        return window(first, last)

    monkeypatch.setattr(store, "window", counted)
    assert word_layouts.is_finalized(store)
    assert read == [(0, 1), (len(of) - 10, len(of))]
