"""Every declared field is found and changed, the same way each time; and what lanescope makes of it gets no worse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lanescope.devices.aie.formats.layout import FRAME_SETS, HEADER
from lanescope.devices.ascend.formats.field_map.task_ids import Execution, TaskGraph, possible_tasks
from lanescope.devices.cuda.formats.layout import LAYOUTS as CUDA_LAYOUTS
from lanescope.devices.levelzero.formats.field_map.possible_values import Reading, possible_reading
from lanescope.families import registry
from lanescope.families.field_sites import CHANGES, FieldSites, each, never
from lanescope.testing.mutations import DETECTED, VALUE_CHANGES, Judge, mutations
from lanescope.wire.json_spans import spans
from mutations import ledger, lies, page
from mutations.seeds import FAMILIES, recorded, seeds

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).parent / "ledger.json"
ALL = [pytest.param(seed, id=f"{seed.family}-{seed.format}") for family in FAMILIES for seed in seeds(family)]
#: Frames that small captures lack.
RARE_FRAMES = {"sync", "filler1", "repeat0", "repeat1", "multiple2", "single2"}


def kept():
    return json.loads(KEPT.read_text())


def test_the_page_is_that_of_the_kept_ledger():
    assert (ROOT / "docs/reference/detection.md").read_text() == page.page(kept()), "run `make mutate MUTATE=--write`"


@pytest.mark.full
@pytest.mark.parametrize("family", FAMILIES)
def test_no_field_is_detected_less_than_in_the_kept_ledger(family):
    small = kept()["small"]
    before = ledger.from_json(small["ledger"])[family]
    assert list(ledger.worse(before, ledger.run(seeds(family), small["count"]))) == []


@pytest.mark.full
@pytest.mark.parametrize("family", FAMILIES)
def test_no_lie_is_found_less_often_than_in_the_kept_ledger(family):
    before, now = kept()["lies"][family], lies.found([family])[family]
    assert set(now) == set(before)
    for names in (("warning",), ("warning", "notice")):
        fewer = {
            lie: counts for lie, counts in now.items() if page.found(counts, names) < page.found(before[lie], names)
        }
        assert fewer == {}


def test_a_field_that_gets_worse_is_named():
    def row(**counts):
        return ledger.Row(ledger.Counter(counts))

    key = ("layout", "record", "field")
    before = {key: row(warning=3, open=1)}
    assert list(ledger.worse(before, {key: row(warning=6, open=2)})) == []
    assert list(ledger.worse(before, {key: row(error=4)})) == []
    assert "2 of 4 detected, before 3 of 4" in next(ledger.worse(before, {key: row(warning=2, same=2)}))
    assert "2 of 4 above a notice, before 3 of 4" in next(ledger.worse(before, {key: row(warning=2, notice=1, open=1)}))
    assert list(ledger.worse({key: row(notice=2, warning=2)}, {key: row(notice=2, lost=1, refused=1)})) == []
    assert "2 open, before 1" in next(
        ledger.worse({key: row(warning=2, open=1, same=1)}, {key: row(warning=2, open=2)})
    )
    assert "has no mutants now" in next(ledger.worse(before, {}))
    assert "not in the kept ledger" in next(ledger.worse({}, before))


@pytest.mark.parametrize("seed", ALL)
def test_values_are_found_where_they_stand(seed):
    """Reading and writing back changes nothing, and what is written is read; the recorded value is a possible one."""
    sites = seed.declared.fields(seed.files)
    assert sites.fields
    assert sites.records
    for site in sites.fields:
        content = seed.files[site.file]
        assert len(site.lane) == len(site), site.record
        for index in range(0, len(site), max(1, len(site) // 5)):
            where = (site.record, site.name, index)
            value = site.read(content, index)
            assert site.write(content, index, value) == content, where
            if isinstance(value, int) and site.pieces:
                other = value ^ 1 << index % site.width
                assert site.read(site.write(content, index, other), index) == other, where


@pytest.mark.parametrize("seed", ALL)
def test_what_was_recorded_is_possible(seed):
    """Else nothing that is called undetectable would be proven: the recorded capture is a sound one."""
    for site in seed.declared.fields(seed.files).fields:
        if site.possible is never:
            continue
        content = seed.files[site.file]
        indices = range(0, len(site), max(1, len(site) // 100))
        answers = [bool(site.possible({index: site.read(content, index)})) for index in indices]
        assert any(answers), (site.record, site.name)


#: Fields of recordings that came after the others: arguments of calls, sensors, the recorder's own times.
LATER = re.compile(r"(alt|device_|host_)?desc_|alignment|recorder_ns|lock_waits|ranks?$")
LATER_RECORDS = {
    f"lanescope_ze:{name}" for name in ("sampling", "sampling_end", "sensor", "sensor_kind", "sample", "statistics")
}


@pytest.mark.timeout(1200)
def test_what_recordings_hold_since_later_is_found_or_explained():
    """A change is found by a rule, or the declared field says why nothing could tell."""
    seed = recorded("sampled")
    judged, unexplained = {}, []
    with Judge(seed.files, seed.main, seed.options) as judge:
        for mutant in mutations(seed.declared, seed.files, count=250):
            if mutant.record not in LATER_RECORDS and not LATER.match(mutant.field):
                continue
            judged[mutant.record] = judged.get(mutant.record, 0) + 1
            verdict = judge.judge(mutant.files)
            if not verdict.is_detected and verdict.name != ledger.SAME and not mutant.reason:
                unexplained.append((mutant.record, mutant.field, mutant.change, mutant.detail))
    assert judged.keys() >= LATER_RECORDS
    assert sum(judged.values()) >= 50
    assert unexplained == []


def names_of(family):
    return {(site.record, site.name) for seed in seeds(family) for site in seed.declared.fields(seed.files).fields}


def test_all_declared_fields_of_cuda_are_changed():
    declared = {
        (record.name, field.name) for records in CUDA_LAYOUTS.values() for record in records for field in record.fields
    }
    # The upper bits of a stamp are changed with the lower ones.
    assert declared - names_of("cuda") == {("cuda.proton.entry", "time_high")}


def test_all_declared_fields_of_aie_are_changed():
    declared = {(HEADER.name, field.name) for field in HEADER.fields}
    for frames in FRAME_SETS.values():
        for record in frames.records:
            if record.name not in RARE_FRAMES:
                declared |= {
                    (f"{frames.name}.{record.name}", name) for name in ("prefix", *(f.name for f in record.fields))
                }
    assert declared <= names_of("aie")


def test_all_fields_of_the_lists_of_ascend_are_changed():
    from lanescope.devices.ascend.formats import layout

    found = names_of("ascend")
    for lists in (layout.RECORDS, layout.V1, layout.V4, layout.DEPS):
        for each_list in lists:
            if each_list is layout.LIFECYCLE:
                continue  # no recording of the ledger has it: tests/devices/ascend/test_lifecycle.py changes its cells
            known = {name for record, name in found if record == each_list.name}
            lacking = {cell.name for cell in each_list.cells} - known
            # Cells that only some producers wrote, and ours do not.
            assert known or each_list.name in ("aicpu_scheduler_phases",), each_list.name
            assert lacking <= {"run_epoch", "fanout", "phase", "detail", "source", "task_id", "ring_id"}, (
                each_list.name,
                lacking,
            )


@pytest.mark.parametrize("family", FAMILIES)
def test_mutants_are_the_same_each_time(family):
    seed = seeds(family)[0]
    one, other = (list(mutations(seed.declared, seed.files, count=60)) for _ in range(2))
    assert one == other
    assert {mutant.change for mutant in one} <= {*VALUE_CHANGES, *CHANGES}
    assert all(content != seed.files[name] for mutant in one for name, content in mutant.files.items())
    assert list(mutations(seed.declared, seed.files, count=60, seed=1)) != one


def test_a_format_that_does_not_say_where_its_fields_lie_is_refused():
    from lanescope.families.family import Format

    with pytest.raises(ValueError, match="does not declare `fields`"):
        next(mutations(Format("plain", detect=print), {}, count=1))


def test_verdicts():
    """The same bytes, a cut file, a contradicted record and a name of another spelling."""
    seed = seeds("cuda")[0]
    name, content = next(iter(seed.files.items()))
    with Judge(seed.files) as judge:
        assert judge.judge({}).name == "same"
        assert judge.judge({name: content[:90]}).name == "refused"
        assert judge.judge({name: content}).name == "same"
        found = judge.judge({name: content[:-8] + b"\xff" * 8})
        assert found.is_detected
        assert found.name in DETECTED
        assert found.by
        names = next(other for other in seed.files if other != name)
        assert judge.judge({names: seed.files[names].replace(b"softmax", b"softmin")}).name == "visible"
        assert judge.judge({names: None}).name != "same"
        assert judge.judge({}).name == "same"


def test_numbers_in_text_keep_their_look():
    content = b"a: 0x00ff, b: 007, c: 12.050, d: word"
    places = [content.index(text) for text in (b"0x00ff", b"007", b"12.050", b"word")]
    ends = [at + size for at, size in zip(places, (6, 3, 6, 4), strict=True)]
    site = FieldSites("line", "value", "", "file", places, end=ends, lane=[0] * 4, is_padded=True)
    assert [site.read(content, index) for index in range(4)] == [255, 7, 12050, b"word"]
    assert site.write(content, 0, 4096) == content.replace(b"0x00ff", b"0x1000")
    assert site.write(content, 1, 12) == content.replace(b"007", b"012")
    assert site.write(content, 2, 50) == content.replace(b"12.050", b"0.050")
    assert site.write(content, 3, b"x") == content.replace(b"word", b"x")


def test_values_are_possible_together_only():
    possible = each(lambda index, value: "even" if value % 2 == 0 else "")
    assert possible({0: 2, 1: 4}) == "even"
    assert possible({0: 2, 1: 3}) == ""


def test_spans_of_json():
    text = b'{"a": [1, {"b": "x,]"}, []], "c\\"d": {"e": null}, "f": -1.5e3}'
    data = json.loads(text)
    found = {}
    for span in spans(text):
        at = data
        for part in span.path:
            at = at[part.replace('\\"', '"') if isinstance(part, str) else part]
        assert json.loads(text[span.begin : span.end]) == at
        assert span.is_leaf == (not isinstance(at, list | dict))
        found[span.path] = at
    assert len(found) == 9


#: Formats whose fields each file declares for itself, so that none can be listed to change. Event by event they are
#: compared with what another reader of the format reads.
DECLARED_BY_FILES = {"ctf"}


def test_every_family_is_in_the_ledger():
    families = registry.builtin()
    assert sorted(FAMILIES) == sorted(family.name for family in families)
    for family in families:
        for format in family.formats:
            is_there = any(seed.declared is format for seed in seeds(family.name))
            assert is_there != (format.name in DECLARED_BY_FILES), format.name


TEXTS = {
    "hour": lambda line: b"24" + line[2:],
    "minute": lambda line: line[:3] + b"60" + line[5:],
    "second": lambda line: line[:6] + b"60" + line[8:],
    "ten digits of a fraction": lambda line: line[:18] + b"7" + line[18:],
    "no fraction": lambda line: line[:8] + line[18:],
    "first quote lost": lambda line: line.replace(b'"', b"", 1),
    "last quote lost": lambda line: b"".join(line.rsplit(b'"', 1)),
    "a quote more": lambda line: line.replace(b'"', b'"x"', 1),
    "an escaped quote": lambda line: b'\\"'.join(line.rsplit(b'"', 1)),
}


@pytest.mark.parametrize("change", TEXTS)
def test_text_out_of_range_is_lost_with_notice(change):
    """A line that no clock and no writer gives is not read as another one."""
    seed = seeds("levelzero")[0]
    name, content = next(iter(seed.files.items()))
    lines = content.splitlines(keepends=True)
    at = next(index for index, line in enumerate(lines) if index > 20 and b'"' in line)
    lines[at] = TEXTS[change](lines[at])
    with Judge(seed.files) as judge:
        found = judge.judge({name: b"".join(lines)})
    assert found.name in ("warning", "error")
    assert "LS002" in found.by


def test_nothing_is_open():
    """Each change that nothing detects is one that a healthy device could have written, with the reason."""
    for family, rows in ledger.from_json(kept()["ledger"]).items():
        left = [key for key, row in rows.items() if row.counts[ledger.OPEN]]
        assert [".".join(key) for key in left] == [], family


def test_another_task_has_to_fit_its_execution():
    """Two tasks of one kind change places where the core, the submissions and the dependencies allow it."""
    tasks = [
        {"task_id": str(task), "kernel_ids": slots} for task, slots in enumerate(([-1, 3, -1],) * 3 + ([5, -1, -1],))
    ]
    deps = {"tasks": tasks, "edges": [{"pred": "0", "succ": "2"}]}
    graph = TaskGraph(deps, {"aicpu_orchestrator_phases": [[{"task_id": 1, "start_cycles": 5}]]})
    runs = [Execution(0, "aiv", 10, 20), Execution(1, "aiv", 12, 22), Execution(2, "aiv", 30, 40)]
    possible = possible_tasks(graph, runs, range(3))
    assert possible({0: 1, 1: 0})
    assert not possible({1: 2, 2: 1})  # before its producer was seen to end
    assert not possible({0: 1})  # executed twice
    assert not possible({0: 3, 1: 0})  # another type of core
    assert not possible_tasks(None, runs, range(3))({0: 1, 1: 0})
    graph.submitted[1] = 11
    assert not possible({0: 1, 1: 0})  # before its submission


def test_a_reading_has_to_fit_the_rate_of_the_others():
    """A tick a nanosecond, readings within 100 ns before their records."""
    others = [Reading(1, 900, 1000, 1000), Reading(1, 99_900, 100_000, 100_000)]
    for ticks, fits in ((50_000, True), (49_860, True), (49_700, False), (50_250, False)):
        assert bool(possible_reading(Reading(1, 49_900, 50_000, ticks), others)) == fits, ticks
    assert not possible_reading(Reading(1, 49_900, 50_000, 50_000), others[:1])
