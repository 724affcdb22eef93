"""Sensors of devices are sampled while the program runs, as its loader and driver have them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import lanescope
from lanescope.cli import main
from lanescope.devices.levelzero.analysis.telemetry import telemetry
from lanescope.devices.levelzero.emit.telemetry import ENGINE, FREQUENCY, MEMORY, POWER, TEMPERATURE, series

pytestmark = pytest.mark.timeout(1200)

LEGACY = {"ZES_ENABLE_SYSMAN": "1"}


@pytest.fixture
def sampled(fake_ze, tmp_path):
    """Return a function that records a program with samples, and returns its error output and the folder.

    The program goes on until there are some, however busy the machine is.
    """

    def sampled(*command, options=("--sample", "2ms"), env=(), status=0, loader=None, **quirks):
        folder = tmp_path / "run"
        if options and (loader or env):
            quirks["samples"] = 8
        words = [sys.executable, "-m", "lanescope", "record", "--force", "-o", folder, *options, "--", *command]
        environment = {**fake_ze.environment(loader, **quirks), **dict(env)}
        done = subprocess.run(
            list(map(str, words)), env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == status, done.stderr
        return done, folder

    return sampled


def rows_of(trace):
    return {row["sensor"]: row for row in telemetry(trace).rows()}


def stats_of(trace):
    return {row["name"]: row["count"] for row in trace.stats.rows()}


def assert_right(trace, devices=1):
    """The driver's devices take 75 W, are busy two fifths of the time, and so on."""
    found = [row for row in telemetry(trace).rows() if row["device"] == "fake_ze 0"]
    rows = {row["sensor"]: row for row in found}
    assert set(rows) == {
        "power",
        "frequency gpu",
        "frequency memory, sub-device 1",
        "engine compute",
        "memory",
        "temperature gpu",
    }
    assert rows["power"]["samples"] > 3
    assert [rows["power"][name] for name in ("min", "mean", "max")] == [75.0] * 3
    assert rows["power"]["interval"] >= 1_000_000
    assert rows["frequency gpu"]["mean"] == 1550.25
    assert rows["frequency memory, sub-device 1"]["samples"] == 0
    assert rows["engine compute"]["mean"] == pytest.approx(0.4, abs=1e-3)
    assert rows["memory"]["max"] == 4 << 30
    assert rows["temperature gpu"]["mean"] == pytest.approx(-12.5)
    assert len(list(telemetry(trace).rows())) == 6 * devices
    # The memory's frequency is not known: each reading of it counts.
    assert stats_of(trace)["levelzero_sample_failed"] >= 3


