"""The changes that `mutate_code.py` tries: which places of a module can be changed, and the module with one changed."""

from __future__ import annotations

import ast
import difflib
import importlib.abc
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src/lanescope"

OTHER_COMPARISON = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OTHER_OPERATOR = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.Mod: ast.Mult,
}  # fmt: skip
OTHER_CALL = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}


@dataclass(frozen=True)
class Change:
    """One change: the module's path below src/lanescope, its line, what it is, and which of that kind in the module."""

    module: str
    line: int
    what: str
    number: int

    @property
    def path(self) -> Path:
        """Return where the module lies."""
        return SOURCE / self.module

    @property
    def key(self) -> str:
        """Return the name under which it is kept; it holds as long as nothing above it in the module changes."""
        return f"{self.module}:{self.line} {self.what}"

    def tree(self) -> ast.Module:
        """Return the changed module."""
        tree: ast.Module = Changer(self.number).visit(ast.parse(self.path.read_text()))
        return ast.fix_missing_locations(tree)

    def difference(self) -> str:
        """Return the lines that go and come, in the words of ``ast``."""
        before, after = (ast.unparse(tree).splitlines() for tree in (ast.parse(self.path.read_text()), self.tree()))
        lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
        return "\n".join(f"    {line[0]} {line[1:].strip()}" for line in lines if not line.startswith("@@"))

    def statement_lines(self) -> set[int]:
        """Return the lines of the statement that is changed, without those of statements within it.

        Python does not note each line of a longer one, so whoever runs any of them may run the change.
        """
        owners: dict[int, ast.stmt] = {}
        for node in ast.walk(ast.parse(self.path.read_text())):  # outer ones come first
            if isinstance(node, ast.stmt):
                first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
                owners |= dict.fromkeys(range(first, (node.end_lineno or first) + 1), node)
        return {line for line, owner in owners.items() if owner is owners[self.line]}


class Changer(ast.NodeTransformer):
    """Number the places of a module that can be changed, and change one of them."""

    def __init__(self, wanted: int = -1) -> None:
        self.wanted, self.found = wanted, list[tuple[int, str]]()

    def is_wanted(self, node: ast.AST, what: str) -> bool:
        """Note a place; return whether it is the one to change."""
        self.found.append((getattr(node, "lineno", 0), what))
        return len(self.found) - 1 == self.wanted

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """Visit defaults and body."""
        if node.name in {"__repr__", "__str__"}:
            return node
        node.args.defaults = [self.visit(one) for one in node.args.defaults]
        node.args.kw_defaults = [self.visit(one) if one is not None else None for one in node.args.kw_defaults]
        node.body = [self.statement(one) for one in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Visit the value only."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def statement(self, node: Any) -> Any:
        """Leave a call out, or visit the statement."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return node
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and self.is_wanted(node, "call left out"):
            return ast.copy_location(ast.Pass(), node)
        return self.visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Leave out a call in any block."""
        if isinstance(node.value, ast.Constant):
            return node
        if isinstance(node.value, ast.Call) and self.is_wanted(node, "call left out"):
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> Any:
        """Turn a condition round."""
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return node
        if self.is_wanted(node, "condition turned round"):
            node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Take another comparison."""
        kind = type(node.ops[0])
        if self.is_wanted(node, f"{kind.__name__} to {OTHER_COMPARISON[kind].__name__}"):
            node.ops[0] = OTHER_COMPARISON[kind]()
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Take another operator; texts stay."""
        kind = type(node.op)
        is_text = any(isinstance(one, ast.JoinedStr) or (isinstance(one, ast.Constant) and isinstance(one.value, str))
                      for one in (node.left, node.right))  # fmt: skip
        if (
            kind in OTHER_OPERATOR
            and not is_text
            and self.is_wanted(node, f"{kind.__name__} to {OTHER_OPERATOR[kind].__name__}")
        ):
            node.op = OTHER_OPERATOR[kind]()
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Exchange and with or."""
        is_and = isinstance(node.op, ast.And)
        if self.is_wanted(node, "and to or" if is_and else "or to and"):
            node.op = ast.Or() if is_and else ast.And()
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """Leave out a negation."""
        if isinstance(node.op, ast.Not | ast.Invert | ast.USub) and self.is_wanted(node, "negation left out"):
            return self.visit(node.operand)
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        """Take another truth value, or the next number."""
        if isinstance(node.value, bool):
            if self.is_wanted(node, f"{node.value} to {not node.value}"):
                return ast.copy_location(ast.Constant(not node.value), node)
        elif isinstance(node.value, int) and self.is_wanted(node, f"{node.value} to {node.value + 1}"):
            return ast.copy_location(ast.Constant(node.value + 1), node)
        return node

    def visit_Return(self, node: ast.Return) -> Any:
        """Return nothing."""
        if node.value is not None and not isinstance(node.value, ast.Constant) and self.is_wanted(node, "returns None"):
            return ast.copy_location(ast.Return(ast.Constant(None)), node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        """Exchange min with max, any with all."""
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in OTHER_CALL and self.is_wanted(node, f"{name} to {OTHER_CALL[name]}"):
            if isinstance(node.func, ast.Name):
                node.func.id = OTHER_CALL[name]
            else:
                node.func.attr = OTHER_CALL[name]  # type: ignore[attr-defined]
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        """Leave errors and their words alone: that they are raised is up to the condition above."""
        return node


def changes(folder: str) -> list[Change]:
    """Return all changes of the modules in a folder below src/lanescope."""
    found = []
    for path in sorted((SOURCE / folder).rglob("*.py")):
        changer = Changer()
        changer.visit(ast.parse(path.read_text()))
        module = path.relative_to(SOURCE).as_posix()
        found += [Change(module, line, what, number) for number, (line, what) in enumerate(changer.found)]
    return found


class ChangedModule(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import one module with a change in it; all others come from the disk."""

    def __init__(self, change: Change) -> None:
        self.path, self.tree = change.path, change.tree()
        parts = ["lanescope", *Path(change.module).with_suffix("").parts]
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def find_spec(self, name: str, *_: Any) -> Any:
        """Return the place of the changed module, and nothing for others."""
        if name != self.name:
            return None
        where = [str(self.path.parent)] if self.path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(name, self.path, loader=self, submodule_search_locations=where)

    def create_module(self, spec: Any) -> None:
        """Let Python make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed code."""
        exec(compile(self.tree, str(self.path), "exec"), module.__dict__)  # the repository's own code
