"""Simulated dumps and what really happened: a few tiles in any mode, and what goes wrong on the way out.

The truth is computed from the events themselves, not from what is encoded of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.layout import HEADER, PACKET_WORDS, PAYLOAD_WORDS
from lanescope.devices.aie.simulate import ref_mode0, ref_mode1, ref_mode2
from lanescope.errors import UsageError
from lanescope.families.family import Simulation

U32 = npt.NDArray[np.uint32]

_START = 0b111100  # highest bits of a Start other than a restart
#: (packet type, column, row) of the traced units, the first ones first; further ones lie in the next columns.
_UNITS = ((0, 0, 2), (3, 0, 1), (1, 0, 2), (0, 0, 3), (2, 0, 0), (0, 0, 4), (1, 0, 3), (0, 0, 5))
_CORE = 0
_PACKET_BYTES = 4 * PACKET_WORDS
#: Bundles that programs execute from one decision to the next, about.
_BUNDLES_A_FRAME = 10


class _Recording(Protocol):
    """One unit from Start to Stop; ``payload`` is uint32 [words], whole packets."""

    @property
    def payload(self) -> U32: ...

    def truth(self, packets: int) -> dict[str, Any]: ...


_MODELS: tuple[Callable[[np.random.Generator, int, int], _Recording], ...] = (
    ref_mode0.record,
    ref_mode1.record,
    ref_mode2.record,
)


def simulate(options: Mapping[str, Any], seed: int) -> Simulation:
    """Make a dump.

    Args:
        options: the family's ``sim_options``, all of them.
        seed: the same options and seed give the same bytes.

    Returns:
        The file, and a truth of: ``recordings`` (who, the columns of its ``slices``, ``events`` or ``flow``, and its
        ``gaps``, in cycles), and
        ``bad_headers``, the file offsets of packets with a damaged header. The truth of a recording that loses packets
        that way is what could be found with them. Of a program: its ``path``, the addresses of all bundles in order.
    """
    if options.get("program"):
        return _of_program(options["program"], options["records"], seed)
    rng = np.random.Generator(np.random.PCG64(seed))
    mode, burst = options["mode"], options["burst"]
    if mode >= len(_MODELS):
        raise UsageError(f"unknown trace mode {mode}", hint="use mode 0, 1 or 2")
    if burst < 1 or burst % _PACKET_BYTES:
        raise UsageError(
            f"invalid burst size {burst}: must be a multiple of the packet size",
            hint=f"use a multiple of {_PACKET_BYTES}",
        )
    headers = [_header(unit) for unit in range(options["tiles"])]
    words: list[U32] = []
    recordings: list[dict[str, Any]] = []
    for run in range(options["runs"]):
        made = [_record(rng, header, mode, options["records"], options["overruns"]) for header in headers]
        if options["shared_stop"]:
            made = _stop_simultaneously(made)
        order = _interleave(rng, [_packets(recording) for recording in made])
        if run == options["runs"] - 1 and options["lost_tail"]:
            order = order[: max(len(order) - options["lost_tail"], 0)]
        # The shim's DMA writes whole bursts; what is left of the last one stays in it.
        order = order[: len(order) - len(order) % (burst // _PACKET_BYTES)]
        _emit(headers, made, order, words, recordings)
    if options["stale"]:
        made = [_record(rng, header, mode, options["records"], 0) for header in headers]
        order = _interleave(rng, [_packets(recording) for recording in made])[: options["stale"]]
        _emit(headers, made, order, words, recordings)
    dump = np.concatenate([*words, np.empty(0, np.uint32)])
    bad = _corrupt_bit(rng, dump, options["bad_headers"])
    dump = np.concatenate([dump, np.zeros(options["zeros"], np.uint32)])
    unit_bytes = 9 if options["text"] else 4
    truth = {
        "family": "aie",
        "seed": seed,
        "recordings": recordings,
        "bad_headers": (bad * unit_bytes).tolist(),
    }
    if options["text"]:
        return Simulation({"trace.txt": encode.text(dump)}, truth)
    return Simulation({"trace.bin": dump.astype("<u4").tobytes()}, truth)


def _of_program(listing: str, frames: int, seed: int) -> Simulation:
    """Make a dump of a core that runs a program, and the addresses of what it executed."""
    from lanescope.devices.aie.path.program import program
    from lanescope.devices.aie.simulate import program_runs as core
    from lanescope.devices.aie.simulate import sample_program

    is_example = listing == "example"
    text = sample_program.listing() if is_example else ""
    known = program.parse(text, "trace.lst") if is_example else program.read(Path(listing))
    outcomes = sample_program.outcomes() if is_example else {}
    ran = core.run(known, seed=seed, bundles=_BUNDLES_A_FRAME * frames, outcomes=outcomes)
    files = {"trace.bin": ran.data} | ({"trace.lst": text.encode()} if is_example else {})
    return Simulation(files, {"family": "aie", "seed": seed, "path": ran.path})


def _header(unit: int) -> int:
    packet_type, column, row = _UNITS[unit % len(_UNITS)]
    return encode.header(packet_type, column + 1 + unit // len(_UNITS), row, 1 + unit % 31)


def _record(rng: np.random.Generator, header: int, mode: int, frames: int, overruns: int) -> _Recording:
    """Make a recording; only cores know other modes than event-time."""
    is_core = HEADER["type"].of(header) == _CORE
    return _MODELS[mode if is_core else 0](rng, frames, overruns)


def _stop_simultaneously(made: Sequence[_Recording]) -> list[_Recording]:
    """Stop all units that count every cycle in the same one, as one broadcast does: when the first of them stops."""
    timed = [recording for recording in made if isinstance(recording, ref_mode0.EventTimeRecording)]
    stop = min((recording.stop for recording in timed), default=0)
    return [
        recording.stopped_at(stop) if isinstance(recording, ref_mode0.EventTimeRecording) else recording
        for recording in made
    ]


def _packets(recording: _Recording) -> int:
    return len(recording.payload) // PAYLOAD_WORDS


# --- the way out ----------------------------------------------------------------------------------------------


def _interleave(rng: np.random.Generator, packets: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return whose packet comes next, int64 [packets]: all orders are possible, those of one unit stay in order."""
    order = np.repeat(np.arange(len(packets)), packets)
    rng.shuffle(order)
    return order


