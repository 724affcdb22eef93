"""Recognition of declared layouts: arithmetic of the header, and agreement of the records with their slots.

Only layouts whose header gives all of their parameters are ever concluded, and only if every test holds: each number of
the header, each lane's header, each record. Layouts without a header are used on request only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.declared import catalog
from lanescope.devices.cuda.formats.declared.arrays import Arrays, is_npz
from lanescope.devices.cuda.formats.declared.columns import Columns
from lanescope.devices.cuda.formats.declared.declaration import MAIN, MOST_READING, Declaration
from lanescope.devices.cuda.formats.declared.geometry import Geometry, locate, parameters
from lanescope.devices.cuda.formats.declared.records import EMPTY, I64, UNREADABLE, Records, kinds
from lanescope.devices.cuda.formats.lanes import STEP_BACK
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
#: With fewer lanes, nothing tells how far apart they are.
_LANES_OF_A_STRIDE = 2
#: The share of records from which on their order cannot be right.
MOST_ODD = 0.1
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
        params: parameters with which it fits, that the user would give.
        lane: the first lane that fails; None: that is none.
        advice: what to change.
    """

    name: str
    failed: str
    used: int
    good: int
    score: float
    params: Mapping[str, int] = {}
    lane: int | None = None
    advice: str = ""

    @property
    def is_enough(self) -> bool:
        """Whether there are so many records that they hardly agree by coincidence."""
        return self.used >= _ENOUGH

    @property
    def options(self) -> str:
        """The options that select it."""
        given = ",".join(f"{name}={value}" for name, value in self.params.items())
        return f"--layout {self.name}" + (f" --layout-params {given}" if given else "")

    @property
    def is_certain(self) -> bool:
        """Whether all tests hold, on enough records."""
        return not self.failed and self.is_enough and self.name not in _OWN_READER

    @property
    def reason(self) -> str:
        """What was checked and how it came out."""
        what = "header fits the size" if not self.params else "headers of all lanes fit the size"
        return self.failed or f"{what}, {self.good:,} of {self.used:,} records match their lane"


def fits(content: WordSource, size: int, names: Collection[str] | None = None) -> Iterator[Fit]:
    """Yield the layouts whose header arithmetic holds, the best one first.

    Args:
        content: the beginning of the file, in memory.
        size: bytes of the whole array.
        names: the layouts that are tried; None: all that have a header.
    """
    data = content.words(1)
    if not len(data) or is_npz(data[:4].tobytes()):
        return
    arrays = Arrays({MAIN: data}, {MAIN: content.before}, whole=size)
    found = [fit for name in names or _TRIED if (fit := _fit(catalog.load(name), arrays)) is not None]
    yield from sorted(found, key=lambda fit: -fit.score)


def judge(declaration: Declaration, arrays: Arrays, params: Mapping[str, int]) -> Fit:
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
        problem = error.message.removeprefix(f"layout {declaration.name}").lstrip(": ").removeprefix("does not fit: ")
        return Fit(declaration.name, problem, 0, 0, 0.0, advice=error.hint or "")
    unsound = int(np.count_nonzero(~geometry.is_sound))
    used = int(np.count_nonzero(kind != EMPTY))
    good = int(np.count_nonzero(kind < UNREADABLE) + np.count_nonzero(kind > EMPTY))
    failed, lane = "", None
    if unsound:
        lane = int(np.argmin(geometry.is_sound))
        test_text = _test_of_lane(declaration, geometry, lane)
        failed = f"{test_text} does not hold in {unsound:,} of {geometry.lanes:,} lanes"
    elif columns.bad_count:
        failed = f"{columns.bad_count:,} of {geometry.lanes:,} lanes count more records than there can be"
    elif good < used:
        lane = int(np.searchsorted(columns.start, int(np.argmax(kind == UNREADABLE)), side="right")) - 1
        failed = f"{used - good:,} of {used:,} records {_what_fails(declaration, columns, kind)}"
    elif not used:
        failed = "there are no records"
    elif _have_one_time(declaration, columns, kind):
        failed = "all timestamps are equal"
    share = (good / used if used else 0.0) * (1 - unsound / geometry.lanes)
    return Fit(declaration.name, failed, used, good, share, lane=lane)


def order(declaration: Declaration, arrays: Arrays, params: Mapping[str, int]) -> tuple[int, dict[str, int]]:
    """Return how many records are out of order, and what becomes of all: a wrong place or clock shows there."""
    from lanescope.devices.cuda.formats.declared.reader import DeclaredBuffer

    buffer = DeclaredBuffer(declaration, arrays, params)
    whole = 0, len(buffer.lanes)
    decoded = buffer.decode(whole, split=True, step_back=STEP_BACK)
    if buffer.part_launches(decoded.summary, keep=False, launch_ns=None):
        # What an earlier launch left is out of order with the latest one, and in order in itself.
        decoded = buffer.decode(whole, split=True, step_back=STEP_BACK)
    total = {name: int(column.sum()) for name, column in decoded.summary.items()}
    if buffer.overwritten is not None:
        # The position before the oldest record of a ring represents those that are gone.
        total["missing"] -= int((buffer.overwritten * (decoded.summary["missing"] > 0)).sum())
    total["dropped"] = 0 if buffer.grid.lost is None else int(buffer.grid.lost.sum())
    records = buffer.records
    if declaration.pairing == "token":
        starts, ends, joined = _across_lanes(records)
        total["slices"], total["open"] = starts, starts - joined
        total["unmatched"], total["instants"] = ends - joined, total["instants"] - starts - joined
    if records.end is not None:
        # Whole regions are stored where they begin or when they end.
        steps_back = min(_steps_back(records, stamps, buffer.stamp_bits) for stamps in (records.begin, records.end))
        total["backward"] = max(total["backward"], steps_back)
    # The starts of ends at the front of a ring are gone.
    is_turned = buffer.overwritten is not None and bool(buffer.overwritten.any())
    return max(0 if is_turned else total["unmatched"], total["backward"], total["negative"]), total


