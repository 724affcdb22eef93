"""What to simulate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from lanescope.errors import UsageError

#: The clock of the small chip; constants of the simulator are its ticks of 20 ns, scaled to faster clocks.
SLOW_CLOCK, FAST_CLOCK = 50_000_000, 1_000_000_000
#: Format versions, oldest first.
V1 = ("v1a", "v1b", "v1c")
FORMAT_VERSIONS = (*V1, "v2", "v3", "v3c", "v4")
#: What a dump of device memory may be of: a chip's shared memory with its buffers, or buffers without it.
DUMPS = ("a2a3", "a5", "buffers")
#: Threads of each platform; one of them orchestrates.
_SLOW_THREADS, _FAST_THREADS = 4, 5
#: Those of the newer naming.
CHIP = ("v3c", "v4")
#: Tasks of an episode, about: as many episodes as that makes are simulated at once.
_EPISODE_TASKS, _MOST_EPISODES = 2048, 256


@dataclass(frozen=True)
class Scenario:
    """The options of the simulator; ``family.py`` says what each means."""

    tasks: int = 400
    format_version: str = "v3"
    level: int = 4
    aic: int = 24
    aiv: int = 48
    threads: int = 3
    clock: int = SLOW_CLOCK
    mix: float = 0.05
    spmd: float = 0.03
    dummy: float = 0.02
    alloc: float = 0.02
    predicated: float = 0.01
    graphs: float = 0.0
    speculative: float = 0.15
    producers: float = 1.4
    fan_in: int = 0
    violations: int = 0
    epochs: int = 1
    host: bool = False
    anchors: bool = True
    deps: bool = True
    names: bool = True
    pmu: bool = False
    scopes: bool = False
    log: bool = False
    drop_aicore: int = 0
    drop_aicpu: int = 0
    drop_both: int = 0
    drop_phases: int = 0
    overflow: int = 0
    buffer: int = 1024
    clock_steps: int = 0
    clock_step_ns: int = 0
    duplicates: int = 0
    ambiguous: int = 0
    bad_rows: int = 0
    unknown_kinds: int = 0
    wrap: bool = False
    shuffle: bool = False
    dump: str = ""
    truth: str = "rows"

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Scenario:
        """Return the scenario of the simulator's options; ``UsageError`` if they contradict themselves."""
        known = {field.name for field in fields(cls)}
        given = {name: value for name, value in options.items() if name in known}
        if given.get("dump") in ("a2a3", "a5"):
            given["clock"] = SLOW_CLOCK if given["dump"] == "a2a3" else FAST_CLOCK
        return cls(**given)

    def __post_init__(self) -> None:
        """Refuse what no chip could run."""
        if self.format_version not in FORMAT_VERSIONS:
            raise UsageError(
                f"unknown format version {self.format_version!r}", hint="use one of " + ", ".join(FORMAT_VERSIONS)
            )
        if not 1 <= self.level <= 4:
            raise UsageError(f"invalid level {self.level}: must be 1 to 4", hint="use level 4 to record everything")
        if min(self.tasks, self.aic, self.aiv, self.threads, self.epochs, self.buffer) < 1 or self.clock < 1_000_000:
            raise UsageError("tasks, aic, aiv, threads, epochs and buffer must be at least 1, clock at least 1000000")
        if self.host and not self.is_chip:
            raise UsageError("host requires format version v3c or v4", hint="use --format-version v3c")
        if self.host and self.epochs > 1:
            raise UsageError(
                "no runtime writes several runs into one file if the host builds the task graph",
                hint="use --epochs 1, or remove --host",
            )
        if self.graphs and not self.host:
            raise UsageError("graphs require a host that builds the task graph", hint="use --host")
        if self.epochs > 1 and self.format_version != "v4":
            raise UsageError("epochs > 1 requires format version v4", hint="use --format-version v4")
        if self.dump:
            self._check_dump()
        shares = self.shares
        if min(shares) < 0 or sum(shares) > 1:
            raise UsageError("invalid task fractions: each must be 0 or more, their sum at most 1")

    def _check_dump(self) -> None:
        """Refuse dumps that no device leaves: the collector writes hosts, epochs and the faults of JSON files."""
        if self.dump not in DUMPS:
            raise UsageError(f"unknown dump {self.dump!r}", hint="use one of " + ", ".join(DUMPS))
        if self.format_version not in ("v3", "v3c"):
            raise UsageError("dump requires format version v3 or v3c", hint="use --format-version v3c")
        if self.host or self.duplicates or self.ambiguous or self.bad_rows or self.shuffle:
            raise UsageError("dump cannot be combined with host, duplicates, ambiguous, bad_rows or shuffle")

    @property
    def shares(self) -> tuple[float, ...]:
        """Shares of MIX, SPMD, dummy, alloc and predicated tasks, and of graphs."""
        return self.mix, self.spmd, self.dummy, self.alloc, self.predicated if self.is_chip else 0.0, self.graphs

    @property
    def unit(self) -> int:
        """Ticks of the counter in one tick of the small chip."""
        return max(self.clock // SLOW_CLOCK, 1)

    @property
    def cores(self) -> int:
        """Cores of both engines."""
        return self.aic + self.aiv

    @property
    def episodes(self) -> int:
        """Parts of the run that do not overlap."""
        if self.epochs > 1:
            return min(self.epochs, self.tasks)
        return min(max(self.tasks // _EPISODE_TASKS, 1), _MOST_EPISODES)

    @property
    def has_clusters(self) -> bool:
        """Whether the cores form clusters of a cube core and two vector cores, as on all chips: a block takes one."""
        return self.aiv == 2 * self.aic

    @property
    def is_v1(self) -> bool:
        """True if the collector joins the streams and writes microseconds."""
        return self.format_version in V1

    @property
    def is_chip(self) -> bool:
        """True if the format version uses the newer names."""
        return self.format_version in CHIP

    @property
    def is_observed(self) -> bool:
        """True if captures of the runtime itself are known: the simulator keeps the rules that hold in all of them.

        Version 4 writes what a host builds by the same rules, in its own form.
        """
        return self.format_version == "v3c" or self.host

    @property
    def phase_lists(self) -> int:
        """Lists of scheduler phases in the file: v3c has one for each thread of the platform."""
        if self.format_version != "v3c" or self.dump:
            return self.threads
        return max(_FAST_THREADS if self.clock >= FAST_CLOCK else _SLOW_THREADS, self.threads + 1)

    @property
    def has_lifecycle(self) -> bool:
        """True if control processors record how they start and end a run."""
        return self.format_version == "v4" and self.host and self.clock >= FAST_CLOCK and self.level >= 2

    @property
    def has_receive(self) -> bool:
        """True if cores record when they received a task."""
        return self.format_version in ("v3", *CHIP)

    @property
    def has_staging(self) -> bool:
        """True if schedulers send tasks to cores before their producers have ended."""
        return self.has_receive

    @property
    def stamps_again(self) -> bool:
        """Whether a task that was staged early is received a second time, when it is let go."""
        return not self.is_chip or self.host
