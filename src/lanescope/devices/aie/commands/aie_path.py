"""Show the path that cores took."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanescope.declaration import replace
from lanescope.errors import UsageError
from lanescope.families.command import Argument, CommandContext, Values
from lanescope.families.options import positive_int

if TYPE_CHECKING:
    from lanescope.devices.aie.path.path_tables import Paths
    from lanescope.devices.aie.path.program.witnesses import ProgramFiles
    from lanescope.trace import Table


def run(context: CommandContext, values: Values) -> int:
    """Show the path that AMD AIE cores took: from execution-mode trace and the program.

    The program is read from the core's ELF file, from the xclbin or PDI of the build, or from a listing: the text of
    llvm-objdump -d (llvm-aie), a Chess .lst, or JSON. Of several files each is compared with the others. No time is
    recorded in this mode: the result is what was executed in which order and how often. Where frames and program leave
    more than one path, the answer says so. Without further flags: how far the path is known, functions, loops, and what
    the answer rests on.
    """
    if values["lcov"] or values["timeline"]:
        _check_target(context, values)
    from lanescope.devices.aie.path import options, schema
    from lanescope.devices.aie.path.path_tables import Paths

    trace = context.open(values["input"])
    found = options.of_trace(trace)
    if found is None:
        raise UsageError("the program is required", hint="use --elf, --xclbin or --listing")
    paths = Paths(trace, found.program, found.errata, max_states=values["max_states"], core=values["core"])
    if not paths.recordings:
        raise UsageError(
            f"{values['input']}: no execution-mode trace{' of that core' if values['core'] else ''}",
            hint="see 'lanescope info' for the traced cores and modes",
        )
    if values["annotate"] or values["calls"]:
        from lanescope.devices.aie.path import reports

        context.lines(reports.annotated(paths) if values["annotate"] else reports.call_lines(paths))
    elif values["path"]:
        _show(context, paths.table(schema.PATH), "the path", limit=values["limit"])
    elif values["json"]:
        _json(context, paths)
    elif values["lcov"] or values["timeline"]:
        _write(context, paths, values, found.files)
    else:
        _overview(context, paths)
    _say_uncertainty(context, paths)
    return 0


def _place(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise ValueError("expected COL,ROW")
    return int(parts[0]), int(parts[1])


def _show(context: CommandContext, table: Table, title: str, *, limit: int | None = None) -> None:
    addresses = {c.name for c in table.spec.columns if c.unit == "bytes" and c.name not in ("size", "offset")}
    columns = [
        replace(column, type="utf8", unit="") if column.name in addresses else column
        for column in table.spec.columns
        if column.name != "track_id"
    ]
    names = [column.name for column in columns]
    rows = (
        [f"{row[name]:#x}" if name in addresses and row[name] is not None else row[name] for name in names]
        for row in islice(table.rows(), limit)
    )
    context.show(columns, rows, title=title)


def _overview(context: CommandContext, paths: Paths) -> None:
    from lanescope.devices.aie.path import schema

    for spec, title in (
        (schema.WALKS, "how far the path is known, in frames"),
        (schema.FUNCTIONS, "functions"),
        (schema.LOOPS, "zero-overhead loops"),
        (schema.ASSUMPTIONS, "what this rests on"),
    ):
        table = paths.table(spec)
        if len(table):
            _show(context, table, title)


def _json(context: CommandContext, paths: Paths) -> None:
    from lanescope.devices.aie.path import schema

    tables = {
        spec.name.removeprefix("aie_path_").removeprefix("aie_"): [_clean(row) for row in paths.table(spec).rows()]
        for spec in schema.TABLES
        if spec.name.startswith("aie_path")
    }
    context.json("lanescope.aie-path/1", listing=paths.program.source, **tables)


def _clean(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.item() if hasattr(value, "item") else value for name, value in row.items()}


def _check_target(context: CommandContext, values: Values) -> None:
    """Refuse, before the walk, a file that cannot be or may not be written."""
    if values["timeline"] and Path(values["timeline"]).suffix not in (".pftrace", ".json"):
        suffix = Path(values["timeline"]).suffix
        raise UsageError(f"cannot infer the format from {suffix!r}", hint="use .pftrace or .json")
    context.check_target(values["lcov"] or values["timeline"], _inputs(context, values))


def _inputs(context: CommandContext, values: Values) -> list[str]:
    from lanescope.devices.aie.schema import PROGRAM_FILES

    given = [context.option(name) for name in PROGRAM_FILES]
    return [values["input"], *(path for path in given if path)]


def _write(context: CommandContext, paths: Paths, values: Values, files: ProgramFiles) -> None:
    from lanescope.devices.aie.path import reports

    if values["lcov"]:
        if files.listing is None and not paths.program.lines:
            what = f"no source lines in the debug information of {paths.program.source}"
            raise UsageError(what, hint="use --listing FILE or an ELF file of a build with -g")
        listing = files.listing or files.main
        assert listing is not None
        lines = (f"{line}\n".encode() for line in reports.lcov(paths, listing))
        size = context.write(values["lcov"], lines, inputs=_inputs(context, values))
        context.wrote(values["lcov"], size=size)
        return
    trace = reports.timeline(paths)
    size = context.convert(trace, values["timeline"])
    context.wrote(values["timeline"], f"{len(trace.slices):,} calls in order, without times", size=size)


def _say_uncertainty(context: CommandContext, paths: Paths) -> None:
    from lanescope.devices.aie.path.walk.walker import REASONS

    reasons: dict[str, int] = {}
    places: dict[str, str] = {}
    for recording, walk in paths.walks:
        broken = [piece.reason for piece in walk.pieces if piece.reason]
        # What is unresolved behind a piece has broken off with it.
        for reason in broken + [lost.reason for lost in walk.unresolved if lost.reason not in broken]:
            reasons[reason] = reasons.get(reason, 0) + 1
        for lost in walk.unresolved:
            if lost.reason not in places:
                offset = int(paths.offsets(recording, [lost.first])[0])
                places[lost.reason] = f", first at byte {offset}" if offset >= 0 else ""
    for reason, count in reasons.items():
        times = f"{count} time{'s' if count > 1 else ''}{places.get(reason, '')}"
        context.warn(f"the path breaks off {times}: {REASONS[reason]}")


ARGUMENTS = (
    Argument("--path", "print the path, one row per straight-line section", bool, group="what"),
    Argument("--annotate", "print the listing with the execution count of each bundle", bool, group="what"),
    Argument("--calls", "print the call tree", bool, group="what"),
    Argument("--lcov", "write coverage as an lcov tracefile", metavar="FILE", group="what"),
    Argument(
        "--timeline",
        "write calls in execution order, without times (.pftrace, .json)",
        metavar="FILE",
        group="what",
    ),
    Argument("--json", "one JSON document, schema lanescope.aie-path/1", bool, group="what"),
    Argument("--core", "core to show (default: all)", _place, metavar="COL,ROW"),
    Argument("--max-states", "number of states followed in parallel", positive_int, 4000, "N"),
    Argument("--limit", "number of rows of --path (default: all)", positive_int, metavar="N"),
)
