"""The AIE family: trace packets of AMD AI engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lanescope.families.family import ClockSpec, Command, Export, Family, Format, Simulator, Summary
from lanescope.families.options import Option, fraction, hertz, non_negative_int, whole

if TYPE_CHECKING:
    from lanescope.families.family import Decoder
    from lanescope.source import Capture

_HERE = "lanescope.devices.aie."


def _decode(capture: Capture, options: Mapping[str, Any]) -> Decoder:
    """Return a decoder; it uses the configuration next to the capture unless another is given."""
    from lanescope.devices.aie.decoder import AieDecoder

    if any(options.get(name) for name in ("listing", "elf", "xclbin", "program_tile", "errata")):
        from lanescope.devices.aie.path import options as inputs

        inputs.of_options(options)  # report errors now, not when a path is requested
    return AieDecoder(capture, options)


FAMILY = Family(
    name="aie",
    title="AMD AI engines: event trace packets of NPUs and Versal AIE-ML",
    formats=(
        Format(
            "aie-trace",
            detect=_HERE + "formats.detect:detect",
            decode=_decode,
            layouts=_HERE + "formats.registers:LAYOUTS",
            fields=_HERE + "formats.field_map:field_map",
            stages={"packet": _HERE + "dump:packet_lines", "record": _HERE + "dump:record_lines"},
            is_streaming=True,
            emits_sorted=True,
        ),
    ),
    options=(
        Option(
            "config", str, "JSON file with the event of each tile's slots (default: NAME.config.json)", metavar="FILE"
        ),
        Option("mlir", str, "MLIR text of the design with the same information (default: NAME.mlir)", metavar="FILE"),
        Option(
            "sequence",
            str,
            "runtime sequence of the MLIR text that was run (default: all, where they agree)",
            metavar="DEVICE:SEQUENCE",
        ),
        Option("column_shift", whole, "column of a packet minus column of the design (default: best fit)", metavar="N"),
        Option(
            "tile",
            str,
            "unit of a stream without packet headers (default: the only one of the configuration)",
            metavar="COL,ROW,TYPE",
        ),
        Option(
            "listing", str, "listing of the core program for paths: llvm-objdump -d, Chess .lst, JSON", metavar="FILE"
        ),
        Option("elf", str, "ELF file of the core: its program for paths, symbols, source lines", metavar="FILE"),
        Option("xclbin", str, "xclbin or PDI of the build: the programs of its cores, for paths", metavar="FILE"),
        Option("program_tile", str, "core of the design whose program in the xclbin is meant", metavar="COL,ROW"),
        Option("errata", str, "known device errata, to resolve ambiguous paths", metavar="NAME,..."),
        Option(
            "frequency",
            hertz,
            "trace clock frequency in Hz, to report times in ns instead of cycles",
            metavar="HZ",
            settles="frequency",
        ),
    ),
    limits=_HERE + "analysis.limits:LIMITS",
    tables=_HERE + "schema:TABLES",
    derived=_HERE + "analysis.derived_tables:DERIVED",
    bounds=_HERE + "analysis.bounds:bounds",
    summaries=(
        Summary(
            "tile",
            "where the time of one tile went, and whether compute, memory, streams or locks limit it",
            _HERE + "analysis.tile_time:summarize",
            _HERE + "analysis.tile_time:remarks",
        ),
    ),
    stats=_HERE + "schema:STATS",
    # Module clocks of AI Engine devices run at about 1 to 1.3 GHz, simulators and slowed devices at less.
    clocks=(ClockSpec("module clock", ((0.1e9, 4e9),)),),
    exports=(
        Export(
            "mlir-aie",
            "JSON as mlir-aie's parser writes it",
            _HERE + "export.mlir_aie:blocks",
            _HERE + "export.mlir_aie:events_left_out",
        ),
        Export(
            "summary",
            "what mlir-aie's trace summary counts, as text",
            _HERE + "export.mlir_aie:summary",
            _HERE + "export.mlir_aie:summary_left_out",
        ),
    ),
    commands=(
        Command(
            "aie-config",
            "generate or inspect AMD AIE trace configurations: JSON, registers, MLIR",
            _HERE + "commands.aie_config:run",
            _HERE + "commands.aie_config:ARGUMENTS",
            examples=(
                "lanescope aie-config traced.json",
                "lanescope aie-config traced.json -o traced.mlir --force",
            ),
            has_output=True,
            windowless="it reads configurations, which have no times",
        ),
        Command(
            "aie-path",
            "reconstruct the executed path of an AMD AIE core from its ELF file or listing",
            _HERE + "commands.aie_path:run",
            _HERE + "commands.aie_path:ARGUMENTS",
            examples=(
                "lanescope aie-path capture.bin --elf main_core_0_2.elf",
                "lanescope aie-path capture.bin --listing main.lst --annotate",
            ),
            takes_capture=True,
            has_output=True,
            windowless="no time is recorded in execution mode",
        ),
        Command(
            "aie-wavediff",
            "compare an AMD AIE capture with simulator waveforms",
            _HERE + "commands.aie_wavediff:run",
            _HERE + "commands.aie_wavediff:ARGUMENTS",
            examples=(
                "lanescope aie-wavediff capture.bin simulated.vcd --period 1000 --sync-on core_1_2.slot_0",
                "lanescope aie-wavediff capture.bin simulated.vcd --ignore-time",
            ),
            takes_capture=True,
        ),
    ),
    causes=_HERE + "analysis.causes:causes",
    clock_pairs=_HERE + "analysis.clock_pairs:clock_pairs",
    simulator=Simulator(
        _HERE + "simulate.simulator:simulate",
        options=(
            Option("tiles", non_negative_int, "traced tiles", 4),
            Option("mode", non_negative_int, "trace mode of the cores: 0 event-time, 1 event-PC, 2 execution", 0),
            Option("records", non_negative_int, "approximate number of frames per tile", 2000),
            Option(
                "program",
                str,
                "listing of the program in mode 2, or `example` for a built-in program and its listing",
                metavar="FILE",
            ),
            Option("runs", non_negative_int, "consecutive runs of each tile", 1),
            Option("overruns", non_negative_int, "buffer overruns per run: frames are lost, the unit restarts", 0),
            Option("shared_stop", bool, "all event-time units stop in the same cycle, on one broadcast", default=False),
            Option("lost_tail", non_negative_int, "packets missing at the end of the file", 0),
            Option("burst", non_negative_int, "bytes per DMA burst, an incomplete last burst is missing", 32),
            Option("stale", non_negative_int, "packets of an older run after the newest ones", 0),
            Option("bad_headers", fraction, "share of packets that have a flipped bit in their header", 0.0),
            Option("zeros", non_negative_int, "words of zeros after the packets", 24),
            Option("text", bool, "hex text instead of binary", default=False),
        ),
        demo={"tiles": 3, "records": 400, "overruns": 1},
    ),
)
