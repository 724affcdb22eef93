"""The software driver of Level Zero does what a device does, says exactly what it did, and shows every quirk.

The program ``fake_ze_app`` checks its own results: it exits 0 only if every byte and every status was right.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from native.fake_ze_build import FakeZe, build

if TYPE_CHECKING:
    from collections.abc import Callable

# The first run of the fixtures compiles three builds.
pytestmark = pytest.mark.timeout(1200)

SUBCOMMANDS = ["saxpy", "mixed", "threads", "copies", "resubmit", "fence", "unordered", "kernels"]

# Sets of quirks under which every program must be as right as without.
QUIRKS: dict[str, dict[str, str | int]] = {
    "plain": {},
    "sticky resets": {"host_reset": "sticky"},
    "late": {"late": 300},
    "slow status": {"status_ns": 20_000},
    "addresses not recycled": {"recycle": 0},
    "any order": {"order": "free", "seed": 5},
    "one front end an engine": {"order": "engine", "seed": 6},
    "overlap": {"order": "free", "workers": 3},
    "inline": {"execute": "inline"},
    "virtual": {"execute": "inline", "clock": "virtual", "order": "free", "seed": 7},
    "wrapping clock": {"start": -5000, "bits": 32, "global_bits": 32, "ppm": -200},
    "all at once": {"host_reset": "sticky", "late": 100, "order": "free", "workers": 2, "seed": 9, "start": -300},
}


def launch(
    fake_ze: FakeZe, *arguments: str | Path, loader: Path | None = None, **quirks: str | int | Path
) -> subprocess.CompletedProcess[str]:
    """Run a program of the driver's build folder."""
    program, *rest = arguments
    return subprocess.run(
        [fake_ze.folder / program, *rest],
        env=fake_ze.environment(loader, **quirks),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def run(fake_ze: FakeZe, *arguments: str | Path, **quirks: Any) -> str:
    """Run a program, which must succeed and have nothing to complain of; return its output."""
    done = launch(fake_ze, *arguments, **quirks)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def truth_of(path: Path) -> list[dict[str, Any]]:
    """The lines of the driver's truth."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="session", params=["address,undefined", "thread"])
def sanitized(request: pytest.FixtureRequest, require_tool: Callable[[str], Path]) -> FakeZe:
    """The driver and its programs, built with sanitizers that end a program at their first finding."""
    return build(require_tool("levelzero"), request.param)


@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
@pytest.mark.parametrize("quirks", QUIRKS.values(), ids=QUIRKS)
def test_programs_are_right_under_every_quirk(
    fake_ze: FakeZe, tmp_path: Path, subcommand: str, quirks: dict[str, str | int]
) -> None:
    """Results are right, nothing leaks, the API is not misused; the ground truth obeys the order that the API sets."""
    output = run(fake_ze, "fake_ze_app", subcommand, truth=tmp_path / "truth", stats=tmp_path / "stats", **quirks)
    assert output == f"{subcommand}: right\n"
    stats = json.loads((tmp_path / "stats").read_text())
    own = {"live.driver", "live.device"}
    left = {
        name: stats[name] for name in stats if name.startswith(("live.", "memory.", "query")) and "most" not in name
    }
    assert {name for name, number in left.items() if number} <= own
    assert "mistakes" not in stats
    assert "oddities" not in stats

    ops = truth_of(tmp_path / "truth")
    assert len({(op["list"], op["life"], op["index"], op["run"]) for op in ops}) == len(ops)
    bits = int(quirks.get("bits", 32))
    for op in ops:
        assert 0 < (op["end"] - op["start"]) % 2**bits < 2 ** (bits - 1)
        assert (op["context_start"] - op["start"]) % 2**bits == (op["context_end"] - op["end"]) % 2**bits != 0
    places: dict[tuple[int, int, int], list[int]] = {}
    for op in ops:  # a line comes as its command ends
        if op["in_order"]:
            places.setdefault((op["list"], op["life"], op["run"]), []).append(op["index"])
    assert all(each == sorted(each) for each in places.values())


@pytest.mark.parametrize("arguments", [(), ("--dlopen",)], ids=["linked", "dlopen"])
def test_saxpy_linked_and_by_dlopen_have_the_same_truth(
    fake_ze: FakeZe, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """Exactly the commands of the program, in the order of its in-order list, with exact virtual ticks."""
    quirks = {"execute": "inline", "clock": "virtual", "start": 0}
    run(fake_ze, "fake_ze_app", *arguments, "saxpy", "2", truth=tmp_path / "truth", **quirks)
    ops = truth_of(tmp_path / "truth")
    copy, kernel, barrier = ("zeCommandListAppend" + name for name in ("MemoryCopy", "LaunchKernel", "Barrier"))
    # A copy of a page costs six ticks, a launch of saxpy a hundred; each command begins one tick after the last.
    assert [(op["api"], op["mark"], op["kernel"], op["bytes"], op["start"], op["end"]) for op in ops] == [
        (copy, "copy x", "", 4096, 1, 7),
        (copy, "copy y", "", 4096, 8, 14),
        (kernel, "launch 0", "saxpy", 0, 15, 115),
        (barrier, "barrier 0", "", 0, 116, 117),
        (kernel, "launch 1", "saxpy", 0, 118, 218),
        (barrier, "barrier 1", "", 0, 219, 220),
        (copy, "copy result", "", 4096, 221, 227),
    ]
    assert {(op["run"], op["engine"], op["queue"], op["immediate"], op["in_order"]) for op in ops} == {
        (1, "compute", 0, True, True)
    }
    assert [op["index"] for op in ops] == list(range(7))
    assert [op["groups"] for op in ops if op["kernel"]] == [[32, 1, 1]] * 2


def test_the_truth_knows_every_run_of_a_list(fake_ze: FakeZe, tmp_path: Path) -> None:
    """Two lists, in order and not, each two lives each of three launches and barriers, executed five times."""
    run(fake_ze, "fake_ze_app", "resubmit", "5", truth=tmp_path / "truth")
    ops = truth_of(tmp_path / "truth")
    lists = sorted({op["list"] for op in ops})
    assert [{op["in_order"] for op in ops if op["list"] == serial} for serial in lists] == [{False}, {True}]
    for serial in lists:
        seen = [(op["life"], op["run"], op["index"]) for op in ops if op["list"] == serial]
        assert seen == [(life, run, index) for life in (0, 1) for run in range(1, 6) for index in range(6)]
    assert {op["queue"] for op in ops} == {ops[0]["queue"]} != {0}
    assert all(op["mark"] == f"launch {op['index'] // 2}" for op in ops if op["kernel"])


def test_threads_share_the_device_without_mixing_up(fake_ze: FakeZe, tmp_path: Path) -> None:
    """Every list's commands are those of its thread, all of them, in order; the engine runs one at a time."""
    run(fake_ze, "fake_ze_app", "threads", "6", truth=tmp_path / "truth")
    ops = truth_of(tmp_path / "truth")
    by_list: dict[int, list[str]] = {}
    for op in ops:
        by_list.setdefault(op["list"], []).append(op["mark"])
    assert sorted(by_list.values()) == [[f"{thread}:{launch}" for launch in range(100)] for thread in range(6)]
    assert all(earlier["end"] <= later["start"] for earlier, later in pairwise(ops))


def test_copies_run_on_the_copy_engine(fake_ze: FakeZe, tmp_path: Path) -> None:
    run(fake_ze, "fake_ze_app", "copies", "2", truth=tmp_path / "truth")
    ops = truth_of(tmp_path / "truth")
    assert {op["engine"] for op in ops} == {"copy"}
    assert {op["immediate"] for op in ops} == {True, False}
    assert [op["bytes"] for op in ops if op["mark"] == "there"] == [1, 1, 98, 98]
    assert [op["bytes"] for op in ops if op["mark"] == "region"] == [240, 240]


@pytest.mark.parametrize(
    ("order", "overtaken"),
    [
        ("free", {"behind it, unordered list", "another list of the engine", "another engine"}),
        ("list", {"another list of the engine", "another engine"}),
        ("engine", {"another engine"}),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_what_may_overtake_a_command_that_waits(fake_ze: FakeZe, order: str, overtaken: set[str], seed: int) -> None:
    answers = json.loads(run(fake_ze, "fake_ze_orders", execute="inline", order=order, seed=seed))
    assert {situation for situation, has_ended in answers.items() if has_ended} == overtaken
    assert len(answers) == 6


def test_seeds_permute_what_nothing_orders(fake_ze: FakeZe, tmp_path: Path) -> None:
    """Unordered launches run in an order that the seed alone decides; none or `list` keeps that of their submission."""

    def order(name: str, **quirks: str | int) -> list[int]:
        run(
            fake_ze, "fake_ze_app", "unordered", "8", truth=tmp_path / name, execute="inline", clock="virtual", **quirks
        )
        return [int(op["mark"]) for op in truth_of(tmp_path / name) if op["mark"]]

    assert order("none", order="free") == list(range(8))
    assert order("list", order="list", seed=3) == list(range(8))
    orders = {tuple(order(f"seed {seed}", order="free", seed=seed)) for seed in range(1, 7)}
    assert all(sorted(each) == list(range(8)) for each in orders)
    assert len(orders) > 3
    assert order("again", order="free", seed=4) == order("and again", order="free", seed=4)


def test_workers_let_unordered_launches_overlap(fake_ze: FakeZe, tmp_path: Path) -> None:
    """With two workers the second launch begins before the first one ends: they hold until both run."""
    run(fake_ze, "fake_ze_app", "unordered", "2", truth=tmp_path / "one", frequency=2000)
    run(fake_ze, "fake_ze_app", "unordered", "2", truth=tmp_path / "two", workers=2, order="free", frequency=2000)
    one, two = (
        sorted((op["start"], op["end"]) for op in truth_of(tmp_path / name) if op["mark"]) for name in ("one", "two")
    )
    assert one[1][0] >= one[0][1]
    assert two[1][0] < two[0][1]  # fifty ticks of half a millisecond


@pytest.mark.parametrize(
    ("quirks", "expected"),
    [
        ({}, {"query_on_copy": 0x78000003, "after_reset": 1, "old_code": 0, "old_ticks": True, "recycled": True}),
        ({"query_on_copy": "allow"}, {"query_on_copy": 0}),
        ({"host_reset": "sticky"}, {"after_reset": 0, "old_ticks": True}),
        ({"recycle": 0}, {"recycled": False}),
        ({"unsignalled": "not_ready"}, {"none_code": 1, "none": 0, "old_code": 1}),
        ({"unsignalled": "poison"}, {"none_code": 0, "none": 0xDEADDEADDEADDEAD}),
        ({"late": 200_000}, {"words": 1}),
    ],
    ids=str,
)
def test_quirks_show(fake_ze: FakeZe, quirks: dict[str, str | int], expected: dict[str, int | bool]) -> None:
    seen = json.loads(run(fake_ze, "fake_ze_app", "quirks", **quirks))
    assert {name: seen[name] for name in expected} == expected


def test_a_query_on_the_copy_engine_can_end_the_program(fake_ze: FakeZe) -> None:
    done = launch(fake_ze, "fake_ze_app", "quirks", query_on_copy="abort")
    assert done.returncode == -signal.SIGABRT
    assert "timestamp query on a copy-only engine" in done.stderr


def test_queries_hold_memory_until_their_list_goes(fake_ze: FakeZe, tmp_path: Path) -> None:
    """A query a round, none given back before the list's end; a limit makes the next one fail."""
    run(fake_ze, "fake_ze_app", "mixed", "7", stats=tmp_path / "stats", query_bytes=1000)
    stats = json.loads((tmp_path / "stats").read_text())
    assert (stats["query_bytes"], stats["query_bytes.most"]) == (0, 7000)
    done = launch(fake_ze, "fake_ze_app", "mixed", "7", query_limit=6)
    assert done.returncode == 1
    assert "zeCommandListAppendQueryKernelTimestamps returned 0x70000003" in done.stderr


def test_calls_fail_as_asked(fake_ze: FakeZe, tmp_path: Path) -> None:
    """The named call fails with the named code, the ones before it do not."""
    done = launch(fake_ze, "fake_ze_app", "saxpy", fail="zeEventCreate:2=70000003", stats=tmp_path / "stats")
    assert done.returncode == 1
    assert "zeEventCreate returned 0x70000003" in done.stderr
    stats = json.loads((tmp_path / "stats").read_text())
    assert (stats["calls.zeEventCreate"], stats["live.event"]) == (2, 1)
    done = launch(fake_ze, "fake_ze_app", "saxpy", lost=3)
    assert done.returncode == 1
    assert "returned 0x70000001" in done.stderr
    done = launch(fake_ze, "fake_ze_app", "saxpy", host_reset="stickyy")
    assert done.returncode == -signal.SIGABRT
    assert "FAKE_ZE_HOST_RESET=stickyy makes no sense" in done.stderr


@pytest.mark.parametrize(
    "quirks", [{}, {"bits": 24, "start": -1000}, {"ppm": 100_000}, {"frequency": 1_000_000_000, "bits": 64}], ids=str
)
def test_ticks_follow_the_configured_clock(fake_ze: FakeZe, tmp_path: Path, quirks: dict[str, int]) -> None:
    """Ticks on an engine only rise, modulo 2^bits; no interval is longer than the host saw it take."""
    run(fake_ze, "fake_ze_app", "saxpy", "20", truth=tmp_path / "truth", **quirks)
    ops = truth_of(tmp_path / "truth")
    bits, start = quirks.get("bits", 32), quirks.get("start", 123_456_789)
    rate = quirks.get("frequency", 12_500_000) * (1_000_000 + quirks.get("ppm", 0)) / 1e15
    stamps = [stamp for op in ops for stamp in (op["start"], op["end"])]
    steps = [(later - earlier) % 2**bits for earlier, later in pairwise(stamps)]
    assert all(step < 2 ** (bits - 1) for step in steps)
    assert stamps[0] == start % 2**bits
    if start < 0:
        assert any(later < earlier for earlier, later in pairwise(stamps))  # 20 launches of 100 ticks: it must wrap
    first = ops[0]
    for op, passed in zip(ops, [sum(steps[: 2 * i + 1]) for i in range(len(ops))], strict=True):
        assert passed <= (op["host_end_ns"] - first["host_start_ns"]) * rate + 1


def test_devices_say_how_their_clocks_run(fake_ze: FakeZe) -> None:
    """Readings follow frequency and drift; the skew is exact; a 19.2 MHz tick is not a whole number of ns."""
    quirks = {
        "devices": 2,
        "subdevices": 3,
        "frequency": 19_200_000,
        "ppm": 50,
        "start": -100,
        "bits": 30,
        "global_bits": 40,
        "skew": 777,
    }
    first, second = json.loads(run(fake_ze, "fake_ze_app", "clock", "20", **quirks))
    assert {key: first[key] for key in first if key != "readings"} == {
        "subdevices": 3,
        "ns": 52,
        "hz": 19_200_000,
        "bits": 30,
        "global_bits": 40,
    }
    host_0, ticks_0 = first["readings"][0]
    assert ticks_0 >= 2**30 - 100
    for skew, device in ((0, first), (777, second)):
        for host, ticks in device["readings"]:
            expected = (host - host_0) * 19_200_000 * 1_000_050 // 10**15
            assert ticks - skew - ticks_0 - expected in (0, 1)  # each reading is rounded down


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("event_destroyed_in_use", "event destroyed while the device uses it"),
        ("list_destroyed_in_use", "zeCommandListDestroy of a list that still runs"),
        ("list_reset_in_use", "zeCommandListReset of a list that still runs"),
        ("dead_event", "event: dead or foreign handle"),
        ("dead_event_in_list", "zeCommandQueueExecuteCommandLists of a list with a destroyed event"),
        ("dead_context", "zeCommandListAppendBarrier after the destruction of the context"),
        ("closed_list", "zeCommandListAppendBarrier on a closed list"),
        ("open_list", "zeCommandQueueExecuteCommandLists of an open list"),
        ("two_threads", "zeCommandListAppendBarrier while another thread uses the list"),
        ("freed_twice", "zeMemFree of memory that is not allocated"),
    ],
)
def test_mistakes_of_the_caller_end_it(fake_ze: FakeZe, tmp_path: Path, mistake: str, words: str) -> None:
    done = launch(fake_ze, "fake_ze_api_misuse", mistake, truth=tmp_path / "truth")
    assert done.returncode == -signal.SIGABRT
    assert words in done.stderr
    assert words in [line["what"] for line in truth_of(tmp_path / "truth") if line["kind"] == "mistake"]


def test_what_real_drivers_bear_is_said_and_borne(fake_ze: FakeZe, tmp_path: Path) -> None:
    assert run(fake_ze, "fake_ze_api_misuse", "none") == ""
    done = launch(
        fake_ze, "fake_ze_api_misuse", "list_outlives_context", truth=tmp_path / "truth", stats=tmp_path / "stats"
    )
    assert done.returncode == 0, done.stderr
    said = [line["what"] for line in truth_of(tmp_path / "truth") if line["kind"] == "mistake"]
    assert said == ["context destroyed with 4 lists, queues and pools in it"]
    assert json.loads((tmp_path / "stats").read_text())["oddities"] == 1
    done = launch(fake_ze, "fake_ze_api_misuse", "executed_in_flight", truth=tmp_path / "runs")
    said = "fake_ze: zeCommandQueueExecuteCommandLists of a list that still runs\n"
    assert (done.returncode, done.stderr) == (0, said)
    assert [op["run"] for op in truth_of(tmp_path / "runs") if op["kind"] == "op"] == [1, 2]
    done = launch(fake_ze, "fake_ze_api_misuse", "dead_event", mistakes="report", stats=tmp_path / "stats")
    assert (done.returncode, done.stdout) == (0, "zeEventQueryStatus returned 0x78000005\n")
    assert json.loads((tmp_path / "stats").read_text())["mistakes"] == 1


def test_a_killed_program_leaves_whole_lines(fake_ze: FakeZe, tmp_path: Path) -> None:
    process = subprocess.Popen([fake_ze.app, "idle", "100000"], env=fake_ze.environment(truth=tmp_path / "truth"))
    while not (tmp_path / "truth").exists() or (tmp_path / "truth").stat().st_size < 4000:
        assert process.poll() is None
    process.kill()
    process.wait()
    assert (tmp_path / "truth").read_text().endswith("\n")
    ops = truth_of(tmp_path / "truth")
    assert [op["index"] for op in ops] == list(range(len(ops)))


def test_members_of_tables_lie_as_the_headers_say(fake_ze: FakeZe) -> None:
    """functions.def names, for the version of the headers that are here, just their members in their order."""
    headers = (fake_ze.levelzero / "include/level_zero/ze_ddi.h").read_text()
    minor = int(re.search(r"@version v1\.(\d+)", headers)[1])  # type: ignore[index]
    definitions = (Path(__file__).parent / "fake_ze/functions.def").read_text()
    ours: dict[str, list[str]] = {name: [] for name in re.findall(r"^TABLE\((\w+)\)", definitions, re.M)}
    versions: dict[str, list[int]] = {name: [] for name in ours}
    for table, function, since in re.findall(r"^(?:HERE|NEWER|ENTRY)\((\w+), (\w+), (\d+)\)", definitions, re.M):
        versions[table].append(int(since))
        if int(since) <= minor:
            ours[table].append(function)
    assert all(each == sorted(each) for table, each in versions.items() if table != "CommandListExp")
    theirs = 0
    for getter, struct in re.findall(r"^zeGet(\w+)ProcAddrTable\(.*?(ze_\w+_dditable_t)\*", headers, re.M | re.S):
        body = re.search(rf"^typedef struct _{struct}\n{{(.*?)^}}", headers, re.M | re.S)
        assert body is not None
        members = re.findall(r"\bze_pfn(\w+)_t\s+pfn\w+;", body[1])
        assert [name.removeprefix("ze") for name in ours[getter]] == members
        theirs += len(members)
    assert theirs > 100


def test_tables_are_written_no_further_than_their_version(fake_ze: FakeZe) -> None:
    assert run(fake_ze, "fake_ze_tables", fake_ze.driver) == "576 tables asked for, 0 wrong\n"


def test_our_loader_negotiates_what_debians_does_not_know(fake_ze: FakeZe) -> None:
    """Functions of API 1.6 to 1.17 work through our loader, unless it or the driver is older."""
    loader = fake_ze.folder / "loader"
    assert run(fake_ze, "fake_ze_api_versions", loader=loader) == "api_versions: right\n"
    for older in ({"loader_api": 16}, {"api": "1.16"}, {"api": "1.4"}):
        done = launch(fake_ze, "fake_ze_api_versions", loader=loader, **older)
        assert done.returncode == 4, done.stdout
        assert "0x78000003" in done.stdout
    assert launch(fake_ze, "fake_ze_api_versions").returncode == 4  # Debian's


@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
@pytest.mark.parametrize("api", [4, 17])
def test_old_programs_run_under_our_loader(fake_ze: FakeZe, subcommand: str, api: int) -> None:
    loader = fake_ze.folder / "loader"
    assert run(fake_ze, "fake_ze_app", subcommand, loader=loader, loader_api=api) == f"{subcommand}: right\n"
    assert run(fake_ze, "fake_ze_app_dlopen", subcommand, loader=loader, loader_api=api) == f"{subcommand}: right\n"


@pytest.mark.parametrize(
    ("subcommands", "layers"),
    [
        (SUBCOMMANDS, ["ENABLE_TRACING_LAYER"]),
        # Handles are wrapped, but not that of the log of a build that failed, so `kernels` would crash in the loader.
        ([name for name in SUBCOMMANDS if name != "kernels"], ["ENABLE_LOADER_INTERCEPT"]),
        # It is older than in-order lists and refuses their flags.
        (["copies", "fence", "unordered"], ["ENABLE_VALIDATION_LAYER", "ENABLE_PARAMETER_VALIDATION"]),
    ],
    ids=["tracing", "intercept", "validation"],
)
def test_debians_layers_have_nothing_to_object_to(fake_ze: FakeZe, subcommands: list[str], layers: list[str]) -> None:
    environment = fake_ze.environment() | {f"ZE_{name}": "1" for name in layers}
    for subcommand in subcommands:
        done = subprocess.run([fake_ze.app, subcommand], env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{subcommand}: right\n", "")


def test_programs_say_what_they_lack(fake_ze: FakeZe) -> None:
    done = launch(fake_ze, "fake_ze_app_dlopen", "--dlopen=/nowhere/libze_loader.so.1", "saxpy")
    assert (done.returncode, "/nowhere/libze_loader.so.1" in done.stderr) == (3, True)
    environment = fake_ze.environment() | {"ZE_ENABLE_ALT_DRIVERS": "/nowhere/libfake_ze.so"}
    done = subprocess.run([fake_ze.app, "saxpy"], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "fake_ze_app: zeInit returned 0x78000001\n")
    assert launch(fake_ze, "fake_ze_app", "nothing").returncode == 2


@pytest.mark.parametrize("quirks", ["plain", "any order", "overlap", "late", "all at once"])
def test_sanitizers_have_nothing_to_say(sanitized: FakeZe, tmp_path: Path, quirks: str) -> None:
    """Every program, with the truth and the counts on, under both loaders."""
    paths = {"truth": tmp_path / "truth", "stats": tmp_path / "stats"}
    for subcommand in [*SUBCOMMANDS, "quirks", "clock"]:
        run(sanitized, "fake_ze_app", subcommand, **paths, **QUIRKS[quirks])
    loader = sanitized.folder / "loader"
    run(sanitized, "fake_ze_app_dlopen", "threads", "8", loader=loader, **paths, **QUIRKS[quirks])
    run(sanitized, "fake_ze_api_versions", loader=loader, **paths, **QUIRKS[quirks])
