"""TSDL text -> tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lanescope.wire.tsdl.types import TsdlError

_TOKEN = re.compile(
    r"""(?P<blank>\s+|/\*.*?\*/|//[^\n]*)|(?P<text>L?"(?:[^"\\\n]|\\.)*+")|(?P<character>L?'(?:[^'\\\n]|\\.)++')
    |(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*)(?!\w)|(?P<word>[A-Za-z_]\w*)
    |(?P<mark>:=|\.\.\.|->|[{}\[\]();:=,.<>+*-])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
#: No number of TSDL has more digits.
_MOST_DIGITS = 22


@dataclass(frozen=True, slots=True)
class Token:
    """One word, number, text or mark.

    Attributes:
        kind: ``word``, ``number``, ``text`` or ``mark``; empty at the end.
        text: as it is written; of a text what it means.
        line: counted from 1.
    """

    kind: str
    text: str
    line: int

    @property
    def number(self) -> int:
        """The value of a number: decimal, octal behind a 0, hexadecimal behind 0x."""
        digits = self.text.rstrip("uUlL")
        if len(digits) > _MOST_DIGITS:
            raise TsdlError(f"number of {len(digits)} digits", self.line)
        try:
            return int(digits, 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10)
        except ValueError:
            raise TsdlError(f"invalid number {digits}", self.line) from None


def tokens(text: str) -> list[Token]:
    """Split a description.

    Raises:
        TsdlError: characters that begin no token.

    Complexity:
        Linear in the length.
    """
    found = []
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise TsdlError(f"unexpected characters {text[at : at + 20]!r}", line)
        kind, written = match.lastgroup or "", match[0]
        if kind == "character":
            # A single character is a number of one byte.
            value = _unescaped(written.lstrip("L")[1:-1], line)
            found.append(Token("number", str(ord(value[0])), line))
        elif kind == "text":
            found.append(Token(kind, _unescaped(written.lstrip("L")[1:-1], line), line))
        elif kind != "blank":
            found.append(Token(kind, written, line))
        line += written.count("\n")
        at = match.end()
    return found


def _unescaped(text: str, line: int) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] == "x" and len(code) > 1:
            return chr(int(code[1:], 16))
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        if code in "\"'\\?":
            return code
        if code not in _LETTERS:
            raise TsdlError(f"invalid escape \\{code}", line)
        return _LETTERS[code]

    return _ESCAPE.sub(character, text) if "\\" in text else text
