"""Open a capture: its trace, whole or piece by piece; several traces as one; a capture as another tool's file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanescope.errors import MergeError, MissingDependencyError, UsageError
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.pipeline.detection import (
    Candidate,
    PathLike,
    capture,
    detect,
    detect_family,
    is_parquet_dataset,
)
from lanescope.pipeline.observers import Annotations, Collect
from lanescope.pipeline.run import RunReport, run
from lanescope.pipeline.sinks import DRAWS_FINDINGS, SUFFIXES, format_of, make_sink
from lanescope.pipeline.sources import CaptureSource, InMemory, decode
from lanescope.trace import LazyTable, Table, Trace

if TYPE_CHECKING:
    from lanescope.analysis.analysis_cache import AnalysisCache
    from lanescope.analysis.check import Finding
    from lanescope.analysis.windows.window import Window
    from lanescope.families.family import Family, Simulation
    from lanescope.io.atomic_file import Output
    from lanescope.pipeline.detection import Openable
    from lanescope.trace.merge import Inside, TimelineShift
    from lanescope.trace.streams import Progress

__all__ = [
    "Candidate",
    "align",
    "capture",
    "check",
    "convert",
    "decode",
    "derived_tables",
    "detect",
    "detect_family",
    "is_parquet_dataset",
    "iter_batches",
    "merge",
    "open",
    "options_that_settle",
    "read",
    "simulate",
    "summary",
    "write",
]


def iter_batches(
    path: Openable, family: str | None = None, *, window: Mapping[str, Any] | None = None, **options: Any
) -> Iterator[Trace]:
    """Decode a capture piece by piece: yields traces that share tracks, clocks and texts.

    Args and errors as ``open``.
    """
    return read(path, family, options, window=_made(window))


def read(
    path: Openable,
    family: str | None,
    options: Mapping[str, Any],
    *,
    progress: Progress | None = None,
    window: Window | None = None,
) -> Iterator[Trace]:
    """Do what ``iter_batches`` does, and tell ``progress`` how far it is (as ``decode`` tells it)."""
    with CaptureSource(path, family, options, window=window) as source:
        yield from source.batches(progress)


def _made(window: Mapping[str, Any] | None) -> Window | None:
    """Return the window that arguments of ``window`` ask for.

    Raises:
        UsageError: an argument that it does not have.
    """
    if window is None:
        return None
    from lanescope.analysis.windows.window import make_window

    known = ("start", "end", "lane", "name", "min_dur", "where")
    for name in window:
        if name not in known:
            raise UsageError(f"unknown part {name!r} of a window", hint="use " + ", ".join(known))
    return make_window(**window)


def open(
    path: Openable, family: str | None = None, *, window: Mapping[str, Any] | None = None, **options: Any
) -> Trace:
    """Decode a capture into one trace.

    Args:
        path: the capture's main file, or ``-``; its neighbours are found by the family. Or a folder with one capture in
            it. A folder of Parquet files that lanescope wrote is read back. Or the content of the main file: bytes, an
            array, or a binary file object, which is read to its end; files next to it are then named by options.
        family: device family; recognised from the bytes when not given.
        window: keep only a part of the timeline: arguments of ``Trace.window`` by name, such as
            ``{"start": "1ms", "lane": "core*"}``. Where the stream of the family is sorted, what is outside of it is
            never in memory at once.
        **options: decode options of the family.

    Returns:
        The trace, in memory.

    Raises:
        InputError: the file cannot be read, or is not a capture.
        UsageError: an unknown family or option, or two families that recognise it equally; or no path and no bytes.

    Example:
        >>> content = simulate("cuda", tiles=1).files["attention.npy"]
        >>> len(open(content).slices)
        4752
    """
    whole = Collect()
    with CaptureSource(path, family, options, window=_made(window)) as source:
        run(source, observers=[whole])
    return whole.result()


def convert(
    path: Openable,
    out: PathLike,
    family: str | None = None,
    *,
    format: str | None = None,
    findings: bool = True,
    replace: bool = False,
    window: Mapping[str, Any] | None = None,
    **options: Any,
) -> RunReport:
    """Write a capture as another tool's file, batch by batch where its family and the format allow it.

    Args:
        path: the capture, as ``open`` takes it.
        out: the file to write, or the folder for Parquet. It appears when all has gone well.
        family: device family; detected from the bytes when not given.
        format: ``perfetto``, ``chrome``, ``parquet``, ``vcd``, or a format that the family exports; by default the
            suffix of ``out`` decides (``.pftrace``, ``.json``, ``.json.gz``, ``.parquet``, ``.vcd``).
        findings: draw what ``lanescope.analysis.check`` finds, in the formats that have a place for it.
        replace: replace what is at ``out``.
        window: write only a part of the timeline, as ``open`` takes it.
        **options: decode options of the family.

    Returns:
        What passed: ``rows`` by table, ``losses`` by name, what was ``written`` (``written.bytes`` and more), ``last``:
        the shared tables, stats and accounting.

    Raises:
        InputError: the capture cannot be read, or is none.
        UsageError: no format is known; ``out`` exists, or cannot be written; an unknown family or option.
        MissingDependencyError: VCD needs pyvcd, which is not installed.
    """
    target = Path(out)
    chosen = format or format_named_by(target)
    if target.exists() and not replace:
        raise UsageError(f"{target} already exists", hint="use replace=True to replace it")
    sink = make_sink(target, chosen, replace=replace, is_gzip=target.suffix == ".gz")
    annotate = Annotations() if findings and chosen in DRAWS_FINDINGS else None
    with CaptureSource(path, family, options, window=_made(window)) as source:
        return run(source, sink=sink, annotate=annotate)


def write(trace: Trace, out: Output, format: str | None = None) -> RunReport:
    """Write a trace that is in memory as another tool's file.

    Args:
        trace: the trace.
        out: a path, whose file is replaced; or, but for Parquet, a binary file object.
        format: as ``convert`` takes it; a file object needs one.

    Raises:
        UsageError: no format is known, or ``out`` cannot be written.
        MissingDependencyError: VCD needs pyvcd, which is not installed.
    """
    chosen = format or format_named_by(Path(str(out)))
    return run(InMemory(trace), sink=make_sink(out, chosen, is_gzip=str(out).endswith(".gz")))


def format_named_by(target: Path) -> str:
    """Return the format that the suffix of a file names."""
    found = format_of(str(target))
    if found is None:
        raise UsageError(
            f"cannot infer the format from {target.suffix or str(target)!r}",
            hint="use format=... or one of " + ", ".join(SUFFIXES),
        )
    return found


def check(trace: Trace, *, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> list[Finding]:
    """Find lost data and impossible timings in a trace, as the command ``check`` does.

    Args:
        trace: the whole trace; a single batch lacks stats and accounting.
        select: codes, or beginnings of codes, of the rules to apply; empty: all.
        ignore: codes to leave out.

    Returns:
        The findings, the worst first: one per rule and lane, clock, stat or input.

    Raises:
        UsageError: a choice fits no rule.
    """
    from lanescope.analysis.check import run as examine

    return examine(trace, select=select, ignore=ignore)


def summary(trace: Trace, by: str = "name", within: str = "") -> Table:
    """Return where the time of a trace goes by one of the groupings of the command ``summary``.

    Args:
        trace: the trace.
        by: ``name``, ``lane``, ``device`` or ``category``: count, total, spread and share of slices. ``region``: the
            same for each kind of region, with waits; ``overlap``: which regions run at the same time; ``idle``: idle
            time by cause; ``occupancy``: how many work at once. ``sm``, ``block``, ``core``, ``tile`` or ``queue``:
            busy, stalled, unknown, vacant and tail time of each. Or a summary that a family of the trace has:
            ``tally``, ``kernels``, ... Families come first where both have one.
        within: instances whose lanes are analyzed together, for ``region``, ``overlap``, ``idle`` and ``occupancy``:
            ``block``, ``sm``, ``device``, ``parent``, ``lane`` or ``all``; empty: what fits the trace.

    Returns:
        One row a group; times in the trace's unit.

    Raises:
        UsageError: ``by`` is something else, or nothing that this trace has; or ``within`` with other sums.
    """
    from lanescope.analysis.groupings import grouped

    return grouped(trace, by, within)


def explain(trace: Trace, path: str = "FILE", *, shared: AnalysisCache | None = None, filters: str = "") -> Table:
    """Return what bounds a run, what is exposed, uncertain and not recorded, as the command ``explain`` does.

    Of a window that selects slices (``name``, ``min_dur``, ``where``), the first sentence is on these, and the others
    are on all slices of the window.

    Args:
        trace: the whole trace, or that of a window.
        path: how commands that show more name the capture.
        shared: intermediate results of the trace, where there are any.
        filters: how these commands select slices.

    Returns:
        At most five rows: a sentence each, with the part of the time that it rests on and the command that shows it.

    Raises:
        UsageError: slices were left out by name, duration or condition while the trace was read.
    """
    from lanescope.analysis import explain as verdicts
    from lanescope.analysis.analysis_cache import AnalysisCache

    given = AnalysisCache(trace) if shared is None else shared
    all_slices = given.over_all_slices
    shared = shared if all_slices is given else all_slices
    asked, trace = trace, all_slices.trace
    bounds = [bound for family in _families_of(trace) for bound in family.bounds(trace)]
    severities = [str(finding.severity) for finding in check(trace)]
    findings = {severity: severities.count(severity) for severity in set(severities)}
    return verdicts.explain(verdicts.Evidence(trace, bounds, findings, shared, asked), path, filters)


def _families_of(trace: Trace) -> list[Family]:
    """Return the families of the captures of a trace, as far as they are installed."""
    families = {str(name) for name in trace.inputs.values("family").tolist()}
    known = (*registry.builtin(), *(registry.plugin_families() if families - set(registry.BUILTIN) else ()))
    return [family for family in known if family.name in families]


def simulate(family: str, seed: int = 1, **options: Any) -> Simulation:
    """Simulate a capture with known ground truth, as the command ``sim`` does.

    Args:
        family: device family.
        seed: the same seed and options give the same bytes.
        **options: options of the family's simulator.

    Returns:
        ``files``: content by name, the main file first; ``truth``: what a decoder must find, in the family's own terms.

    Raises:
        UsageError: an unknown family or option, or a family without a simulator.

    Example:
        >>> list(simulate("cuda", tiles=1).files)[0]
        'attention.npy'
    """
    chosen = registry.family(family)
    settled = resolve_options(chosen.sim_options, options, what=f"the simulator of {family}")
    return chosen.simulate(settled, seed)


def derived_tables(trace: Trace) -> dict[str, LazyTable]:
    """Return the tables that analyses make of a trace, by name; each is made when it is first read.

    They are those that every trace has (``overlap``, ``idle``, ...) and those that its families declare
    (``cuda_overlap``, ...). SQL sees them next to the tables of the trace.
    """
    from lanescope.analysis import derived as analyses
    from lanescope.analysis.analysis_cache import AnalysisCache

    shared = AnalysisCache(trace)
    members = _families_of(trace)
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


def merge(traces: Iterable[Trace], *, side_by_side: bool = False, inside: str | None = None) -> Trace:
    """Put several traces on one timeline, each capture in a group of its own.

    Times are shifted by what the traces themselves say about their clocks: a common epoch, or clocks that they share.
    What kernels recorded themselves is put inside the executions of those kernels that another trace has: behind
    their lane, with an arrow from each execution, and within the error that its group's name states.

    Args:
        traces: two or more traces; one comes back as it is.
        side_by_side: traces that share no clock with those before them begin a time axis of their own, at 0: their
            groups are named so, and ``check`` reports them.
        inside: kernels that recorded a capture without a common clock: ``"TEXT"``, a part of their names, or
            ``"TEXT#K"``, where the first launch is in the Kth of them, from 0.

    Raises:
        MergeError: no common clock, different time units, or the same capture twice; the hint says the way out.
        UsageError: no kernel is called as ``inside`` says.
    """
    from lanescope.trace import merge as merging

    given = list(traces)
    with _naming_options(given):
        return merging.merge(given, side_by_side=side_by_side, inside=_inside(given, inside, side_by_side=side_by_side))


def align(traces: Iterable[Trace], *, side_by_side: bool = False, inside: str | None = None) -> list[TimelineShift]:
    """Return where ``merge`` puts each of the traces; arguments and errors as there."""
    from lanescope.trace import merge as merging

    given = list(traces)
    with _naming_options(given):
        return merging.align(given, side_by_side=side_by_side, inside=_inside(given, inside, side_by_side=side_by_side))


def _inside(traces: Sequence[Trace], inside: str | None, *, side_by_side: bool) -> dict[int, Inside]:
    """Return what contains each of the traces that no clock joins with the others."""
    from lanescope.trace import merge as merging

    if inside is None:
        try:
            merging.align(traces)
        except MergeError as error:
            if error.lacks != "clock":
                raise
        else:
            return {}
    from lanescope.pipeline.kernel_links import kernel_links

    try:
        return kernel_links(traces, inside)
    except MergeError:
        if side_by_side and inside is None:
            return {}
        raise


@contextmanager
def _naming_options(traces: Sequence[Trace]) -> Iterator[None]:
    """Name the decode options that would have helped when a merge is refused."""
    try:
        yield
    except MergeError as error:
        if not error.lacks:
            raise
        wanted = ("clock", "device") if error.lacks == "clock" else (error.lacks,)
        which = {options_that_settle(traces[index], *wanted): None for index in error.traces}
        named = ", or ".join(text for text in which if text)
        if not named:
            raise
        otherwise = "use --side-by-side" if error.lacks == "clock" else "convert each capture separately"
        hint = f"decode with {named}, or {otherwise}"
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
