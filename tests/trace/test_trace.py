"""A trace: what its time base may say, and its methods, which are functions of rooms above."""

import inspect

import pytest

import lanescope
from lanescope.trace import TimeBase, Trace, TraceBuilder
from lanescope.view.report.write import write_report


@pytest.mark.parametrize("wrong", [{"epoch_kind": "lunar"}, {"time_unit": "hours"}])
def test_a_time_base_has_a_known_epoch_and_unit(wrong):
    with pytest.raises(ValueError, match="unknown time base"):
        TimeBase(**wrong)


FUNCTIONS = {
    name: getattr(lanescope, name)
    for name in (
        "sql", "check", "summary", "phases", "overview", "longest_gaps", "align", "window", "critical_path",
    )
}  # fmt: skip


@pytest.mark.parametrize(("name", "function"), [*FUNCTIONS.items(), ("report", write_report)])
def test_a_method_has_the_defaults_of_its_function(name, function):
    method, function = (inspect.signature(one).parameters for one in (getattr(Trace, name), function))
    assert {key: one.default for key, one in method.items() if key != "self"} == {
        key: one.default for key, one in function.items() if key != "trace"
    }


@pytest.mark.parametrize("name", ["summary", "phases", "explain", "overview", "longest_gaps", "align", "window"])
def test_a_method_answers_as_its_function(name):
    made = TraceBuilder(TimeBase())
    lane = made.track("core 0", kind="lane", role="core")
    made.append("slices", track_id=lane, ts=[0, 10], dur=[5, 5], name="a")
    trace = made.finish()
    method, function = getattr(trace, name)(), getattr(lanescope, name)(trace)
    assert method is not None
    assert str(method) == str(function)
    assert repr(method) == repr(function)


def test_a_view_is_inline_where_it_is_asked_for():
    shown = TraceBuilder(TimeBase()).finish().view(inline=True)
    assert "<iframe" in shown._repr_html_()
