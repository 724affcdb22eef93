"""Identification of files exported from a capture, for error messages."""

from __future__ import annotations

from typing import NamedTuple

_UI = "open it at https://ui.perfetto.dev, and give lanescope the capture it was made from"
_UTF_16 = "convert it first: iconv -f UTF-16 -t UTF-8 FILE > OTHER"


class Known(NamedTuple):
    """A kind of file.

    Attributes:
        what: with its article: ``a Perfetto trace``.
        hint: what to do with it instead.
    """

    what: str
    hint: str


PERFETTO = Known("a Perfetto trace", _UI)
CHROME = Known("a timeline in Chrome's JSON format", _UI)
SARIF = Known("a SARIF report", "open it with a code scanner, and give lanescope the capture it was made from")
REPORT = Known("a JSON report of lanescope", "give lanescope the capture it was made from")
VCD = Known("a file of waveforms (VCD)", "compare it with a capture: lanescope aie-wavediff CAPTURE WAVEFORMS")
PARQUET = Known("one Parquet file", "name the folder of all tables that lanescope wrote")
#: Packed and encoded otherwise than lanescope reads, by how they begin. Source: RFC 8878 section 3.1.1, the .xz file
#: format section 2.1.1.1, bzip2's and lz4's own manuals, RFC 1952 (where it was unpacked once already), Unicode 23.8.
_ENCODED = {
    b"\x28\xb5\x2f\xfd": Known("packed by zstd", "unpack it first: zstd -d FILE"),
    b"\xfd7zXZ\0": Known("packed by xz", "unpack it first: xz -dk FILE"),
    b"BZh": Known("packed by bzip2", "unpack it first: bzip2 -dk FILE"),
    b"\x04\x22\x4d\x18": Known("packed by lz4", "unpack it first: lz4 -d FILE"),
    b"\x1f\x8b\x08": Known("packed by gzip twice", "unpack it once: gzip -dc FILE > OTHER"),
    **{
        mark + bracket.encode(encoding): Known("JSON in UTF-16", _UTF_16)
        for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
        for bracket in "{["
    },
}

#: Field ``compressed_packets`` of a packet. Source: protos/perfetto/trace/trace_packet.proto, field 50.
_COMPRESSED = b"\x92\x03"
_VCD = (b"$date", b"$version", b"$timescale", b"$comment", b"$scope")


def what_is(head: bytes, name: str) -> Known | None:
    """Return what a file is, None when it is none of these.

    Args:
        head: its first bytes, unpacked; some KiB are enough.
        name: its name.
    """
    if _is_perfetto(head, name):
        return PERFETTO
    if head.startswith(b"PAR1"):
        return PARQUET
    for begin, known in _ENCODED.items():
        if head.startswith(begin):
            return known
    text = head.lstrip()
    if text.startswith(_VCD):
        return VCD
    if text.startswith((b"{", b"[")):
        if b'"traceEvents"' in text or (text.startswith(b"[") and b'"ph"' in text):
            return CHROME
        if b"sarif" in text[:400] and b'"runs"' in text:
            return SARIF
        if b'"schema": "lanescope.' in text[:400]:
            return REPORT
    return None


def _is_perfetto(head: bytes, name: str) -> bool:
    """Return whether a file is a sequence of trace packets: field 1 of a message, each with its length."""
    first = _packet_end(head, 0)
    if first is None:
        return False
    is_named = name.removesuffix(".gz").endswith((".pftrace", ".perfetto-trace"))
    second = _packet_end(head, first)
    return is_named or head.find(_COMPRESSED, 2, 12) >= 0 or (second is not None and head[second : second + 1] == b"\n")


def _packet_end(head: bytes, at: int) -> int | None:
    """Return where the packet at an offset ends, None when there is none."""
    if head[at : at + 1] != b"\n":
        return None
    size = shift = 0
    for place in range(at + 1, min(at + 6, len(head))):
        size |= (head[place] & 0x7F) << shift
        shift += 7
        if head[place] < 0x80:
            return place + 1 + size if size else None
    return None
