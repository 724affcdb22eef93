"""Compare a capture with the waveforms of a simulator."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

from lanescope.errors import UsageError
from lanescope.families.command import Argument, CommandContext, Values
from lanescope.families.options import non_negative_int, time_in


def run(context: CommandContext, values: Values) -> int:
    """Compare a capture with the waveforms of a simulator (VCD, FST): counts, and the first difference of each signal.

    Lanes of the capture are signals, as `lanescope convert -o FILE.vcd` writes them. Exit status 1: something differs.
    """
    from lanescope.devices.aie.analysis import wave_diff

    names, sync_on = _names(values["map"]), _sync_on(values["sync_on"])
    trace = context.open(values["input"])
    period = values["period"]
    if period is None and trace.time.time_unit == "cycles" and not values["ignore_time"]:
        raise UsageError("the trace counts cycles, the simulator picoseconds", hint="say --period PS")
    found = wave_diff.compare(
        context.signals(trace),
        wave_diff.Waveform(Path(values["wave"])),
        names=names,
        sync_on=sync_on,
        period=period or Fraction(1000),
        tolerance=values["tolerance"],
        is_order_only=values["ignore_time"],
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
        raise ValueError("it is not a time in picoseconds, such as 1000 or 1ns")
    return value


def _sync_on(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    name, colon, which = text.rpartition(":")
    if not colon:
        return text, 1
    if not (which.isascii() and which.isdecimal() and len(which) < 10 and int(which)):
        raise UsageError(f"--sync-on {text}: {which!r} is not a count from 1", hint="say NAME or NAME:N")
    return name, int(which)


def _names(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise UsageError(f"{path} is no object of names", hint='such as {"core_1_2.slot_0": "top.core.event"}')
    return found


ARGUMENTS = (
    Argument("wave", "waveforms of a simulator"),
    Argument("--map", "JSON object: name of our signal -> name of theirs", metavar="FILE"),
    Argument("--sync-on", "count time from the N-th rise of this signal of ours, and of theirs", metavar="NAME[:N]"),
    Argument("--period", "picoseconds of a cycle, if the capture counts those", _period, metavar="PS"),
    Argument("--tolerance", "units that times may differ by", non_negative_int, 0, "N"),
    Argument("--ignore-time", "compare values and their order, not times", bool),
    Argument("--json", "one JSON document, schema lanescope.aie-wavediff/1", bool),
)
