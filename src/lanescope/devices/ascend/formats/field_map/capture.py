"""Where the declared fields of a capture lie: in its JSON files, or in a dump of device memory."""

from __future__ import annotations

import json
from collections.abc import Mapping

from lanescope.devices.ascend.formats.field_map.device_dumps import dump_map
from lanescope.devices.ascend.formats.field_map.json_files import add_json
from lanescope.devices.ascend.formats.field_map.sidecars import add_lines
from lanescope.families.field_sites import FieldMap


def field_map(files: Mapping[str, bytes]) -> FieldMap:
    """Return the sites of a capture: its records file, the first of ``files``, its task graph and its names."""
    name, content = next(iter(files.items()))
    if not content.lstrip().startswith(b"{"):
        return dump_map(name, content)
    made = FieldMap()
    graphs = (json.loads(text) for text in files.values() if b'"edges"' in text)
    deps = next((graph for graph in graphs if "edges" in graph), None)
    for file, text in files.items():
        if not add_lines(made, file, text, files):
            add_json(made, file, text, deps)
    return made
