"""Each stat, flag and quality is a finding of a rule, or gives the reason why it is none."""

import ast
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import lanescope
from analysis.test_clean_captures import CODES
from lanescope import StatSpec
from lanescope.analysis import check
from lanescope.analysis.check.marks import FLAGS, QUALITIES
from lanescope.devices.aie import schema as aie_schema
from lanescope.families import registry
from lanescope.trace import Flag, TimeBase, TraceBuilder
from lanescope.trace.schema import QUALITIES as ALL_QUALITIES
from lanescope.trace.stats import CORE_STATS, STAT_RULES

PACKAGE = Path(lanescope.__file__).parent
ROOT = Path(__file__).parents[2]
LS = {rule.code: rule for rule in check.RULES}


@pytest.mark.parametrize("family", registry.builtin(), ids=lambda family: family.name)
def test_every_stat_of_a_family_names_a_rule_that_there_is_or_a_reason(family):
    codes = set(STAT_RULES) | {rule.code for rule in family.rules}
    wrong = [spec.name for spec in (*CORE_STATS, *family.stats) if not (spec.rule in codes or spec.silent)]
    assert wrong == []


def texts_of(package):
    """All texts of a package's code, but for the names that declare stats."""
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text())
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        declared = {id(call.args[0]) for call in calls if call.args and getattr(call.func, "id", "") == "StatSpec"}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in declared:
                yield node.value


def counted_in_the_core():
    """Stats of AIE frames, which the core counts by their position in two enumerations."""
    source = {path: path.read_text() for path in sorted((ROOT / "native/core/devices/aie").iterdir()) if path.is_file()}
    for enum, stats in (("ScanTally", aie_schema.SCAN_STATS), ("Note", aie_schema.SEGMENT_STATS)):
        [members] = [
            found[1] for text in source.values() if (found := re.search(rf"enum class {enum} {{([^}}]*)}}", text))
        ]
        names = [name.strip() for name in members.split(",") if name.strip()]
        for name, spec in zip(names, stats, strict=True):
            if any(f"{enum}::{name}" in text for text in source.values()):
                yield spec.name


def test_every_stat_that_is_declared_is_counted():
    counted = {*texts_of(PACKAGE), *counted_in_the_core()}
    declared = {spec.name for spec in CORE_STATS} | {spec.name for one in registry.builtin() for spec in one.stats}
    assert declared - counted == set()


def test_the_rules_of_stats_are_rules_of_check():
    assert set(STAT_RULES) == set(CODES) <= set(LS)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"severity": "notice"}, "requires the rule"),
        ({"severity": "info"}, "requires the rule"),
        ({"severity": "notice", "finding": "LS305", "silent": "both"}, "exclude each other"),
        ({"severity": "data_loss", "silent": "no reason is good enough"}, "cannot be silent"),
        ({"severity": "error", "silent": "no reason is good enough"}, "cannot be silent"),
        ({"severity": "notice", "finding": "LS101"}, "LS101 does not report stats"),
        ({"severity": "notice", "finding": "LS305 info"}, "is not a rule code and a severity"),
        ({"severity": "notice", "finding": "305"}, "is not a rule code and a severity"),
        ({"severity": "notice", "finding": "LS305", "share_of": "bytes"}, "unknown share_of"),
        ({"severity": "bad", "finding": "LS305"}, "unknown severity"),
    ],
)
def test_a_declaration_that_nothing_would_report_is_refused(declared, words):
    with pytest.raises(ValueError, match=words):
        StatSpec("toy_odd", doc="odd facts", **declared)


def test_a_stat_may_be_of_a_rule_of_its_family():
    assert StatSpec("toy_odd", "notice", "odd facts", finding="TOY101 error").rule == "TOY101"


# --- shares -----------------------------------------------------------------------------------------------------------


def _with_events(spec, count, events=100):
    builder = TraceBuilder(TimeBase(), stats=[spec])
    lane = builder.track("core 0", kind="lane", role="core")
    builder.track("thread 0", kind="lane", role="host_thread")
    builder.append("slices", track_id=lane, ts=np.arange(events - 10) * 10, dur=5, name="mma")
    builder.append("instants", track_id=lane, ts=np.arange(10) * 10, name="mark")
    builder.add_stat("toy_odd", count)
    (finding,) = check.run(builder.finish())
    return finding.severity, finding.detail


@pytest.mark.parametrize("code", ["LS003", "LS105", "LS305", "LS404"])
def test_above_5_percent_of_the_events_a_finding_is_one_step_worse(code):
    spec = StatSpec("toy_odd", "notice", "odd facts", finding=f"{code} notice", share_of="events")
    assert _with_events(spec, 5) == ("notice", "odd facts: 5 of 100 events (5.0%)")
    assert _with_events(spec, 6) == ("warning", "odd facts: 6 of 100 events (6.0%)")
    assert _with_events(spec, 101) == ("warning", "odd facts")


