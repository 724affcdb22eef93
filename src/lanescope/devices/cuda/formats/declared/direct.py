"""Records whose roles are fields as they stand: the native core counts and decodes them straight from the bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats.buffer import UNKNOWN
from lanescope.devices.cuda.formats.declared.columns import Columns
from lanescope.devices.cuda.formats.declared.declaration import Declaration, FieldSpec
from lanescope.devices.cuda.formats.declared.expression import Expression
from lanescope.devices.cuda.formats.declared.geometry import Window
from lanescope.devices.cuda.formats.lanes import I64, Decoded, Outputs

#: Bits of the events of the decoder, of kinds that are looked up by index, and of numbers of SMs.
_EVENT_BITS, _KIND_BITS, _SM_BITS = 16, 16, 32
_WORD = 8
#: Stamps of more bits are counted from the earliest one; those that are so far from it are of no one buffer.
CORE_BITS, FAR_BITS = 62, 61
#: Columns of the core's counts of lanes.
BEGINS, OTHERS, BAD, FIRST_BAD, SM, EARLIEST = range(6)
_SEVERAL_SMS = -2


@frozen_class
class Roles:
    """Where the roles of records are.

    Attributes:
        fields: int64 [6, 3], first byte of a word, shift and width of stamp, event, kind, empty, agree and SM.
        kinds: uint8, what each value of the kind is.
        empty_value: what the field that shows emptiness is compared with; None: the layout has none.
        expected: what the field that has to agree is compared with.
        is_wide: whether stamps are wider than the core's.
    """

    fields: I64
    kinds: npt.NDArray[np.uint8]
    empty_value: Expression | None
    expected: Expression | None
    is_wide: bool


def roles_of(declaration: Declaration, codes: Mapping[int, int], unreadable: int) -> Roles | None:
    """Return the roles of a layout, None where any of them is more than a field.

    Args:
        declaration: the layout.
        codes: the decoder's kind for each value of the kind.
        unreadable: the kind of all other values; a layout with higher codes has records that are no events.
    """
    record, roles, clock = declaration.record, declaration.roles, declaration.clock
    specs = {spec.name: spec for spec in (*record.fields, *record.views) if spec.byte is None}
    of_record = {spec.name for spec in (*record.fields, *record.views)} | {"k"}
    is_plain = declaration.positions == "sequence" and declaration.pairing == "lifo-by-id" and not declaration.state
    if not is_plain or declaration.is_spans or declaration.kind is None or not specs:
        return None
    if {"payload", "payload2", "open", "track"} & set(roles) or max(codes.values()) > unreadable:
        return None
    if any(roles[role].names & of_record for role in ("block", "group") if role in roles):
        return None
    if (
        record.extends is not None
        or record.stale is not None
        or declaration.next is not None
        or declaration.overflow == "ring-by-time"
    ):
        return None
    is_wide = clock.bits > CORE_BITS
    names, compared = [], []
    for test in (record.empty, record.agree):
        name, value = ("", None) if test is None else test.equality or (None, None)
        names.append(name)
        compared.append(value)
    empty_value, expected = compared
    if empty_value is not None and empty_value.names - {param.name for param in declaration.params}:
        return None
    if expected is not None and expected.names & of_record:
        return None
    sm = roles.get("sm")
    wanted = (
        (_name(roles["time"]), 64 if is_wide else clock.bits),
        (_name(roles.get("id")), _EVENT_BITS),
        (_name(declaration.kind[0]), _KIND_BITS),
        (names[0], 64),
        (names[1], 64),
        (_name(sm) if sm is not None and sm.names & of_record else "", _SM_BITS),
    )
    if any(name is None or (name and (name not in specs or specs[name].width > most)) for name, most in wanted):
        return None
    # A truncated last record has its fields in the file, and nothing else.
    end = max((spec.bit + spec.width + 7) // 8 for spec in specs.values())
    if end < _WORD:
        return None
    stamp = _word(specs[wanted[0][0] or ""], end)
    fields = [_word(specs[name], end) if name else (stamp[0], 0, 0) for name, _ in wanted]
    kinds = np.full(1 << fields[2][2], unreadable, np.uint8)
    for at, code in codes.items():
        if 0 <= at < len(kinds):
            kinds[at] = code
    return Roles(np.array(fields, np.int64), kinds, empty_value, expected, is_wide)


def _name(expression: Expression | None) -> str | None:
    """Return the name that an expression is, empty where there is none, None where it is more."""
    return "" if expression is None else expression.name


def _word(spec: FieldSpec, end: int) -> tuple[int, int, int]:
    """Return the first byte of a word inside the record that has the field, its shift and its width."""
    byte = min(spec.bit // 8, end - _WORD)
    return byte, spec.bit - 8 * byte, spec.width


class DirectLanes:
    """The lanes of a buffer, read by the native core.

    Args:
        roles: where the roles of records are.
        columns: the places of the records.

    Attributes:
        counts: int64 [lanes, 6], the core's counts; filled by ``count``.
        origin: the stamp from which wide stamps are counted.
        empty: what the field that shows emptiness has in an empty position.
        expected: int64 [lanes], what the field that has to agree has in a record of each lane.
        cuts: int64 [lanes, launches], first positions of each lane that earlier launches left, not falling.
        keeps_earlier: those positions are decoded as well, as further launches.
    """

    def __init__(self, roles: Roles, columns: Columns) -> None:
        geometry = columns.geometry
        self.roles, self.columns = roles, columns
        self.cuts, self.keeps_earlier = np.empty((geometry.lanes, 0), np.int64), False
        self.counts = np.empty((geometry.lanes, core.CUDA_LANE_COUNTS), np.int64)
        self.origin, self._far_bits = 0, 63 if roles.is_wide else 0
        empty = 0 if roles.empty_value is None else int(roles.empty_value.value(geometry.scalars))
        # A field is unsigned, so no record has a negative value.
        self.empty = empty % (1 << 64)
        nothing = np.zeros(geometry.lanes, np.int64)
        self.expected = nothing if roles.expected is None else geometry.lane_value(roles.expected)

    def count(self, part: tuple[int, int], window: Window) -> None:
        """Count the records of a part."""
        first, last = part
        core.cuda_count_records(window.data, self._places(part, window), self._roles(part), self.counts[first:last])

    def set_origin(self) -> int:
        """Count wide stamps from the earliest one on, and return that; all parts have to be counted again."""
        earliest = int(self.counts[:, EARLIEST].min(initial=np.iinfo(np.int64).max))
        self.origin = 0 if earliest == np.iinfo(np.int64).max else earliest
        self._far_bits = FAR_BITS
        return self.origin

    def decode(
        self,
        part: tuple[int, int],
        window: Window,
        *,
        overwritten: npt.NDArray[np.uint8],
        is_full: npt.NDArray[np.uint8],
        stamp_bits: int,
        split: bool,
        step_back: int,
    ) -> Decoded:
        """Decode the lanes of a part that is counted."""
        first, last = part
        counts = self.counts[first:last]
        begins, others = int(counts[:, BEGINS].sum()), int(counts[:, OTHERS].sum())
        # A gap is before a record or at the end of its lane.
        out = Outputs(last - first, slices=begins, instants=others, gaps=begins + others + last - first)
        result = core.cuda_decode_records(
            window.data,
            self._places(part, window),
            self._roles(part),
            counts,
            (overwritten, is_full, self.cuts[first:last].reshape(-1), self.keeps_earlier),
            stamp_bits,
            step_back,
            split,
            *out.arguments(),
        )
        return out.done(result, stamp_wrap=1 << stamp_bits, base=first)

    def sms(self) -> tuple[I64, int]:
        """Return the SM of each lane, int64 [lanes], and how many lanes name several."""
        found = self.counts[:, SM]
        return np.where(found < 0, UNKNOWN, found), int(np.count_nonzero(found == _SEVERAL_SMS))

    def _places(self, part: tuple[int, int], window: Window) -> tuple[Any, ...]:
        first, last = part
        columns = self.columns
        start = columns.start[first : last + 1] - columns.start[first]
        return window.at, columns.first[first:last], columns.ring[first:last], start, window.step

    def roles_of_lanes(self) -> tuple[Any, ...]:
        """Return the roles of the records of all lanes, as the core takes them."""
        return self._roles((0, len(self.expected)))

    def _roles(self, part: tuple[int, int]) -> tuple[Any, ...]:
        first, last = part
        roles = self.roles
        return roles.fields, roles.kinds, self.empty, self.expected[first:last], self.origin, self._far_bits
