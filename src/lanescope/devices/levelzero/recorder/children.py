"""Processes that use Level Zero, but were started without the recorder's environment: they are not recorded, but named.

Nothing is added to the program for it: its descendants are looked up in ``/proc`` while it runs. A process is missed if
it lives for less than the time between two looks, or if the process that started it had ended before the look.

Standard library only.
"""

from __future__ import annotations

import array
import contextlib
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lanescope.devices.levelzero.recorder.ranks import PREFIX, is_selected, rank_of

#: What the mapped files of a process that uses Level Zero contain.
_LOADER = b"/libze_loader.so"
#: What they contain once it has called ``zeInit``. Source: names of drivers in the loader 1.32.
_DRIVERS = (b"/libze_intel_gpu", b"/libze_intel_vpu", b"/libze_intel_npu")
#: Name of the mark of a process that emptied its environment, with its number behind it. Source: process.cpp.
EMPTIED = ".emptied-"
#: Entry of the auxiliary vector that says that a program has more rights than its user.
_AT_SECURE = 23
#: A look may take this share of a core: the next one comes accordingly later. Where others keep the core busy, a look
#: lasts long but costs no more.
_SHARE = 0.02
#: So many new process numbers are looked at one by one; more are looked up in the list of all.
_MOST_NEW = 500
#: Entry of the environment in the description of a process that was not recorded.
ENTRY = "unrecorded"


@dataclass(frozen=True, slots=True)
class Child:
    """One process.

    Attributes:
        pid: its number.
        program: its executable.
        missing: the variable of the recorder that its environment lacks.
    """

    pid: int
    program: str
    missing: str


class Children:
    """The descendants of a program, watched while it runs.

    Args:
        made: the environment that the program is given.
        layer: folder of the recorder's library, as it is in that environment.
    """

    def __init__(self, made: Mapping[str, str], layer: str) -> None:
        self._made, self._layer = made, layer
        self._newest = _newest()
        self._known: set[int] = set()
        self._found: dict[int, Child] = {}
        self._next = 0.0

    def begin(self, pid: int) -> None:
        """Take the number of the program, which was started after this object was made."""
        self._known.add(pid)

    def look(self, *, is_last: bool = False) -> None:
        """Look for new processes, and for what the known ones use; nothing if it is too early for that."""
        if time.monotonic() < self._next and not is_last:
            return
        begin = time.thread_time()
        for pid in self._new():
            with contextlib.suppress(OSError, ValueError, KeyError):
                if _parent(pid) in self._known:
                    self._known.add(pid)
        for pid in list(self._known):
            try:
                self._judge(pid)
            except (FileNotFoundError, ProcessLookupError):
                self._known.discard(pid)
            except OSError:
                continue  # of another user: nothing is known of it
        self._next = time.monotonic() + (time.thread_time() - begin) / _SHARE

    def _new(self) -> Iterator[int]:
        """Return the numbers of processes, and of threads, that were given since the last look."""
        before, self._newest = self._newest, _newest()
        if 0 <= self._newest - before <= _MOST_NEW:
            yield from range(before + 1, self._newest + 1)
        else:
            yield from sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208

    def _judge(self, pid: int) -> None:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
        given = dict(entry.partition(b"=")[::2] for entry in environ.split(b"\0") if entry)
        mapped = Path(f"/proc/{pid}/maps").read_bytes()
        if not environ or not mapped:
            return  # it ends: what was known of it stays
        missing = self._missing(given)
        if os.fsencode(self._layer) + b"/" in mapped or self._is_other_rank(given):
            self._found.pop(pid, None)  # it may have got there in another way
        elif _LOADER not in mapped:
            if not missing:
                self._found.pop(pid, None)
        elif (missing or self._has_driver(given, mapped)) and pid not in self._found:
            # With a driver and without the recorder, a complete environment was not that of the loader.
            lost = "LD_LIBRARY_PATH" if _is_secure(pid) else "ZE_ENABLE_TRACING_LAYER"
            self._found[pid] = Child(pid, str(Path(f"/proc/{pid}/exe").readlink()), missing or lost)

    def _is_other_rank(self, given: Mapping[bytes, bytes]) -> bool:
        """Whether a process is a rank that is not to be recorded: nothing is missing where it leaves no recording."""
        rank = rank_of({os.fsdecode(name): os.fsdecode(value) for name, value in given.items()})
        return rank is not None and not is_selected(rank, self._made.get("LANESCOPE_ZE_RANKS", ""))

    def _has_driver(self, given: Mapping[bytes, bytes], mapped: bytes) -> bool:
        """Whether a process has called ``zeInit``: the loader opens drivers then."""
        named = given.get(b"ZE_ENABLE_ALT_DRIVERS", b"").split(b",")
        return any(driver in mapped for driver in (*named, *_DRIVERS) if driver)

    def _missing(self, given: Mapping[bytes, bytes]) -> str:
        """Return the variable that an environment lacks, or an empty text."""
        if not given.get(b"LANESCOPE_ZE_OUTPUT"):
            return "LANESCOPE_ZE_OUTPUT"
        if given.get(b"ZE_ENABLE_TRACING_LAYER") != b"1":
            return "ZE_ENABLE_TRACING_LAYER"
        folders = given.get(b"LD_LIBRARY_PATH", b"").replace(b";", b":").split(b":")
        preloaded = self._made.get("LD_PRELOAD", "").split(":")[0]
        is_preloaded = preloaded.startswith(self._layer) and os.fsencode(preloaded) in given.get(b"LD_PRELOAD", b"")
        return "" if os.fsencode(self._layer) in folders or is_preloaded else "LD_LIBRARY_PATH"

    def unrecorded(self, folder: Path) -> list[Child]:
        """Return the processes that used Level Zero and left no recording, by number.

        Args:
            folder: the recording.
        """
        # A rank's recording begins with its number.
        recorded = [re.sub(rf"^{PREFIX}\d+-", "", path.parent.name) for path in folder.glob("*/metadata")]
        for mark in folder.glob(f"{EMPTIED}*"):
            # Its loader had the recorder in it, and no variable any more that had it used.
            pid = int(mark.name.removeprefix(EMPTIED))
            self._found.setdefault(pid, Child(pid, mark.read_text(), "ZE_ENABLE_TRACING_LAYER"))
            mark.unlink()

        def is_missing(child: Child) -> bool:
            name = f"{_host()}-{child.pid}"
            return not any(one == name or one.startswith(f"{name}-") for one in recorded)

        return [child for _, child in sorted(self._found.items()) if is_missing(child)]


