"""The verdict: sentences on a run, each with the word that it is about."""

from __future__ import annotations

from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.errors import LanescopeError
from lanescope.trace import Trace

#: Words before a colon are the head of a sentence if they are no longer.
_HEAD = 24
_BOUND = {"bound": "Bound", "exposed": "Exposed", "path": "Path", "uncertain": "Uncertain",
          "not recorded": "Not recorded"}  # fmt: skip


def verdict(trace: Trace, shared: AnalysisCache, role: str) -> list[tuple[str, str]]:
    """Return what bounds a run, as ``explain`` has it; else what overlaps and idles.

    Args:
        trace: the trace, or a window of it.
        shared: its intermediate results.
        role: what a unit is.

    Returns:
        Pairs of what a sentence is about, which may be empty, and the sentence.
    """
    from lanescope.pipeline.session import explain

    if not len(trace.slices):
        return []
    try:
        found = [
            (_BOUND.get(row["topic"], ""), row["sentence"])
            for row in explain(trace, shared=shared).rows()
            if row["topic"] != "nothing"
        ]
    except LanescopeError:  # not of a part of a trace
        found = []
    return found or [_split(sentence) for sentence in _overlap_and_idle(shared, role)]


def _overlap_and_idle(shared: AnalysisCache, role: str) -> list[str]:
    from lanescope.analysis import idle_causes
    from lanescope.view.analysis_report import idle_words, overlap_words

    found: list[str] = []
    try:
        found += overlap_words(shared, role)
        found += idle_words(list(idle_causes.causes(shared.over_all_slices, role).rows()), shared.unit)
    except LanescopeError:
        pass
    return found


def _split(sentence: str) -> tuple[str, str]:
    head, colon, rest = sentence.partition(": ")
    return (head, rest) if colon and len(head) <= _HEAD else ("", sentence)
