"""The fields of one text record: ``{ name: value, name: { ... }, name: [ ... ] }`` -> Python values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from lanescope.devices.levelzero.layout import FLAG_NAMES

#: Values may hold values up to here; what is deeper is left out.
_DEEPEST = 16
_INT_MAX = (1 << 63) - 1
_UINT_MAX = (1 << 64) - 1

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<name>[A-Za-z_]\w*)\s*:\s+           # a field begins
      | (?P<open>[{\[])
      | (?P<close>[}\]])
      | (?P<comma>,)
      | "(?P<text>[^"\\]*(?:\\.[^"\\]*)*)(?:"|\\?\Z)  # one without an end takes the rest, so nothing is scanned twice
      | (?P<word>[^\s,\[\]{}"][^,\[\]{}"]*)
      | (?P<stray>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def parse(payload: bytes) -> dict[str, Any]:
    """Parse the fields of a record; what is no field is left out, whatever it is.

    Args:
        payload: from the opening brace to the closing one.

    Returns:
        Text by name; structures as dicts, arrays as lists. Quoted strings lose their quotes.

    Complexity:
        Linear in the length, whatever it holds.

    Example:
        >>> parse(b'{ hKernel: 0x10, desc_val: { pKernelName: "mma, a" }, phWaitEvents_vals: [ 1, 2 ] }')
        {'hKernel': '0x10', 'desc_val': {'pKernelName': 'mma, a'}, 'phWaitEvents_vals': ['1', '2']}
    """
    text = payload.decode(errors="replace")
    body = text[1:-1]
    if not ("{" in body or "[" in body or '"' in body):
        found = {}
        for pair in body.split(","):
            name, colon, value = pair.partition(": ")
            if colon:
                found[name.strip()] = value.strip()
        return found
    return _nested(text)


def _nested(text: str) -> dict[str, Any]:
    root: dict[str, Any] = {}
    stack: list[dict[str, Any] | list[Any] | None] = []
    name = ""

    def put(value: Any) -> None:
        holder = stack[-1] if stack else None
        if isinstance(holder, dict):
            if name:
                holder[name] = value
        elif isinstance(holder, list):
            holder.append(value)

    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "name":
            name = match["name"]
        elif kind == "open":
            value: dict[str, Any] | list[Any] = {} if match["open"] == "{" else []
            if not stack and isinstance(value, dict) and not root:
                stack.append(root)
            elif len(stack) < _DEEPEST:
                put(value)
                stack.append(value)
            else:
                stack.append(None)
            name = ""
        elif kind == "close":
            if stack:
                stack.pop()
            name = ""
        elif kind == "comma":
            name = ""
        elif kind == "text":
            put(_ESCAPE.sub(r"\1", match["text"]))
        elif kind == "word":
            put(match["word"].rstrip())
    return root


class Fields:
    """Fields of a record, read by what they have to be.

    Args:
        values: as ``parse`` returns them.
        complain: is called for each field that is missing or is no value of its kind.
    """

    __slots__ = ("_values", "complain")

    def __init__(self, values: dict[str, Any], complain: Callable[[], object] = lambda: None) -> None:
        self._values = values
        self.complain = complain

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str) -> Any:
        """Return a field as it was parsed, None when it is missing."""
        return self._values.get(name)

    def integer(self, name: str) -> int | None:
        """Return an integer of 0 to 2^64 - 1, decimal or ``0x`` hexadecimal; complain and return None otherwise."""
        value = _integer(self._values.get(name))
        if value is None:
            self.complain()
        return value

    def optional(self, *names: str) -> int | None:
        """Return the first of the fields that is there, as ``integer`` does; None, quietly, if none is."""
        for name in names:
            if name in self._values:
                return self.integer(name)
        return None

    def handle(self, name: str) -> int:
        """Return a handle, 0 with a complaint when there is none."""
        return self.integer(name) or 0

    def small(self, name: str) -> int | None:
        """Return an integer of 0 to 2^63 - 1; complain and return None otherwise."""
        value = _integer(self._values.get(name))
        if value is None or value > _INT_MAX:
            self.complain()
            return None
        return value

    def switch(self, name: str) -> bool:
        """Return a truth value: a number other than 0, or ``true``."""
        value = self._values.get(name)
        return value == "true" or bool(_integer(value))

    def integers(self, name: str) -> list[int]:
        """Return a list of integers; one value stands for a list of one."""
        value = self._values.get(name)
        listed = value if isinstance(value, list) else [] if value is None else [value]
        numbers = [_integer(item) for item in listed]
        return [number for number in numbers if number is not None]

    def flags(self, name: str) -> int:
        """Return flags that are written as a number, as names joined by ``|``, or as a list of either."""
        value = self._values.get(name)
        bits = 0
        for item in value if isinstance(value, list) else [value]:
            for word in str(item).split("|"):
                number = _integer(word.strip())
                bits |= FLAG_NAMES.get(word.strip(), 0) if number is None else number
        return bits

    def structure(self, name: str) -> dict[str, Any]:
        """Return a structure, empty when there is none."""
        value = self._values.get(name)
        return value if isinstance(value, dict) else {}

    def text(self, name: str) -> str:
        """Return text, empty when there is none."""
        value = self._values.get(name)
        return value if isinstance(value, str) else ""


def _integer(value: Any) -> int | None:
    if not isinstance(value, str) or len(value) > 20:
        return None
    try:
        number = int(value, 0)
    except ValueError:
        # Leading zeros are no octal number here.
        if not value.isdigit():
            return None
        number = int(value)
    return number if 0 <= number <= _UINT_MAX else None
