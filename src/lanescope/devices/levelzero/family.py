"""The Level Zero family: recordings of our own recorder, and the text of THAPI's."""

from __future__ import annotations

from lanescope.families.family import Command, Export, Family, Format, Simulator, Summary
from lanescope.families.options import (
    Option,
    fraction,
    microseconds,
    milliseconds,
    non_negative_int,
    number,
    positive_int,
    whole_hertz,
)

_HERE = "lanescope.devices.levelzero."


def _bits(text: str) -> int:
    value = non_negative_int(text)
    if not 8 <= value <= 64:
        raise ValueError("it must be 8 to 64")
    return value


FAMILY = Family(
    name="levelzero",
    title="Intel GPUs by Level Zero: API calls and device operations, joined exactly",
    formats=(
        Format(
            "thapi_text",
            detect=_HERE + "formats.detect:detect_text",
            decode=_HERE + "text_decoder:LevelZeroDecoder",
            stages={"packet": _HERE + "dump:text_lines", "record": _HERE + "dump:text_record_lines"},
            bytes_per_row=600,
        ),
        Format(
            "lanescope_ctf",
            detect=_HERE + "formats.detect:detect_ctf",
            decode=_HERE + "ctf_decoder:RecordingDecoder",
            stages={"packet": _HERE + "dump:ctf_packet_lines", "record": _HERE + "dump:ctf_record_lines"},
            bytes_per_row=600,
        ),
    ),
    options=(
        Option(
            "time_format",
            str,
            "auto: exact, but for THAPI's own tests; exact: as written; thapi: fractions of a second shrunk by 10^6",
            default="auto",
            metavar="HOW",
        ),
        Option(
            "start_date",
            str,
            "the day on which the trace begins, UTC; the text does not say",
            metavar="YYYY-MM-DD",
            settles="clock",
        ),
        Option(
            "clock_tolerance_ms",
            milliseconds,
            "how far host and device clocks may be off",
            default=10.0,
            metavar="MS",
        ),
    ),
    tables=_HERE + "schema:DETAILS",
    stats=_HERE + "schema:STATS",
    summaries=(
        Summary("tally", "calls and operations by name, in the manner of iprof", _HERE + "analysis.tally:tally"),
        Summary("tally-each", "the same for each process and device", _HERE + "analysis.tally:tally_each"),
        Summary("overlap", "how copies and kernels shared time", _HERE + "analysis.tally:overlap"),
    ),
    exports=(
        Export(
            "bt_text_pretty",
            "interval records as THAPI's babeltrace2 plugins print them",
            _HERE + "export.bt_text:blocks",
        ),
        Export("iprof", "sums as iprof's tables", _HERE + "analysis.tally:iprof_text"),
        Export("iprof_json", "sums as iprof's JSON", _HERE + "analysis.tally:iprof_json"),
        Export("iprof_json_each", "the same for each process and device", _HERE + "analysis.tally:iprof_json_each"),
    ),
    commands=(
        Command(
            "record",
            "run a program and record its calls of Level Zero",
            _HERE + "commands.record:run",
            _HERE + "commands.record:ARGUMENTS",
            examples=(
                "lanescope record -- ./app --size 1000",
                "lanescope record -o run --filter '!zeEventQueryStatus' -- python train.py",
            ),
            has_output=True,
            runs_programs=True,
        ),
    ),
    simulator=Simulator(
        _HERE + "simulate.simulator:simulate",
        options=(
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
        ),
        demo={"ops": 400},
    ),
)
