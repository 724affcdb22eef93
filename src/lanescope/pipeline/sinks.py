"""Selection of a sink by the suffix of the output, or by the name of a format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from lanescope.errors import UsageError
from lanescope.lazy_names import from_room

if TYPE_CHECKING:
    from lanescope.families.family import Export
    from lanescope.io.atomic_file import Output
    from lanescope.trace import Trace
    from lanescope.trace.streams import Sink

#: Suffix -> format.
SUFFIXES = {
    ".pftrace": "perfetto",
    ".perfetto-trace": "perfetto",
    ".json": "chrome",
    ".json.gz": "chrome",
    ".parquet": "parquet",
    ".vcd": "vcd",
    ".svg": "svg",
    ".png": "png",
}

#: Formats that are pictures.
PICTURES = ("svg", "png")

#: Formats that draw findings.
DRAWS_FINDINGS = ("perfetto", "chrome")


def format_of(path: str) -> str | None:
    """Return the format that the suffix of a path names; None where it names none."""
    return next((format_ for suffix, format_ in SUFFIXES.items() if path.endswith(suffix)), None)


def make_sink(
    out: Output,
    format_: str,
    *,
    compress: bool = True,
    replace: bool = False,
    is_gzip: bool = False,
    tell: Callable[[str], object] = lambda line: None,
    picture: dict[str, Any] | None = None,
) -> Sink:
    """Return the sink of a format.

    Args:
        out: a path; or, but for Parquet, a binary file object.
        format_: a format of ``SUFFIXES``, or one that a family exports.
        compress: Perfetto: packets are compressed.
        replace: Parquet: replace a folder that lanescope wrote.
        is_gzip: Chrome JSON: the file is packed.
        tell: is given a line for each thing that an export of a family has no place for.
        picture: options of pictures, as ``view.picture.svg.draw`` takes them.

    Raises:
        UsageError: unknown format.
    """
    if format_ == "perfetto":
        from lanescope.io.perfetto import PerfettoSink

        return PerfettoSink(out, compress=compress)
    if format_ == "chrome":
        from lanescope.io.chrome import ChromeSink

        return ChromeSink(out, compress=is_gzip)
    if format_ == "parquet":
        from lanescope.io.parquet import LIMITED_ROWS, ParquetSink
        from lanescope.source.disk_arrays import is_memory_limited

        if not isinstance(out, str | os.PathLike):
            raise UsageError("cannot write a Parquet dataset to a file object", hint="use a path")
        return ParquetSink(out, replace=replace, part_rows=LIMITED_ROWS if is_memory_limited() else 0)
    if format_ == "vcd":
        from lanescope.io.vcd import VcdSink

        return VcdSink(out)
    from lanescope.io.file_sink import BlocksSink

    if format_ in PICTURES:
        return BlocksSink(out, from_room("view.picture.write", "encoder")(format_, **(picture or {})))
    return BlocksSink(out, _export(format_, tell))


def _export(format_: str, tell: Callable[[str], object]) -> Callable[[Trace], Iterable[bytes]]:
    """Return what makes the blocks of a family's own format; first it tells what the format has no place for."""
    export = _export_of(format_)

    def encode(trace: Trace) -> Iterable[bytes]:
        for line in export.left_out(trace):
            tell(line)
        return export.blocks(trace)

    return encode


def _export_of(format_: str) -> Export:
    from lanescope.families import registry

    known = set(SUFFIXES.values())
    for families in (registry.builtin, registry.plugin_families):  # whether there are plugins takes long to find out
        for export in (each for family in families() for each in family.exports):
            if export.name == format_:
                return export
            known.add(export.name)
    raise UsageError(f"unknown format {format_!r} (choose from {', '.join(sorted(known))})")
