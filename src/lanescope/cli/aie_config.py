"""Set up the trace units of an AMD AI engine, or see how they are set up.

Reads a configuration as short JSON (tiles, events, mode, start and stop, packet ids), as the registers that this
command writes, or from the MLIR text of a design, and says it in any of these forms. What is left open is chosen as
mlir-aie chooses it. Without an output the register writes are shown.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from lanescope.devices import Family
from lanescope.errors import UsageError

EXAMPLES = (
    "lanescope aie-config traced.json",
    "lanescope aie-config traced.json -o traced.mlir --force",
)

#: Form -> what it is.
FORMS = {
    "table": "the register writes, for people",
    "json": "short JSON",
    "registers": "JSON with the register writes",
    "mlir": "aie.trace operations",
    "writes": "register writes as MLIR operations of a runtime sequence",
}


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    parser.add_argument("input", metavar="INPUT", help="JSON, or MLIR text such as input_with_addresses.mlir")
    parser.add_argument("-o", "--output", metavar="OUT", help="where to; standard output by default")
    forms = "; ".join(f"{name}: {what}" for name, what in FORMS.items())
    parser.add_argument(
        "--to", choices=tuple(FORMS), help=f"{forms}. By itself the suffix tells: .mlir is mlir, .json is json"
    )
    parser.add_argument("--force", action="store_true", help="replace what is there")


def run(args: argparse.Namespace) -> int:
    """Read, complete, and write in another form."""
    from lanescope.cli.common import echo, is_stdout
    from lanescope.devices.aie import config
    from lanescope.view.formatting import escape

    target = None if args.output is None or is_stdout(args.output) else Path(args.output)
    form = args.to or ({".mlir": "mlir", ".json": "json"}.get(target.suffix, "table") if target else "table")
    known = config.read(Path(args.input))
    if known.unread:
        listed = ", ".join(f"{escape(what)} {count}" for what, count in known.unread.items())
        echo(f"lanescope: {escape(args.input)}: not read, so not in what follows: {listed}")
    try:
        known = config.apply_defaults(known)
        text = _said(form, known)
    except config.ConfigError as error:
        raise UsageError(f"{args.input}: {error}", hint=error.hint) from None
    if target is None:
        if text is None:
            from lanescope.devices.aie.config import register_writes
            from lanescope.view.table_output import show

            columns = ("when", "col", "row", "register", "address", "value", "meaning")
            show(columns, register_writes.describe(known), title=f"register writes, {known.device}")
        else:
            sys.stdout.write(text)
        return 0
    if text is None:
        raise UsageError("a table goes to the terminal", hint="say --to json, registers, mlir or writes")
    _write(target, text, Path(args.input), force=args.force)
    return 0


def _said(form: str, known: object) -> str | None:
    """Return the text of a form; None for the table."""
    from lanescope.devices.aie.config import Config, json_config, mlir_writer, register_json, register_writes

    assert isinstance(known, Config)
    if form == "json":
        return json.dumps(json_config.to_json(known), indent=2) + "\n"
    if form == "registers":
        return json.dumps(register_json.to_document(known), indent=2) + "\n"
    if form == "mlir":
        return mlir_writer.to_mlir(known)
    if form == "writes":
        return mlir_writer.to_mlir_writes(known)
    register_writes.start_writes(known)  # says what is wrong
    return None


def _write(target: Path, text: str, source: Path, *, force: bool) -> None:
    from lanescope.cli.common import check_output, echo
    from lanescope.io.atomic_file import atomic_writer
    from lanescope.view.formatting import escape

    check_output(str(target), [str(source)], force=force)
    with atomic_writer(target) as file:
        size = file.write(text.encode())
    echo(f"{escape(str(target))}: {size} bytes")
