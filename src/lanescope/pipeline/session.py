"""Open a capture: what is it, which family reads it, its trace; and several traces as one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from lanescope.errors import InputError, InternalError, LanescopeError, MergeError, MissingDependencyError, UsageError
from lanescope.families import registry
from lanescope.families.declaration import UPDATE, described
from lanescope.families.family import Family, Format
from lanescope.families.options import resolve_options
from lanescope.source import MINE, TIE, Capture, Head, Match, Source, is_one
from lanescope.trace import LazyTable, Trace

if TYPE_CHECKING:
    from lanescope.trace.merge import TimelineShift

PathLike = str | os.PathLike[str]

#: So many files of a folder are looked at to find the capture in it.
MOST_FILES = 200


class Candidate(NamedTuple):
    """How surely one family recognises a capture.

    Attributes:
        family: name of the family.
        score: 0 to 100; below 50 means no.
        format: the family's name for the format.
        reason: what was checked and how it came out.
    """

    family: str
    score: int
    format: str
    reason: str


def detect_family(capture: Capture, family: str | None = None) -> tuple[Family, Match]:
    """Return the family of a capture and how surely it is recognised.

    Args:
        capture: the opened capture.
        family: name of the family, when the user says it; its own probe still gives the format.

    Raises:
        InputError: it is empty, or no family recognises it.
        UsageError: two families recognise it about equally; or ``family`` is unknown.
        MissingDependencyError: ``family`` is of another package, and that is broken.
    """
    head = capture.main.head()
    chosen = None if family is None else registry.family(family)
    if not head.size:
        raise InputError(f"{capture.main.path} is empty", hint="was the capture written?")
    if chosen is not None:
        return chosen, _asked(chosen, capture)
    failed: list[Candidate] = []
    matches = _matches(registry.builtin(), head, failed)
    if not matches:
        matches = _matches(registry.plugin_families(), head, failed)
    if not matches:
        raise _unknown(capture, head, failed)
    if len(matches) > 1 and matches[0][1].score - matches[1][1].score < TIE:
        reasons = " or ".join(f"{f.name} ({m.reason})" for f, m in matches[:2])
        raise UsageError(f"{capture.main.path} may be {reasons}", hint="say --family NAME")
    return matches[0]


def _unknown(capture: Capture, head: Head, failed: list[Candidate]) -> InputError:
    """Return the error for what no family recognises."""
    from lanescope.io import other_formats as known

    found = known.what_is(head.data, head.name)
    if found is not None:
        return InputError(f"{capture.main.path} is {found.what}, not a capture", hint=found.hint)
    near = next((match for _, match in _matches(registry.builtin(), head, [], least=1) if match.advice), None)
    if near is not None:
        what = f"is not a capture of any known device family: {near.reason}"
        return InputError(f"{capture.main.path} {what}", hint=near.advice)
    what = "is not a capture of any known device family"
    if not any(head.data):
        what = "holds only zeros" if head.is_whole else f"begins with {len(head.data)} zeros: no capture does"
    return InputError(f"{capture.main.path} {what}", hint="; ".join([_SAY_FAMILY, *_unasked(failed)]))


def capture(path: PathLike) -> Capture:
    """Open a capture: a file, or a folder in which one is.

    Raises:
        InputError: it cannot be read; or there are several captures in the folder, or none.
    """
    return Capture(_main_of(path))


def _main_of(path: PathLike) -> PathLike:
    """Return the one capture in a folder; the path itself where there is nothing to choose."""
    if path == "-" or not os.path.isdir(path):  # noqa: PTH112 (asked for every input)
        return path
    from pathlib import Path

    folder = Path(path)
    if is_one(folder):
        return path
    try:
        files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    except OSError:
        return path
    found = [file for file in files[:MOST_FILES] if _is_capture(file)]
    if len(found) > 1:
        names = ", ".join(file.name for file in found[:3]) + (", ..." if len(found) > 3 else "")
        raise InputError(f"{os.fspath(path)} holds {len(found)} captures: {names}", hint="name one of them")
    return found[0] if found else path


def _is_capture(path: PathLike) -> bool:
    try:
        with Capture(path) as opened:
            head = opened.main.head()
    except InputError:
        return False
    if not head.size:
        return False
    return bool(_matches(registry.builtin(), head, []) or _matches(registry.plugin_families(), head, []))


def _matches(
    families: Iterable[Family], head: Head, failed: list[Candidate], least: int = MINE
) -> list[tuple[Family, Match]]:
    """Ask ``families``, the surest first; one whose probe fails does not count and is added to ``failed``."""
    found = []
    for family in families:
        try:
            match = family.probe(head)
        except Exception as error:  # of one family: the capture may well be another one's
            failed.append(Candidate(family.name, 0, "", f"its probe failed: {described(error)}"))
        else:
            found.append((family, match))
    return sorted((pair for pair in found if pair[1].score >= least), key=lambda pair: -pair[1].score)


def _asked(family: Family, capture: Capture) -> Match:
    """Ask the family that the user names; raise in its name if its probe fails."""
    try:
        return family.probe(capture.main.head())
    except LanescopeError:
        raise
    except Exception as error:
        what = f"the probe of device family {family.name!r} failed on {capture.main.path}: {described(error)}"
        if family.name in registry.BUILTIN:
            raise InternalError(what) from error
        raise MissingDependencyError(what, hint=UPDATE) from error


_SAY_FAMILY = "if you know its family, say --family NAME"


def _unasked(failed: Iterable[Candidate]) -> Iterator[str]:
    """Yield which families could not be asked, and why."""
    for candidate in failed:
        yield f"device family {candidate.family!r} could not look at it: {candidate.reason}"
    for broken in registry.plugins().broken:
        yield f"device family {broken.name!r} of another package cannot be used: {broken.reason}"


def probe(path: PathLike) -> list[Candidate]:
    """Ask every device family whether a capture is its own, the surest first.

    Args:
        path: the capture's main file, or ``-``.

    Returns:
        One candidate a family that sees anything in it. ``open`` takes the first if it scores 50 or more and no other
        comes within 10 points. Families whose probe fails come last, with a score of 0 and the failure as reason.

    Raises:
        InputError: the file cannot be read.
    """
    with capture(path) as opened:
        failed: list[Candidate] = []
        matches = _matches((*registry.builtin(), *registry.plugin_families()), opened.main.head(), failed, least=1)
    return [*(Candidate(family.name, match.score, match.format, match.reason) for family, match in matches), *failed]


def decode(
    capture: Capture,
    family: Family,
    options: Mapping[str, Any],
    *,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[Trace]:
    """Decode an opened capture piece by piece.

    Args:
        capture: the opened capture; the caller closes it.
        family: the family that reads it.
        options: decode options as given; they are checked and completed here.
        progress: is told how many bytes of the main file have been fed so far, of how many.

    Raises:
        UsageError: an unknown option.
    """
    settled = resolve_options(family.options, options, what=f"family {family.name}")
    format = family.format_of(capture)
    decoder = format.decode(capture, settled)
    fed = 0
    main = capture.main
    for chunk in _feed_all(main, format):
        yield from decoder.feed(chunk)
        fed += len(chunk)
        del chunk  # it may be the whole file: the decoder keeps what it needs, and lets go of it
        if progress is not None:
            progress(fed, main.size)
    if format.random_access and progress is not None:
        progress(main.size, main.size)
    yield from decoder.finish()


def _feed_all(main: Source, format: Format) -> Iterator[memoryview]:
    if format.is_streaming:
        yield from main.chunks()
    elif not format.random_access:
        yield memoryview(main.read().data)


def batches(path: PathLike, family: str | None = None, **options: Any) -> Iterator[Trace]:
    """Decode a capture piece by piece: yields traces that share tracks, clocks and texts.

    Args and errors as ``open``.
    """
    return read(path, family, options)


def read(
    path: PathLike,
    family: str | None,
    options: Mapping[str, Any],
    *,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[Trace]:
    """Do what ``batches`` does, and tell ``progress`` how far it is (as ``decode`` tells it)."""
    if is_parquet_dataset(path):
        from lanescope.io import parquet

        if family is not None or options:
            raise UsageError(f"{os.fspath(path)} is decoded already: it takes neither family nor options")
        yield parquet.read(path)
        return
    with capture(path) as opened:
        chosen, _ = detect_family(opened, family)
        yield from decode(opened, chosen, options, progress=progress)


def open(path: PathLike, family: str | None = None, **options: Any) -> Trace:
    """Decode a capture into one trace.

    Args:
        path: the capture's main file, or ``-``; its neighbours are found by the family. Or a folder with one capture in
            it. A folder of Parquet files that lanescope wrote is read back.
        family: device family; recognised from the bytes when not given.
        **options: decode options of the family.

    Returns:
        The whole trace, in memory.

    Raises:
        InputError: the file cannot be read, or is no capture.
        UsageError: an unknown family or option, or two families that recognise it equally.
    """
    return Trace.concat(batches(path, family, **options))


def views(trace: Trace) -> dict[str, LazyTable]:
    """Return the tables that analyses make of a trace, by name; each is made when it is first read.

    They are those that every trace has (``overlap``, ``idle``, ...) and those that its families declare
    (``cuda_overlap``, ...). SQL sees them beside the tables of the trace.
    """
    from lanescope.analysis import derived as analyses

    shared = analyses.AnalysisCache(trace)
    families = {str(name) for name in trace.inputs.values("family").tolist()}
    known = (*registry.builtin(), *(registry.plugin_families() if families - set(registry.BUILTIN) else ()))
    members = [family for family in known if family.name in families]
    found = [analyses.generic_table(shared, name) for name in analyses.GENERIC]
    for derived in (derived for family in members for derived in family.derived):
        if derived.make is None:
            found.append(
                analyses.as_table(
                    shared, derived.analysis, derived.name, derived.roles, doc=derived.doc, columns=derived.columns
                )
            )
        else:
            found += derived.make(trace)
    return {lazy.spec.name: lazy for lazy in found}


def is_parquet_dataset(path: PathLike) -> bool:
    """Tell whether ``path`` is a folder of Parquet files that lanescope wrote, and no capture."""
    # Asked for every input, so it has to be cheap where there is no folder at all.
    if not os.path.isdir(path):  # noqa: PTH112
        return False
    from lanescope.io import parquet

    return parquet.is_folder(path)


def merge(traces: Iterable[Trace]) -> Trace:
    """Put several traces on one timeline, each capture in a group of its own.

    Times are shifted by what the traces themselves say about their clocks: a common epoch, or clocks that they share.

    Args:
        traces: two or more traces; one comes back as it is.

    Raises:
        MergeError: no common clock, different time units, or the same capture twice; the hint says the way out.
    """
    from lanescope.trace import merge as merging

    given = list(traces)
    with _naming_options(given):
        return merging.merge(given)


def align(traces: Iterable[Trace]) -> list[TimelineShift]:
    """Return where ``merge`` puts each of the traces; errors as there."""
    from lanescope.trace import merge as merging

    given = list(traces)
    with _naming_options(given):
        return merging.align(given)


@contextmanager
def _naming_options(traces: Sequence[Trace]) -> Iterator[None]:
    """Name the decode options that would have helped when a merge is refused."""
    try:
        yield
    except MergeError as error:
        wanted = ("clock", "device") if error.lacks == "clock" else (error.lacks,)
        which = {options_that_settle(traces[index], *wanted): None for index in error.traces}
        named = ", or ".join(text for text in which if text)
        if not named:
            raise
        hint = f"decode with {named}; or convert each on its own"
        raise MergeError(error.message, hint=hint, lacks=error.lacks, traces=error.traces) from None


def options_that_settle(trace: Trace, *what: str) -> str:
    """Return the decode options of a trace's families that tell a merge something, as flags; empty: there are none.

    Args:
        trace: a trace.
        what: what they tell, see ``Option.settles``.
    """
    texts = []
    for name in dict.fromkeys(trace.inputs.values("family").tolist()):
        try:
            options = registry.family(name).options
        except (UsageError, MissingDependencyError):  # read from a folder; its family is not installed here
            continue
        flags = [
            f"{option.flag} {option.metavar or option.name.upper()}" for option in options if option.settles in what
        ]
        if flags:
            texts.append(f"{' or '.join(flags)} (family {name})")
    return ", or ".join(texts)
