"""JSON Schemas of all documents that commands print with ``--json``, made from the declarations that the code uses.

``python docs/json_schemas.py`` writes them into ``docs/reference/schemas``. Tests hold the files to this module, and
what commands print to the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

from lanescope.analysis import check, idle_causes, occupancy, overlap, phases, region_stats
from lanescope.analysis import summary as groups
from lanescope.analysis.align.answer import ALIGNMENT
from lanescope.analysis.check.impact import Impact
from lanescope.analysis.compare import comparison
from lanescope.analysis.compare.conditions import KINDS
from lanescope.analysis.compare.contribution import Contribution
from lanescope.analysis.critical_path import tables as critical_path
from lanescope.analysis.critical_path.event_graph import CAUSES
from lanescope.analysis.explain import VERDICTS
from lanescope.analysis.groupings import SLICES
from lanescope.cli.commands import summary as summary_command
from lanescope.cli.settings import FAIL_ON
from lanescope.devices.aie.path import schema as aie_path
from lanescope.devices.ascend.analysis.dependency_walk import FAN
from lanescope.families import registry
from lanescope.trace.schema import CORE_TABLES, ColumnSpec, TableSpec

FOLDER = Path(__file__).parent / "reference" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
SHARES: Schema = {"type": "object", "additionalProperties": NUMBER}
TEXTS: Schema = {"type": "array", "items": TEXT}
UNIT: Schema = {"enum": ["ns", "cycles"], "description": "unit of times"}
SEVERITY: Schema = {"enum": ["notice", "warning", "error"]}
#: JSON type of a column type.
_TYPES = {"float64": "number", "bool": "boolean", "text": "string", "utf8": "string"}
_CORE = {spec.name: spec for spec in CORE_TABLES}


def or_null(schema: Schema) -> Schema:
    """The same, or null for what is unknown."""
    return {**schema, "type": [schema["type"], "null"]} if "type" in schema else {"anyOf": [schema, {"type": "null"}]}


def listed(items: Schema, text: str = "") -> Schema:
    """A list."""
    return {"type": "array", "items": items} | ({"description": text} if text else {})


def record(properties: Mapping[str, Schema], *, optional: Iterable[str] = ()) -> Schema:
    """An object with these members and no others."""
    required = [name for name in properties if name not in set(optional)]
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def column(spec: ColumnSpec) -> Schema:
    """A value of a column."""
    kind = _TYPES.get(spec.type, "integer")
    unit = f"; in {spec.unit}" if spec.unit not in ("", "1") else ""
    return {"type": [kind, "null"] if spec.nullable else kind, "description": spec.doc + unit}


def row(spec: TableSpec, *, drops: Iterable[str] = (), unit: str = "", **more: Schema) -> Schema:
    """A row of a table; with ``unit``, columns in that unit have it in their names."""
    properties = {
        f"{each.name}_{unit}" if unit and each.unit == unit else each.name: column(each)
        for each in spec.columns
        if each.name not in set(drops)
    }
    return record(properties | more)


def in_both_units(make: Any) -> Schema:
    """What ``make`` returns for a time unit, for either one; once, where the unit shows nowhere but in descriptions."""
    both = [make("ns"), make("cycles")]
    return both[0] if both[0].get("required") == both[1].get("required") else {"anyOf": both}


def page(of: str, *others: str) -> Schema:
    """Which part of a list a document has."""
    return record(
        {
            "of": {"enum": [of, *others], "description": "the list that comes in parts"},
            "cursor": {**TEXT, "pattern": "^[0-9]+-[0-9a-f]{12}$", "description": "cursor of this part"},
            "offset": COUNT,
            "rows": {**COUNT, "description": "rows of this part"},
            "total": {**COUNT, "description": "rows of the whole answer"},
            "left": {**COUNT, "description": "rows that follow this part"},
            "next": or_null({**TEXT, "description": "value of --cursor for the next part; null after the last one"}),
        }
    )


WINDOW = record(
    {
        "start": or_null(WHOLE),
        "end": or_null(WHOLE),
        "unit": UNIT,
        "asked": listed({"type": "object"}, "the windows as they were asked for"),
        "excluded": COUNT,
        "filtered_slices": COUNT,
        "cut_slices": COUNT,
        "open_flows": COUNT,
    }
)


#: The window of each capture of a dataset.
ASKED: Schema = {"type": "object", "description": "the window of each capture, as it was asked for: option and value"}

#: How much of an answer is that of slices that ``--name``, ``--min-dur`` or ``--where`` select.
SELECTED = {
    **in_both_units(
        lambda unit: record(
            {
                "slices": COUNT,
                f"total_{unit}": COUNT,
                f"whole_{unit}": COUNT,
                "share": NUMBER,
                "stretches": COUNT,
                "whole_stretches": COUNT,
            },
            optional=("stretches", "whole_stretches"),
        )
    ),
    "description": "with --name, --min-dur or --where: how much of the answer of all slices is shown",
}


def document(name: str, text: str, properties: Mapping[str, Schema], *, optional: Iterable[str] = ()) -> Schema:
    """A document with the name and version of its schema."""
    body = record({"schema": {"const": name}, **properties}, optional=optional)
    return {"$schema": DIALECT, "$id": name, "title": name, "description": text, **body}


def info() -> Schema:
    """What ``info`` prints of a capture."""
    rows = {"type": "object", "additionalProperties": COUNT, "description": "number of rows of each table"}
    attested = or_null(record({"start": WHOLE, "end": WHOLE, "rows": COUNT}))
    times = {"unit": UNIT, "epoch_kind": TEXT, "epoch_ns": WHOLE, "start": or_null(WHOLE), "end": or_null(WHOLE)}
    return document(
        "lanescope.info/1",
        "lanescope info CAPTURE --json",
        {
            "window": WINDOW,
            "page": page("stats"),
            "family": TEXT,
            "format": TEXT,
            "detection": record({"score": {"type": "integer", "minimum": 0, "maximum": 100}, "reason": TEXT}),
            "inputs": listed(row(_CORE["inputs"])),
            "time": record({**times, "attested": attested}),
            "tracks": record(dict.fromkeys(("group", "lane", "counter"), COUNT)),
            "rows": rows,
            "clocks": listed(row(_CORE["clocks"])),
            "stats": listed(row(_CORE["stats"], meaning=TEXT)),
            "accounting": listed(row(_CORE["accounting"], is_balanced=FLAG)),
        },
        optional=["window"],
    )


def info_folder() -> Schema:
    """What ``info`` prints of a folder with several captures."""
    captured = record({"path": TEXT, "family": TEXT, "format": TEXT, "size": or_null(COUNT)})
    return document(
        "lanescope.info.folder/1",
        "lanescope info FOLDER --json, of a folder with several captures",
        {"folder": TEXT, "page": page("captures"), "captures": listed(captured), "is_complete": FLAG},
    )


def findings() -> Schema:
    """What ``check`` prints."""
    place = {"track_id": or_null(WHOLE), "track": TEXT, "ts": or_null(WHOLE), "input_id": or_null(WHOLE)}
    place |= {"input": TEXT, "offset": or_null(COUNT)}
    kinds = {int: WHOLE, float: NUMBER, bool: FLAG, str: TEXT}
    impact = {
        name: or_null(kinds[get_args(kind)[0]]) if get_args(kind) else kinds[kind]
        for name, kind in get_type_hints(Impact).items()
    }
    finding = {
        "code": {**TEXT, "pattern": "^[A-Z]+[0-9]+$"},
        "severity": SEVERITY,
        "title": TEXT,
        "detail": TEXT,
        "stat": or_null(TEXT),
        "location": record(place),
        "count": COUNT,
        "affected_fraction": or_null(NUMBER),
        "affected_lane_fraction": or_null(NUMBER),
        "impact": or_null(record(impact)),
        "evidence": record({"table": TEXT, "rows": COUNT, "sample": {**listed(COUNT), "maxItems": 20}}),
        "sql": {**TEXT, "description": "query that returns the evidence rows"},
        "sql_rows": COUNT,
        "help": TEXT,
    }
    sums = record(dict.fromkeys(check.Totals.__slots__, WHOLE))
    settings = {"file": or_null(TEXT), "select": TEXTS, "ignore": TEXTS, "fail_on": {"enum": list(FAIL_ON)}}
    settings |= {"thresholds": {"type": "object"}, "docs_url": TEXT}
    evidence = dict.fromkeys(("code", "table", "lane", "name"), TEXT) | {"id": COUNT}
    evidence |= {"ts": or_null(WHOLE), "dur": or_null(WHOLE)}
    return document(
        "lanescope.check/1",
        "lanescope check CAPTURE --json",
        {
            "window": WINDOW,
            "page": page("findings", "evidence"),
            "findings": listed(record(finding)),
            "totals": record({"all": sums, "without_affected": sums}),
            "rules": listed(TEXT, "codes of the rules that were applied"),
            "broken_rules": listed(record({"name": TEXT, "reason": TEXT})),
            "settings": record(settings),
            "evidence": listed(record(evidence), "rows that --show asked for"),
        },
        optional=("window", "evidence"),
    )


def summary() -> Schema:
    """What ``summary`` prints."""
    scalar: Schema = {"type": ["string", "number", "boolean", "null"]}
    rows: dict[tuple[str, ...], Schema] = {
        (by,): in_both_units(lambda unit, by=by: row(groups.spec(by, unit), unit=unit)) for by in SLICES
    }
    rows[("region",)] = in_both_units(lambda unit: row(region_stats.spec(unit), drops=["id"]))
    rows[("overlap",)] = in_both_units(lambda unit: row(overlap.spec(unit), drops=["id"]))
    rows[("idle",)] = in_both_units(lambda unit: row(idle_causes.causes_spec(unit), drops=["id"]))
    rows[("occupancy",)] = in_both_units(lambda unit: row(occupancy.occupancy_stats_spec(unit), drops=["id"]))
    units = tuple(by for by in summary_command.UNITS)
    rows[units] = in_both_units(lambda unit: row(occupancy.utilization_spec(unit), drops=["id"]))
    known = [by for names in rows for by in names]
    suspect = {"type": "object", "required": ["rules"], "properties": {"rules": TEXTS}}
    made = document(
        "lanescope.summary/1",
        "lanescope summary CAPTURE --json. Other values of --by are summaries of device families: their rows have the "
        "columns of the family's table.",
        {
            "by": TEXT,
            "unit": UNIT,
            "window": WINDOW,
            "page": page("rows"),
            "rows": listed({"type": "object", "additionalProperties": scalar}),
            "within": {**TEXT, "description": "instances whose lanes are analyzed together"},
            "exposure": listed(in_both_units(lambda unit: row(overlap.exposure_spec(unit)))),
            "suspects": listed(suspect, "totals that differ without suspect slices"),
            "suspect_slices": COUNT,
            "selected": SELECTED,
            "remarks": TEXTS,
        },
        optional=("selected", "window", "within", "exposure", "suspects", "suspect_slices", "remarks"),
    )
    families = {each.name for family in registry.builtin() for each in family.summaries}
    made["allOf"] = [
        {
            "if": {"properties": {"by": {"enum": list(names)}}},
            "then": {"properties": {"rows": listed(_or_of_family(schema) if set(names) & families else schema)}},
        }
        for names, schema in rows.items()
    ]
    made["properties"]["by"] = {**TEXT, "examples": known}
    return made


def _or_of_family(schema: Schema) -> Schema:
    """A row of an analysis, or of a family's own table of the same name: one without the first columns of the other."""
    first = schema.get("anyOf", [schema])[0]["required"][:3]
    return {"anyOf": [schema, {"type": "object", "not": {"required": first}}]}


