"""Formats that are decoded by one function, given the whole file."""

import numpy as np
import pytest

from lanescope.declaration import replace
from lanescope.errors import UsageError
from lanescope.families import Family, Format, Option, Simulation, Simulator, registry
from lanescope.families.options import int_in
from lanescope.pipeline import session
from lanescope.source import Detection
from lanescope.testing import check_family
from lanescope.trace import StatSpec, TableSpec, argument, ref

ROWS = TableSpec("toy_rows", "a byte", (ref("instant_id", "instants", "it"), argument("value", "uint8", "its value")))


def decode(data, context):
    """Every byte is an instant; those above 127 are odd."""
    builder = context.builder(frequency=context.options["hertz"])
    builder.add_bytes(decoded=len(data))
    lane = builder.track("lane", kind="lane", role="core")
    values = np.frombuffer(data, np.uint8)
    first = builder.append("instants", track_id=lane, ts=np.arange(len(values)), name="byte")
    builder.append("toy_rows", instant_id=first + np.arange(len(values)), value=values)
    builder.add_stat("toy_odd", int((values > 127).sum()), input_id=0)
    return builder


TOY = Family(
    "toy",
    "a toy",
    (Format("toy-1", lambda head: Detection(95 if head.data.startswith(b"TOY") else 0), decode_file=decode),),
    options=(Option("hertz", int, "frequency"),),
    tables=(ROWS,),
    stats=(StatSpec("toy_odd", "notice", "odd", finding="LS401"),),
    simulator=Simulator(lambda options, seed: Simulation({"run.toy": b"TOY" + bytes(range(200))}, {})),
)


def decoded(path, **options):
    with session.capture(path) as capture:
        (trace,) = session.decode(capture, TOY, options)
    return trace


def test_the_function_is_given_the_file_and_a_builder_of_the_family(tmp_path):
    path = tmp_path / "run.toy"
    path.write_bytes(b"TOY\xff")
    trace = decoded(path, hertz=5)
    (row,) = trace.inputs.rows()
    assert (row["capture"], row["path"], row["size"], row["family"]) == ("run", str(path), 4, "toy")
    assert (row["format"], row["options"]) == ("toy-1", '{"hertz": 5}')
    assert trace.details["toy_rows"]["value"].tolist() == [*b"TOY\xff"]
    assert trace.stats["name"].tolist() == ["toy_odd"]
    assert (trace.time.time_unit, trace.time.epoch_kind) == ("ns", "first_event")
    assert decoded(path).time.time_unit == "cycles"


def test_such_a_family_keeps_what_all_promise():
    check_family(TOY)


def test_what_was_not_accounted_for_is_a_bug_and_shown_as_one(tmp_path):
    from lanescope.errors import InternalError

    (tmp_path / "run.toy").write_bytes(b"TOY")
    silent = replace(
        TOY, formats=(replace(TOY.formats[0], decode_file=lambda data, context: context.builder(frequency=1)),)
    )
    with session.capture(tmp_path / "run.toy") as capture, pytest.raises(InternalError, match="accounting of input 0"):
        list(session.decode(capture, silent, {}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"decode_file": None}, "must have either decode or decode_file"),
        ({"decode": "json:loads"}, "must have either decode or decode_file"),
        ({"is_streaming": True}, "takes the whole file"),
        ({"random_access": True}, "takes the whole file"),
    ],
)
def test_a_format_that_contradicts_itself_is_refused(change, said):
    with pytest.raises(TypeError, match=said):
        registry.verify(replace(TOY, formats=(replace(TOY.formats[0], **change),)))


def test_references_are_not_loaded_to_verify_a_family():
    registry.verify(replace(TOY, formats=(Format("toy", "no_such_module:a", decode_file="no_such_module:b"),)))


@pytest.mark.parametrize(("text", "value"), [("8", 8), ("0x40", 64), ("7", None), ("65", None), ("1.5", None)])
def test_a_whole_number_in_a_range(text, value):
    option = Option("bits", int_in(8, 64), "width")
    if value is not None:
        assert option.value(text) == value
        return
    with pytest.raises(UsageError, match=r"invalid value .* for --bits"):
        option.value(text)
