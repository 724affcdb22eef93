"""The Level Zero family: standard library only, so that it costs nothing to list and probe it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanescope.devices.base import Decoder, Family, Option
from lanescope.devices.levelzero import layout
from lanescope.source.sniff import Head, Match

if TYPE_CHECKING:
    from lanescope.source import Capture
    from lanescope.trace import StatSpec, Table, TableSpec, Trace

TEXT_FORMAT = "thapi_text"
#: How times of the day are to be read.
TIMES = ("auto", "exact", "thapi")


class LevelZero(Family):
    """Host calls and device operations of Level Zero programs."""

    name = "levelzero"
    title = "Intel GPUs by Level Zero: API calls and device operations, joined exactly"
    streaming = False
    bytes_per_row = 600
    options = (
        Option(
            "time",
            str,
            "auto: exact, but for THAPI's own tests; exact: as written; thapi: fractions of a second shrunk by 10^6",
            default="auto",
            metavar="HOW",
        ),
        Option("date", str, "the day on which the trace begins, UTC; the text does not say", metavar="YYYY-MM-DD"),
        Option(
            "tolerance_ms", float, "how far host and device clocks may be off (default 10)", default=10.0, metavar="MS"
        ),
    )
    exports = ("bt_text_pretty", "iprof", "iprof_json", "iprof_json_each")
    summaries = ("tally", "tally-each", "overlap")

    def probe(self, head: Head) -> Match:
        """Look for records of the known providers."""
        lines = head.data.split(b"\n")
        if not head.is_whole:
            lines.pop()
        wanted = seen = other = 0
        providers = {provider.encode() for provider in layout.PROVIDERS}
        for line in lines:
            start = layout.RECORD_START.match(line)
            if start is not None:
                seen += 1
                wanted += start[8] in providers
            elif line.strip() and not line.startswith((b"#", b" ", b"}")):
                other += 1
        if not wanted:
            return Match(0)
        reason = f"{wanted} of the first {seen + other} records are of Level Zero"
        share = seen / (seen + other)
        return Match(95 if share > 0.9 else 70 if share > 0.5 else 30, TEXT_FORMAT, reason)

    def decode(self, capture: Capture, options: Mapping[str, Any]) -> Decoder:
        """Return a decoder for the capture."""
        from lanescope.devices.levelzero.decode import LevelZeroDecoder

        return LevelZeroDecoder(capture, options)

    def export(self, format: str) -> Callable[[Trace], Iterable[bytes]]:
        """Return the writer of THAPI's interval records, or of iprof's sums."""
        from lanescope.devices.levelzero import export_bt_text, tally

        writers: dict[str, Callable[[Trace], Iterable[bytes]]] = {
            "bt_text_pretty": export_bt_text.blocks,
            "iprof": tally.iprof_text,
            "iprof_json": tally.iprof_json,
            "iprof_json_each": lambda trace: tally.iprof_json(trace, each=True),
        }
        return writers[format]

    def summarise(self, by: str, trace: Trace) -> Table:
        """Return sums in the manner of iprof, or how copies and kernels shared time."""
        from lanescope.devices.levelzero import tally

        if by == "overlap":
            return tally.overlap(trace)
        return tally.tally(trace, each=by == "tally-each")

    def tables(self) -> Sequence[TableSpec]:
        """Return the declarations of the detail tables."""
        from lanescope.devices.levelzero.schema import DETAILS

        return DETAILS

    def stats(self) -> Sequence[StatSpec]:
        """Return the declarations of the stats."""
        from lanescope.devices.levelzero.schema import STATS

        return STATS


FAMILY = LevelZero()
