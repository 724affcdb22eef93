"""Probes for Triton kernels: functions that a kernel calls to leave markers.

    from lanescope.cuda import triton_probes as ls

    @triton.jit
    def kernel(x, out, probes, BLOCK: tl.constexpr):
        lane = ls.init(probes)
        lane = ls.begin(lane, LOAD)
        value = tl.load(x + tl.arange(0, BLOCK))
        ls.consume(lane, value)
        lane = ls.end(lane, LOAD)
        ...
        ls.finalize(lane)

``probes`` is what a session's ``launch`` returns. Every verb that leaves a marker returns the lane anew. With ``None``
in the place of ``probes`` the kernel is compiled as if the calls were not there.

A program writes one lane, or one for each ``init`` with a group of its own. All its threads read the timer and one, the
first, stores: the stamp is that thread's. Put
``tl.debug_barrier()`` before ``end`` where the whole program shall have come so far. Everything else about the buffer
(how long lanes are, payloads, ring, clock) is read from its header, so a kernel is right for any buffer of LS2.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.probes.triton_interp import HostArray, interpreted

__all__ = [
    "HostArray",
    "async_begin",
    "async_end",
    "begin",
    "consume",
    "end",
    "finalize",
    "flow_in",
    "flow_out",
    "init",
    "instant",
    "interpreted",
    "value",
]

_MAGIC = tl.constexpr(layout.LS2_MAGIC)
_VERSION = tl.constexpr(layout.LS2_VERSION)
_FILE = tl.constexpr(layout.LS2_FILE_WORDS)
_LANE = tl.constexpr(layout.LS2_LANE_WORDS)
_REFUSED = tl.constexpr(layout.LS2_HEADER["refused"].lsb // 64)
_WANTED_BLOCKS = tl.constexpr(layout.LS2_HEADER["required_blocks"].lsb // 64)
_WANTED_GROUPS = tl.constexpr(layout.LS2_HEADER["required_groups"].lsb // 64)
_RUNNING = tl.constexpr(layout.RUNNING)
_FINALIZED = tl.constexpr(layout.FINALIZED)
_BEGIN = tl.constexpr(layout.BEGIN)
_END = tl.constexpr(layout.END)
_INSTANT = tl.constexpr(layout.INSTANT)
_COUNTER = tl.constexpr(layout.COUNTER)
_ASYNC_BEGIN = tl.constexpr(layout.ASYNC_BEGIN)
_ASYNC_END = tl.constexpr(layout.ASYNC_END)
_FLOW_OUT = tl.constexpr(layout.FLOW_OUT)
_FLOW_IN = tl.constexpr(layout.FLOW_IN)
_TOKENS = tl.constexpr(layout.LS2_RECORD["token"].mask)
_EVENTS = tl.constexpr(layout.LS2_RECORD["event"].mask)
_NO_LIMIT = tl.constexpr(0xFFFFFFFF)

# Not pure: neither dropped nor moved across one another. "memory": nor are loads and stores moved across them.
_STAMP = tl.constexpr("{ .reg .pred p; setp.ne.u32 p, $1, 0; @p mov.u32 $0, %clock; @!p mov.u32 $0, %globaltimer_lo; }")
_FENCED_STAMP = tl.constexpr("membar.cta; " + _STAMP.value)


@triton.jit
def _globaltimer():
    return tl.inline_asm_elementwise(
        "mov.u64 $0, %globaltimer;", "=l,~{memory}", [], dtype=tl.uint64, is_pure=False, pack=1
    )


@triton.jit
def _clock64():
    return tl.inline_asm_elementwise(
        "mov.u64 $0, %clock64;", "=l,~{memory}", [], dtype=tl.uint64, is_pure=False, pack=1
    )


@triton.jit
def _place():
    """Return the multiprocessor and the warp of a thread as a lane's header holds them."""
    sm = tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], dtype=tl.uint32, is_pure=False, pack=1)
    warp = tl.inline_asm_elementwise(
        "{ .reg .u32 t; mov.u32 t, %tid.x; shr.u32 $0, t, 5; }", "=r", [], dtype=tl.uint32, is_pure=False, pack=1
    )
    return (sm & 0xFFFF).to(tl.uint64) | ((warp & 0xFFFF).to(tl.uint64) << 16)


@triton.jit
def _grid_id():
    return tl.inline_asm_elementwise("mov.u64 $0, %gridid;", "=l", [], dtype=tl.uint64, is_pure=False, pack=1)


@triton.jit
def _fence():
    tl.inline_asm_elementwise("membar.cta; mov.u32 $0, 0;", "=r,~{memory}", [], dtype=tl.uint32, is_pure=False, pack=1)


@triton.jit
def _stamp(clock, FENCED: tl.constexpr):
    if FENCED:
        return tl.inline_asm_elementwise(
            _FENCED_STAMP, "=r,r,~{memory}", [clock], dtype=tl.uint32, is_pure=False, pack=1
        )
    else:
        return tl.inline_asm_elementwise(_STAMP, "=r,r,~{memory}", [clock], dtype=tl.uint32, is_pure=False, pack=1)


