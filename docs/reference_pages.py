"""Writes the reference pages from what the code declares: tables, stats, formats, rules, commands."""

from __future__ import annotations

import argparse
import re
from importlib import import_module
from pathlib import Path

from sphinx.application import Sphinx

from lanescope import cli
from lanescope.analysis import check, derived
from lanescope.analysis import limits as analysis_limits
from lanescope.analysis.check.marks import FLAGS, QUALITIES, Carrier
from lanescope.cli import arguments
from lanescope.devices.cuda.formats.declared.declaration import Declaration, FieldSpec
from lanescope.families import registry
from lanescope.families.family import Derived
from lanescope.trace.schema import CORE_TABLES, FLAG_DOCS, TableSpec
from lanescope.trace.stats import CORE_STATS, StatSpec
from lanescope.wire import reference_docs as wire_docs


def setup(app: Sphinx) -> dict[str, bool]:
    """Generate before Sphinx reads its sources."""
    app.connect("builder-inited", lambda app: generate(Path(app.srcdir) / "reference" / "generated"))
    return {"parallel_read_safe": True}


def generate(folder: Path) -> None:
    """Write all pages into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {
        "tables": tables(),
        "stats": stats(),
        "formats": formats(),
        "layouts": layouts(),
        "rules": rules(),
        "limits": limits(),
        "commands": commands(),
        "options": options(),
    }
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    return "\n".join([_row(*head), _row(*("---" for _ in head)), *(_row(*row) for row in rows)])


def _spec(spec: TableSpec) -> str:
    key = f" Joined by `{spec.key}`." if spec.key else ""
    rows = [
        (
            f"`{c.name}`",
            c.type,
            "yes" if c.nullable else "",
            c.unit,
            c.doc
            + (f" *(references `{c.references}`)*" if c.references else "")
            + (" *(argument)*" if c.is_argument else ""),
        )
        for c in spec.columns
    ]
    return f"## `{spec.name}`\n\nOne row: {spec.doc}.{key}\n\n" + _table(
        ("column", "type", "NULL", "unit", "meaning"), rows
    )


def tables() -> str:
    """The tables of a trace."""
    parts = [
        "# Tables",
        "What SQL, Arrow and Parquet readers see. `text` is a dictionary column; NULL means unknown, never zero. "
        "Columns marked *(argument)* go with the event into viewers.",
        *map(_spec, CORE_TABLES),
        "## Flags\n\nBits of `flags`.\n\n"
        + _table(
            ("bit", "flag", "finding", "meaning"),
            [(int(f), f"`{str(f.name).lower()}`", _carrier(FLAGS[f]), doc) for f, doc in FLAG_DOCS.items()],
        ),
        "## Quality\n\nValues of `quality`: the weakest of start, end and identity of a row.\n\n"
        + _table(("quality", "finding"), [(f"`{word}`", _carrier(carrier)) for word, carrier in QUALITIES.items()]),
    ]
    parts += [
        "# Tables made on request",
        'An analysis makes them of any trace when a query reads them: `lanescope sql CAPTURE "select * from idle"`. '
        "Where a trace counts cycles, `_ns` in a column's name is `_cycles`. A *unit* is the group right above a lane.",
        *(_spec(derived.ANALYSES[name].spec("ns")) for name in derived.GENERIC),
    ]
    for family in registry.builtin():
        parts += [f"# Tables of {family.name}", *map(_spec, family.tables)]
        if family.derived:
            parts.append(f"# Tables of {family.name} made on request")
            parts += [_spec(spec) for declared in family.derived for spec in _made(declared)]
    return "\n\n".join(parts) + "\n"


def _made(declared: Derived) -> tuple[TableSpec, ...]:
    """Return the declarations of tables that are made on request."""
    if not declared.analysis:
        return declared.specs
    spec = derived.ANALYSES[declared.analysis].spec("ns")
    return (derived.rename_spec(spec, declared.name, doc=declared.doc, columns=declared.columns),)


def _stats(specs: tuple[StatSpec, ...]) -> str:
    return _table(
        ("stat", "severity", "finding", "meaning"),
        [(f"`{s.name}`", s.severity, _finding(s), s.doc) for s in specs],
    )


def _finding(spec: StatSpec) -> str:
    """Return the rule that reports a stat and the severity of its finding, or why none does."""
    return f"[{spec.rule}](rules.md) {spec.finding_severity}" if spec.rule else f"none: {spec.silent}"


def _carrier(carrier: Carrier) -> str:
    return f"[{carrier.rule}](rules.md)" if carrier.rule else f"none: {carrier.reason}"


def stats() -> str:
    """What decoders note."""
    parts = [
        "# Stats",
        "Decode diagnostics, in the table `stats`. Each is a finding of a rule of `lanescope check`, or there is a "
        "reason why it is none. LS003, LS105, LS305 and LS404 findings about more than 5% of the events are one step "
        "more severe.",
        _stats(CORE_STATS),
    ]
    for family in registry.builtin():
        parts += [f"## {family.name}", _stats(family.stats)]
    return "\n\n".join(parts) + "\n"


def formats() -> str:
    """The wire formats."""
    parts = [
        "# Wire formats",
        "Each row says how it is known: `documented` by its maker, `observed` by us in hardware captures, `published` "
        "by others and never seen by us (meeting one counts the stat `unverified_encoding`), `unknown`.",
    ]
    for family in registry.builtin():
        parts.append(f"## {family.name}: {family.title}")
        layouts = {layout.name: layout for format in family.formats for layout in format.layouts}
        parts += [f"### `{layout.name}`\n\n{layout.doc}\n\n{wire_docs.table(layout)}" for layout in layouts.values()]
    return "\n\n".join(parts) + "\n"


def layouts() -> str:
    """Return the page of declared buffer layouts."""
    from lanescope.devices.cuda.formats.declared import catalog

    text = [
        "# Layouts of in-kernel profilers",
        "Each of them is a layout file that comes with lanescope: `--layout NAME` decodes a buffer with it, and "
        "`lanescope cuda-layout new FILE.toml --from NAME` copies it. *verified*: decoded to the known truth of a "
        "buffer that was packed after the producer's stores. *read*: declared from the producer's source, and tested "
        "with buffers that a test writes as that source does. {doc}`/explain/kernel-profilers` has what is not read.",
    ]
    declarations = [catalog.load(name) for name in catalog.shipped()]
    text.append(_table(("layout", "profiler", "read", "proof", "large files", "loss"), _overview(declarations)))
    for of in declarations:
        name = of.name
        text.append(f"## {name}\n\n{of.title}. Source: {of.source} (license: {of.license}). Status: *{of.status}*.")
        params = [(f"`{p.name}`", p.help, "" if p.default is None else p.default) for p in of.user_params]
        if params:
            text.append(_table(("parameter", "meaning", "default"), params))
        areas = (
            ("header of the file", of.header.fields),
            ("header of a lane", of.lane.fields),
            ("record", of.record.fields),
        )
        fields = [
            (area, f"`{spec.name}`", _bits(spec), ", ".join(f"`{role}`" for role in _roles(of, spec.name)))
            for area, specs in areas
            for spec in sorted(specs, key=lambda spec: spec.bit)
        ]
        text.append(_table(("part", "field", "bits", "part of"), fields))
        lanes = " x ".join(f"`{dim}`" for dim, _ in of.dims)
        clock = f"{of.clock.bits} bits of `{of.clock.name}` in {of.clock.unit}, comparable within one {of.clock.across}"
        text.append(
            f"Lanes: {lanes}. Record `k`: byte `{of.record.at.text}`. Without room: {of.overflow}. Clock: {clock}."
        )
    return "\n\n".join(text) + "\n"


#: What is read without a layout file: form, profiler, proof, large files, loss.
_READERS = (
    ("`--layout ls2`", "lanescope's own probes", "simulator, host runs of the probes", "some lanes at a time", "exact"),
    ("`--layout proton`", "Proton of Triton, 3.9 included", "golden, its exporter", "whole", "exact"),
    ("IKET's JSON", "IKET, both forms", "golden", "whole", "not stored"),
    ("FlyDSL's JSON", "FlyDSL flytrace, saved captures", "writer", "whole", "exact"),
    ("TIRx's words", "TIRx, FlashInfer, warpscope", "golden", "some lanes at a time", "full lanes: at least"),
)


def _overview(declarations: list[Declaration]) -> list[tuple[str, ...]]:
    """Return a row for each form of buffers: what reads it, its proof, and what it tells of losses."""
    rows = [(form, profiler, "reader of its own", *rest) for form, profiler, *rest in _READERS]
    for of in declarations:
        title = re.split(r"[,:] | \(", of.title)[0]
        proof = "golden, writer" if of.status == "verified" else "writer"
        rows.append((f"`{of.name}`", title, _how(of), proof, _large(of), _loss(of)))
    return rows


def _how(of: Declaration) -> str:
    from lanescope.devices.cuda.formats.declared import direct, records

    codes = {} if of.kind is None else {value: records.CODES[kind] for value, kind in of.kind[1].items()}
    is_direct = bool(codes) and direct.roles_of(of, codes, records.UNREADABLE) is not None
    return "layout file, by the core" if is_direct else "layout file, by columns"


def _large(of: Declaration) -> str:
    is_apart = any(spec.array not in (None, "buffer") for spec in of.record.fields)
    is_one = all(count.text.strip() == "1" for _, count in of.dims)
    return "whole" if is_apart or is_one else "some lanes at a time"


def _loss(of: Declaration) -> str:
    if of.positions == "events":
        return "unknown: a slot for each event"
    if of.overflow in ("drop", "ring") and of.offered is not None:
        return "exact" if "0 - 1" not in of.offered.text else "exact where lanes count"
    if of.overflow.startswith("ring"):
        return "overwritten: at least"
    return "full lanes, unknown number" if of.overflow == "saturated" else "full lanes: at least"


def _bits(spec: FieldSpec) -> str:
    if spec.byte is not None:
        return f"{spec.width} bits from byte `{spec.byte.text}` of {spec.array or 'the buffer'}"
    return f"{spec.bit + spec.width - 1}..{spec.bit}"


def _roles(of: Declaration, name: str) -> list[str]:
    """Return what a field is part of: roles, and tests."""
    parts = dict(of.roles) | {
        "empty": of.record.empty,
        "agree": of.record.agree,
        "offered": of.offered,
        "next": of.next,
    }
    parts |= {"used": of.used, "check": of.lane_check, "anchor": of.clock.anchor}
    parts |= {"kind": of.kind[0]} if of.kind is not None else {}
    return [part for part, expression in parts.items() if expression is not None and name in expression.names]


def rules() -> str:
    """What `lanescope check` looks for."""
    parts = ["# Rules", "What `lanescope check` looks for. `lanescope check --explain CODE` prints the same."]
    for rule in check.RULES:
        title = f"({rule.code})=\n## {rule.code}: {rule.title}"
        parts += [title, f"*{rule.severity}*. {rule.description}", f"**What to do.** {rule.help}"]
    return "\n\n".join(parts) + "\n"


def limits() -> str:
    """What `lanescope doctor CAPTURE` may say that a capture cannot prove."""
    parts = [
        "# Limits of captures",
        "What a capture may be unable to prove. `lanescope doctor CAPTURE` lists those of one capture; "
        "{doc}`/explain/checkable` explains them.",
    ]
    declared = {"All captures": analysis_limits.COMMON} | {each.name: each.limits for each in registry.builtin()}
    for title, each in declared.items():
        rows = [(f"`{limit.name}`", limit.cannot, limit.instead) for limit in each]
        parts.append(f"## {title}\n\n" + _table(("limit", "cannot be proven", "record instead"), rows))
    return "\n\n".join(parts) + "\n"


def commands() -> str:
    """The help of each command."""
    parts = [
        "# Commands",
        "{doc}`/reference/exit-status` has what the exit status of a command means.",
    ]
    parsers = {
        verb: arguments.build_parser(
            verb, import_module(f"lanescope.cli.commands.{verb.replace('-', '_')}"), [verb], registry.builtin()
        )
        for verb in cli.COMMANDS
    }
    for family in registry.builtin():
        parsers |= {command.name: arguments.command_parser(command, family) for command in family.commands}
    for verb, parser in parsers.items():
        parser.formatter_class = lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=100)
        parts.append(f"## lanescope {verb}\n\n```text\n{parser.format_help()}```")
    return "\n\n".join(parts) + "\n"


def options() -> str:
    """What each family takes and offers besides what all do, as ``--help-family`` shows it."""
    parts = [
        "# Options of device families",
        "As `lanescope COMMAND --help-family NAME` shows them. Keyword arguments in Python; on the command line flags "
        "with dashes, or `-O NAME=VALUE`.",
    ]
    for family in registry.builtin():
        parts.append(f"## {family.name}\n\n{family.title}")
        for title, declared in (("Decoding", family.options), ("Simulating (`lanescope sim`)", family.sim_options)):
            if declared:
                rows = [(f"`{o.name}`", o.help, "" if o.default is None else f"`{o.default}`") for o in declared]
                parts.append(f"**{title}**\n\n" + _table(("option", "meaning", "default"), rows))
        for title, each in (
            ("Summaries (`lanescope summary --by`)", family.summaries),
            ("Exports (`lanescope convert --format`)", family.exports),
        ):
            if each:
                parts.append(f"**{title}**\n\n" + _table(("name", "meaning"), [(f"`{e.name}`", e.doc) for e in each]))
    return "\n\n".join(parts) + "\n"
