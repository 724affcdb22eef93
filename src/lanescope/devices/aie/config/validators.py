"""Validators for numbers and names in configurations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lanescope.devices.aie.formats import events
from lanescope.errors import UsageError


class ConfigError(ValueError):
    """Invalid configuration: the message gives location and reason, ``hint`` the remedy."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint or "see the documentation: Configure tracing"


def integer(value: Any, most: int, what: str, *, least: int = 0, where: str = "") -> int:
    """Return an integer within bounds; ``ConfigError``, with the location ``where``, for any other value."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        subject = f"{where}: " if where else ""
        raise ConfigError(f"{subject}invalid {what} {quote_value(value)}: must be an integer from {least} to {most}")
    return value


def event_number(device: str, module: str, event: Any) -> int:
    """Return the number of an event that is given by name or number.

    Raises:
        ConfigError: unknown event; the message lists similar names.
    """
    if isinstance(event, str):
        try:
            return events.number(device, module, event)
        except UsageError as error:
            raise ConfigError(error.message, error.hint) from None
    number = integer(event, 255, "event")
    if number not in events.names(device, module):
        raise ConfigError(f"unknown event {number} of {device} {module}")
    return number


def port_selection(module: str, port: Any) -> int:
    """Return the selection byte of a port that is given by name (``DMA:0 master``) or as that byte.

    Raises:
        ConfigError: the module has no such port.
    """
    from lanescope.devices.aie.formats import registers

    known = registers.ports(module)
    if not known:
        raise ConfigError(f"{module} has no ports", "use PORT events in core, shim and memtile only")
    if isinstance(port, str):
        if port not in known:
            raise unknown_name_error("port", port, known)
        return known[port]
    return integer(port, 0x3F, "port")


def unknown_name_error(what: str, value: Any, known: Iterable[str]) -> ConfigError:
    """Return the error for a word that is none of those known; one that comes close is named."""
    listed = list(known)
    hint = events.suggestion(value, listed) or "use one of " + ", ".join(listed)
    return ConfigError(f"unknown {what} {quote_value(value)}", hint)


def quote_value(value: Any) -> str:
    """Return a value as an error names it, short."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
