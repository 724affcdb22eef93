"""Run the exporter of TIRx or FlashInfer on a buffer and print what it draws: ``make gpu`` compares it with lanescope.

Arguments: ``tirx`` or ``flashinfer``, the buffer (``.npy``), the names of events by number as JSON, and for FlashInfer
its folder. Both exporters draw by ``tg4perfetto``; what they ask of it is remembered in its place.
Where PyTorch is missing, NumPy's arrays serve as its tensors: the exporters only read words.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import numpy as np

Region = tuple[str, str, int, int]


class Drawing:
    """A stand-in for ``TraceGenerator``, its groups and its tracks: remembers the regions that are drawn.

    Attributes:
        regions: path of the track, name, begin and end as the exporter gives them; one list for all tracks.
        unclosed: the regions of all tracks that nothing has closed.
    """

    def __init__(self, path: str = "", regions: list[Region] | None = None, unclosed: list[Any] | None = None) -> None:
        self._path = path
        self._stack: list[tuple[str, int]] = []
        self.regions: list[Region] = [] if regions is None else regions
        self.unclosed: list[Any] = [] if unclosed is None else unclosed

    def create_group(self, name: str) -> Drawing:
        return Drawing(f"{self._path}/{name}", self.regions, self.unclosed)

    def create_track(self, name: str = "") -> Drawing:
        return Drawing(f"{self._path}/{name}" if name else self._path, self.regions, self.unclosed)

    def open(self, ts: int, name: str) -> None:
        self._stack.append((name, ts))
        self.unclosed.append((self._path, name, ts))

    def close(self, ts: int) -> None:
        name, begin = self._stack.pop()
        self.unclosed.remove((self._path, name, begin))
        self.regions.append((self._path, name, begin, ts))

    def instant(self, ts: int, name: str) -> None:
        self.regions.append((self._path, name, ts, ts))

    def flush(self) -> None:
        """Nothing is written."""


def tensors() -> ModuleType:
    """Return PyTorch, or a stand-in."""
    with suppress(ImportError):
        return importlib.import_module("torch")

    class Tensor(np.ndarray):
        """Words that are on the host already."""

        def cpu(self) -> Tensor:
            return self

    found = MagicMock(name="torch")
    for name in ("int32", "uint32", "uint64"):
        setattr(found, name, np.dtype(name))
    found.tensor = lambda array: np.asarray(array).view(Tensor)
    found.Tensor = Tensor
    sys.modules["torch"] = found
    return found


def exporter(which: str, folder: Path | None) -> Callable[..., None]:
    """Return the producer's function."""
    if which == "tirx":
        from tvm.tirx import bench

        return bench.export_to_perfetto_trace
    assert folder is not None
    # Without the package around it, which loads kernels.
    spec = importlib.util.spec_from_file_location("flashinfer_profiler", folder / "profiler" / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.export_to_perfetto_trace


def drawn(which: str, words: np.ndarray, names: list[str], folder: Path | None) -> dict[str, Any]:
    """Return the regions that the exporter draws, and how many it leaves unclosed."""
    drawing = Drawing()
    sys.modules["tg4perfetto"] = ModuleType("tg4perfetto")
    sys.modules["tg4perfetto"].TraceGenerator = lambda _: drawing  # type: ignore[attr-defined]
    # TIRx's exporter does nothing in a test.
    os.environ.pop("PYTEST_CURRENT_TEST", None)
    torch = tensors()
    export = exporter(which, folder)
    if which == "tirx":
        export(words, "unused", names)
    else:
        export(torch.tensor(words), names, "unused")
    return {"regions": drawing.regions, "unclosed": len(drawing.unclosed)}


if __name__ == "__main__":
    _, producer, path, given, *rest = sys.argv
    print(json.dumps(drawn(producer, np.load(path), json.loads(given), Path(rest[0]) if rest else None)))
