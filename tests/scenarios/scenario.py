"""Scenario files: what is in one, and how its captures are made.

A file describes one or several captures and what every command answers about them. ``docs/howto/report-to-test.md``
explains the keys to contributors. A key that is not listed here is an error, so a misspelled expectation fails.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
#: Named files stand under here: those of the families' own tests are used as well.
TESTS = HERE.parent
DATA = HERE / "data"

#: Keys of a file, of its captures, of their edits, of expectations, of expected findings, queries and command lines.
SCENARIO = {
    "title",
    "known_defect",
    "defect_shows",
    "capture",
    "options",
    "family",
    "input",
    "plugins",
    "expect",
    "run",
}
CAPTURE = {"file", "simulate", "records", "words32", "words64", "hex", "text", "data", "corpus", "edit", "files"}
EDIT = {"in", "cut", "append", "flip", "bit", "set", "to", "remove", "bytes", "copy", "zeros", "replace", "by", "gz"}
EXPECT = {
    "family",
    "format",
    "time_unit",
    "accounting",
    "stats",
    "rows",
    "findings",
    "ignore",
    "sql",
    "refused",
    "exit",
}
FINDING = {"code", "severity", "places", "count", "track", "ts", "offset", "input", "detail", "stat", "fraction"}
QUERY = {"query", "rows"}
RUN = {"args", "exit", "out", "err", "stdin"}
SOURCES = ("simulate", "records", "words32", "words64", "hex", "text", "data", "corpus")


@dataclass(frozen=True)
class Scenario:
    """One scenario file."""

    path: Path
    title: str
    captures: list[dict[str, Any]]
    expect: dict[str, Any]
    runs: list[dict[str, Any]]
    options: dict[str, Any] = field(default_factory=dict)
    family: str = ""
    plugins: dict[str, str] = field(default_factory=dict)
    known_defect: str = ""
    defect_shows: str = ""

    @property
    def name(self) -> str:
        """Its path under this folder without the suffix: the id of its test."""
        return self.path.relative_to(HERE).with_suffix("").as_posix()


def all_scenarios() -> list[Scenario]:
    """Read all files."""
    return [load(path) for path in sorted(HERE.glob("*/*.toml"))]


def load(path: Path) -> Scenario:
    """Read a file.

    Raises:
        ValueError: it is not TOML, or a key is unknown or missing.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path.name}: {error}") from None
    captures = content.get("capture", [])
    captures = captures if isinstance(captures, list) else [captures]
    expect, runs = content.get("expect", {}), content.get("run", [])
    levels = [
        ("the file", SCENARIO, [content]),
        ("capture", CAPTURE, captures),
        ("edit", EDIT, [edit for capture in captures for edit in capture.get("edit", [])]),
        ("expect", EXPECT, [expect]),
        ("findings", FINDING, expect.get("findings", [])),
        ("sql", QUERY, expect.get("sql", [])),
        ("run", RUN, runs),
    ]
    for level, known, tables in levels:
        for table in tables:
            if unknown := sorted(set(table) - known):
                raise ValueError(f"{path.name}: unknown key in {level}: {', '.join(unknown)}")
    for capture in captures:
        if sum(source in capture for source in SOURCES) != 1:
            raise ValueError(f"{path.name}: a capture is made by exactly one of: {', '.join(SOURCES)}")
    if not re.match(r"[A-Z].*[^.]$", content["title"]):
        raise ValueError(f"{path.name}: the title is a sentence, with a capital and without a full stop")
    if not expect and not runs:
        raise ValueError(f"{path.name}: nothing is expected")
    if expect and "refused" not in expect and not {"accounting", "stats", "findings"} <= set(expect):
        raise ValueError(f"{path.name}: expect needs accounting, stats and findings (they may be empty), or refused")
    if ("known_defect" in content) != ("defect_shows" in content):
        raise ValueError(f"{path.name}: known_defect goes with defect_shows, a pattern of what differs")
    given = {key: content[key] for key in SCENARIO & set(content) - {"title", "capture", "expect", "run"}}
    return Scenario(path, content["title"], captures, expect, runs, **given)


# --- making captures ------------------------------------------------------------------------------------------------


def make(scenario: Scenario, folder: Path, corpus: Path | None, call: Any) -> str:
    """Make the captures of a scenario in a folder and return the input that commands read; empty if there is none."""
    for capture in scenario.captures:
        file = folder / capture["file"]
        if "simulate" in capture:
            simulate(capture["simulate"], file, call)
        elif "corpus" in capture:
            if corpus is None:
                pytest.skip("LANESCOPE_CORPUS is not set: no captures from elsewhere")
            _write(file, (corpus / capture["corpus"]).read_bytes())
        else:
            _write(file, content_of(capture))
        for name, content in capture.get("files", {}).items():
            is_data = content.startswith("data:")
            data = (TESTS / content[5:]).read_bytes() if is_data else content.encode()
            file.with_name(name).write_bytes(data)
        for change in capture.get("edit", []):
            path = file.with_name(change["in"]) if "in" in change else file
            path.write_bytes(edited(path.read_bytes(), change))
    return scenario.captures[0]["file"] if scenario.captures else ""


