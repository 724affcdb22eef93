"""Wording of all texts for users: messages, hints, docs of tables, columns, stats, rules and options.

The texts are collected from the source with ``ast``. Wording that no file has is searched line by line.
"""

import ast
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from lanescope.families import registry
from lanescope.trace.stats import CORE_STATS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "lanescope"

#: First words of hints and of the help of rules.
VERBS = re.compile(
    "(add|align|call|check|clear|close|compare|convert|copy|decompress|do|exclude|expect|export|free|inspect|install|list"
    "|look|lower|make|move|open|pass|pipe|print|read|record|remove|rename|report|run|save|see|set|simulate|start|stop"
    "|trace|treat|try|upgrade|use|wait|write)\\b",
    re.IGNORECASE,
)
#: Words that may start a text in upper case besides acronyms.
NAMES = ("AI", "Ascend", "Level", "Proton", "Repeat", "Start", "Stop", "Triton")
#: Wording that texts for users avoid, with what to write instead.
AVOIDED = {
    r"\b(nobody|somebody|whoever|everybody)\b": "not observed, on request",
    r"\b(says?|tells?|wants?|knows?)\b": "contains, gives, records, is known",
    r"\bstands?\b": "is",
    r"\bperhaps\b": "probably, may",
    r"\bin all\b": "total",
    r"\bis no\b|\bare no\b": "negate the verb",
    r"\bbegin(s|ning)?\b": "start",
    r"\bbehind\b|\bbeside\b": "after, next to",
    r"\b(no|has|have|without) room\b": "full, dropped",
    r"\bstamp(s|ed)?\b": "timestamp",
    r"\bleft out\b|\bleave (it |them )?out\b": "excluded, remove",
    r"\b(recognis|summaris|colour|neighbour|behaviour)": "American spelling",
    r"\bwhere (nothing|it|that|nobody)\b": "if",
    r"\bas it is\b": "unconverted",
    r"say --": "use --x",
    r"\bgive \w": "use, pass",
}
#: Wording that no file has: of rule 15 of the style guide.
BANNED = (
    "stranger", "is no ", "say --", "nobody", "planted", "stands for", "in the making", "beside the", "what lies",
    "of ours", r"whose \w+ it is", r"\bturns? of\b",
)  # fmt: skip


class Text(NamedTuple):
    """One text for users: its file below ``src/lanescope``, its line, its kind and its words."""

    file: str
    line: int
    kind: str
    words: str