def sql() -> Schema:
    """What ``sql`` prints."""
    columns = listed(record({"name": TEXT, "type": {**TEXT, "description": "type of DuckDB"}}))
    return document(
        "lanescope.sql/1",
        "lanescope sql CAPTURE QUERY --json. Integers of 64 bits without sign, and what JSON does not have, are text.",
        {"window": WINDOW, "page": page("rows"), "columns": columns, "rows": listed({"type": "array"})},
        optional=["window"],
    )


def time_of_lanes() -> Schema:
    """What ``phases`` prints."""
    spec = phases.phases_spec
    renamed = in_both_units(
        lambda unit: record(
            {
                (f"total_{unit}" if each.name == "total" else each.name): column(each)
                for each in spec(unit).columns
                if each.name != "id"
            }
        )
    )
    return document(
        "lanescope.phases/1",
        "lanescope phases CAPTURE --json",
        {
            "by": {"enum": list(phases.BY)},
            "unit": UNIT,
            "window": WINDOW,
            "page": page("rows"),
            "selected": SELECTED,
            "rows": listed(renamed),
        },
        optional=["window", "selected"],
    )


def gaps() -> Schema:
    """What ``gaps`` prints."""
    rows = in_both_units(lambda unit: row(phases.longest_spec(unit), drops=["id"], unit=unit))
    return document(
        "lanescope.gaps/1",
        "lanescope gaps CAPTURE --json",
        {"unit": UNIT, "window": WINDOW, "page": page("rows"), "selected": SELECTED, "rows": listed(rows)},
        optional=["window", "selected"],
    )


