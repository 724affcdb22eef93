"""Every reader in Python takes changed inputs or refuses them with one clear line; `make fuzz` tries many more."""

import random

import pytest

from effort import some
from fuzz import readers


@pytest.mark.parametrize("name", readers.TARGETS)
def test_changed_inputs_are_taken_or_refused(name):
    seeds = readers.seeds(name)
    assert any(readers.attempt(name, seed) for seed in seeds), "no seed is valid"
    for number in range(some(1000, 40)):
        chosen = random.Random(f"{name} {number}")
        data = readers.changed(chosen.choice(seeds), chosen.choice(seeds), chosen)
        try:
            readers.attempt(name, data)
        except Exception as error:
            pytest.fail(f"change {number} of {name}: {error!r:.300}")


@pytest.mark.parametrize("data", [b"\xff" * 9 + b"\r\n", b"\x00" + b"\xff" * 8, b"\x00" + bytes(8), bytes(3)])
def test_lengths_that_lead_back_do_not_hang_the_reader_of_waveforms(data):
    assert not readers.attempt("read_vcd", data)


def test_times_of_waveforms_beyond_63_bits_are_refused():
    assert readers.attempt("read_vcd", readers.VCD)
    assert not readers.attempt("read_vcd", readers.VCD.replace(b"#5\n", b"#" + b"5" * 25 + b"\n"))
