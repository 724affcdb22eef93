"""A small test language: random programs, their listing, a core that runs them, and a trace unit beside it.

The core knows what no listing shows (outcomes, values in registers); the walker sees the listing and the bytes.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.path.program import bundle_formats
from lanescope.devices.aie.simulate import assembler
from lanescope.devices.aie.simulate.ref_mode2 import Retired
from lanescope.devices.aie.simulate.ref_trace_unit import FlowUnit

SLOTS = 5
LOOKAHEAD = 6
PLAIN = (
    "nop",
    "mov r1, r2",
    "lda r0, [p1, #4]; add r3, r3, r4",
    "nopa ; nopb ; vmac cm0, cm1, x2, x3, r0",
    "st r0, [p2], #4",
)
BRANCHES = ("jump", "call", "ret", "ijump", "icall", "cond", "condi")


@dataclass
class Line:
    """One bundle: ``how`` is what only the core knows."""

    kind: str
    function: int
    target: int | None = None
    register: str = ""
    how: tuple = ()
    address: int = 0
    size: int = 0
    form: object = None

    @property
    def end(self):
        return self.address + self.size


@dataclass
class Source:
    """A random structured program.

    Args:
        rng: where it comes from.
        computed: share of loop registers whose value no listing shows.
        call_at_end: whether calls may end at the last bundle of a loop.
        is_endless: it begins again at its end.
        family: of a device that the program is encoded for; then it has only pointers and sizes that there are.
    """

    rng: random.Random
    computed: float = 0.3
    call_at_end: bool = False
    is_endless: bool = False
    family: str = ""
    lines: list = field(default_factory=list)
    labels: list = field(default_factory=list)
    loops: list = field(default_factory=list)

    def __post_init__(self):
        rng = self.rng
        self.function = 0
        self.open_pointers = 0
        names = [self.label() for _ in range(rng.randint(1, 4))]
        self.leaf = names[-1] if len(names) > 1 and rng.random() < 0.5 else None
        for number, name in enumerate(names):
            self.function = number
            self.place(name)
            self.callees = names[number + 1 :]
            self.statements(0, in_loop=name == self.leaf)
            if number:
                self.branch("ret")
            elif self.is_endless:
                self.branch("jump", target=names[0])
            else:
                self.put("halt")
        at = rng.randrange(0, 256, 2)
        for line in self.lines:
            line.address, line.size = at, rng.choice((2, 2, 4, 4, 6, 8, 10, 12, 14, 16, 16))
            if self.family:
                line.form = self.form(line)
                line.size = line.form.size
            at += line.size

    def form(self, line):
        """A format that has room for the line's instruction; most bundles have others beside it."""
        wanted = self.slots(line)
        # Of AIE2P it is not known what slots hold that do nothing: what is beside does something harmless.
        every = [f for size in range(2, 17, 2) for f in bundle_formats.formats(self.family, size)]
        fitting = [f for f in every if wanted.keys() <= {name for name, _, _ in f.slots}]
        return self.rng.choice([f for f in fitting if f.size > 2 or line.kind == "plain"])

    def slots(self, line):
        return {} if line.kind == "plain" else assembler.slots_of(self.family, self.instruction(line))

    def code(self):
        """Address and bytes of the program; the other slots are drawn."""
        first = self.lines[0].address
        raw = bytearray()
        for line in self.lines:
            fill = {name: self.filler(name) for name, _, _ in line.form.slots}
            raw += line.form.write({**fill, **self.slots(line)})
        return first, bytes(raw)

    def filler(self, slot):
        """Something that neither steers the program nor writes a pointer."""
        r, rng = self.rng.randrange(32), self.rng
        word = rng.getrandbits
        if slot == "vec":
            return word(26)
        if slot == "mv":
            return assembler.slots_of(self.family, f"mov r{r}, r{rng.randrange(32)}")["mv"]
        if slot == "alu":
            return word(19) << 1 | 1
        if slot == "lng":
            return assembler.slots_of(self.family, f"movxm r{r}, #{word(32)}")["lng"]
        if slot == "lda":
            return assembler.slots_of(self.family, f"lda r{r}, [sp, #-{4 * rng.randint(1, 60)}]")["lda"]
        if self.family == "aie2":
            return word(12) << 9 | 1 << 8 | r << 3 if slot == "st" else word(6) << 10 | 0b011 << 7 | r << 2 | 1
        # Pointer, offset, mode of an indexed access, the rest.
        return word(7) << 13 | 0b01 << 11 | word(7) << 4 | 0b1101 if slot == "st" else word(7) << 10 | 1 << 8 | word(8)

    def elf(self):
        names = {}
        for line in self.lines:
            names.setdefault(f"function_{line.function}", line.address)
        first, raw = self.code()
        return assembler.elf(self.family, [(first, raw)], names, entry=first)

    def address(self, label):
        return None if label is None else self.lines[self.labels[label]].address

    def label(self):
        self.labels.append(None)
        return len(self.labels) - 1

    def place(self, label):
        self.labels[label] = len(self.lines)

    def put(self, kind, **more):
        self.lines.append(Line(kind, self.function, **more))

    def plain(self, low=1, high=4):
        for _ in range(self.rng.randint(low, high)):
            self.put("plain")

    def branch(self, kind, **more):
        self.put(kind, **more)
        self.plain(SLOTS, SLOTS)

    def statements(self, depth, *, in_loop):
        for _ in range(self.rng.randint(1, 4)):
            choices = ["plain", "if_", "if_else", "switch"]
            if depth >= 3:
                choices = ["plain"]
            else:
                if self.callees and not in_loop:
                    choices += ["call", "call", "call_indirect"]
                if not in_loop:
                    choices += ["loop", "loop_indirect", "hardware_loop", "hardware_loop"]
            getattr(self, "make_" + self.rng.choice(choices))(depth + 1, in_loop)

    def make_plain(self, depth, in_loop):
        self.plain()

    def make_if_(self, depth, in_loop):
        end = self.label()
        self.branch("cond", target=end, how=("p", self.rng.random()))
        self.statements(depth, in_loop=in_loop)
        self.place(end)
        self.plain(1, 2)

    def make_if_else(self, depth, in_loop):
        other, end = self.label(), self.label()
        self.branch("cond", target=other, how=("p", self.rng.random()))
        self.statements(depth, in_loop=in_loop)
        self.branch("jump", target=end)
        self.place(other)
        self.statements(depth, in_loop=in_loop)
        self.place(end)
        self.plain(1, 2)

    def make_switch(self, depth, in_loop):
        arms, end = [self.label() for _ in range(self.rng.randint(2, 3))], self.label()
        self.branch("ijump", how=("to", arms))
        for arm in arms:
            self.place(arm)
            self.plain()
            self.branch("jump", target=end)
        self.place(end)
        self.plain(1, 1)

    def make_call(self, depth, in_loop):
        self.branch("call", target=self.rng.choice(self.callees))

    def make_call_indirect(self, depth, in_loop):
        self.branch("icall", how=("to", list(self.callees)))

    def make_loop(self, depth, in_loop):
        head = self.label()
        self.place(head)
        self.statements(depth, in_loop=in_loop)
        self.branch("cond", target=head, how=("n", self.rng.randint(1, 4)))

    def make_loop_indirect(self, depth, in_loop):
        register = f"p{len(self.labels) + 8}"
        if self.family:
            # A pointer of its own for each loop that another one, or a function that it calls, lies in.
            mine = ((2, 3), (4, 5), (6,), (7,))[self.function]
            if self.open_pointers >= len(mine):
                return self.make_loop(depth, in_loop)
            register = f"p{mine[self.open_pointers]}"
        self.open_pointers += 1
        head = self.label()
        kind = "loadp" if self.rng.random() < self.computed else "setp"
        self.put(kind, register=register, target=head)
        self.plain(0, 2)
        self.place(head)
        self.statements(depth, in_loop=in_loop)
        self.branch("condi", register=register, how=("n", self.rng.randint(1, 4)))
        self.open_pointers -= 1
        return None

    def make_hardware_loop(self, depth, in_loop):
        rng, ls, le = self.rng, self.label(), self.label()
        self.loops.append((ls, le))
        trips = ("trips", rng.choice((1, 2, 3, 5, 15, 16, 17, 40, 40, 300)))
        setup = [("ls", {"target": ls}), ("le", {"target": le}), ("lc", {"how": trips})]
        rng.shuffle(setup)
        for kind, more in setup:
            self.put(kind, **more)
            self.plain(0, 1)
        shape = rng.choice(("plain", "plain", "plain", "if", "jump_in", "call", "call_at_end"))
        inside = self.label()
        if shape == "jump_in":
            self.branch("jump", target=inside)
        self.place(ls)
        self.plain()
        self.place(inside)
        self.plain()
        if shape == "if":
            self.make_if_(3, True)
            self.plain(0, 2)
        if shape.startswith("call") and self.leaf is not None and self.callees:
            self.branch("call", target=self.leaf)
            if shape == "call_at_end" and self.call_at_end:
                self.labels[le] = len(self.lines) - 1
                return
        self.place(le)
        self.put("plain")

    def listing(self):
        """The text that llvm-objdump would write."""
        out = ["", "core.elf:\tfile format elf32-aie", "", "Disassembly of section .text:"]
        function = None
        for line in self.lines:
            if line.function != function:
                function = line.function
                out += ["", f"{line.address:08x} <function_{function}>:"]
            raw = " ".join(["00"] * line.size)
            out.append(f"{line.address:8x}: {raw} \t{self.text(line)}")
        return "\n".join(out) + "\n"

    def instruction(self, line):
        """Its instruction, with the target 0 as long as there are no addresses."""
        target = (self.address(line.target) if line.size else 0) if line.target is not None else None
        return (
            self.text(line, where="" if target is None else f"#{target:#x}").replace("\t", " ").replace("nopa ; ", "")
        )

    def text(self, line, where=None):
        target = self.address(line.target)
        if where is None:
            where = "" if target is None else self.rng.choice((f"#{target:#x}", f"#{target}"))
        match line.kind:
            case "plain":
                # Where there are few pointers, none of those that loops jump through is moved on.
                return self.rng.choice(PLAIN[:-1] if self.family else PLAIN)
            case "halt":
                return "done"
            case "jump":
                return f"j\t{where}"
            case "call":
                return f"nopa ;\tjl\t{where}"
            case "ret":
                return "ret\tlr"
            case "ijump":
                return "j\tp0"
            case "icall":
                return "jl\tp1"
            case "cond":
                return f"{self.rng.choice(('jz', 'jnz'))}\tr16, {where}"
            case "condi":
                return f"jnzd\tr17, r17, {line.register}"
            case "setp":
                return f"movxm\t{line.register}, {where}"
            case "loadp":
                return f"lda\t{line.register}, [sp, #-32]"
            case "ls" | "le":
                return f"movxm\t{line.kind}, {where}"
            case "lc":
                return "add.nc\tlc, r3, #0"
        raise AssertionError(line.kind)

    def run(self, rng, limit, *, lc_at, lag, call_at_end="leaves"):
        """Run it.

        Returns:
            Addresses of all bundles in order, and events: (index at which told, index of the bundle, what, value).
        """
        at = {line.address: line for line in self.lines}
        # A register that still has an address of the previous loop does not start this one.
        loops = {(self.address(ls), self.address(le)) for ls, le in self.loops}
        path, events, stack, registers, counters = [], [], [], {}, Counter()
        pc, slots, after, is_call = self.lines[0].address, 0, None, False
        ls = le = -1
        lc, fresh = 0, False
        while len(path) < limit:
            line, i, took = at[pc], len(path), False
            path.append(pc)
            follows = line.end
            if line.kind == "halt":
                break
            if fresh and lc_at == "body" and (ls, le) in loops and ls <= pc <= le:
                events.append((i, i - 1, Retired.LOOP, lc))
                fresh = False
            target = self.address(line.target)
            if line.kind in ("setp", "loadp"):
                registers[line.register] = target
            elif line.kind == "ls":
                ls = target
            elif line.kind == "le":
                le = target
            elif line.kind == "lc":
                lc, fresh = line.how[1], lc_at != "write"
                if not fresh:
                    events.append((i, i, Retired.LOOP, lc))
            if line.kind in BRANCHES:
                assert not slots
                if line.kind in ("ijump", "icall"):
                    target = self.address(rng.choice(line.how[1]))
                elif line.kind == "ret":
                    target = stack.pop()
                elif line.kind in ("cond", "condi"):
                    if line.how[0] == "n":
                        counters[pc] += 1
                        taken = counters[pc] < line.how[1]
                        counters[pc] *= taken
                    else:
                        taken = rng.random() < line.how[1]
                    target = (registers[line.register] if line.kind == "condi" else target) if taken else None
                    events.append((i + lag, i, Retired.BRANCH, int(taken)))
                if line.kind in ("ret", "ijump", "icall"):
                    events.append((i + lag, i, Retired.TARGET, target))
                slots, after, is_call = SLOTS, target, line.kind in ("call", "icall")
            elif slots:
                slots -= 1
                took = slots == 0 and after is not None
            if pc == le and lc and not (took and (call_at_end == "leaves" or not is_call)):
                if fresh:
                    events.append((i, i, Retired.LOOP, lc))
                    fresh = False
                lc -= 1
                follows = ls if lc else follows
            if took:
                if is_call:
                    stack.append(follows)
                follows = after
            pc = follows
        return path, sorted(events, key=lambda event: event[:2])


