"""Helpers for tests of code that makes or reads traces: lanescope, device families, analyses.

* ``traces()`` and ``batches()``: hypothesis strategies of traces with every feature of the model, sound or not;
  ``valid_traces()``: only what no rule of ``lanescope check`` objects to; ``intervals(nesting)``: one lane's times.
* ``large_trace(...)``: a million slices in a moment, for benchmarks.
* ``check_family(FAMILY)``: what every device family promises; ``CommandRecorder``: a context for tests of its commands.
* ``check_rule(RULE, violating=, sound=)``: what ``lanescope check`` relies on in a rule of another package.
* ``mutations(FORMAT, files)`` and ``Judge``: captures with one field changed, and whether a user learns of it.
* ``assert_consistent``, ``assert_accounted``, ``assert_same``: what every decoder promises of its traces.
* ``pytest_plugin``: the fixture ``lanescope_trace``, and markers that hold captures of a test to limits.

The strategies need hypothesis; it is imported when one of them is first used, the rest works without it.

Example::

    from hypothesis import given
    from lanescope import testing

    @given(testing.traces())
    def test_my_writer(trace):
        assert count_of(write(trace)) == len(trace.slices)
"""

from __future__ import annotations

from lanescope.lazy_names import lazy_names

TYPE_CHECKING = False  # as in ``typing``, which costs more to import than all of this
if TYPE_CHECKING:
    from lanescope.testing.asserts import assert_accounted, assert_consistent, assert_same
    from lanescope.testing.families import CommandRecorder, check_family
    from lanescope.testing.large_traces import large_trace
    from lanescope.testing.mutations import Judge, Mutant, Verdict, mutations
    from lanescope.testing.rules import check_rule
    from lanescope.testing.strategies import batches, intervals, traces, valid_traces

__all__ = [
    "CommandRecorder",
    "Judge",
    "Mutant",
    "Verdict",
    "assert_accounted",
    "assert_consistent",
    "assert_same",
    "batches",
    "check_family",
    "check_rule",
    "intervals",
    "large_trace",
    "mutations",
    "traces",
    "valid_traces",
]


#: The module that holds each name. Loaded on use: the pytest plugin is in this package, and every run of pytest in an
#: environment with lanescope imports it.
_HOME = {
    "CommandRecorder": "families",
    "Judge": "mutations",
    "Mutant": "mutations",
    "Verdict": "mutations",
    "assert_accounted": "asserts",
    "assert_consistent": "asserts",
    "assert_same": "asserts",
    "batches": "strategies",
    "check_family": "families",
    "check_rule": "rules",
    "intervals": "strategies",
    "large_trace": "large_traces",
    "mutations": "mutations",
    "traces": "strategies",
    "valid_traces": "strategies",
}

__getattr__ = lazy_names(__name__, _HOME, globals())
