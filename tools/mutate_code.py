"""Change the code of a room one place at a time, and say which changes its tests notice (mutation testing).

Usage: mutate_code.py ROOM [--sample N] [--seed S] [--only MODULE:LINE]; rooms are those of ``ROOMS``. A change is one
comparison, operator, number, truth value, condition, returned value or statement. Each is tried in a process of its
own: it imports the changed module in place of the one on the disk and runs the tests of the room until one fails.
A change that no test notices survives, and is printed with its line. ``--write`` keeps the result in
tests/mutations/code.json, next to those of other seeds, and writes docs/reference/mutation-testing.md from it; reasons
why a survivor changes nothing are kept there in ``explained``.

Packages such as mutmut copy the whole source and try every change; with our tests that takes days, so this one samples.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src/lanescope"
KEPT = ROOT / "tests/mutations/code.json"
PAGE = ROOT / "docs/reference/mutation-testing.md"

#: The folder of each room, and the tests that are to notice its changes; those named after a module are run first.
ROOMS = {
    "trace": (
        "trace",
        ["tests/trace", "tests/io/test_vcd.py", "tests/analysis/test_check.py", "tests/test_python_api.py"],
    ),
    "wire": ("wire", ["tests/wire", "tests/devices/aie", "tests/devices/levelzero/test_foreign.py"]),
    "check": (
        "analysis/check",
        ["tests/analysis/test_check.py", "tests/analysis/test_check_streaming.py",
         "tests/analysis/test_stat_findings.py",
         "tests/analysis/test_evidence_sql.py", "tests/cli/test_check_show.py", "tests/test_findings.py",
         "tests/plausibility/test_impact.py", "tests/pipeline/test_suspect_marks.py"],
    ),
    "chrome": (
        "foreign/chrome",
        ["tests/foreign/chrome", "tests/foreign/test_detection.py", "tests/foreign/test_one_timeline.py"],
    ),
    "ascend": ("devices/ascend/interpret", ["tests/devices/ascend", "tests/scenarios"]),
}  # fmt: skip

OTHER_COMPARISON = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OTHER_OPERATOR = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.Mod: ast.Mult,
}  # fmt: skip
OTHER_CALL = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}
#: Seconds of CPU, or times what the tests take without a change, and seconds of any clock that one change may take
#: before it counts as noticed: it hangs.
MOST_CPU, MOST_TIMES, MOST_SECONDS = 120, 3, 3600


@dataclass(frozen=True)
class Change:
    """One change: the module's path below src/lanescope, its line, what it is, and which of that kind in the module."""

    module: str
    line: int
    what: str
    number: int

    @property
    def key(self) -> str:
        """Return the name under which it is kept; it holds as long as nothing above it in the module changes."""
        return f"{self.module}:{self.line} {self.what}"


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


def changes(room: str) -> list[Change]:
    """Return all changes of a room."""
    found = []
    for path in sorted((SOURCE / ROOMS[room][0]).rglob("*.py")):
        changer = Changer()
        changer.visit(ast.parse(path.read_text()))
        module = path.relative_to(SOURCE).as_posix()
        found += [Change(module, line, what, number) for number, (line, what) in enumerate(changer.found)]
    return found


