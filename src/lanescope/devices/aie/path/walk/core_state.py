"""States of a core as far as they are known, what a piece of path rests on, and what devices are known to do."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Erratum(enum.Flag):
    """Possible behavior of a device where it is unknown; several of a kind are alternatives."""

    LC_AT_WRITE = enum.auto()  # the loop frame comes when the counter is loaded
    LC_AT_BODY = enum.auto()  # before the first bundle of the body
    LC_AT_END = enum.auto()  # when the last bundle of the body is first passed
    FRAME_AT_ISSUE = enum.auto()  # a branch is told when it issues
    FRAME_AFTER_SLOTS = enum.auto()  # after its delay slots
    CALL_LEAVES_LOOP = enum.auto()  # a call whose slots end a loop's body returns behind the loop
    CALL_STAYS_IN_LOOP = enum.auto()  # it returns to the loop's begin
    START_IN_STALL = enum.auto()  # a Start at the end of fetch's lead behind a lock request: the request stalls
    START_IN_SLOTS = enum.auto()  # or the branch between them has issued

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return str(self.name).lower().replace("_", "-")


#: Errata of one kind: at least one of each holds.
KINDS = (
    Erratum.LC_AT_WRITE | Erratum.LC_AT_BODY | Erratum.LC_AT_END,
    Erratum.FRAME_AT_ISSUE | Erratum.FRAME_AFTER_SLOTS,
    Erratum.CALL_LEAVES_LOOP | Erratum.CALL_STAYS_IN_LOOP,
    Erratum.START_IN_STALL | Erratum.START_IN_SLOTS,
)
#: What is known of all devices: only the state at a Start was seen on hardware.
UNKNOWN = KINDS[0] | KINDS[1] | KINDS[2] | Erratum.START_IN_STALL
ERRATUM_DOCS = {
    Erratum.LC_AT_WRITE: "a loop frame comes when the loop counter is loaded",
    Erratum.LC_AT_BODY: "a loop frame comes before the first bundle of the body",
    Erratum.LC_AT_END: "a loop frame comes when the last bundle of the body is first passed",
    Erratum.FRAME_AT_ISSUE: "a branch is told when it issues",
    Erratum.FRAME_AFTER_SLOTS: "a branch is told after its delay slots",
    Erratum.CALL_LEAVES_LOOP: "a call whose delay slots end a loop's body returns behind the loop",
    Erratum.CALL_STAYS_IN_LOOP: "a call whose delay slots end a loop's body returns to the begin of the body",
    Erratum.START_IN_STALL: "a Start at the last delay slot of a branch behind a lock request: the request stalls",
    Erratum.START_IN_SLOTS: "such a Start: the branch has issued, and its frame came before",
}


def settled(known: Erratum) -> Erratum:
    """Return errata with what may be of a kind where none is said."""
    for kind in KINDS:
        known = known if known & kind else known | kind & UNKNOWN
    return known


#: Bits of places where loop frames may come.
AT_WRITE, AT_BODY, AT_END = 1, 2, 4
PLACES = {Erratum.LC_AT_WRITE: AT_WRITE, Erratum.LC_AT_BODY: AT_BODY, Erratum.LC_AT_END: AT_END}
#: Bundles between the fetched address and the branch that retires.
LOOKAHEAD = 6

#: What a state waits for: nothing yet, an atom, an address, a loop count, a count at the end of the body; END: nothing.
RUN, NEED_ATOM, NEED_ADDRESS, NEED_COUNT, NEED_COUNT_AT_END, END = range(6)
#: Values of ``State.after`` that are no address: no transfer; a transfer whose frame came before the start.
FALLS, ANYWHERE = -1, -2

#: Passes that are left of a loop, the current one included: (is a lower bound modulo 2**28, constant, times register);
#: or that the counter was loaded but its frame has not come, where; or that it runs for an unknown time.
Count = tuple[bool, int, int]
ZERO: Count = (False, 0, 0)


class PendingLoop(NamedTuple):
    """The loop counter was loaded; its frame has not come."""

    address: int


class OngoingLoop(NamedTuple):
    """A loop that began before the recording."""

    why: str = "before"


RUNNING = OngoingLoop()


class State(NamedTuple):
    """One guess.

    Attributes:
        need: what it waits for.
        pc: the bundle that is next.
        slots: delay slots that are left.
        after: where the branch in flight goes after them.
        branch: address of the branch in flight, -1: none.
        stack: number of its shadow call stack; below its bottom nothing is known.
        ls, le: loop addresses, None: not known.
        passes: passes left, None: not known.
        registers: watched registers with known values.
        before: (steps in which the anchor must be met, anchor) until it was met.
    """

    need: int
    pc: int
    slots: int = 0
    after: int = FALLS
    branch: int = -1
    stack: int = 0
    ls: int | None = None
    le: int | None = None
    passes: Count | PendingLoop | OngoingLoop | None = None
    registers: tuple[tuple[str, int], ...] = ()
    before: tuple[int, int] | None = None


class Repeat(NamedTuple):
    """A loop body without any decision, passed several times: ``passes + factor * register``, or more.

    Attributes:
        body: addresses of one pass.
        passes: constant part.
        factor: 1: the register of loop counts is added.
        step: 0: exactly so often; else any multiple of it more.
    """

    body: tuple[int, ...]
    passes: int
    factor: int
    step: int


Item = int | Repeat


class Assumption(NamedTuple):
    """Something that a piece of path rests on, or says of a loop.

    Attributes:
        kind: ``inferred`` (a constant never seen written), ``searched`` (a target that was tried), ``open_return``
            (a return below the bottom of the stack), ``stall`` (the lock request that a Start fell into), ``start``
            (a bundle before the fetched one whose frame is the first), ``in_flight`` (a branch whose frame came before
            the Start, and where it went), ``loop``.
        address: of the branch, or the last bundle of the loop.
        value: the target; the fetched address; passes of the loop, constant part; -1: not known.
        factor: loops: the register is added.
        is_least: loops: passes are a lower bound.
    """

    kind: str
    address: int
    value: int
    factor: int = 0
    is_least: bool = False


class Run(NamedTuple):
    """A state, the places of loop frames that it believes in, and what was passed on the way to it."""

    state: State
    places: int
    items: tuple[Item, ...] = ()
    remarks: tuple[Assumption, ...] = ()


#: A state, what was passed on the way to it besides the bundle itself, and what that rests on.
Step = tuple[State, tuple[Item, ...], tuple[Assumption, ...]]


class StateLimitExceeded(Exception):
    """More forks than are followed."""