def test_sensors_are_counters_beside_the_operations(fake_ze, sampled, require_tool):
    done, folder = sampled(fake_ze.app, "mixed", "100", env=LEGACY)
    assert done.stdout == "mixed: right\n"
    assert re.search(r" power +W ", done.stderr)
    trace = lanescope.open(folder)
    assert_right(trace)
    # They are in the group of the device on which the operations ran, and within the time of the recording.
    tracks = trace.tracks
    of = {row["name"]: row for row in tracks.rows() if row["kind"] == "counter"}
    queues = [row for row in tracks.rows() if row["role"] == "queue"]
    assert of["power"]["parent_id"] == queues[0]["parent_id"]
    ts = trace.details["levelzero_samples"]["ts"]
    assert ts.min() >= 0
    # The program's own calls are those of a run without samples.
    calls = set(trace.slices.where(trace.slices["category"] == "api")["name"].tolist())
    _, plain = sampled(fake_ze.app, "mixed", "100", options=(), env=LEGACY)
    other = lanescope.open(plain)
    assert set(other.slices.where(other.slices["category"] == "api")["name"].tolist()) == calls
    assert "levelzero_sensor_absent" not in stats_of(other)
    shown = subprocess.run([require_tool("babeltrace2"), folder], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")


def test_a_new_loader_needs_no_variable(fake_ze, sampled, newest):
    done, folder = sampled(*newest(fake_ze.app, "mixed", "60"), loader=newest.none)
    assert done.stdout == "mixed: right\n"
    assert_right(lanescope.open(folder))


def test_no_call_goes_past_the_recorder_while_the_loader_fills_its_tables_anew(fake_ze, programs, sampled, newest):
    """As zesInit has it do: by then the program has no device, and it waits."""
    env = {"ZE_ENABLE_VALIDATION_LAYER": "1", "ZEL_LIBRARY_PATH": str(programs / "slow_layer")}
    command = newest(fake_ze.app, "mixed", "60")
    done, folder = sampled(*command, loader=programs / "slow_layer", env=env)
    assert done.stdout == "mixed: right\n"
    trace = lanescope.open(folder)
    assert_right(trace)
    names = trace.slices.where(trace.slices["category"] == "api")["name"].tolist()
    appended = Counter(name for name in names if "Append" in name or name == "zeEventQueryKernelTimestamp")
    assert appended == {
        "zeCommandListAppendMemoryFill": 60,
        "zeCommandListAppendLaunchKernel": 121,
        "zeCommandListAppendLaunchKernelIndirect": 1,
        "zeCommandListAppendBarrier": 60,
        "zeCommandListAppendQueryKernelTimestamps": 60,
        "zeEventQueryKernelTimestamp": 60,
        "zeCommandListAppendWriteGlobalTimestamp": 120,
        "zeCommandListAppendMemoryCopy": 60,
        "zeCommandListAppendSignalEvent": 60,
    }


@pytest.mark.parametrize("style", ["old", "new"])
def test_a_program_that_traces_itself_misses_no_call(fake_ze, programs, sampled, newest, style):
    env = {"ZEL_LIBRARY_PATH": str(newest.loader.parent)}
    done, folder = sampled(*newest(programs / "recorder_tracers", style), loader=newest.none, env=env)
    assert done.stdout == "5 5 5 0\n"
    assert rows_of(lanescope.open(folder))["power"]["mean"] == 75.0


def test_several_devices_and_processes(fake_ze, sampled):
    _, folder = sampled("sh", "-c", '"$0" mixed 50; "$0" mixed 50', fake_ze.app, env=LEGACY, devices=2)
    trace = lanescope.open(folder)
    rows = list(telemetry(trace).rows())
    assert {row["device"] for row in rows} == {"fake_ze 0", "fake_ze 1"}
    assert [row["mean"] for row in rows if row["unit"] == "W"] == [75.0] * 4


def test_absent_sensors_are_named(fake_ze, sampled):
    done, folder = sampled(fake_ze.app, "mixed", "50", env=LEGACY, absent="temperature,engine")
    assert "fake_ze 0: no temperature sensor (ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)" in done.stderr
    assert "fake_ze 0: no engine sensor (ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)" in done.stderr
    trace = lanescope.open(folder)
    assert stats_of(trace)["levelzero_sensor_absent"] == 2
    assert not any(name.startswith(("temperature", "engine")) for name in rows_of(trace))


def test_an_old_loader_without_the_variable_is_named(fake_ze, sampled, capsys):
    done, folder = sampled(fake_ze.app, "mixed", "20")
    assert "no sensors sampled: the loader has no zesInit: set ZES_ENABLE_SYSMAN=1" in done.stderr
    assert stats_of(lanescope.open(folder))["levelzero_sensor_absent"] == 1
    assert main(["summary", "--by", "telemetry", str(folder)]) == 2
    assert "--sample 50ms" in capsys.readouterr().err


def test_the_program_is_not_changed(fake_ze, sampled):
    """Neither its environment nor its signals: the sampler has none of them."""
    done, _ = sampled("env")
    assert "ZES_ENABLE_SYSMAN" not in done.stdout
    # A program that ends by _exit, is killed or forks leaves no thread behind that hangs.
    script = '"$0" mixed 30; kill -KILL $$'
    done, folder = sampled("sh", "-c", script, fake_ze.app, env=LEGACY, status=-9)
    assert rows_of(lanescope.open(folder))["power"]["mean"] == 75.0


def test_an_energy_counter_wraps(fake_ze, sampled):
    _, folder = sampled(fake_ze.app, "mixed", "60", env=LEGACY, energy_start="-500000")
    trace = lanescope.open(folder)
    row = rows_of(trace)["power"]
    assert (row["min"], row["max"]) == (75.0, 75.0)
    assert "levelzero_counter_reset" not in stats_of(trace)


def test_samples_in_sql_and_json(fake_ze, sampled, capsys):
    _, folder = sampled(fake_ze.app, "mixed", "50", env=LEGACY)
    query = (
        "select t.name, avg(p.value) as mean, sum(p.interval) as time from levelzero_samples p "
        "join tracks t on t.id = p.track_id join levelzero_sensors s on s.track_id = t.id "
        "where s.kind = 'power' group by t.name"
    )
    assert main(["sql", str(folder), query, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    assert len(found) == 1
    assert re.search(r"75\.0", json.dumps(found))
    assert main(["summary", "--by", "telemetry", "--json", str(folder)]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["unit"] for row in rows} == {"W", "MHz", "1", "bytes", "degC"}


@pytest.mark.parametrize("text", ["", "50", "0ms", "999us", "5m", "-1ms", "1e3ms", "3601s"])
def test_invalid_intervals_are_refused(text, capsys):
    assert main(["record", f"--sample={text}", "--", "true"]) == 2
    assert "50ms" in capsys.readouterr().err


# --- what readings mean -------------------------------------------------------------------------------------------


def u64(*values):
    return np.array([value % (1 << 64) for value in values], np.uint64)


def test_power_is_a_difference_over_the_counters_clock():
    ts = np.array([0, 10_000, 20_000, 30_000])
    # The counter did not advance between the second and the third reading.
    made = series(POWER, ts, u64(100, 300, 300, 900), u64(0, 4, 4, 10))
    assert made.ts.tolist() == [0, 10_000]
    assert made.value.tolist() == [50.0, 100.0]
    assert made.interval.tolist() == [4_000, 6_000]
    assert made.resets == 0


def test_counters_wrap_and_are_reset():
    ts = np.arange(4) * 1000
    made = series(POWER, ts, u64(-100, 100, 5_000_000, 100), u64(-2, 2, 50_000, 100_000))
    assert made.value.tolist() == [50.0, 4_999_900 / 49_998]
    assert made.resets == 1
    made = series(ENGINE, np.arange(3) * 1000, u64(0, 11, 5), u64(0, 10, 20))
    assert (made.value.tolist(), made.resets) == ([1.0], 1)


def test_more_activity_than_time_is_rounding_or_no_value():
    made = series(ENGINE, np.arange(4) * 1000, u64(0, 50_900, 101_800, 162_000), u64(0, 50_000, 101_800, 151_800))
    assert (made.value.tolist(), made.resets) == ([1.0, 50_900 / 51_800], 1)


def test_states_hold_until_the_next_reading():
    ts = np.array([5, 15, 40])
    made = series(FREQUENCY, ts, u64(1_000_000, 0, 500_500), u64(0, 0, 0))
    assert (made.value.tolist(), made.interval.tolist()) == ([1000.0, 0.0, 500.5], [10, 25, 0])
    assert series(TEMPERATURE, ts, u64(273_150, 260_650, 323_150), u64(0, 0, 0)).value.tolist() == [0.0, -12.5, 50.0]
    assert series(MEMORY, ts, u64(1, 2, 3), u64(9, 9, 9)).value.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("kind", [POWER, FREQUENCY, ENGINE, MEMORY, TEMPERATURE])
@pytest.mark.parametrize("count", [0, 1])
def test_few_readings(kind, count):
    made = series(kind, np.arange(count), u64(*range(count)), u64(*range(count)))
    assert len(made.ts) == len(made.value) == len(made.interval) == (0 if kind in (POWER, ENGINE) else count)
