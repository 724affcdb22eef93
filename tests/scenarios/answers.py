"""What commands answer about a capture, in the words of a scenario file, and how that differs from what was expected.

The names of commands, flags and JSON keys stand here and nowhere else in the scenarios' code.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

from effort import ONE_IN, QUICK
from scenarios.scenario import FINDING, Scenario, option_text

STAGES = ("packet", "record", "row")
#: Commands that read one capture, as command lines behind its name; each has to refuse what cannot be read.
READERS = {
    "info": ["info", "--json"],
    "check": ["check", "--json"],
    "summary": ["summary", "--json"],
    "sql": ["sql", "--json"],
    "chrome": ["convert", "-o", "out.json"],
    "perfetto": ["convert", "-o", "out.pftrace"],
    "parquet": ["convert", "-o", "out.parquet"],
    "vcd": ["convert", "-o", "out.vcd"],
}
PLAIN = {"chrome": ["--no-annotations"], "perfetto": ["--no-annotations"]}
STRICT = "--strict"
#: Slices without a known end, in a row of the summary.
UNFINISHED = "unfinished"
FAILING = ("warning", "error")
LOSSES = ("data_loss", "error")


@dataclass
class Answers:
    """The answers of all commands, as the ``expect`` table of a scenario has them."""

    family: str
    format: str
    time_unit: str
    accounting: list[str]
    stats: dict[str, int]
    rows: dict[str, int]
    findings: list[dict[str, Any]]
    sql: list[dict[str, Any]] = field(default_factory=list)
    #: What does not fit together, whatever the file expects: promises that hold for every capture.
    broken: list[str] = field(default_factory=list)


def command(scenario: Scenario, words: list[str], path: str, *more: str) -> list[str]:
    """Return a command line about a capture, with the options of the scenario."""
    verb, *flags = words
    line = [verb, path, *more, *flags]
    for name, value in scenario.options.items():
        line += ["-O", f"{name}={option_text(value)}"]
    return [*line, "--family", scenario.family] if scenario.family else line


# --- asking ---------------------------------------------------------------------------------------------------------


def ask(scenario: Scenario, path: str, call: Any) -> Answers:
    """Run all commands on a capture that can be read."""
    info, found = _json(scenario, "info", path, call)
    found = Answers(
        family=info["family"],
        format=info["format"],
        time_unit=info["time"]["unit"],
        accounting=sorted(_accounting_lines(info)),
        stats=_counts(info["stats"]),
        rows={name: count for name, count in info["rows"].items() if count},
        findings=[],
        broken=found,
    )
    is_lossy = any(row["severity"] in LOSSES for row in info["stats"]) or any(row["lost"] for row in info["accounting"])
    _promises(found.broken, info)
    _check(scenario, path, call, found)
    summary, broken = _json(scenario, "summary", path, call)
    found.broken += broken
    if sum(row["count"] + row[UNFINISHED] for row in summary["rows"]) != info["rows"]["slices"]:
        found.broken.append(f"summary counts other slices than info: {summary['rows']}")
    strict = call(*command(scenario, ["info", STRICT], path))
    if strict.status != (4 if is_lossy else 0):
        found.broken.append(f"info {STRICT} ends with {strict.status}; is anything lost: {is_lossy}")
    if ("data loss: " in strict.err or "inconsistent data: " in strict.err) != is_lossy:
        found.broken.append(f"info writes {strict.err!r}; is anything lost: {is_lossy}")
    for stage in STAGES[crc32(scenario.name.encode()) % len(STAGES) :] if QUICK else STAGES:
        done = call(*command(scenario, ["dump", "--stage", stage], path))
        if done.status or not (done.out or not found.rows.get("slices")):
            found.broken.append(f"dump --stage {stage} ends with {done.status} after {len(done.out)} bytes")
    _convert(scenario, path, call, info, found)
    for query in scenario.expect.get("sql", []):
        answer, broken = _json(scenario, "sql", path, call, query["query"])
        found.sql.append({"query": query["query"], "rows": answer["rows"]})
        found.broken += broken
    return found


def _json(scenario: Scenario, name: str, path: str, call: Any, *more: str) -> tuple[dict[str, Any], list[str]]:
    done = call(*command(scenario, READERS[name], path, *more))
    assert done.status in ((0, 1) if name == "check" else (0,)), f"{name} ends with {done.status}: {done.err}"
    return json.loads(done.out) | {"exit": done.status}, _untidy(name, done.err)


def _untidy(name: str, err: str) -> list[str]:
    return [f"{name} writes a traceback:\n{err}"] if "Traceback" in err else []


def _accounting_lines(info: dict[str, Any]) -> list[str]:
    """Return "UNIT TOTAL = DECODED + PADDING + LOST", with the file's name for all but the main file."""
    files = {row["id"]: row for row in info["inputs"]}
    lines = []
    for row in info["accounting"]:
        file = files[row["input_id"]]
        name = "" if is_main(file) else f"{Path(file['path']).name}: "
        scope = "" if row["scope"] == "input" else f"{row['scope']} "
        sums = f"{row['total']} = {row['decoded']} + {row['padding']} + {row['lost']}"
        lines.append(f"{name}{scope}{row['unit']} {sums}")
    return lines


