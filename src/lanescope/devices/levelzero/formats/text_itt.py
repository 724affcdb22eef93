"""Events and tasks of ITT in a text trace -> calls of the event model, each event and domain on a lane of its own.

Those of one kind are nested, those of two kinds overlap as they like. Source: THAPI
backends/itt/btx_ittinterval_callbacks.cpp and its tests.
"""

from __future__ import annotations

from lanescope.devices.levelzero.formats.fields import BadField
from lanescope.devices.levelzero.formats.host_apis import ITT_BEGIN
from lanescope.devices.levelzero.formats.text_records import Handler, Recorder, Stamp

#: Name of an event that was created without one. Source: the same.
_UNNAMED = "<unnamed event>"


def itt_handler(event: str) -> Handler | None:
    """Return what reads a record; None if nothing in it is shown."""
    return _HANDLERS.get(event)


def _event_created(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    number, name = fields.integer("ittResult"), fields.text("name_val")
    reader.itt_names[reader.processes[stamp[2]], "event", number] = name or _UNNAMED


def _string_created(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    name = fields.text("str_val") if "str_val" in fields else fields.text("name_val")
    reader.itt_names[reader.processes[stamp[2]], "string", fields.integer("ittResult")] = name


def _domain_created(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    reader.fields(payload).integer("ittResult")


def _event(*, is_end: bool) -> Handler:
    def handle(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
        number = reader.fields(payload).integer("event")
        name = reader.itt_names.get((reader.processes[stamp[2]], "event", number), "")
        stack = reader.itt_open.setdefault((stamp[2], "event", number), [])
        if is_end and not stack:
            # By the rules of ITT an end without a start means nothing.
            return
        if is_end:
            name = stack.pop()
        else:
            stack.append(name)
        _call(reader, stamp, ("event", number), name, is_end=is_end)

    return handle


def _task_begin(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    domain = fields.integer("domain")
    handle = fields.integer("name")
    known = reader.itt_names.get((reader.processes[stamp[2]], "string", handle))
    name = fields.text("name__strA_val") if known is None else known
    reader.itt_open.setdefault((stamp[2], "domain", domain), []).append(name)
    _call(reader, stamp, ("domain", domain), name, is_end=False)


def _task_end(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    domain = reader.fields(payload).integer("domain")
    stack = reader.itt_open.get((stamp[2], "domain", domain))
    if not stack:
        raise BadField("no task is open")
    _call(reader, stamp, ("domain", domain), stack.pop(), is_end=True)


def _call(reader: Recorder, stamp: Stamp, key: tuple[str, int], name: str, *, is_end: bool) -> None:
    code = reader.code("calls", "function", ITT_BEGIN + name)
    lane = reader.lane(stamp[2], key)
    reader.rows["calls"].add((stamp[0], stamp[1], lane, code, is_end, None, None))


_HANDLERS: dict[str, Handler] = {
    "__itt_event_create": _event_created,
    "__itt_event_start": _event(is_end=False),
    "__itt_event_end": _event(is_end=True),
    "__itt_string_handle_create": _string_created,
    "__itt_domain_create": _domain_created,
    "__itt_task_begin": _task_begin,
    "__itt_task_end": _task_end,
}
