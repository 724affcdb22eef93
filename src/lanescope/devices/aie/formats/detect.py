"""Is it an AIE trace dump? Judged by its packets, with the standard library only."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from lanescope.source.detection import Detection

if TYPE_CHECKING:
    from lanescope.source.detection import FileHead

BINARY, TEXT, PAYLOAD = "aie-trace", "aie-trace-text", "aie-trace-payload"

_RESERVED = 0x70008FE0
_PACKET_WORDS = 8
#: The highest byte of a Start that is not a restart, by mode.
_FIRST_STARTS = (0xF0, 0xF1, 0xF2)
#: Bytes in which a first word lies, as text with blanks and empty lines.
_FIRST_LINES = 256
#: Number of packets that pass all checks and make the detection certain.
_CERTAIN_PACKETS = 8
_WORD_DIGITS = 8
_HEX_DIGITS = b"0123456789ABCDEFabcdef"


def is_text(head: bytes) -> bool:
    """Return whether most lines of ``head`` are one word of 8 hexadecimal digits."""
    lines = head.split(b"\n")
    if len(lines) > 1:
        lines.pop()  # it may be cut
    filled = [line for line in map(bytes.strip, lines) if line]
    words = sum(map(_is_word, filled))
    return 0 < len(filled) < 2 * words


def _is_word(line: bytes) -> bool:
    return len(line) == _WORD_DIGITS and not line.translate(None, _HEX_DIGITS)


def _stripped(line: bytes) -> bytes:
    return line.strip(b" \t\r")


def words_of(head: bytes) -> array[int]:
    """Return the whole words of a little-endian dump or of hex text."""
    return _words(head, TEXT if is_text(head) else BINARY)


def _words(head: bytes, form: str) -> array[int]:
    words = array("I")
    if form == TEXT:
        words.extend(int(line, 16) for line in map(_stripped, head.split(b"\n")) if _is_word(line))
        return words
    words.frombytes(head[: len(head) // 4 * 4])
    if words.itemsize != 4:  # pragma: no cover (not on a supported platform)
        raise NotImplementedError("unsupported platform: C unsigned int is not 4 bytes")
    return words


def detect(head: FileHead) -> Detection:
    """Score a head by how many of its packets are sound.

    A header is weak evidence (1 word in 4096 passes its checks by chance), so each source also has to begin with a
    Start frame, and every packet has to follow the last one directly, or zeros.
    """
    data = head.data
    form = TEXT if is_text(data) else BINARY
    words = _words(data, form)
    count = len(words)
    most_bad = count // (2 * _PACKET_WORDS)
    sound = started = bad = 0
    sources: set[int] = set()
    at = 0
    while at < count:
        word = words[at]
        if word == 0:
            at += 1
            continue
        if at + _PACKET_WORDS > count:
            break
        is_header = not word & _RESERVED and word.bit_count() % 2 == 1
        is_start = words[at + 1] >> 27 == 0b11110
        if is_header and (is_start or word in sources):
            started += word not in sources
            sources.add(word)
            sound += 1
        else:
            bad += 1
            if bad > most_bad:
                break  # what is left cannot be more
        at += _PACKET_WORDS
    if not sound or bad > sound:
        return _without_headers(words)
    reason = f"{sound} of {sound + bad} packets valid, {started} sources with a Start"
    if not bad and sound >= _CERTAIN_PACKETS:
        return Detection(95, form, reason)
    share = sound / (sound + bad)
    score = 50 + round(35 * share * min(sound, _CERTAIN_PACKETS) / _CERTAIN_PACKETS)
    if sound == 1 and not _looks_like_one_packet(words):
        return Detection(30, form, reason)
    return Detection(score, form, reason)


def is_without_headers(head: FileHead) -> bool:
    """Return whether ``detect`` finds the payload of one unit; cheap unless the first word can be a Start."""
    return _begins_recording(words_of(head.data[:_FIRST_LINES])) and detect(head).format == PAYLOAD


def _begins_recording(words: array[int]) -> bool:
    return bool(words) and words[0] >> 24 in _FIRST_STARTS and not words[0] >> 16 & 0xFF


def _without_headers(words: array[int]) -> Detection:
    """Score words as the payload of one unit, whose packets lost their headers."""
    if not _begins_recording(words):
        return Detection(0, "", "no trace packets found")
    from lanescope.devices.aie.formats.payload import is_one_stream

    if is_one_stream(words):
        return Detection(80, PAYLOAD, "a Start and frames of one trace unit, without packet headers")
    what = "a Start without a packet header, but not the frames of one trace unit"
    return Detection(1, "", what, advice="record again with keep_pkt_header on the trace route")


def _looks_like_one_packet(words: array[int]) -> bool:
    """One packet alone proves little: then nothing but zeros may stand beside it."""
    filled = [index for index, word in enumerate(words) if word]
    return filled[-1] - filled[0] < _PACKET_WORDS