def is_main(row: dict[str, Any]) -> bool:
    """Tell whether an input is the main file of its capture."""
    return row["role"] == "main"


def _counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row["name"]] += row["count"]
    return dict(sorted(counts.items()))


def _promises(broken: list[str], info: dict[str, Any]) -> None:
    """Check what holds for every capture: sums of the accounting, file sizes, layers."""
    sizes = {row["id"]: row["size"] for row in info["inputs"]}
    layers: dict[int, list[dict[str, Any]]] = {number: [] for number in sizes}
    for row in info["accounting"]:
        if row["total"] != row["decoded"] + row["padding"] + row["lost"]:
            broken.append(f"the accounting does not add up: {row}")
        if row["scope"] == "input":
            layers[row["input_id"]].append(row)
    for number, rows in layers.items():
        rows.sort(key=lambda row: row["layer"])
        if not rows or rows[0]["total"] != sizes[number]:
            broken.append(f"layer 0 of input {number} is not its {sizes[number]} bytes: {rows[:1]}")
        for upper, lower in pairwise(rows):
            if lower["total"] * lower["unit_bytes"] != upper["decoded"]:
                broken.append(f"layer {lower['layer']} of input {number} does not divide what the layer below decoded")


def _check(scenario: Scenario, path: str, call: Any, found: Answers) -> None:
    answer, broken = _json(scenario, "check", path, call)
    found.broken += broken
    for finding in {finding["code"]: finding for finding in answer["findings"]}.values():
        _prove(scenario, path, call, finding, found.broken)
    for finding in answer["findings"]:
        if finding["code"] in scenario.expect.get("ignore", []):
            continue
        place = finding["location"]
        found.findings.append(
            {
                "code": finding["code"],
                "severity": finding["severity"],
                "count": finding["count"],
                "track": place["track"],
                "ts": place["ts"],
                "offset": place["offset"],
                "input": Path(place["input"]).name,
                "detail": finding["detail"],
                "stat": finding["stat"],
                "fraction": finding["affected_fraction"],
            }
        )
    failing = any(finding["severity"] in FAILING for finding in answer["findings"])
    if answer["exit"] != failing:
        found.broken.append(f"check ends with {answer['exit']}; does a finding warn: {failing}")


def _prove(scenario: Scenario, path: str, call: Any, finding: dict[str, Any], broken: list[str]) -> None:
    """Run the query of a finding: it returns the evidence rows."""
    answer, untidy = _json(scenario, "sql", path, call, finding["sql"])
    broken += untidy
    column = [each["name"] for each in answer["columns"]].index("id")
    ids = {row[column] for row in answer["rows"]}
    evidence = finding["evidence"]
    if len(answer["rows"]) != len(ids) or len(ids) != finding["sql_rows"] or finding["sql_rows"] > evidence["rows"]:
        broken.append(f"{finding['code']}: {finding['sql']} returns {len(answer['rows'])} rows, not {evidence['rows']}")
    if finding["sql_rows"] == evidence["rows"] and not set(evidence["sample"]) <= ids:
        broken.append(f"{finding['code']}: {finding['sql']} returns other rows than {evidence['sample']}")


