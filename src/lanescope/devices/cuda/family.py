"""The CUDA family: buffers of markers that GPU kernels write themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanescope.families.family import ClockSpec, Command, Family, Format, Simulator
from lanescope.families.options import Option, mega_hertz, nanoseconds, non_negative_int, positive_int, whole

if TYPE_CHECKING:
    from lanescope.source import Detection, FileHead

_HERE = "lanescope.devices.cuda."
_NPY = b"\x93NUMPY"
_LS2 = b"LSPROBE2"


def _threads(text: str) -> tuple[int, ...]:
    return tuple(positive_int(part) for part in text.split(","))


def _layout(text: str) -> str:
    from lanescope.devices.cuda.formats.layout import SHORT_NAMES

    if text in SHORT_NAMES.values() or text.endswith(".toml"):
        return text
    if text in SHORT_NAMES:
        return SHORT_NAMES[text]
    from lanescope.devices.cuda.formats.declared.catalog import shipped

    if text not in shipped():
        raise ValueError("there are " + ", ".join((*SHORT_NAMES, *shipped())))
    return text


def _simulated(text: str) -> str:
    from lanescope.devices.cuda.formats.layout import SHORT_NAMES

    if text in SHORT_NAMES.values():
        return text
    if text not in SHORT_NAMES:
        raise ValueError("there are " + ", ".join(SHORT_NAMES))
    return SHORT_NAMES[text]


def layout_params(text: str) -> dict[str, int]:
    """Read numbers by name, ``a=1,b=2``; for ``Option.parse``."""
    found = {}
    for part in text.split(","):
        name, is_given, value = part.partition("=")
        if not is_given:
            raise ValueError("expected NAME=NUMBER, separated by commas")
        found[name.strip()] = whole(value)
    return found


def _anchor(text: str) -> tuple[int, int, int | None]:
    ticks, unix, *error = (non_negative_int(part) for part in text.split(","))
    if len(error) > 1:
        raise ValueError("there are more than three numbers")
    return ticks, unix, error[0] if error else None


def _frequency(text: str) -> float:
    from lanescope.devices.cuda.formats.layout import MAX_MHZ

    value = mega_hertz(text)
    if not 1 <= value <= MAX_MHZ:
        raise ValueError(f"it is not between 1 and {MAX_MHZ} MHz")
    return value


def _stale(text: str) -> str:
    if text not in ("drop", "keep"):
        raise ValueError("it is neither drop nor keep")
    return text


def _after_finalize(text: str) -> str:
    if text not in ("split", "ignore"):
        raise ValueError("it is neither split nor ignore")
    return text


def _detect(head: FileHead) -> Detection:
    """Detect buffers by the header word and the share of words that name the lane of their slot."""
    from lanescope.source import Detection

    # The header alone excludes most other files, before the decoder is imported.
    words = [int.from_bytes(head.data[at : at + 4], "little") for at in (0, 4)]
    if not head.data.startswith((_NPY, _LS2)) and words[0] * words[1] > head.size // 8:
        return Detection(0, "", f"{words[0]} blocks of {words[1]} groups do not fit in {head.size} bytes")
    from lanescope.devices.cuda.formats.detect import detect

    return detect(head)


def _detect_iket(head: FileHead) -> Detection:
    """Detect the JSON of IKET; few files begin like JSON, so what looks at them is imported late."""
    from lanescope.source import Detection

    if not head.data[:64].lstrip().startswith(b"{"):
        return Detection(0, "", "not a JSON object")
    from lanescope.devices.cuda.formats.iket_detection import detect

    return detect(head)


def _detect_flytrace(head: FileHead) -> Detection:
    """Detect the JSON of FlyDSL, likewise."""
    from lanescope.source import Detection

    if not head.data[:64].lstrip().startswith(b"{"):
        return Detection(0, "", "not a JSON object")
    from lanescope.devices.cuda.formats.iket_detection import detect_flytrace

    return detect_flytrace(head)


FAMILY = Family(
    name="cuda",
    title="CUDA in-kernel probes: begin and end markers in a device buffer",
    formats=(
        Format(
            "cuda-buffer",
            detect=_detect,
            decode=_HERE + "decoder:CudaDecoder",
            layouts=_HERE + "formats.layout:RECORDS",
            fields=_HERE + "formats.field_map:field_map",
            stages={"packet": _HERE + "dump:packet_lines", "record": _HERE + "dump:record_lines"},
            random_access=True,
            keeps_lanes_whole=_HERE + "decoder:keeps_lanes_whole",
            # One word, the columns of half a slice, and scratch for the longest lane.
            bytes_per_row=100,
            advise=_HERE + "formats.detect:advise",
        ),
        Format(
            "iket-json",
            detect=_detect_iket,
            decode_file=_HERE + "emit.iket:decode",
            fields=_HERE + "formats.iket_fields:field_map",
            # The objects of a range, before they are columns.
            bytes_per_row=4000,
        ),
        Format(
            "flytrace-json",
            detect=_detect_flytrace,
            decode_file=_HERE + "emit.iket:decode_flytrace",
            fields=_HERE + "formats.flytrace_fields:field_map",
            bytes_per_row=4000,
        ),
    ),
    options=(
        Option(
            "layout",
            _layout,
            "buffer layout: tirx, flashinfer1, flashinfer2, warpscope, ls2, proton, the name of a declared one, or a "
            ".toml file that declares one (default: detect)",
            metavar="NAME|FILE.toml",
            claims=True,
        ),
        Option(
            "layout_params",
            layout_params,
            "numbers that a declared layout needs and that the buffer does not contain",
            metavar="NAME=NUMBER,...",
        ),
        Option("events", str, "event names: a list, or a .json or .txt file", metavar="A,B,...|FILE"),
        Option("groups", str, "names of the groups of a block, in order", metavar="A,B,..."),
        Option("stride", positive_int, "slots between two records of a lane (default: detect)", metavar="SLOTS"),
        Option(
            "anchor",
            non_negative_int,
            "64-bit %globaltimer reading at or before the launch",
            metavar="NS",
            settles="clock",
        ),
        Option("launch_ns", nanoseconds, "duration of the launch on the host clock, to check for wraps", metavar="NS"),
        Option(
            "host_anchor",
            _anchor,
            "%globaltimer reading and Unix time of the host, both in ns, with the error if known",
            metavar="NS,UNIX_NS[,ERROR_NS]",
            settles="clock",
        ),
        Option(
            "clock_mhz",
            _frequency,
            "frequency of the SM counters in MHz, for timestamps in cycles",
            metavar="MHZ",
            settles="frequency",
        ),
        Option(
            "max_records",
            positive_int,
            "record limit per lane of a warpscope probe",
            metavar="RECORDS",
        ),
        Option(
            "after_finalize",
            _after_finalize,
            "records after a finalize: split them into further launches, or ignore them",
            "split",
        ),
        Option(
            "stale",
            _stale,
            "records of an earlier launch in a buffer that was not cleared: drop them, or keep them as launches",
            "drop",
        ),
        Option(
            "device",
            str,
            "GPU name, to merge captures that share its timer",
            metavar="NAME",
            settles="device",
        ),
    ),
    limits=_HERE + "analysis.limits:LIMITS",
    tables=_HERE + "schema:TABLES",
    derived=_HERE + "analysis.views:VIEWS",
    stats=_HERE + "schema:STATS",
    clocks=(ClockSpec("globaltimer", ((0.9e9, 1.1e9),)), ClockSpec("clock64", ((0.1e9, 4e9),), "cuda_rate_estimated")),
    launches=_HERE + "analysis.launch_spans:launch_spans",
    causes=_HERE + "analysis.causes:causes",
    clock_pairs="lanescope.common.time_domains:flow_pairs",
    simulator=Simulator(
        _HERE + "simulate.simulator:simulate",
        options=(
            Option("layout", _simulated, "tirx, flashinfer1, flashinfer2, warpscope, ls2 or proton", "tirx"),
            Option("blocks", positive_int, "blocks of the grid", 132),
            Option("tiles", positive_int, "tiles that each block works through", 12),
            Option(
                "groups",
                positive_int,
                "groups per block: with several the first loads, the last of three or more stores",
                3,
            ),
            Option("threads", _threads, "threads per group, each group does all of the work", metavar="48,48,32"),
            Option("sms", positive_int, "blocks that run at the same time", 132),
            Option("tick", positive_int, "clock resolution in ns", 32),
            Option("slots", non_negative_int, "slots of the buffer (0: just enough)", 0),
            Option("stride", non_negative_int, "slots between two records of a lane (0: number of lanes)", 0),
            Option("nested", bool, "add an outer region around each tile", default=True),
            Option("instants", bool, "add an instant per tile", default=False),
            Option("wrap", bool, "let timestamps wrap halfway", default=False),
            Option("overflow", bool, "use a buffer that is too small for all records", default=False),
            Option("max_records", non_negative_int, "warpscope: record limit per lane (0: no limit)", 0),
            Option("ring", bool, "ls2: keep the newest records of a full lane, not the oldest", default=False),
            Option("clock64", bool, "ls2: timestamps of the SM counters, with arbitrary starts", default=False),
            Option("payload", bool, "ls2: add a payload to each record", default=False),
            Option(
                "across",
                bool,
                "ls2, proton (entries of Triton 3.9): asynchronous loads that end in another warp",
                default=False,
            ),
            Option("refused", non_negative_int, "ls2: blocks at the end of the grid without lanes in the buffer", 0),
            Option("gpu", non_negative_int, "ls2: GPU number, each GPU has its own timer", 0),
            Option("unfinished", non_negative_int, "lanes that stop inside a region", 0),
            Option("no_finalize", non_negative_int, "lanes that leave without finalize", 0),
            Option("two_writers", non_negative_int, "lanes that two threads write", 0),
            Option("clock_step", non_negative_int, "lanes whose clock steps back once", 0),
            Option("holes", non_negative_int, "lanes that lose some records in the middle", 0),
            Option("corrupt", non_negative_int, "words that name another lane", 0),
            Option("crossing", non_negative_int, "lanes with a pair of regions that cross", 0),
            Option("stray_ends", non_negative_int, "lanes with an unmatched end", 0),
            Option("reruns", non_negative_int, "lanes with records after their finalize", 0),
            Option(
                "stale",
                non_negative_int,
                "tiles of an earlier launch left in the buffer (0: cleared buffer)",
                0,
            ),
            Option("launches", positive_int, "earlier launches left in the buffer, each with more tiles", 1),
            Option(
                "apart",
                positive_int,
                "time in ns from the end of an earlier launch to the start of the next one",
                50_000_000,
            ),
        ),
        demo={"blocks": 3, "tiles": 8},
    ),
    sidecars=(".layout.toml",),
    commands=(
        Command(
            "cuda-layout",
            "write, check, find or explain layouts of in-kernel profilers",
            _HERE + "commands.cuda_layout:run",
            _HERE + "commands.cuda_layout:ARGUMENTS",
            examples=(
                "lanescope cuda-layout check mine.toml buffer.bin",
                "lanescope cuda-layout explain mine.toml buffer.bin --lane 3",
            ),
            has_output=True,
            windowless="it looks at the layout of bytes, before they have times",
        ),
    ),
)
