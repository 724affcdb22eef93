"""Recognition of declared layouts: arithmetic of the header, and agreement of the records with their slots.

Only layouts whose header gives all of their parameters are ever concluded, and only if every test holds: each number of
the header, each lane's header, each record. Layouts without a header are used on request only.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats.declared import catalog
from lanescope.devices.cuda.formats.declared.arrays import Arrays, is_npz
from lanescope.devices.cuda.formats.declared.columns import Columns
from lanescope.devices.cuda.formats.declared.declaration import MAIN, Declaration
from lanescope.devices.cuda.formats.declared.geometry import locate, parameters
from lanescope.devices.cuda.formats.declared.records import EMPTY, UNREADABLE, kinds
from lanescope.devices.cuda.formats.word_source import WordSource
from lanescope.errors import LanescopeError

#: Layouts that are tried, in the order in which they win where several fit.
_TRIED = (
    "tirx-v1",
    "flashinfer-v2",
    "mirage-mpk",
    "mirage-transpiler",
    "triton-distributed",
    "sm-profiler",
)
#: Layouts that have readers of their own, which judge their buffers themselves.
_OWN_READER = ("tirx-v1", "flashinfer-v2")
#: Fewer records may agree by coincidence.
_ENOUGH = 8
#: Records of the lanes of the beginning; of larger grids no record may be in it.
_MOST_LANES = 1 << 20


@frozen_class
class Fit:
    """How well a layout fits a file.

    Attributes:
        name: the layout.
        failed: the first test that failed; empty: all hold.
        used: positions that hold a record.
        good: records that agree with their place.
        score: share of tests and records that hold, to compare layouts.
    """

    name: str
    failed: str
    used: int
    good: int
    score: float

    @property
    def is_certain(self) -> bool:
        """Whether all tests hold, on enough records."""
        return not self.failed and self.used >= _ENOUGH and self.name not in _OWN_READER

    @property
    def reason(self) -> str:
        """What was checked and how it came out."""
        return self.failed or f"header fits the size, {self.good:,} of {self.used:,} records match their lane"


def fits(content: WordSource, size: int) -> Iterator[Fit]:
    """Yield the layouts whose header arithmetic holds, the best one first.

    Args:
        content: the beginning of the file, in memory.
        size: bytes of the whole array.
    """
    data = content.words(1)
    if not len(data) or is_npz(data[:4].tobytes()):
        return
    arrays = Arrays({MAIN: data}, {MAIN: content.before}, whole=size)
    found = [fit for name in _TRIED if (fit := _fit(catalog.load(name), arrays)) is not None]
    yield from sorted(found, key=lambda fit: -fit.score)


def judge(declaration: Declaration, arrays: Arrays, params: dict[str, int]) -> Fit:
    """Return how well a layout fits a file that was named together with it.

    Args:
        declaration: the layout.
        arrays: the content.
        params: parameters that the user gave.
    """
    try:
        scalars = parameters(declaration, arrays, params)
        for test in declaration.match:
            if not test.value(scalars):
                return Fit(declaration.name, f"{test.text} does not hold", 0, 0, 0.0)
        geometry = locate(declaration, arrays, params)
        columns = Columns(declaration, arrays, geometry)
        kind = kinds(declaration, columns)
    except LanescopeError as error:
        return Fit(declaration.name, error.message, 0, 0, 0.0)
    unsound = int(np.count_nonzero(~geometry.is_sound))
    used = int(np.count_nonzero(kind != EMPTY))
    good = int(np.count_nonzero(kind < UNREADABLE) + np.count_nonzero(kind > EMPTY))
    failed = ""
    if unsound:
        test_text = declaration.lane_check.text if declaration.lane_check is not None else ""
        failed = f"{test_text} does not hold in {unsound:,} of {geometry.lanes:,} lanes"
    elif columns.bad_count:
        failed = f"{columns.bad_count:,} of {geometry.lanes:,} lanes count more records than there can be"
    elif good < used:
        failed = f"{used - good:,} of {used:,} records {_what_fails(declaration, columns, kind)}"
    elif not used:
        failed = "there are no records"
    elif _have_one_time(declaration, columns, kind):
        failed = "all timestamps are equal"
    share = (good / used if used else 0.0) * (1 - unsound / geometry.lanes)
    return Fit(declaration.name, failed, used, good, share)


def _have_one_time(declaration: Declaration, columns: Columns, kind: npt.NDArray[np.uint8]) -> bool:
    """Return whether several records have one timestamp: what passes for records may be padding."""
    times = columns.value(declaration.roles["begin" if declaration.is_spans else "time"])[kind < UNREADABLE]
    return len(times) > 1 and int(times.min()) == int(times.max())


def _what_fails(declaration: Declaration, columns: Columns, kind: npt.NDArray[np.uint8]) -> str:
    """Return the test that records fail: that of their place, or that of their kind."""
    agree = declaration.record.agree
    if agree is not None and ((columns.value(agree) == 0) & (kind == UNREADABLE)).any():
        return f"contradict {agree.text}"
    return "are of an unknown kind" if declaration.kind is not None else "are unreadable"


def _fit(declaration: Declaration, arrays: Arrays) -> Fit | None:
    """Return how well a layout fits; None where its header excludes it."""
    try:
        scalars = parameters(declaration, arrays, {})
    except LanescopeError:
        return None
    if not all(test.value(scalars) for test in declaration.match):
        return None
    if scalars.get("num_blocks", 0) * scalars.get("num_groups", 1) > _MOST_LANES:
        return None
    found = judge(declaration, arrays, {})
    return found if found.used else None