def path() -> Schema:
    """What ``critical-path`` prints."""
    shares = {"type": "object", "propertyNames": {"enum": list(CAUSES)}, "additionalProperties": NUMBER}
    sensitivity = {"ts": WHOLE, "dur": WHOLE, "cause": {"enum": list(CAUSES)}, "kind": TEXT}
    sensitivity |= {"second_cause": or_null(TEXT), "shares": shares}
    sink = record({"reason": TEXT, "lane": TEXT, "slice_id": WHOLE, "ts": WHOLE, "passed_over": COUNT})
    window = {"name": TEXT, "begin": WHOLE, "end": WHOLE, "sink": sink, "shares": shares, "explained": NUMBER}
    window |= {"inferred": NUMBER, "outlive": COUNT, "sensitivity": or_null(record(sensitivity))}
    counts = {"type": "object", "additionalProperties": COUNT}
    window |= {"estimated": {**counts, "description": "causes on the path whose moment is not recorded, by kind"}}
    window |= {"selected": {**COUNT, "description": "with a selection: time of the selected parts"}}
    chance = {"type": "object", "additionalProperties": record({"hits": COUNT, "at_random": NUMBER})}
    return document(
        "lanescope.critical_path/1",
        "lanescope critical-path CAPTURE --json",
        {
            "unit": UNIT,
            "window": WINDOW,
            "page": page("summary"),
            "windows": listed(record(window, optional=["selected"]), "with --limit: those of the listed rows"),
            "summary": listed(in_both_units(lambda unit: row(critical_path.summary_spec(unit)))),
            "edges": listed(in_both_units(lambda unit: row(critical_path.edges_spec(unit)))),
            "rows_suspect": COUNT,
            "rows_crossing": COUNT,
            "chance": chance,
            "what_if": listed(in_both_units(lambda unit: row(critical_path.what_if_spec(unit)))),
        },
        optional=["window"],
    )


