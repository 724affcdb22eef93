"""TSDL tokens -> blocks (``trace``, ``stream``, ``event``, ...) whose types are resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lanescope.wire.tsdl.lexer import Token, tokens
from lanescope.wire.tsdl.trace_kinds import Value
from lanescope.wire.tsdl.types import Array, Integer, Path, Real, Struct, Text, TsdlError, Type, Variant

_BLOCKS = ("trace", "stream", "event", "clock", "env", "callsite")
_BUILT = ("integer", "floating_point", "string", "struct", "variant", "enum")
_ORDERS = {"native": None, "network": True, "be": True, "le": False}
_BASES = {
    **dict.fromkeys(("decimal", "dec", "d", "i", "u", "10"), 10),
    **dict.fromkeys(("hexadecimal", "hex", "x", "X", "p", "16"), 16),
    **dict.fromkeys(("octal", "oct", "o", "8"), 8),
    **dict.fromkeys(("binary", "b", "2"), 2),
}
_ENCODINGS = {"none": False, "UTF8": True, "utf8": True, "utf-8": True, "UTF-8": True, "ASCII": True, "ascii": True}
#: Structures in structures, at most.
_DEEPEST = 32
_MOST_FIELDS = 4096
_MOST_LABELS = 1 << 16
_END = Token("", "", 0)


@dataclass(slots=True)
class Block:
    """One block at the top of a description.

    Attributes:
        kind: ``trace``, ``stream``, ``event``, ``clock``, ``env`` or ``callsite``.
        line: where it begins.
        values: settings by name.
        types: types by name: ``packet.header``, ``fields``, ...
    """

    kind: str
    line: int
    values: dict[str, Value] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)

    def number(self, name: str, default: int = 0) -> int:
        """Return a setting that has to be a number."""
        value = self.values.get(name, default)
        if not isinstance(value, int):
            raise TsdlError(f"{self.kind}: {name} is not a number", self.line)
        return value

    def text(self, name: str) -> str:
        """Return a setting as text, empty if it is missing."""
        return str(self.values.get(name, ""))


def parse(text: str) -> list[Block]:
    """Parse a description.

    Raises:
        TsdlError: with the line.

    Complexity:
        Linear in the length.
    """
    return _Parser(tokens(text)).blocks()


class _Parser:
    def __init__(self, found: Sequence[Token]) -> None:
        self._tokens, self._at = found, 0
        self._scopes: list[dict[str, Type]] = [{}]
        self._depth = 0

    # --- tokens -------------------------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else _END

    def _next(self) -> Token:
        token = self._peek()
        if token is _END:
            raise TsdlError("unexpected end", self._tokens[-1].line if self._tokens else 0)
        self._at += 1
        return token

    def _is(self, *texts: str) -> bool:
        token = self._peek()
        return token.kind != "text" and token.text in texts

    def _accept(self, mark: str) -> bool:
        if self._is(mark):
            self._at += 1
            return True
        return False

    def _expect(self, mark: str) -> None:
        token = self._next()
        if token.kind == "text" or token.text != mark:
            raise TsdlError(f"expected {mark!r} before {token.text!r}", token.line)

    def _word(self) -> str:
        token = self._next()
        if token.kind != "word":
            raise TsdlError(f"expected a name before {token.text!r}", token.line)
        return token.text

    @property
    def _line(self) -> int:
        return self._peek().line

    # --- blocks -------------------------------------------------------------------------------------------------

    def blocks(self) -> list[Block]:
        found = []
        while self._peek() is not _END:
            if self._accept(";"):
                continue
            token = self._peek()
            if token.kind == "word" and token.text in _BLOCKS and self._peek(1).text == "{":
                self._at += 1
                found.append(self._block(token))
            elif not self._declaration():
                raise TsdlError(f"unknown declaration {token.text!r}", token.line)
        return found

    def _block(self, begin: Token) -> Block:
        block = Block(begin.text, begin.line)
        self._expect("{")
        self._scopes.append({})
        while not self._accept("}"):
            if self._accept(";") or self._declaration():
                continue
            line, name = self._line, ".".join(self._path())
            if name in block.values or name in block.types:
                raise TsdlError(f"{name} is set twice", line)
            if self._accept(":="):
                block.types[name] = self._type(is_named=False)
            else:
                self._expect("=")
                block.values[name] = self._value()
            self._expect(";")
        self._scopes.pop()
        return block

    def _path(self) -> Path:
        found = [self._word()]
        while self._accept(".") or self._accept("->"):
            found.append(self._word())
        return tuple(found)

    def _value(self) -> Value:
        token = self._peek()
        if self._accept("-"):
            return -self._number()
        if self._accept("+") or token.kind == "number":
            return self._number()
        if token.kind == "text":
            return self._next().text
        return ".".join(self._path())

    def _number(self) -> int:
        token = self._next()
        if token.kind != "number":
            raise TsdlError(f"expected a number before {token.text!r}", token.line)
        return token.number

    # --- declarations of types ----------------------------------------------------------------------------------

    def _declaration(self) -> bool:
        """Read a declaration of types; return whether there is one."""
        token = self._peek()
        if token.kind != "word":
            return False
        if token.text == "typealias":
            self._at += 1
            kind = self._type(is_named=False)
            while self._peek().kind == "word" or self._is("*"):
                self._at += 1  # an abstract declarator
            self._expect(":=")
            self._define(self._alias_name(), kind, token.line)
        elif token.text == "typedef":
            self._at += 1
            kind = self._type(is_named=True)
            while True:
                stars = self._stars()
                name, made = self._declarator(kind)
                self._define(name + stars, made, token.line)
                if not self._accept(","):
                    break
        elif token.text in ("struct", "variant", "enum"):
            self._type(is_named=False)
        else:
            return False
        self._expect(";")
        return True

    def _stars(self) -> str:
        found = ""
        while self._is("*", "const"):
            self._at += 1
            found += " *"
        return found

    def _alias_name(self) -> str:
        words = []
        while self._peek().kind == "word" or self._is("*"):
            words.append(self._next().text)
        if not words:
            raise TsdlError("expected a name of a type", self._line)
        return " ".join(words)

    def _define(self, name: str, kind: Type, line: int) -> None:
        if name in self._scopes[-1]:
            raise TsdlError(f"type {name!r} is defined twice", line)
        self._scopes[-1][name] = kind

    def _lookup(self, name: str, line: int) -> Type:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        raise TsdlError(f"unknown type {name!r}", line)

    # --- types --------------------------------------------------------------------------------------------------

    def _type(self, *, is_named: bool) -> Type:
        """Read a type; where ``is_named``, the last of several words is the name of what has the type."""
        token = self._peek()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise TsdlError(f"types in types, more than {_DEEPEST} deep", token.line)
        kind = self._built() if token.text in _BUILT and token.kind == "word" else self._named(is_named=is_named)
        self._depth -= 1
        return kind

    def _built(self) -> Type:
        token = self._next()
        if token.text == "integer":
            return self._integer(token.line)
        if token.text == "floating_point":
            return self._real(token.line)
        if token.text == "string":
            if self._is("{"):
                self._encoded(self._settings(), token.line)
            return Text()
        if token.text == "struct":
            return self._struct(token.line)
        return self._variant(token.line) if token.text == "variant" else self._enum(token.line)

    def _named(self, *, is_named: bool) -> Type:
        line, words = self._line, list[str]()
        while self._peek().kind == "word" or (self._is("*") and words):
            behind = self._peek(1)
            if (
                is_named
                and words
                and self._peek().kind == "word"
                and behind.text not in ("*",)
                and behind.kind != "word"
            ):
                break
            words.append(self._next().text)
        if not words:
            raise TsdlError(f"expected a type before {self._peek().text!r}", line)
        return self._lookup(" ".join(words), line)

    def _settings(self) -> dict[str, Value]:
        values: dict[str, Value] = {}
        self._expect("{")
        while not self._accept("}"):
            if self._accept(";"):
                continue
            line, name = self._line, self._word()
            if name in values:
                raise TsdlError(f"{name} is set twice", line)
            self._expect("=")
            values[name] = self._value()
            self._expect(";")
        return values

    @staticmethod
    def _order(values: dict[str, Value], line: int) -> bool | None:
        order = str(values.get("byte_order", "native"))
        if order not in _ORDERS:
            raise TsdlError(f"invalid byte order {order!r}", line)
        return _ORDERS[order]

    @staticmethod
    def _aligned(values: dict[str, Value], default: int, line: int) -> int:
        align = values.get("align", default)
        if not isinstance(align, int) or not 0 < align <= 1 << 20 or align & (align - 1):
            raise TsdlError(f"invalid alignment {align!r}", line)
        return align

    @staticmethod
    def _encoded(values: dict[str, Value], line: int) -> bool:
        encoding = str(values.get("encoding", "none"))
        if encoding not in _ENCODINGS:
            raise TsdlError(f"invalid encoding {encoding!r}", line)
        return _ENCODINGS[encoding]

    def _integer(self, line: int) -> Integer:
        values = self._settings()
        size = values.get("size")
        if not isinstance(size, int) or not 1 <= size <= 64:
            raise TsdlError(f"integer of {size} bits: expected 1 to 64", line)
        signed = values.get("signed", "false")
        if str(signed) not in ("0", "1", "true", "false", "TRUE", "FALSE"):
            raise TsdlError(f"invalid sign {signed!r}", line)
        base = str(values.get("base", 10))
        if base not in _BASES:
            raise TsdlError(f"invalid base {base!r}", line)
        mapped = str(values.get("map", "")).split(".")
        if mapped != [""] and (len(mapped) != 3 or mapped[0] != "clock" or mapped[2] != "value"):
            raise TsdlError(f"invalid map {'.'.join(mapped)!r}: expected clock.NAME.value", line)
        return Integer(
            size,
            self._aligned(values, 1 if size % 8 else 8, line),
            str(signed) in ("1", "true", "TRUE"),
            self._order(values, line),
            _BASES[base],
            self._encoded(values, line),
            mapped[1] if len(mapped) == 3 else "",
        )

    def _real(self, line: int) -> Real:
        values = self._settings()
        digits = values.get("exp_dig"), values.get("mant_dig")
        if digits not in ((8, 24), (11, 53)):
            raise TsdlError(f"real number of {digits[0]} and {digits[1]} digits: expected 8 and 24, or 11 and 53", line)
        return Real(32 if digits[0] == 8 else 64, self._aligned(values, 1, line), self._order(values, line))

    def _tag_name(self, kind: str) -> str:
        """Return the name under which a structure, variant or enumeration is kept, empty if it has none here."""
        if self._peek().kind == "word" and self._peek().text != "align":
            return f"{kind} {self._next().text}"
        return ""

    def _struct(self, line: int) -> Struct:
        name = self._tag_name("struct")
        if not self._is("{"):
            found = self._lookup(name or "struct", line)
            assert isinstance(found, Struct)
        else:
            found = Struct(self._members(allow_pairs=True))
        if self._is("align"):
            self._at += 1
            self._expect("(")
            align = self._aligned({"align": self._number()}, 1, line)
            self._expect(")")
            found = Struct(found.fields, max(found.align, align))
        if name and (name not in self._scopes[-1]):
            self._scopes[-1][name] = found
        return found

    def _members(self, *, allow_pairs: bool) -> tuple[tuple[str, Type], ...]:
        """Read fields in braces."""
        self._expect("{")
        self._scopes.append({})
        found: dict[str, Type] = {}
        while not self._accept("}"):
            if self._accept(";"):
                continue
            token = self._peek()
            if token.text in ("typealias", "typedef"):
                self._declaration()
                continue
            kind = self._type(is_named=True)
            if allow_pairs and self._accept(";"):
                continue  # a type that is only declared here
            while True:
                self._stars()
                line = self._line
                name, made = self._declarator(kind)
                if name in found:
                    raise TsdlError(f"field {name!r} occurs twice", line)
                if len(found) >= _MOST_FIELDS:
                    raise TsdlError(f"more than {_MOST_FIELDS} fields", line)
                found[name] = made
                if not self._accept(","):
                    break
            self._expect(";")
        self._scopes.pop()
        return tuple(found.items())

    def _declarator(self, kind: Type) -> tuple[str, Type]:
        """Read a name, and the lengths behind it: the last one is the innermost."""
        name = self._word()
        lengths: list[tuple[int | Path, int]] = []
        while self._is("["):
            line = self._next().line
            lengths.append((self._number() if self._peek().kind == "number" else self._path(), line))
            self._expect("]")
        for length, line in reversed(lengths):
            kind = Array(kind, length, line)
        return name, kind

    def _variant(self, line: int) -> Variant:
        name = self._tag_name("variant")
        tag: Path = ()
        if self._accept("<"):
            tag = self._path()
            self._expect(">")
        if self._is("{"):
            found = Variant((), self._members(allow_pairs=True), line)
            if not found.options:
                raise TsdlError("variant without options", line)
            if name:
                self._define(name, found, line)
        else:
            known = self._lookup(name or "variant", line)
            assert isinstance(known, Variant)
            found = known
        return Variant(tag or found.tag, found.options, line)

    def _enum(self, line: int) -> Integer:
        name = self._tag_name("enum")
        base: Type | None = None
        if self._accept(":"):
            base = self._type(is_named=False)
        if not self._is("{"):
            found = self._lookup(name or "enum", line)
            assert isinstance(found, Integer)
            return found
        if base is None:
            base = self._lookup("int", line)
        if not isinstance(base, Integer) or base.labels is not None:
            raise TsdlError("enumeration of something else than integers", line)
        made = Integer(
            base.size,
            base.align,
            base.signed,
            base.big,
            base.base,
            clock=base.clock,
            labels=self._labels(base),
        )
        if name:
            self._define(name, made, line)
        return made

    def _labels(self, base: Integer) -> tuple[tuple[str, int, int], ...]:
        low = -(1 << (base.size - 1)) if base.signed else 0
        high = (1 << (base.size - base.signed)) - 1
        found: list[tuple[str, int, int]] = []
        following = 0
        self._expect("{")
        while not self._accept("}"):
            token = self._next()
            if token.kind not in ("word", "text"):
                raise TsdlError(f"expected a label before {token.text!r}", token.line)
            first = last = following
            if self._accept("="):
                first = last = self._label_value(token)
                if self._accept("..."):
                    last = self._label_value(token)
            if first > last:
                raise TsdlError(f"label {token.text!r}: its last value is lower than its first", token.line)
            if first < low or last > high:
                raise TsdlError(f"label {token.text!r}: outside of its integer of {base.size} bits", token.line)
            if len(found) >= _MOST_LABELS:
                raise TsdlError(f"more than {_MOST_LABELS} labels", token.line)
            found.append((token.text, first, last))
            following = last + 1
            if not self._is("}"):
                self._expect(",")
        if not found:
            raise TsdlError("enumeration without labels", self._line)
        return tuple(found)

    def _label_value(self, label: Token) -> int:
        value = self._value()
        if not isinstance(value, int):
            raise TsdlError(f"label {label.text!r}: {value!r} is not a number", label.line)
        return value
