"""The fields of one text record: ``{ name: value, name: { ... }, name: [ ... ] }`` -> Python values."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from lanescope.devices.levelzero.formats.layout import FLAG_NAMES, MOST_COUNT

#: Values may hold values up to here; no producer writes deeper ones.
_DEEPEST = 16
_INT_MAX = (1 << 63) - 1
_UINT_MAX = (1 << 64) - 1
_BLANKS = " \t"

# The quantifiers are possessive: a record that does not match is refused in linear time, whatever it holds.
_CONTROL = r"\x00-\x08\x0a-\x1f\x7f"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"
_ESCAPED = r"""\\(?:["\\#abefnrtv]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\})"""
_QUOTED = rf'(?:[^"\\{_CONTROL}]++|{_ESCAPED})*+'
# A colon and a blank would be the next field, with its comma lost. Unquoted names of devices may hold "[0x56a0]".
_PLAIN = rf"[^,\[\]{{}}\":{_CONTROL}]"
_WORD = rf"(?![ \t]){_PLAIN}(?:{_PLAIN}++|:(?![ \t])|\[[^ \t,\[\]{{}}\"{_CONTROL}]++\])*+"
_START = rf"({_NAME}):[ \t]++"
_VALUE = rf'(?:([{{\[])[ \t]*+|"({_QUOTED})"[ \t]*+|({_WORD}))?'
_ESCAPES = r"((?:\\x[0-9a-fA-F]{2})+)|\\u\{?([0-9a-fA-F]+)\}?|\\(.)"
_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class BadField(ValueError):
    """A field is missing, malformed or of another kind: its record cannot be used."""


class NotRead(BadField):
    """A record whose fields say that it is of a kind that is not read."""


def parse(payload: bytes) -> dict[str, Any]:
    """Parse the fields of a record.

    Args:
        payload: from the opening brace to the closing one.

    Returns:
        Text by name, empty where nothing stands; structures as dicts, arrays as lists. Quoted strings lose their
        quotes and escapes.

    Raises:
        BadField: a part of it is not a field.

    Complexity:
        Linear in the length, whatever it holds.

    Example:
        >>> parse(b'{ hKernel: 0x10, desc_val: { pKernelName: "mma, a" }, phWaitEvents_vals: [ 1, 2 ] }')
        {'hKernel': '0x10', 'desc_val': {'pKernelName': 'mma, a'}, 'phWaitEvents_vals': ['1', '2']}
    """
    text = _decoded(payload)
    plain = _plain(text)
    if plain is not None:
        return plain
    return _nested(text)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern at its first use: few captures need all of them."""
    return re.compile(pattern)


def _decoded(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        raise BadField("no UTF-8") from None


def _plain(text: str) -> dict[str, Any] | None:
    """Return the fields of a record of nothing but words and quoted words, None if it holds anything else."""
    if text[:2] != "{ " or text[-2:] != " }" or not text.isascii():
        return None
    values: dict[str, Any] = {}
    parts = text[2:-2].split(", ")
    for part in parts:
        name, _, value = part.partition(": ")
        if not value.isdigit():
            if value[:1] == '"' == value[-1:]:
                value = value[1:-1]
            if not (value.isalnum() or value.replace("_", "0").isalnum()):
                return None
        if not name.isidentifier():
            return None
        values[name] = value
    return values if len(values) == len(parts) else None


def _nested(text: str) -> dict[str, Any]:
    if not text.startswith("{"):
        raise BadField("no opening brace")
    root: dict[str, Any] = {}
    holder: dict[str, Any] | list[Any] = root
    stack: list[dict[str, Any] | list[Any]] = []
    place, closing, is_first = _skip(text, 1), "}", True
    while True:
        if not (is_first and text.startswith(closing, place)):
            name = ""
            if isinstance(holder, dict):
                start = _compiled(_START).match(text, place)
                if start is None or (name := start[1]) in holder:
                    raise BadField("no field, or one that stands twice")
                place = start.end()
            match = _compiled(_VALUE).match(text, place)
            if match is None:
                raise BadField("no value")
            place = match.end()
            opening, quoted, word = match.groups()
            value: Any
            if opening:
                value = {} if opening == "{" else []
            elif quoted is not None:
                value = _unescaped(quoted) if "\\" in quoted else quoted
            else:
                value = word.rstrip(_BLANKS) if word else ""
            if isinstance(holder, dict):
                holder[name] = value
            elif value == "" and quoted is None:
                raise BadField("no item between two commas")
            else:
                holder.append(value)
            if opening:
                stack.append(holder)
                if len(stack) >= _DEEPEST:
                    raise BadField("too many structures in structures")
                holder, closing, is_first = value, "}" if opening == "{" else "]", True
                continue
        while text.startswith(closing, place):
            place = _skip(text, place + 1)
            if not stack:
                if place != len(text):
                    raise BadField("more behind the closing brace")
                return root
            holder = stack.pop()
            closing = "}" if isinstance(holder, dict) else "]"
        if not text.startswith(",", place):
            raise BadField("neither a comma nor an end behind a value")
        place, is_first = _skip(text, place + 1), False


def _skip(text: str, place: int) -> int:
    while text.startswith((" ", "\t"), place):
        place += 1
    return place


def _unescaped(text: str) -> str:
    return _compiled(_ESCAPES).sub(_character, text)


def _character(match: re.Match[str]) -> str:
    raw, number, letter = match.groups()
    if raw:
        # Bytes that are no text stay as they are written.
        return bytes.fromhex(raw.replace("\\x", "")).decode(errors="backslashreplace")
    if number:
        code = int(number, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise BadField("no character")
        return chr(code)
    return _LETTERS.get(letter, letter)


class Fields:
    """Fields of a record, read by what they have to be.

    Args:
        values: as ``parse`` returns them.

    Raises:
        BadField: by all methods, for a field that is missing or no value of its kind.
    """

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str) -> Any:
        """Return a field as it was parsed, None when it is missing."""
        return self._values.get(name)

    def integer(self, name: str) -> int:
        """Return an integer of 0 to 2^64 - 1, decimal or ``0x`` hexadecimal."""
        return _integer(self._values.get(name))

    def optional(self, *names: str) -> int | None:
        """Return the first of the fields that is there, as ``integer`` does; None if none is."""
        for name in names:
            if name in self._values:
                return _integer(self._values[name])
        return None

    def small(self, name: str) -> int:
        """Return an integer of 0 to 2^63 - 1."""
        value = _integer(self._values.get(name))
        if value > _INT_MAX:
            raise BadField(name)
        return value

    def optional_small(self, name: str) -> int | None:
        """Return what ``small`` does; None if the field is missing."""
        return self.small(name) if name in self._values else None

    def switch(self, name: str) -> bool:
        """Return a truth value: 0, 1, ``true`` or ``false``; a field that is missing is false."""
        value = self._values.get(name, "0")
        if value in ("true", "false"):
            return bool(value == "true")
        number = _integer(value)
        if number > 1:
            raise BadField(name)
        return bool(number)

    def integers(self, name: str) -> list[int]:
        """Return a list of integers, empty if the field is missing; a single value becomes a list of one."""
        value = self._values.get(name, [])
        return [_integer(item) for item in (value if isinstance(value, list) else [value])]

    def flags(self, name: str) -> int:
        """Return flags that are written as a number, as names joined by ``|``, or as a list of either."""
        value = self._values.get(name)
        bits = 0
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, str):
                raise BadField(name)
            for word in item.split("|"):
                flag = word.strip()
                bits |= _integer(flag) if flag[:1].isdigit() else FLAG_NAMES.get(flag, 0)
        if bits > MOST_COUNT:
            raise BadField(name)
        return bits

    def structure(self, name: str) -> Fields:
        """Return the fields of a structure; without any when it is missing or empty."""
        value = self._values.get(name) or {}
        if not isinstance(value, dict):
            raise BadField(name)
        return Fields(value)

    def text(self, name: str) -> str:
        """Return text, empty when there is none."""
        value = self._values.get(name, "")
        if not isinstance(value, str):
            raise BadField(name)
        return value

    def word(self, name: str) -> str:
        """Return text that has to be there."""
        value = self.text(name)
        if not value:
            raise BadField(name)
        return value


def _integer(value: Any) -> int:
    if isinstance(value, str) and len(value) <= 20 and value.isascii():
        if value.isdigit():
            # Leading zeros are no octal number here.
            number = int(value)
            if number <= _UINT_MAX:
                return number
        elif value[:2] in ("0x", "0X") and value[2:].isalnum():
            try:
                number = int(value, 16)
            except ValueError:
                pass
            else:
                if number <= _UINT_MAX:
                    return number
    raise BadField(f"no number: {value!r}")


def byte(value: Any) -> int:
    """Return an integer of 0 to 255.

    Raises:
        BadField: it is none.
    """
    number = _integer(value)
    if number > 0xFF:
        raise BadField("no byte")
    return number
