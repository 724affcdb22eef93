"""Level Zero: a million appends with results attributed, by number and by ring; text read; programs simulated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lanescope.devices.levelzero.family import FAMILY
from lanescope.devices.levelzero.formats.text_scanner import TextReader
from lanescope.devices.levelzero.simulate.encode_text import encode
from lanescope.devices.levelzero.simulate.simulator import simulate_events
from measure import Row

#: Long lists and few waits, so that the records are those of the operations; every event is reset after use.
OPTIONS = {"list_ops": 20_000, "batch": 4096, "runs": 1, "reset_events": True, "threads": 4}
#: So many that a million of them are operations: every tenth is a signal.
APPENDS = 1_120_000
TEXT_APPENDS = 20_000
RUNS = 3

#: A process of its own, so that the peak is that of the model and its attribution: columns from a file, twice.
_ATTRIBUTE = """
import json, resource, sys, time
import numpy as np
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.formats.event_tables import EVENTS
from lanescope.devices.levelzero.interpret.resolved import attributed
from lanescope.trace import Column, Dictionary, Table
texts = json.load(open(sys.argv[1] + "/texts.json"))
tables = {}
for spec in EVENTS:
    columns = {}
    for column in spec.columns:
        values = np.load(f"{sys.argv[1]}/{spec.name}.{column.name}.npy", allow_pickle=column.type == "utf8")
        valid = np.load(f"{sys.argv[1]}/{spec.name}.{column.name}.valid.npy")
        known = texts.get(f"{spec.name}.{column.name}")
        dictionary = None if known is None else Dictionary(known)
        columns[column.name] = Column.array(values, valid=None if valid.all() else valid, dictionary=dictionary)
    tables[spec.name] = Table(spec, columns)
events = Events(tables)
del tables
best = 1e9
for _ in range(3):
    begin = time.process_time()
    found = attributed(events)
    best = min(best, time.process_time() - begin)
    count = len(found.operations.append)
    del found
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([best, int(peak) / 1024, count]))
"""


def simulator_options(**options: Any) -> dict[str, Any]:
    """Return the options of the simulator: these, ``OPTIONS``, and the defaults of the others."""
    return {**{option.name: option.default for option in FAMILY.sim_options}, **OPTIONS, **options}


def attribute(style: str, appends: int) -> tuple[float, float, int, int, float]:
    """Return CPU seconds and peak MiB of attribution, operations, records, and seconds of the simulation."""
    import numpy as np

    begin = time.process_time()
    events, _ = simulate_events(simulator_options(style=style, ops=appends), 1)
    simulated = time.process_time() - begin
    with tempfile.TemporaryDirectory() as folder:
        texts = {}
        for name, table in events.items():
            for column in table.spec.columns:
                made = table.column(column.name)
                np.save(f"{folder}/{name}.{column.name}.npy", made.values)
                np.save(f"{folder}/{name}.{column.name}.valid.npy", table.valid(column.name))
                if made.dictionary is not None:
                    texts[f"{name}.{column.name}"] = made.dictionary.texts
        Path(folder, "texts.json").write_text(json.dumps(texts))
        records = events.count()
        del events
        command = [sys.executable, "-c", _ATTRIBUTE, folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=dict(os.environ))
    best, peak, operations = json.loads(done.stdout)
    return best, peak, operations, records, simulated


def read_text() -> tuple[float, int, int]:
    """Return CPU seconds to read a text trace, its bytes and its records."""
    events, _ = simulate_events(
        simulator_options(style="thapi", ops=TEXT_APPENDS),
        1,
    )
    text = encode(events)
    best = 1e9
    for _ in range(3):
        reader = TextReader()
        begin = time.process_time()
        for at in range(0, len(text), 1 << 20):
            reader.feed(memoryview(text)[at : at + (1 << 20)])
        reader.finish()
        best = min(best, time.process_time() - begin)
    return best, len(text), text.count(b"\n")


def run() -> list[Row]:
    """Measure."""
    rows = []
    for style, what in (("numbered", "by number"), ("thapi", "by ring")):
        # In turn, so that what else the machine does hits both alike.
        runs = [(attribute(style, APPENDS // 2)[0], attribute(style, APPENDS)) for _ in range(RUNS)]
        half = min(least for least, _ in runs)
        taken, peak, operations, records, simulated = min(whole for _, whole in runs)
        note = f"{APPENDS} appends, {records} records, {operations} operations"
        rows += [
            Row(f"attribution {what}, CPU", taken, "s", 3, note=note),
            Row(f"attribution {what}, peak memory", peak, "MiB", 1.2 * 1024, note="model and result, whole process"),
            Row(f"attribution {what}, time for twice the records", taken / half, "x", 2.6, note=f"half: {half:.2f} s"),
            Row(
                f"simulate with truth, {what}",
                records / simulated / 1e6,
                "M records/s",
                1,
                higher_is_better=True,
                note=f"{simulated:.2f} s",
            ),
        ]
    taken, size, lines = read_text()
    rows.append(
        Row(
            "read text",
            lines / taken / 1e3,
            "k records/s",
            1000,
            higher_is_better=True,
            note=f"{lines} records, {size / 1e6:.0f} MB in {taken:.2f} s",
        )
    )
    return rows
