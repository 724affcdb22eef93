"""Values that cannot be changed."""

import doctest
from functools import cached_property

import numpy as np
import pytest

from lanescope import declaration as module
from lanescope.declaration import as_dict, frozen_class, replace, value_names


@frozen_class
class Span:
    """Two values and a default."""

    begin: int
    end: int = 0

    @property
    def length(self):
        return self.end - self.begin


def test_values_by_position_and_by_name():
    assert Span(1, 5).length == 4
    assert Span(begin=1, end=5) == Span(1, end=5)
    assert hash(Span(1)) == hash(Span(1, 0))
    assert Span(1) != (1, 0)
    assert replace(Span(1, 5), end=9) == Span(1, 9)
    assert repr(Span(1)) == "Span(begin=1, end=0)"


@pytest.mark.parametrize(
    ("args", "given"), [((), {}), ((1, 2, 3), {}), ((1,), {"begin": 2}), ((1,), {"size": 2}), ((), {"end": 2})]
)
def test_what_does_not_fit_is_refused(args, given):
    with pytest.raises(TypeError, match="Span"):
        Span(*args, **given)


def test_a_copy_computes_its_own_values():
    @frozen_class
    class Counted:
        numbers: tuple

        @cached_property
        def total(self):
            return sum(self.numbers)

    first = Counted((1, 2))
    assert first.total == 3
    assert replace(first, numbers=(5,)).total == 5
    assert replace(first) == first


def test_arrays_are_compared_element_by_element():
    def span(*values):
        return Span(np.array(values), (np.array([7]), "a"))

    assert span(1, 2) == span(1, 2)
    assert span(1, 2) != span(1, 3)
    assert span(1, 2) != span(1, 2, 3)
    assert span(1) != span(1, 1)
    assert span(1) != Span(1, (7, "a"))
    assert Span([1, np.array([1, 2])]) != Span([1, np.array([1, 2]), 3])
    assert Span(np.array([])) != Span(None)


def test_nothing_can_be_changed():
    span = Span(1, 2)
    with pytest.raises(AttributeError, match=r"Span\.end"):
        span.end = 7
    with pytest.raises(AttributeError, match=r"Span\.end"):
        del span.end
    with pytest.raises(AttributeError):
        span.size = 1
    assert vars(span) == {"begin": 1, "end": 2}


@frozen_class
class Named:
    spans: tuple[Span, ...]
    name: str = ""

    def __post_init__(self):
        if not self.spans:
            raise ValueError("no spans")


def test_values_are_checked():
    assert Named((Span(1),)).name == ""
    with pytest.raises(ValueError, match="no spans"):
        Named(())


def test_names_and_values_in_the_order_of_declaration():
    assert value_names(Named) == ("spans", "name")
    plain = as_dict(Named(name="a", spans=(Span(end=2, begin=1),)))
    assert plain == {"spans": ({"begin": 1, "end": 2},), "name": "a"}
    assert [*plain, *plain["spans"][0]] == ["spans", "name", "begin", "end"]


def test_examples():
    assert doctest.testmod(module).failed == 0
