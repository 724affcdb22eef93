"""CTF of other producers: events read into the model of calls and points, and calls summed in bounded memory.

Traces are made by LTTng and babeltrace2 themselves, and from simulated programs in THAPI's form. Times are
those of the processor, of all threads, least of some runs; the content is hashed meanwhile, as users have it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench_levelzero import simulator_options
from measure import Row

ROOT = Path(__file__).resolve().parents[1]
#: Rounds of the program that LTTng records: seven events in each of two threads.
ROUNDS = 60_000
#: Appends of the simulated program: six events each.
APPENDS = 140_000
RUNS = 8
GOAL = 5  # million events a second
#: Events of the traces whose calls are summed; both are larger than what is held of them.
FEW, MANY = 50_000_000, 100_000_000

#: A process of its own: nothing else has its memory, and imports are paid before. FOLDER, RUNS -> JSON.
_READ = """
import json, sys, time
import lanescope
from lanescope.devices.levelzero.formats.foreign import events, streams
from lanescope.source import Capture

def model():
    with Capture(sys.argv[1]) as capture:
        found = streams.read(capture)
        events.model(found)
        return sum(len(stream.walk.kinds) for stream in found.streams)

def whole():
    lanescope.open(sys.argv[1])

taken = []
for run in (model, whole):
    count = run() or count
    best = 1e9
    for _ in range(int(sys.argv[2])):
        begin = time.process_time()
        run()
        best = min(best, time.process_time() - begin)
    taken.append(best)
print(json.dumps([count, *taken]))
"""

#: The same for sums. FOLDER -> JSON.
_TALLY = """
import json, sys, time
from pathlib import Path
from lanescope.devices.levelzero.analysis import windows

begin = time.process_time()
found = windows.tally(Path(sys.argv[1]))
taken = time.process_time() - begin
calls = sum(sums.count for sums in found.calls.values())
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([found.events, calls, taken, int(peak) / 1024]))
"""

_DENSE_UUID = bytes(range(16))
#: Ten bytes a call: a number, and the low half of the time.
_DENSE = """/* CTF 1.8 */
typealias integer { size = 8; } := u8;
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; } := u64;
trace { major = 1; minor = 8; uuid = "00010203-0405-0607-0809-0a0b0c0d0e0f"; byte_order = le;
  packet.header := struct { u32 magic; u8 uuid[16]; }; };
clock { name = monotonic; freq = 1000000000; };
typealias integer { size = 32; align = 8; map = clock.monotonic.value; } := low_t;
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := time_t;
stream { packet.context := struct { time_t timestamp_begin; u64 content_size; u64 packet_size; u32 vpid; u32 vtid; };
  event.header := struct { u8 id; low_t timestamp; }; };
"""
_PACKET = np.dtype(
    [("magic", "<u4"), ("uuid", "V16"), ("begin", "<u8"), ("content", "<u8"), ("size", "<u8"), ("ids", "<u4", 2)]
)
_EVENT = np.dtype([("id", "u1"), ("time", "<u4")])
_FUNCTIONS, _EVENTS_OF_PACKET = 20, 1 << 17


def dense(folder: Path, count: int) -> None:
    """Write a trace of at least so many entries and exits of functions, in four threads, without fields."""
    folder.mkdir()
    events = "".join(
        f'event {{ name = "app:work_{number // 2}_{("entry", "exit")[number % 2]}"; id = {number}; }};\n'
        for number in range(2 * _FUNCTIONS)
    )
    (folder / "metadata").write_text(_DENSE + events)
    body = np.empty(_EVENTS_OF_PACKET, _EVENT)
    place = np.arange(_EVENTS_OF_PACKET)
    body["id"] = place // 2 % _FUNCTIONS * 2 + place % 2
    body["time"] = place * 50
    head = np.zeros(1, _PACKET)
    head["magic"], head["uuid"] = 0xC1FC1FC1, np.void(_DENSE_UUID)
    head["content"] = head["size"] = 8 * (head.nbytes + body.nbytes)
    packets = -(-count // (4 * _EVENTS_OF_PACKET))
    for thread in range(4):
        head["ids"] = 1, 10 + thread
        with (folder / f"channel_{thread}").open("wb") as file:
            for packet in range(packets):
                head["begin"] = packet << 32
                file.write(head.tobytes())
                file.write(body.data)


def _run(program: str, *arguments: str | Path) -> list[Any]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    made: list[Any] = json.loads(done.stdout)
    return made


def read(name: str, folder: Path) -> list[Row]:
    """Return how fast a trace is read into the model, and into a timeline."""
    count, model, whole = _run(_READ, folder, str(RUNS))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    note = f"{count} events, {size / 1e6:.0f} MB in {model:.3f} s"
    return [
        Row(f"{name}, into the model", count / model / 1e6, "M events/s", GOAL, higher_is_better=True, note=note),
        Row(f"{name}, into a timeline", count / whole / 1e6, "M events/s", note=f"{whole:.3f} s"),
    ]


def _of_tools(folder: Path) -> list[Row]:
    """Measure what LTTng records, and the same as babeltrace2 rewrites it."""
    from wire import lttng_session

    if not lttng_session.available():
        needs = "needs LTTng and babeltrace2: make test-tools"
        return [
            Row(f"{name}, into the model", None, "M events/s", GOAL, higher_is_better=True, note=needs)
            for name in ("by LTTng", "rewritten by babeltrace2")
        ]
    recorded = folder / "lttng"
    recorded.mkdir(mode=0o755)
    program = lttng_session.build(recorded)
    program.chmod(0o755)
    traces = lttng_session.record(recorded, program, str(ROUNDS), channel=("--subbuf-size=4M", "--num-subbuf=16"))
    rewritten = folder / "babeltrace2"
    subprocess.run(
        [lttng_session.BIN / "babeltrace2", traces, "-c", "sink.ctf.fs", "-p", f'path="{rewritten}"'],
        check=True,
        capture_output=True,
    )
    return read("by LTTng", traces) + read("rewritten by babeltrace2", rewritten)


def _of_thapi(folder: Path) -> list[Row]:
    """Measure the trace of a simulated program, in THAPI's form."""
    from devices.levelzero import thapi_ctf
    from lanescope.devices.levelzero.simulate.encode_text import encode
    from lanescope.devices.levelzero.simulate.simulator import simulate_events

    events, _ = simulate_events(simulator_options(style="thapi", ops=APPENDS), 1)
    thapi_ctf.write(encode(events), folder / "thapi")
    return read("by THAPI", folder / "thapi")


def _tallies(folder: Path) -> list[Row]:
    found = {}
    for count in (FEW, MANY):
        dense(folder / "dense", count)
        found[count] = _run(_TALLY, folder / "dense")
        shutil.rmtree(folder / "dense")
    events, calls, taken, peak = found[MANY]
    fewer, _, _, few_peak = found[FEW]
    note = f"{events} events, {calls} calls; {few_peak:.0f} MiB for {fewer} events"
    return [
        Row("tally of 1e8 events, peak memory", peak, "MiB", 512, note="whole process"),
        Row(f"tally, memory for {events / fewer:.0f} times the events", peak / few_peak, "x", 1.1, note=note),
        Row("tally", events / taken / 1e6, "M events/s", note=f"{taken:.1f} s"),
    ]


def run() -> list[Row]:
    """Measure."""
    sys.path.insert(0, str(ROOT / "tests"))
    # LTTng's daemon may run as another user, who has to come this far.
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        return [*_of_tools(folder), *_of_thapi(folder), *_tallies(folder)]
