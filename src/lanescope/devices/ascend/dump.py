"""What a capture holds, line by line: the entries of the file, the elements of its lists, the rows of its trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lanescope.devices.ascend.decoder import AscendDecoder, is_binary, read
from lanescope.devices.ascend.formats.files import entries
from lanescope.devices.ascend.formats.records import Bytes, Section
from lanescope.devices.ascend.interpret.sidecars import load
from lanescope.devices.base import STAGES
from lanescope.errors import UsageError

if TYPE_CHECKING:
    from lanescope.source import Capture

_SHOWN_BYTES = 60


def dump(capture: Capture, stage: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a stage.

    Args:
        capture: the opened capture.
        stage: ``packet``: the entries of the records file; ``record``: the elements of its lists, in the order of the
            file; ``row``: the rows of the trace, by time.
        options: decode options.
    """
    if stage not in STAGES:
        raise UsageError(f"there is no stage {stage!r}", hint="there are " + ", ".join(STAGES))
    if stage == "packet":
        return _packets(load(capture.main), capture.main.path, options)
    if stage == "record":
        return _records(load(capture.main), capture.main.path, options)
    return _rows(capture, options)


def _packets(text: Bytes, path: str, options: Mapping[str, Any]) -> Iterator[str]:
    if is_binary(text):
        from lanescope.devices.ascend.formats import device_dump

        found = device_dump.split_sections(text[:-1], options.get("index") or 0)
        for piece in () if found is None else found.pieces:
            raw = text[piece.begin : min(piece.end, piece.begin + _SHOWN_BYTES // 4)].tobytes().hex(" ")
            of = f"  {piece.stream} {piece.index} seq={piece.seq}" if piece.stream else ""
            yield f"{piece.begin:#010x}  {raw}...  {piece.what}{of}  bytes={piece.end - piece.begin}"
        return
    for key, begin, end in entries(text, path):
        raw = _text(text, begin, min(end, begin + _SHOWN_BYTES))
        yield f"{begin:#010x}  {raw}{'...' if end - begin > _SHOWN_BYTES else ''}  {key}  bytes={end - begin}"


def _records(text: Bytes, path: str, options: Mapping[str, Any]) -> Iterator[str]:
    shown = _hex if is_binary(text) else _text
    records = read(text, path, options)
    sections = [section for section in records.as_read.values() if len(section)]
    for section in sorted(sections, key=lambda section: int(section.begin[0])):
        masks = {cell.name: section.has(cell.name) for cell in section.layout.cells}
        for row, (begin, end) in enumerate(zip(section.begin.tolist(), section.end.tolist(), strict=True)):
            place = f"[{section.group[row]}]" if section.layout.depth == 2 else ""
            fields = " ".join(f"{name}={_value(section, name, row)}" for name, mask in masks.items() if mask[row])
            yield f"{begin:#010x}  {shown(text, begin, end)}  {section.layout.name}{place}  {fields}"
        tally = section.tally
        if tally.bad_first is not None:
            yield f"{tally.bad_first:#010x}  not understood: {tally.bad_count} elements, {tally.bad_bytes} bytes"
    if records.cut is not None:
        yield f"{records.cut:#010x}  cut off: {records.size - records.cut} bytes"


def _value(section: Section, name: str, row: int) -> str:
    value = section[name][row]
    return section.texts[value] if section.layout[name].kind == "text" else str(value.tolist())


def _hex(text: Bytes, begin: int, end: int) -> str:
    return text[begin:end].tobytes().hex(" ")


def _text(text: Bytes, begin: int, end: int) -> str:
    return " ".join(text[begin:end].tobytes().decode("utf-8", "backslashreplace").split())


def _rows(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    decoder = AscendDecoder(capture, options)
    for chunk in capture.main.chunks():
        decoder.feed(chunk)
    (trace,) = decoder.finish()
    lanes = trace.tracks.values("name").tolist()
    slices, gaps, flows = trace.slices, trace.gaps, trace.flows
    tasks = trace.details["ascend_tasks"]
    labels = dict(zip(tasks.values("slice_id").tolist(), tasks.values("label").tolist(), strict=True))
    keys = np.concatenate([slices.values("ts"), gaps.values("ts"), flows.values("src_ts")])
    rows = [("slice", row) for row in slices.rows()]
    rows += [("gap", row) for row in gaps.rows()]
    rows += [("flow", row) for row in flows.rows()]
    for index in np.argsort(keys, kind="stable").tolist():
        kind, row = rows[index]
        if kind == "flow":
            src, dst = lanes[row["src_track_id"]], lanes[row["dst_track_id"]]
            yield f"{row['src_ts']}  flow  {src} -> {dst} at {row['dst_ts']}"
            continue
        label = labels.get(row["id"]) if kind == "slice" else None
        shown = {"dur": row["dur"], "name": label or row.get("name"), "cause": row.get("cause")}
        shown |= {name: row.get(name) for name in ("lost_count", "quality", "flags")}
        fields = " ".join(
            f"{name}={value}"
            for name, value in shown.items()
            if value is not None and not (name == "flags" and value == 0) and value != "exact"
        )
        yield f"{row['ts']}  {kind}  {lanes[row['track_id']]}  {fields}"
