"""Integer expressions of layout declarations: a small part of Python's grammar, on numbers or whole columns.

All values are signed 64-bit integers; a field of 64 bits is read as two's complement. There are no calls except ``min``
and ``max``, no attributes, no floating point: an expression cannot do anything but compute.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.errors import InputError

I64 = npt.NDArray[np.int64]
Value = int | I64
Scope = Mapping[str, Value]

#: Longer expressions are no layouts; deep ones would exhaust the parser.
MOST_CHARACTERS = 400
_LIMIT = 1 << 63
_FUNCTIONS = {"min": np.minimum, "max": np.maximum}
_SHIFT_LIMIT = 64


class Expression:
    """A parsed expression.

    Args:
        text: its text.
        place: where it is in the declaration, for errors: ``record.at``.
        tables: names of the tables that may be indexed.

    Raises:
        InputError: the text is not an expression of this grammar; the message names the column.

    Example:
        >>> Expression("a + 2 * b if a < 10 else max(a, b)", "id").value({"a": 3, "b": 4})
        11
    """

    def __init__(self, text: str, place: str, *, tables: Mapping[str, Mapping[int, int]] | None = None) -> None:
        self.text, self.place = text, place
        self._tables = dict(tables or {})
        if len(text) > MOST_CHARACTERS:
            raise self._error(f"expression is longer than {MOST_CHARACTERS} characters", 0)
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            column = getattr(error, "offset", None) or 1
            raise self._error("invalid expression", column - 1) from None
        self._tree = tree.body
        self._check(tree.body)

    def _error(self, problem: str, column: int) -> InputError:
        return InputError(
            f"{self.place}: {problem} at column {column + 1} of {self.text!r}",
            hint="use integers, names, + - * // % << >> & |, comparisons, and/or/not, a if c else b, min, max",
        )

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that it reads, tables and functions left out."""
        called = {id(node.func) for node in ast.walk(self._tree) if isinstance(node, ast.Call)}
        called |= {id(node.value) for node in ast.walk(self._tree) if isinstance(node, ast.Subscript)}
        return frozenset(
            node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name) and id(node) not in called
        )

    @cached_property
    def operand_names(self) -> frozenset[str]:
        """The names in divisors and in numbers of bits to shift by: what must not come from damaged data."""
        right = [
            node.right
            for node in ast.walk(self._tree)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod | ast.LShift | ast.RShift)
        ]
        return frozenset(node.id for part in right for node in ast.walk(part) if isinstance(node, ast.Name))

    @cached_property
    def equality(self) -> tuple[str, Expression] | None:
        """The name and the expression that are compared, where it is ``NAME == EXPRESSION``; else None."""
        match self._tree:
            case ast.Compare(ast.Name(id=name), [ast.Eq()], [right]):
                return name, Expression(ast.unparse(right), self.place, tables=self._tables)
        return None

    @cached_property
    def compared(self) -> tuple[tuple[str, int], ...]:
        """The names that are compared with a number by ``==`` or ``!=``, and the numbers."""
        found = []
        for node in ast.walk(self._tree):
            match node:
                case ast.Compare(ast.Name(id=name), [ast.Eq() | ast.NotEq()], [ast.Constant(value=value)]):
                    found.append((name, int(str(value))))
                case ast.Compare(
                    ast.Name(id=name), [ast.Eq() | ast.NotEq()], [ast.UnaryOp(ast.USub(), ast.Constant(value=value))]
                ):
                    found.append((name, -int(str(value))))
        return tuple(found)

    @property
    def name(self) -> str | None:
        """The name that it is, None if it is more than one name."""
        return self._tree.id if isinstance(self._tree, ast.Name) else None

    def is_affine_in(self, name: str) -> bool:
        """Return whether it is a name times something without it, plus something without it."""
        return _degree(self._tree, name) <= 1

    def _check(self, node: ast.AST) -> None:
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool) and abs(value) < _LIMIT:
                return
            case ast.Name(id=name) if not name.startswith("_"):
                return
            case ast.BinOp(left, op, right) if type(op) in _BINARY:
                children = [left, right]
            case ast.UnaryOp(op, operand) if isinstance(op, ast.USub | ast.Not):
                children = [operand]
            case ast.BoolOp(values=values):
                children = values
            case ast.Compare(left, ops, comparators) if len(ops) == 1 and type(ops[0]) in _COMPARE:
                children = [left, *comparators]
            case ast.IfExp(test, body, orelse):
                children = [test, body, orelse]
            case ast.Call(ast.Name(id=name), args, keywords) if name in _FUNCTIONS and not keywords and len(args) > 1:
                children = args
            case ast.Subscript(ast.Name(id=name), index) if name in self._tables:
                children = [index]
            case _:
                raise self._error("unsupported expression", getattr(node, "col_offset", 0))
        for child in children:
            self._check(child)

    def value(self, scope: Scope) -> Any:
        """Return the value: an integer, or int64 [n] where a name is that of a column; numbers wrap at 64 bits.

        Args:
            scope: integers or int64 columns of one length by name; comparisons give 0 and 1.

        Raises:
            InputError: a name is unknown, or a divisor is 0, or a shift is not between 0 and 63.
        """
        return self._value(self._tree, scope, _wrapped)

    def exact(self, scope: Mapping[str, int]) -> int:
        """Return the value of integers; errors as ``value``, and an ``InputError`` where a number exceeds 64 bits."""
        return int(self._value(self._tree, scope, self._fitting))

    def _fitting(self, value: Any) -> Any:
        if not -_LIMIT <= value < _LIMIT:
            raise InputError(f"{self.place}: {self.text!r} exceeds 64 bits", hint="check the parameters of the layout")
        return value

    def _value(self, node: ast.AST, scope: Scope, fit: Callable[[Any], Any]) -> Any:
        match node:
            case ast.Constant(value=constant):
                return constant
            case ast.Name(id=name):
                if name not in scope:
                    raise self._error(f"unknown name {name!r}", node.col_offset)
                return scope[name]
            case ast.BinOp(left, op, right):
                a, b = self._value(left, scope, fit), self._value(right, scope, fit)
                self._check_operand(op, b)
                return fit(_BINARY[type(op)](a, b))
            case ast.UnaryOp(ast.USub(), operand):
                return fit(-self._value(operand, scope, fit))
            case ast.UnaryOp(_, operand):
                return _as_int(self._value(operand, scope, fit) == 0)
            case ast.BoolOp(op, values):
                join = np.logical_and if isinstance(op, ast.And) else np.logical_or
                found = self._value(values[0], scope, fit)
                for value in values[1:]:
                    found = join(found, self._value(value, scope, fit))
                return _as_int(found if isinstance(found, np.ndarray) else bool(found))
            case ast.Compare(left, ops, comparators):
                return _as_int(
                    _COMPARE[type(ops[0])](self._value(left, scope, fit), self._value(comparators[0], scope, fit))
                )
            case ast.IfExp(test, body, orelse):
                condition = self._value(test, scope, fit)
                if not isinstance(condition, np.ndarray):
                    return self._value(body if condition else orelse, scope, fit)
                yes, no = self._value(body, scope, fit), self._value(orelse, scope, fit)
                return np.where(condition != 0, yes, no).astype(np.int64)
            case ast.Call(ast.Name(id=name), args):
                found = self._value(args[0], scope, fit)
                for arg in args[1:]:
                    other = self._value(arg, scope, fit)
                    if isinstance(found, np.ndarray) or isinstance(other, np.ndarray):
                        found = _FUNCTIONS[name](found, other)
                    else:
                        found = min(found, other) if name == "min" else max(found, other)
                return found
            case ast.Subscript(ast.Name(id=name), index):
                return _look_up(self._tables[name], self._value(index, scope, fit))
        raise self._error("unsupported expression", 0)

    def _check_operand(self, op: ast.operator, value: Any) -> None:
        if isinstance(op, ast.FloorDiv | ast.Mod):
            if np.any(value == 0):
                raise InputError(f"{self.place}: division by zero in {self.text!r}", hint="check the parameters")
        elif isinstance(op, ast.LShift | ast.RShift) and np.any((value < 0) | (value >= _SHIFT_LIMIT)):
            raise InputError(f"{self.place}: invalid shift in {self.text!r}", hint="use shifts of 0 to 63 bits")


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}


