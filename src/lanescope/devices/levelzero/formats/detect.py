"""Is it a recording, or the text of THAPI's? Judged with the standard library only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lanescope.source.detection import Detection

if TYPE_CHECKING:
    from lanescope.source.detection import FileHead

#: Every provider's name begins with one of them; the modules with the names are dear to load for other families' files.
_PROVIDER_WORDS = (b"lttng_ust_", b"lanescope_ze")
#: How the packets of a description begin, in both byte orders. Source: CTF 1.8.3, section 7.1.
_PACKET_MAGICS = (b"\x57\x1d\xd1\x75", b"\x75\xd1\x1d\x57")


def detect_ctf(head: FileHead) -> Detection:
    """Look for the description of a recording."""
    if not head.data.startswith(b"/* CTF 1.8 */") and not _is_json(head):
        return Detection(0)
    from lanescope.devices.levelzero.formats import layout

    if re.search(layout.DOMAIN, head.data):
        return Detection(100, layout.CTF_FORMAT, "a CTF trace that names our recorder")
    return Detection(0)


def _is_json(head: FileHead) -> bool:
    """Whether this is the description of a CTF 2 trace. Source: CTF2-SPEC-2.0, section 5.4."""
    return head.data[:1] == b"\x1e" and b'"preamble"' in head.data


def detect_foreign(head: FileHead) -> Detection:
    """Look for the description of any other CTF trace, in text, in packets or in JSON."""
    is_packetized = head.data[:4] in _PACKET_MAGICS
    is_json = _is_json(head)
    if not is_packetized and (not (is_json or head.data.startswith(b"/* CTF 1.8")) or detect_ctf(head).score):
        return Detection(0)
    from lanescope.devices.levelzero.formats import layout

    reason = "a CTF description in packets, as LTTng writes it" if is_packetized else "a CTF trace of another producer"
    if is_json:
        reason = "the description of a CTF 2 trace"
    return Detection(90, layout.FOREIGN_FORMAT, reason)


def detect_text(head: FileHead) -> Detection:
    """Look for records of the known providers."""
    if head.data.startswith(b"/* CTF 1.8 */") or not any(word in head.data for word in _PROVIDER_WORDS):
        return Detection(0)
    from lanescope.devices.levelzero.formats import layout
    from lanescope.devices.levelzero.formats.host_apis import PROVIDERS

    lines = head.data.split(b"\n")
    if not head.is_whole:
        lines.pop()
    wanted = seen = other = 0
    providers = {provider.encode() for provider in (*layout.PROVIDERS, *PROVIDERS)}
    for line in lines:
        start = layout.RECORD_START.match(line)
        if start is not None:
            seen += 1
            wanted += start[4] in providers
        elif line.strip() and not line.startswith((b"#", b" ", b"}")):
            other += 1
    if not wanted:
        return Detection(0)
    reason = f"{wanted} of the first {seen + other} records are of Level Zero or of another API that THAPI traces"
    share = seen / (seen + other)
    return Detection(95 if share > 0.9 else 70 if share > 0.5 else 30, layout.TEXT_FORMAT, reason)