# --- writing and reading back ---------------------------------------------------------------------------------------


def _convert(scenario: Scenario, path: str, call: Any, info: dict[str, Any], found: Answers) -> None:
    """Write what viewers read and read it back: in quick runs for a third of the scenarios."""
    if QUICK and crc32(scenario.name.encode()) % 3:
        return
    for format_, count in {"chrome": _chrome_slices, "perfetto": _perfetto_slices}.items():
        done = call(*command(scenario, [*READERS[format_], *PLAIN[format_]], path))
        found.broken += _untidy(format_, done.err)
        out = Path(READERS[format_][-1])
        drawn = count(out.read_bytes()) if done.status == 0 else None
        wanted = info["rows"]["slices"] + info["rows"]["gaps"]
        if drawn != wanted:
            found.broken.append(f"{format_} shows {drawn} slices and gaps of {wanted}; exit {done.status}: {done.err}")
    if is_tried(scenario):
        _convert_slowly(scenario, path, call, info, found)


def is_tried(scenario: Scenario) -> bool:
    """Tell whether the files that cost most are written now: in quick runs for a part of the scenarios."""
    return not QUICK or crc32(scenario.name.encode()) % ONE_IN["quick"] == 0


def _convert_slowly(scenario: Scenario, path: str, call: Any, info: dict[str, Any], found: Answers) -> None:
    """Write waveforms, and read them by pywellen; write Parquet, and read it back by ``info`` and by pyarrow."""
    import pyarrow.parquet
    import pywellen

    done = call(*command(scenario, READERS["vcd"], path))
    if done.status:
        found.broken.append(f"vcd: exit {done.status}: {done.err}")
    elif info["rows"]["slices"] and not list(pywellen.Waveform(READERS["vcd"][-1], multi_threaded=False).all_vars()):
        found.broken.append("vcd: pywellen finds no signal")
    done = call(*command(scenario, READERS["parquet"], path))
    folder = Path(READERS["parquet"][-1])
    if done.status:
        found.broken.append(f"parquet: exit {done.status}: {done.err}")
        return
    again = json.loads(call(*READERS["info"], folder).out)
    for key in ("rows", "accounting", "clocks", "tracks", "time"):
        if again[key] != info[key]:
            found.broken.append(f"parquet: {key} comes back as {again[key]}, was {info[key]}")
    if _counts(again["stats"]) != found.stats:
        found.broken.append(f"parquet: stats come back as {again['stats']}")
    for table, count in info["rows"].items():
        parts = (folder / table).glob("*.parquet")
        if (rows := sum(pyarrow.parquet.read_metadata(part).num_rows for part in parts)) != count:
            found.broken.append(f"parquet: pyarrow reads {rows} rows of {table}, not {count}")


def _chrome_slices(data: bytes) -> int:
    """Return the number of slices and gaps of a Chrome trace, by the standard library's reader."""
    return sum(event["ph"] in "XB" for event in json.loads(data)["traceEvents"])