@triton.jit
def init(probes, group=0, leader=True, every=1, FENCE: tl.constexpr = "cta"):
    """Begin the lane of this program.

    Args:
        probes: the buffer of a session's launch; None compiles all probes out.
        group: the group of the block that writes the lane.
        leader: whether this program records at all; a predicate of the kernel's own.
        every: of the blocks only every so many-th records.
        FENCE: ``cta``: a memory fence of the block between the work and its markers; ``none``: none.

    Returns:
        The lane, for the other verbs.
    """
    if probes is None:
        return ()
    else:
        tl.static_assert((FENCE == "cta") | (FENCE == "none"), "FENCE is cta or none")
        words = probes.to(tl.pointer_type(tl.uint64))
        block = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0)
        setup = tl.load(words + 1)
        grid = tl.load(words + 2)
        room = tl.load(words + 3)
        groups = grid >> 32
        shift = ((setup >> 8) & 2).to(tl.uint32) >> 1
        # A lane is a tuple of tensors and nothing else, so the type of one of them says whether there are fences.
        clock = ((setup >> 16) & 1).to(tl.uint32 if FENCE == "cta" else tl.int32)
        is_ring = ((setup >> 24) & 1) != 0
        is_known = (block.to(tl.uint64) < (grid & 0xFFFFFFFF)) & (group < groups)
        is_ours = (tl.load(words) == _MAGIC) & ((setup & 0xFF) == _VERSION)
        is_sound = is_ours & (room != 0) & ((room & (room - 1)) == 0)
        is_meant = is_sound & (block % every == 0) & leader
        on = is_meant & is_known
        # Nothing of a lane without room will be there. The header says how many there were, and what would have held
        # them; orders nothing, and the old value is not wanted.
        is_refused = is_meant & (is_known == 0)
        no_block = is_refused & (block.to(tl.uint64) >= (grid & 0xFFFFFFFF))
        blocks = tl.num_programs(2).to(tl.uint64) * tl.num_programs(1) * tl.num_programs(0)
        tl.atomic_add(words + _REFUSED, 1, mask=is_refused, sem="relaxed")
        tl.atomic_max(words + _WANTED_BLOCKS, blocks, mask=no_block, sem="relaxed")
        tl.atomic_max(
            words + _WANTED_GROUPS, groups * 0 + group + 1, mask=is_refused & (group >= groups), sem="relaxed"
        )
        lane = tl.where(on, block.to(tl.uint64) * groups + group, 0)
        base = words + _FILE + lane * (_LANE + (room << shift.to(tl.uint64)))
        limit = tl.where(on, tl.where(is_ring, _NO_LIMIT, room), 0).to(tl.uint32)
        mask = (room - 1).to(tl.uint32)
        offered = limit * 0
        tl.store(base + 6, _place(), mask=on)
        tl.store(base + 7, _grid_id(), mask=on)
        tl.store(base + 3, _clock64(), mask=on)
        tl.store(base + 2, _globaltimer(), mask=on)
        tl.store(base, _RUNNING, mask=on)
        return (base, offered, limit, mask, shift, clock)


@triton.constexpr_function
def _is_fenced(lane):
    return lane[5].dtype == tl.uint32


@triton.jit
def _word(stamp, event, KIND: tl.constexpr, token):
    number = (tl.to_tensor(event).to(tl.uint32) & _EVENTS) << 16
    mark = (tl.to_tensor(token).to(tl.uint32) & _TOKENS) << 1
    return (stamp.to(tl.uint64) << 32) | (number | mark | (KIND << 13) | 1).to(tl.uint64)


@triton.jit
def _record(lane, stamp, event, KIND: tl.constexpr, token, payload):
    base, offered, limit, mask, shift, clock = lane
    word = _word(stamp, event, KIND, token)
    at = base + _LANE + ((offered & mask) << shift)
    fits = offered < limit
    tl.store(at, word, mask=fits)
    # In a ring the next word may belong to an older record, so it is stored even without a payload.
    tl.store(at + 1, tl.to_tensor(payload).to(tl.uint64), mask=fits & (shift != 0))
    after = offered + 1
    tl.store(base + 1, after.to(tl.uint64), mask=(limit > 0) & ((after & 63) == 0))
    return (base, after, limit, mask, shift, clock)


@triton.jit
def _before(lane, event, KIND: tl.constexpr, token, payload):
    """Mark what comes next: stamp, store, fence."""
    if len(lane) == 0:
        return lane
    else:
        found = _record(lane, _stamp(lane[5], False), event, KIND, token, payload)
        if _is_fenced(lane):
            _fence()
        return found


@triton.jit
def _after(lane, event, KIND: tl.constexpr, token, payload):
    """Mark what came before: fence, stamp, store."""
    if len(lane) == 0:
        return lane
    else:
        return _record(lane, _stamp(lane[5], _is_fenced(lane)), event, KIND, token, payload)


