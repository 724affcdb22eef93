"""Callbacks of OpenMP tools in a text trace -> calls of the event model: a scope is a call."""

from __future__ import annotations

from lanescope.devices.levelzero.formats.fields import BadField, Fields, NotRead
from lanescope.devices.levelzero.formats.text_records import Handler, Recorder, Stamp

#: Whether a scope returns, for each row of calls that a record is. Source: ompt_scope_endpoint_t of OpenMP 5.
ENDS = {
    "ompt_scope_begin": (False,),
    "ompt_scope_end": (True,),
    "ompt_scope_beginend": (False, True),
    "1": (False,),
    "2": (True,),
    "3": (False, True),
}
#: Fields that say what the callback is about, the first that is there.
KINDS = ("optype", "kind")


def scope_handler(event: str) -> Handler:
    """Return what reads a callback; it leaves those without scope."""

    def handle(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
        fields = reader.fields(payload)
        if "endpoint" not in fields:
            raise NotRead(event)
        ends = ENDS.get(fields.word("endpoint"))
        if ends is None:
            raise BadField("endpoint")
        word = _word(fields)
        name = reader.scopes.get((event, word))
        if name is None:
            name = reader.scopes[event, word] = _name(event, word)
        size = fields.optional("bytes") if "optype" in fields else None
        code = reader.code("calls", "function", name)
        for is_exit in ends:
            reader.rows["calls"].add((*stamp, code, is_exit, None, None if is_exit else size))

    return handle


def _word(fields: Fields) -> str:
    """Return what a callback is about, empty if it does not say."""
    for field in KINDS:
        if field in fields:
            word = fields.word(field)
            if not word.isascii() or not word.replace("_", "").isalnum():
                raise BadField(field)
            return word
    return ""


def _name(event: str, word: str) -> str:
    """Return the callback and its kind, without the words that both have: ``ompt_callback_target_emi:enter_data``."""
    if not word:
        return event
    words = word.removeprefix("ompt_").split("_")
    own = [part for part in words if part not in event.split("_")]
    return f"{event}:{'_'.join(own or words)}"
