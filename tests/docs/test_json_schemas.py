"""The published JSON Schemas are what the declarations make, and what commands print is valid under them."""

import importlib.util
import json
import re
import shutil
from pathlib import Path

import pytest

import lanescope
from lanescope.cli import main
from lanescope.families import registry
from published_schemas import FOLDER, errors

ROOT = Path(__file__).parents[2]
FAMILIES = ("aie", "ascend", "cuda", "levelzero", "chrome", "perfetto", "kineto")


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    """Return a small capture of each family."""
    folder = tmp_path_factory.mktemp("captures")
    made = {}
    for family in ("aie", "ascend", "cuda", "levelzero"):
        options = dict(registry.family(family).simulator.demo)
        (folder / family).mkdir()
        for name, data in lanescope.simulate(family, **options).files.items():
            (folder / family / name).write_bytes(data)
            made.setdefault(family, str(folder / family / name))
    small = folder / "small"
    small.mkdir()
    (small / "small.npy").write_bytes(next(iter(lanescope.simulate("cuda", blocks=2, seed=1).files.values())))
    trace = lanescope.open(small / "small.npy")
    for family, name in (("chrome", "a.json"), ("perfetto", "a.pftrace")):
        lanescope.write(trace, small / name)
        made[family] = str(small / name)
    events = [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10.0, "dur": 5.0,
         "args": {"correlation": 7}},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20.0, "dur": 30.0,
         "args": {"correlation": 7, "device": 0, "stream": 7}},
    ]  # fmt: skip
    document = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": events}
    (small / "kineto.json").write_text(json.dumps(document))
    made["kineto"] = str(small / "kineto.json")
    return made


@pytest.fixture
def told(capfd):
    """Return a function that runs a command and returns the document that it prints."""

    def told(*arguments, allowed=(0,)):
        capfd.readouterr()
        status = main([*map(str, arguments), "--json"])
        out, err = capfd.readouterr()
        assert status in allowed, f"{arguments}: {err}"
        return json.loads(out)

    return told


def module():
    spec = importlib.util.spec_from_file_location("json_schemas", ROOT / "docs/json_schemas.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_files_are_what_the_declarations_make():
    made = module().files()
    assert {path.name: path.read_text() for path in FOLDER.glob("*.json")} == made, "run python docs/json_schemas.py"


def test_every_document_that_the_code_prints_has_a_schema_and_the_page_lists_it():
    source = "".join(path.read_text() for path in sorted((ROOT / "src/lanescope").rglob("*.py")))
    printed = set(re.findall(r"(?:print_json|context\.json)\(\s*\"(lanescope\.[a-z_.-]+/\d+)\"", source))
    published = {json.loads(path.read_text())["$id"] for path in FOLDER.glob("*.json")}
    assert printed == published
    page = (FOLDER / "index.md").read_text()
    listed = re.findall(r"^\| `(lanescope\.\S+)` \| .* \| \{download\}`(\S+)` \|$", page, re.MULTILINE)
    assert dict(listed) == {name: module().file_of(name) for name in published}


VERBS = {
    "info": ["info"],
    "check": ["check", "--fail-on", "never"],
    "check and rows": ["check", "--fail-on", "never", "--show", "LS"],
    "check of a window": ["check", "--fail-on", "never", "--start", "0"],
    "phases": ["phases"],
    "phases of lanes": ["phases", "--by", "lane", "--limit", "3"],
    "gaps": ["gaps"],
    "align": ["align"],
    "explain": ["explain"],
    "doctor": ["doctor"],
    **{f"summary by {by}": ["summary", "--by", by] for by in ("name", "lane", "device", "category")},
    "a part of a summary": ["summary", "--limit", "1"],
    "summary of a window": ["summary", "--start", "0"],
    "sql": ["sql"],
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("verb", VERBS)
def test_what_a_command_prints_of_a_family_is_valid(told, captures, family, verb):
    name, *arguments = VERBS[verb]
    document = told(name, captures[family], *arguments, allowed=(0, 1))
    assert errors(document) == []


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "aie"])  # which records no causes
def test_critical_paths_are_valid(told, captures, family):
    document = told("critical-path", captures[family])
    assert errors(document) == []
    names = [row["name"] for row in document["summary"] if row["cause"] == "work"]
    document = told("critical-path", captures[family], "--limit", 1, *(f"--what-if={name}=0.5" for name in names[:1]))
    assert errors(document) == []
    assert len(document["what_if"]) == len(names[:1])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("by", ["region", "overlap", "idle", "occupancy", "block", "sm", "core", "tile", "queue"])
def test_analyses_of_regions_are_valid(told, captures, family, by, capfd):
    status = main(["summary", captures[family], "--by", by, "--json"])
    out, err = capfd.readouterr()
    if status == 2:
        assert err.startswith("lanescope: error: ")
        return
    assert errors(json.loads(out)) == []


@pytest.mark.parametrize("family", registry.BUILTIN)
def test_summaries_of_a_family_are_valid(told, captures, family, capfd):
    valid = 0
    for each in registry.family(family).summaries:
        status = main(["summary", captures[family], "--by", each.name, "--json"])
        out, _ = capfd.readouterr()
        if status == 0:  # else the capture has no such records
            assert errors(json.loads(out)) == []
            valid += 1
    assert valid or not registry.family(family).summaries


