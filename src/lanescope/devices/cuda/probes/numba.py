"""Probes for Numba-CUDA kernels: functions that a kernel calls to leave markers.

    from lanescope.cuda import numba_probes as ls

    @cuda.jit
    def kernel(x, out, probes):
        lane = ls.init(probes, 0, cuda.threadIdx.x == 0)
        lane = ls.begin(lane, LOAD)
        value = x[cuda.grid(1)]
        ls.consume(lane, value)
        lane = ls.end(lane, LOAD)
        ...
        ls.finalize(lane)

``probes`` is what a session's ``launch`` returns. Every verb that leaves a marker returns the lane anew. With ``None``
in the place of ``probes`` the kernel is compiled as if the calls were not there.

All threads of a group call the verbs; the one for which ``leader`` is true stores, and its stamps are meant. Everything
else about the buffer (how long lanes are, payloads, ring, clock) is read from its header, so a kernel is right for any
buffer of LS2. Under Numba's simulator (``NUMBA_ENABLE_CUDASIM=1``) the same functions read ``simclock``.
"""

from __future__ import annotations

from numba import cuda

from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.probes.numba_sim import (
    SIMULATED,
    clock64,
    clock_low,
    device,
    float_bits,
    globaltimer,
    globaltimer_low,
    grid_id,
    i64,
    place,
    u64,
    use,
    verb,
)

__all__ = [
    "SIMULATED",
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
    "value",
    "value_float",
]

_MAGIC, _VERSION = layout.LS2_MAGIC, layout.LS2_VERSION
_FILE, _LANE = layout.LS2_FILE_WORDS, layout.LS2_LANE_WORDS
_REFUSED, _WANTED_BLOCKS, _WANTED_GROUPS = (
    layout.LS2_HEADER[name].lsb // 64 for name in ("refused", "required_blocks", "required_groups")
)
_RUNNING, _FINALIZED = layout.RUNNING, layout.FINALIZED
_BEGIN, _END, _INSTANT, _COUNTER = layout.BEGIN, layout.END, layout.INSTANT, layout.COUNTER
_ASYNC_BEGIN, _ASYNC_END, _FLOW_OUT, _FLOW_IN = (
    layout.ASYNC_BEGIN,
    layout.ASYNC_END,
    layout.FLOW_OUT,
    layout.FLOW_IN,
)
_TOKENS, _EVENTS = layout.LS2_RECORD["token"].mask, layout.LS2_RECORD["event"].mask
_FLOAT = layout.LS2_FLOAT
_NO_LIMIT = (1 << 62) - 1


def _off_init(probes, group=0, leader=None, every=1, fence=True):
    return None


def _off_marker(lane, event, token=0, payload=0):
    return None


def _off_joined(lane, event, token, payload=0):
    return None


def _off_value(lane, event, x):
    return None


def _off_lane(lane):
    return None


def _off_use(lane, x):
    return None


# What a lane is: (buffer, word of its header, records offered, limit, capacity - 1, shift, clock, fence); or None.


@verb(_off_init)
def init(probes, group=0, leader=None, every=1, fence=True):
    """Begin the lane of this group.

    Args:
        probes: the buffer of a session's launch; None compiles all probes out.
        group: the group of the block that writes the lane.
        leader: whether this thread is the one of its group that records; the first of the block when not given.
        every: of the blocks only every so many-th records.
        fence: whether there is a memory fence of the block between the work and its markers.

    Returns:
        The lane, for the other verbs.
    """
    block = (cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y) * cuda.gridDim.x + cuda.blockIdx.x
    setup = i64(probes[1])
    grid = i64(probes[2])
    room = i64(probes[3])
    groups = (grid >> 32) & 0xFFFFFFFF
    shift = (setup >> 9) & 1
    is_first = cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0 and cuda.threadIdx.z == 0
    is_leader = is_first if leader is None else leader
    blocks = grid & 0xFFFFFFFF
    is_known = block < blocks and group >= 0 and group < groups
    is_ours = u64(probes[0]) == u64(_MAGIC) and setup & 0xFF == _VERSION
    is_sound = is_ours and room > 0 and room & (room - 1) == 0
    is_meant = is_leader and is_sound and block % every == 0
    base = _FILE
    limit = 0
    size = _LANE + (room << shift)
    lane = block * groups + group
    if is_meant and is_known and _FILE + (lane + 1) * size <= probes.size:
        base = _FILE + lane * size
        limit = _NO_LIMIT if (setup >> 24) & 1 else room
        probes[base + 6] = place()
        probes[base + 7] = grid_id()
        probes[base + 3] = clock64()
        probes[base + 2] = globaltimer()
        probes[base] = u64(_RUNNING)
    elif is_meant and probes.size >= _FILE:
        # Nothing of this lane will be there. The header says so: how many such lanes, and what would have held them.
        cuda.atomic.add(probes, _REFUSED, u64(1))
        if block >= blocks:
            cuda.atomic.max(probes, _WANTED_BLOCKS, u64(cuda.gridDim.x * cuda.gridDim.y * cuda.gridDim.z))
        if group >= groups:
            cuda.atomic.max(probes, _WANTED_GROUPS, u64(group + 1))
    return (probes, base, 0, limit, room - 1, shift, (setup >> 16) & 1, fence)


