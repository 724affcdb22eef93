"""Is it a file of the PyTorch profiler? Judged with the standard library only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lanescope.source.detection import Detection

if TYPE_CHECKING:
    from lanescope.source.detection import FileHead

_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?\s*[{]")
#: Events without the object around them, as scripts cut them out.
_LIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*[{]")
#: Members that only this profiler writes.
_MEMBERS = (b'"schemaVersion"', b'"deviceProperties"', b'"baseTimeNanoseconds"', b'"distributedInfo"')
_CATEGORY = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|user_annotation|gpu_user_annotation|gpu_memcpy|gpu_memset|cuda_runtime|cuda_driver|'
    rb"python_function|cpu_instant_event|cuda_sync|mtia_runtime|mtia_ccp_events|xpu_runtime|privateuse1_runtime|"
    rb'glow_runtime|hpu_op|ac2g|fwdbwd|async_cpu_to_gpu|Operator|Runtime|Memcpy|Memset|Kernel|kernel)"'
)
#: Arguments of its events that no other writer of such categories has.
_ARGUMENT = re.compile(rb'"(?:External id|external id|Ev Idx|Profiler Event Index|Record function id|cbid)"')


def detect(head: FileHead) -> Detection:
    """Look for what the profiler writes before its events, and for its categories."""
    data = head.data
    if _LIST.match(data) and _CATEGORY.search(data) is not None and _ARGUMENT.search(data) is not None:
        return Detection(92, "kineto", "a list of trace events with categories and arguments of the PyTorch profiler")
    if not _BEGIN.match(data):
        return Detection(0)
    members = sum(member in data for member in _MEMBERS)
    has_list = b'"traceEvents"' in data
    if members >= 2:
        return Detection(98, "kineto", "JSON with the members of the PyTorch profiler")
    if has_list and _CATEGORY.search(data) is not None:
        if members or _ARGUMENT.search(data) is not None:
            return Detection(95, "kineto", "trace events with categories of the PyTorch profiler")
        return Detection(70, "kineto", "trace events with a category of the PyTorch profiler")
    if members and has_list:
        # Surer than what any reader of trace events says of them: the head may hold nothing but names.
        return Detection(92, "kineto", "trace events behind a member of the PyTorch profiler")
    return Detection(0)