class ChangedModule(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import one module with a change in it; all others come from the disk."""

    def __init__(self, change: Change) -> None:
        self.path = SOURCE / change.module
        parts = ["lanescope", *Path(change.module).with_suffix("").parts]
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        self.tree = Changer(change.number).visit(copy.deepcopy(ast.parse(self.path.read_text())))
        ast.fix_missing_locations(self.tree)

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


def tests_of(change: Change | None, room: str) -> list[str]:
    """Return the test files of a room, those named after the module first."""
    files = []
    for name in ROOMS[room][1]:
        path = ROOT / name
        if not path.exists():
            sys.exit(f"{name}: tests of {room} that do not exist")
        files += sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
    words = set(Path(change.module).stem.split("_")) if change else set()
    return [str(path) for path in sorted(files, key=lambda path: -len(words & set(path.stem.split("_"))))]


def is_noticed(change: Change | None, room: str, most_cpu: float = MOST_SECONDS) -> bool:
    """Run the tests of a room with a change, in a process of their own; return whether one fails.

    Args:
        change: the change; None: there is none.
        room: whose tests are run.
        most_cpu: seconds of CPU after which the change counts as noticed.
    """
    child = os.fork()
    if not child:
        try:
            os.setpgid(0, 0)
            os.chdir(ROOT)
            log = os.open(ROOT / "build/mutate_code.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (round(most_cpu), round(most_cpu)))
            signal.alarm(MOST_SECONDS)
            if change:
                sys.meta_path.insert(0, ChangedModule(change))
            import pytest

            status = int(
                pytest.main(
                    [
                        "-x",
                        "-q",
                        "-n",
                        "0",
                        "-W",
                        "ignore::pytest.PytestAssertRewriteWarning",
                        "-p",
                        "no:cacheprovider",
                        *tests_of(change, room),
                    ]
                )
            )
        except BaseException:  # a change may raise anything at the import
            traceback.print_exc()
            status = 1
        os._exit(min(status, 100))
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what a hanging test has started
    return status != 0


def write_page(kept: dict[str, Any]) -> None:
    """Write the table of what was tried, and the changes that survived with their reasons, into the page."""
    rows = ["| Room | Changes | Tried | Noticed | Change nothing | Open |", "|---|--:|--:|--:|--:|--:|"]
    lines = []
    for room in ROOMS:
        if (tried := kept["rooms"].get(room)) is None:
            continue
        samples = tried["samples"].values()
        count = sum(one["tried"] for one in samples)
        reasons = {key: kept["explained"].get(key, "") for one in samples for key in one["survivors"]}
        explained = sum(map(bool, reasons.values()))
        rows.append(
            f"| `{tried['folder']}` | {tried['all']:,} | {count} | {count - len(reasons)} "
            f"| {explained} | {len(reasons) - explained} |"
        )
        lines += [f"- `{key}`: {reason or 'open'}" for key, reason in reasons.items()]
    head, _, rest = PAGE.read_text().partition("<!-- result -->\n")
    tail = rest.partition("<!-- end of result -->\n")[2]
    body = "\n".join(rows + (["", "Changes that no test notices:", "", *lines] if lines else []))
    PAGE.write_text(f"{head}<!-- result -->\n{body}\n<!-- end of result -->\n{tail}")


def main() -> int:
    """Try a sample of changes; return 1 where one survives that nobody explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room", choices=ROOMS)
    parser.add_argument("--sample", type=int, default=50, help="changes to try (50)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--only", metavar="MODULE:LINE", help="all changes of a line, or of a module")
    parser.add_argument("--write", action="store_true", help="keep the result")
    given = parser.parse_args()
    os.environ.setdefault("LANESCOPE_EFFORT", "quick")
    sys.path.insert(0, str(ROOT / "tests"))
    for name in ("numpy", "duckdb", "hypothesis", "msgspec", "rich", "pytest"):  # what children need not import again
        __import__(name)
    everything = changes(given.room)
    if given.only:
        chosen = [one for one in everything if f"{one.module}:{one.line}:".startswith(f"{given.only}:")]
    else:
        chosen = random.Random(given.seed).sample(everything, min(given.sample, len(everything)))
    tests_of(None, given.room)  # all there, or it ends here
    if is_noticed(None, given.room):
        sys.exit(f"the tests of {given.room} fail without a change: see build/mutate_code.log")
    most_cpu = max(MOST_CPU, MOST_TIMES * resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime)
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"explained": {}, "rooms": {}}
    begin, survivors = time.process_time(), []
    for change in chosen:
        if is_noticed(change, given.room, most_cpu):
            continue
        survivors.append(change)
        print(f"{change.key}: survived: {kept['explained'].get(change.key, 'open')}", flush=True)
    unexplained = [one for one in survivors if one.key not in kept["explained"]]
    spent = time.process_time() - begin + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    print(f"{given.room}: {len(chosen)} of {len(everything)} changes tried, {len(chosen) - len(survivors)} noticed, "
          f"{len(survivors) - len(unexplained)} explained, {len(unexplained)} open, {spent:.0f} CPU s")  # fmt: skip
    if given.write and not given.only:
        room = kept["rooms"].setdefault(given.room, {"samples": {}})
        room |= {"folder": ROOMS[given.room][0], "all": len(everything)}
        room["samples"][str(given.seed)] = {"tried": len(chosen), "survivors": [one.key for one in survivors]}
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
        write_page(kept)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