def _degree(node: ast.AST, name: str) -> int:
    """Return the degree of an expression in a name, 2 for anything but a polynomial of degree 0 or 1."""
    if not any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node)):
        return 0
    match node:
        case ast.Name():
            return 1
        case ast.UnaryOp(ast.USub(), operand):
            return _degree(operand, name)
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            return max(_degree(left, name), _degree(right, name))
        case ast.BinOp(left, ast.Mult(), right):
            return min(2, _degree(left, name) + _degree(right, name))
        case ast.BinOp(left, ast.LShift(), right) if not _degree(right, name):
            return _degree(left, name)
    return 2


def _wrapped(value: Any) -> Any:
    """Return an integer as the columns hold it: its lowest 64 bits, two's complement."""
    if isinstance(value, np.ndarray) or -_LIMIT <= value < _LIMIT:
        return value
    return (value + _LIMIT) % (2 * _LIMIT) - _LIMIT


def _as_int(value: Any) -> Any:
    return value.astype(np.int64) if isinstance(value, np.ndarray) else int(value)


def _look_up(table: Mapping[int, int], index: Any) -> Any:
    """Return the values of a table; -1 where it has none."""
    if not isinstance(index, np.ndarray):
        return table.get(int(index), -1)
    keys = np.array(sorted(table), np.int64)
    values = np.array([table[key] for key in keys.tolist()], np.int64)
    at = np.minimum(np.searchsorted(keys, index), len(keys) - 1)
    return np.where(keys[at] == index, values[at], -1)
