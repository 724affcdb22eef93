"""Sensors of devices as counters: a value holds from its time until the next one.

Counters of the device (energy, activity) have clocks of their own: what is drawn is their difference over that of the
clock, from the earlier of two readings on. A reading whose clock did not advance says nothing new, and is left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64
from lanescope.devices.levelzero.emit.device_tracks import Queues
from lanescope.devices.levelzero.interpret.resolved import Attributed
from lanescope.trace import TraceBuilder

POWER, FREQUENCY, ENGINE, MEMORY, TEMPERATURE = ("power", "frequency", "engine", "memory", "temperature")
#: Units of what is drawn.
UNITS = {POWER: "W", FREQUENCY: "MHz", ENGINE: "1", MEMORY: "bytes", TEMPERATURE: "degC"}
#: 0 degC in mK.
_ZERO_MK = 273_150
#: A device that takes more, in W, does not exist: its counter began anew.
MOST_W = 100_000.0
#: So much more activity than time is taken for rounding, in us. The API states no resolution of these counters.
_STEP_US = 1000.0
_US = np.uint64(1000)

U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]


class Series(NamedTuple):
    """Values of one sensor.

    Attributes:
        ts: int64 [n], begin of each value.
        value: float64 [n].
        interval: int64 [n], ns for which a value holds; of a state, until the next reading, 0 for the last.
        resets: readings after which a counter was lower, or impossibly higher: that interval is left out.
    """

    ts: Int64
    value: F64
    interval: Int64
    resets: int


def series(kind: str, ts: Int64, value: U64, reference: U64) -> Series:
    """Return what a sensor measured.

    Args:
        kind: of the sensor.
        ts: int64 [n], times of the readings, ns.
        value: uint64 [n], as ``samples`` has them.
        reference: uint64 [n], the same.
    """
    if kind in (POWER, ENGINE):
        return _rates(kind, ts, value, reference)
    if kind == FREQUENCY:
        values = value.astype(np.float64) / 1000
    elif kind == TEMPERATURE:
        values = (value.astype(np.float64) - _ZERO_MK) / 1000
    else:
        values = value.astype(np.float64)
    return Series(ts, values, np.append(np.diff(ts), 0) if len(ts) else ts, 0)


def _rates(kind: str, ts: Int64, value: U64, clock: U64) -> Series:
    """Return differences of a counter over those of its clock; both have 64 bits and may wrap."""
    advanced = np.append(True, np.diff(clock) != 0) if len(clock) else np.empty(0, np.bool_)
    ts, value, clock = ts[advanced], value[advanced], clock[advanced]
    steps, elapsed = np.diff(value), np.diff(clock)  # modulo 2^64, as the counters
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = steps.astype(np.float64) / elapsed.astype(np.float64)
    # uJ per us are W. Activity is at most all of the time, but for rounding.
    is_possible = rate <= MOST_W if kind == POWER else steps.astype(np.float64) <= elapsed.astype(np.float64) + _STEP_US
    usable = is_possible & (elapsed < np.uint64(1 << 62) // _US)
    value_ = np.minimum(rate, 1.0) if kind == ENGINE else rate
    interval = (np.where(usable, elapsed, np.uint64(0)) * _US).astype(np.int64)
    return Series(ts[:-1][usable], value_[usable], interval[usable], int((~usable).sum()))


class Telemetry:
    """Draws the sensors of all processes.

    Args:
        builder: where to; its time counts from ``zero``.
        found: what is drawn.
        queues: has the groups of devices.
        zero: ns that the builder's times count from, on the clock of the records.
        input_id: the input that it came from.
    """

    def __init__(self, builder: TraceBuilder, found: Attributed, queues: Queues, *, zero: int, input_id: int) -> None:
        self._builder, self._events, self._queues = builder, found.events, queues
        self._zero, self._input_id = zero, input_id

    def draw(self) -> None:
        """Append counters, what they are of, and what is missing."""
        events, builder = self._events, self._builder
        kinds, samplings, samples = events["sensor_kinds"], events["samplings"], events["samples"]
        absent = int((kinds.values("count") == 0).sum()) + sum(bool(reason) for reason in samplings["reason"].tolist())
        for name, count in (
            ("levelzero_sensor_absent", absent),
            ("levelzero_samples_missed", int(samplings.values("missed").sum())),
            ("levelzero_sample_failed", int(samplings.values("failed").sum())),
        ):
            if count:
                builder.add_stat(name, count, input_id=self._input_id)
        hosts = events["processes"].values("host")
        devices = {
            (process, row["device"]): (str(hosts[process]), row["uuid"], row["name"])
            for process, row in zip(events.process("sensor_kinds").tolist(), kinds.rows(), strict=True)
        }
        intervals = {
            process: row["interval"]
            for process, row in zip(events.process("samplings").tolist(), samplings.rows(), strict=True)
            if row["interval"] is not None
        }
        owner = events.process("samples")
        resets = 0
        for process, row in zip(events.process("sensors").tolist(), events["sensors"].rows(), strict=True):
            mine = np.flatnonzero((owner == process) & (samples.values("sensor") == row["sensor"]))
            ts = samples.values("ts")[mine] - self._zero
            made = series(row["kind"], ts, samples.values("value")[mine], samples.values("reference")[mine])
            resets += made.resets
            device = devices.get((process, row["device"]), (str(hosts[process]), "", ""))
            self._sensor(row, device, made, intervals.get(process))
        if resets:
            builder.add_stat("levelzero_counter_reset", resets, input_id=self._input_id)

    def _sensor(self, row: dict[str, Any], device: tuple[str, str, str], made: Series, interval: int | None) -> None:
        host, uuid, model = device
        builder, kind = self._builder, row["kind"]
        root = self._queues.root_of(host, uuid, model or f"device 0x{row['device']:x}")
        where = "" if row["subdevice"] is None else f", sub-device {row['subdevice']}"
        track = builder.track(
            self._queues.unique(root, f"{kind} {row['part']}".rstrip() + where),
            kind="counter",
            role="counter",
            parent=root,
            input_id=self._input_id,
            unit=UNITS.get(kind, ""),
        )
        if len(made.ts):
            builder.append("counters", track_id=track, ts=made.ts, value=made.value)
            builder.append("levelzero_samples", track_id=track, ts=made.ts, value=made.value, interval=made.interval)
        builder.append(
            "levelzero_sensors",
            track_id=[track],
            kind=kind,
            part=row["part"],
            device_uuid=[uuid],
            subdevice=[row["subdevice"] or 0],
            subdevice_valid=[row["subdevice"] is not None],
            interval=[interval or 0],
            interval_valid=[interval is not None],
        )
