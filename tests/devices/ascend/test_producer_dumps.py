"""Raw dumps that the runtime's own collector wrote, against the JSON file that it wrote of the same run."""

import gzip
import json

import numpy as np
import pytest

import lanescope
from devices.ascend.helpers import decode
from lanescope import cli
from lanescope.analysis import check
from lanescope.devices.ascend.family import FAMILY
from lanescope.devices.ascend.formats.device_dump import read_dump
from lanescope.errors import InputError
from lanescope.source import CERTAIN, HEAD_BYTES, MINE, FileHead

#: Bytes of a ready entry, and of the buffer behind it by the number of its stream; of the header and the pools by chip.
ENTRY, BUFFERS = 32, (32064, 1048640, 524352, 32832)
HEADERS = {50_000_000: (127168, 4), 1_000_000_000: (233152, 5)}
ROWS = {
    "aicore_tasks": (
        "core_id",
        "task_token_raw",
        "reg_task_id",
        "start_cycles",
        "end_cycles",
        "receive_to_start_cycles",
    ),
    "aicpu_tasks": ("core_id", "reg_task_id", "dispatch_cycles", "finish_cycles"),
}
NESTED = ("aicpu_scheduler_phases", "aicpu_orchestrator_phases")


@pytest.fixture(scope="module")
def runs(corpus):
    """The dumps of the corpus and what the collector said of the same runs: name, bytes, JSON."""
    found = []
    for path in sorted((corpus / "producers/ascend/raw").glob("*.bin.gz")):
        name = path.name.removesuffix(".bin.gz")
        (told,) = (corpus / "producers/ascend" / name).glob("*/chip_swimlane_records.json")
        found.append((path, gzip.decompress(path.read_bytes()), json.loads(told.read_bytes())))
    assert len(found) >= 2
    return found


def expected(told):
    """Return the rows of a records file by list: [(inner list, {name: value})]."""
    rows = {
        name: [(0, dict(zip(names, row, strict=True))) for row in told.get(name, [])] for name, names in ROWS.items()
    }
    for name in NESTED:
        rows[name] = [(place, row) for place, inner in enumerate(told.get(name, [])) for row in inner]
    return rows


def written(records):
    """Return the rows of a decoded dump as ``expected`` does."""
    found = {}
    for name in (*ROWS, *NESTED):
        rows = records.sections.get(name)
        found[name] = []
        for row in range(0 if rows is None else len(rows)):
            cells = [cell for cell in rows.layout.cells if rows.has(cell.name)[row]]
            values = {cell.name: rows[cell.name][row].tolist() for cell in cells}
            values |= {cell.name: rows.texts[values[cell.name]] for cell in cells if cell.kind == "text"}
            found[name].append((int(rows.group[row]), values))
    return found


def region_bytes(told):
    """Return the bytes of header and pools: pools of the cores in use, and of all threads of the chip."""
    header, threads = HEADERS[told["metadata"]["clock_freq_hz"]]
    return header + 192 * (2 * told["metadata"]["num_cores"] + 2 * threads)


def buffers(content, begin):
    """Yield stream, core or thread, and bytes of each buffer."""
    while begin < len(content):
        index, stream = content[begin], content[begin + 4]
        end = begin + ENTRY + BUFFERS[stream]
        yield stream, index, content[begin + ENTRY : end]
        begin = end
    assert begin == len(content)


def dumped(content, **options):
    return read_dump(np.frombuffer(content, np.uint8), "dump.bin", options)


def test_every_row_of_a_dump_is_that_of_the_collector(runs):
    for _, content, told in runs:
        found = dumped(content)
        assert written(found) == expected(told)
        metadata = told["metadata"]
        assert found.level == told["chip_swimlane_level"]
        assert found.metadata == {
            name: metadata[name] for name in ("clock_freq_hz", "num_cores", "core_to_thread") if name in metadata
        }