def explain() -> Schema:
    """What ``explain`` prints."""
    rows = {**listed(row(VERDICTS, drops=["id"])), "maxItems": 5}
    return document(
        "lanescope.explain/1", "lanescope explain CAPTURE --json", {"window": WINDOW, "rows": rows}, optional=["window"]
    )


def align() -> Schema:
    """What ``align`` prints."""
    rows = listed(row(ALIGNMENT, drops=["id"]))
    return document(
        "lanescope.align/1",
        "lanescope align CAPTURE... --json",
        {"unit": UNIT, "rate_ppm": NUMBER, "window": WINDOW, "rows": rows},
        optional=["window"],
    )


def doctor() -> Schema:
    """What ``doctor`` prints, of the installation or of a capture."""
    part = record(
        {"what": TEXT, "version": TEXT, "state": {"enum": ["ok", "missing", "optional", "broken"]}, "remark": TEXT}
    )
    limit = record(dict.fromkeys(("family", "name", "where", "cannot", "instead"), TEXT))
    made = document(
        "lanescope.doctor/1",
        "lanescope doctor --json (rows), or lanescope doctor CAPTURE --json (limits)",
        {"rows": listed(part, "parts of the installation"), "limits": listed(limit, "what the capture cannot prove")},
        optional=("rows", "limits"),
    )
    made["oneOf"] = [{"required": ["rows"]}, {"required": ["limits"]}]
    return made


