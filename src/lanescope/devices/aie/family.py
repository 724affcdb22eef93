"""The AIE family: trace packets of AMD AI engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanescope.devices.base import Decoder, Family, Option, Simulation, fraction, hertz, non_negative_int, whole

if TYPE_CHECKING:
    from lanescope.source import Capture, Head, Match
    from lanescope.trace import LazyTable, StatSpec, TableSpec, Trace


class Aie(Family):
    """Trace units of AIE2 and AIE2P tiles: binary dumps and hex text, several tiles interleaved."""

    name = "aie"
    title = "AMD AI engines: event trace packets of NPUs and Versal AIE-ML"
    in_order = True
    options = (
        Option("config", str, "JSON file: what each tile's slots watch (NAME.config.json is found)", metavar="FILE"),
        Option("mlir", str, "MLIR text of the design, which says the same (NAME.mlir is found)", metavar="FILE"),
        Option("colshift", whole, "column of a packet minus that of the design (what fits best)", metavar="N"),
        Option("listing", str, "program of the cores, for paths: llvm-objdump -d, Chess .lst, JSON", metavar="FILE"),
        Option("elf", str, "ELF file of that program, for its symbols and source lines", metavar="FILE"),
        Option("errata", str, "what the device is known to do where paths leave it open", metavar="NAME,..."),
        Option(
            "frequency",
            hertz,
            "of the module clock: times become ns instead of cycles",
            metavar="HZ",
            settles="frequency",
        ),
    )
    sim_options = (
        Option("tiles", non_negative_int, "traced tiles", 4),
        Option("mode", non_negative_int, "trace mode of the cores: 0 event-time, 1 event-PC, 2 execution", 0),
        Option("records", non_negative_int, "frames in each tile's recording, about", 2000),
        Option(
            "program",
            str,
            "listing that a core runs in mode 2; `example`: one of ours, whose listing is written as well",
            metavar="FILE",
        ),
        Option("runs", non_negative_int, "recordings of each tile, one after the other", 1),
        Option("overruns", non_negative_int, "times that each recording loses frames and restarts", 0),
        Option("shared_stop", bool, "all event-time units stop in the same cycle, on one broadcast", default=False),
        Option("lost_tail", non_negative_int, "packets missing at the end of the file", 0),
        Option(
            "burst", non_negative_int, "bytes that the DMA writes at once; what does not fill one never arrives", 32
        ),
        Option("stale", non_negative_int, "packets of an older run behind the newest ones", 0),
        Option("bad_headers", fraction, "share of packets that have a flipped bit in their header", 0.0),
        Option("zeros", non_negative_int, "words of zeros behind the packets", 24),
        Option("text", bool, "hex text instead of binary", default=False),
    )

    exports = ("mlir-aie", "summary")
    verbs = {  # noqa: RUF012 (read only)
        "aie-config": "lanescope.cli.aie_config",
        "path": "lanescope.cli.path",
        "vcd": "lanescope.cli.vcd",
    }
    demo = {"tiles": 3, "records": 400, "overruns": 1}  # noqa: RUF012 (read only)

    def probe(self, head: Head) -> Match:
        """Judge by the packets: sound headers, each source beginning with Start."""
        from lanescope.devices.aie.formats.detect import probe

        return probe(head)

    def decode(self, capture: Capture, options: Mapping[str, Any]) -> Decoder:
        """Return a decoder; it takes the configuration beside the capture when no other is given."""
        from lanescope.devices.aie.decoder import AieDecoder

        if options.get("listing") or options.get("elf") or options.get("errata"):
            from lanescope.devices.aie.path import options as inputs

            inputs.of_options(options)  # what is wrong with them is said now, not when a path is asked for

        return AieDecoder(capture, options)

    def dump(self, capture: Capture, stage: str, options: Mapping[str, Any]) -> Iterator[str]:
        """Yield a line for each packet, frame or row."""
        from lanescope.devices.aie.dump import dump

        return dump(capture, stage, options)

    def simulate(self, options: Mapping[str, Any], seed: int) -> Simulation:
        """Simulate a few tiles with levels, pulses and long quiet times, and what goes wrong on the way out."""
        from lanescope.devices.aie.simulate.simulator import simulate

        return simulate(options, seed)

    def export(self, format: str) -> Callable[[Trace], Iterable[bytes]]:
        """Return the writer of what mlir-aie's parser writes, or of its summary."""
        from lanescope.devices.aie.export import mlir_aie

        return {"mlir-aie": mlir_aie.blocks, "summary": mlir_aie.summary}[format]

    def left_out(self, format: str, trace: Trace) -> Iterable[str]:
        """Name the recordings whose events mlir-aie's JSON cannot hold, or its summary cannot count."""
        from lanescope.devices.aie.export import mlir_aie

        return mlir_aie.left_out(format, trace)

    def tables(self) -> tuple[TableSpec, ...]:
        """Declare the detail tables."""
        from lanescope.devices.aie.schema import TABLES

        return TABLES

    def made_of(self, trace: Trace) -> Sequence[LazyTable]:
        """Return the tables of the path, if the trace was opened with a listing."""
        from lanescope.devices.aie.path.path_tables import tables_on_request

        return tables_on_request(trace)

    def made_tables(self) -> tuple[TableSpec, ...]:
        """Declare the tables of the path."""
        from lanescope.devices.aie.path.schema import TABLES

        return TABLES

    def stats(self) -> tuple[StatSpec, ...]:
        """Declare the stats."""
        from lanescope.devices.aie.schema import STATS

        return STATS

    def formats(self) -> Iterable[Any]:
        """Declare the wire formats, and the registers by which units are set up."""
        from lanescope.devices.aie.formats.layout import HEADER, MODE0, PACKET
        from lanescope.devices.aie.formats.registers import RECORDS

        return (HEADER, PACKET, MODE0, *RECORDS)


FAMILY = Aie()
