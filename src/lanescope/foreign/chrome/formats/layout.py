"""Bits and phases of events. Source: "Trace Event Format" (Chromium project), and what writers make of it."""

from __future__ import annotations

from types import MappingProxyType

FORMAT = "chrome-json"

#: Bits of ``flags`` above the phase, as the native reader sets them; those that are asked for here.
HAS_TIME = 1 << 8
HAS_DURATION = 1 << 9
ROUNDED = 1 << 12
REPEATED_KEY = 1 << 13
TOO_DEEP = 1 << 14
ENCLOSING = 1 << 15
FLOW_IN = 1 << 16
FLOW_OUT = 1 << 17
PROCESS_SCOPE = 1 << 18
GLOBAL_SCOPE = 1 << 19
TEXT_TIME = 1 << 21
BAD_SERIES = 1 << 22
HAS_ID = 1 << 23
HAS_STACK = 1 << 25
HAS_THREAD_TIME = 1 << 26
HAS_FACTS = 1 << 27

#: Bits of the kind of an id.
NUMBER_ID, TEXT_ID, LOCAL_ID, GLOBAL_ID = 1, 2, 4, 8

#: Zeros that the reader wants behind a window.
PADDING = 64
#: Texts are cut here.
MOST_CHARACTERS = 1 << 16

COMPLETE, BEGIN, END, COUNTER, METADATA = map(ord, "XBECM")
INSTANTS = tuple(map(ord, "iIR"))
ASYNC_BEGIN, ASYNC_END, ASYNC_INSTANT = map(ord, "ben")
OLD_BEGIN, OLD_END = map(ord, "SF")
OLD_STEPS = tuple(map(ord, "Tp"))
FLOW_BEGIN, FLOW_STEP, FLOW_END = map(ord, "stf")
#: Phases that are not drawn, by the stat that counts them.
NOT_READ = MappingProxyType(
    {
        "chrome_objects": tuple(map(ord, "NOD")),
        "chrome_memory_dumps": tuple(map(ord, "Vv")),
        "chrome_samples": tuple(map(ord, "P")),
        "chrome_contexts": tuple(map(ord, "()=")),
        "chrome_clock_syncs": tuple(map(ord, "c")),
    }
)
#: Phases that are drawn, or name what is.
READ = tuple(map(ord, "XBECMiIRbenSFTpstf"))

#: Keys next to the list of events that hold what is not drawn, by the stat that counts them.
NOT_READ_KEYS = MappingProxyType(
    {
        "stackFrames": "chrome_stack_frames",
        "samples": "chrome_sample_lists",
        "systemTraceEvents": "chrome_system_traces",
    }
)

#: How our own writer names itself, and its events besides slices and instants of the trace.
PRODUCER = "lanescope"
GAP, FLOW, FINDING = "lanescope.gap", "lanescope.flow", "lanescope.finding"
