"""The declaration of a buffer layout, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lanescope.devices.cuda.formats.declared.expression import Expression

#: A declaration is a page of text; more is something else.
MAX_FILE_BYTES = 1 << 18
OVERFLOWS = ("unchecked", "drop", "ring", "ring-by-time", "saturated")
PAIRINGS = ("lifo-by-id", "stack", "boundary", "token")
#: What a value of the kind may mean.
KINDS = ("begin", "end", "instant", "finalize", "span", "open", "ignored")
SCOPES = ("device", "sm", "block")
UNITS = ("ns", "cycles", "ticks")
UNWRAPS = ("lane", "after", "before", "near")
ROLES = ("id", "token", "track", "block", "group", "sm", "payload", "payload2", "time", "begin", "end", "open")
STATUSES = ("verified", "read")
MAIN = "buffer"
#: No counter has reached this: a lane that says so in its header was overwritten, or never written.
MOST_READING = (1 << 63) - (1 << 33)
#: Before the name of a field, in a payload: that of the position after the record, and of the one after that.
NEXT = {"next_": 1, "next2_": 2}


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A bit field.

    Attributes:
        name: a name for expressions.
        bit: of the header, lane header or record that it is in, lowest bit first.
        width: bits, 1 to 64.
        array: the array that it is in, at the byte that ``byte`` gives; None: where its header or record is.
        byte: its first byte in that array.
    """

    name: str
    bit: int
    width: int
    array: str | None = None
    byte: Expression | None = None

    @property
    def mask(self) -> int:
        """Its bits, shifted to 0."""
        return (1 << self.width) - 1


@dataclass(frozen=True, slots=True)
class Param:
    """A number that the layout depends on.

    Attributes:
        name: a name for expressions.
        value: computed; None: the user gives it.
        help: what it is.
        default: used if the user does not give it; None: it is required.
    """

    name: str
    value: Expression | None = None
    help: str = ""
    default: int | None = None


