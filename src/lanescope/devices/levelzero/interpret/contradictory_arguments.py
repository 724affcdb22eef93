"""What arguments of calls and sensors of devices contradict: the API, what a call created, what was declared."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, Mask, group, join
from lanescope.common.stat_tally import StatTally
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events, is_text
from lanescope.trace import Table

#: Words of arguments that the API, or the recorder, defines. Source: ze_api.h of API 1.17.
_WORDS = {
    "mode": ("DEFAULT", "SYNCHRONOUS", "ASYNCHRONOUS"),
    "priority": ("NORMAL", "PRIORITY_LOW", "PRIORITY_HIGH"),
    "format": ("IL_SPIRV", "NATIVE"),
    "state": ("read", "null", "unreadable"),
}
_FLAGS = ("flags", "host_flags", "signal", "wait")
SENSOR_KINDS = ("power", "frequency", "engine", "memory", "temperature")


def note_arguments(events: Events, notes: StatTally) -> None:
    """Note values that the API does not have, and lists that are not what their creation asked for."""
    arguments = events["arguments"]
    if not len(arguments):
        return
    wrong = np.zeros(len(arguments), np.bool_)
    for name, words in _WORDS.items():
        wrong |= _with_text(arguments, name, lambda text, words=words: text not in words)
    for name in _FLAGS:
        wrong |= _with_text(arguments, name, lambda text: "0x" in text)
    alignment, size = arguments.values("alignment"), arguments.values("bytes")
    # 0 means any alignment; all others are powers of two.
    wrong |= arguments.valid("alignment") & (alignment & (alignment - np.uint64(1)) != 0) & (alignment != 0)
    wrong |= arguments.valid("bytes") & (size > np.uint64(layout.MOST_SIZE))
    wrong |= arguments.valid("count") & (arguments.values("count") == 0)
    notes.add_times("levelzero_impossible_value", arguments.values("ts")[wrong])
    _note_lists(events, notes)


def _with_text(table: Table, name: str, is_wrong: object) -> Mask:
    column = table.column(name)
    texts = column.dictionary.texts if column.dictionary else []
    found: Mask = np.array([is_wrong(text) for text in texts] or [False], np.bool_)[column.values]  # type: ignore[operator]
    return found if column.valid is None else found & column.valid


def _note_lists(events: Events, notes: StatTally) -> None:
    """Note lists whose queue group, queue or order differ from the descriptor of the call that made them."""
    arguments, lists, calls = events["arguments"], events["lists"], events["calls"]
    made = np.flatnonzero(is_text(lists, "action", "create"))
    place = np.searchsorted(calls.values("seq"), arguments.values("seq"))
    functions = calls.column("function").dictionary
    creates = [text.startswith("zeCommandListCreate") for text in (functions.texts if functions else [])]
    place = np.minimum(place, max(len(calls) - 1, 0))
    if not len(made) or not len(calls) or not any(creates):
        return
    asked = np.flatnonzero(
        np.array(creates, np.bool_)[calls.codes("function")[place]]
        & (calls.values("seq")[place] == arguments.values("seq"))
    )
    row = join(
        [lists.values("thread_id")[made]],
        lists.values("seq")[made],
        [arguments.values("thread_id")[asked]],
        arguments.values("seq")[asked],
    ).last_before()
    # The first list behind a descriptor is the one that it is of.
    chosen = np.flatnonzero(row >= 0)
    _, first = np.unique(row[chosen], return_index=True)
    chosen = chosen[first]
    at, of = made[chosen], asked[row[chosen]]
    wrong = np.zeros(len(at), np.bool_)
    for name in ("ordinal", "index"):
        both = arguments.valid(name)[of] & lists.valid(name)[at]
        wrong |= both & (arguments.values(name)[of] != lists.values(name)[at])
    in_order = _with_text(arguments, "flags", lambda text: "IN_ORDER" in text.split("|"))
    both = arguments.valid("flags")[of] & lists.valid("in_order")[at]
    wrong |= both & (in_order[of] != lists.values("in_order")[at])
    notes.add_times("levelzero_argument_mismatch", lists.values("ts")[at[wrong]])


def note_sensors(events: Events, notes: StatTally) -> None:
    """Note sensors and samples of what was not declared, and sensors that are not as many as were."""
    sensors, samples, kinds, samplings = (events[name] for name in ("sensors", "samples", "sensor_kinds", "samplings"))
    if not any(map(len, (sensors, samples, kinds, samplings))):
        return
    interval, (shortest, longest) = samplings.values("interval"), layout.SAMPLING_NS
    wrong = samplings.valid("interval") & ((interval < shortest) | (interval > longest))
    notes.add_times(
        "levelzero_impossible_value",
        np.concatenate([sensors.values("ts")[~is_text(sensors, "kind", *SENSOR_KINDS)], samplings.values("ts")[wrong]]),
    )
    owner, declared = events.process("sensors"), events.process("sensor_kinds")
    sensor = sensors.values("sensor")
    numbers = group([owner, sensor], np.arange(len(sensors)))
    again = numbers.order[~numbers.first]
    notes.add_times("levelzero_handle_duplicate", sensors.values("ts")[again])
    unknown = _missing([events.process("samples"), samples.values("sensor")], [owner, sensor])
    homeless = _missing([owner, sensors.values("device")], [declared, kinds.values("device")])
    notes.add_times("levelzero_unknown_handle", samples.values("ts")[unknown])
    notes.add_times("levelzero_unknown_handle", sensors.values("ts")[homeless])
    counted: dict[tuple[int, int, str], int] = {}
    for process, device, kind in zip(
        owner.tolist(), sensors.values("device").tolist(), sensors.values("kind").tolist(), strict=True
    ):
        key = process, device, str(kind)
        counted[key] = counted.get(key, 0) + 1
    differ = [
        counted.get((process, device, str(kind)), 0) != count
        for process, device, kind, count in zip(
            declared.tolist(),
            kinds.values("device").tolist(),
            kinds.values("kind").tolist(),
            kinds.values("count").tolist(),
            strict=True,
        )
    ]
    notes.add_times("levelzero_inconsistent_device", kinds.values("ts")[np.array(differ, np.bool_)])


def _missing(keys: list[npt.NDArray[np.generic]], known: list[npt.NDArray[np.generic]]) -> Mask:
    """Return which keys are not among those that are known, bool [n]."""
    count, others = len(keys[0]), len(known[0])
    found = join(keys, np.full(count, 1, np.int64), known, np.zeros(others, np.int64)).last_before()
    rows: Int64 = found
    return rows < 0
