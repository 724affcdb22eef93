"""The quick way to read lines says the same as matching each of them, however a text is damaged."""

from __future__ import annotations

from dataclasses import asdict

from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope.devices.levelzero.formats.text_reader import TextReader

HEAD = "12:00:{second:02}.{ns:09} - host{host} - vpid: {pid}, vtid: 7 - "
RECORDS = [
    "lttng_ust_ze:zeContextCreate_entry: { }",
    "lttng_ust_ze:zeContextCreate_exit: { zeResult: ZE_RESULT_SUCCESS }",
    'lanescope_ze:op: { op_id: 1, how: "INLINE", list_id: 1, api: "zeCommandListAppendBarrier", waits: [ 1, 2 ] }',
    "lanescope_ze:result: { op_id: 1, run: 1, global_start: 5, global_end: 9, context_start: 5, context_end: 9 }",
    "lttng_ust_ze_profiling:event_profiling: { hEvent: 0x10 }",
    "other:thing: { }",
]


def line(second: int, ns: int, host: int, pid: int, record: str) -> str:
    """A line; some seconds are none, most are the same."""
    return HEAD.format(second=second if second > 58 else 3, ns=ns, host=host, pid=pid) + record


lines = st.builds(
    line,
    st.integers(0, 61),
    st.integers(0, 999_999_999),
    st.integers(0, 1),
    st.integers(1, 2),
    st.sampled_from(RECORDS),
)
damages = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 3), st.binary(max_size=3)), max_size=3)


class Thorough(TextReader):
    """Matches every line."""

    def _usual(self, line: bytes, offset: int, size: int) -> bool:
        return False


def read(reader: TextReader, content: bytes, cut: int) -> object:
    """All that a reader says of a text that comes in two pieces."""
    reader.feed(content[:cut])
    reader.feed(content[cut:])
    tables = reader.finish()
    return asdict(reader.report), {name: list(tables[name].rows()) for name in tables}


@settings(max_examples=some(400))
@given(st.lists(lines, max_size=12), damages, st.integers(0, 2000), st.sampled_from(["\n", "\r\n", " \n", "\n\n"]))
def test_quick_and_thorough_agree(written, damages, cut, newline) -> None:
    content = newline.join([*written, ""]).encode()
    for place, gone, new in damages:
        content = content[:place] + new + content[place + gone :]
    assert read(TextReader(), content, cut) == read(Thorough(), content, cut)