@dataclass
class Case:
    """One program, what it did, and a recording of part of it.

    Attributes:
        source: the program.
        path: addresses of all bundles from the anchor on.
        decided: how many of them the frames vouch for: up to the bundle of the last one.
        events: events that were recorded.
        payload: uint32, what the trace unit wrote.
        lc_at: where loop frames come.
        anchor: how many bundles of the run came before ``path``.
        lead: addresses of bundles that were executed in the recording before the address of its Start.
    """

    source: Source
    path: list
    decided: int
    events: list
    payload: np.ndarray
    lc_at: str
    anchor: int
    lead: tuple = ()

    def file(self):
        """A dump with these packets."""
        return encode.packets(encode.header(0, 1, 2, 2), self.payload).tobytes()

    def decided_by(self, events):
        """How many addresses of ``path`` the first so many events vouch for."""
        return max(0, self.events[events - 1][1] + 1 - self.anchor) if events else 0

    def landing(self, event):
        """Where in ``path`` the program goes on behind the slots of the branch of an event."""
        return self.events[event][1] + SLOTS + 1 - self.anchor


def make(
    seed,
    *,
    computed=0.3,
    lc_at="end",
    lags=(0, 5),
    ahead=LOOKAHEAD,
    call_at_end=None,
    limit=2500,
    longest=600,
    family="",
):
    """A random program and a window of its run."""
    rng = random.Random(seed)
    while True:
        source = Source(rng, computed, call_at_end is not None, family=family)
        lag = rng.choice(lags)
        path, events = source.run(rng, limit, lc_at=lc_at, lag=lag, call_at_end=call_at_end or "leaves")
        if len(path) > 30 and source.lines[-1].address < 1 << 14:
            break
    # A run that was cut must not end in the middle of what the walker may rely on.
    room = len(path) - (900 if len(path) == limit else 0)
    first = rng.randrange(room - 10)
    last = rng.choice((min(room, first + longest), rng.randrange(first + 10, room + 1)))
    branches = {line.address for line in source.lines if line.kind in BRANCHES}
    lead = rng.randint(0, ahead)
    while (lead == LOOKAHEAD and path[first] in branches) or first + lead >= len(path):
        lead -= 1
    anchor = first + lead
    kept = [event for event in events if first <= event[0] < last]
    unit = FlowUnit()
    unit.start(path[anchor])
    for _, _, what, value in kept:
        unit.retire(what, value)
    unit.stop()
    case = Case(source, path[anchor:], 0, kept, unit.payload, lc_at, anchor, tuple(path[first:anchor]))
    case.decided = case.decided_by(len(kept))
    return case
