"""Values that are named by reference: imported when they are read, and not before."""

import subprocess
import sys

import pytest

from lanescope.declaration import replace
from lanescope.errors import MissingDependencyError
from lanescope.families import registry
from lanescope.families.declaration import Reference, declared_class, load


@declared_class
class Shelf:
    name: str
    books: "Reference[tuple[str, ...]]"
    shown: "Reference[object]" = Reference("math:pi")


def test_a_reference_is_what_it_refers_to_and_so_is_the_object_itself():
    import math

    assert Shelf("a", "string:digits").books == "0123456789"
    assert Shelf("a", ("x",)).books == ("x",)
    assert Shelf("a", ()).shown == math.pi
    assert Shelf("a", (), shown=3).shown == 3
    assert replace(Shelf("a", ("x",)), name="b").books == ("x",)


def test_a_reference_is_required_where_it_has_no_default_and_never_changed():
    with pytest.raises(TypeError, match="lacks books"):
        Shelf("a")
    with pytest.raises(AttributeError, match="cannot be changed"):
        Shelf("a", ()).books = ("y",)


def test_nothing_is_imported_before_it_is_read():
    code = (
        "import sys; from lanescope.families import registry; registry.builtin(); "
        "rooms = ('lanescope.devices.', 'lanescope.foreign.'); "
        "found = [name for name in sys.modules if name.startswith(rooms) and name.count('.') > 2]; "
        "wanted = {f'lanescope.devices.{name}.family' for name in registry.DEVICES}; "
        "wanted |= {f'lanescope.foreign.{name}.family' for name in registry.FOREIGN}; "
        "assert set(found) == wanted, found; "
        "assert 'numpy' not in sys.modules and 'dataclasses' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_another_package_lacks_is_said_with_the_way_out():
    with pytest.raises(MissingDependencyError, match="no_such_package:x of another package cannot be loaded: Module"):
        load("no_such_package:x")
    with pytest.raises(ModuleNotFoundError):
        load("lanescope.no_such_module:x")  # a bug in lanescope


def test_families_are_told_apart_by_format():
    families = {family.name: [format.name for format in family.formats] for family in registry.builtin()}
    assert families["levelzero"] == ["thapi_text", "lanescope_ctf", "ctf"]
    assert all(families.values())
