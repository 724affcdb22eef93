"""Arguments: where options may stand, and what numbers may look like."""

import json

import pytest

import lanescope
from error_text import is_one_error
from lanescope.families import options, registry


@pytest.fixture
def buffer(call, tmp_path):
    """Return a small capture of the cuda family: ``b.npy``, and its twin with one seed more: ``c.npy``."""
    for seed, name in enumerate("bc"):
        assert call("sim", "cuda", "--blocks", 2, "--tiles", 2, "--seed", seed, "-o", f"{name}.npy").status == 0
    return tmp_path / "b.npy"


# --- where options may stand ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("b.npy", "select 1", "--layout", "tirx"),
        ("b.npy", "--layout", "tirx", "select 1"),
        ("--layout", "tirx", "b.npy", "select 1"),
        ("b.npy", "--json", "select 1"),
        ("b.npy", "-O", "layout=tirx", "select 1"),
        ("--", "b.npy", "select 1"),
    ],
)
def test_options_may_stand_between_input_and_query(call, buffer, arguments):
    done = call("sql", *arguments)
    assert (done.status, done.err) == (0, "")
    assert done.out == "1\n─\n1\n1 row, 1 column\n" or json.loads(done.out)["rows"] == [[1]]


def test_options_may_stand_between_inputs(call, buffer, tmp_path):
    same = ("--device", "gpu 0")
    together = call("convert", "b.npy", "c.npy", *same, "-o", "a.json")
    between = call("convert", "b.npy", *same, "c.npy", "-o", "b.json")
    around = call("convert", *same, "b.npy", "-o", "c.json", "c.npy")
    assert together.status == between.status == around.status
    assert "unrecognized" not in between.err + around.err


def test_options_of_other_packages_may_stand_between_too(call, run_file):
    assert call("sql", "run.blink", "--lamps", "a,b", "select 1", "--csv").out.split() == ["1", "1"]
    assert call("sql", "run.blink", "--lamps", "a,b", "select 1", "select 2").err == (
        "lanescope: error: unrecognized arguments: select 2\n  hint: see lanescope sql --help\n"
    )


# --- numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["1GHz", "1 GHz", "1ghz", "1000MHz", "1e9", "1000000000", "1e6kHz", "1e9 Hz"])
def test_a_frequency_may_have_a_unit(call, text, tmp_path):
    assert call("sim", "aie", "--records", 20, "-o", "run.bin").status == 0
    trace = lanescope.open(tmp_path / "run.bin", frequency=text)
    assert trace.time.time_unit == "ns"
    plain = lanescope.open(tmp_path / "run.bin", frequency="1e9")
    assert trace.slices["ts"].tolist() == plain.slices["ts"].tolist()
    assert call("info", "run.bin", "--frequency", text).status == 0


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (options.mega_hertz, "1755", 1755.0),
        (options.mega_hertz, "1.755GHz", 1755.0),
        (options.whole_hertz, "50MHz", 50_000_000),
        (options.whole_hertz, "12.5 MHz", 12_500_000),
        (options.nanoseconds, "10us", 10_000),
        (options.nanoseconds, "10", 10),
        (options.milliseconds, "10", 10.0),
        (options.milliseconds, "100 µs", 0.1),
        (options.milliseconds, "2s", 2000.0),
        (options.microseconds, "1ms", 1000.0),
        (options.hertz, "1e9/3", None),
        (options.hertz, "0", None),
        (options.hertz, "-1", None),
        (options.hertz, "nan", None),
        (options.hertz, "inf", None),
        (options.hertz, "1e-999999999", None),
        (options.hertz, "1e999999999", None),
        (options.hertz, "1GHzz", None),
        (options.hertz, "1us", None),
        (options.hertz, "GHz", None),
        (options.hertz, "", None),
        (options.whole_hertz, "1.5", None),
        (options.nanoseconds, "1ps", None),
        (options.nanoseconds, "-1", None),
        (options.milliseconds, "1GHz", None),
        (options.non_negative_int, "٣" * 5000, None),
        (options.non_negative_int, "1" * 25, None),
        (options.number, "1e400", None),
        (options.fraction, "nan", None),
    ],
)
def test_numbers_with_units(parse, text, value):
    if value is not None:
        assert parse(text) == value
        return
    with pytest.raises(ValueError, match=r"must|expected|too large") as caught:
        parse(text)
    assert "invalid literal" not in str(caught.value), "those are Python's words"