def is_in_order(name: str, content: WordSource, size: int) -> bool:
    """Return whether records that agree with their places make sense one after the other as well.

    Args:
        name: a layout that fits.
        content: the beginning of the file, in memory.
        size: bytes of the whole array.
    """
    declaration = catalog.load(name)
    arrays = Arrays({MAIN: content.words(1)}, {MAIN: content.before}, whole=size)
    odd, total = order(declaration, arrays, {})
    return odd <= MOST_ODD * total["records"] and not kinds_that_miss(declaration, total)


def kinds_that_miss(declaration: Declaration, total: Mapping[str, int]) -> str:
    """Return what is wrong with the kinds of all records; empty: nothing.

    Args:
        declaration: the layout.
        total: what became of the records, of ``order``.
    """
    regions, is_pairs = total["slices"] - total["open"], declaration.kind is not None and not declaration.is_spans
    if is_pairs and not regions and declaration.pairing != "boundary":
        if total["open"] > 1 and not total["unmatched"]:
            return f"no record of {total['open']:,} starts is an end"
        if total["unmatched"] > 1 and not total["open"]:
            return f"no record of {total['unmatched']:,} ends is a start"
        if total["open"] > 1:
            where = "block" if declaration.pairing == "token" else "lane"
            return f"none of {total['open']:,} starts has an end of its event in its {where}"
    return ""


def _across_lanes(records: Records) -> tuple[int, int, int]:
    """Return how many starts there are, how many ends, and how many of them have a partner in the lanes of their block.

    Which start an end closes is a matter of time, and no matter here.
    """
    lanes = np.repeat(np.arange(len(records)), np.diff(records.start))
    is_start, is_end = records.kind == layout.BEGIN, records.kind == layout.END
    of = np.flatnonzero(is_start | is_end)
    shared: list[I64] = [records.block[lanes[of]], records.event[of].astype(np.int64)]
    if records.token is not None:
        shared.append(records.token[of])
    code = np.unique(np.stack(shared), axis=1, return_inverse=True)[1].ravel()
    of_code = np.stack([np.bincount(code, kinds[of], int(code.max(initial=0)) + 1) for kinds in (is_start, is_end)])
    return int(np.count_nonzero(is_start)), int(np.count_nonzero(is_end)), int(of_code.min(axis=0).sum())


def unread(declaration: Declaration, arrays: Arrays, params: Mapping[str, int]) -> str:
    """Return how many lanes have room behind the last one that is read; empty: none.

    Lanes that take turns are left out: what is behind them is a part of a row.
    """
    geometry = locate(declaration, arrays, params)
    if geometry.lanes < _LANES_OF_A_STRIDE or declaration.capacity is None:
        return ""
    step = int(np.diff(geometry.base).min())
    behind = len(arrays.main) - int(geometry.base[-1]) - step
    is_apart = step >= abs(geometry.stride) * int(geometry.capacity.min()) > 0
    if not is_apart or behind < step:
        return ""
    return f"{behind:,} of {len(arrays.main):,} bytes are behind the last lane: room for {behind // step:,} more lanes"


def _steps_back(records: Records, stamps: I64, bits: int) -> int:
    """Return how many stamps are before the one before them in their lane, by less than half of their range."""
    rows = np.flatnonzero(records.kind < UNREADABLE)
    lane = np.searchsorted(records.start, rows, side="right")
    step = np.diff(stamps[rows]) % (1 << bits)
    return int(np.count_nonzero((step >= 1 << (bits - 1)) & (lane[1:] == lane[:-1])))


def _have_one_time(declaration: Declaration, columns: Columns, kind: npt.NDArray[np.uint8]) -> bool:
    """Return whether several records have one timestamp: what passes for records may be padding."""
    times = columns.value(declaration.roles["begin" if declaration.is_spans else "time"])[kind < UNREADABLE]
    return len(times) > 1 and int(times.min()) == int(times.max())


def _test_of_lane(declaration: Declaration, geometry: Geometry, lane: int) -> str:
    """Return the test that the header of a lane fails: its own, or that its anchor is a reading of a counter."""
    check, anchor = declaration.lane_check, declaration.clock.anchor
    if anchor is None or (check is not None and not geometry.lane_value(check)[lane]):
        return "" if check is None else check.text
    return f"0 <= {anchor.text} < {MOST_READING}"


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
