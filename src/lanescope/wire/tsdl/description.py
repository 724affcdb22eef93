"""A description -> what a trace has: clocks, streams and their kinds of events; here from the blocks of CTF 1.8."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from lanescope.wire.tsdl.fragments import describe_fragments, is_fragments
from lanescope.wire.tsdl.parser import Block, parse
from lanescope.wire.tsdl.trace_kinds import MOST_EVENTS, Clock, Description, EventKind, StreamKind, Value
from lanescope.wire.tsdl.types import Array, Integer, Struct, TsdlError, Type, Variant

_NS = 1_000_000_000
#: Clocks of integers that have none but are called so, where a trace has one clock.
_TIMES = {"event.header": ("timestamp",), "packet.context": ("timestamp_begin", "timestamp_end")}


def describe(text: str) -> Description:
    """Read a description.

    Args:
        text: as ``metadata_text`` returns it.

    Raises:
        TsdlError: with the line, or with the number of the fragment.
    """
    return describe_fragments(text) if is_fragments(text) else _Maker(parse(text)).make()


class _Maker:
    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        self._clocks: dict[str, Clock] = {}

    def _of(self, kind: str) -> list[Block]:
        return [block for block in self._blocks if block.kind == kind]

    def make(self) -> Description:
        traces = self._of("trace")
        if len(traces) != 1:
            raise TsdlError(f"{len(traces)} blocks of the trace: expected 1", traces[1].line if traces else 0)
        trace = traces[0]
        if (trace.values.get("major"), trace.values.get("minor")) != (1, 8):
            raise TsdlError(f"unsupported version {trace.text('major')}.{trace.text('minor')}", trace.line)
        order = trace.text("byte_order")
        if order not in ("le", "be", "network"):
            raise TsdlError(f"byte order of the trace {order!r}: expected le or be", trace.line)
        environment: dict[str, Value] = {}
        for block in self._of("env"):
            environment.update(block.values)
        for block in self._of("clock"):
            clock = _clock(block)
            if clock.name in self._clocks:
                raise TsdlError(f"clock {clock.name!r} occurs twice", block.line)
            self._clocks[clock.name] = clock
        header = _struct(trace, "packet.header")
        streams = self._streams()
        return Description(_uuid(trace), order != "le", environment, self._clocks, header, streams)

    def _streams(self) -> dict[int, StreamKind]:
        blocks: dict[int, Block] = {}
        for block in self._of("stream"):
            number = block.number("id")
            if number in blocks:
                raise TsdlError(f"stream {number} occurs twice", block.line)
            blocks[number] = block
        # Without a stream all events are of one that has no fields of its own.
        blocks = blocks or {0: Block("stream", 0)}
        events: dict[int, dict[int, EventKind]] = {number: {} for number in blocks}
        contexts: dict[int, list[Type]] = {number: [] for number in blocks}
        for block in self._of("event"):
            number = block.number("stream_id", next(iter(blocks)) if len(blocks) == 1 else -1)
            if number not in blocks:
                raise TsdlError(f"event {block.text('name')!r} of an unknown stream {number}", block.line)
            id_ = block.number("id")
            if id_ in events[number]:
                raise TsdlError(f"event {id_} of stream {number} occurs twice", block.line)
            if len(events[number]) >= MOST_EVENTS:
                raise TsdlError(f"more than {MOST_EVENTS} kinds of events", block.line)
            context, fields = _struct(block, "context"), _struct(block, "fields")
            values = {name: value for name, value in block.values.items() if name not in ("name", "id", "stream_id")}
            events[number][id_] = EventKind(id_, block.text("name") or str(id_), context, fields, values)
            contexts[number] += [kind for kind in (context, fields) if kind is not None]
        return {
            number: self._stream(number, block, events[number], contexts[number]) for number, block in blocks.items()
        }

    def _stream(self, number: int, block: Block, events: dict[int, EventKind], others: Sequence[Type]) -> StreamKind:
        made: dict[str, Struct | None] = {}
        for name in ("packet.context", "event.header", "event.context"):
            kind = _struct(block, name)
            if kind is not None and name in _TIMES:
                kind = self._timed(kind, _TIMES[name], block.line)
            made[name] = kind
        used: dict[str, None] = {}
        for part in (*made.values(), *others):
            if part is not None:
                used.update(dict.fromkeys(_clocks_of(part)))
        for name in used:
            if name not in self._clocks:
                raise TsdlError(f"unknown clock {name!r}", block.line)
        if len(used) > 1:
            raise TsdlError(f"stream {number} has several clocks: {', '.join(used)}", block.line)
        return StreamKind(
            number, made["packet.context"], made["event.header"], made["event.context"], events, next(iter(used), "")
        )

    def _timed(self, kind: Struct, names: Sequence[str], line: int) -> Struct:
        """Give integers that are called like times the trace's clock, where they have none."""

        def clock() -> str:
            if not self._clocks:
                self._clocks["default"] = Clock("default")
            if len(self._clocks) > 1:
                raise TsdlError("a timestamp without clock where there are several clocks", line)
            return next(iter(self._clocks))

        def timed(name: str, kind: Type) -> Type:
            if isinstance(kind, Integer) and name in names and not kind.clock:
                return replace(kind, clock=clock())
            if isinstance(kind, Struct):
                return replace(kind, fields=tuple((key, timed(key, field)) for key, field in kind.fields))
            if isinstance(kind, Variant):
                return replace(kind, options=tuple((key, timed(key, option)) for key, option in kind.options))
            return kind

        made = timed("", kind)
        assert isinstance(made, Struct)
        return made


def _clocks_of(kind: Type) -> list[str]:
    match kind:
        case Integer():
            return [kind.clock] if kind.clock else []
        case Struct():
            return [name for _, field in kind.fields for name in _clocks_of(field)]
        case Variant():
            return [name for _, option in kind.options for name in _clocks_of(option)]
        case Array():
            return _clocks_of(kind.element)
    return []


def _struct(block: Block, name: str) -> Struct | None:
    kind = block.types.get(name)
    if kind is not None and not isinstance(kind, Struct):
        raise TsdlError(f"{block.kind}: {name} is not a structure", block.line)
    return kind


def _uuid(block: Block) -> bytes | None:
    text = block.text("uuid")
    if not text:
        return None
    try:
        return uuid.UUID(text).bytes
    except ValueError:
        raise TsdlError(f"invalid UUID {text!r}", block.line) from None


def _clock(block: Block) -> Clock:
    name = block.text("name")
    if not name:
        raise TsdlError("clock without a name", block.line)
    frequency, offset, offset_s = block.number("freq", _NS), block.number("offset"), block.number("offset_s")
    if not 0 < frequency < 1 << 64:
        raise TsdlError(f"clock {name!r}: invalid frequency {frequency}", block.line)
    if not -(1 << 62) < offset_s < 1 << 62 or not -(1 << 63) <= offset < 1 << 64:
        raise TsdlError(f"clock {name!r}: invalid offset", block.line)
    absolute = block.text("absolute") in ("true", "TRUE", "1")
    return Clock(name, frequency, offset_s, offset, absolute, block.text("uuid"), block.text("description"))
