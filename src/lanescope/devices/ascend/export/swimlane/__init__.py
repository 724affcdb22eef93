"""The merged JSON of the peer's converter, for tools that read it.

Chrome events with the peer's numbers of processes and lanes, names, categories and arguments. The shape follows the
format version of the capture: up to v3 an execution is a bar, and its setup another one before it; the newer naming has
one bar from the receive on. Differences from the peer on purpose:

* Unknown kinds of phases stay in.
* Depths of queues are one counter each: three values in one event break Perfetto's import.
* Only what breaks a dependency is called a violation, in both views.
* Dispatches of a core that overlap are on different lanes, also those of one task.
* Scheduler threads without a record have no lane.

Source: hw-native-sys/simpler at 83728d2 and 6ebaf77, the output of their converters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from lanescope.devices.ascend.export.swimlane.event_rows import SEPARATOR, Numbers
from lanescope.devices.ascend.export.swimlane.flows import arrows
from lanescope.devices.ascend.export.swimlane.slices import bars
from lanescope.devices.ascend.export.swimlane.trace_view import Content
from lanescope.errors import UsageError
from lanescope.trace import Trace

__all__ = ["export"]


def export(trace: Trace) -> Iterator[bytes]:
    """Return the blocks of the file.

    Args:
        trace: a trace of one Ascend capture.

    Raises:
        UsageError: it is a trace of another family, or of several captures.
    """
    runs = trace.details.get("ascend_runs")
    if runs is None or not len(runs):
        raise UsageError("trace contains no Ascend tasks", hint="pass an Ascend capture or use another --format")
    if len(runs) > 1:
        raise UsageError("cannot export several captures as one swimlane", hint="export each capture separately")
    content, numbers = Content(trace), Numbers()
    return _blocks(chain(bars(content, numbers), arrows(content, numbers)))


def _blocks(parts: Iterable[bytes]) -> Iterator[bytes]:
    yield b'{"traceEvents": [\n'
    separator = b""
    for part in filter(None, parts):
        yield separator
        yield part
        separator = SEPARATOR.encode()
    yield b"\n]}\n"
