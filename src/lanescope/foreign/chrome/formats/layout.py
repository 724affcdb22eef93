"""Bits and phases of events. Source: "Trace Event Format" (Chromium project), and what writers make of it."""

from __future__ import annotations

from types import MappingProxyType

from lanescope.wire import trace_events

FORMAT = "chrome-json"

_Bit = trace_events.Bit
#: Bits of ``flags`` that are asked for here, as numbers that numpy takes for what they are.
HAS_TIME, HAS_DURATION, HAS_ID = int(_Bit.HAS_TIME), int(_Bit.HAS_DURATION), int(_Bit.HAS_ID)
ENCLOSING, FLOW_IN, FLOW_OUT = int(_Bit.ENCLOSING), int(_Bit.FLOW_IN), int(_Bit.FLOW_OUT)
PROCESS_SCOPE, GLOBAL_SCOPE = int(_Bit.PROCESS_SCOPE), int(_Bit.GLOBAL_SCOPE)
ROUNDED, TEXT_TIME, REPEATED_KEY = int(_Bit.ROUNDED), int(_Bit.TEXT_TIME), int(_Bit.REPEATED_KEY)
TOO_DEEP, BAD_SERIES = int(_Bit.TOO_DEEP), int(_Bit.BAD_SERIES)
HAS_STACK, HAS_THREAD_TIME, HAS_FACTS = int(_Bit.HAS_STACK), int(_Bit.HAS_THREAD_TIME), int(_Bit.HAS_FACTS)
#: Bits of the kind of an id.
TEXT_ID, LOCAL_ID = trace_events.TEXT_ID, trace_events.LOCAL_ID

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
#: Phases whose events mean nothing without an id.
WITH_ID = (
    *(ASYNC_BEGIN, ASYNC_END, ASYNC_INSTANT, OLD_BEGIN, OLD_END, *OLD_STEPS),
    *(FLOW_BEGIN, FLOW_STEP, FLOW_END),
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
