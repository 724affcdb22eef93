"""Run by Debian's Python: what babeltrace2 sees in a folder, one JSON document a line.

Usage: ``bt2_dump.py FOLDER...``. Lines: ``{"folder": ...}``, then those of its events: ``[ns, cycles, name, fields]``,
and ``{"discarded": [events or packets, count]}``.
"""

import json
import math
import sys

import bt2


def plain(value):
    """Return a field as JSON has it: a text as its bytes in Latin 1, an option as its only item."""
    kind = type(value).__name__
    if "Struct" in kind:
        return {name: plain(value[name]) for name in value}
    if "Variant" in kind:
        return {"": plain(value.selected_option)}
    if "Array" in kind:
        return [plain(item) for item in value]
    if "String" in kind:
        return str(value)
    if "Real" in kind:
        number = float(value)
        return number if math.isfinite(number) else str(number)
    return None if value is None else int(value)


def dump(folder, out):
    """Write the lines of one folder."""
    for message in bt2.TraceCollectionMessageIterator(folder):
        if isinstance(message, bt2._EventMessageConst):
            event = message.event
            clock = message.default_clock_snapshot if event.stream.cls.default_clock_class else None
            fields = {
                "packet": plain(event.packet.context_field) if event.packet is not None else None,
                "common": plain(event.common_context_field),
                "own": plain(event.specific_context_field),
                "fields": plain(event.payload_field),
            }
            line = [clock.ns_from_origin if clock else None, clock.value if clock else None, event.name, fields]
            out.write(json.dumps(line) + "\n")
        elif isinstance(message, (bt2._DiscardedEventsMessageConst, bt2._DiscardedPacketsMessageConst)):
            what = "events" if isinstance(message, bt2._DiscardedEventsMessageConst) else "packets"
            out.write(json.dumps({"discarded": [what, message.count]}) + "\n")


for folder in sys.argv[1:]:
    print(json.dumps({"folder": folder}))
    try:
        dump(folder, sys.stdout)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}))
