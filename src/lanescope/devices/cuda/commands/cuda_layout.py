"""Layout files: write one, check one against a buffer, explain what it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lanescope.declaration import replace
from lanescope.errors import UsageError
from lanescope.families.command import Argument, CommandContext, Values
from lanescope.families.options import non_negative_int, positive_int

if TYPE_CHECKING:
    from lanescope.devices.cuda.formats.declared.declaration import Declaration
    from lanescope.devices.cuda.formats.declared.recognition import Fit
    from lanescope.devices.cuda.formats.word_source import WordSource

#: Exit status where a layout does not fit.
_DOES_NOT_FIT = 1
_BLANK = "blank"
#: What is told of each layout, in forms for programs.
_COLUMNS = ("layout", "fits", "params", "records", "matching", "failed", "lane")


def _params(text: str) -> dict[str, int]:
    from lanescope.devices.cuda.family import layout_params

    return layout_params(text)


def run(context: CommandContext, values: Values) -> int:
    """Write, check, explain or find layout files.

    `new FILE.toml` writes a layout file to start from, or with --from a copy of a shipped one. `check LAYOUT BUFFER`
    tests whether a layout fits a buffer, and names the first test that fails and the shipped layouts that fit better;
    without a buffer only the file is checked. `explain LAYOUT BUFFER` prints each field that the layout reads, with its
    place. `find BUFFER` searches the shipped layouts for those that a buffer may have, with their parameters. A layout
    is a TOML file or the name of a shipped layout. The status is 1 if a layout does not fit. With --json and --csv,
    check and find print one row for each layout; of a check the layout that was asked for comes first.
    """
    action, name, path = values["action"], values["layout"], values["buffer"]
    form = "json" if values["json"] else "csv" if context.is_csv() else ""
    if form and (action not in ("check", "find") or (action == "check" and path is None)):
        raise UsageError(
            f"--{form} is a form of check and find, which judge a buffer",
            hint=f"use lanescope cuda-layout find BUFFER --{form}",
        )
    if action == "new":
        return _new(context, name, values["from"])
    if action == "find":
        if path is not None:
            raise UsageError("find takes only a buffer", hint="use lanescope cuda-layout find BUFFER")
        return _find(context, name, form)
    from lanescope.devices.cuda.formats.declared import catalog

    declaration = catalog.load(name)
    if path is None:
        if action == "explain":
            raise UsageError("explain requires a buffer", hint="use lanescope cuda-layout explain LAYOUT BUFFER")
        context.lines([f"{name}: valid layout {declaration.name}", *_vectors(declaration)])
        return 0
    content = _content(path)
    params = dict(values["layout_params"] or {})
    if action == "explain":
        from lanescope.devices.cuda.formats.declared import explain
        from lanescope.devices.cuda.formats.declared.arrays import arrays_of

        arrays = arrays_of(content, declaration)
        context.lines(explain.lines(declaration, arrays, params, lane=values["lane"], limit=values["limit"]))
        return 0
    return _check(context, declaration, content, params, form)


def _new(context: CommandContext, target: str, origin: str) -> int:
    from lanescope.devices.cuda.formats.declared import catalog

    if not catalog.is_file(target):
        raise UsageError(f"invalid file name {target!r}: expected a .toml file", hint="use a name that ends in .toml")
    text = _TEMPLATE if origin == _BLANK else catalog.load(origin).text
    size = context.write(target, [text.encode()])
    context.wrote(target, "layout file", size=size)
    return 0


def _vectors(declaration: Declaration) -> Iterator[str]:
    from lanescope.devices.cuda.formats.declared.vectors import vectors

    if declaration.example is not None:
        count = sum(1 for _ in vectors(declaration))
        yield f"example: {sum(declaration.example.sizes.values()):,} bytes, {count} test vectors"


def _content(path: str) -> WordSource:
    from lanescope.devices.cuda.formats.word_source import content_of
    from lanescope.source import Source

    source = Source(path)
    try:
        return content_of(np.frombuffer(bytes(source.read()), np.uint8))
    finally:
        source.close()


def _check(
    context: CommandContext, declaration: Declaration, content: WordSource, params: dict[str, int], form: str
) -> int:
    from lanescope.devices.cuda.formats.declared import recognition, search
    from lanescope.devices.cuda.formats.declared.arrays import arrays_of
    from lanescope.devices.cuda.formats.declared.geometry import require
    from lanescope.devices.cuda.formats.declared.remarks import remarks

    arrays = arrays_of(content, declaration)
    require(declaration, params)
    fit = recognition.judge(declaration, arrays, params)
    total: dict[str, int] = {}
    if not fit.failed:
        odd, total = recognition.order(declaration, arrays, params)
        failed = recognition.kinds_that_miss(declaration, total)
        if odd > recognition.MOST_ODD * fit.used:
            failed = f"{odd:,} of {fit.used:,} records are out of order"
        failed = failed or recognition.unread(declaration, arrays, params)
        fit = replace(fit, failed=failed, score=0.0) if failed else fit
    others: list[Fit] = []
    better: list[Fit] = []
    if fit.failed:
        others = [other for other in recognition.fits(content, content.length) if other.name != declaration.name]
        better = [other for other in others if not other.failed] + search.search(content, content.length)
    status = _DOES_NOT_FIT if fit.failed else 0
    if form:
        _for_programs(context, form, "check", [fit, *(better or others[:2])], total)
        return status
    context.lines([_verdict(fit), *_outcome(total)])
    if not fit.failed:
        context.lines(f"note: {remark}" for remark in remarks(declaration, arrays, params))
        return status
    if fit.advice:
        context.lines([f"hint: {fit.advice}"])
    if fit.lane is not None:
        context.lines([f"first in lane {fit.lane}: use lanescope cuda-layout explain with --lane {fit.lane}"])
    near = [f"fits: {_verdict(other)}" for other in better] or [f"closest: {_verdict(other)}" for other in others[:2]]
    context.lines(near or ["no shipped layout comes close"])
    return status


def _counts(total: Mapping[str, int]) -> dict[str, int]:
    """Return what becomes of the records, by what it is; nothing if no record was read."""
    if not total:
        return {}
    return {
        "regions": total["slices"] - total["open"],
        "instants": total["instants"] - total["unmatched"],
        "starts without an end": total["open"],
        "ends without a start": total["unmatched"],
        "timestamps before the one before": total["backward"],
        "ends before their start": total["negative"],
        "empty positions between records": total["missing"],
        "dropped records": total["dropped"],
    }


def _outcome(total: Mapping[str, int]) -> list[str]:
    """Return what becomes of the records, as lines."""
    if not total:
        return []
    regions, instants, *odd = ((f"{count:,} {what}", count) for what, count in _counts(total).items())
    return [f"{regions[0]}, {instants[0]}", *(line for line, count in odd if count)]


def _for_programs(
    context: CommandContext, form: str, action: str, fits: Sequence[Fit], total: Mapping[str, int]
) -> None:
    """Print how layouts fit as JSON, with what becomes of the records, or as CSV."""
    rows = [
        (fit.name, not fit.failed, dict(fit.params), fit.used, fit.good, fit.failed or None, fit.lane) for fit in fits
    ]
    if form == "json":
        layouts = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
        outcome = {what.replace(" ", "_"): count for what, count in _counts(total).items()} or None
        context.json("lanescope.cuda-layout/1", action=action, layouts=layouts, outcome=outcome)
        return
    given = (",".join(f"{name}={value}" for name, value in row[2].items()) or None for row in rows)
    context.show(_COLUMNS, [(*row[:2], params, *row[3:]) for row, params in zip(rows, given, strict=True)])


def _find(context: CommandContext, path: str, form: str) -> int:
    """Print the layouts that a buffer may have, the best one first."""
    from lanescope.devices.cuda.formats.declared import recognition, search

    content = _content(path)
    known = list(recognition.fits(content, content.length))
    good = [fit for fit in known if not fit.failed and fit.is_enough] + search.search(content, content.length)
    if form:
        _for_programs(context, form, "find", good or known[:2], {})
        return 0 if good else _DOES_NOT_FIT
    context.lines(f"{fit.options}  ({fit.reason})" for fit in good)
    if good:
        return 0
    near = [f"closest: {_verdict(fit)}" for fit in known[:2]]
    context.lines(["no shipped layout fits", *near])
    return _DOES_NOT_FIT


def _verdict(fit: Fit) -> str:
    if not fit.failed:
        with_params = "".join(f" {name}={value}" for name, value in fit.params.items())
        return f"{fit.name}{with_params}: fits, {fit.good:,} of {fit.used:,} records match"
    return f"{fit.name}: does not fit: {fit.failed}"


ARGUMENTS = (
    Argument("action", "new, check, explain or find", choices=("new", "check", "explain", "find")),
    Argument("layout", "layout file, or the name of a shipped layout; find: the buffer", metavar="LAYOUT"),
    Argument("buffer", "buffer to read: words, .npy or .npz", metavar="BUFFER", is_optional=True),
    Argument("--layout-params", "numbers that the buffer does not contain", parse=_params, metavar="NAME=NUMBER,..."),
    Argument("--lane", "explain: number of the lane", parse=non_negative_int, default=0, metavar="NUMBER"),
    Argument("--limit", "explain: positions of the lane to print", parse=positive_int, default=8, metavar="NUMBER"),
    Argument("--from", "new: shipped layout to copy", default=_BLANK, metavar="NAME"),
    Argument("--json", "check, find: one JSON document, schema lanescope.cuda-layout/1", bool),
)

_TEMPLATE = """# A layout of an in-kernel profiler's buffer. All strings on the right are integer expressions:
# + - * // % << >> & |, comparisons, and/or/not, a if c else b, min, max. Fields are [lowest bit, width].
name = "my-profiler"
title = "what writes the buffer"
source = "repository@commit: file"

