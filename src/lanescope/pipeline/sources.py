"""Sources of batches: a capture, several merged captures, or a trace in memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from lanescope.errors import MissingDependencyError, UsageError
from lanescope.families import registry
from lanescope.families.family import Family, Format, PartDecoder
from lanescope.families.options import resolve_options
from lanescope.pipeline.detection import capture, detect_family, is_parquet_dataset, named_family
from lanescope.source import Capture, Detection, Source
from lanescope.trace import Trace
from lanescope.trace.streams import Progress, StreamInfo, TracePart, TraceSource, Watcher

if TYPE_CHECKING:
    from lanescope.analysis.windows.window import Window
    from lanescope.io.dataset.parquet_folder import ParquetFolder
    from lanescope.pipeline.detection import Openable
    from lanescope.pipeline.windowed import WindowedSource
    from lanescope.trace.column import Mask


def decode(
    capture: Capture,
    family: Family,
    options: Mapping[str, Any],
    *,
    progress: Progress | None = None,
    part: TracePart | None = None,
) -> Iterator[Trace]:
    """Decode an opened capture piece by piece.

    Args:
        capture: the opened capture; the caller closes it.
        family: the family that reads it.
        options: decode options as given; they are checked and completed here.
        progress: is told how many bytes of the main file have been fed so far, of how many.
        part: the part of the timeline that is wanted: decoders that can leave other rows out.

    Raises:
        UsageError: an unknown option.
    """
    resolved = resolve_options(family.options, options, what=family.name)
    format_ = family.format_of(capture)
    decoder = family.decoder(format_, capture, resolved)
    if part is not None and isinstance(decoder, PartDecoder):
        decoder.limit(part)
    fed = 0
    main = capture.main
    if isinstance(progress, Watcher) and not format_.is_streaming:
        progress.watch(main.reached, main.size)
    for chunk in _feed_all(main, format_):
        made = deque(decoder.feed(chunk))
        while made:  # each is let go before the next one is handed over
            yield made.popleft()
        fed += len(chunk)
        del chunk  # it may be the whole file: the decoder keeps what it needs, and lets go of it
        if progress is not None:
            progress(fed, main.size)
    for batch in decoder.finish():
        # Where lanes are interleaved, all is read before the first batch: how far that is, is not known.
        if format_.random_access and progress is not None and 0 < main.reached[0] < main.size:
            progress(main.reached[0], main.size)
        yield batch
    if format_.random_access and progress is not None:
        progress(main.size, main.size)


def _feed_all(main: Source, format_: Format) -> Iterator[memoryview]:
    if format_.is_streaming:
        yield from main.chunks()
    elif not format_.random_access:
        yield memoryview(main.read().data)


class CaptureSource:
    """A capture, decoded once more for every pass. Closes its files at the end of a ``with``.

    A pipe is copied to a temporary file when it is opened, so it can be read again as well. A folder of Parquet files
    that lanescope wrote is one batch, which stays in memory.

    Args:
        path: the capture's main file, or ``-``, or a folder with one capture in it; or the content of the main file, as
            ``lanescope.open`` takes it.
        family: device family; detected from the bytes when it is not given.
        options: decode options of the family.
        hashes: False: files are hashed only if somebody reads ``sha256`` of ``inputs``, before this source is closed;
            ``parts``: while they are read, if they are of a format that is written in parts, else likewise.
        window: the part of the timeline that its batches have; None: all of it.
        spares_memory: batches of whole lanes count as sorted, and so are drawn one by one.

    Errors are raised at first use, as ``lanescope.open`` lists them.
    """

    def __init__(
        self,
        path: Openable,
        family: str | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        hashes: bool | Literal["parts"] = True,
        window: Window | None = None,
        spares_memory: bool = False,
    ) -> None:
        self._path = path
        self._spares_memory = spares_memory
        self._windowed = None if window is None else _windowed(_Whole(self), window, self._folder)
        self._hashes = hashes
        self._asked = family
        self._options = options or {}
        self._opened: tuple[Capture, Family, Detection] | None = None
        self._read: Trace | None = None
        self._parquet_folder: ParquetFolder | None = None

    @property
    def family(self) -> Family | None:
        """The family that decodes it; None for a folder of Parquet files."""
        return None if self._is_parquet else self._open()[1]

    @property
    def match(self) -> Detection:
        """Detection result of the format."""
        if self._is_parquet:
            return Detection(100, reason="a folder of Parquet files that lanescope wrote")
        return self._open()[2]

    @property
    def info(self) -> StreamInfo:
        """Properties of its stream of batches."""
        if self._windowed is not None:
            return self._windowed.info
        info = self.whole_info
        return info._replace(is_sorted=info.is_sorted or (self._spares_memory and self._keeps_lanes_whole()))

    def batches(self, progress: Progress | None = None) -> Iterator[Trace]:
        """Decode it from the start."""
        return self.all_batches(progress) if self._windowed is None else self._windowed.batches(progress)

    @property
    def has_window(self) -> bool:
        """Whether its batches are cut to a window."""
        return self._windowed is not None

    def keep_filtered(self) -> None:
        """Have slices stay that the window leaves out by name, duration or condition: ``selected`` tells the others."""
        if self._windowed is not None:
            self._windowed.keep_filtered()

    @property
    def selected(self) -> Mask | None:
        """Which slices of the last pass the window selects by name, duration or condition; None: all that it has."""
        return None if self._windowed is None else self._windowed.selected

    @property
    def whole_info(self) -> StreamInfo:
        """Properties of its stream of batches before it is cut to the window."""
        folder = self._folder()
        if folder is not None:
            names = tuple(dict.fromkeys(folder.table("inputs").values("family").tolist()))
            return StreamInfo(names, is_sorted=_are_sorted(names), is_whole=True)
        opened, family, _ = self._open()
        return StreamInfo((family.name,), is_sorted=family.format_of(opened).emits_sorted, size=opened.main.size)

    def all_batches(self, progress: Progress | None = None, part: TracePart | None = None) -> Iterator[Trace]:
        """Decode it from the start, whatever the window; with a part of the timeline, rows outside may be left out."""
        folder = self._folder()
        if folder is not None:
            if self._read is None:
                from lanescope.io import parquet

                self._read = parquet.read(os.fspath(self._path))  # type: ignore[arg-type]  # a folder
            yield self._read
            return
        opened, family, _ = self._open()
        yield from decode(opened, family, self._options, progress=progress, part=part)

    def lines(self, stage: str) -> Iterator[str]:
        """Return the lines of a stage of its format, as ``dump`` prints them.

        Raises:
            UsageError: the format has no such stage, or an unknown option.
        """
        opened, family, _ = self._open()
        settled = resolve_options(family.options, self._options, what=family.name)
        return family.format_of(opened).lines(stage, opened, settled)

    def close(self) -> None:
        """Close its files."""
        if self._opened is not None:
            self._opened[0].close()
            self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _is_parquet(self) -> bool:
        return self._parquet_folder is not None or (self._opened is None and is_parquet_dataset(self._path))

    def _open(self) -> tuple[Capture, Family, Detection]:
        if self._opened is None:
            opened = capture(self._path, hashes=self._hashes is True)
            try:
                family, match = detect_family(opened, self._asked or named_family(opened, self._options))
                if self._hashes == "parts" and family.format_of(opened).emits_sorted:
                    opened.hash_while_reading()
                self._opened = opened, family, match
            except BaseException:
                opened.close()
                raise
        return self._opened

    def _keeps_lanes_whole(self) -> bool:
        if self._is_parquet:
            return False
        opened, family, _ = self._open()
        keeps = family.format_of(opened).keeps_lanes_whole
        return keeps is not None and keeps(opened, resolve_options(family.options, self._options, what=family.name))

    def _folder(self) -> ParquetFolder | None:
        """Return the folder of Parquet files; None where it reads something else."""
        if self._parquet_folder is None and self._is_parquet:
            from lanescope.io.dataset.parquet_folder import ParquetFolder

            path = os.fspath(self._path)  # type: ignore[arg-type]  # a folder
            if self._asked is not None or self._options:
                raise UsageError(f"{path} is decoded already: it takes neither family nor options")
            self._parquet_folder = ParquetFolder(path)
        return self._parquet_folder


class _Whole:
    """All batches of a capture."""

    def __init__(self, source: CaptureSource) -> None:
        self._source = source

    @property
    def info(self) -> StreamInfo:
        """Properties of the stream."""
        return self._source.whole_info

    def batches(self, progress: Progress | None = None) -> Iterator[Trace]:
        """Decode it from the start."""
        return self._source.all_batches(progress)

    def batches_near(self, part: TracePart, progress: Progress | None = None) -> Iterator[Trace]:
        """Decode it from the start; rows outside of a part of the timeline may be left out, and are counted there."""
        return self._source.all_batches(progress, part)


def _windowed(source: TraceSource, window: Window, folder: Callable[[], ParquetFolder | None]) -> WindowedSource:
    from lanescope.pipeline.windowed import WindowedSource  # only what has a window pays for it

    return WindowedSource(source, window, folder)


def _are_sorted(families: Sequence[str]) -> bool:
    """Return whether the rows of all these families are in order; False for families that are not installed."""
    try:
        return bool(families) and all(each.emits_sorted for name in families for each in registry.family(name).formats)
    except (UsageError, MissingDependencyError):
        return False


class InMemory:
    """A trace that is in memory already: one batch.

    Args:
        trace: the trace.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def info(self) -> StreamInfo:
        """One batch, whose rows come in any order."""
        return StreamInfo(tuple(dict.fromkeys(self._trace.inputs.values("family").tolist())), is_whole=True)

    def batches(self, progress: Progress | None = None) -> Iterator[Trace]:
        """Yield the trace."""
        yield self._trace
