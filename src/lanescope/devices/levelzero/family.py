"""The Level Zero family: standard library only, so that it costs nothing to list and probe it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanescope.devices.base import (
    Decoder,
    Family,
    Option,
    Simulation,
    fraction,
    microseconds,
    milliseconds,
    non_negative_int,
    number,
    positive_int,
    whole_hertz,
)
from lanescope.devices.levelzero.formats import layout

if TYPE_CHECKING:
    from lanescope.source import Capture, Head, Match
    from lanescope.trace import StatSpec, Table, TableSpec, Trace


def _bits(text: str) -> int:
    value = non_negative_int(text)
    if not 8 <= value <= 64:
        raise ValueError("it must be 8 to 64")
    return value


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
        Option(
            "date",
            str,
            "the day on which the trace begins, UTC; the text does not say",
            metavar="YYYY-MM-DD",
            settles="clock",
        ),
        Option(
            "tolerance_ms",
            milliseconds,
            "how far host and device clocks may be off (default 10)",
            default=10.0,
            metavar="MS",
        ),
    )
    sim_options = (
        Option("style", str, "numbered: as lanescope records; thapi: as THAPI does", "numbered", "STYLE"),
        Option("ops", non_negative_int, "operations that programs append", 2000),
        Option("processes", positive_int, "processes", 1),
        Option("threads", positive_int, "threads of each process", 2),
        Option("devices", positive_int, "devices", 2),
        Option("subdevices", non_negative_int, "sub-devices of the first device", 2),
        Option("list_ops", positive_int, "operations of one command list", 60),
        Option("batch", positive_int, "operations of an immediate list between two waits", 16),
        Option("runs", positive_int, "executions of a regular list", 3),
        Option("sharing", str, "how operations share events: mixed, one, shared, pair, none", "mixed", "HOW"),
        Option("frequency", whole_hertz, "ticks per second of the first device", 12_500_000, "HZ"),
        Option("skew_ppm", number, "how far clocks of devices are off, parts per million", 20.0, "PPM"),
        Option("bits", _bits, "valid bits of readings of a device's clock", 64),
        Option("kernel_bits", _bits, "valid bits of timestamps of operations", 32),
        Option("wrap_after_ms", milliseconds, "when that counter wraps", 1.0, "MS"),
        Option("pause_us", microseconds, "pause of a thread between two lists", 50.0, "US"),
        Option("lost", fraction, "share of results that are lost", 0.0, "SHARE"),
        Option("fills_only", bool, "append nothing but fills", default=False),
        Option("reset_events", bool, "reset the event of each operation after a wait", default=False),
    )
    demo = {"ops": 400}  # noqa: RUF012 (read only)
    exports = ("bt_text_pretty", "iprof", "iprof_json", "iprof_json_each")
    summaries = ("tally", "tally-each", "overlap")

    def probe(self, head: Head) -> Match:
        """Look for the description of a recording, or for records of the known providers."""
        from lanescope.source import Match

        if head.data.startswith(b"/* CTF 1.8 */"):
            if b'domain = "lanescope_ze"' in head.data:
                return Match(100, layout.CTF_FORMAT, "a CTF trace that names our recorder")
            return Match(20, layout.CTF_FORMAT, "a CTF trace of another producer")
        lines = head.data.split(b"\n")
        if not head.is_whole:
            lines.pop()
        wanted = seen = other = 0
        providers = {provider.encode() for provider in layout.PROVIDERS}
        for line in lines:
            start = layout.RECORD_START.match(line)
            if start is not None:
                seen += 1
                wanted += start[4] in providers
            elif line.strip() and not line.startswith((b"#", b" ", b"}")):
                other += 1
        if not wanted:
            return Match(0)
        reason = f"{wanted} of the first {seen + other} records are of Level Zero"
        share = seen / (seen + other)
        return Match(95 if share > 0.9 else 70 if share > 0.5 else 30, layout.TEXT_FORMAT, reason)

    def decode(self, capture: Capture, options: Mapping[str, Any]) -> Decoder:
        """Return a decoder for the capture."""
        if self.probe(capture.main.head()).format == layout.CTF_FORMAT:
            from lanescope.devices.levelzero.ctf_decoder import RecordingDecoder

            return RecordingDecoder(capture, options)
        from lanescope.devices.levelzero.text_decoder import LevelZeroDecoder

        return LevelZeroDecoder(capture, options)

    def dump(self, capture: Capture, stage: str, options: Mapping[str, Any]) -> Iterator[str]:
        """Yield a line for each line, record or row."""
        if self.probe(capture.main.head()).format == layout.CTF_FORMAT:
            from lanescope.devices.levelzero.dump import dump_recording

            return dump_recording(capture, stage, options)
        from lanescope.devices.levelzero.dump import dump

        return dump(capture, stage, options)

    def simulate(self, options: Mapping[str, Any], seed: int) -> Simulation:
        """Simulate programs on several threads and devices."""
        from lanescope.devices.levelzero.simulate.simulator import simulate

        return simulate(options, seed)

    def export(self, format: str) -> Callable[[Trace], Iterable[bytes]]:
        """Return the writer of THAPI's interval records, or of iprof's sums."""
        from lanescope.devices.levelzero.analysis import tally
        from lanescope.devices.levelzero.export import bt_text

        writers: dict[str, Callable[[Trace], Iterable[bytes]]] = {
            "bt_text_pretty": bt_text.blocks,
            "iprof": tally.iprof_text,
            "iprof_json": tally.iprof_json,
            "iprof_json_each": lambda trace: tally.iprof_json(trace, each=True),
        }
        return writers[format]

    def summarise(self, by: str, trace: Trace) -> Table:
        """Return sums in the manner of iprof, or how copies and kernels shared time."""
        from lanescope.devices.levelzero.analysis import tally

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
