"""Tokens of MLIR texts, read without MLIR: what is not well formed is read as far as it goes."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

_MAX_DIGITS = 20
#: What begins names of values, symbols, blocks, attributes and types.
_SIGILS = "%@^#!"

# What may stand between tokens goes with the one before it.
_SKIP = r"(?>[ \t\r\n\f\v]+|//[^\n]*)*"
_TOKEN = re.compile(
    r"""
    (?: "(?P<text>(?:[^"\\\n]|\\.)*)"?
      | (?P<number>-?(?:0[xX][0-9A-Fa-f]+|[0-9]+)(?![\w.]))
      | (?P<word>[%@^\#!]?[\w$][\w$.]*(?:::[\w$.]+)*)
      | (?P<mark>.)
    )"""
    + _SKIP,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A token: ``text``, ``number``, ``word``, ``mark`` or ``end``, and its characters."""

    kind: str
    text: str


END = Token("end", "")


def _tokens(text: str) -> Iterator[Token]:
    begin = re.match(_SKIP, text)
    for match in _TOKEN.finditer(text, begin.end() if begin else 0):
        kind = match.lastgroup or "text"
        yield Token(kind, match[kind])


class Tokens:
    """The tokens of a text, each taken once.

    Args:
        text: the text.

    Attributes:
        depth: braces that are open, as far as the reader counts them.
    """

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._ahead: deque[Token] = deque()  # tokens that were looked at and not taken
        self.depth = 0

    def peek(self, ahead: int = 0) -> Token:
        """Return a token that is not taken yet."""
        while len(self._ahead) <= ahead:
            self._ahead.append(next(self._tokens, END))
        return self._ahead[ahead]

    def next(self) -> Token:
        """Take the next token."""
        return self._ahead.popleft() if self._ahead else next(self._tokens, END)

    def skip(self, mark: str) -> bool:
        """Take a mark if it is next."""
        if self.peek() == ("mark", mark):
            self.next()
            return True
        return False

    def number(self) -> int | None:
        """Take a number if it is next; None as well if no register could hold it."""
        token = self.peek()
        if token.kind != "number":
            return None
        self.next()
        if len(token.text) > _MAX_DIGITS:
            return None
        return int(token.text, 16 if "x" in token.text.lower() else 10)

    def word(self) -> str:
        """Take a word or a text if it is next."""
        if self.peek().kind in ("word", "text"):
            return self.next().text
        return ""

    def pairs(self, arrays: dict[str, list[int]] | None = None) -> dict[str, str | int]:
        """Take ``name = value`` pairs: in braces, or as they stand on a line; values are numbers or words.

        A pair ends the list when no further one follows; nothing is taken back, so no token is read twice.

        Args:
            arrays: takes the values that are ``array<i32: 1, 2>``; None: such a value ends the pairs.
        """
        found: dict[str, str | int] = {}
        opened = 0
        while True:
            token = self.peek()
            if token in (("mark", "{"), ("mark", "<"), ("mark", ",")):
                self.next()
                opened += token.text != ","
                continue
            if token.kind != "word" or token.text[0] in _SIGILS or self.peek(1) != ("mark", "="):
                break
            self.next()
            self.next()
            value = self.value()
            if value == "array" and arrays is not None and self.skip("<"):
                arrays[token.text] = self._numbers()
            elif value is not None:
                found[token.text] = value
            if self.skip(":"):
                self.next()
        while opened and (self.skip("}") or self.skip(">")):
            opened -= 1
        self.depth += opened  # what is left open is closed later
        return found

    def _numbers(self) -> list[int]:
        """Take ``i32: 1, 2>``."""
        self.word()
        found: list[int] = []
        if self.skip(":"):
            while (number := self.number()) is not None:
                found.append(number)
                if not self.skip(","):
                    break
        self.skip(">")
        return found

    def value(self) -> str | int | None:
        """Take a number, a word, or what stands in ``<...>``."""
        number = self.number()
        if number is not None:
            return number
        if self.skip("<"):
            number = self.number()
            value: str | int = number if number is not None else self.word()
            while self.peek().kind == "word":  # <kind NAME>
                value = self.next().text
            self.skip(">")
            return value
        if self.peek().kind == "number":
            self.next()
            return None
        return self.word() or None

    def symbol(self) -> str:
        """Take a symbol if it is next; without its ``@``."""
        if self.peek().kind == "word" and self.peek().text.startswith("@"):
            return self.next().text[1:]
        return ""

    def operands(self) -> list[str]:
        """Take ``(%a, %b)``."""
        found: list[str] = []
        if self.skip("("):
            while self.peek().kind == "word" and self.peek().text[0] in "%@":
                found.append(self.next().text)
                if not self.skip(","):
                    break
            self.skip(")")
        return found
