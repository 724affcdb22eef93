"""Several captures on one timeline, from the command line: what is assumed is said, what is refused names a way out."""

import pytest

from error_text import is_one_error
from lanescope.io import parquet
from lanescope.trace import Flag


def launches(call, **options):
    """Simulate two launches on one GPU."""
    flags = [text for name, value in options.items() for text in (f"--{name}", value)]
    for seed in (1, 2):
        done = call("sim", "cuda", "--blocks", 2, "--tiles", 2, "--seed", seed, *flags, "-o", f"run{seed}.npy")
        assert done.status == 0, done.err
    return "run1.npy", "run2.npy"


@pytest.mark.parametrize("layout", ["tirx", "flashinfer1", "flashinfer2", "warpscope"])
def test_two_launches_of_one_gpu_merge_and_say_what_is_assumed(call, tmp_path, layout):
    inputs = launches(call, layout=layout)
    done = call("convert", *inputs, "-o", "both.pftrace", "--layout", layout)
    assert done.status == 0, done.err
    _, second, assumed, written = done.err.splitlines()
    assert " (clock: globaltimer_lo of GPU, error at most " in second
    assert assumed == (
        "lanescope: warning: run2.npy: the offset is ambiguous: the counter wraps every 4.29 s, and the nearest wrap is"
        " assumed (rows are flagged, LS302); use --anchor NS or --host-anchor NS,UNIX_NS[,ERROR_NS] (family cuda) to"
        " resolve it"
    )
    assert written.startswith("wrote both.pftrace (")


def test_the_option_that_is_named_places_launches_for_certain(call, tmp_path):
    inputs = launches(call)
    assert call("convert", *inputs, "-o", "assumed.parquet").status == 0
    done = call("convert", *inputs, "-o", "certain.parquet", "--anchor", 0)
    assert done.status == 0
    assert "ambiguous" not in done.err
    assumed, certain = (parquet.read(tmp_path / f"{name}.parquet") for name in ("assumed", "certain"))
    apart = assumed.slices["ts"] - certain.slices["ts"]
    assert set(apart[apart != apart[0]] - apart[0]) <= {1 << 32, -(1 << 32)}
    ambiguous = assumed.slices["flags"] & Flag.WRAP_AMBIGUOUS != 0
    assert ambiguous.any()
    assert not ambiguous.all()
    assert not (certain.slices["flags"] & Flag.WRAP_AMBIGUOUS).any()


def test_a_refused_merge_names_the_options_that_would_help(call, tmp_path):
    first, second = launches(call)
    assert call("sim", "ascend", "--tasks", 20, "-O", "anchors=no", "-o", "chip").status == 0
    (chip,) = tmp_path.glob("chip/*records.json")
    done = call("convert", first, chip, "-o", "both.pftrace")
    assert (done.status, is_one_error(done.err)) == (2, True)
    assert done.err.endswith(
        "have no common clock\n  hint: decode with --anchor NS or --host-anchor"
        " NS,UNIX_NS[,ERROR_NS] or --device NAME (family cuda), or --device NAME (family ascend), or use"
        " --side-by-side\n"
    )
    assert call("sim", "aie", "--records", 50, "-o", "run.bin").status == 0
    done = call("convert", first, "run.bin", "-o", "both.pftrace")
    assert (done.status, is_one_error(done.err)) == (2, True)
    assert done.err.endswith(
        "cannot merge: run.bin is in cycles, run1.npy in nanoseconds\n  hint: decode with --frequency HZ (family aie),"
        " or convert each capture separately\n"
    )
    assert call("convert", second, second, "-o", "both.pftrace").err.endswith("hint: pass each capture once\n")


def test_dumps_of_one_file_name_are_not_put_together_by_guess(call):
    for seed, folder in enumerate(("a", "b")):
        assert call("sim", "aie", "--records", 50, "--seed", seed, "-o", f"{folder}/run.bin").status == 0
    done = call("convert", "a/run.bin", "b/run.bin", "-o", "both.pftrace")
    assert done.status == 2
    assert "have no common clock\n  hint: use --side-by-side for a time axis each" in done.err
    done = call("convert", "a/run.bin", "b/run.bin", "-o", "both.parquet", "--side-by-side")
    assert done.status == 0, done.err
    assert "b/run.bin: starts at 0 cycles of time axis 2\n" in done.err
    assert "the captures are on 2 time axes, whose times are not comparable (LS305)" in done.err
    assert "captures on a time axis of their own" in call("check", "both.parquet").out
