"""Configurations from the instruction stream that the host sends to the array: ``insts.bin``, ``insts.txt``, XRT's ELF.

A stream is a header of four little-endian words and operations; those that write registers may set up a trace. Source:
Xilinx/mlir-aie and Xilinx/aie-rt. Streams that compilers wrote confirm version 0.1; no public one sets up a trace.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lanescope.declaration import replace
from lanescope.devices.aie.config.build_file import from_packets
from lanescope.devices.aie.config.model import Config, agreed
from lanescope.devices.aie.config.register_writes import from_writes, start_writes, stop_writes
from lanescope.devices.aie.config.replay import Replay
from lanescope.devices.aie.config.validators import ConfigError
from lanescope.devices.aie.formats.control_packets import are_packets
from lanescope.devices.aie.formats.registers import COLUMN_SHIFT, ROW_SHIFT

ELF_MAGIC = b"\x7fELF"
_HEADER_WORDS = 4
_DEVICES = {3: "aie2", 4: "aie2p"}
_CONTROL_TEXT, _CONTROL_DATA = ".ctrltext", ".ctrldata"
#: Rows of the arrays of both devices, and those of memory tiles.
_ROWS, _MEMORY_ROWS = 6, 1
_HINT = "pass the insts.bin, insts.txt or ELF file of the build that was run"
_HEX_LINES = re.compile(rb"\s*[0-9A-Fa-f]{8}\s")

_WRITE, _BLOCK_WRITE, _MASK_WRITE = 0x00, 0x01, 0x03
#: Operations of a stated or known size that change no register of a trace.
_NAMES = {
    _WRITE: "register writes",
    _BLOCK_WRITE: "block writes",
    _MASK_WRITE: "masked register writes",
    0x04: "polls",
    0x05: "no-operations",
    0x06: "preemption points",
    0x07: "polls",
    0x80: "waits for a task",
    0x81: "buffer addresses",
    0x82: "register reads",
    0x83: "timer records",
    0x84: "merged waits",
}
_POLLS, _ONE_WORD, _CUSTOM = (0x04, 0x07), (0x05, 0x06), range(0x80, 0x85)


@dataclass(frozen=True, slots=True)
class _Form:
    """Where the operations of one version have their words: index in the operation.

    Attributes:
        address: of the register.
        value: that is written; the mask of a masked write follows it.
        write: words of a write.
        block_size: the size in bytes of a block write; its data follow. Its address stands before that.
    """

    address: int
    value: int
    write: int
    block_size: int


#: By minor and major version.
_FORMS = {(0, 1): _Form(address=2, value=4, write=6, block_size=3), (1, 0): _Form(1, 2, 3, 2)}


def is_stream(head: bytes) -> bool:
    """Return whether a file that begins like this is an instruction stream, or an ELF file that may hold one."""
    return head.startswith(ELF_MAGIC) or b"\0" in head[:16] or _HEX_LINES.match(head) is not None


def read(content: bytes) -> Config:
    """Return what the instruction streams of a file set up.

    Args:
        content: of ``insts.bin``, of ``insts.txt`` (a word of 8 hexadecimal digits a line), or of an ELF file with
            sections ``.ctrltext``. Control packets are read as well: of a file of them, and of sections ``.ctrldata``.

    Raises:
        ConfigError: it is none of those, is cut, has an operation of unknown layout, or sets up no trace.
    """
    if not content.startswith(ELF_MAGIC):
        words = _binary(content) if b"\0" in content[:16] else _text(content)
        made = from_packets(words) if are_packets(words) else _replayed(words)
        if not made.places:
            raise _no_trace(sum((Counter(made.other_operations) + Counter(made.unread)).values()))
        return made
    parts: dict[str, Config] = {}
    packets: dict[str, Sequence[int]] = {}
    operations = 0
    for name, section in _control_sections(content):
        words = _binary(section)
        if name.startswith(_CONTROL_TEXT):
            parts[name] = _replayed(words)
            operations += words[2]
        elif are_packets(words):
            packets[name] = words
    if not parts:
        raise ConfigError(f"ELF file without section {_CONTROL_TEXT}", "pass the ELF file that XRT loads, not a core's")
    if len({part.device for part in parts.values()}) > 1:
        raise ConfigError(f"sections {_CONTROL_TEXT} of different devices", _HINT)
    device = next(iter(parts.values())).device
    parts |= {name: from_packets(words, device) for name, words in packets.items()}
    if not any(part.places for part in parts.values()):
        raise _no_trace(operations)
    made = agreed(parts)
    other = sum((Counter(part.other_operations) for part in parts.values()), Counter())
    return replace(made, other_operations=dict(other))


def written(known: Config) -> bytes:
    """Return a configuration as an instruction stream of version 0.1: what starts the trace, then what stops it.

    The operations of a design belong between both.

    Args:
        known: the configuration.

    Raises:
        ConfigError: registers cannot hold it, or its trigger cannot start all units.
    """
    form = _FORMS[0, 1]
    words: list[int] = []
    count = 0
    for one in (*start_writes(known), *stop_writes(known)):
        operation = [0] * form.write
        operation[form.address] = one.col << COLUMN_SHIFT | one.row << ROW_SHIFT | one.register.offset
        operation[form.value] = one.value
        operation[-1] = 4 * form.write
        words += operation
        count += 1
    generation = next(number for number, device in _DEVICES.items() if device == known.device)
    columns = 1 + max((unit.col for unit in known.units.values()), default=0)
    head = (
        _ROWS << 24 | generation << 16 | 1 << 8,
        _MEMORY_ROWS << 8 | columns,
        count,
        4 * (_HEADER_WORDS + len(words)),
    )
    return struct.pack(f"<{_HEADER_WORDS + len(words)}I", *head, *words)


def lines(content: bytes) -> str:
    """Return an instruction stream as ``insts.txt`` has it: a word of 8 hexadecimal digits a line."""
    return "".join(f"{word:08X}\n" for word in _binary(content))


def _binary(content: bytes) -> Sequence[int]:
    return struct.unpack(f"<{len(content) // 4}I", content[: len(content) & ~3])


def _text(content: bytes) -> Sequence[int]:
    words = []
    for number, line in enumerate(content.split(b"\n"), 1):
        word = line.strip()
        if not word:
            continue
        if re.fullmatch(rb"[0-9A-Fa-f]{8}", word) is None:
            raise ConfigError(f"line {number} of the instruction stream is not one word of 8 hexadecimal digits", _HINT)
        words.append(int(word, 16))
    return words


def _no_trace(operations: int) -> ConfigError:
    return ConfigError(
        f"the instruction stream sets up no trace: none of its {operations} operations writes to a trace unit",
        "pass the file of the build that was run, made with a trace",
    )


def _replayed(words: Sequence[int]) -> Config:
    """Return what a stream sets up: nothing if it concerns no trace."""
    if len(words) < _HEADER_WORDS:
        raise ConfigError("instruction stream without a header", _HINT)
    major, minor, generation = words[0] & 0xFF, words[0] >> 8 & 0xFF, words[0] >> 16 & 0xFF
    form, device = _FORMS.get((major, minor)), _DEVICES.get(generation)
    if form is None or device is None:
        raise ConfigError(
            f"no instruction stream that is supported: version {major}.{minor}, generation {generation}",
            "use version 0.1 or 1.0 for generation 3 (AIE2) or 4 (AIE2P)",
        )
    count, size = words[2], words[3]
    if size % 4 or not 4 * _HEADER_WORDS <= size <= 4 * len(words):
        raise ConfigError(f"instruction stream of {4 * len(words)} bytes has a header for {size}", _HINT)
    stream = Replay()
    done = 0
    for at, length in _operations(words[: size // 4], form):
        _note(stream, words[at : at + length], form)
        done += 1
    if done != count:
        raise ConfigError(f"instruction stream of {done} operations has a header for {count}", _HINT)
    made = from_writes(device, stream.writes)
    return replace(made, unread=dict(stream.unread), other_operations=dict(stream.other))


def _operations(words: Sequence[int], form: _Form) -> Iterator[tuple[int, int]]:
    """Yield index and number of words of each operation.

    Raises:
        ConfigError: an operation of unknown layout, or one that goes on behind the end.
    """
    at, index = _HEADER_WORDS, 0
    while at < len(words):
        code = words[at] & 0xFF
        where = f"operation {index + 1} of the instruction stream"
        if code not in _NAMES:
            raise ConfigError(f"{where} is of unknown layout: code {code:#04x} after {index} operations", _HINT)
        length = _length(words, at, form)
        if length is None or at + length > len(words):
            raise ConfigError(f"{where} ({_NAMES[code]}) has an impossible size", _HINT)
        yield at, length
        at, index = at + length, index + 1


def _length(words: Sequence[int], at: int, form: _Form) -> int | None:
    """Return the words of an operation; None if it states a size that cannot be."""
    code = words[at] & 0xFF
    if code in _ONE_WORD:
        return 1
    if code == _WRITE:
        return form.write
    if code == _MASK_WRITE or code in _POLLS:
        return form.write + 1
    place, least = (at + 1, 2) if code in _CUSTOM else (at + form.block_size, form.block_size + 1)
    stated = words[place] if place < len(words) else 0
    return stated // 4 if stated % 4 == 0 and stated >= 4 * least else None


def _note(stream: Replay, operation: Sequence[int], form: _Form) -> None:
    """Note what an operation writes, and what it is if that is nothing of a trace."""
    code, words, mask = operation[0] & 0xFF, operation[:0], 0xFFFFFFFF
    address = operation[form.address] if len(operation) > form.address else 0
    if code in (_WRITE, _MASK_WRITE):
        words = operation[form.value : form.value + 1]
        mask = operation[form.value + 1] if code == _MASK_WRITE else mask
    elif code == _BLOCK_WRITE:
        address, words = operation[form.block_size - 1], operation[form.block_size + 1 :]
    stream.note(_NAMES[code], address, words, mask)


def _control_sections(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the sections of a little-endian ELF file of 32 bits that hold streams or control packets, by name.

    Raises:
        ConfigError: its tables lie outside of the file.
    """
    if content[4:6] != b"\x01\x01":
        raise ConfigError("ELF file is not little-endian with 32 bits", "pass the ELF file that XRT loads")
    try:
        (table,) = struct.unpack_from("<I", content, 0x20)
        size, count, names_index = struct.unpack_from("<3H", content, 0x2E)
        headers = [struct.unpack_from("<6I", content, table + size * index) for index in range(count)]
        names = headers[names_index][4] if count else 0
    except (struct.error, IndexError):
        raise ConfigError("ELF file is cut: its section table is after its end", _HINT) from None
    total = 0
    for name_at, _, _, _, offset, length in headers:
        begin = names + name_at
        name = content[begin : begin + 64].partition(b"\0")[0].decode(errors="replace")
        if name.startswith((_CONTROL_TEXT, _CONTROL_DATA)):
            total += length
            if offset + length > len(content) or total > len(content):
                raise ConfigError(f"ELF file is cut: {name} ends after it", _HINT)
            yield f"{name} at {offset:#x}", content[offset : offset + length]
