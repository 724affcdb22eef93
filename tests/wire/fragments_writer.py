"""Descriptions of CTF 1.8 transcribed to the JSON of CTF 2: the streams stay what they are."""

import json
import random
import uuid

from lanescope.wire import tsdl
from lanescope.wire.tsdl.types import plain

_ROLES = {
    "packet-header": {
        "magic": "packet-magic-number",
        "uuid": "metadata-stream-uuid",
        "stream_id": "data-stream-class-id",
        "stream_instance_id": "data-stream-id",
    },
    "packet-context": {
        "timestamp_begin": "default-clock-timestamp",
        "timestamp_end": "packet-end-default-clock-timestamp",
        "content_size": "packet-content-length",
        "packet_size": "packet-total-length",
        "events_discarded": "discarded-event-record-counter-snapshot",
        "packet_seq_num": "packet-sequence-number",
    },
    "event-record-header": {"id": "event-record-class-id", "timestamp": "default-clock-timestamp"},
}


def fragments(*objects):
    """Return a description made of JSON objects."""
    return "".join(f"\x1e{json.dumps(item)}\n" for item in objects)


def transcribed(about, seed=0):
    """Return the description of a trace as fragments; types stand in place or have aliases, paths begin anywhere."""
    return _Transcriber(about, random.Random(seed)).text()


class _Transcriber:
    def __init__(self, about, chance):
        self.about, self.chance = about, chance
        self.aliases, self.origin = [], ""

    def text(self):
        about = self.about
        preamble = {"type": "preamble", "version": 2}
        if about.uuid is not None:
            preamble["uuid"] = list(about.uuid)
        rest = [{"type": "trace-class", "environment": about.environment}]
        self.part(rest[0], "packet-header-field-class", "packet-header", about.packet_header)
        for clock in about.clocks.values():
            offset = {"seconds": clock.offset_s, "cycles": clock.offset}
            rest.append({"type": "clock-class", "id": clock.name, "frequency": clock.frequency})
            rest[-1] |= {"offset-from-origin": offset, "origin": "unix-epoch", "name": clock.name, "uid": clock.uid}
        for stream in about.streams.values():
            made = {"type": "data-stream-class", "id": stream.id, "default-clock-class-id": stream.clock}
            self.part(made, "packet-context-field-class", "packet-context", stream.packet_context)
            self.part(made, "event-record-header-field-class", "event-record-header", stream.event_header)
            self.part(
                made, "event-record-common-context-field-class", "event-record-common-context", stream.event_context
            )
            rest.append(made)
            for event in stream.events.values():
                made = {"type": "event-record-class", "id": event.id, "data-stream-class-id": stream.id}
                made["name"] = event.name
                self.part(made, "specific-context-field-class", "event-record-specific-context", event.context)
                self.part(made, "payload-field-class", "event-record-payload", event.fields)
                rest.append(made)
        return fragments(preamble, *self.aliases, *rest)

    def part(self, fragment, name, origin, kind):
        if kind is not None:
            self.origin = origin
            fragment[name] = self.type(kind, (), {})

    def bits(self, kind, align):
        big = self.about.big if kind.big is None else kind.big
        return {"length": kind.size, "alignment": align, "byte-order": "big-endian" if big else "little-endian"}

    def type(self, kind, path, around):
        made = self.plain_type(kind, path, around)
        if self.chance.random() < 0.2:
            name = str(uuid.UUID(int=self.chance.getrandbits(128)))
            self.aliases.append({"type": "field-class-alias", "name": name, "field-class": made})
            # Paths without an origin are those of the place where the alias is used.
            return name
        return made

    def plain_type(self, kind, path, around):
        match kind:
            case tsdl.Integer():
                made = self.bits(kind, kind.align)
                made["type"] = f"fixed-length-{'signed' if kind.signed else 'unsigned'}-integer"
                made["preferred-display-base"] = kind.base
                if kind.labels:
                    made["mappings"] = {}
                    for label, first, last in kind.labels:
                        made["mappings"].setdefault(label, []).append([first, last])
                role = _ROLES.get(self.origin, {}).get(path[-1] if path else "")
                return made | ({"roles": [role]} if role else {})
            case tsdl.Real():
                return self.bits(kind, kind.align) | {"type": "fixed-length-floating-point-number"}
            case tsdl.Text():
                return {"type": "null-terminated-string"}
            case tsdl.Struct():
                members, here = [], {}
                for name, member in kind.fields:
                    made = self.type(member, (*path, plain(name)), here)
                    members.append({"name": plain(name), "field-class": made})
                    here[plain(name)] = member
                return {"type": "structure", "member-classes": members, "minimum-alignment": kind.align}
            case tsdl.Variant():
                (tag,) = map(plain, kind.tag)
                options = []
                for name, option in kind.options:
                    ranges = [[a, b] for label, a, b in around[tag].labels if plain(label) == plain(name)]
                    made = self.type(option, path, around)
                    options.append({"name": plain(name), "field-class": made, "selector-field-ranges": ranges})
                location = self.location(path, tag)
                return {"type": "variant", "options": options, "selector-field-location": location}
        return self.array(kind, path, around)

    def array(self, kind, path, around):
        if self.origin == "packet-header" and path == ("uuid",):
            return {"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]}
        made = {"type": "static-length-array", "length": kind.length}
        if not isinstance(kind.length, int):
            (length,) = map(plain, kind.length)
            made = {"type": "dynamic-length-array", "length-field-location": self.location(path, length)}
        if kind.is_text:
            return made | {"type": made["type"].replace("array", "string")}
        return made | {"element-field-class": self.type(kind.element, path, around)}

    def location(self, path, name):
        """Return where a neighbour of the member at a path is."""
        if self.chance.random() < 0.5:
            return {"path": [name]}
        return {"origin": self.origin, "path": [*path[:-1], name]}