def test_nothing_of_a_dump_is_lost(runs, capsys):
    for path, content, told in runs:
        assert cli.main(["info", str(path)]) == 0
        printed = capsys.readouterr()
        assert ("data_loss" in printed.out, "lost before" in printed.err, "data loss" in printed.err) == (False,) * 3
        trace = decode(content, name="dump.bin")
        assert {row["lost"] for row in trace.accounting.rows()} == {0}
        assert not {row["severity"] for row in trace.stats.rows()} & {"data_loss", "error"}
        assert [one.code for one in check.run(trace) if one.severity != "notice"] == []
        counted = {
            (row["stream"], row["index"]): (row["attempted"], row["collected"])
            for row in trace.details["ascend_record_streams"].rows()
        }
        rows = expected(told)
        assert sum(attempted for attempted, _ in counted.values()) == sum(map(len, rows.values()))
        assert all(attempted == collected for attempted, collected in counted.values())


def test_task_graphs_beside_a_dump_name_tasks_of_a_single_function(runs, tmp_path):
    # A dump does not say of what type a core is; which function such a task ran is known without it.
    for path, content, _ in runs:
        (graph,) = (path.parent.parent / path.name.removesuffix(".bin.gz")).glob("*/deps.json")
        used = {
            int(task["task_id"]): [kernel for kernel in task["kernel_ids"] if kernel >= 0]
            for task in json.loads(graph.read_bytes())["tasks"]
        }
        assert {len(kernels) for kernels in used.values()} == {1}
        (tmp_path / "deps.json").write_bytes(graph.read_bytes())
        dump = tmp_path / path.name.removesuffix(".gz")
        dump.write_bytes(content)
        labels = {row["task_id"]: row["label"] for row in lanescope.open(dump).details["ascend_tasks"].rows()}
        assert len(labels) == 5
        for task, label in labels.items():
            (kernel,) = used[task]
            assert label.startswith(f"func_{kernel}_{'abc'[kernel]}(")


def test_entries_and_buffers_without_the_header_hold_the_same_rows(runs):
    for _, content, told in runs:
        alone = content[region_bytes(told) :]
        match = FAMILY.detect(FileHead(alone[:HEAD_BYTES], len(alone), "dump.bin"))
        assert (match.score >= MINE, match.format) == (True, "dump")
        found = dumped(alone)
        assert written(found) == expected(told)
        assert found.accounts[2] == 0
        assert decode(alone, name="dump.bin", frequency=told["metadata"]["clock_freq_hz"]).accounting["lost"].sum() == 0


def test_bare_buffers_need_a_core_or_one_lane(runs):
    for _, content, told in runs:
        by_lane, by_stream = {}, {}
        for stream, index, part in buffers(content, region_bytes(told)):
            by_lane[stream, index] = by_lane.get((stream, index), b"") + part
            by_stream.setdefault(stream, set()).add(index)
        lists = dict(enumerate(("aicpu_tasks", "aicpu_scheduler_phases", "aicpu_orchestrator_phases", "aicore_tasks")))
        for (stream, index), bare in by_lane.items():
            match = FAMILY.detect(FileHead(bare[:HEAD_BYTES], len(bare), "dump.bin"))
            assert (match.score >= MINE, match.format) == (True, "dump")
            name = lists[stream]
            rows = [(group, row) for group, row in expected(told)[name] if row.get("core_id", group) == index]
            found = dumped(bare, index=index)
            assert written(found)[name] == rows
            # The other lists are in other files: they are not lost.
            trace = decode(bare, name="dump.bin")
            assert trace.accounting["lost"].sum() == 0
            assert not {row["severity"] for row in trace.stats.rows()} & {"data_loss", "error"}
        for stream, indexes in by_stream.items():
            if len(indexes) > 1:
                with pytest.raises(InputError, match="several cores or threads"):
                    dumped(b"".join(by_lane[stream, index] for index in sorted(indexes, reverse=True)))
        mixed = b"".join(by_lane.values())
        with pytest.raises(InputError, match="of several streams"):
            dumped(mixed)
        assert FAMILY.detect(FileHead(mixed[:HEAD_BYTES], len(mixed), "dump.bin")).advice


def test_dumps_are_recognised_for_certain(runs):
    for _, content, _ in runs:
        match = FAMILY.detect(FileHead(content[:HEAD_BYTES], len(content), "dump.bin"))
        assert (match.score >= CERTAIN, match.format) == (True, "dump")