def _perfetto_slices(data: bytes) -> int:
    """Return the number of slices and gaps of a Perfetto trace, by the official bindings."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent

    from track_events import packets

    return sum(packet.track_event.type == TrackEvent.TYPE_SLICE_BEGIN for packet in packets(data))


# --- comparing ------------------------------------------------------------------------------------------------------


def differences(expect: dict[str, Any], found: Answers) -> list[str]:
    """Return what differs from the expectation, one text each."""
    wrong = list(found.broken)
    wrong += [
        f"{key} is {getattr(found, key)!r}, not {expect[key]!r}"
        for key in ("family", "format", "time_unit")
        if expect.get(key, getattr(found, key)) != getattr(found, key)
    ]
    wrong += _line_difference("accounting", sorted(expect["accounting"]), found.accounting)
    for key, is_complete in (("stats", True), ("rows", False)):
        wanted, real = expect.get(key, {}), getattr(found, key)
        for name in sorted({*wanted, *(real if is_complete else ())}):
            if wanted.get(name, 0) != real.get(name, 0):
                wrong.append(f"{key}: {name} is {real.get(name, 0)}, not {wanted.get(name, 0)}")
    wrong += _finding_differences(expect["findings"], found.findings)
    for wanted, real in zip(expect.get("sql", []), found.sql, strict=True):
        if _plain(wanted["rows"]) != _plain(real["rows"]):
            wrong.append(f"{wanted['query']}\n  answers {_plain(real['rows'])}\n  not     {_plain(wanted['rows'])}")
    return wrong


def _plain(rows: list[list[Any]]) -> list[list[Any]]:
    """Return rows in which NULL is the text that TOML, which has no null, uses for it."""
    return [["NULL" if value is None else value for value in row] for row in rows]


def _line_difference(what: str, wanted: list[str], real: list[str]) -> list[str]:
    lines = [line for line in difflib.ndiff(wanted, real) if line[0] in "+-"]
    return [f"{what}: " + "; ".join(lines)] if lines else []


def _finding_differences(wanted: list[dict[str, Any]], real: list[dict[str, Any]]) -> list[str]:
    """Take away the real findings that each expected one describes; whatever is left on either side is wrong.

    The most specific description chooses first. One of ``places`` n means n findings, whose counts are added.
    """
    left, wrong = list(real), []
    for one in sorted(wanted, key=len, reverse=True):
        matching = [finding for finding in left if _fits(one, finding)]
        places = one.get("places", 1)
        if "places" not in one and len(matching) > 1:
            matching = matching[:1]
        count = sum(finding["count"] for finding in matching)
        if len(matching) != places or count != one.get("count", count):
            wrong.append(f"findings: {one} is met at {len(matching)} places with a count of {count}")
        left = [finding for finding in left if not any(finding is each for each in matching)]
    return [*wrong, *(f"findings: not expected: {finding}" for finding in left)]


def _fits(one: dict[str, Any], finding: dict[str, Any]) -> bool:
    for key in FINDING & set(one) - {"places", "count"}:
        if key == "detail":
            if not fnmatchcase(finding[key], one[key]):
                return False
        elif key == "fraction":
            if finding[key] is None or abs(finding[key] - one[key]) > 0.005:
                return False
        elif finding[key] != one[key]:
            return False
    return "places" in one or "count" not in one or one["count"] == finding["count"]


def as_toml(found: Answers) -> str:
    """Return the answers in the words of a scenario file, to read, to understand, and only then to copy."""
    lines = ["[expect]"]
    lines += [f"{key} = {json.dumps(getattr(found, key))}" for key in ("family", "format")]
    lines += ["accounting = [", *(f"    {json.dumps(line)}," for line in found.accounting), "]"]
    lines.append(f"stats = {_inline(found.stats)}")
    lines.append(f"rows = {_inline(found.rows)}")
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for finding in found.findings:
        detail = re.sub(r"[0-9].*", "*", finding["detail"])
        groups.setdefault((finding["code"], finding["severity"], detail), []).append(finding)
    lines.append("findings = [")
    for (code, severity, detail), many in groups.items():
        one = {"code": code, "severity": severity, "count": sum(finding["count"] for finding in many)}
        if len(many) > 1:
            one |= {"places": len(many), "detail": detail}
        else:
            one |= {
                key: many[0][key]
                for key in ("track", "ts", "offset", "stat", "detail")
                if many[0][key] not in (None, "")
            }
        lines.append(f"    {_inline(one)},")
    lines.append("]")
    for query in found.sql:
        rows = ",\n    ".join(json.dumps(row) for row in _plain(query["rows"]))
        lines += ["", "[[expect.sql]]", f"query = {json.dumps(query['query'])}", f"rows = [\n    {rows},\n]"]
    return "\n".join(lines)


def _inline(table: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items()) + " }" if table else "{}"
