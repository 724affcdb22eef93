"""What each verb prints, writes and returns."""

import hashlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import lanescope
from cli.conftest import csv_rows
from error_text import is_one_error
from lanescope._native import core
from lanescope.families import registry
from lanescope.io import parquet
from lanescope.trace import TimeBase, TraceBuilder
from lanescope.view.formatting import format_bytes

# --- info ---------------------------------------------------------------------------------------------------------

INFO = """\
lossy.blink
  format     blinker-1 (blinker), score 95/100: begins with BLNK, version 1
  size       416 bytes
  duration   28.8 s
  time       from 0 to 28,803,898,000 ns, counted from the first event
  contents   4 lanes in 1 group, 26 slices, 36 gaps
  data loss  missing sequence numbers (10)

Byte accounting  unit   total  decoded  padding  lost
───────────────  ─────  ─────  ───────  ───────  ────
lossy.blink      bytes    416      416        0     0

Decode diagnostics
  data loss  blinker_lost      10  {lost}, first at 0x48, 2,468,110,000 ns
  notice     blinker_unpaired  12  {unpaired}, first at 3,119,864,000 ns
"""


def test_a_command_keeps_freed_memory(call, run_file, monkeypatch):
    kept = []
    keep = core.keep_freed_memory
    monkeypatch.setattr(core, "keep_freed_memory", lambda: kept.append(keep()))
    call("info", run_file)
    assert kept == [True]


def test_info_says_what_it_is_and_what_is_lost(call, lossy_file):
    from lanescope.families import registry

    docs = {spec.name: spec.doc for spec in registry.family("blinker").stats}
    done = call("info", "lossy.blink")
    assert done.status == 0
    unpaired, lost = docs["blinker_unpaired"], docs["blinker_lost"]
    assert done.out == INFO.format(unpaired=unpaired, lost=lost)
    assert (
        done.err
        == "lanescope: warning: data loss: missing sequence numbers (10); run 'lanescope check' for locations\n"
    )


def test_files_are_hashed_only_for_formats_that_hold_hashes(call, run_file, monkeypatch):
    monkeypatch.setattr("lanescope.source.file.Digest", None)  # not to be made
    for name in ("out.json", "out.pftrace"):
        assert call("convert", "run.blink", "-o", name).status == 0
    assert call("convert", "run.blink", "-o", "out.parquet").status == 70


def test_files_that_are_written_in_parts_are_hashed_for_their_ids(call, tmp_path, monkeypatch):
    files = lanescope.simulate("aie", **registry.family("aie").simulator.demo).files
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr("lanescope.source.file.Digest", None)  # not to be made
    main = str(tmp_path / next(iter(files)))
    assert call("convert", main, "-o", "aie.json").status == 0
    assert call("convert", main, "-o", "aie.pftrace").status == 70


def test_info_as_json(call, lossy_file):
    done = call("info", "--json", "lossy.blink")
    content = json.loads(done.out)
    assert content["schema"] == "lanescope.info/1"
    assert (content["family"], content["format"]) == ("blinker", "blinker-1")
    assert content["detection"] == {"score": 95, "reason": "begins with BLNK, version 1"}
    assert content["tracks"] == {"group": 1, "lane": 4, "counter": 0}
    trace = lanescope.open(lossy_file)
    assert content["rows"] == {name: len(table) for name, table in trace.tables().items()}
    assert content["inputs"][0]["sha256"] == trace.inputs["sha256"][0]
    assert [row["is_balanced"] for row in content["accounting"]] == [True]
    assert {row["name"]: row["count"] for row in content["stats"]} == {"blinker_lost": 10, "blinker_unpaired": 12}
    ends = trace.slices["ts"] + trace.slices["dur"]
    assert content["time"]["start"] == 0
    assert content["time"]["end"] >= ends.max()