@device
def _stamp(clock):
    if clock:
        return clock_low()
    return globaltimer_low()


@device
def _word(stamp, event, kind, token):
    tag = ((event & _EVENTS) << 16) | (kind << 13) | ((token & _TOKENS) << 1) | 1
    return (u64(stamp) << u64(32)) | u64(tag)


@device
def _record(lane, event, kind, token, payload):
    probes, base, offered, limit, mask, shift, clock, fence = lane
    if limit:
        word = _word(_stamp(clock), event, kind, token)
        if offered < limit:
            # Unsigned, or an index might count from the end.
            at = u64(base + _LANE + ((offered & mask) << shift))
            probes[at] = word
            # In a ring the next word may belong to an older record, so it is stored even without a payload.
            if shift:
                probes[at + u64(1)] = u64(payload)
        offered += 1
        if offered & 63 == 0:
            probes[base + 1] = u64(offered)
    return (probes, base, offered, limit, mask, shift, clock, fence)


@device
def _before(lane, event, kind, token, payload):
    """Mark what comes next: stamp, store, fence."""
    found = _record(lane, event, kind, token, payload)
    if lane[7]:
        cuda.threadfence_block()
    return found


@device
def _after(lane, event, kind, token, payload):
    """Mark what came before: fence, stamp, store."""
    if lane[7]:
        cuda.threadfence_block()
    return _record(lane, event, kind, token, payload)


@verb(_off_marker)
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


@verb(_off_marker)
def end(lane, event, token=0, payload=0):
    """End a region; arguments as ``begin``."""
    return _after(lane, event, _END, token, payload)


@verb(_off_marker)
def instant(lane, event, token=0, payload=0):
    """Mark a moment; arguments as ``begin``."""
    return _after(lane, event, _INSTANT, token, payload)


@verb(_off_joined)
def async_begin(lane, event, token, payload=0):
    """Begin a region that may overlap any other; ``async_end`` with the same token ends it.

    With a token other than 0, another lane of the block may end it. The caller chooses the token, and may use it again
    once the region has ended.
    """
    return _before(lane, event, _ASYNC_BEGIN, token, payload)


@verb(_off_joined)
def async_end(lane, event, token, payload=0):
    """End the region of ``async_begin`` with the same event and token, in whichever lane of the block it began."""
    return _after(lane, event, _ASYNC_END, token, payload)


@verb(_off_joined)
def flow_out(lane, event, token, payload=0):
    """Mark a cause; the effects are the ``flow_in`` of the same event and token in other lanes of the block."""
    return _after(lane, event, _FLOW_OUT, token, payload)


@verb(_off_joined)
def flow_in(lane, event, token, payload=0):
    """Mark an effect of the latest ``flow_out`` with the same event and token."""
    return _before(lane, event, _FLOW_IN, token, payload)


@device
def _sample(lane, event, token, bits, short):
    probes, base, offered, limit, mask, shift, clock, fence = lane
    if fence:
        cuda.threadfence_block()
    if limit:
        word = _word(_stamp(clock), event, _COUNTER, token)
        after = offered + 2 - shift
        # Without payloads the value takes the next position; both are stored or none.
        if after <= limit:
            first = base + _LANE
            if shift:
                probes[first + ((offered & mask) << 1)] = word
                probes[first + ((offered & mask) << 1) + 1] = bits
            else:
                probes[first + (offered & mask)] = word
                probes[first + ((offered + 1) & mask)] = (short & u64(0xFFFFFFFFFFFFFFFC)) | u64(2)
        if after >> 6 != offered >> 6:
            probes[base + 1] = u64(after & ~63)
        offered = after
    return (probes, base, offered, limit, mask, shift, clock, fence)


@verb(_off_value)
def value(lane, event, x):
    """Sample a counter.

    Args:
        lane: the lane.
        event: number of the event.
        x: the value, an integer; without payloads 62 bits of it are kept.
    """
    bits = u64(x)
    return _sample(lane, event, 0, bits, bits << u64(2))


@verb(_off_value)
def value_float(lane, event, x):
    """Sample a counter whose values are floats; arguments as ``value``."""
    bits = float_bits(x)
    return _sample(lane, event, _FLOAT, bits, bits)


@verb(_off_lane)
def finalize(lane):
    """End the lane, and write how many records were wanted."""
    probes, base, offered, limit, _, _, _, fence = lane
    if fence:
        cuda.threadfence_block()
    if limit:
        probes[base + 4] = globaltimer()
        probes[base + 5] = clock64()
        probes[base + 1] = u64(offered)
        probes[base] = u64(_FINALIZED)


@verb(_off_use)
def consume(lane, x):
    """Wait until ``x`` is there: use it, so that the stamp of a following ``end`` comes after a load of it.

    Args:
        lane: the lane; of None nothing is left of the call.
        x: a number.
    """
    use(x)
