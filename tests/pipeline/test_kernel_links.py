"""What kernels recorded lies inside the executions that another tool saw of them, where no clock joins the two."""

import json
import re

import numpy as np
import pytest

import lanescope
from lanescope.cli import main
from lanescope.errors import MergeError, UsageError
from lanescope.families import KernelSpans, registry
from lanescope.families.family import Family, Format
from lanescope.pipeline import session
from lanescope.testing import assert_consistent
from lanescope.trace import TimeBase, TraceBuilder

UNIX = TimeBase(epoch_ns=1_700_000_000_000_000_000, epoch_kind="unix")
#: How long the kernel ran before and after what it recorded.
BEFORE, AFTER = 3_000, 1_000
#: Options of the simulator for three launches in one buffer.
LAUNCHES = {"tiles": 2, "blocks": 4, "stale": 4, "launches": 2, "apart": 70_000}


def executions(*rows):
    """A trace of a host's tool: kernels of one stream, as (begin, end, name)."""
    made = TraceBuilder(UNIX)
    main = made.input(capture="host", path="host.json", size=0, sha256="host", family="host", format="h")
    made.add_accounting(input_id=main, layer=0, unit="byte", unit_bytes=1, total=0, decoded=0)
    device = made.track("GPU 0", kind="group", role="device")
    stream = made.track("stream 7", kind="lane", role="queue", parent=device, input_id=main, sort_key=7)
    made.track("stream 8", kind="lane", role="queue", parent=device, input_id=main, sort_key=8)
    begin, end, names = zip(*rows, strict=True)
    begin, end = np.array(begin), np.array(end)
    made.append("slices", track_id=stream, ts=begin, dur=end - begin, name=list(names))
    return made.finish()


def kernels(trace):
    slices = trace.slices
    return KernelSpans(
        slices.values("id"), slices.values("track_id"), slices.values("ts"), slices.values("ts") + slices.values("dur"),
        slices.values("name"),
    )  # fmt: skip


@pytest.fixture(autouse=True)
def host(monkeypatch):
    """A family whose traces have kernels."""
    of_the_tree = registry.family
    form = Format("h", detect=lambda head: None, decode=lambda capture, options: None)
    toy = Family("host", "a tool of the host", (form,), kernels=kernels)
    monkeypatch.setattr(registry, "family", lambda name: toy if name == "host" else of_the_tree(name))


@pytest.fixture(scope="module")
def launches(tmp_path_factory):
    """Three launches in one buffer, and how long from the first record of all to the begins and ends of each."""
    folder = tmp_path_factory.mktemp("launches")
    made = lanescope.simulate("cuda", 3, **LAUNCHES)
    for name, content in made.files.items():
        (folder / name).write_bytes(content)
    path = folder / next(iter(made.files))
    trace = lanescope.open(path, stale="keep")
    spans = registry.family("cuda").launches(trace)
    assert len(spans.begin) == 3
    return trace, spans.begin, spans.end


def around(begin, end, *, at=1_000_000, name="matmul"):
    return [(b + at - BEFORE, e + at + AFTER, name) for b, e in zip(begin.tolist(), end.tolist(), strict=True)]


def test_launches_are_put_inside_their_kernels_within_the_stated_error(launches):
    trace, begin, end = launches
    outer = executions(*around(begin, end), (500_000, 500_900, "copy"))
    first, second = session.align([outer, trace])
    assert (first.shift, second.error_ns) == (0, 2_000)
    assert abs(second.shift - 1_000_000) <= second.error_ns
    assert second.clock == "kernels matmul of host.json"
    merged = session.merge([outer, trace])
    assert_consistent(merged)
    tracks = {row["id"]: row for row in merged.tracks.rows()}
    stream = next(row for row in tracks.values() if row["name"] == "stream 7")
    group = next(row for row in tracks.values() if row["name"] == "inside matmul (±2,000 ns)")
    assert (group["parent_id"], group["sort_key"]) == (stream["parent_id"], 7)
    arrows = [row for row in merged.flows.rows() if row["kind"] == "dispatch"]
    assert [merged.slices["name"][row["src_slice_id"]] for row in arrows] == ["matmul"] * 3
    assert all(row["src_ts"] <= row["dst_ts"] for row in arrows)
    assert [found.code for found in lanescope.check(merged) if found.stat == "kernel_placed_capture"] == ["LS305"]


@pytest.mark.parametrize("is_first", [False, True])
def test_the_order_of_the_captures_does_not_matter(launches, is_first):
    trace, begin, end = launches
    outer = executions(*around(begin, end))
    given = [trace, outer] if is_first else [outer, trace]
    merged = session.merge(given)
    assert_consistent(merged)
    rows = merged.slices
    inner = rows.values("name") != "matmul"
    placed = session.align(given)
    assert abs(placed[1 - is_first].shift - placed[is_first].shift - 1_000_000) <= 2_000
    lowest = rows.values("ts")[~inner].min()
    assert rows.values("ts")[inner].min() - lowest == 2_000
    assert merged.time.epoch_kind == "unix"


