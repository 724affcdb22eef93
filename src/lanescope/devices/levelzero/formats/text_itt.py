"""Events and tasks of ITT in a text trace -> calls of the event model, each event and domain on a lane of its own.

Those of one kind are nested, those of two kinds overlap as they like. Source: THAPI
backends/itt/btx_ittinterval_callbacks.cpp and its tests.
"""

from __future__ import annotations

from lanescope.devices.levelzero.formats.fields import BadField
from lanescope.devices.levelzero.formats.host_apis import ITT_BEGIN
from lanescope.devices.levelzero.formats.text_records import Handler, Recorder, Stamp

#: Kinds of lanes, and of names: events have theirs by their number, tasks by a handle.
EVENT, DOMAIN = LANES = ("event", "domain")
#: Name of an event that was created without one. Source: the same.
_UNNAMED = "<unnamed event>"


def itt_handler(event: str) -> Handler | None:
    """Return what reads a record; None if nothing in it is shown."""
    return _HANDLERS.get(event)


def _event_created(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    number, name = fields.integer("ittResult"), fields.text("name_val")
    reader.itt_named(reader.processes[stamp[2]], EVENT, number, name or _UNNAMED)


def _string_created(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    name = fields.text("str_val") if "str_val" in fields else fields.text("name_val")
    reader.itt_named(reader.processes[stamp[2]], DOMAIN, fields.integer("ittResult"), name)


def _domain_created(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    reader.fields(payload).integer("ittResult")


def _event(*, is_end: bool) -> Handler:
    def handle(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
        number = reader.fields(payload).integer("event")
        if is_end:
            # By the rules of ITT an end without a start means nothing.
            _end(reader, stamp, (EVENT, number))
            return
        name = reader.itt_names.get((reader.processes[stamp[2]], EVENT, number), "")
        _begin(reader, stamp, (EVENT, number), name, number)

    return handle


def _task_begin(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    domain = fields.integer("domain")
    handle = fields.integer("name")
    known = reader.itt_names.get((reader.processes[stamp[2]], DOMAIN, handle))
    name = fields.text("name__strA_val") if known is None else known
    _begin(reader, stamp, (DOMAIN, domain), name, handle)


def _task_end(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    domain = reader.fields(payload).integer("domain")
    if not _end(reader, stamp, (DOMAIN, domain)):
        raise BadField("no task is open")


def _begin(reader: Recorder, stamp: Stamp, key: tuple[str, int], name: str, handle: int) -> None:
    code = reader.code("calls", "function", ITT_BEGIN + name)
    lane = reader.itt_begin(stamp[2], key, code, handle)
    reader.rows["calls"].add((stamp[0], stamp[1], lane, code, False, None, None))


def _end(reader: Recorder, stamp: Stamp, key: tuple[str, int]) -> bool:
    """Add the end of what began last, if anything did."""
    code = reader.itt_end(stamp[2], key)
    if code is None:
        return False
    reader.rows["calls"].add((stamp[0], stamp[1], reader.lane(stamp[2], key), code, True, None, None))
    return True


_HANDLERS: dict[str, Handler] = {
    "__itt_event_create": _event_created,
    "__itt_event_start": _event(is_end=False),
    "__itt_event_end": _event(is_end=True),
    "__itt_string_handle_create": _string_created,
    "__itt_domain_create": _domain_created,
    "__itt_task_begin": _task_begin,
    "__itt_task_end": _task_end,
}
