"""Where each byte of a file went, counted by readers that share nothing with ours: of JSON by the standard library, of
Perfetto by the official bindings."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections import Counter
from typing import Any

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

import lanescope
from foreign.kineto.oracle import FILES
from foreign.perfetto.made import packets_of
from foreign.perfetto.test_family import content_of
from lanescope.io import perfetto

SPACE = re.compile(r"[ \t\r\n]*")
DECODER = json.JSONDecoder(strict=False)


def walked(text: str) -> list[tuple[int, int, Any]]:
    """Return begin, end and content of each event of a whole file, in bytes: of Latin-1, each character is one."""

    def skip(at: int, wanted: str = "") -> int:
        at = SPACE.match(text, at).end()
        assert text[at : at + len(wanted)] == wanted
        return at + len(wanted)

    found, at = [], skip(0, "{")
    while True:
        key, at = DECODER.raw_decode(text, skip(at))
        at = skip(skip(at, ":"))
        if key == "traceEvents":
            at = skip(at, "[")
            while text[at := skip(at)] != "]":
                event, end = DECODER.raw_decode(text, at)
                found.append((at, end, event))
                at = skip(end)
                at += text[at] == ","
            at += 1
        else:
            _, at = DECODER.raw_decode(text, at)
        at = skip(at)
        if text[at] == "}":
            assert skip(at + 1) == len(text)
            return found
        at = skip(at, ",")


@pytest.mark.parametrize("family", ["kineto", "chrome"])
@pytest.mark.parametrize("name", FILES)
def test_each_byte_of_files_of_others_is_of_an_event_or_around_them(name, family, corpus, tmp_path):
    content = gzip.decompress((corpus / "foreign" / f"{name}.json.gz").read_bytes())
    events = walked(content.decode("latin-1"))
    path = tmp_path / "run.json"
    path.write_bytes(content)
    trace = lanescope.open(path, family=family)
    of_bytes, of_events = trace.accounting.rows()
    assert (of_bytes["total"], of_bytes["decoded"], of_bytes["lost"]) == (len(content), len(content), 0)
    size = sum(end - begin for begin, end, _ in events)
    assert (of_events["decoded"], of_events["padding"], of_events["lost"]) == (size, len(content) - size, 0)
    records = trace.records["kineto.events" if family == "kineto" else "chrome.event"]
    found = zip(records.values("offset").tolist(), records.values("size").tolist(), strict=True)
    assert list(found) == [(begin, end - begin) for begin, end, _ in events]
    phases = Counter(event["ph"] for _, _, event in events)
    column = records.column("phase")
    assert Counter(column.texts.tolist() if column.dictionary else records.values("phase").tolist()) == phases
    assert len(trace.slices) == phases["X"]
    # What is around them are the other members of the file, and these are told.
    around, before = bytearray(), 0
    for begin, end, _ in events:
        around += content[before:begin] + b"0"
        before = end
    document = json.loads(around + content[before:], strict=False)
    assert document.pop("traceEvents") == [0] * len(events)
    table, key = ("kineto_metadata", "key") if family == "kineto" else ("chrome_metadata", "name")
    members = [row for row in trace.details[table].rows() if row.get("process") is None]
    assert {row[key]: json.loads(row["value"], strict=False) for row in members} == document


READ = {
    None, "track_event", "track_descriptor", "process_descriptor", "thread_descriptor", "clock_snapshot", "trace_stats",
    "compressed_packets",
}  # fmt: skip


# Of a packet of packets the share that is lost is an estimate.
@pytest.mark.parametrize(("compressed", "lost"), [(False, 0.0), (False, 0.3), (True, 0.0)])
@pytest.mark.parametrize("style", ["sdk", "plain"])
def test_each_byte_of_a_perfetto_trace_is_of_a_packet(style, compressed, lost, tmp_path):
    content = content_of(style=style, compressed=compressed, lost=lost)
    (tmp_path / "run.pftrace").write_bytes(content)
    trace = lanescope.open(tmp_path / "run.pftrace")
    wanted: Counter[str] = Counter()
    sources: dict[str, tuple[int, int]] = {}
    valid: dict[int, bool] = {}
    for size, body in packets_of(content):
        packet = TracePacket.FromString(body)
        kind, sequence = packet.WhichOneof("data"), packet.trusted_packet_sequence_id
        if packet.previous_packet_dropped:
            valid[sequence] = False
        if packet.sequence_flags & 1:
            valid[sequence] = True
        if packet.sequence_flags & 2 and not valid.get(sequence, False):
            wanted["lost"] += size
        elif kind in READ:
            wanted["decoded"] += size
        else:
            wanted["padding"] += size
            count, bytes_ = sources.get(kind, (0, 0))
            sources[kind] = count + 1, bytes_ + len(body)
    (row,) = trace.accounting.rows()
    assert {key: row[key] for key in ("decoded", "padding", "lost") if row[key]} == wanted
    assert row["total"] == len(content) == wanted.total()
    assert (wanted["lost"] > 0) == (lost > 0 and style == "sdk")
    packets = trace.details["perfetto_packets"].rows()
    if not compressed:
        assert {row["source"]: (row["packets"], row["size"]) for row in packets} == sources
        assert sources


@pytest.mark.parametrize("name", ["hta/triton_example", "hta/amd_trace", "tracelens/mi210_gpu_only"])
@pytest.mark.parametrize("compress", [False, True])
def test_files_of_others_as_perfetto_traces_are_packets_that_are_all_read(name, compress, corpus, tmp_path):
    out = io.BytesIO()
    perfetto.write(lanescope.open(corpus / "foreign" / f"{name}.json.gz"), out, compress=compress)
    path = tmp_path / "run.pftrace"
    path.write_bytes(out.getvalue())
    packets = packets_of(out.getvalue())
    assert {TracePacket.FromString(body).WhichOneof("data") for _, body in packets} <= READ | {"chrome_events"}  # notes
    (row,) = lanescope.open(path).accounting.rows()
    assert (row["total"], row["decoded"]) == (len(out.getvalue()), sum(size for size, _ in packets))