@triton.jit
def begin(lane, event, token=0, payload=0):
    """Begin a region.

    Args:
        lane: the lane.
        event: number of the event.
        token: a small number to keep with it, below 4096.
        payload: 64 bits to keep with it, where the session asked for payloads.

    Returns:
        The lane.
    """
    return _before(lane, event, _BEGIN, token, payload)


@triton.jit
def end(lane, event, token=0, payload=0):
    """End a region; arguments as ``begin``."""
    return _after(lane, event, _END, token, payload)


@triton.jit
def instant(lane, event, token=0, payload=0):
    """Mark a moment; arguments as ``begin``."""
    return _after(lane, event, _INSTANT, token, payload)


@triton.jit
def async_begin(lane, event, token, payload=0):
    """Begin a region that may overlap any other; ``async_end`` with the same token ends it.

    With a token other than 0, another lane of the block may end it. The caller chooses the token, and may use it again
    once the region has ended.
    """
    return _before(lane, event, _ASYNC_BEGIN, token, payload)


@triton.jit
def async_end(lane, event, token, payload=0):
    """End the region of ``async_begin`` with the same event and token, in whichever lane of the block it began."""
    return _after(lane, event, _ASYNC_END, token, payload)


@triton.jit
def flow_out(lane, event, token, payload=0):
    """Mark a cause; the effects are the ``flow_in`` of the same event and token in other lanes of the block."""
    return _after(lane, event, _FLOW_OUT, token, payload)


@triton.jit
def flow_in(lane, event, token, payload=0):
    """Mark an effect of the latest ``flow_out`` with the same event and token."""
    return _before(lane, event, _FLOW_IN, token, payload)


@triton.jit
def value(lane, event, x):
    """Sample a counter.

    Args:
        lane: the lane.
        event: number of the event.
        x: the value, a scalar; without payloads 62 bits of it are kept.
    """
    if len(lane) == 0:
        return lane
    else:
        base, offered, limit, mask, shift, clock = lane
        number = tl.to_tensor(x)
        if number.dtype.is_floating():
            bits = number.to(tl.float64).to(tl.uint64, bitcast=True)
            short = bits
            kind = 1
        else:
            bits = number.to(tl.int64).to(tl.uint64, bitcast=True)
            short = bits << 2
            kind = 0
        word = _word(_stamp(clock, _is_fenced(lane)), event, _COUNTER, kind)
        first = base + _LANE
        is_single = shift == 0
        at = (offered & mask) << shift
        # Without payloads the value takes the next position; both are stored or none.
        fits = (offered + (1 - shift) < limit) & (offered < limit)
        tl.store(first + at, word, mask=fits)
        short = (short & 0xFFFFFFFFFFFFFFFC) | 2
        tl.store(first + tl.where(is_single, (offered + 1) & mask, at + 1), tl.where(is_single, short, bits), mask=fits)
        after = offered + (2 - shift)
        counted = ((after >> 6) << 6).to(tl.uint64)
        tl.store(base + 1, counted, mask=(limit > 0) & ((after >> 6) != (offered >> 6)))
        return (base, after, limit, mask, shift, clock)


@triton.jit
def finalize(lane):
    """End the lane, and write how many records were wanted."""
    if len(lane) != 0:
        if _is_fenced(lane):
            _fence()
        on = lane[2] > 0
        tl.store(lane[0] + 4, _globaltimer(), mask=on)
        tl.store(lane[0] + 5, _clock64(), mask=on)
        tl.store(lane[0] + 1, lane[1].to(tl.uint64), mask=on)
        tl.store(lane[0], _FINALIZED, mask=on)


@triton.jit
def consume(lane, x):
    """Wait until ``x`` is there: use it, so that the stamp of a following ``end`` comes after a load of it.

    Args:
        lane: the lane; of None nothing is left of the call.
        x: a tensor of numbers; every element is used.
    """
    if len(lane) != 0:
        if x.dtype.primitive_bitwidth == 64:
            bits = x.to(tl.uint64, bitcast=True).to(tl.uint32)
        elif x.dtype.primitive_bitwidth == 32:
            bits = x.to(tl.uint32, bitcast=True)
        elif x.dtype.primitive_bitwidth == 16:
            bits = x.to(tl.uint16, bitcast=True).to(tl.uint32)
        else:
            bits = x.to(tl.uint32)
        # A use that almost never has an effect, and then only counts an unused event.
        tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.eq.u32 p, $1, 0x7fedcba9; @p pmevent 1; mov.u32 $0, 0; }",
            "=r,r,~{memory}",
            [bits],
            dtype=tl.uint32,
            is_pure=False,
            pack=1,
        )


@triton.jit
def read_timer(out):
    """Store the timer at ``out``; a kernel."""
    tl.store(out.to(tl.pointer_type(tl.uint64)), _globaltimer())
