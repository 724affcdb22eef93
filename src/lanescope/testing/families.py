"""Contract test of device families, and a context for tests of a family's commands."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.pipeline import session
from lanescope.testing.asserts import assert_accounted, assert_consistent, assert_same
from lanescope.trace import Trace
from lanescope.trace.stats import STAT_RULES

if TYPE_CHECKING:
    from lanescope.families.family import Family, Simulation
    from lanescope.trace.column import Mask

#: Bytes of the files of noise and of zeros that are shown to a detection, which sees the first 64 KiB; and where
#: captures are cut.
_SIZES = (0, 1, 64, 1000, 4096, 1 << 16, 11 << 16)
_CUTS = (1, 997, 1 << 16)


def check_family(family: Family, *, seeds: Sequence[int] = (1, 2), options: Mapping[str, Any] = {}) -> None:
    """Assert what ``lanescope`` relies on in a family.

    * What it declares is of the right kind, and everything that it refers to is there.
    * Names of its tables and stats, and codes of its rules, begin with its name; no name is given twice. The rule of
      a stat is one for all traces that reports stats, or one of the family.
    * Noise and zeros are not its own: detection scores them below 50.
    * A simulation of one seed is the same each time, is recognised, and decodes into a consistent trace whose
      accounting adds up to the file.
    * A format that streams gives the same rows however the file is cut.

    Args:
        family: what the package registers.
        seeds: seeds of the simulator; none without a simulator.
        options: options of the simulator; those that its ``demo`` has when there are none.

    Raises:
        AssertionError: with what is wrong.
        TypeError: something that it declares is of the wrong kind.
    """
    registry.verify(family)
    _check_references(family)
    _check_names(family)
    _check_detection(family)
    if family.simulator is not None:
        given = resolve_options(family.sim_options, options or family.simulator.demo, what=f"simulator {family.name}")
        for seed in seeds:
            simulation = family.simulate(given, seed)
            assert family.simulate(given, seed) == simulation, f"seed {seed} gives two different simulations"
            _check_simulation(family, simulation)


def _check_references(family: Family) -> None:
    """Load whatever is named by reference; what is not there raises in its own words."""
    for format in family.formats:
        assert callable(format.detect), f"format {format.name}: detect"
        assert callable(format.decode or format.decode_file), f"format {format.name}: decode"
        assert all(layout.name for layout in format.layouts)
        assert all(callable(format.stage(name)) for name in format.stages)
    for derived in family.derived:
        assert bool(derived.analysis) != (derived.make is not None), f"{derived.name} is made by an analysis or `make`"
    called: list[Any] = [summary.make for summary in family.summaries] + [command.run for command in family.commands]
    called += [summary.remarks for summary in family.summaries]
    called += [each for export in family.exports for each in (export.blocks, export.left_out)]
    called += [rule.check for rule in family.rules]
    called += [limit.where for limit in family.limits]
    assert all(limit.cannot and limit.instead for limit in family.limits)
    assert all(map(callable, called))
    assert all(argument.help for command in family.commands for argument in command.arguments)


def _check_names(family: Family) -> None:
    tables = [spec.name for spec in family.tables]
    for derived in family.derived:
        tables += [spec.name for spec in derived.specs] or [derived.name]
    stats = [spec.name for spec in family.stats]
    for name in (*tables, *stats, *(derived.name for derived in family.derived)):
        assert name.startswith(f"{family.name}_"), f"{name} does not begin with {family.name}_"
    letters = re.sub("[^A-Z]", "", family.name.upper())
    for rule in family.rules:
        assert rule.code[:-3] == letters, f"rule {rule.code} does not begin with {letters}"
    codes = {*STAT_RULES, *(rule.code for rule in family.rules)}
    for spec in family.stats:
        assert spec.silent or spec.rule in codes, f"{spec.name} is of rule {spec.rule}, which reports no stats"
    named = {
        "table": tables,
        "stat": stats,
        "rule": [rule.code for rule in family.rules],
        "format": [format.name for format in family.formats],
        "option": [option.name for option in family.options],
        "option of the simulator": [option.name for option in family.sim_options],
        "summary": [summary.name for summary in family.summaries],
        "export": [export.name for export in family.exports],
        "command": [command.name for command in family.commands],
        "limit": [limit.name for limit in family.limits],
    }
    for what, names in named.items():
        assert len(set(names)) == len(names), f"a {what} is declared twice: {sorted(names)}"


def _check_detection(family: Family) -> None:
    noise = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "capture")
        for size in _SIZES:
            for what, data in (("zeros", bytes(size)), ("noise", noise.bytes(size)), ("text", b"text\n" * (size // 5))):
                path.write_bytes(data)
                with session.capture(path) as capture:
                    match = family.detect(capture.main.head())
                assert not match.is_recognized, f"{size} bytes of {what} score {match.score}: {match.reason}"


def _check_simulation(family: Family, simulation: Simulation) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in simulation.files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        main = Path(folder, next(iter(simulation.files)))
        with session.capture(main) as capture:
            match = family.detect(capture.main.head())
            assert match.is_recognized, f"its own simulation scores {match.score}: {match.reason}"
            trace = Trace.concat(session.decode(capture, family, {}))
        assert_consistent(trace)
        assert_accounted(trace)
        declared = {spec.name for spec in family.tables}
        assert set(trace.details) <= declared, f"tables that are not declared: {sorted(set(trace.details) - declared)}"
        _check_chunks(family, main, trace)


def _check_chunks(family: Family, main: Path, whole: Trace) -> None:
    settled = resolve_options(family.options, {}, what=family.name)
    for size in _CUTS:
        with session.capture(main) as capture:
            format = family.format_of(capture)
            if not format.is_streaming:
                return
            decoder = family.decoder(format, capture, settled)
            data = memoryview(bytes(capture.main.read().data))
            batches = [batch for piece in _pieces(data, size) for batch in decoder.feed(piece)]
            assert_same(Trace.concat([*batches, *decoder.finish()]), whole)


def _pieces(data: memoryview, size: int) -> Iterator[memoryview]:
    for begin in range(0, len(data), size):
        yield data[begin : begin + size]


class CommandRecorder:
    """A ``CommandContext`` that records the output of a command instead of printing it.

    Attributes:
        shown: tables, as (title, columns, rows).
        printed: lines and JSON documents for standard output.
        said: what was said on standard error.
        written: content by target; None and ``-`` are standard output.
    """

    def __init__(self, options: Mapping[str, Any] = {}) -> None:
        self._options = dict(options)
        self.shown: list[tuple[str, tuple[str, ...], list[list[Any]]]] = []
        self.printed: list[Any] = []
        self.said: list[str] = []
        self.written: dict[str | None, bytes] = {}

    def open(self, path: str, **options: Any) -> Trace:
        """Decode a capture with the options that the recorder was made with and those given here."""
        return session.open(path, **{**self._options, **options})

    def chosen_tracks(self, trace: Trace) -> Mask:
        """Return that a capture is there with all of its tracks, bool [tracks]: no window is asked for."""
        return np.ones(len(trace.tracks), np.bool_)

    def read(self, path: str) -> Trace:
        """Decode a capture."""
        return session.open(path)

    def option(self, name: str) -> str | None:
        """Return the text of a decode option that the recorder was made with."""
        value = self._options.get(name)
        return None if value is None else str(value)

    def show(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        *,
        title: str = "",
        is_talk: bool = False,
        is_long: bool = False,
    ) -> None:
        """Keep a table."""
        self.shown.append((title, tuple(columns), [list(row) for row in rows]))

    def lines(self, lines: Iterable[str]) -> None:
        """Keep lines."""
        self.printed += lines

    def json(self, schema: str, **content: Any) -> None:
        """Keep a document."""
        self.printed.append({"schema": schema, **content})

    def echo(self, message: str) -> None:
        """Keep what is said."""
        self.said.append(message)

    def is_stdout(self, target: str | None) -> bool:
        """Return whether a target is standard output."""
        return target in (None, "-")

    def check_target(self, target: str | None, inputs: Sequence[str] = ()) -> None:
        """Accept any target."""

    def write(self, target: str | None, blocks: Iterable[bytes], *, inputs: Sequence[str] = ()) -> int:
        """Keep the content of a file."""
        self.written[target] = b"".join(blocks)
        return len(self.written[target])

    def convert(self, trace: Trace, target: str) -> int:
        """Keep a trace as the content of a timeline in Chrome's format."""
        import io

        file = io.BytesIO()
        session.write(trace, file, "chrome")
        self.written[target] = file.getvalue()
        return len(self.written[target])