@dataclass(frozen=True, slots=True)
class Area:
    """A header: of the file, or of a lane.

    Attributes:
        at: its first byte in the main array.
        size: its bytes.
        fields: what it contains.
    """

    at: Expression | None = None
    size: int = 0
    fields: tuple[FieldSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordSpec:
    """Records of a lane.

    Attributes:
        at: the first byte of record ``k`` in the main array, affine in ``k``.
        size: bytes of a record.
        fields: what it contains.
        views: further readings of the same bits, for tests.
        empty: not 0 where nothing was recorded.
        agree: 0 where a record contradicts its place.
        stale: not 0 where a record is of an earlier launch: it is left out and counted.
        extends: how many of the positions after a record belong to it, and are no records of their own.
    """

    at: Expression
    size: int
    fields: tuple[FieldSpec, ...]
    views: tuple[FieldSpec, ...] = ()
    empty: Expression | None = None
    agree: Expression | None = None
    stale: Expression | None = None
    extends: Expression | None = None


@dataclass(frozen=True, slots=True)
class ClockDecl:
    """The clock of the timestamps.

    Attributes:
        name: of the counter.
        unit: ``ns``, ``cycles`` (of unknown rate), or ``ticks`` of ``hz`` a second.
        bits: width of the timestamps.
        unwrap: what the whole timestamp is near: the one before it in the lane, or the anchor.
        anchor: a full reading for each lane.
        across: what lanes have to share for their timestamps to be comparable.
        hz: rate of the counter.
        pairs: readings of the counter and of a timer in ns at the same moment, for each lane.
    """

    name: str = "globaltimer"
    unit: str = "ns"
    bits: int = 64
    unwrap: str = "lane"
    anchor: Expression | None = None
    across: str = "device"
    hz: int | None = None
    pairs: tuple[tuple[Expression, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class StateSpec:
    """Records that are not events, and whose values hold for the records of the lane that follow.

    Attributes:
        test: not 0 for such a record.
        values: what expressions of later records read, by name.
    """

    test: Expression
    values: Mapping[str, Expression]


@dataclass(frozen=True, slots=True)
class Example:
    """How to write a small file of the layout: what the encoder takes, and what test vectors are made of.

    Attributes:
        sizes: bytes of the arrays.
        params: values of the parameters that the user gives.
        fields: values of fields of headers and records, by name; what is left out is filled with arbitrary bits.
        records: records of a lane; None: as many as it has room for.
    """

    sizes: Mapping[str, int]
    params: Mapping[str, int]
    fields: Mapping[str, Expression]
    records: Expression | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """How parameters that a file does not give are found by its size and by what lanes and records agree with.

    Attributes:
        param: the parameter that is searched.
        least: its smallest value.
        stride: bytes of a lane, or of so many that the file is a whole number of them.
        also: a second parameter, and its largest value; None: there is none.
        tests: not 0 in every lane that was written.
        records: not 0 in every record.
        is_paired: whether every start has an end.
        given: parameters that the tests do not depend on, and any value of them.
    """

    param: str
    least: int
    stride: Expression
    also: tuple[str, int] | None = None
    tests: tuple[Expression, ...] = ()
    records: tuple[Expression, ...] = ()
    is_paired: bool = False
    given: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A layout.

    Attributes:
        name: short, with dashes.
        title: what writes it, one line.
        source: repository, commit and file of the producer.
        license: of the producer.
        status: ``verified`` (decoded to a known truth) or ``read`` (from the source only).
        unit_bytes: bytes of a slot, for positions in tables.
        arrays: names of the arrays, the main one first.
        main_name: what the main array is called in an archive of arrays, besides ``buffer``.
        header: of the file.
        params: in order; each may use those before it.
        dims: names and sizes of the dimensions that make the lanes, outermost first.
        lane: header of a lane.
        used: 0 for lanes that were not written.
        lane_check: 0 for lanes whose header is impossible.
        capacity: records that a lane has room for; None: as many as fit.
        offered: records that a lane counted, negative where it did not count.
        next: the position that a ring would write next, for rings without a count.
        overflow: what happens to records without room.
        record: of a lane.
        kind: expression and table of kinds; None: all records are of the kind ``constant_kind``.
        constant_kind: of all records.
        roles: expressions by role.
        clock: of the timestamps.
        pairing: how starts find their ends.
        positions: ``sequence``: records are in write order; ``events``: the position is the event, empty ones did not
            happen.
        names: of events, by number.
        pointers: whether ids are addresses.
        match: tests of a file, for detection.
        length_bits: regions are stored with their length modulo 2 to the power of it; None: with all of it.
        overwrites_instants: whether the record after an instant is stored in its place.
        state: records that set values for those after them.
        tables: small tables that expressions may index.
        example: how to write a small file; None: the declaration has none.
        search: how its parameters are found; None: they are not.
        text: the TOML text.
    """

    name: str
    title: str
    source: str
    license: str
    status: str
    unit_bytes: int
    arrays: tuple[str, ...]
    header: Area
    params: tuple[Param, ...]
    dims: tuple[tuple[str, Expression], ...]
    lane: Area
    used: Expression | None
    lane_check: Expression | None
    capacity: Expression | None
    offered: Expression | None
    next: Expression | None
    overflow: str
    record: RecordSpec
    kind: tuple[Expression, Mapping[int, str]] | None
    constant_kind: str
    roles: Mapping[str, Expression]
    clock: ClockDecl
    pairing: str
    positions: str = "sequence"
    names: Mapping[int, str] = field(default_factory=dict)
    pointers: bool = False
    match: tuple[Expression, ...] = ()
    length_bits: int | None = None
    overwrites_instants: bool = False
    state: tuple[StateSpec, ...] = ()
    tables: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    example: Example | None = None
    text: str = ""
    main_name: str = MAIN
    search: Search | None = None

    @property
    def is_spans(self) -> bool:
        """Whether a record is a whole region."""
        return "begin" in self.roles

    @property
    def user_params(self) -> tuple[Param, ...]:
        """Parameters that the user gives."""
        return tuple(param for param in self.params if param.value is None)

    @property
    def next_names(self) -> Mapping[str, tuple[int, str]]:
        """Names in payloads that are fields of positions after a record: how many after it, and the field."""
        names = [name for role in ("payload", "payload2") if role in self.roles for name in self.roles[role].names]
        return {
            name: (steps, name.removeprefix(before))
            for name in names
            for before, steps in NEXT.items()
            if name.startswith(before)
        }
