"""What families declare of their columns: which hold a moment, which refer to rows of another table."""

from pathlib import Path

import pytest

import lanescope
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.trace.schema import CORE_TABLES

BLINKER = Path(__file__).parents[2] / "examples/blinker/src"

#: Columns that are named like references and are none: numbers that the producer gave, in its own terms.
NUMBERS = {
    "aie_segments.packet_id": "id in the header of the unit's packets",
    "ascend_tasks.task_id": "the runtime's task id",
    "ascend_tasks.reg_task_id": "the core's dispatch counter",
    "ascend_in_flight.task_id": "the runtime's task id",
    "ascend_in_flight.reg_task_id": "the core's dispatch counter",
    "ascend_phases.task_id": "the runtime's task id",
    "ascend_submits.task_id": "the runtime's task id",
    "ascend_coreless_tasks.task_id": "the runtime's task id",
    "ascend_edges.pred_task_id": "the runtime's task id",
    "ascend_edges.succ_task_id": "the runtime's task id",
    "ascend_graph_tasks.task_id": "the runtime's task id",
    "ascend_graph_tasks.graph_task_id": "the runtime's task id",
    "ascend_graphs.task_id": "the runtime's task id",
    "ascend_host_phases.task_id": "the runtime's task id",
    "ascend_pmu.task_id": "the runtime's task id",
    "aie_path_calls.node_id": "the number of a call in its call tree",
    "aie_path_calls.parent_id": "the number of a call in its call tree",
    "cuda_lanes.grid_id": "the driver's number of the launch",
    "cuda_buffers.launch_id": "the host's number of the launch",
    "cuda_regions.event_id": "event number of the record",
    "cuda_instants.event_id": "event number of the record",
    "cuda_flows.event_id": "event number of the record",
    "kineto_ops.external_id": "the profiler's number of an operator",
    "levelzero_operations.op_id": "the recorder's number of the operation",
}


def is_time_by_name(name):
    return name == "ts" or name.endswith("_ts")


def is_reference_by_name(name):
    return name.endswith(("_id", "_track", "_slice", "_instant", "_flow"))


def made(family):
    """The declarations of tables that are made on request."""
    return [spec for declared in family.derived for spec in declared.specs]


@pytest.fixture(params=[*registry.BUILTIN, "blinker"])
def family(request, monkeypatch):
    if request.param != "blinker":
        return registry.family(request.param)
    monkeypatch.syspath_prepend(BLINKER)
    from lanescope_blinker import FAMILY

    return FAMILY


def test_a_column_named_like_a_time_or_a_reference_declares_it_or_has_a_reason(family):
    for table in (*CORE_TABLES, *family.tables, *made(family)):
        for column in table.columns:
            where = f"{table.name}.{column.name}"
            assert column.is_time == is_time_by_name(column.name), f"{where}: is it a moment on the trace's axis?"
            if where in NUMBERS:
                assert not column.references, f"{where}: {NUMBERS[where]}"
            else:
                assert bool(column.references) == is_reference_by_name(column.name), f"{where}: to which table?"


def test_references_lead_to_tables_of_the_family(family):
    declared = {table.name for table in (*CORE_TABLES, *family.tables)}
    for table in (*family.tables, *made(family)):
        assert {column.references for column in table.columns} <= declared | {""}
        if table.key:
            assert table.column(table.key).references == table.key.removesuffix("_id") + "s"


def test_every_reason_is_about_a_column_that_exists():
    families = [registry.family(name) for name in registry.BUILTIN]
    tables = {spec.name: spec for family in families for spec in (*family.tables, *made(family))}
    for where in NUMBERS:
        table, column = where.split(".")
        assert column in tables[table].names


@pytest.mark.parametrize("name", registry.BUILTIN)
def test_raw_records_keep_the_device_time_and_refer_to_no_row(name, tmp_path):
    files = registry.family(name).simulate(simulator_defaults(name), 1).files
    for file, content in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(content)
    trace = lanescope.open(tmp_path / next(iter(files)), family=name)
    assert trace.records, "the simulator's capture has raw records"
    for table in trace.records.values():
        assert not any(column.is_time or column.references for column in table.spec.columns)


def simulator_defaults(name):
    return resolve_options(registry.family(name).sim_options, {}, what=name)
