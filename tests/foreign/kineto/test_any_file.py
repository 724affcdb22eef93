"""Odd but legal files: any order of keys, spelling of numbers and texts, keys that are repeated or missing."""

import json
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from math import floor

from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import some
from lanescope.testing import assert_accounted, assert_consistent

BASE = 1_775_078_550_000_000_000
SPACE = st.sampled_from(["", "", " ", "\n  ", "\t", "\r\n"])
NAMES = ("aten::add", "void k<float, 4>(float*, int)", "ünï", 'quo"te', "back\\slash", "line\nbreak", "\0", "", "😀")
CATEGORIES = (
    "cpu_op", "user_annotation", "kernel", "gpu_memcpy", "cuda_runtime", "python_function", "cuda_sync", "overhead",
    "Trace", "xpu_runtime", "mtia_ccp_events", "new_in_2030",
)  # fmt: skip


@st.composite
def spelled(draw, text: str) -> str:
    """A text of JSON, some characters as escapes."""
    if draw(st.booleans()):
        return json.dumps(text, ensure_ascii=draw(st.booleans()))
    return (
        '"'
        + "".join(f"\\u{ord(c):04x}" if ord(c) < 1 << 16 and draw(st.booleans()) else json.dumps(c)[1:-1] for c in text)
        + '"'
    )


@st.composite
def time(draw, most: int = 10**8) -> str:
    """Nanoseconds as microseconds, spelled in some way."""
    ns = draw(st.integers(0, most))
    us, rest = divmod(ns, 1000)
    plain = f"{us}.{rest:03}"
    ways = [plain, f"{plain}000", f"{ns}e-3", f"{ns}.0E-3", f"{plain}e0", f'"{plain}"', str(us), "-0"]
    return draw(st.sampled_from(ways))


@st.composite
def joined(draw, members, *, as_is: bool = False) -> str:
    """An object, its members in any order; ``as_is``: their keys without escapes."""
    parts = []
    for key, value in draw(st.permutations(members)):
        name = json.dumps(key) if as_is else draw(spelled(key))
        parts.append("".join((draw(SPACE), name, draw(SPACE), ":", draw(SPACE), value, draw(SPACE))))
    return "{" + ",".join(parts) + "}"


ARGUMENTS = {
    "correlation": ["1", "2", '"7"', "-1", "4294967295", "null", "1.0", "3e0", str(2**63), '"x"'],
    "External id": ["1", "null"],
    "stream": ["7", "-1", '"7"'],
    "grid": ["[1,2,3]", "[ 1 , 2 ]", "[]", "[1,2,3,4]", "null"],
    "bytes": ["0", "9007199254740993", "18446744073709551615"],
    "nested": ['{"a":{"b":[1,"}]",{}]}}', '[["x","y"],[[]]]', "{}", '"plain"', "true", "-0", "1E+2"],
}


@st.composite
def event(draw) -> str:
    phase = draw(st.sampled_from("XXXXXi"))
    made = [("ph", f'"{phase}"')]
    arguments = draw(st.lists(st.sampled_from([*ARGUMENTS]), max_size=4))
    args = draw(joined([(key, draw(st.sampled_from(ARGUMENTS[key]))) for key in arguments]))
    for key, value, share in (
        ("name", draw(spelled(draw(st.sampled_from(NAMES)))), 9),
        ("cat", draw(spelled(draw(st.sampled_from(CATEGORIES)))), 9),
        ("pid", draw(st.sampled_from(["1", "0", '"1"', '"Spans"', "-1", '""', "1.0", "4294967296123"])), 9),
        ("tid", draw(st.sampled_from(["5", "7", '"5"', '"text"', "-3", "140234234234234"])), 9),
        ("ts", draw(time()), 9),
        ("dur", draw(time(10**4)), 9 if phase == "X" else 0),
        ("args", args, 6),
        ("ts", draw(time()), 1),
        ("cat", '"kernel"', 1),
        ("extra", '{"a": [1]}', 1),
    ):
        if draw(st.integers(1, 10)) <= share:
            made.append((key, value))
    return draw(joined(made))


@st.composite
def file(draw) -> str:
    events = ",".join(draw(st.lists(event(), min_size=1, max_size=12)))
    members = [("trace_id", '"A{[\\"B"'), ("baseTimeNanoseconds", str(BASE)), ("traceEvents", f"[{events}]")]
    return draw(joined(members, as_is=True))


def ns(value) -> int | None:
    if value is None or isinstance(value, (bool, dict, list)):
        return None
    return floor(Fraction(Decimal(value)) * 1000 + Fraction(1, 2))


def whole(value) -> int | None:
    if isinstance(value, str):
        return int(value) if value.lstrip("-").isdecimal() else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if value < 1 << 63 else value - (1 << 64)


def plain(text: str) -> str:
    return json.dumps(json.loads(text, parse_float=Decimal), sort_keys=True, default=str)


@given(file())
@settings(max_examples=some(200), deadline=None)
def test_rows_are_those_of_the_standard_library(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(text, encoding="utf-8", newline="")
    document = json.loads(text, parse_float=Decimal)
    slices, instants, correlations, arguments = Counter(), Counter(), Counter(), Counter()
    for each in document["traceEvents"]:
        ts, args = ns(each.get("ts")), each.get("args")
        if ts is None:
            continue
        if each["ph"] == "i":
            instants[ts + BASE, each.get("name", "(no name)")] += 1
            continue
        key = ts + BASE, ns(each.get("dur")), each.get("name", "(no name)"), each.get("cat", "")
        slices[key] += 1
        if args is not None:
            arguments[(*key, json.dumps(args, sort_keys=True, default=str))] += 1
            if (number := whole(args.get("correlation"))) is not None:
                correlations[(*key, number)] += 1

    trace = lanescope.open(path, family="kineto")
    zero, tables = trace.time.epoch_ns, trace.tables()
    keys = [(row["ts"] + zero, row["dur"], row["name"], row["category"]) for row in trace.slices.rows()]
    assert Counter(keys) == slices
    assert Counter((row["ts"] + zero, row["name"]) for row in trace.instants.rows()) == instants
    found = Counter((*keys[row["slice_id"]], row["correlation"]) for row in tables["kineto_ops"].rows())
    assert {key: count for key, count in found.items() if key[-1] is not None} == correlations
    assert Counter((*keys[row["slice_id"]], plain(row["args"])) for row in tables["kineto_args"].rows()) == arguments
    assert not any(row["lost"] for row in trace.accounting.rows() if row["unit"] == "byte")
    assert_accounted(trace)
    assert_consistent(trace)
