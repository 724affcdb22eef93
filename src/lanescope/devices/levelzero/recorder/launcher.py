"""Running a program with the recorder in it: what it needs in its environment, and what is left to do behind it.

Standard library only at import.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from lanescope.devices.levelzero.formats.layout import RECORDER_MARK
from lanescope.devices.levelzero.recorder import ranks
from lanescope.devices.levelzero.recorder.children import EMPTIED, Children
from lanescope.devices.levelzero.recorder.group_signals import GroupSentinel
from lanescope.devices.levelzero.recorder.signal_wait import SignalWait
from lanescope.errors import MissingDependencyError, UsageError, os_reason

if TYPE_CHECKING:
    from lanescope.wire import ctf

#: The name by which loaders look for a tracing layer.
LAYER = "libze_tracing_layer.so.1"
PRELOADED = "liblanescope_ze_preload.so"
LOADER = "libze_loader.so.1"
#: How a packet begins. Source: CTF 1.8.3, section 5.
MAGIC = 0xC1FC1FC1
#: What separates the folders of LD_LIBRARY_PATH, the libraries of LD_PRELOAD, or begins what both replace.
_APART = (":", ";", "$", " ", "\t", "\n")
#: Signals that are for the program when somebody sends them to us.
_PASSED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_POLL_S = 0.05
#: ``si_code`` of a signal that the kernel sends, as a terminal's keys do: the program has got it too.
_FROM_KERNEL = 0x80


def library(name: str = LAYER) -> Path:
    """Return the recorder's library: the one in a layer's place, or the one to preload.

    Raises:
        MissingDependencyError: this installation has none.
    """
    from importlib.resources import files

    found = files("lanescope._native").joinpath("levelzero").joinpath(name)
    if not isinstance(found, Path) or not found.is_file():
        raise MissingDependencyError("recorder not found", hint="install a lanescope wheel for Linux")
    return found


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a recording.

    Attributes:
        output: the folder that is written.
        filters: names of functions whose calls are written, with ``*`` and ``?``; those behind a ``!`` are not.
        paused: whether nothing is recorded before the program says so.
        host_calls: whether entries and exits of calls are written.
        timing: whether operations of the device are timed.
        host_read: whether the host reads all timestamps, so that no query is added to the program's command lists.
        abort: whether a failure that concerns the program's own signals ends it; else the recorder degrades.
        event_resets: what is done if event resets of the driver do not work: ``auto``, ``watch`` or ``off``.
        ranks: ranks of a parallel program that are recorded, ``0,4-7``; empty: all, and processes without one.
        sample_ns: how often the sensors of devices are read, ns; 0: not at all.
        preload: whether the library is in the program before its loader looks for it, so that it finds no other one.
    """

    output: Path
    filters: Sequence[str] = ()
    paused: bool = False
    host_calls: bool = True
    preload: bool = False
    timing: bool = True
    host_read: bool = False
    abort: bool = False
    event_resets: str = "auto"
    ranks: str = ""
    sample_ns: int = 0


