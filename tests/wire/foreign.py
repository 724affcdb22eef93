"""What lanescope sees in a folder of CTF, in the words of ``bt2_dump.py``."""

import json
import math
import subprocess
from pathlib import Path

import numpy as np

from lanescope.wire import tsdl
from lanescope.wire.tsdl.program import ROOTS
from wire.lttng_session import BIN

DUMP = Path(__file__).parent / "bt2_dump.py"


def babeltrace(*folders, tools=BIN):
    """Return what babeltrace2 sees in each folder: events, discarded events, discarded packets, and errors.

    One process each: version 2.0.4 aborts at some descriptions.

    Args:
        folders: the folders.
        tools: where the Python is that has bt2.
    """
    found, lines, events = {}, [], []
    for folder in folders:
        made = subprocess.run([tools / "bt2-python", DUMP, folder], check=False, capture_output=True, text=True)
        lines += made.stdout.splitlines() if made.returncode == 0 else [json.dumps({"folder": str(folder)})]
        if made.returncode:
            lines.append(json.dumps({"error": f"exit status {made.returncode}: {made.stderr[-300:]}"}))
    for line in map(json.loads, lines):
        if isinstance(line, list):
            events.append(line)
        elif "folder" in line:
            events = []
            found[line["folder"]] = {"events": events, "discarded": {"events": 0, "packets": 0}, "error": None}
            here = found[line["folder"]]
        elif "discarded" in line:
            what, count = line["discarded"]
            here["discarded"][what] += count or 0
        else:
            here["error"] = line["error"]
    return found


def plain(value):
    """Return a field as the dump has it."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value


def without_options(kind, value):
    """Return a field whose variants have the one item that the dump has."""
    if isinstance(kind, tsdl.Struct):
        types = {name.removeprefix("_"): member for name, member in kind.fields}
        return {name: without_options(types[name], item) for name, item in value.items()}
    if isinstance(kind, tsdl.Variant) and kind.is_optional:
        return None if value is None else without_options(kind.options[0][1], value)
    if isinstance(kind, tsdl.Variant):
        options = {name.removeprefix("_"): member for name, member in kind.options}
        ((name, item),) = value.items()
        return {"": without_options(options[name], item)}
    if isinstance(kind, tsdl.Array) and isinstance(value, list):
        return [without_options(kind.element, item) for item in value]
    return value


def streams(folder):
    """Return the files of a trace."""
    return [
        path for path in sorted(folder.iterdir()) if path.is_file() and path.name != "metadata" and path.stat().st_size
    ]


def events(folder):
    """Return the events of all traces in a folder as the reference reads them, checked against the native reader."""
    found = []
    for metadata in sorted(Path(folder).rglob("metadata")):
        about = tsdl.describe(tsdl.metadata_text(metadata.read_bytes()))
        reader = tsdl.Reader(about)
        for path in streams(metadata.parent):
            found += events_of(about, reader, path.read_bytes())
    return sorted(found, key=lambda event: event[0] or 0)


def events_of(about, reader, data):
    """Return the events of one stream."""
    walk = reader.read(np.frombuffer(data, np.uint8))
    assert (walk.lost, len(walk.losses)) == (0, 0)
    assert walk.decoded + walk.padding == len(data)
    packets = list(tsdl.ReferenceReader(about).packets(data))
    flat = [(packet, event) for packet in packets for event in packet.events]
    assert walk.times.tolist() == [event.time for _, event in flat]
    assert walk.places.tolist() == [event.at for _, event in flat]
    assert [reader.events[row][1] for row in walk.kinds.tolist()] == [event.kind for _, event in flat]
    for row in set(walk.kinds.tolist()):
        check_columns(reader, walk, row, flat)
    found = []
    for packet, event in flat:
        clock = about.clocks.get(packet.stream.clock)
        parts = [
            ("packet", packet.stream.packet_context, packet.context),
            ("common", packet.stream.event_context, event.roots[ROOTS[3]]),
            ("own", event.kind.context, event.roots[ROOTS[4]]),
            ("fields", event.kind.fields, event.roots[ROOTS[5]]),
        ]
        fields = {name: plain(without_options(kind, value)) if kind else None for name, kind, value in parts}
        # babeltrace2 keeps the sizes and times of a packet to itself.
        found.append([clock.ns(event.time) if clock else None, event.time if clock else None, event.kind.name, fields])
    return found


def check_columns(reader, walk, row, flat):
    """Compare the columns of one kind of events with what the reference sees."""
    rows = np.flatnonzero(walk.kinds == row)
    for name, column in reader.columns(walk, row, rows).items():
        root, _, path = name.partition(":")
        wanted = []
        for number in rows.tolist():
            packet, event = flat[number]
            value = {ROOTS[0]: packet.header, ROOTS[1]: packet.context}.get(root, event.roots.get(root))
            for part in path.split("."):
                value = value.get(part) if isinstance(value, dict) else None
            wanted.append(value)
        given = column.python()
        if isinstance(column.leaf.kind, tsdl.Array) and not isinstance(
            column.leaf.kind.element, tsdl.Integer | tsdl.Real
        ):
            wanted = [None if value is None else len(value) for value in wanted]
        assert json.dumps(plain(given)) == json.dumps(plain(wanted)), name


def same_events(ours, theirs):
    """Compare events but for their order where times are equal; packets' own sizes and times are not theirs to give."""

    def comparable(event):
        _, cycles, name, fields = event
        context = fields["packet"]
        hidden = (
            "packet_size",
            "content_size",
            "timestamp_begin",
            "timestamp_end",
            "events_discarded",
            "packet_seq_num",
        )
        packet = {key: value for key, value in (context or {}).items() if not key.endswith(hidden)}
        rest = {key: value or None for key, value in fields.items() if key != "packet"}
        return json.dumps([cycles, name, rest, packet], sort_keys=True)

    assert len(ours) == len(theirs)
    # Babeltrace2 computes the nanoseconds of clocks that do not count them with 53 bits.
    slack = [max((event[1] or 0) >> 30, 1) if event[0] != event[1] else 0 for event in ours]
    for mine, its, most in zip(ours, theirs, slack, strict=True):
        assert mine[0] == its[0] or abs(mine[0] - its[0]) <= most, (mine[0], its[0])
    assert sorted(map(comparable, ours)) == sorted(map(comparable, theirs))