def _emit(
    headers: Sequence[int],
    made: Sequence[_Recording],
    order: npt.NDArray[np.int64],
    words: list[U32],
    recordings: list[dict[str, Any]],
) -> None:
    """Append the packets that reach the file, and the truth about them."""
    out = np.empty((len(order), PACKET_WORDS), np.uint32)
    for unit, (header, recording) in enumerate(zip(headers, made, strict=True)):
        mine = order == unit
        count = int(np.count_nonzero(mine))
        if not count:
            continue
        out[mine] = encode.packets(header, recording.payload)[:count]
        fields = HEADER.decode(header)
        ordinal = 1 + sum(other["header"] == header for other in recordings)
        who = {name: fields[name] for name in ("type", "column", "row", "id")}
        mode = int(recording.payload[0]) >> 24 & 3
        recordings.append(
            {"header": header, **who, "ordinal": ordinal, "mode": mode, "packets": count, **recording.truth(count)}
        )
    words.append(out.ravel())


def _corrupt_bit(rng: np.random.Generator, dump: U32, share: float) -> npt.NDArray[np.int64]:
    """Flip a bit in the headers of some packets, not of those that begin a recording; return where, in words."""
    candidates = np.arange(0, len(dump), PACKET_WORDS)
    candidates = candidates[dump[candidates + 1] >> 26 != _START] if len(candidates) else candidates
    chosen = candidates[rng.random(len(candidates)) < share]
    dump[chosen] ^= (1 << rng.integers(0, 32, len(chosen))).astype(np.uint32)
    return chosen