@contextlib.contextmanager
def environment(settings: Settings, given: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the environment of a recorded program, valid inside the ``with`` block.

    Args:
        settings: how.
        given: the environment without the recorder.

    Raises:
        MissingDependencyError: the recorder is not available.
    """
    names = (LAYER, PRELOADED) if settings.preload else (LAYER,)
    libraries = [library(name) for name in names]
    made = dict(given)
    with contextlib.ExitStack() as stack:
        if any(mark in str(libraries[0]) for mark in _APART):
            # Neither variable has a way to write such a name: it gets another one.
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lanescope-")))
            for own in libraries:
                (folder / own.name).symlink_to(own)
            libraries = [folder / own.name for own in libraries]
        layer = libraries[0]
        made.pop("LANESCOPE_ZE_CHAIN", None)
        # The program may use the layer whose place we take: it is loaded besides, and calls ours.
        if given.get("ZE_ENABLE_TRACING_LAYER") == "1" or _always_loads_layer(given):
            other = _find(LAYER, given)
            if other is not None:
                made["LANESCOPE_ZE_CHAIN"] = str(other)
        made["ZE_ENABLE_TRACING_LAYER"] = "1"
        made["LD_LIBRARY_PATH"] = _before(str(layer.parent), given.get("LD_LIBRARY_PATH", ""))
        if (libraries_of_loader := Path(given.get("ZEL_LIBRARY_PATH") or os.devnull)).is_dir():
            made["ZEL_LIBRARY_PATH"] = str(_mirror(libraries_of_loader, layer, stack))
        if settings.preload:
            made["LD_PRELOAD"] = _before(str(libraries[1]), given.get("LD_PRELOAD", ""))
        made["LANESCOPE_ZE_LIBRARY"] = str(layer)
        made["LANESCOPE_ZE_OUTPUT"] = str(settings.output.resolve())
        made["LANESCOPE_ZE_FILTER"] = ",".join(settings.filters)
        made["LANESCOPE_ZE_PAUSED"] = "1" if settings.paused else "0"
        made["LANESCOPE_ZE_HOST_CALLS"] = "1" if settings.host_calls else "0"
        made["LANESCOPE_ZE_RANKS"] = settings.ranks
        made["LANESCOPE_ZE_SAMPLE_NS"] = str(settings.sample_ns)
        # These may be in the environment already.
        if not settings.timing:
            made["LANESCOPE_ZE_TIMING"] = "0"
        if settings.host_read:
            made["LANESCOPE_ZE_HOST_READ"] = "1"
        if settings.event_resets != "auto":
            made["LANESCOPE_ZE_EVENT_RESETS"] = settings.event_resets
        if settings.abort:
            made["LANESCOPE_ZE_FAILURE"] = "abort"
        yield made


def _before(own: str, others: str) -> str:
    return f"{own}:{others}" if others else own


def _mirror(folder: Path, layer: Path, stack: contextlib.ExitStack) -> Path:
    """Return a folder with all that is in another one, but our layer: loaders open drivers and layers in it."""
    made = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lanescope-")))
    for path in folder.resolve().iterdir():
        if path.name != LAYER:
            (made / path.name).symlink_to(path)
    (made / LAYER).symlink_to(layer)
    return made


def _always_loads_layer(given: Mapping[str, str]) -> bool:
    """Return whether the program's loader has a tracing layer whether enabled or not: it can be enabled by a call."""
    loader = _find(LOADER, given)
    try:
        return loader is not None and b"\0zelEnableTracingLayer\0" in loader.read_bytes()
    except OSError:
        return False


def _find(name: str, given: Mapping[str, str]) -> Path | None:
    """Return the loader or the tracing layer that the program would have had."""
    folders = [given.get("ZEL_LIBRARY_PATH", ""), *given.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":")]
    folders += ["/usr/local/lib", f"/usr/lib/{os.uname().machine}-linux-gnu", "/usr/lib64", "/usr/lib"]
    own = library()
    for folder in filter(None, folders):
        found = Path(folder) / name
        if found.is_file() and not found.samefile(own):
            return found.resolve()
    return None


def watch(made: Mapping[str, str]) -> Children:
    """Return what watches the children of a program that is about to be started in this environment."""
    return Children(made, str(Path(made["LANESCOPE_ZE_LIBRARY"]).parent))