@pytest.mark.parametrize("family", registry.BUILTIN)
def test_info_hashes_files_only_where_it_prints_hashes(call, tmp_path, monkeypatch, family):
    files = lanescope.simulate(family, **registry.family(family).simulator.demo).files
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    main, content = next(iter(files.items()))
    with monkeypatch.context() as patch:
        patch.setattr("lanescope.source.file.Digest", None)  # not to be made
        assert call("info", main).status == 0
    inputs = json.loads(call("info", "--json", main).out)["inputs"]
    assert inputs[0]["sha256"] == hashlib.sha256(content).hexdigest()


def test_strict_turns_loss_into_exit_4(call, run_file, lossy_file):
    for verb in (["info"], ["summary"], ["sql"], ["convert", "-o", "a.pftrace"], ["convert", "-o", "b.parquet"]):
        assert call(*verb, "--strict", "--force", "run.blink").status == 0 if verb[0] == "convert" else True
        assert call(verb[0], "run.blink", *verb[1:], *(["--force"] if verb[0] == "convert" else [])).status == 0
        done = call(verb[0], "lossy.blink", *verb[1:], "--strict", *(["--force"] if verb[0] == "convert" else []))
        assert done.status == 4
        assert "data loss" in done.err.splitlines()[-1]


# --- check --------------------------------------------------------------------------------------------------------


def test_check_fails_at_the_severity_that_the_user_names(call, run_file, lossy_file):
    assert call("check", "lossy.blink").status == 1
    assert call("check", "lossy.blink", "--fail-on", "error").status == 0
    assert call("check", "lossy.blink", "--fail-on", "never").status == 0
    assert call("check", "lossy.blink", "--fail-on", "notice", "--select", "LS103").status == 1
    assert call("check", "lossy.blink", "--fail-on", "warning", "--select", "LS103").status == 0
    assert call("check", "lossy.blink", "--ignore", "LS0,LS1,LS4").status == 0
    assert call("check", "lossy.blink", "--strict").status == 4, "loss wins over findings"


def test_check_as_json(call, lossy_file):
    content = json.loads(call("check", "lossy.blink", "--json", "--select", "LS002").out)
    assert content["schema"] == "lanescope.check/1"
    assert [finding["code"] for finding in content["findings"]] == ["LS002"]
    assert content["rules"] == ["LS002"]


def test_check_explains_a_rule(call):
    done = call("check", "--explain", "LS002")
    assert done.status == 0
    assert done.out.startswith("LS002 ")
    assert "help: " in done.out


# --- summary ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["name", "lane", "device", "category"])
def test_summary_adds_up_to_the_slices(call, run_file, by):
    content = json.loads(call("summary", "run.blink", "--by", by, "--json").out)
    slices = lanescope.open(run_file).slices
    assert content["schema"] == "lanescope.summary/1"
    unit = content["unit"]
    assert sum(row[f"total_{unit}"] for row in content["rows"]) == slices["dur"].sum()
    assert sum(row["count"] + row["unfinished"] for row in content["rows"]) == len(slices)


def test_summary_off_a_terminal_is_the_same_text_with_all_columns(call, run_file):
    about, empty, head, rule, *rows = call("summary", "run.blink", "--by", "lane").out.splitlines()
    assert (about, empty) == ("run.blink: 7.27 s, 4 lanes, 12 slices", "")
    assert head.split() == ["lane", "count", "unfinished", "total", "min", "median", "p99", "max", "share"]
    assert set(rule) == {"─", " "}
    assert len(rows) == 4
    assert all(row.endswith("%") for row in rows)
    assert len(call("summary", "run.blink", "--by", "lane", "--limit", 2).out.splitlines()) == 6


def test_summary_as_csv_is_exact(call, run_file):
    content = json.loads(call("summary", "run.blink", "--by", "lane", "--json").out)
    head, *rows = csv_rows(call("summary", "run.blink", "--by", "lane", "--csv").out)
    assert ["id", *head] == list(content["rows"][0])
    shown = [["" if row[name] is None else str(row[name]) for name in head] for row in content["rows"]]
    assert rows == shown


# --- sql ----------------------------------------------------------------------------------------------------------


