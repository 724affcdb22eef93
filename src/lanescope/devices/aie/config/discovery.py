"""Configuration files: given by name, or found next to the capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanescope.devices.aie.config.model import Config
from lanescope.errors import UsageError, os_reason

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from lanescope.source import Capture, Source

#: No configuration is larger.
_MAX_BYTES = 64 << 20


def find(capture: Capture, options: Mapping[str, Any]) -> tuple[Config, Source | None]:
    """Return the configuration of a capture, and the file that it was read from.

    The given file; else ``NAME.config.json`` or ``NAME.mlir`` next to the capture; else an empty configuration.

    Args:
        capture: the capture.
        options: ``config``, ``mlir`` and ``sequence``; any may be missing.

    Raises:
        UsageError: it cannot be read, makes no sense, or two are given.
    """
    path, mlir_path, sequence = options.get("config"), options.get("mlir"), options.get("sequence")
    if path is not None and mlir_path is not None:
        raise UsageError("--config and --mlir are mutually exclusive", hint="use one of them")
    given = mlir_path if path is None else path
    source = None
    if given is None:
        name = capture.name_pattern
        source = capture.sidecar("config", None, (f"{name}.config.json", f"{name}.mlir"))
        if source is None and "config" not in capture.unreadable:
            if sequence is not None:
                raise UsageError("--sequence is only for MLIR texts", hint="use --mlir FILE with it")
            return Config(), None
    from pathlib import Path

    if given is None and source is None:
        found = capture.unreadable["config"]
    else:
        found = Path(given or "" if source is None else source.path)
    if mlir_path is not None or found.suffix == ".mlir":
        known = load_mlir(found, sequence)
    elif sequence is not None:
        raise UsageError("--sequence is only for MLIR texts", hint="use --mlir FILE with it")
    else:
        known = load(found)
    return known, source or capture.open_sidecar("config", found)


def load(path: Path) -> Config:
    """Read a configuration: JSON of this form, registers as ``aie-config`` writes them, instruction stream, xclbin.

    Raises:
        UsageError: it cannot be read, or says something that makes no sense; the message names the place.
    """
    import json

    from lanescope.devices.aie.config import json_config, register_json
    from lanescope.devices.aie.config.validators import ConfigError

    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"cannot open {str(path)!r}: {os_reason(error)}", hint="check the path of the configuration"
        ) from None
    if len(raw) > _MAX_BYTES:
        raise UsageError(f"{path}: larger than {_MAX_BYTES >> 20} MiB: no configuration", hint="check the path")
    if _is_binary(raw):
        return _load_binary(path, raw)
    try:
        content = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: invalid JSON: {error}", hint="write the configuration as a JSON object") from None
    try:
        if isinstance(content, dict) and "start_writes" in content:
            return register_json.from_document(content)
        return json_config.parse(content)
    except ConfigError as error:
        raise UsageError(f"{path}: {error}", hint=error.hint) from None


def _is_binary(head: bytes) -> bool:
    if head.lstrip()[:1] in (b"{", b"["):
        return False
    from lanescope.devices.aie.config import instruction_stream

    return instruction_stream.is_stream(head)


def _load_binary(path: Path, content: bytes) -> Config:
    from lanescope.devices.aie.config import build_file, instruction_stream
    from lanescope.devices.aie.config.validators import ConfigError

    try:
        return build_file.read(content) if build_file.is_build(content) else instruction_stream.read(content)
    except ConfigError as error:
        raise UsageError(f"{path}: {error}", hint=error.hint) from None


def load_mlir(path: Path, sequence: str | None = None) -> Config:
    """Read the configuration from an MLIR text; ``sequence`` as ``mlir_parser.read`` takes it.

    Raises:
        UsageError: it cannot be read, or holds no configuration of a trace.
    """
    from lanescope.devices.aie.config import mlir_parser
    from lanescope.devices.aie.config.validators import ConfigError

    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(
            f"cannot open {str(path)!r}: {os_reason(error)}", hint="check the path of the MLIR file"
        ) from None
    try:
        return mlir_parser.read(text, sequence)
    except ConfigError as error:
        raise UsageError(f"{path}: {error}", hint=error.hint) from None


def read(path: Path, sequence: str | None = None) -> Config:
    """Read a configuration in any of its forms: JSON, registers, instruction stream, MLIR.

    Args:
        path: the file.
        sequence: ``device:sequence`` of an MLIR text with several.

    Raises:
        UsageError: it cannot be read, or makes no sense.
    """
    try:
        with path.open("rb") as file:
            head = file.read(1 << 12)
    except OSError as error:
        raise UsageError(f"cannot open {str(path)!r}: {os_reason(error)}", hint="pass a JSON or MLIR file") from None
    if not (head.lstrip()[:1] in (b"{", b"[") or _is_binary(head)):
        return load_mlir(path, sequence)
    if sequence is not None:
        raise UsageError("--sequence is only for MLIR texts", hint="remove --sequence")
    return load(path)
