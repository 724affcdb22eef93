"""Register writes as a JSON document, each with its meaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from lanescope.declaration import replace
from lanescope.devices.aie.config.json_config import parse, to_json
from lanescope.devices.aie.config.model import Config
from lanescope.devices.aie.config.register_writes import from_writes, start_writes, stop_writes, unread_at, write_at
from lanescope.devices.aie.config.validators import ConfigError, integer

SCHEMA = "lanescope.aie-registers/1"


def to_document(known: Config) -> dict[str, Any]:
    """Return the register writes as a JSON value, each with its meaning."""
    content = to_json(known)
    del content["tiles"]
    content.pop("trigger", None)
    for part, writes in (("start_writes", start_writes(known)), ("stop_writes", stop_writes(known))):
        content[part] = [
            {
                "col": write.col,
                "row": write.row,
                "module": write.register.module,
                "register": write.register.name,
                "address": f"{write.register.offset:#x}",
                "value": f"{write.value:#010x}",
                "fields": write.description(known.device),
            }
            for write in writes
        ]
    return {"schema": SCHEMA, **content}


def from_document(content: Mapping[str, Any]) -> Config:
    """Return the configuration of a document of register writes: ``col``, ``row``, ``address`` and ``value`` count.

    Raises:
        ConfigError: it makes no sense, or sets up no trace.
    """
    schema = content.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise ConfigError(f"unsupported schema {str(schema)[:60]!r}", f"use schema {SCHEMA}")
    head = {name: content[name] for name in ("device", "frequency_hz", "column_shift") if name in content}
    known = parse({**head, "tiles": []})
    writes = []
    unread: Counter[str] = Counter()
    for part in ("start_writes", "stop_writes"):
        listed = content.get(part, [])
        if not isinstance(listed, list):
            raise ConfigError(f"invalid {part}: expected a list")
        for index, entry in enumerate(listed):
            where = f"{part} {index + 1}"
            if not isinstance(entry, dict):
                raise ConfigError(f"{where}: expected a JSON object", "write {...}")
            address = _number(entry.get("address"), where, "address")
            value = _number(entry.get("value"), where, "value")
            write = write_at(address, value, col=entry.get("col"), row=entry.get("row"), where=where)
            if write is not None:
                writes.append(write)
            elif name := unread_at(address, value):
                unread[name] += 1
    made = from_writes(known.device, writes)
    if not made.places:
        raise ConfigError("no register writes of a trace unit found")
    return replace(
        known, units=made.units, trigger=made.trigger, contradictions=made.contradictions, unread=dict(unread)
    )


def _number(value: Any, where: str, what: str) -> int:
    if isinstance(value, str) and len(value) <= 12:
        try:
            value = int(value, 0)
        except ValueError:
            raise ConfigError(f"{where}: invalid {what} {value!r}: expected an integer") from None
    return integer(value, (1 << 32) - 1, what, where=where)
