"""What a trace lacks because it is that of a window."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lanescope.analysis.windows.lanes import selected_tracks
from lanescope.analysis.windows.window import Window
from lanescope.errors import UsageError
from lanescope.trace import Column, Table, Trace

if TYPE_CHECKING:
    from lanescope.analysis.track_tree import Tree
    from lanescope.trace.column import Mask

#: Stats of a window that count what it left out or changed, by what JSON documents call them.
_COUNTS = {
    "window_excluded": "excluded",
    "window_filtered_slices": "filtered_slices",
    "window_cut_slices": "cut_slices",
    "window_open_flows": "open_flows",
}
_WORDS = {
    "excluded": ("row", "excluded"),
    "filtered_slices": ("slice", "filtered out"),
    "cut_slices": ("slice", "cut"),
    "open_flows": ("flow", "excluded with one end in it"),
}


def described(trace: Trace) -> dict[str, Any] | None:
    """Return the window of a trace, or of the last batch of one, as JSON documents have it; None without one.

    ``start`` and ``end`` in the unit of the trace, NULL without such an edge; ``asked`` as it was asked for;
    counts of what was excluded. Of windows of windows the narrowest.
    """
    rows = {name: [row for row in trace.stats.rows() if row["name"] == name] for name in ("window_start", "window_end")}
    asked = _asked(trace)
    if not asked and not any(str(name).startswith("window_") for name in trace.stats.values("name").tolist()):
        return None
    found: dict[str, Any] = {
        "start": max((row["first_ts"] for row in rows["window_start"]), default=None),
        "end": min((row["first_ts"] for row in rows["window_end"]), default=None),
        "unit": trace.time.time_unit,
        "asked": asked,
    }
    counts = dict.fromkeys(_COUNTS.values(), 0)
    for row in trace.stats.rows("name", "count"):
        if row["name"] in _COUNTS:
            counts[_COUNTS[row["name"]]] += row["count"]
    return found | counts


def _asked(trace: Trace) -> list[dict[str, Any]]:
    """Return what was asked for, each window once."""
    found: list[dict[str, Any]] = []
    for text in trace.inputs.values("options").tolist():
        found += [one for one in json.loads(text or "{}").get("windows", ()) if one not in found]
    return found


def chosen_tracks(trace: Trace, tree: Tree) -> Mask:
    """Return which tracks no window of the trace left out by ``lane``, bool [tracks].

    Nothing was found out about the others: they are neither idle nor not recorded. A trace without inputs does not
    tell; neither does one whose lanes are called otherwise by now.
    """
    found = np.ones(len(tree), np.bool_)
    input_of, known = tree.tracks.values("input_id"), tree.tracks.valid("input_id")
    for number, text in zip(trace.inputs.values("id").tolist(), trace.inputs.values("options").tolist(), strict=True):
        for window in json.loads(text or "{}").get("windows", ()):
            of, globs = ~known | (input_of == number), window.get("lane", ())
            chosen = selected_tracks(tree, globs)
            if (chosen & of).any():
                found &= chosen | ~of
    return found


def in_words(trace: Trace) -> str:
    """Return which part of the timeline a trace is, ``1,000 to 2,000 ns, lane core*``; empty for all of it."""
    found = described(trace)
    if found is None:
        return ""
    start, end, unit = found["start"], found["end"], found["unit"]
    words = []
    if start is not None or end is not None:
        first = "start" if start is None else f"{start:,}"
        words.append(f"{first} to {'end' if end is None else f'{end:,} {unit}'}")
    for asked in found["asked"]:
        words += [f"lane {glob}" for glob in asked.get("lane", ())]
        words += _filter_words(asked)
    return ", ".join(words)


def asked_in_words(window: Window) -> str:
    """Return what a window asks for, ``2us to end, lane core*``; empty where it asks for all.

    Example:
        >>> from lanescope.analysis.windows.window import make_window
        >>> asked_in_words(make_window(start="2us", name=["q*", "k*"], min_dur="1us"))
        '2us to end, name q*, name k*, at least 1us'
    """
    asked = window.as_asked()
    words = []
    if "start" in asked or "end" in asked:
        words.append(f"{asked.get('start', 'start')} to {asked.get('end', 'end')}")
    words += [f"lane {glob}" for glob in window.lanes]
    return ", ".join(words + _filter_words(asked))


def filter_in_words(trace: Trace) -> str:
    """Return what windows of a trace select slices by, ``name mma*, at least 5us``; empty where they have all."""
    return ", ".join(word for asked in _asked(trace) for word in _filter_words(asked))


def _filter_words(asked: Mapping[str, Any]) -> list[str]:
    words = [f"name {glob}" for glob in asked.get("name") or ()]
    words += [f"at least {asked['min_dur']}"] if "min_dur" in asked else []
    return words + ([f"where {asked['where']}"] if "where" in asked else [])


def is_overview(trace: Trace) -> bool:
    """Return whether the slices of a trace are those of an overview (``analysis.overview``)."""
    options = trace.inputs.values("options").tolist()
    return any('"overview"' in text and "overview" in json.loads(text) for text in options)


def remark(trace: Trace) -> str:
    """Return a sentence about the window of a trace: what it is, and what it left out; empty without one.

    Of an overview it is one about that.
    """
    if is_overview(trace):
        return "overview: short slices are sums: times by name and lane are exact, their number and places are not"
    found = described(trace)
    if found is None:
        return ""
    counts = ", ".join(
        f"{found[name]:,} {one}{'' if found[name] == 1 else 's'} {words}"
        for name, (one, words) in _WORDS.items()
        if found[name]
    )
    return f"window: {in_words(trace)} ({counts or 'nothing excluded'}); the accounting is of the whole capture"


def marked(inputs: Table, window: Window) -> Table:
    """Return the inputs with the window, as it was asked for, in their options; made when they are read."""
    return with_options(inputs, lambda known: {"windows": [*known.get("windows", ()), window.as_asked()]})


def with_options(inputs: Table, more: Callable[[dict[str, Any]], dict[str, Any]]) -> Table:
    """Return the inputs with further options; made when they are read.

    Args:
        inputs: the inputs.
        more: takes the options of an input, and returns what is added to them.
    """
    options = inputs.column("options")

    def texts() -> Any:
        found = np.empty(len(options), object)
        for row, text in enumerate(options.values.tolist()):
            known = json.loads(text or "{}")
            found[row] = json.dumps(known | more(known), sort_keys=True)
        return found

    columns = {name: inputs.column(name) for name in inputs.spec.names}
    return Table(inputs.spec, {**columns, "options": Column.derived(len(options), texts)})


def require_all_slices(trace: Trace) -> None:
    """Refuse an analysis that needs all slices of a lane where a window left some of them out.

    Raises:
        UsageError: slices were left out by name, duration or condition; or sums were drawn in place of them.
    """
    if is_overview(trace):
        raise UsageError(
            "time of lanes is told by their slices, and this trace has sums in place of short ones (--overview)",
            hint="use the capture itself",
        )
    found = described(trace)
    if found is not None and found["filtered_slices"]:
        raise UsageError(
            "time of lanes is told by all of their slices, and this trace was read without "
            f"{found['filtered_slices']:,} of them",
            hint="read all of it and select then: --name, --min-dur, --where, or open(path).window(name=...)",
        )