def test_all_types_of_sql_are_valid(told, captures):
    values = "1::ubigint, 1.5::double, 'nan'::double, [1, 2], {'a': 1}, null, true, date '2020-01-01', 1::hugeint, 'x'"
    query = f"select {values}"
    assert errors(told("sql", captures["cuda"], query)) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_long_comparisons_and_series_are_valid(told, captures, family, tmp_path, capfd):
    capture = captures[family]
    document = told("diff", capture, capture, "--floor", "0.5", "--fail-if", "total(*) > +5%", allowed=(0, 1, 2))
    assert document["schema"] == "lanescope.diff/1"
    assert errors(document) == []
    capfd.readouterr()
    assert main(["diff", "--json", "--limit", "1", capture, "--", capture, capture]) == 0
    assert errors(json.loads(capfd.readouterr().out)) == []
    assert errors(told("diff", "--series", *[capture] * 8)) == []
    assert main(["baseline", "add", str(tmp_path / "kept"), capture]) == 0
    kept = told("baseline", "list", tmp_path / "kept")
    assert len(kept["runs"]) == 1
    assert errors(kept) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_offsets_of_clocks_are_valid(told, captures, family, tmp_path):
    assert errors(told("align", captures[family], allowed=(0, 1))) == []
    if family == "kineto":
        (tmp_path / "rank0.json").write_bytes(next(iter(lanescope.simulate("kineto", seed=7, rank=0).files.values())))
        document = told("align", tmp_path / "rank0.json")
        assert document["rows"]
        assert errors(document) == []


def test_folders_and_the_installation_are_valid(told, captures, tmp_path):
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        shutil.copy(captures["cuda"], tmp_path / str(number) / "run.npy")
    document = told("info", tmp_path)
    assert document["schema"] == "lanescope.info.folder/1"
    assert errors(document) == []
    assert errors(told("doctor", allowed=(0, 1))) == []


def test_commands_of_families_are_valid(told, captures, tmp_path):
    graph = told("ascend-deps", captures["ascend"])
    assert graph["schema"] == "lanescope.ascend-graph/1"
    assert graph["tasks"]
    assert errors(graph) == []
    around = told("ascend-deps", captures["ascend"], graph["tasks"][0]["task"])
    assert around["schema"] == "lanescope.ascend-deps/1"
    for more in ((), (graph["tasks"][0]["task"],)):
        assert errors(told("ascend-deps", captures["ascend"], *more, "--start", "0")) == []
    assert errors(around) == []
    golden = ROOT / "tests/devices/cuda/golden/declared/mirage_mpk.bin"
    for words in (["check", "mirage-mpk", golden], ["check", "mirage-transpiler", golden], ["find", golden]):
        judged = told("cuda-layout", *words, allowed=(0, 1))
        assert judged["schema"] == "lanescope.cuda-layout/1"
        assert judged["layouts"]
        assert errors(judged) == []
    config = tmp_path / "config.json"
    config.write_text('{"device": "aie2", "tiles": [{"col": 0, "row": 2, "type": "core", "events": ["LOCK_STALL"]}]}')
    writes = told("aie-config", config)
    assert writes["schema"] == "lanescope.aie-config/1"
    assert {write["when"] for write in writes["writes"]} <= {"start", "stop"}
    assert writes["writes"]
    assert errors(writes) == []
    run = tmp_path / "run.bin"
    assert main(["sim", "aie", "--program", "example", "--seed", "1", "-o", str(run)]) == 0
    path = told("aie-path", run, "--listing", tmp_path / "run.lst")
    assert path["schema"] == "lanescope.aie-path/1"
    assert errors(path) == []
    assert main(["convert", str(run), "-o", str(tmp_path / "run.vcd")]) == 0
    waves = told("aie-wavediff", run, tmp_path / "run.vcd", "--ignore-time", allowed=(0, 1))
    assert waves["schema"] == "lanescope.aie-wavediff/1"
    assert waves["signals"]
    assert errors(waves) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_comparisons_are_valid(told, captures, tmp_path, family):
    run = captures[family]
    for arguments in (["diff", run, run, "--floor", "1%"], ["diff", "--series", run, run]):
        assert errors(told(*arguments)) == []
    name = told("diff", run, run)["groups"][0]["key"]["name"]
    if not set("*?[()") & set(name):
        document = told("diff", run, run, "--floor", "1%", "--fail-if", f"count({name}) > 5%")
        assert document["fail_if"]
        assert errors(document) == []
    folder = tmp_path / "baseline"
    assert main(["baseline", "add", str(folder), run]) == 0
    assert errors(told("baseline", "list", folder)) == []


def test_a_document_that_changes_is_noticed(told, captures):
    document = told("summary", captures["cuda"])
    assert errors(document) == []
    for break_it in (
        lambda told: told.update(more=1),
        lambda told: told.pop("page"),
        lambda told: told["rows"][0].pop("share"),
        lambda told: told["rows"][0].update(total_ns="1"),
        lambda told: told["page"].update(of="findings"),
    ):
        broken = json.loads(json.dumps(document))
        break_it(broken)
        assert errors(broken)
