"""Compare a capture with the waveforms of a simulator."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

from lanescope.errors import UsageError, os_reason
from lanescope.families.command import Argument, CommandContext, Values
from lanescope.families.options import non_negative_int, time_in


def run(context: CommandContext, values: Values) -> int:
    """Compare a capture with the waveforms of a simulator (VCD, FST): counts, and the first difference of each signal.

    Lanes of the capture are signals, as `lanescope convert -o FILE.vcd` writes them. Exit status 1: something differs.
    --start and --end compare both sides in a stretch of time of the capture, --lane some signals.
    """
    from lanescope.devices.aie.analysis import wave_diff
    from lanescope.trace.signals import signals

    names, sync_on = _names(values["map"]), _sync_on(values["sync_on"])
    part = context.open(values["input"])
    chosen, trace, (begin, end) = context.chosen_tracks(part), part, (None, None)
    if part.origin is not None:
        if part.origin.has_filter:
            raise UsageError(
                "signals are compared whole: --name, --min-dur and --where select slices of them",
                hint="use --start, --end and --lane",
            )
        trace, begin, end = part.origin.whole, part.origin.start, part.origin.end
        if values["ignore_time"] and (begin is not None or end is not None):
            raise UsageError("--ignore-time and --start or --end are mutually exclusive", hint="use one of them")
    period = values["period"]
    if period is None and trace.time.time_unit == "cycles" and not values["ignore_time"]:
        raise UsageError("cannot compare cycles with picoseconds", hint="use --period PS or --ignore-time")
    found = wave_diff.compare(
        signals(trace, chosen),
        wave_diff.Waveform(Path(values["wave"])),
        names=names,
        sync_on=sync_on,
        period=period or Fraction(1000),
        tolerance=values["tolerance"],
        is_order_only=values["ignore_time"],
        begin=begin,
        end=end,
    )
    if values["json"]:
        context.json("lanescope.aie-wavediff/1", signals=[row._asdict() for row in found])
    else:
        context.show(wave_diff.Comparison._fields, found, title="signals")
    return 1 if any(row.difference is not None for row in found) else 0


def _period(text: str) -> Fraction:
    try:
        value = time_in("ps", text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if value <= 0:
        raise ValueError("expected a time in picoseconds, e.g. 1000 or 1ns")
    return value


def _sync_on(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    name, colon, which = text.rpartition(":")
    if not colon:
        return text, 1
    if not (which.isascii() and which.isdecimal() and len(which) < 10 and int(which)):
        raise UsageError(f"invalid value {text!r} for --sync-on: expected SIGNAL or SIGNAL:N")
    return name, int(which)


def _names(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot open {path!r}: {os_reason(error)}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: invalid JSON: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise UsageError(f"{path}: expected a JSON object of names", hint='write {"core_1_2.slot_0": "top.core.event"}')
    return found


ARGUMENTS = (
    Argument("wave", "simulator waveforms (VCD, FST)"),
    Argument("--map", "JSON file with an object: signal of the capture -> signal of the simulator", metavar="FILE"),
    Argument("--sync-on", "signal whose N-th rise is time 0 on both sides (default: first)", metavar="SIGNAL[:N]"),
    Argument("--period", "cycle time in picoseconds, for captures in cycles", _period, metavar="PS"),
    Argument("--tolerance", "maximum difference of times", non_negative_int, 0, "N"),
    Argument("--ignore-time", "compare the order of values, ignore times", bool),
    Argument("--json", "print one JSON document, schema lanescope.aie-wavediff/1", bool),
)
