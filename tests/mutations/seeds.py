"""The captures that are changed: a few small ones of each layout of each family, simulated or recorded by us."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lanescope.devices.ascend.formats.device_structs import REGIONS
from lanescope.devices.ascend.formats.encode_dump import encode_dump
from lanescope.devices.ascend.formats.files import read_records, terminated
from lanescope.devices.levelzero.formats import layout as levelzero
from lanescope.families import registry
from lanescope.families.family import Format
from lanescope.families.options import resolve_options

DATA = Path(__file__).parent / "data"
GOLDEN = Path(__file__).parents[1] / "devices"


class Seed(NamedTuple):
    """A sound capture.

    Attributes:
        family: its family.
        format: its layout, as the ledger calls it.
        files: content by name, the main file first.
        main: what is opened, where that is not the first file.
        options: decode options.
        which: the format that declares its fields.
    """

    family: str
    format: str
    files: Mapping[str, bytes]
    main: str = ""
    options: Mapping[str, Any] = {}
    which: int = 0

    @property
    def declared(self) -> Format:
        """The format that declares its fields."""
        return registry.family(self.family).formats[self.which]


def simulated(family: str, seed: int = 1, **options: Any) -> dict[str, bytes]:
    """Return the files of a simulated capture."""
    found = registry.family(family)
    return dict(found.simulate(resolve_options(found.sim_options, options, what="simulator"), seed).files)


def _aie() -> Sequence[Seed]:
    kinds = {
        "mode 0": {"tiles": 2, "records": 150},
        "mode 0, shared stop": {"tiles": 4, "records": 100, "shared_stop": True},
        "mode 1": {"tiles": 2, "records": 150, "mode": 1},
        "mode 2": {"tiles": 2, "records": 150, "mode": 2},
    }
    return [Seed("aie", name, simulated("aie", **options)) for name, options in kinds.items()]


def _ascend() -> Sequence[Seed]:
    small = {"tasks": 40, "aic": 3, "aiv": 6}
    versions = {"v1b": {}, "v2": {}, "v3": {}, "v3c": {"host": True}, "v4": {}}
    found = [
        Seed("ascend", f"swimlane {version}", simulated("ascend", format_version=version, **small, **more))
        for version, more in versions.items()
    ]
    beside = simulated("ascend", format_version="v3c", host=True, pmu=True, scopes=True, log=True, **small)
    return [*found, Seed("ascend", "swimlane v3c, all files", beside), Seed("ascend", "raw dump", _dump())]


def _dump() -> dict[str, bytes]:
    """Return a dump of a device without phases, whose buffers would be a megabyte each."""
    files = simulated("ascend", format_version="v3c", tasks=40, aic=1, aiv=2, level=2)
    content = np.frombuffer(next(iter(files.values())), np.uint8)
    return {"swimlane.bin": encode_dump(read_records(terminated(content), "run.json"), REGIONS[0])}


def _cuda() -> Sequence[Seed]:
    small = {"blocks": 4, "tiles": 5}
    kinds = {
        "tirx-v1": {"layout": "tirx-v1", "instants": True},
        "flashinfer-v1": {"layout": "flashinfer-v1"},
        "flashinfer-v2": {"layout": "flashinfer-v2"},
        "warpscope": {"layout": "warpscope"},
        "ls2": {"layout": "ls2"},
        "ls2, payloads, SM clock": {"layout": "ls2", "payload": True, "clock64": True},
        "proton": {"layout": "proton", "instants": True},
        "proton of Triton 3.9": {"layout": "proton", "across": True},
    }
    found = []
    for name, options in kinds.items():
        told = {"layout": options["layout"]} if name in ("flashinfer-v1", "warpscope") else {}
        found.append(Seed("cuda", name, simulated("cuda", **small, **options), options=told))
    golden = "tirx_4x2_nested.npy"
    found.append(Seed("cuda", "tirx-v1, golden", {golden: (GOLDEN / "cuda/golden" / golden).read_bytes()}))
    for form, name in (("tables", "iket_pid_1.trace.json"), ("inline", "inline.trace.json")):
        files = {name: (GOLDEN / "cuda/golden/iket" / name).read_bytes()}
        found.append(Seed("cuda", f"iket-json, {form}", files, which=1))
    name = "flytrace.json"
    found.append(Seed("cuda", "flytrace-json", {name: (GOLDEN / "cuda/golden" / name).read_bytes()}, which=2))
    return found


def _levelzero() -> Sequence[Seed]:
    found = [
        Seed("levelzero", f"{levelzero.TEXT_FORMAT}, {style}", simulated("levelzero", ops=40, style=style))
        for style in ("numbered", "thapi")
    ]
    return [*found, *map(recorded, ("resubmit", "saxpy", "sampled"))]


def recorded(name: str) -> Seed:
    """Return a small recording by its name."""
    folder = DATA / f"recording_{name}"
    files = {f"run/{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}
    return Seed("levelzero", levelzero.CTF_FORMAT, files, main="run", which=1)


def _kineto() -> Sequence[Seed]:
    small = {"steps": 1, "kernels": 8}
    kinds = {
        "relative times": {},
        "absolute times": {"absolute": True},
        "no device": {"device": False},
    }
    return [Seed("kineto", name, simulated("kineto", **small, **options)) for name, options in kinds.items()]


def _chrome() -> Sequence[Seed]:
    small = {"events": 40, "pairs": 8, "asynchronous": 6, "instants": 8, "counters": 8, "flows": 6}
    found = [
        Seed("chrome", name, simulated("chrome", **small, **options))
        for name, options in {"object": {}, "array": {"array": True}}.items()
    ]
    return found


def _perfetto() -> Sequence[Seed]:
    small = {"slices": 12, "threads": 2, "samples": 6, "flows": 0.5, "other": 1}
    return [Seed("perfetto", style, simulated("perfetto", style=style, **small)) for style in ("sdk", "plain")]


_SEEDS: Mapping[str, Callable[[], Sequence[Seed]]] = {
    "aie": _aie,
    "ascend": _ascend,
    "cuda": _cuda,
    "levelzero": _levelzero,
    "kineto": _kineto,
    "chrome": _chrome,
    "perfetto": _perfetto,
}
#: In the order of the page.
FAMILIES = tuple(_SEEDS)


@cache
def seeds(family: str) -> Sequence[Seed]:
    """Return the captures of a family."""
    return _SEEDS[family]()