def run(command: Sequence[str], made: Mapping[str, str], children: Children | None = None) -> int:
    """Run a program to its end, with our streams; signals that are sent to us reach it, those of the group do anyway.

    The program ignores the signals that this process ignores. Only SIGCHLD is reset for both: a process that ignores it
    cannot wait for a child. Signals are blocked here from before the program starts until it has ended, and
    taken one by one, so none is lost and none ends us. The system gives a signal to any thread that does not block it:
    so this process should have no other thread, and ``numpy``, which starts some, is not imported before.

    Args:
        command: the program and its arguments.
        made: its environment.
        children: watches the processes that it starts.

    Returns:
        Its exit status; negative: the signal that ended it.

    Raises:
        UsageError: it cannot be started.
    """
    watched = {*_PASSED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    at_end = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        signals = SignalWait(watched)
        with GroupSentinel(_PASSED) as group:
            try:
                # Python ignores these two by itself; programs expect them to be as new.
                pid = os.posix_spawnp(
                    command[0], list(command), made, setsigmask=before, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ]
                )
            except OSError as error:
                raise UsageError(
                    f"cannot execute {command[0]!r}: {os_reason(error)}", hint="check the command name"
                ) from None
            if children is not None:
                children.begin(pid)
            while True:
                found = signals.take(_POLL_S)
                if found is not None and found.number != signal.SIGCHLD:
                    is_the_groups = group.has_got(found.number)
                    if not is_the_groups and found.code != _FROM_KERNEL:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, found.number)
                ended, status = os.waitpid(pid, os.WNOHANG)
                if children is not None:
                    children.look(is_last=bool(ended))
                if ended:
                    return os.waitstatus_to_exitcode(status)
    finally:
        # What still waits here was for the program.
        while signal.sigtimedwait(watched, 0) is not None:
            pass
        signal.signal(signal.SIGCHLD, at_end)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def replace_process(command: Sequence[str]) -> NoReturn:
    """Become the program, as if the recorder had never been named.

    Raises:
        UsageError: it cannot be started.
    """
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        raise UsageError(f"cannot execute {command[0]!r}: {os_reason(error)}", hint="check the command name") from None


def start_beside(*arguments: str) -> int | None:
    """Start a command of lanescope in a process of its own, which writes to our standard error; return its number.

    It has our environment, not the recorded program's, and does not read our input.
    """
    null = os.open(os.devnull, os.O_RDWR)
    try:
        # Standard output may be that of a pipeline: it is the program's.
        actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, 1 if os.isatty(1) else null, 1)]
        words = [sys.executable, "-m", "lanescope", *arguments]
        return os.posix_spawn(sys.executable, words, os.environ, file_actions=actions)
    except OSError:
        return None
    finally:
        os.close(null)


def end_beside(pid: int, patience: float = 5.0) -> None:
    """Wait for a process that ends by itself; end it if it does not."""
    end = time.monotonic() + patience
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return
        time.sleep(0.01)


def exit_like(status: int) -> int:
    """End this process by the signal that ended the program; return the status of one that ended by itself."""
    if status < 0:
        import resource

        number = -status
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program's core is the one of interest
        sys.stdout.flush()
        sys.stderr.flush()
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
        return 128 + number  # a signal that does not end this process
    return status


# --- folders ------------------------------------------------------------------------------------------------------


def is_recording(folder: Path) -> bool:
    """Return whether a folder contains only files of the recorder."""
    inside = [path for path in folder.iterdir() if path.name != RECORDER_MARK and not path.name.startswith(EMPTIED)]
    return all(path.is_dir() and ((path / "metadata").is_file() or (path / ".metadata").is_file()) for path in inside)


def prepare_output_dir(folder: Path, *, force: bool) -> Path | None:
    """See to it that there is an empty folder.

    Returns:
        Where the recording is now that was there; ``settle_old`` decides what becomes of it. None: there was none.

    Raises:
        UsageError: there is something else in its place.
    """
    old = None
    if folder.is_dir():
        if not any(folder.iterdir()):
            return None
        if not force:
            raise UsageError(f"{folder} already exists", hint="use --force to overwrite or -o DIR")
        if not is_recording(folder):
            raise UsageError(f"{folder} exists and is not a recording", hint="use -o DIR with another directory")
        folder = folder.resolve()
        old = folder.with_name(f".lanescope-{os.urandom(8).hex()}")
        folder.rename(old)
    elif folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} is not a directory", hint="use -o DIR with another directory")
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise UsageError(
            f"cannot create {str(folder)!r}: {os_reason(error)}", hint="use -o DIR with another directory"
        ) from None
    return old


@contextlib.contextmanager
def marked(folder: Path) -> Iterator[None]:
    """Leave a mark in the folder inside the ``with`` block: who follows the recording waits for its end."""
    mark = folder / RECORDER_MARK
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        mark.write_text(f"{os.getpid()} {boot}\n")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            mark.unlink()


def check_rank_folder(folder: Path) -> None:
    """Refuse a folder for the recordings of ranks in which there is something else.

    Raises:
        UsageError: with what is in it.
    """
    if folder.is_dir():
        other = next((path.name for path in folder.iterdir() if not path.name.startswith((ranks.PREFIX, "."))), None)
        if other is not None:
            raise UsageError(f"{folder} contains {other!r}, not recordings of ranks", hint="use -o DIR")