def _write(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def simulate(options: dict[str, Any], file: Path, call: Any) -> None:
    """Write a simulated capture; one of several files into the folder of its main file."""
    options = dict(options)
    out = file.name if file.parent == Path.cwd() else file.parent.name
    arguments = [options.pop("family"), "--seed", options.pop("seed", 0), "-o", out]
    for name, value in options.items():
        arguments += ["-O", f"{name}={option_text(value)}"]
    done = call("sim", *arguments)
    assert done.status == 0, done.err


def option_text(value: Any) -> str:
    """Return the value of an option as the command line takes it."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def content_of(capture: dict[str, Any]) -> bytes:
    """Return the bytes of a capture that is written down in the file."""
    if "text" in capture:
        return capture["text"].encode()
    if "data" in capture:
        return (TESTS / capture["data"]).read_bytes()
    if "hex" in capture:
        return bytes.fromhex(capture["hex"])
    for key, size in (("words32", 4), ("words64", 8)):
        if key in capture:
            return b"".join(int(word, 16).to_bytes(size, "little") for word in capture[key].split())
    return encoded(**capture["records"])


def encoded(layout: str, **content: Any) -> bytes:
    """Return records as the encoder of their family writes them."""
    return {"tirx": _tirx, "ls2": _ls2, "aie": _aie}[layout](**content)


def _tirx(lanes: list[list[str]], **geometry: int) -> bytes:
    """Encode lanes of "B 0 1000": a begin of event 0 at 1000 ns; E ends, I instants, F finalizes."""
    from devices.cuda.helpers import buffer
    from lanescope.devices.cuda.formats.encode import strided

    return strided.to_npy(buffer([[_record(text) for text in lane] for lane in lanes], **geometry))


def _ls2(lanes: list[list[str]], **setup: Any) -> bytes:
    """Encode lanes of "B 0 1000 7 3": the same, with a token and a payload where they are given."""
    from devices.cuda.helpers import ls2

    return ls2([[_record(text) for text in lane] for lane in lanes], **setup).tobytes()


def _record(text: str) -> tuple[Any, ...]:
    kind, *numbers = text.split()
    return (kind, *map(int, numbers))


def _aie(sources: list[dict[str, Any]], zeros: int = 0) -> bytes:
    """Encode recordings: ``runs`` are [events asserted (bits), cycles], in mode 1 [events, address, cycles].

    In mode 2 they are [kind, value, count] of ``layout.FLOW_KINDS``. ``restart`` is the timer of a restart behind them,
    and ``runs_after`` what follows it. Packets of one source follow those of the other.
    """
    import numpy as np

    from lanescope.devices.aie.formats import encode
    from lanescope.devices.aie.formats.layout import FLOW_KINDS

    parts = []
    for source in sources:
        mode, runs = source.get("mode", 0), source["runs"]
        columns = [np.array(column) for column in zip(*runs, strict=True)]
        ends = {"stop": "restart" not in source, "idle": source.get("idle", 0)}
        if mode == 2:
            kinds = np.array([FLOW_KINDS.index(kind) for kind in columns[0]], np.uint8)
            frames = encode.encode_flow(kinds, columns[1].astype(np.int64), columns[2].astype(np.int64))
        else:
            body = (encode.encode_runs, encode.encode_pc_runs)[mode](*columns, **ends)
            head = encode.start(source.get("timer", 0), mode=mode)
            frames = encode.Frames.join([head, body])
        if "restart" in source:
            mask, length = (np.array(column) for column in zip(*source["runs_after"], strict=True))
            again = encode.start(source["restart"], restart=True)
            frames = encode.Frames.join([frames, again, encode.encode_runs(mask, length)])
        payload = encode.pack(frames, mode=mode)
        word = encode.header(source.get("type", 0), source["column"], source["row"], source.get("id", 1))
        parts.append(encode.packets(word, payload).ravel())
    return np.concatenate([*parts, np.zeros(zeros, np.uint32)]).astype("<u4").tobytes()


def edited(data: bytes, change: dict[str, Any]) -> bytes:
    """Return bytes after one edit.

    Raises:
        ValueError: there is nothing to edit at that place.
    """
    import gzip

    at = next((change[key] for key in ("cut", "flip", "set", "remove") if key in change), 0)
    if not -len(data) <= at <= len(data):
        raise ValueError(f"{at} is beyond the {len(data)} bytes of the file")
    if "cut" in change:
        return data[: change["cut"]]
    if "append" in change:
        return data + bytes.fromhex(change["append"])
    if "flip" in change:
        return _with(data, at, bytes([data[at] ^ 1 << change["bit"]]))
    if "set" in change:
        return _with(data, at, bytes.fromhex(change["to"]))
    if "remove" in change:
        return data[:at] + data[at + change["bytes"] :]
    if "copy" in change:
        first, last, to = change["copy"]
        return data[:to] + data[first:last] + data[to:]
    if "zeros" in change:
        return data + bytes(change["zeros"])
    if "replace" in change:
        old = change["replace"].encode()
        if data.count(old) != 1:
            raise ValueError(f"{change['replace']!r} stands {data.count(old)} times in the file, not once")
        return data.replace(old, change["by"].encode())
    return gzip.compress(data, mtime=0)


def _with(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]
