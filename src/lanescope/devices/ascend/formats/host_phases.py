"""What the host did around a run: ``host_phase_records.jsonl``, one JSON object a line.

Source: hw-native-sys/simpler at 6ebaf77, runs of its simulated platforms.
"""

from __future__ import annotations

from functools import cache, cached_property
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class, replace
from lanescope.devices.ascend.formats.records import Bytes, Tally
from lanescope.errors import InputError
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: The largest ID of a process: Linux allows no more.
MOST_PROCESS = 1 << 22
#: Keys of a line, and of its records.
_RUN_KEYS = frozenset(("pid", "inv", "clock", "dropped", "records"))
_KEYS = frozenset(("phase", "start_ns", "end_ns", "detail", "tid"))
#: Numbers of a record, as columns.
_NUMBERS = (("start_ns", np.int64), ("end_ns", np.int64), ("detail", np.uint64), ("tid", np.int64))
#: Phases whose detail is the id of a task.
SUBMITTING = ("submit_task", "alloc_tensors", "graph_submit")


@frozen_class
class HostPhases:
    """Records of a host.

    Attributes:
        phase: object [n], kinds.
        begin, end: int64 [n], nanoseconds of the host's clock.
        detail: uint64 [n]: a task id, bytes, or an index, depending on the kind.
        process, thread, run: int64 [n].
        span: int64 [n], the span of a log that each is; -1: a record of the host.
        dropped: records that the recorder dropped.
        unknown_keys: keys that no known writer has.
        unknown_values: runs whose process or number no system gives.
        tally: what of the file was read; a count of lines.
    """

    phase: npt.NDArray[np.object_]
    begin: Int64
    end: Int64
    detail: npt.NDArray[np.uint64]
    process: Int64
    thread: Int64
    run: Int64
    span: Int64
    dropped: int
    unknown_keys: int
    unknown_values: int
    tally: Tally

    def __len__(self) -> int:
        return len(self.begin)

    @cached_property
    def kinds(self) -> tuple[list[str], Int64]:
        """The kinds that there are, in order of the alphabet, and which of them each record is of, int64 [n]."""
        phases = self.phase.tolist()
        kinds = sorted(set(phases))
        place = {kind: number for number, kind in enumerate(kinds)}
        return kinds, np.fromiter(map(place.__getitem__, phases), np.int64, len(phases))

    def are(self, *kinds: str) -> Mask:
        """Return which records are of one of these kinds, bool [n]."""
        known, code = self.kinds
        return np.array([kind in kinds for kind in known], np.bool_)[code]

    def take(self, rows: Mask) -> HostPhases:
        """Return some of the records, the rest as it is."""
        if rows.all():
            return self
        return replace(
            self,
            phase=self.phase[rows],
            begin=self.begin[rows],
            end=self.end[rows],
            detail=self.detail[rows],
            process=self.process[rows],
            thread=self.thread[rows],
            run=self.run[rows],
            span=self.span[rows],
        )

    def with_rows(self, other: HostPhases) -> HostPhases:
        """Return these records and those of another, the rest as it is."""
        names = ("phase", "begin", "end", "detail", "process", "thread", "run", "span")
        joined = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in names}
        return replace(self, **joined)


def read_host_phases(text: Bytes, path: str) -> HostPhases:
    """Read the records; a line that is not valid as a whole is left out and counted.

    Args:
        text: the file, uint8.
        path: for messages.

    Raises:
        InputError: no line is valid.
    """
    import msgspec

    decoder, usual = _decoder(is_usual=False), _decoder(is_usual=True)
    keys, odd = 0, 0
    phase: list[str] = []
    columns: list[list[npt.NDArray[Any]]] = []
    dropped, good, bad, lines, first, at = 0, 0, 0, 0, None, 0
    for line in text.tobytes().split(b"\n"):
        offset, at = at, at + len(line) + 1
        if not line.strip():
            continue
        try:
            try:
                run = usual.decode(line)
            except msgspec.ValidationError:
                # What is unusual is looked for only where there is something: few files have any.
                run = decoder.decode(line)
                more, wrong = _unusual(msgspec.json.decode(line))
                keys, odd = keys + more, odd + wrong
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            first = offset if first is None else first
            bad, lines = bad + len(line), lines + 1
            continue
        good, dropped = good + len(line), dropped + run.dropped
        count = len(run.records)
        phase += map(attrgetter("phase"), run.records)
        made = [np.fromiter(map(attrgetter(name), run.records), dtype, count) for name, dtype in _NUMBERS]
        columns.append([*made, *(np.full(count, value, np.int64) for value in (run.pid, run.inv))])
    if not good:
        raise InputError(f"{path}: no host phase records found", hint="pass the host_phase_records.jsonl of the run")
    begin, end, detail, thread, process, inv = map(np.concatenate, zip(*columns, strict=True))
    return HostPhases(
        phase=np.array(phase, object),
        begin=begin,
        end=end,
        detail=detail,
        process=process,
        thread=thread,
        run=inv,
        span=np.full(len(phase), -1, np.int64),
        dropped=min(dropped, 1 << 62),
        unknown_keys=keys,
        unknown_values=odd,
        tally=Tally(good, bad, lines, first),
    )


def _unusual(run: dict[str, Any]) -> tuple[int, int]:
    """Return how many keys of a valid line no known writer has, and how many values no system gives."""
    keys = len(run.keys() - _RUN_KEYS) + sum(len(row.keys() - _KEYS) for row in run["records"])
    return keys, int(not 1 <= run.get("pid", 1) <= MOST_PROCESS) + int(run.get("inv", 1) < 1)


@cache
def _decoder(*, is_usual: bool) -> Any:
    """Return the decoder of a line: the types say what is valid, or what known writers write."""
    from typing import Annotated, Literal

    import msgspec

    stamp = Annotated[int, msgspec.Meta(ge=0, le=(1 << 62) - 1)]
    number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
    process: Any = number
    inv: Any = number
    if is_usual:
        process = Annotated[int, msgspec.Meta(ge=1, le=MOST_PROCESS)]
        inv = Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)]
    row = msgspec.defstruct(
        "row",
        [
            ("phase", str),
            ("start_ns", Annotated[int, msgspec.Meta(ge=1, le=(1 << 62) - 1)]),
            ("end_ns", stamp),
            ("detail", Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)], 0),
            ("tid", number, 0),
        ],
        forbid_unknown_fields=is_usual,
    )
    run = msgspec.defstruct(
        "run",
        [
            ("clock", Literal["host_monotonic_ns"]),
            ("records", list[row]),  # type: ignore[valid-type]
            ("pid", process, 0),
            ("inv", inv, 0),
            ("dropped", stamp, 0),
        ],
        forbid_unknown_fields=is_usual,
    )
    return msgspec.json.Decoder(run)