# --- commands of families -----------------------------------------------------------------------------------------


def path_of_core() -> Schema:
    """What ``aie-path`` prints."""
    tables = {
        spec.name.removeprefix("aie_path_").removeprefix("aie_"): listed(row(spec), spec.doc)
        for spec in aie_path.TABLES
        if spec.name.startswith("aie_path")
    }
    return document("lanescope.aie-path/1", "lanescope aie-path CAPTURE --json", {"listing": TEXT, **tables})


def waves() -> Schema:
    """What ``aie-wavediff`` prints."""
    signal = {"ours": TEXT, "theirs": TEXT, "our_changes": COUNT, "their_changes": COUNT, "difference": or_null(COUNT)}
    signal |= {"our_time": or_null(WHOLE), "our_value": or_null(WHOLE)}
    signal |= {"their_time": or_null(NUMBER), "their_value": or_null(WHOLE)}
    return document(
        "lanescope.aie-wavediff/1",
        "lanescope aie-wavediff CAPTURE WAVE --json",
        {"window": WINDOW, "signals": listed(record(signal))},
        optional=("window",),
    )


def register_writes() -> Schema:
    """What ``aie-config`` prints."""
    write = {"when": {"enum": ["start", "stop"]}, "col": COUNT, "row": COUNT}
    write |= dict.fromkeys(("register", "address", "value", "meaning"), TEXT)
    return document(
        "lanescope.aie-config/1",
        "lanescope aie-config CONFIG --json",
        {"device": TEXT, "writes": listed(record(write))},
    )


def layouts() -> Schema:
    """What ``cuda-layout check`` and ``find`` print."""
    params: Schema = {"type": "object", "additionalProperties": WHOLE}
    layout = {"layout": TEXT, "fits": FLAG, "params": params, "records": COUNT, "matching": COUNT}
    layout |= {
        "failed": or_null({**TEXT, "description": "the first test that failed"}),
        "lane": or_null({**COUNT, "description": "the first lane that fails"}),
    }
    counts = ("regions", "instants", "starts_without_an_end", "ends_without_a_start")
    counts += ("timestamps_before_the_one_before", "ends_before_their_start")
    counts += ("empty_positions_between_records", "dropped_records")
    outcome = or_null(record(dict.fromkeys(counts, COUNT)))
    return document(
        "lanescope.cuda-layout/1",
        "lanescope cuda-layout check LAYOUT BUFFER --json, and find BUFFER --json",
        {"action": {"enum": ["check", "find"]}, "layouts": listed(record(layout)), "outcome": outcome},
    )


def graph() -> Schema:
    """What ``ascend-deps`` prints without a task."""
    known = or_null(WHOLE)
    task: dict[str, Schema] = {"task": TEXT, "level": COUNT, "kind": TEXT, "name": or_null(TEXT)}
    task |= {"record": or_null(TEXT), "executions": COUNT, "begin": known, "duration": known, "slack": known}
    task |= {"dispatched_early": known, "allows_early": or_null(FLAG), "waits_for": TEXTS}
    edge = {"producer": TEXT, "consumer": TEXT, "is_implied": FLAG, "is_violated": FLAG, "slack": known}
    edge |= {"sources": TEXTS}
    return document(
        "lanescope.ascend-graph/1",
        "lanescope ascend-deps CAPTURE --json, without a task",
        {"window": WINDOW, "unit": UNIT, "tasks": listed(record(task)), "edges": listed(record(edge))},
        optional=("window",),
    )


def tasks_around() -> Schema:
    """What ``ascend-deps`` prints of a task."""
    rows = row(FAN)
    rows["properties"]["task_id"] = {**TEXT, "description": FAN.column("task_id").doc}
    return document(
        "lanescope.ascend-deps/1",
        "lanescope ascend-deps CAPTURE TASK --json",
        {"window": WINDOW, "task": {}, "rows": listed(rows)},
        optional=("window",),
    )