def test_sql_answers_over_core_and_detail_tables(call, run_file):
    query = (
        "select t.name, count(*) as n, coalesce(sum(s.dur), 0) as total from slices s"
        " join tracks t on t.id = s.track_id join blinker_changes c on c.slice_id = s.id group by 1 order by 1"
    )
    slices = lanescope.open(run_file)
    lanes = slices.tracks["name"][slices.slices["track_id"]]
    expected = [
        [lane, str((lanes == lane).sum()), str(slices.slices.values("dur")[lanes == lane].sum())]
        for lane in sorted(set(lanes))
    ]
    assert csv_rows(call("sql", "run.blink", "--csv", query).out) == [["name", "n", "total"], *expected]
    shown = call("sql", "run.blink", query).out.replace(",", "").splitlines()
    assert [line.rsplit(maxsplit=2) for line in shown[2:-1]] == expected
    assert shown[-1] == f"{len(expected)} rows 3 columns"
    content = json.loads(call("sql", "run.blink", query, "--json").out)
    assert content["schema"] == "lanescope.sql/1"
    assert content["columns"][1:] == [{"name": "n", "type": "BIGINT"}, {"name": "total", "type": "HUGEINT"}]
    assert [list(map(str, row)) for row in content["rows"]] == expected


def test_sql_without_a_query_lists_what_there_is(call, run_file):
    rows = csv_rows(call("sql", "run.blink", "--csv").out)
    assert rows[0] == ["table", "column", "type", "unit", "meaning"]
    assert ["slices", "ts", "int64", "ns"] in [row[:4] for row in rows]
    assert "blinker_changes" in {row[0] for row in rows}


def test_sql_values_of_every_kind(call, run_file):
    query = (
        "select null as nothing, true as yes, 1.5::decimal(4, 2) as number, 'nan'::double as none, 18446744073709551615"
        "::ubigint as id, [1, 2] as list, {'a': 1} as record, 'x\ty\x1b' as text, '\\xff'::blob as bytes,"
        " date '2026-01-02' as day, interval 1 day as span, 170141183460469231731687303715884105727 as large"
    )
    done = call("sql", "run.blink", query, "--csv")
    assert done.status == 0
    values = dict(zip(*csv_rows(done.out), strict=True))
    assert (values["nothing"], values["yes"], values["number"], values["none"]) == ("", "true", "1.50", "nan")
    assert (values["id"], values["text"]) == ("18446744073709551615", "x\ty\x1b")
    content = json.loads(call("sql", "run.blink", query, "--json").out)
    values = dict(zip([column["name"] for column in content["columns"]], content["rows"][0], strict=True))
    assert (values["nothing"], values["yes"], values["number"], values["none"]) == (None, True, "1.50", "nan")
    assert (values["id"], values["list"], values["record"]) == ("18446744073709551615", [1, 2], {"a": 1})
    assert values["large"] == 2**127 - 1


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("selec 1", 'invalid query: Parser Error: syntax error at or near "selec"'),
        ("select nope from slices", 'invalid query: Binder Error: Referenced column "nope" not found'),
        ("select * from nope", "unknown table 'nope' (did you mean "),
        ("select * from read_csv('/etc/passwd')", "invalid query: Permission Error"),
        ("copy slices to 'out.csv'", "invalid query: Permission Error"),
        ("attach 'x.db'", "invalid query: Permission Error"),
        ("install httpfs", "invalid query: Permission Error"),
        ("set enable_external_access = true", "invalid query: Invalid Input Error"),
        ("select 1/0::int::varchar::date", "invalid query: "),
        ("select timestamptz '2026-01-01'", ""),
    ],
)
def test_sql_that_fails_is_one_line(call, run_file, tmp_path, query, message):
    done = call("sql", "run.blink", query)
    if not message and done.status == 0:
        return  # a package that converts such times is installed
    assert done.status == 2
    assert done.err.startswith(f"lanescope: error: {message}")
    assert is_one_error(done.err)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("query", ["", ";", "-- nothing", "create temp table x as select 1"])