def test_nothing_is_worse_than_an_error_and_other_rules_know_no_share():
    spec = StatSpec("toy_odd", "error", "odd facts", finding="LS305", share_of="events")
    assert _with_events(spec, 50) == ("error", "odd facts: 50 of 100 events (50.0%)")
    spec = StatSpec("toy_odd", "notice", "odd facts", finding="LS401", share_of="events")
    assert _with_events(spec, 50) == ("warning", "odd facts")


def test_lanes_of_the_host_are_not_counted():
    spec = StatSpec("toy_odd", "notice", "lanes left", finding="LS105", share_of="lanes")
    assert _with_events(spec, 1) == ("warning", "lanes left: 1 of 1 lanes (100.0%)")


# --- flags and qualities ----------------------------------------------------------------------------------------------


def test_every_flag_and_quality_has_a_rule_or_a_reason():
    assert set(FLAGS) == set(Flag)
    assert set(QUALITIES) == set(ALL_QUALITIES)
    for carrier in (*FLAGS.values(), *QUALITIES.values()):
        assert bool(carrier.rule) != bool(carrier.reason)
        assert not carrier.rule or carrier.rule in LS


def _codes(*, ts=(0, 40), dur=30, **columns):
    builder = TraceBuilder(TimeBase())
    device = builder.track("npu", kind="group", role="device")
    lane = builder.track("core 0", kind="lane", role="core", parent=device, nesting="nested")
    builder.append("slices", track_id=lane, ts=ts, dur=dur, name="mma", **columns)
    return {finding.code for finding in check.run(builder.finish())}


@pytest.mark.parametrize("flag", [flag for flag in Flag if FLAGS[flag].rule and flag != Flag.PARTIAL_OVERLAP])
def test_the_rule_of_a_flag_reports_its_rows(flag):
    assert _codes(flags=[0, int(flag)]) - _codes(flags=[0, 0]) == {FLAGS[flag].rule}


def test_the_rule_of_partial_overlap_reports_rows_that_do():
    flag = int(Flag.PARTIAL_OVERLAP)
    assert _codes(ts=(0, 20), flags=[flag, flag]) == {FLAGS[Flag.PARTIAL_OVERLAP].rule}


@pytest.mark.parametrize("quality", ["estimated", "inferred"])
def test_the_rule_of_a_quality_reports_a_device_of_mostly_such_slices(quality):
    assert _codes(quality=["exact", quality], dur=[30, 31]) == {QUALITIES[quality].rule}
    assert _codes(quality=["exact", quality], dur=[30, 30]) == set()


def _device(builder, name, quality, input_id=None):
    device = builder.track(name, kind="group", role="device", input_id=input_id)
    lane = builder.track("core 0", kind="lane", role="core", parent=device)
    builder.append("slices", track_id=lane, ts=[0, 100], dur=50, name="mma", quality=quality)


def test_each_device_is_judged_and_a_device_of_an_input_with_such_stats_is_not():
    spec = StatSpec("toy_odd", "notice", "odd facts", finding="LS305")
    builder = TraceBuilder(TimeBase(), stats=[spec])
    inputs = [
        builder.input(capture="run", path=f"{i}.bin", size=0, sha256="", family="toy", format="toy") for i in range(3)
    ]
    for number, quality in enumerate(["exact", "inferred", "estimated"]):
        _device(builder, f"npu {number}", quality, inputs[number])
    builder.add_stat("toy_odd", input_id=2)
    for number in inputs:
        builder.add_bytes(decoded=0, input_id=number)
    found = check.run(builder.finish())
    assert [(one.severity, one.location.track, one.detail) for one in found if one.code == "LS305"] == [
        ("warning", "", "odd facts"),
        ("notice", "npu 1", "estimated or inferred slices: 100.0% of the busy time of 1 lane"),
    ]


def test_threads_of_the_host_are_no_device():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("thread 0", kind="lane", role="host_thread")
    builder.append("slices", track_id=lane, ts=[0, 100], dur=50, name="call", quality="estimated")
    assert check.run(builder.finish()) == []


# --- the page ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages():
    pytest.importorskip("sphinx")
    path = Path(__file__).parents[2] / "docs/reference_pages.py"
    spec = spec_from_file_location("reference_pages", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_stats_gives_the_rule_or_the_reason_of_each(pages):
    rows = {line.split("`")[1]: line for line in pages.stats().splitlines() if line.startswith("| `")}
    specs = [*CORE_STATS, *(spec for family in registry.builtin() for spec in family.stats)]
    assert set(rows) == {spec.name for spec in specs}
    for spec in specs:
        shown = f"[{spec.rule}](rules.md) {spec.finding_severity}" if spec.rule else f"none: {spec.silent}"
        assert f" | {shown} | " in rows[spec.name]


def test_the_page_of_tables_gives_the_rule_or_the_reason_of_each_flag_and_quality(pages):
    text = pages.tables()
    for flag, carrier in FLAGS.items():
        assert f"| {int(flag)} | `{flag.name.lower()}` | " in text
        assert carrier.rule in text
        assert carrier.reason in text
    for word, carrier in QUALITIES.items():
        shown = f"[{carrier.rule}](rules.md)" if carrier.rule else f"none: {carrier.reason}"
        assert f"| `{word}` | {shown} |" in text
