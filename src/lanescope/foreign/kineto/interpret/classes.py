"""What each event is: its class, and whether it lies on a device."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lanescope.foreign.kineto.formats import layout
from lanescope.trace.column import look_up
from lanescope.wire.trace_events import TraceEvents

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_DEVICE_CLASSES = (layout.WORK, layout.DEVICE_ANNOTATION, layout.SYNC, layout.RANGE)
#: Calls after which a device row with their correlation is due.
LAUNCH = re.compile(r"(?:cuda|hip|cu)\w*(?:Launch(?!HostFunc)|Memcpy|Memset)\w*")
_DEVICE_LABEL = re.compile(r"(?:GPU|MTIA|XPU|HPU|NPU)\b")


@dataclass(frozen=True, slots=True)
class Classes:
    """Meaning of categories and names, by event.

    Attributes:
        of: int8 [n], class of each event, see ``layout.CLASSES``; those of events without rows mean nothing.
        is_runtime: bool [n], calls of a runtime or driver.
        is_free: bool [n], device work whose rows may overlap.
        is_unknown: bool [n], rows of a category that is not known.
    """

    of: npt.NDArray[np.int8]
    is_runtime: Mask
    is_free: Mask
    is_unknown: Mask

    @property
    def is_work(self) -> Mask:
        """Kernels, copies and other work of a device, bool [n]."""
        found: Mask = self.of == layout.WORK
        return found


#: What is known of a category: its class in the low bits, and properties above.
_CLASS, _IS_RUNTIME, _IS_FREE, _IS_KERNEL, _IS_UNKNOWN = 15, 16, 32, 64, 128
_NO_CATEGORY = layout.OP


def _properties(category: str) -> int:
    return (
        layout.CLASS_OF.get(category, layout.OP)
        | _IS_RUNTIME * (category in layout.RUNTIME)
        | _IS_FREE * (category in layout.FREE_WORK)
        | _IS_KERNEL * (category in layout.KERNELS)
        | _IS_UNKNOWN * (category not in layout.CLASS_OF)
    )


def classify(events: TraceEvents, device_places: Mask | None = None) -> Classes:
    """Return what the events are.

    Args:
        events: the events.
        device_places: bool [places], those of the whole file; None: they are not known yet, and rows of unknown
            categories count as operators.
    """
    table = np.array([*map(_properties, events.categories), _NO_CATEGORY], np.uint8)
    properties = look_up(table, events.category)

    def are(bit: int) -> Mask:
        found: Mask = (properties & bit) != 0
        return found

    of = (properties & _CLASS).view(np.int8)
    carrying = [code for code, name in enumerate(events.names) if layout.carries_metrics(name)]
    if carrying:
        of[np.isin(events.name, carrying) & are(_IS_KERNEL)] = layout.RANGE
    is_unknown = are(_IS_UNKNOWN) & events.of_phase("X")
    if device_places is not None and is_unknown.any():
        of = np.where(is_unknown & look_up(device_places, events.place), np.int8(layout.RANGE), of)
    return Classes(of, are(_IS_RUNTIME), are(_IS_FREE), is_unknown)


def device_places(events: TraceEvents, classes: Classes) -> Mask:
    """Return the places with device work, and those that metadata calls a GPU, bool [places]."""
    found = np.zeros(len(events.places), np.bool_)
    found[events.place[classes.is_work & events.of_phase("X")]] = True
    labels = events.values["labels"]
    for event, text in zip(labels.event.tolist(), labels.value.tolist(), strict=True):
        if _DEVICE_LABEL.match(events.texts[text]):
            found[events.place[event]] = True
    return found


def is_on_device(of: int) -> bool:
    """Return whether rows of a class belong to a device."""
    return of in _DEVICE_CLASSES


def launches(events: TraceEvents) -> Mask:
    """Return which events have the name of a call that starts device work, bool [n]."""
    table = np.array([*(LAUNCH.fullmatch(name) is not None for name in events.names), False], np.bool_)
    return look_up(table, events.name)
