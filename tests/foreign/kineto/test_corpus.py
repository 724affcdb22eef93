"""Files of others, row by row against a plain reader; every byte accounted for, and no warning on healthy files."""

import gzip
import json
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest

import lanescope
from foreign.kineto.oracle import FILES, arguments, complete, launches, load, ns, unix_ns
from lanescope.analysis import check
from lanescope.wire.trace_events import TraceEventReader


@pytest.fixture(params=FILES)
def file(request, corpus):
    return corpus / "foreign" / f"{request.param}.json.gz"


def texts(table, column):
    return table.column(column).texts.tolist()


def test_every_row_is_that_of_a_plain_reader(file):
    document, trace = load(file), lanescope.open(file)
    slices, epoch = trace.slices, trace.time.epoch_ns
    wanted = [
        (event["name"], event.get("cat", ""), unix_ns(document, event) - epoch, ns(event["dur"]))
        for event in complete(document)
    ]
    found = zip(
        texts(slices, "name"), texts(slices, "category"), slices.values("ts").tolist(), slices.values("dur").tolist(),
        strict=True,
    )  # fmt: skip
    assert list(found) == wanted
    assert min(ts for _, _, ts, _ in wanted) >= 0
    instants = [event for event in document["traceEvents"] if event["ph"] == "i"]
    assert texts(trace.instants, "name") == [event["name"] for event in instants]
    assert trace.instants.values("ts").tolist() == [unix_ns(document, event) - epoch for event in instants]


def test_arguments_are_those_of_a_plain_reader(file):
    document, trace = load(file), lanescope.open(file)
    events = complete(document)
    for table, columns in (
        ("kineto_ops", {"correlation": "correlation", "external_id": "External id", "device": "device"}),
        ("kineto_kernels", {"registers": "registers per thread", "shared_memory": "shared memory"}),
        ("kineto_copies", {"bandwidth": "memory bandwidth (GB/s)"}),
        ("kineto_collectives", {"collective": "Collective name", "in_elements": "In msg nelems", "dtype": "dtype"}),
        ("kineto_python", {"call": "Python id", "parent_call": "Python parent id"}),
    ):
        details = trace.details[table]
        rows = details.values("slice_id")
        for column, key in columns.items():
            values = texts(details, column) if details.column(column).dictionary else details.values(column).tolist()
            known = details.valid(column)
            for row, value, is_known in zip(rows.tolist(), values, known.tolist(), strict=True):
                there = arguments(events[row]).get(key)
                assert (value if is_known else None) == (float(there) if isinstance(there, Decimal) else there)
            if table == "kineto_ops":
                having = sum(isinstance(arguments(event).get(key), int) for event in events)
                assert int(np.count_nonzero(known)) == having


def test_all_arguments_are_the_bytes_of_the_file(file):
    document, trace = load(file), lanescope.open(file)
    events = [event for event in complete(document) if event.get("args") is not None]
    raw = trace.details["kineto_args"].values("args").tolist()
    assert [json.loads(text, parse_float=Decimal, strict=False) for text in raw] == [event["args"] for event in events]


def test_flows_are_the_joins_of_a_plain_reader(file):
    document, trace = load(file), lanescope.open(file)
    flows, names, epoch = trace.flows, texts(trace.slices, "name"), trace.time.epoch_ns
    submit = np.flatnonzero(flows.column("kind").texts == "submit")
    found = [
        (names[src], names[dst], src_ts + epoch, dst_ts + epoch)
        for src, dst, src_ts, dst_ts in zip(
            *(flows.values(name)[submit].tolist() for name in ("src_slice_id", "dst_slice_id", "src_ts", "dst_ts")),
            strict=True,
        )
    ]
    assert found == launches(document)


def test_every_byte_is_accounted_for(file):
    trace = lanescope.open(file)
    row, of_events = trace.accounting.rows()
    assert (of_events["total"], of_events["lost"]) == (row["decoded"], 0)
    assert row["total"] == len(gzip.decompress(file.read_bytes()))
    assert (row["decoded"], row["lost"]) == (row["total"], 0)
    assert not [stat for stat in trace.stats.rows() if stat["severity"] in ("data_loss", "error")]


#: What is wrong with files: a step that ends 13 s after the record.
WARNED = {"triton_example": {"LS102", "KINETO104"}}


def test_healthy_files_have_no_warning(file):
    findings = check.run(lanescope.open(file))
    found = {finding.code for finding in findings if finding.severity != "notice"}
    assert found == WARNED.get(file.name.split(".")[0], set())


def test_any_cut_gives_the_same_columns(file):
    content = gzip.decompress(file.read_bytes())
    if len(content) > 6 << 20:
        pytest.skip("the same columns are tried on smaller files")
    from lanescope.foreign.kineto.formats import layout

    def read(size):
        reader = TraceEventReader(layout.ARGS)
        for begin in range(0, len(content), size):
            reader.feed(content[begin : begin + size])
        return reader.finish()

    whole = read(len(content))
    for size in (977, 65_537):
        cut = read(size)
        for name in ("begin", "size", "ts", "dur", "name", "category", "place", "flags", "args_begin", "args_size"):
            assert np.array_equal(getattr(cut, name), getattr(whole, name))
        assert (cut.names, cut.texts, cut.places) == (whole.names, whole.texts, whole.places)
        assert cut.member_places == whole.member_places
        for name, values in whole.values.items():
            assert np.array_equal(cut.values[name].event, values.event)
            assert np.array_equal(cut.values[name].value, values.value)


def test_phases_of_all_events_are_counted(file):
    document, trace = load(file), lanescope.open(file)
    raw = trace.records["kineto.events"]
    assert Counter(raw.values("phase").tolist()) == Counter(event["ph"] for event in document["traceEvents"])


def test_offsets_of_device_clocks_are_intervals_around_zero(file):
    """The profiler converts device times: no launch and no synchronization of these files contradicts that."""
    rows = list(lanescope.open(file).align().table().rows())
    for row in rows:
        assert row["status"] in ("holds", "one bound"), row
        assert row["least"] is None or row["least"] <= 0
        assert row["most"] is None or row["most"] >= 0
        assert row["forward"] > 0
