"""Sidecar files: task graph, name map, host phases, hardware counters, resources of scopes, logs of the host."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lanescope.devices.ascend.formats.files import read_deps, read_names, terminated
from lanescope.devices.ascend.formats.records import Bytes, Deps
from lanescope.errors import InputError

if TYPE_CHECKING:
    from lanescope.devices.ascend.formats.host_phases import HostPhases
    from lanescope.devices.ascend.formats.pmu import Pmu
    from lanescope.devices.ascend.formats.records import Records
    from lanescope.devices.ascend.formats.scope_stats import ScopeStats
    from lanescope.devices.ascend.formats.strace import HostLog
    from lanescope.devices.ascend.interpret.host_log import PlacedLog
    from lanescope.source import Capture, Source

#: Names of logs: those that the runtime writes, one for each process, and those of a console.
_OWN = "host."
_LOGS = (f"{_OWN}*.log", "*.log")
#: Digits of a rank or a device in the name of a folder.
_MOST_DIGITS = 9
#: Bytes of a file that may be a console's log; a larger one is read if it is named.
_MOST_LOOKED_AT = 64 << 20


class Sidecars:
    """Contents of the sidecar files of a capture.

    Attributes:
        deps: the task graph.
        names: function names by number.
        orchestrator: its name.
        sources: the files, by what they are.
        broken: the ones that cannot be read; what cannot even be opened is not among ``sources``.
        host_phases: what the host recorded of itself, and spans of its log that have a place on the timeline; None
            without either.
        host_file: of these what the file of phases contains.
        logs: logs of the host, by role.
        placed_log: all of them, and what of them has a place on the timeline; None without any.
        pmu: hardware counters of executions; None without such a file.
        scope_stats: resources of the scopes of the orchestration; None without such a file.
        is_ambiguous: several name maps were found, so none is used.
    """

    def __init__(
        self,
        deps: Deps | None = None,
        names: dict[int, str] | None = None,
        orchestrator: str | None = None,
        sources: dict[str, Source] | None = None,
        broken: set[str] | None = None,
        *,
        is_ambiguous: bool = False,
    ) -> None:
        self.deps = deps
        self.names = {} if names is None else names
        self.orchestrator = orchestrator
        self.sources = {} if sources is None else sources
        self.broken = set() if broken is None else broken
        self.is_ambiguous = is_ambiguous
        self.host_phases: HostPhases | None = None
        self.host_file: HostPhases | None = None
        self.logs: dict[str, HostLog] = {}
        self.placed_log: PlacedLog | None = None
        self.pmu: Pmu | None = None
        self.scope_stats: ScopeStats | None = None

    @property
    def has_more(self) -> bool:
        """Whether there is any file besides the task graph and the names."""
        files = self.host_file, self.pmu, self.scope_stats
        return bool(self.logs) or any(file is not None for file in files)

    @classmethod
    def find(cls, capture: Capture, options: Mapping[str, Any]) -> Sidecars:
        """Find and read the neighbours.

        Raises:
            InputError: a neighbour that the user named cannot be read.
        """
        made = cls()
        made._use(capture, "deps", options.get("deps"), ("deps.json",), made._read_deps)
        made._use(capture, "names", options.get("names"), ("name_map*.json",), made._read_names)
        given = options.get("host_phases")
        made._use(capture, "host_phases", given, ("host_phase_records.jsonl",), made._read_host_phases)
        made._use(capture, "pmu", options.get("pmu"), ("pmu.csv",), made._read_pmu)
        given = options.get("scope_stats")
        made._use(
            capture, "scope_stats", given, ("scope_stats/scope_stats.jsonl", "scope_stats.jsonl"), made._read_scopes
        )
        made._use_logs(capture, options.get("log"))
        return made

    def place_log(self, records: Records) -> None:
        """Find the place of the logs on the timeline of the records."""
        if not self.logs:
            return
        from lanescope.devices.ascend.formats.strace import HostLog
        from lanescope.devices.ascend.interpret.host_log import as_phases, place

        self.placed_log = place(HostLog.join(list(self.logs.values())), records, self.host_phases)
        self.host_phases = as_phases(self.placed_log, self.host_phases)

    def _use_logs(self, capture: Capture, given: str | None) -> None:
        """Read the log that was named, or those next to the capture: one for each process, or a console's.

        Files that end in .log may be of anything: those without a span are left alone.
        """
        source = capture.sidecar("log", given, _LOGS)
        if "log" in capture.unreadable:
            self.broken.add("log")
        found = [] if source is None else [("log", source)]
        if "log" in capture.ambiguous:
            pattern = next(pattern for pattern in _LOGS if capture.find_sidecar(pattern))
            paths = capture.find_sidecar(pattern)
            found = [
                (role, capture.open_sidecar(role, path))
                for role, path in (
                    ("log" if number == 1 else f"log {number}", path) for number, path in enumerate(paths, 1)
                )
            ]
        if not found:
            return
        from lanescope.devices.ascend.formats.strace import TAG, read_log

        for role, source in found:
            is_console = not given and not source.name.startswith(_OWN)
            if is_console and (source.size > _MOST_LOOKED_AT or TAG not in source.read().tobytes()):
                capture.parts.pop(role).close()
                continue
            self.sources[role] = source
            try:
                self.logs[role] = read_log(load(source)[:-1], source.path, needs_spans=bool(given))
            except InputError:
                if given:
                    raise
                self.broken.add(role)

    def _use(
        self, capture: Capture, part: str, given: str | None, patterns: Sequence[str], reader: Callable[[Source], None]
    ) -> None:
        source = capture.sidecar(part, given, patterns)
        self.is_ambiguous |= part in capture.ambiguous
        if part in capture.unreadable:
            self.broken.add(part)
        if source is None:
            return
        self.sources[part] = source
        try:
            reader(source)
        except InputError:
            if given:
                raise
            self.broken.add(part)

    def _read_deps(self, source: Source) -> None:
        with source.mapped() as text:
            self.deps = read_deps(text, source.path)

    def _read_host_phases(self, source: Source) -> None:
        from lanescope.devices.ascend.formats.host_phases import read_host_phases

        self.host_phases = self.host_file = read_host_phases(load(source)[:-1], source.path)

    def _read_pmu(self, source: Source) -> None:
        from lanescope.devices.ascend.formats.pmu import read_pmu

        self.pmu = read_pmu(load(source)[:-1], source.path)

    def _read_scopes(self, source: Source) -> None:
        from lanescope.devices.ascend.formats.scope_stats import read_scope_stats

        self.scope_stats = read_scope_stats(load(source)[:-1], source.path)

    def _read_names(self, source: Source) -> None:
        self.names, self.orchestrator = read_names(load(source)[:-1].tobytes(), source.path)


def folders_of(path: str) -> list[str]:
    """Return the names of the folders in which a file lies, the outermost first, as they are written."""
    # With pathlib, importing it would cost more than reading a small capture.
    parts = os.path.join(os.getcwd(), path).split("/")  # noqa: PTH109, PTH118
    return [part for part in parts if part not in ("", ".")][:-1]


def rank_and_device(path: str) -> tuple[int | None, int | None]:
    """Return rank and device that the folders of a capture name, as in ``rank3/d0``; the innermost ones count."""
    found: dict[str, int] = {}
    for folder in reversed(folders_of(path)):
        for what in ("rank", "d"):
            number = folder.removeprefix(what)
            if number != folder and number.isdecimal() and len(number) <= _MOST_DIGITS:
                found.setdefault(what, int(number))
    return found.get("rank"), found.get("d")


def load(source: Source) -> Bytes:
    """Return the content of a file with a NUL behind it, uint8 [size + 1]."""
    content = source.read()
    whole = content.base
    if isinstance(whole, np.ndarray) and len(whole) == len(content) + 1 and not whole[-1]:
        return whole
    return terminated(content)