def test_a_period_may_have_a_unit(call):
    pytest.importorskip("pywellen")
    assert call("sim", "aie", "--records", 20, "-o", "run.bin").status == 0
    assert call("convert", "run.bin", "-o", "run.vcd").status == 0
    plain = call("aie-wavediff", "run.bin", "run.vcd", "--period", "1000")
    assert call("aie-wavediff", "run.bin", "run.vcd", "--period", "1ns") == plain
    done = call("aie-wavediff", "run.bin", "run.vcd", "--period", "1 parsec")
    assert (done.status, "expected a time in picoseconds, e.g. 1000 or 1ns" in done.err) == (2, True)


WORDS = ["many", "", "-1", "nan", "inf", "1e400", "1e-400", "0", "9" * 30, "9" * 5000, "٣", "1/0", "0x10", "1.5", "1,2"]


@pytest.mark.parametrize("family", registry.BUILTIN)
def test_whatever_stands_for_a_number_is_used_or_refused_in_one_line(call, tmp_path, family):
    """Every option of every family, of decoding and of simulating, with everything that may be given for a number."""
    member = registry.family(family)
    small = {"records": "10", "blocks": "2", "tiles": "2", "tasks": "10", "ops": "10"}
    few = [(name, small[name]) for name in small if name in {option.name for option in member.sim_options}]
    assert call("sim", family, "-o", "run", *[f"-O{name}={value}" for name, value in few]).status == 0
    for text in WORDS:
        for option in member.options:
            done = call("info", "run", "--family", family, "-O", f"{option.name}={text}")
            # 3: it is a file that cannot be read.
            assert done.status in ((0, 2, 3) if option.parse is str else (0, 2)), (option.name, text, done.err)
            if done.status:
                assert done.err.startswith("lanescope: error: ")
                assert is_one_error(done.err)
        if len(text) == 30:
            continue  # a simulation of such a length is what was asked for
        for option in member.sim_options:
            others = [f"-O{name}={value}" for name, value in few if name != option.name]
            done = call("sim", family, "-o", "again", "--force", f"-O{option.name}={text}", *others)
            assert done.status in ((0, 2, 3) if option.parse is str else (0, 2)), (option.name, text, done.err)
            if done.status:
                assert is_one_error(done.err)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("dump", "b.npy", "--limit", "0"), "invalid value '0' for --limit: must be a positive integer"),
        (("summary", "b.npy", "--limit", "0"), "invalid value '0' for --limit: must be a positive integer"),
        (("aie-path", "b.npy", "--limit", "0"), "invalid value '0' for --limit: must be a positive integer"),
        (("dump", "b.npy", "--limit", "9" * 30), "for --limit: must be a non-negative integer"),
        (("dump", "b.npy", "--limit", "٣"), "invalid value '٣' for --limit"),
        (("ascend-deps", "b.npy", "1", "--depth", "many"), "invalid value 'many' for --depth: must be a "),
        (("sim", "cuda", "--seed", "x", "-o", "x"), "invalid value 'x' for --seed: must be a non-negative integer"),
        (("aie-path", "b.npy", "--core", "1"), "invalid value '1' for --core: expected COL,ROW"),
        (
            ("info", "b.npy", "--listing", "nowhere.lst", "--family", "aie"),
            "cannot open 'nowhere.lst': no such file or directory\n  hint: check",
        ),
        (
            ("info", "b.npy", "--family", "aie", "--config", "nowhere"),
            "cannot open 'nowhere': no such file or directory\n  hint: check the path of the configuration",
        ),
        (
            ("info", "b.npy", "--family", "aie", "--mlir", "nowhere"),
            "cannot open 'nowhere': no such file or directory\n  hint: check the path of the MLIR file",
        ),
        (
            ("info", "b.npy", "--events", "nowhere.json"),
            "cannot open 'nowhere.json': no such file or directory\n  hint: check the path",
        ),
        (
            ("info", "b.npy", "--clock-mhz", "fast"),
            "invalid value 'fast' for --clock-mhz: expected a frequency in MHz, e.g. 1980",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(call, buffer, arguments, message):
    done = call(*arguments)
    assert (done.status in (2, 3), done.out, is_one_error(done.err)) == (True, "", True)
    assert message in done.err
