"""The Level Zero family: recordings of our own recorder, and the text of THAPI's."""

from __future__ import annotations

from lanescope.families.family import ClockSpec, Command, Export, Family, Format, Simulator, Summary
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
        raise ValueError("must be 8 to 64")
    return value


FAMILY = Family(
    name="levelzero",
    title="Intel GPUs by Level Zero: API calls and device operations, joined exactly",
    formats=(
        Format(
            "thapi_text",
            detect=_HERE + "formats.detect:detect_text",
            decode=_HERE + "text_decoder:LevelZeroDecoder",
            fields=_HERE + "formats.field_map.text:field_map",
            stages={"packet": _HERE + "dump:text_lines", "record": _HERE + "dump:text_record_lines"},
            is_streaming=True,
            bytes_per_row=600,
        ),
        Format(
            "lanescope_ctf",
            detect=_HERE + "formats.detect:detect_ctf",
            decode=_HERE + "ctf_decoder:RecordingDecoder",
            fields=_HERE + "formats.field_map.recording:field_map",
            stages={"packet": _HERE + "dump:ctf_packet_lines", "record": _HERE + "dump:ctf_record_lines"},
            bytes_per_row=600,
        ),
        Format(
            "ctf",
            detect=_HERE + "formats.detect:detect_foreign",
            decode=_HERE + "foreign_decoder:ForeignDecoder",
            bytes_per_row=600,
        ),
    ),
    options=(
        Option(
            "time_format",
            str,
            "unit of fractions of a second: exact, thapi (10^-6 of it), or auto (thapi in THAPI's tests)",
            default="auto",
            metavar="HOW",
        ),
        Option(
            "start_date",
            str,
            "UTC date of the start of the trace, which the text does not contain",
            metavar="YYYY-MM-DD",
            settles="clock",
        ),
        Option(
            "fields",
            bool,
            "add the fields of events that are points in time (CTF of other producers)",
            default=False,
        ),
        Option(
            "clock_tolerance_ms",
            milliseconds,
            "maximum host-device clock error in ms",
            default=10.0,
            metavar="MS",
        ),
    ),
    limits=_HERE + "analysis.limits:LIMITS",
    tables=_HERE + "schema:DETAILS",
    stats=_HERE + "schema:STATS",
    # From 12.5 or 19.2 MHz timers to those that count clocks of the GPU.
    clocks=(ClockSpec("device timestamp", ((1e6, 2.5e9),)),),
    summaries=(
        Summary(
            "tally",
            "calls and operations by name, like iprof",
            _HERE + "analysis.tally:tally",
            across=_HERE + "analysis.rank_tally:rank_tally_of_all",
            follow=_HERE + "analysis.follow:tables",
        ),
        Summary("tally-each", "the same for each process and device", _HERE + "analysis.tally:tally_each"),
        Summary(
            "tally-ranks",
            "the same for all ranks of a parallel program and each of them",
            _HERE + "analysis.rank_tally:rank_tally",
            across=_HERE + "analysis.rank_tally:rank_tally_of_all",
        ),
        Summary("telemetry", "minimum, mean and maximum of sensors", _HERE + "analysis.telemetry:telemetry"),
        Summary("overlap", "overlap of copies and kernels", _HERE + "analysis.tally:overlap"),
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
            "run a program and record its Level Zero calls",
            _HERE + "commands.record:run",
            _HERE + "commands.record:ARGUMENTS",
            examples=(
                "lanescope record -- ./app --size 1000",
                "lanescope record -o run --filter '!zeEventQueryStatus' -- python train.py",
            ),
            has_output=True,
            runs_programs=True,
            windowless="what reads the recording takes one",
        ),
        Command(
            "levelzero-tally",
            "sum the calls of CTF traces of any size",
            _HERE + "commands.tally:run",
            _HERE + "commands.tally:ARGUMENTS",
            examples=("lanescope levelzero-tally ~/lttng-traces/run", "lanescope levelzero-tally --json run"),
            windowless="it forgets events before the times of the timeline are known: summary --by tally takes one",
        ),
    ),
    causes=_HERE + "analysis.causes:causes",
    clock_pairs=_HERE + "analysis.clock_pairs:clock_pairs",
    simulator=Simulator(
        _HERE + "simulate.simulator:simulate",
        options=(
            Option("style", str, "text layout: numbered as lanescope writes it, or thapi", "numbered", "STYLE"),
            Option("ops", non_negative_int, "operations that programs append", 2000),
            Option("processes", positive_int, "processes", 1),
            Option("threads", positive_int, "threads of each process", 2),
            Option("devices", positive_int, "devices", 2),
            Option("subdevices", non_negative_int, "sub-devices of the first device", 2),
            Option("list_ops", positive_int, "operations of one command list", 60),
            Option("batch", positive_int, "operations of an immediate list between two waits", 16),
            Option("runs", positive_int, "executions of a regular list", 3),
            Option(
                "sharing", str, "sharing of events between operations: mixed, one, shared, pair, none", "mixed", "HOW"
            ),
            Option("frequency", whole_hertz, "ticks per second of the first device", 12_500_000, "HZ"),
            Option("skew_ppm", number, "device clock error in parts per million", 20.0, "PPM"),
            Option("bits", _bits, "valid bits of readings of a device's clock", 64),
            Option("kernel_bits", _bits, "valid bits of timestamps of operations", 32),
            Option("wrap_after_ms", milliseconds, "time until that counter wraps, in ms", 1.0, "MS"),
            Option("pause_us", microseconds, "pause of a thread between two lists, in us", 50.0, "US"),
            Option("lost", fraction, "share of results that are lost", 0.0, "SHARE"),
            Option("fills_only", bool, "append only fills", default=False),
            Option("reset_events", bool, "reset the event of each operation after a wait", default=False),
        ),
        demo={"ops": 400},
    ),
)