def _words(node):
    """Return the constant text of an expression with ``{}`` for each value; None if there is none."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _words(node.left), _words(node.right)
        return None if left is None and right is None else (left or "{}") + (right or "{}")
    if isinstance(node, ast.BoolOp):
        return _words(node.values[-1])
    return _words(node.body) if isinstance(node, ast.IfExp) else None


def _name(call):
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def _argument(call, place, name):
    keyword = next((word.value for word in call.keywords if word.arg == name), None)
    if keyword is not None:
        return keyword
    return call.args[place] if place < len(call.args) else None


#: Call -> (kind, place, name) of its texts.
_CALLS = {
    "ColumnSpec": [("column", 2, "doc")],
    "argument": [("column", 2, "doc")],
    "ref": [("column", 2, "doc")],
    "ticks": [("column", 1, "doc")],
    "time": [("column", 1, "doc")],
    "TableSpec": [("table", 1, "doc")],
    "View": [("table", 3, "doc")],
    "StatSpec": [("stat", 2, "doc")],
    "Option": [("option", 2, "help")],
    "add_argument": [("option", 9, "help")],
    "Rule": [("title", 1, "title"), ("description", 3, "description"), ("rule help", 4, "help")],
}


def _texts_of(path):
    file = path.relative_to(SOURCE).as_posix()
    for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
        name = _name(call)
        wanted = _CALLS.get(name, [])
        if name.endswith("Error") and name not in ("KeyError", "AttributeError", "NotImplementedError"):
            wanted = [("message", 0, "message"), ("hint", 1 if name == "ConfigError" else 9, "hint")]
        for kind, place, argument in wanted:
            node = _argument(call, place, argument)
            words = None if node is None else _words(node)
            if words:
                yield Text(file, node.lineno, kind, words)


def _all_texts():
    return [text for path in sorted(SOURCE.rglob("*.py")) for text in _texts_of(path)]


TEXTS = _all_texts()


def _starts_in_upper_case(words):
    first = re.match(r"[A-Za-z][\w-]*", words)
    if first is None or not first[0][0].isupper() or first[0] in NAMES:
        return False
    return not re.search(r"[A-Z].*[A-Z]|[0-9_]|^[A-Z]$", first[0])


def _sentences(words):
    return [one for one in re.split(r"(?<=[.?!]) +", words) if one]


def faults(text):
    """Return what is wrong with a text, [] if nothing is."""
    words, kind, found = text.words, text.kind, []
    is_prose = kind in ("description", "rule help")
    if not is_prose and re.search(r"[.!]$", words) and not words.endswith("..."):
        found.append("ends with a period")
    if not is_prose and _starts_in_upper_case(words):
        found.append("starts in upper case")
    if is_prose and not words.endswith("."):
        found.append("ends without a period")
    if is_prose:
        found += [f"sentence of {len(one.split())} words" for one in _sentences(words) if len(one.split()) > 25]
    if kind in ("hint", "rule help") and not words.startswith(("{}", "did you mean")) and not VERBS.match(words):
        found.append("does not start with a known verb")
    if kind == "message" and "; " in words:
        found.append("hint within the message")
    if kind == "option" and "; " in words:
        found.append("several clauses")
    if kind in ("column", "option") and re.match(r"(it|its|what|how|when|why|which|who|whose|where)\b", words):
        found.append("is not a noun phrase")
    if kind == "column" and "NULL" in words and "NULL" not in words.split("; ")[-1]:
        found.append("NULL case is not last")
    if kind == "stat" and re.match(r"(a|an|the|it|its|what|there) ", words):
        found.append("is not a noun phrase in the plural")
    prose = re.sub(r"`[^`]*`|'[^']*'", "", words)
    return found + [
        f"avoid {match[0]!r}: {better}" for bad, better in AVOIDED.items() if (match := re.search(bad, prose))
    ]


def test_the_collector_finds_texts_of_every_kind():
    kinds = Counter(text.kind for text in TEXTS)
    assert set(kinds) == {"message", "hint", "column", "table", "stat", "option", "title", "description", "rule help"}
    assert kinds["message"] > 300
    assert kinds["hint"] > 200
    assert kinds["column"] > 500


@pytest.mark.parametrize(
    ("kind", "words", "fault"),
    [
        ("message", "no such file.", "ends with a period"),
        ("message", "The file is too large", "starts in upper case"),
        ("message", "{} exists; use --force", "hint within the message"),
        ("message", "7 is no frequency", "avoid 'is no': negate the verb"),
        ("hint", "the counter's frequency", "does not start with a known verb"),
        ("hint", "say --force", "does not start with a known verb"),
        ("column", "its name", "is not a noun phrase"),
        ("column", "NULL without an end; duration", "NULL case is not last"),
        ("stat", "a second record: ignored", "is not a noun phrase in the plural"),
        ("stat", "records behind a finalize", "avoid 'behind': after, next to"),
        ("description", "A gap " + "very " * 25 + "long.", "sentence of 28 words"),
        ("rule help", "Leave no gap", "ends without a period"),
    ],
)
def test_faults_are_found(kind, words, fault):
    assert fault in faults(Text("", 1, kind, words))


def test_texts_follow_the_patterns():
    wrong = [
        f"{text.file}:{text.line}: {text.kind} {text.words!r}: {fault}" for text in TEXTS for fault in faults(text)
    ]
    assert not wrong, "\n".join(wrong)


def test_what_a_stat_counts_is_a_short_noun_phrase():
    specs = [*CORE_STATS, *(spec for family in registry.builtin() for spec in family.stats)]
    long = {spec.name: spec.counted for spec in specs if len(spec.counted) > 100 or not spec.counted}
    assert len(specs) > 100
    assert not long


def _files():
    yield from (ROOT / name for name in ("README.md", "CHANGELOG.md", "Makefile"))
    native = (".cpp", ".hpp", ".h", ".def", ".txt")
    for folder, endings in (("src", (".py",)), ("docs", (".md", ".py")), ("native", native), ("tests", (".py",))):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in endings and path != Path(__file__) and "generated" not in path.parts:
                yield path


def _prose(path, line):
    """Return a line of a file; of a page of the documentation without the names that it quotes."""
    return re.sub(r"`[^`]*`", "", line) if path.suffix == ".md" else line


def test_banned_words():
    pattern = re.compile("|".join(BANNED))
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]!r}"
        for path in _files()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (match := pattern.search(_prose(path, line)))
    ]
    assert not wrong, "\n".join(wrong)