def _newest() -> int:
    """Return the newest process number, 0 where the system does not tell it."""
    try:
        with open("/proc/loadavg", "rb") as file:  # noqa: PTH123
            return int(file.read().split()[-1])
    except (OSError, ValueError, IndexError):
        return 0


def _parent(pid: int) -> int:
    """Return the number of a process's parent, -1 for that of a thread."""
    with open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123
        facts = dict(line.split(b":", 1) for line in file.read().splitlines() if b":" in line)
    return int(facts[b"PPid"]) if int(facts[b"Tgid"]) == pid else -1


def _is_secure(pid: int) -> bool:
    """Whether a program has more rights than who started it: its loader ignores variables then."""
    vector = array.array("L", Path(f"/proc/{pid}/auxv").read_bytes())
    return bool(dict(zip(vector[::2], vector[1::2], strict=False)).get(_AT_SECURE))


def _host() -> str:
    return os.uname().nodename.replace("/", "_").replace(".", "_")


def write(folder: Path, children: list[Child]) -> None:
    """Add a trace without events to a recording for each process that was not recorded.

    Args:
        folder: the recording.
        children: the processes.
    """
    for child in children:
        made = folder / f"{_host()}-{child.pid}"
        with contextlib.suppress(OSError):
            made.mkdir()
            (made / "metadata").write_text(_metadata(child))


def _quoted(text: str) -> str:
    shown = "".join("?" if char < " " else char for char in text)
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _metadata(child: Child) -> str:
    """Return the description of a trace without events. Source: metadata.cpp of the recorder."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    seconds, rest = divmod(time.time_ns() - time.monotonic_ns(), 1_000_000_000)
    number = os.urandom(16).hex()
    uuid = "-".join((number[:8], number[8:12], number[12:16], number[16:20], number[20:]))
    lines = [
        "/* CTF 1.8 */",
        *(f"typealias integer {{ size = {n}; align = 8; signed = false; }} := uint{n}_t;" for n in (8, 16, 32, 64)),
        f'trace {{ major = 1; minor = 8; uuid = "{uuid}"; byte_order = {"le" if sys.byteorder == "little" else "be"};'
        " packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; }; };",
        f'env {{ domain = "lanescope_ze"; version = 1; hostname = {_quoted(os.uname().nodename)}; pid = {child.pid};'
        f" program = {_quoted(child.program)}; boot = {_quoted(boot)}; {ENTRY} = {_quoted(child.missing)}; }};",
        'clock { name = monotonic; description = "CLOCK_MONOTONIC"; freq = 1000000000;'
        f" offset_s = {seconds}; offset = {rest}; absolute = true; }};",
        "typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := time_t;",
        "typealias integer { size = 32; align = 8; signed = false; map = clock.monotonic.value; } := short_time_t;",
        "stream { id = 0; packet.context := struct { time_t timestamp_begin; time_t timestamp_end;"
        " uint64_t content_size; uint64_t packet_size; uint64_t events_discarded; uint64_t packet_seq_num;"
        " uint32_t thread; uint32_t complete; };"
        " event.header := struct { uint16_t id; short_time_t timestamp; }; };",
    ]
    return "\n".join(lines) + "\n"
