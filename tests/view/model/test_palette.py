"""Colours of names."""

from lanescope.view.model.palette import FILLS, NEUTRAL, colours, fnv1a

WORK = ["compute"] * 20


def test_the_hash_is_that_of_the_standard():
    assert [fnv1a(text) for text in ("", "a", "foobar")] == [0x811C9DC5, 0xE40C292C, 0xBF9CF968]


def test_a_name_keeps_its_colour_as_long_as_no_more_frequent_one_has_it():
    names = [f"name {letter}" for letter in "abcdefgh"]
    alone = {name: colours([name, "another"], WORK[:2])[0] for name in names}
    together = colours(names, WORK[:8])
    assert together[0] == alone[names[0]]
    assert sorted(together) == list(range(len(FILLS)))


def test_names_that_differ_in_digits_only_have_one_colour_unless_all_do():
    one, two, other = colours(["tile 12", "tile 7", "epilogue"], WORK[:3])
    assert one == two != other
    assert len(set(colours(["tile 12", "tile 7"], WORK[:2]))) == 2


def test_waits_are_neutral_and_take_no_colour():
    found = colours(["wait_full", "mma"], ["wait", "compute"])
    assert found == [NEUTRAL, colours(["mma", "x"], WORK[:2])[0]]


def test_lone_surrogates_have_a_colour():
    assert colours(["\ud800", "b"], WORK[:2])[0] in range(len(FILLS))