def test_sql_without_an_answer_is_fine(call, run_file, query):
    done = call("sql", "run.blink", query)
    assert (done.status, done.err) == (0, "")


def test_python_variables_are_out_of_reach_of_a_query(call, run_file):
    done = call("sql", "run.blink", "select * from trace")
    assert done.status == 2


# --- convert ------------------------------------------------------------------------------------------------------


def test_convert_writes_what_the_suffix_says(call, run_file, tmp_path):
    for name in ("a.pftrace", "a.json", "a.json.gz", "a.parquet"):
        done = call("convert", "run.blink", "-o", name)
        assert (done.status, done.out) == (0, ""), done.err
        assert done.err.startswith(f"wrote {name} (")
        assert "12 slices" in done.err
    events = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    assert sum(event["ph"] in ("X", "B") for event in events) == 12
    assert (tmp_path / "a.json.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert list(parquet.read(tmp_path / "a.parquet").slices.rows()) == list(lanescope.open(run_file).slices.rows())
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_convert_replaces_nothing_unless_told(call, run_file, tmp_path):
    out = tmp_path / "a.pftrace"
    out.write_text("precious")
    done = call("convert", "run.blink", "-o", "a.pftrace")
    assert (done.status, done.err) == (
        2,
        "lanescope: error: a.pftrace already exists\n  hint: use --force to overwrite\n",
    )
    assert out.read_text() == "precious"
    assert call("convert", "run.blink", "-o", "a.pftrace", "--force").status == 0
    assert out.read_bytes()[:1] == b"\x0a"


def test_convert_never_replaces_its_input(call, run_file, tmp_path):
    (tmp_path / "link.pftrace").symlink_to(run_file)
    before = run_file.read_bytes()
    for out in ("link.pftrace", "run.blink"):
        done = call("convert", "run.blink", "-o", out, "--format", "perfetto", "--force")
        assert (done.status, done.err) == (2, f"lanescope: error: {out} is an input\n  hint: write to another file\n")
    assert run_file.read_bytes() == before


def test_convert_writes_through_links_and_leaves_devices_alone(call, run_file, tmp_path):
    (tmp_path / "target.bin").write_text("old")
    (tmp_path / "out.pftrace").symlink_to("target.bin")
    assert call("convert", "run.blink", "-o", "out.pftrace", "--force").status == 0
    assert (tmp_path / "out.pftrace").is_symlink()
    assert (tmp_path / "target.bin").read_bytes()[:1] == b"\x0a"
    done = call("convert", "run.blink", "-o", "/dev/null", "--format", "perfetto", "--force")
    assert (done.status, "is a device or a pipe" in done.err) == (2, True)
    os.mkfifo(tmp_path / "pipe.pftrace")
    assert call("convert", "run.blink", "-o", "pipe.pftrace", "--force").status == 2


def test_convert_leaves_folders_alone_that_it_did_not_write(call, run_file, tmp_path):
    (tmp_path / "a.parquet").mkdir()
    (tmp_path / "a.parquet/precious").touch()
    done = call("convert", "run.blink", "-o", "a.parquet", "--force")
    assert (done.status, "is a directory not written by lanescope" in done.err) == (2, True)
    assert (tmp_path / "a.parquet/precious").exists()
    assert call("convert", "run.blink", "-o", "nowhere/a.pftrace").err == (
        f"lanescope: error: output directory '{tmp_path}/nowhere' does not exist\n"
        "  hint: run mkdir first, or use another path\n"
    )


def test_convert_to_standard_output(shell, run_file, tmp_path, plugin_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(plugin_path)}
    command = [sys.executable, "-m", "lanescope", "convert", "run.blink", "-o"]
    piped = subprocess.run(
        [*command, "-", "--format", "perfetto"], cwd=tmp_path, env=environment, capture_output=True, check=True
    )
    subprocess.run([*command, "a.pftrace"], cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert piped.stdout == (tmp_path / "a.pftrace").read_bytes()


def test_what_convert_wrote_as_parquet_can_be_opened_again(call, lossy_file):
    assert call("convert", "lossy.blink", "-o", "a.parquet").status == 0
    direct, again = (json.loads(call("info", "--json", name).out) for name in ("lossy.blink", "a.parquet"))
    assert again["rows"] == direct["rows"]
    assert again["accounting"] == direct["accounting"]
    assert again["detection"]["reason"] == "a folder of Parquet files that lanescope wrote"
    again, direct = (call("summary", name).out for name in ("a.parquet", "lossy.blink"))
    assert again == direct.replace("lossy.blink", "a.parquet")
    assert call("info", "a.parquet", "-O", "lamps=a").status == 2


def unix(name, epoch_ns, folder):
    """Write a folder of a trace that counts from the Unix epoch."""
    builder = TraceBuilder(TimeBase(epoch_ns=epoch_ns, epoch_kind="unix"))
    main = builder.input(capture=name, path=name, size=1, sha256=name, family="toy", format="v1")
    builder.add_accounting(input_id=main, layer=0, unit="byte", unit_bytes=1, total=1, decoded=1)
    lane = builder.track("core 0", kind="lane", role="core", input_id=main)
    builder.append("slices", track_id=lane, ts=[0, 10], dur=[5, 5], name=["a", "b"])
    parquet.write(builder.finish(), folder / f"{name}.parquet")


def test_convert_merges_captures_on_a_common_clock(call, tmp_path):
    unix("late", 1_000, tmp_path)
    unix("early", 400, tmp_path)
    done = call("convert", "late.parquet", "early.parquet", "-o", "both.parquet")
    assert done.status == 0
    assert done.err.splitlines()[:2] == [
        "late.parquet: starts at 600 ns",
        "early.parquet: starts at 0 ns (clock: unix, error at most 0 ns)",
    ]
    merged = parquet.read(tmp_path / "both.parquet")
    assert merged.slices["ts"].tolist() == [600, 610, 0, 10]
    assert merged.time.epoch_ns == 400


def test_convert_refuses_what_has_no_common_clock(call, run_file, lossy_file):
    done = call("convert", "run.blink", "lossy.blink", "-o", "both.pftrace")
    assert (done.status, is_one_error(done.err)) == (2, True)
    assert "have no common clock\n  hint: use --side-by-side for a time axis each" in done.err
    done = call("convert", "run.blink", "run.blink", "-o", "both.pftrace")
    assert (
        done.err == "lanescope: error: cannot merge: run.blink and run.blink are the same capture\n"
        "  hint: pass each capture once\n"
    )
    done = call("convert", "run.blink", "lossy.blink", "-o", "both.pftrace", "-O", "nope=1")
    assert done.err == "lanescope: error: unknown option 'nope' (available: lamps)\n"
    assert call("convert", "-", "-", "-o", "both.pftrace").err == (
        "lanescope: error: standard input is specified twice\n  hint: use - once\n"
    )


# --- sim ----------------------------------------------------------------------------------------------------------


def test_sim_is_repeatable_and_writes_the_truth(call, tmp_path):
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        done = call("sim", "blinker", "--seed", seed, "--changes", 30, "-o", f"{name}.blink")
        assert (done.status, done.out) == (0, "")
        assert done.err.splitlines() == [
            f"wrote {file} ({format_bytes(Path(file).stat().st_size)})"
            for file in (f"{name}.blink", f"{name}.blink.truth.json")
        ]
    a, b, c = ((tmp_path / f"{name}.blink").read_bytes() for name in "abc")
    assert a == b != c
    assert "spans" in json.loads((tmp_path / "a.blink.truth.json").read_text())


def test_sim_replaces_nothing_unless_told(call, tmp_path):
    (tmp_path / "a.blink").write_text("precious")
    assert call("sim", "blinker", "-o", "a.blink").err == (
        "lanescope: error: a.blink already exists\n  hint: use --force to overwrite\n"
    )
    assert (tmp_path / "a.blink").read_text() == "precious"
    assert call("sim", "blinker", "-o", "a.blink", "--force").status == 0
    (tmp_path / "folder").mkdir()
    assert call("sim", "blinker", "-o", "folder").status == 0
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == ["run.blink", "truth.json"]


def test_sim_takes_options_before_and_after_the_family(call):
    assert call("sim", "--seed", 3, "blinker", "--changes", 4, "-o", "a.blink").status == 0
    assert call("sim", "--changes", 4, "-o", "b.blink", "blinker", "--seed", 3).status == 0
    assert call("sim", "blinker", "-O", "changes=4", "--seed", 3, "-o", "c.blink").status == 0


# --- doctor and demo ----------------------------------------------------------------------------------------------


def test_doctor_knows_what_is_here(call):
    content = json.loads(call("doctor", "--json").out)
    states = {row["what"]: row["state"] for row in content["rows"]}
    versions = {row["what"]: row["version"] for row in content["rows"]}
    assert content["schema"] == "lanescope.doctor/1"
    assert versions["lanescope"] == lanescope.__version__
    assert versions["duckdb"] == duckdb.__version__
    assert states["native core"] == states["family blinker"] == "ok"


def test_demo_shows_the_captures_of_a_folder(call, run_file, lossy_file, tmp_path):
    (tmp_path / "words.txt").write_text("no capture")
    (tmp_path / "demo").mkdir()
    done = call("demo", "--corpus", ".", "-o", "demo")
    assert done.status == 0, done.err
    assert "== run.blink: blinker, blinker-1: 12 slices" in done.out
    assert "== lossy.blink: " in done.out
    assert "https://ui.perfetto.dev" in done.out
    assert {path.name for path in (tmp_path / "demo").iterdir()} >= {"run.pftrace", "lossy.pftrace"}
    assert call("demo", "--corpus", "nowhere").status == 2
    (tmp_path / "empty").mkdir()
    assert call("demo", "--corpus", "empty", "-o", "demo").status == 3


# --- terminals ----------------------------------------------------------------------------------------------------


def on_a_terminal(folder, plugin_path, *arguments, **environment):
    """Return what a command writes to a terminal of 200 columns."""
    main, replica = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "lanescope", *arguments],
        cwd=folder,
        stdin=replica,
        stdout=replica,
        stderr=replica,
        env={
            **{name: value for name, value in os.environ.items() if name != "NO_COLOR"},
            "PYTHONPATH": os.pathsep.join(plugin_path),
            "TERM": "xterm-256color",
            "COLUMNS": "200",
            **environment,
        },
    )
    os.close(replica)
    pieces = []
    try:
        while piece := os.read(main, 65536):
            pieces.append(piece)
    except OSError:
        pass  # Linux's way to say that the other end is closed
    os.close(main)
    assert child.wait(60) == 0
    return b"".join(pieces).decode()


def test_tables_are_drawn_on_a_terminal(plugin_path, run_file):
    shown = on_a_terminal(run_file.parent, plugin_path, "summary", "run.blink", "--by", "lane")
    assert "\x1b[1m" in shown
    assert "blinker/lamp 0" in shown
    plain = on_a_terminal(run_file.parent, plugin_path, "summary", "run.blink", "--by", "lane", NO_COLOR="1")
    assert "\x1b" not in plain
    dumb = on_a_terminal(run_file.parent, plugin_path, "summary", "run.blink", "--by", "lane", TERM="dumb")
    assert dumb.splitlines()[2].startswith("lane ")
    assert "\x1b" not in dumb


def test_names_from_a_trace_do_nothing_to_a_terminal(plugin_path, run_file):
    query = "select e'\\x1b]0;owned\\x07[red]x[/red]' as \"[bold]n\x1b[2J\""
    shown = on_a_terminal(run_file.parent, plugin_path, "sql", "run.blink", query, NO_COLOR="1")
    assert "\\x1b]0;owned\\x07[red]x[/red]" in shown
    assert "[bold]n\\x1b[2J" in shown
    assert "\x07" not in shown
    assert "\x1b[2J" not in shown
    assert "\x1b]" not in shown
