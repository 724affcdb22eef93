"""The exported swimlane against the one that the producer's converter made of the same capture.

Compared are all bars and arrows with process, lane, name, begin and length or both ends to the nanosecond, and the
names of lanes. The projection, and why:

* In the view of the schedulers, overlapping dispatches of a core have lanes of their own (last digit of the lane). The
  converter puts all dispatches of a task to a core on one of them, and bars overlap.
* The converter calls some arrows of tasks that were dispatched early violations. They are none: such a task is received
  before its producers end, and starts after them.
* Counters hold one value each. The converter writes three in one event, which Perfetto refuses.
* The converter names lanes of threads without a record.
* The converter says of dependencies how many tasks both ends have. With other arrows it writes the number of a bar.
  Arrows here end in bars by process, lane and time, which is what viewers read.
* The converter repeats the metadata of a host's clock.
* The converter says of both vector kernels of a task that they are the first one. The runtime sends the second to the
  second vector core of a cluster, and bars here have its name and number.
"""

import json
from collections import Counter, defaultdict
from pathlib import Path

from devices.ascend.helpers import decode_file
from lanescope.devices.ascend.export.swimlane import export

SCHEDULER_VIEW = 3


def lane(event):
    """Return process and lane of an event."""
    pid, tid = event["pid"], event["tid"]
    return pid, tid // 10 * 10 if pid == SCHEDULER_VIEW else tid


def ns(us):
    """Return a time in ns."""
    return round(us * 1000)


def projected(events):
    """Return bars, arrows, names of lanes and of processes as multisets."""
    ends, bars, arrows = defaultdict(dict), Counter(), Counter()
    for event in events:
        if event["ph"] == "X":
            bars[*lane(event), event["name"], ns(event["ts"]), ns(event["dur"])] += 1
        elif event["ph"] in "sf":
            ends[event["id"], event["name"]][event["ph"]] = (*lane(event), ns(event["ts"]))
    for (_, name), both in ends.items():
        assert set(both) == {"s", "f"}
        arrows["dependency" if name == "hb_violation" else name, both["s"], both["f"]] += 1
    used = {bar[:2] for bar in bars}
    names = {
        (lane(event), event["args"]["name"])
        for event in events
        if event["name"] == "thread_name" and lane(event) in used
    }
    processes = {(event["pid"], event["args"]["name"]) for event in events if event["name"] == "process_name"}
    return bars, arrows, names, processes


def as_first(events, folder):
    """Return bars with the first vector kernel of their task in place of the second, and how many were changed."""
    deps = folder / "deps.json"
    tasks = json.loads(deps.read_text())["tasks"] if deps.exists() else []
    names = next((json.loads(path.read_text()) for path in folder.glob("name_map*.json")), {})
    names = names.get("callable_id_to_name", {})
    pairs = {int(task["task_id"]): task["kernel_ids"][1:] for task in tasks if min(task["kernel_ids"][1:]) >= 0}
    types = json.loads((folder / "chip_swimlane_records.json").read_text())["metadata"]["core_types"]
    changed, found = 0, []
    for event in events:
        hint = event.get("args", {}).get("event-hint", "")
        task = event.get("args", {}).get("taskId")
        if event["ph"] == "X" and task in pairs and "CoreId:" in hint:
            first, second = pairs[task]
            core = int(hint.split("CoreId:")[1].split(",")[0])
            if types[core] == "aiv" and types[:core].count("aiv") % 2:
                assert f"FuncId:{second}," in hint
                assert names[str(second)] in event["name"]
                hint = hint.replace(f"FuncId:{second},", f"FuncId:{first},")
                name = event["name"].replace(names[str(second)], names[str(first)])
                event = event | {"name": name, "args": event["args"] | {"event-hint": hint}}
                changed += 1
        found.append(event)
    return found, changed


def plain(value):
    """Return an argument without rounding errors."""
    if isinstance(value, list):
        return tuple(value)
    return round(value, 6) if isinstance(value, float) else value


def captures(corpus):
    """Return the folders of the producer's captures with a converted swimlane."""
    return sorted(path.parent for path in Path(corpus, "producers/ascend").glob("*/*/merged_swimlane.json"))


def test_swimlanes_are_those_of_the_converter(corpus):
    folders = captures(corpus)
    assert len(folders) > 30
    violations = renamed = 0
    for folder in folders:
        theirs = json.loads((folder / "merged_swimlane.json").read_text())["traceEvents"]
        trace = decode_file(folder / "chip_swimlane_records.json")
        ours, changed = as_first(json.loads(b"".join(export(trace)))["traceEvents"], folder)
        renamed += changed
        for expected, found in zip(projected(theirs), projected(ours), strict=True):
            assert found == expected, folder.parent.name
        assert not [event for event in ours if event["name"] == "hb_violation"]
        violations += sum(event["name"] == "hb_violation" and event["ph"] == "s" for event in theirs)
    # If it finds none any more, the projection need not hide them.
    assert violations == 5
    assert renamed > 100


def arguments(events):
    """Return the arguments, color and category of each bar, by process, lane, name, begin and length."""
    found = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            key = (*lane(event), event["name"], ns(event["ts"]), ns(event["dur"]))
            values = {name: plain(value) for name, value in event.get("args", {}).items()}
            found[key].append((sorted(values.items(), key=str), event.get("cname"), event["cat"]))
    return {key: sorted(values, key=str) for key, values in found.items()}


def test_arguments_of_all_bars_are_those_of_the_converter(corpus):
    met = set()
    for folder in captures(corpus):
        theirs = json.loads((folder / "merged_swimlane.json").read_text())["traceEvents"]
        ours = json.loads(b"".join(export(decode_file(folder / "chip_swimlane_records.json"))))["traceEvents"]
        ours, _ = as_first(ours, folder)
        expected, found = arguments(theirs), arguments(ours)
        assert found.keys() == expected.keys(), folder.parent.name
        for key, values in expected.items():
            assert found[key] == values, (folder.parent.name, key)
        met |= {name for event in theirs if event["ph"] == "X" for name in event.get("args", {})}
    assert {
        "event-hint",
        "predicated_pass",
        "finish_rows_attributed",
        "shared_at_start (aic,aiv,mix)",
        "visible_node_count",
        "bytes",
    } < met
