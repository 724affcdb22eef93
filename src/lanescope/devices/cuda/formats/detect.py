"""Tell whether the beginning of a file is a probe buffer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lanescope.devices.cuda.formats import earlier_launch, layout
from lanescope.devices.cuda.formats.flashinfer import Rewritten
from lanescope.devices.cuda.formats.lanes import STEP_BACK
from lanescope.devices.cuda.formats.layout import FLASHINFER_V2, LS2, LS2_MAGIC, PROTON, TIRX_V1
from lanescope.devices.cuda.formats.layout_detection import is_proton
from lanescope.devices.cuda.formats.ls2 import Ls2Header
from lanescope.devices.cuda.formats.proton_file import ProtonHeader
from lanescope.devices.cuda.formats.tirx import TirxBuffer, find_stride, header
from lanescope.devices.cuda.formats.word_layouts import MOST, TAGS, TRANSPILER, Told, tell
from lanescope.devices.cuda.formats.word_source import Words, WordSource, content_of, store_of
from lanescope.errors import InputError
from lanescope.source import CERTAIN, MINE, Detection, FileHead, npy

_MAGIC = b"LSPROBE2"
#: Layouts that are named where none is recognized.
_CLOSEST = 2
#: The score of an array of zeros: no.
_BLANK = 45


def detect(head: FileHead) -> Detection:
    """Judge by the layouts that are known in code; where none fits, by those that are declared."""
    found = _known(head)
    return found if found.is_recognized or head.data.startswith(_MAGIC) else _declared(head, found)


def advise(head: FileHead) -> str:
    """Name the declared layouts without a header of the file that a file may have, with their parameters."""
    from lanescope.devices.cuda.formats.declared import search

    try:
        content = content_of(np.frombuffer(head.data, np.uint8))
    except InputError:
        return ""
    fits = search.search(content, head.size - content.before)[:_CLOSEST]
    if not fits:
        return ""
    return "use " + " or ".join(fit.options for fit in fits) + ": its lanes and records agree"


def _declared(head: FileHead, known: Detection) -> Detection:
    """Return the declared layout that fits without doubt; else what is known, with the layouts that come closest."""
    from lanescope.devices.cuda.formats.declared import recognition  # most files do not need it

    try:
        content = content_of(np.frombuffer(head.data, np.uint8))
    except InputError:
        return known
    size = head.size - content.before
    fits = list(recognition.fits(content, size))
    if known.score >= MINE or known.advice or not fits:
        return known
    for fit in fits:
        # What has words for records has been judged with all others that have.
        is_alone = fit.is_certain and fit.name not in TAGS
        if is_alone and recognition.is_in_order(fit.name, content, size):
            return Detection(CERTAIN, fit.name, fit.reason)
    excluded = _excluded(content, size)
    near = "; ".join(f"{fit.name} ({fit.failed or excluded.get(fit.name, fit.reason)})" for fit in fits[:_CLOSEST])
    advice = f"use --layout NAME if it is one of these: {near}"
    return Detection(max(1, known.score), known.format, known.reason, advice)


def _excluded(content: WordSource, size: int) -> Mapping[str, str]:
    """Return what excludes layouts whose headers and tags agree."""
    try:
        return tell(content, size).excluded
    except InputError:
        return {}


def _known(head: FileHead) -> Detection:
    """Judge by a magic word; else by the header word, how many words name the lane of their slot, and their order."""
    data = np.frombuffer(head.data, np.uint8)
    is_npy = head.data.startswith(npy.MAGIC)
    try:
        content = content_of(data)
    except InputError as error:
        return Detection(0, "", error.message)
    try:
        words = content.words(8)
        if len(words) and int(words[0]) == LS2_MAGIC:
            return _ls2(content)
        if is_proton(content.words(4)):
            return _proton(content)
        geometry = header(words)
    except InputError as error:
        # An array of zeros is not a capture, but no other known tool saves one.
        is_blank = is_npy and len(data) > content.before and not data[content.before :].any()
        return (
            Detection(_BLANK, TIRX_V1, error.message, error.hint or "") if is_blank else Detection(0, "", error.message)
        )
    size = head.size - content.before
    slots = size // 8
    if geometry.lanes > slots - 1:
        return Detection(0, "", f"too few slots: {slots} for {geometry.lanes} lanes")
    told = tell(content, size)
    if told.is_ambiguous and (head.is_whole or set(told.names) != {TIRX_V1, TRANSPILER}):
        return _ambiguous(told)
    # A few records of each lane of a large grid do not tell these two apart: the whole buffer does.
    name = TIRX_V1 if told.is_ambiguous else told.name
    if name in (TIRX_V1, FLASHINFER_V2):
        return _judge(words, name, is_npy=is_npy)
    if told.name is not None:
        reason = f"header fits the size, {told.used:,} of {told.used:,} records match their lane"
        return Detection(CERTAIN, told.name, reason)
    if len(words) <= geometry.lanes:
        # The head ends inside the first row: nothing can tell the stride there, and nothing needs it.
        words = np.concatenate([words, np.zeros(geometry.lanes + 1 - len(words), np.uint64)])
        return _judge(words, TIRX_V1, is_npy=is_npy)
    found = _judge(words, TIRX_V1, is_npy=is_npy)
    # A header alone is the same in all of these layouts: there is nothing to tell wrongly.
    return found if is_npy and not told.used else Detection(0, "", found.reason)


def _ambiguous(told: Told) -> Detection:
    return Detection(MINE - 1, "", told.summary, told.advice)


def _ls2(content: WordSource) -> Detection:
    found = Ls2Header.read(content.words(8))
    return Detection(100, LS2, f"LS2 header: {found.num_blocks} blocks x {found.num_groups} groups")


def _proton(content: WordSource) -> Detection:
    words = content.words(4)
    found = ProtonHeader.read(words)
    marks = words[found.payload :: found.scratch]
    good = int(np.count_nonzero(marks == layout.PROTON_PREAMBLE))
    reason = f"Proton header: {found.blocks} blocks, {good} of {len(marks)} block markers match"
    return Detection(CERTAIN if good == len(marks) else 60, PROTON, reason)


def _judge(words: Words, name: str, *, is_npy: bool) -> Detection:
    tag = "lane"
    if name == FLASHINFER_V2:
        words, tag = Rewritten(words).whole(), "block"
    else:
        name = TIRX_V1
    geometry, found = find_stride(words, header(words))
    grid = f"header: {geometry.num_blocks} blocks x {geometry.num_groups} groups"
    if not found.used:
        return Detection(60 if is_npy else 40, name, f"{grid}, no records")
    placed = found.used - found.misplaced
    reason = f"{grid}, {placed:,} of {found.used:,} words match their {tag}"
    if not geometry.stride or placed < MOST * found.used:
        return Detection(45 if is_npy else 30, name, reason)
    buffer = TirxBuffer(store_of(words), geometry, found)
    summary = buffer.decode(split=True, step_back=STEP_BACK).summary
    left = earlier_launch.find(buffer, summary, sm=None, launch_ns=None)
    if left is not None:
        # What an earlier launch left is out of order with the latest one, and in order in itself.
        buffer.cuts = left.cuts[:, None]
        summary = buffer.decode(split=True, step_back=STEP_BACK).summary
    odd = int((summary["unmatched"] + summary["backward"] + summary["after_finalize"]).sum())
    reason += f", {odd} of them out of order" if odd else ""
    reason += f", {left.records} of an earlier launch" if left is not None else ""
    if odd > (1 - MOST) * placed:
        return Detection(45 if is_npy else 40, name, reason)
    return Detection(95 if placed == found.used and not odd else 85, name, reason)