def tally() -> Schema:
    """What ``levelzero-tally`` prints."""
    number = {"type": ["number", "null"]}
    sums = {"section": TEXT, "name": TEXT} | dict.fromkeys(
        ("count", "errors", "open", "total", "average", "min", "max"), number
    )
    counts = ("events", "unmatched", "untimed", "backwards", "lost_bytes", "discarded", "missing_packets")
    counts += ("unknown_counts", "wide_threads")
    more = dict.fromkeys(counts, COUNT) | {"others": {"type": "object", "additionalProperties": COUNT}}
    return document(
        "lanescope.levelzero-tally/1",
        "lanescope levelzero-tally FOLDER --json; a recording of lanescope has rows only",
        {"rows": listed(record(sums)), **more},
        optional=more,
    )


def _comparison() -> dict[str, Schema]:
    """What documents about compared runs have in common."""
    return {"by": TEXTS, "unit": UNIT, "alpha": NUMBER, "floor": NUMBER, "runs_needed": or_null(COUNT)}


def compared() -> Schema:
    """What ``diff`` prints of two sides."""
    number = {"type": ["number", "null"]}
    value = {"type": ["string", "number", "null"]}
    effect = record(dict.fromkeys(comparison.Effect._fields, number))
    key = {"type": "object", "additionalProperties": TEXT, "description": "column of `by` -> text"}
    condition = {"kind": {"enum": list(KINDS)}, "name": TEXT, "a": listed(value), "b": listed(value), "detail": TEXT}
    verdicts = [*comparison.NAMED, comparison.SAME, comparison.UNTESTED]
    group = {
        "key": key,
        "verdict": {"enum": verdicts},
        "reason": TEXT,
        "runs": record({"a": COUNT, "b": COUNT}),
        "effects": record(dict.fromkeys(comparison.STATISTICS, effect)),
        "contribution": record(dict.fromkeys(Contribution._fields, WHOLE)),
    }
    undecided = listed(record({"key": key, "reason": TEXT}))
    methods = [comparison.RELABELING, comparison.PAIR, comparison.PREDICTION, comparison.TOO_FEW]
    return document(
        "lanescope.diff/1",
        "lanescope diff A... -- B... --json, and lanescope baseline check FOLDER RUN --json",
        {
            "method": {"enum": methods},
            **_comparison(),
            "runs": record({"a": TEXTS, "b": TEXTS}),
            "labelings": or_null(COUNT),
            "notes": TEXTS,
            "page": page("groups"),
            "conditions": listed(record(condition), "what differs in how the sides were recorded"),
            "overall": record({"busy": effect, "span": effect}),
            "change": {**WHOLE, "description": "change of the mean busy time, the sum of all contributions"},
            "groups": listed(record(group)),
            "fail_if": listed(record({"condition": TEXT, "failed": listed(key), "undecided": undecided})),
            "window": ASKED,
        },
        optional=("window",),
    )


def changes_of_series() -> Schema:
    """What ``diff --series`` prints."""
    key = {"type": "object", "additionalProperties": TEXT}
    change = {"key": key, "statistic": {"enum": ["total", "count"]}, "at": COUNT, "run": TEXT}
    change |= {"change": NUMBER, "p": NUMBER}
    own = {"runs": TEXTS, "tested": COUNT, "untested": listed(key), "changes": listed(record(change))}
    return document(
        "lanescope.diff_series/1",
        "lanescope diff --series RUN... --json",
        {**_comparison(), **own, "window": ASKED},
        optional=("window",),
    )


def baseline() -> Schema:
    """What ``baseline list`` prints."""
    run = {"name": TEXT, "sha256": TEXT, "unit": UNIT, "span": COUNT, "busy": COUNT, "groups": COUNT, "by": TEXT}
    return document("lanescope.baseline/1", "lanescope baseline list FOLDER --json", {"runs": listed(record(run))})