# The dimensions that make the lanes, outermost first. One lane has one writer.
lanes = [["block", "num_blocks"], ["group", "num_groups"]]

# What a record is: values of an expression, or "span" (with begin and end instead of time), or "instant".
kind = ["type", {"0" = "begin", "1" = "end", "2" = "instant"}]
id = "event"
time = "timestamp"

# Records that a lane has room for, and what happens to the others: unchecked, drop, ring, ring-by-time, saturated.
# With drop and ring, offered is the number of records that the lane counted.
capacity = "max_events"
overflow = "unchecked"

# Tests of the header that hold for such a buffer and for few others.
match = ["num_blocks > 0", "num_groups > 0"]

[header]
size = 8
fields = {num_blocks = [0, 32], num_groups = [32, 32]}

[params]
# size is the size of the buffer in bytes.
max_events = "(size - 8) // (8 * num_blocks * num_groups)"
# max_events = {from = "user", help = "records of a lane"}

[record]
# The first byte of record k; block, group and lane are numbers of the lane.
at = "8 + 8 * (lane * max_events + k)"
size = 8
fields = {type = [0, 2], event = [2, 10], timestamp = [32, 32]}
# A view reads bits of several fields at once, for tests.
views = {word = [0, 64]}
empty = "word == 0"

[clock]
name = "globaltimer_lo"
unit = "ns"
bits = 32
across = "device"
"""
