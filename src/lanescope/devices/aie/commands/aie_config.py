"""Set up trace units, or see how they are set up."""

from __future__ import annotations

import json
from pathlib import Path

from lanescope.errors import UsageError
from lanescope.families.command import Argument, CommandContext, Values

#: Form -> what it is.
FORMS = {
    "table": "readable register writes",
    "json": "short JSON",
    "registers": "JSON with the register writes",
    "mlir": "aie.trace operations",
    "writes": "register writes as MLIR operations of a runtime sequence",
    "insts": "instruction stream insts.bin, or insts.txt",
    "cdo": "configuration data object, which a PDI holds",
    "packets": "control packets ctrlpkt.bin",
}
#: Suffixes of what holds much more than a configuration of traces.
_BUILDS = {".xclbin": "an xclbin", ".pdi": "a PDI", ".elf": "an ELF file"}
#: Forms that are loaded before a run.
_LOADED = ("cdo", "packets")


def run(context: CommandContext, values: Values) -> int:
    """Set up the trace units of an AMD AI engine, or see how they are set up.

    Reads a configuration as short JSON (tiles, events, mode, start and stop, packet ids), as the registers that this
    command writes, from the MLIR text of a design, from the instruction stream of a build (insts.bin, insts.txt, an
    ELF file with control text), or from what it loads (xclbin, PDI, CDO, control packets), and says it in any of these
    forms. What is left open is chosen as mlir-aie chooses it. Without an output the register writes are shown.
    """
    from lanescope.devices.aie import config

    source, target = values["input"], values["output"]
    is_file = not context.is_stdout(target)
    form = values["to"] or _by_suffix(target if is_file else "")
    if values["json"] and (values["to"] or is_file):
        raise UsageError(
            "--json prints the register writes and takes neither --to nor --output",
            hint="use --to json for the configuration as short JSON",
        )
    if is_file and (build := _BUILDS.get(Path(target).suffix)) is not None:
        raise UsageError(
            f"cannot write {build}: it holds the programs and routes of a whole build",
            hint="use --to insts for the host, or --to cdo for bootgen",
        )
    known = config.read(Path(source), values["sequence"])
    if known.unread:
        listed = ", ".join(f"{what} {count}" for what, count in known.unread.items())
        context.warn(f"{source}: unsupported settings ignored: {listed}")
    if known.other_operations:
        listed = ", ".join(f"{what} {count}" for what, count in known.other_operations.items())
        context.warn(f"{source}: operations besides tracing: {listed}")
    for unit in known.reset_apart:
        reset, start = (known.event_name(unit.module, number or 0) for number in (unit.reset, unit.start))
        context.warn(
            f"{source}: {unit.module} ({unit.col}, {unit.row}): {reset} resets the timer and {start} starts the trace: "
            "its times cannot be compared with those of other units"
        )
    try:
        known = config.apply_defaults(known)
        if form in _LOADED and known.trigger is not None:
            context.warn(f"{target}: the writes that stop the trace are not in it: the host makes them after the run")
        content = _said(form, known, is_text=not is_file or Path(target).suffix == ".txt")
    except config.ConfigError as error:
        raise UsageError(f"{source}: {error}", hint=error.hint) from None
    if content is not None:
        size = context.write(target, [content], inputs=[source])
        if is_file:
            context.wrote(target, size=size)
        return 0
    if is_file:
        raise UsageError(
            "cannot write a table to a file", hint=f"use --to {', '.join(form for form in FORMS if form != 'table')}"
        )
    from lanescope.devices.aie.config import register_writes

    columns = ("when", "col", "row", "register", "address", "value", "meaning")
    rows = register_writes.describe(known)
    if values["json"]:
        writes = [dict(zip(columns, row, strict=True)) for row in rows]
        context.json("lanescope.aie-config/1", device=known.device, writes=writes)
    else:
        context.show(columns, rows, title=f"register writes, {known.device}")
    return 0


def _by_suffix(target: str) -> str:
    return {".mlir": "mlir", ".json": "json", ".bin": "insts", ".cdo": "cdo"}.get(Path(target).suffix, "table")


def _said(form: str, known: object, *, is_text: bool) -> bytes | None:
    """Return the content of a form; None for the table. ``is_text``: an instruction stream is written as hex lines."""
    from lanescope.devices.aie.config import (
        Config,
        build_file,
        instruction_stream,
        json_config,
        mlir_writer,
        register_json,
        register_writes,
    )

    assert isinstance(known, Config)
    if form == "json":
        return (json.dumps(json_config.to_json(known), indent=2) + "\n").encode()
    if form == "registers":
        return (json.dumps(register_json.to_document(known), indent=2) + "\n").encode()
    if form == "mlir":
        return mlir_writer.to_mlir(known).encode()
    if form == "writes":
        return mlir_writer.to_mlir_writes(known).encode()
    if form == "insts":
        content = instruction_stream.written(known)
        return instruction_stream.lines(content).encode() if is_text else content
    if form == "cdo":
        return build_file.to_cdo(known)
    if form == "packets":
        content = build_file.to_packets(known)
        return instruction_stream.lines(content).encode() if is_text else content
    register_writes.start_writes(known)  # says what is wrong
    return None


ARGUMENTS = (
    Argument(
        "input",
        "JSON, MLIR text such as input_with_addresses.mlir, insts.bin, or what is loaded: xclbin, CDO, ctrlpkt.bin",
    ),
    Argument("--sequence", "runtime sequence of an MLIR text with several", metavar="DEVICE:SEQUENCE"),
    Argument("--output", "output file (default: standard output)", metavar="OUT", short="-o"),
    Argument(
        "--to",
        "output form (default: from the suffix): " + ", ".join(f"{name} ({what})" for name, what in FORMS.items()),
        choices=tuple(FORMS),
    ),
    Argument("--json", "register writes as one JSON document, schema lanescope.aie-config/1", bool),
)