def test_regular_launches_that_fit_several_kernels_are_refused_until_the_user_says_which(launches):
    trace, begin, end = launches
    apart = int(begin[1] - begin[0])
    rows = around(begin, end)
    more = [(b + (at + 1) * 10 * apart, e + (at + 1) * 10 * apart, name) for at in range(2) for b, e, name in rows]
    outer = executions(*rows, *more)
    with pytest.raises(MergeError, match="fit several kernels: matmul#0, matmul#3, matmul#6") as refused:
        session.merge([outer, trace])
    assert "--inside NAME" in refused.value.hint
    assert max(place.axis for place in session.align([outer, trace], side_by_side=True)) == 1
    placed = session.align([outer, trace], inside="matmul#3")
    assert abs(placed[1].shift - 1_000_000 - 10 * apart) <= 2_000
    with pytest.raises(UsageError, match="no kernel has 'conv' in its name \\(there are matmul\\)"):
        session.merge([outer, trace], inside="conv")
    with pytest.raises(UsageError, match="no kernel has 'matmul#x' in its name"):
        session.merge([outer, trace], inside="matmul#x")
    with pytest.raises(MergeError, match="do not fit the kernels 'matmul#8'"):
        session.merge([outer, trace], inside="matmul#8")


def test_a_choice_of_kernels_needs_kernels_and_launches(launches):
    trace, begin, end = launches
    outer, other = executions(*around(begin, end)), executions(*around(begin, end, name="conv"))
    with pytest.raises(UsageError, match="the captures contain no launches that kernels recorded"):
        session.merge([outer, other], inside="conv")
    with pytest.raises(UsageError, match="the captures contain no kernels that a tool of the host saw"):
        session.merge([trace, trace], inside="conv")


def test_kernels_that_cannot_hold_the_launches_leave_them_without_a_clock(launches):
    trace, begin, end = launches
    outer = executions(*around(begin[:2], end[:2]))
    with pytest.raises(MergeError, match="no common clock"):
        session.merge([outer, trace])


def test_lanes_on_clocks_of_their_own_are_not_placed(tmp_path):
    made = lanescope.simulate("cuda", layout="ls2", clock64=True, blocks=4, tiles=2)
    for name, content in made.files.items():
        (tmp_path / name).write_bytes(content)
    trace = lanescope.open(tmp_path / next(iter(made.files)))
    assert registry.family("cuda").launches(trace) is None


def kineto(begin, end, *, at_ns):
    """A file of the PyTorch profiler around the launches: each kernel begins 2 µs before them and ends 3 µs behind."""
    rows = [{"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}}]
    for number, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        ts, dur = first + at_ns - 2_000, last - first + 5_000
        rows.append(
            {"ph": "X", "cat": "kernel", "name": "attention_kernel", "pid": 0, "tid": 7, "ts": ts, "dur": dur,
             "args": {"correlation": number, "stream": 7, "device": 0}}
        )  # fmt: skip
    text = json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 7_889_238 * 10**9, "traceEvents": rows})
    return re.sub(r'"(ts|dur)": (\d+)(\d{3})', r'"\1": \2.\3', text)


def test_markers_lie_inside_the_kernels_of_a_pytorch_trace(launches, tmp_path, capsys):
    _, begin, end = launches
    (tmp_path / "host.json").write_text(kineto(begin, end, at_ns=5_000_000))
    made = lanescope.simulate("cuda", 3, **LAUNCHES)
    for name, content in made.files.items():
        (tmp_path / name).write_bytes(content)
    buffer = str(tmp_path / next(iter(made.files)))
    out = tmp_path / "both.pftrace"
    assert main(["convert", str(tmp_path / "host.json"), buffer, "--stale", "keep", "-o", str(out)]) == 0
    err = capsys.readouterr().err
    assert main(["convert", buffer, "--inside", "attention", "-o", str(tmp_path / "one.pftrace")]) == 2
    assert "--inside places one capture inside another" in capsys.readouterr().err
    assert f"{buffer}: starts at " in err
    assert "clock: kernels attention_kernel of" in err
    assert "error at most 2,500 ns" in err
    both = lanescope.merge([lanescope.open(tmp_path / "host.json"), lanescope.open(buffer, stale="keep")])
    assert_consistent(both)
    spans = both.slices
    kernels = np.flatnonzero(spans.values("category") == "kernel")
    for row in both.flows.rows():
        if row["src_slice_id"] in kernels:
            assert spans.values("ts")[row["src_slice_id"]] <= row["dst_ts"]
    inside = [row for row in both.tracks.rows() if row["name"] == "inside attention_kernel (±2,500 ns)"]
    assert len(inside) == 1