def dataset_info() -> Schema:
    """What ``info`` prints of a dataset."""
    run = {"run": TEXT, "captures": COUNT, "ranks": COUNT, "first_rank": or_null(COUNT), "last_rank": or_null(COUNT)}
    run |= {"families": TEXT, "slices": COUNT, "lost": COUNT, "bytes": COUNT}
    failed = {"path": TEXT, "reason": TEXT, "hint": TEXT, "exit_status": COUNT}
    summed = {"unit": TEXT, "total": COUNT, "decoded": COUNT, "padding": COUNT, "lost": COUNT}
    return document(
        "lanescope.dataset.info/1",
        "lanescope info DATASET --json",
        {
            "dataset": TEXT,
            "page": page("runs"),
            "captures": COUNT,
            "runs": listed(record(run)),
            "accounting": listed(record(summed)),
            "failed": listed(record(failed)),
        },
    )


def dataset_findings() -> Schema:
    """What ``check`` prints of a dataset."""
    rule = {"code": TEXT, "severity": SEVERITY, "title": TEXT, "captures": COUNT, "count": COUNT, "ranks": TEXT}
    found = findings()["properties"]["findings"]["items"]
    place = {"capture": TEXT, "run": TEXT, "rank": or_null(COUNT), "path": TEXT, "finding": found}
    return document(
        "lanescope.dataset.check/1",
        "lanescope check DATASET --json",
        {
            "dataset": TEXT,
            "page": page("findings"),
            "captures": COUNT,
            "rules": listed(record({**rule, "example": TEXT})),
            "findings": listed(record(place)),
            "window": ASKED,
        },
        optional=["window"],
    )


def dataset_summary() -> Schema:
    """What ``summary`` prints of a dataset."""
    scalar: Schema = {"type": ["string", "number", "boolean", "null"]}
    rows = listed({"type": "object", "additionalProperties": scalar})
    return document(
        "lanescope.dataset.summary/1",
        "lanescope summary DATASET --json",
        {"by": TEXT, "unit": UNIT, "window": ASKED, "page": page("rows"), "rows": rows},
        optional=["window"],
    )


def dataset_verdicts() -> Schema:
    """What ``explain`` prints of a dataset."""
    row = {"run": TEXT, "topic": TEXT, "cause": TEXT, "captures": COUNT, "ranks": TEXT}
    row |= {"share": {"type": "number"}, "largest_share": {"type": "number"}, "sentence": TEXT, "command": TEXT}
    return document(
        "lanescope.dataset.explain/1",
        "lanescope explain DATASET --json",
        {"dataset": TEXT, "window": ASKED, "captures": COUNT, "rows": listed(record(row))},
        optional=["window"],
    )


def ingested() -> Schema:
    """What ``ingest`` prints."""
    lost: Schema = {"type": "object", "additionalProperties": COUNT}
    capture = {"path": TEXT, "status": {"enum": ["ingested", "present", "failed"]}, "capture": TEXT, "slices": COUNT}
    capture |= {"bytes": COUNT, "lost": lost, "reason": TEXT, "hint": TEXT, "exit_status": COUNT}
    return document(
        "lanescope.ingest/1",
        "lanescope ingest INPUT... -o DATASET --json",
        {
            "dataset": TEXT,
            "counts": record(dict.fromkeys(("ingested", "present", "failed"), COUNT)),
            "ignored": TEXTS,
            "captures": listed(record(capture)),
        },
    )


MADE = (
    ingested, dataset_info, dataset_findings, dataset_summary, dataset_verdicts,
    info, info_folder, findings, summary, sql, time_of_lanes, gaps, path, explain, align, doctor,
    compared, changes_of_series, baseline,
    path_of_core, waves, register_writes, layouts, graph, tasks_around, tally,
)  # fmt: skip


def file_of(name: str) -> str:
    """Return the file of a schema: ``lanescope.info/1`` is ``lanescope.info-1.json``."""
    return f"{name.replace('/', '-')}.json"


def files() -> dict[str, str]:
    """Return the content of each file."""
    schemas = [make() for make in MADE]
    return {file_of(schema["$id"]): json.dumps(schema, indent=1, ensure_ascii=True) + "\n" for schema in schemas}


if __name__ == "__main__":
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for name, text in files().items():
        (FOLDER / name).write_text(text)