def settle_old(folder: Path, old: Path | None) -> bool:
    """Remove an earlier recording that was put aside, or put it back where no new one has come into its place.

    Returns:
        True: it was put back.
    """
    if old is None:
        return False
    if folder.is_dir() and any(folder.iterdir()):
        shutil.rmtree(old, ignore_errors=True)
        return False
    old.replace(folder.resolve())  # onto an empty folder, or none
    return True


def remove_stale_files(folder: Path) -> int:
    """Append what processes that have ended left in packets; return how many processes there are."""
    from lanescope.errors import InputError
    from lanescope.wire import ctf

    count = 0
    for path in sorted(folder.glob("*/metadata")):
        count += 1
        with contextlib.suppress(OSError, InputError):
            about = ctf.describe(path.read_bytes())
            if not _is_running(about):
                for live in path.parent.glob("stream_*.live"):
                    _settle(live, ctf.Layout.of(about))
    return count


def _settle(live: Path, layout: ctf.Layout) -> None:
    """Append the packet that a thread was filling to its stream; no thread may still be writing to it."""

    def part(head: bytes | bytearray, name: str, size: int = 8) -> int:
        return int.from_bytes(head[layout.parts[name] : layout.parts[name] + size], "little")

    packet = bytearray(live.read_bytes())
    used = (part(packet, "content_size") + 63) // 64 * 8
    if part(packet, "magic", 4) != MAGIC or not layout.packet_header <= used <= len(packet):
        live.unlink()  # it was never begun
        return
    stream = live.with_suffix("")
    with stream.open("a+b") as file:
        whole, at, last = file.seek(0, os.SEEK_END), 0, -1
        while at + layout.packet_header <= whole:
            file.seek(at)
            head = file.read(layout.packet_header)
            size = part(head, "packet_size") // 8
            if size < layout.packet_header or at + size > whole:
                break
            at, last = at + size, part(head, "packet_seq_num")
        if last != part(packet, "packet_seq_num"):
            # What follows the last whole packet is the begin of this one.
            file.truncate(at)
            place = layout.parts["packet_size"]
            packet[place : place + 8] = (8 * used).to_bytes(8, "little")
            file.write(packet[:used])
    live.unlink()


def _is_running(about: ctf.Metadata) -> bool:
    pid = about.environment.get("pid")
    if about.environment.get("hostname") != os.uname().nodename or not isinstance(pid, int) or pid <= 0:
        return True
    from lanescope.devices.levelzero.formats.ctf_growing import process_exists

    return process_exists(pid)


# --- words --------------------------------------------------------------------------------------------------------

_ASK = """\
import ctypes, sys
try:
    loader = ctypes.CDLL(sys.argv[1])
except OSError as error:
    print("loader", error)
else:
    print("init", loader.zeInit(0) & 0xFFFFFFFF)
"""


def diagnose_empty(given: Mapping[str, str]) -> tuple[str, str]:
    """Return the reason why a program left no recording, and a hint.

    Args:
        given: the environment of the program, without the recorder.
    """
    try:
        asked = subprocess.run(
            [sys.executable, "-c", _ASK, LOADER],
            env=dict(given),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        what, _, answer = asked.stdout.strip().partition(" ")
    except (OSError, subprocess.TimeoutExpired):
        what, answer = "", ""
    if what == "loader":
        return f"Level Zero loader not found: {answer}", "install libze1 or add its directory to LD_LIBRARY_PATH"
    if what == "init" and answer != "0":
        from lanescope.devices.levelzero.formats.layout import UNINITIALIZED

        number = int(answer)
        meaning = "found no driver" if number == UNINITIALIZED else "could not start the driver"
        return (
            f"Level Zero loader {meaning} (zeInit: 0x{number:x})",
            "install the device driver and check the permissions of /dev/dri/render*",
        )
    return (
        "program called no Level Zero function through the loader, or without the recorder's environment",
        "pass the environment on, or use --preload if the program has its own loader",
    )
