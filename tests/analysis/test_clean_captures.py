"""Clean captures: no stat that a sound capture counts is a warning, and few are notices."""

import pytest

import lanescope
from effort import some
from lanescope.analysis import check
from lanescope.families import registry
from lanescope.families.options import resolve_options

#: Rules that report stats, and assumptions about times.
CODES = ["LS002", "LS003", "LS004", "LS005", "LS006", "LS105", "LS305", "LS401", "LS402", "LS403", "LS404"]
#: Per family: variants of sound captures, as options of its simulator.
VARIANTS = {
    "aie": [
        {"records": 300},
        {"records": 200, "tiles": 9, "shared_stop": True},
        {"records": 300, "mode": 1},
        {"records": 300, "runs": 2},
        {"records": 300, "text": True},
    ],
    "cuda": [
        {"blocks": 24, "sms": 24},
        {"blocks": 24, "sms": 12, "instants": True},
        {"blocks": 24, "sms": 24, "layout": "flashinfer1"},
        {"blocks": 24, "sms": 24, "layout": "flashinfer2"},
        {"blocks": 24, "sms": 24, "layout": "warpscope"},
        {"blocks": 24, "sms": 24, "layout": "ls2"},
        {"blocks": 24, "sms": 24, "layout": "ls2", "clock64": True},
        {"blocks": 24, "sms": 24, "layout": "proton"},
        {"blocks": 24, "sms": 24, "groups": 1, "tick": 1},
    ],
    "ascend": [{"tasks": 100, "format_version": version} for version in ("v1a", "v1b", "v1c", "v2", "v3", "v3c", "v4")]
    + [
        {"tasks": 100, "format_version": "v3c", "host": True},
        {"tasks": 100, "deps": False},
        {"tasks": 100, "level": 2},
    ],
    "levelzero": [
        {"ops": 200},
        {"ops": 200, "style": "thapi"},
        {"ops": 200, "processes": 2, "threads": 1},
        {"ops": 200, "sharing": "none"},
        {"ops": 200, "devices": 1, "subdevices": 0},
    ],
}


def findings(family, options, seed, folder, codes=CODES):
    """Return (code, severity, stat) of each finding in a simulated capture."""
    made = registry.family(family)
    files = made.simulate(resolve_options(made.sim_options, options, what="simulator"), seed).files
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    trace = lanescope.open(folder / next(iter(files)), family=family)
    return [(one.code, one.severity, one.stat) for one in check.run(trace, select=codes)]


@pytest.mark.parametrize(
    ("family", "options"), [(family, options) for family, variants in VARIANTS.items() for options in variants], ids=str
)
def test_a_clean_capture_has_no_warning_and_at_most_one_notice_from_stats_and_qualities(tmp_path, family, options):
    seeds = range(3000, 3000 + some(8, 1))
    found = [one for seed in seeds for one in findings(family, options, seed, tmp_path / str(seed))]
    assert {severity for _, severity, _ in found} <= {"notice"}
    assert len(found) <= len(seeds)
