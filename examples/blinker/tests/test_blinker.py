import numpy as np
import pytest
from lanescope_blinker import FAMILY, FLASH, HEADER, LEVEL, OFF, ON, RECORD, as_csv

import lanescope
from lanescope.analysis import check
from lanescope.source import FileHead
from lanescope.testing import check_family
from lanescope.trace import Flag


@pytest.fixture
def decode(tmp_path):
    def run(seed=1, **options):
        chosen = {"changes": 500, "lamps": 4, "drop": 0.0, "before": 0, "extra": 0.1} | options
        simulation = FAMILY.simulate(chosen, seed)
        path = tmp_path / "run.blink"
        path.write_bytes(next(iter(simulation.files.values())))
        return lanescope.open(path, family="blinker"), simulation.truth

    return run


@pytest.fixture
def decode_records(tmp_path):
    def run(*records, tick_hz=1_000_000, **options):
        path = tmp_path / "few.blink"
        fields = [dict(zip(("time", "lamp", "kind", "value"), record, strict=True)) for record in records]
        words = [RECORD.encode({**one, "sequence": i}).to_bytes(8, "little") for i, one in enumerate(fields)]
        path.write_bytes(HEADER.encode({"lamps": 2, "tick_hz": tick_hz}) + b"".join(words))
        return lanescope.open(path, family="blinker", **options)

    return run


def lamp_of(trace, table):
    names = trace.tracks["name"][table["track_id"]]
    return [int(name.split()[1]) for name in names]


def spans(trace, mask):
    slices = trace.slices.where(mask)
    columns = lamp_of(trace, slices), slices["ts"].tolist(), slices["dur"].tolist()
    return sorted([lamp, ts, ts + dur] for lamp, ts, dur in zip(*columns, strict=True))


def points(trace, table):
    return sorted(map(list, zip(lamp_of(trace, table), table["ts"].tolist(), strict=True)))


def test_the_family_keeps_what_all_families_promise():
    check_family(FAMILY)
    check_family(FAMILY, options={"changes": 300, "drop": 0.2, "extra": 0.3}, seeds=(5, 6, 7))


@pytest.mark.parametrize("seed", range(20))
def test_a_clean_capture_gives_the_truth(decode, seed):
    trace, truth = decode(seed=seed)
    assert spans(trace, trace.slices["flags"] == 0) == sorted(truth["spans"])
    assert (trace.slices["flags"] == Flag.UNFINISHED).sum() == truth["open"]
    assert points(trace, trace.instants) == sorted(truth["flashes"])
    assert points(trace, trace.counters) == sorted(truth["levels"])
    assert len(trace.stats) == 0


@pytest.mark.parametrize("seed", range(20))
def test_each_dropped_record_is_counted_and_nothing_is_invented(decode, seed):
    trace, truth = decode(seed=seed, drop=0.05, before=seed)
    missing = trace.stats.where(trace.stats["name"] == "blinker_lost")["count"].sum()
    before = trace.accounting.where(trace.accounting["scope"] == "producer")["lost"].sum()
    assert missing + before == truth["lost"] > 0
    exact = spans(trace, trace.slices["flags"] == 0)
    assert all(span in truth["spans"] for span in exact)
    assert all(point in truth["flashes"] for point in points(trace, trace.instants))


def test_records_that_were_dropped_before_the_first_one_are_counted(decode):
    trace, truth = decode(changes=10, before=9)
    assert (len(trace.stats), truth["lost"]) == (0, 9)
    (_, row) = trace.accounting.rows()
    assert (row["scope"], row["decoded"], row["lost"]) == ("producer", 10, 9)


@pytest.mark.parametrize("size", [1, 5, 16, 23, 24, 1001])
def test_a_truncated_capture_is_accounted_for(tmp_path, size):
    content = next(
        iter(FAMILY.simulate({"changes": 500, "lamps": 4, "drop": 0.0, "before": 0, "extra": 0.0}, 1).files.values())
    )
    path = tmp_path / "run.blink"
    path.write_bytes(content[:size])
    row = next(lanescope.open(path, family="blinker").accounting.rows())
    assert row["total"] == size == row["decoded"] + row["lost"]


def test_a_lamp_that_flickers_is_found(decode_records):
    trace = decode_records((0, 0, ON, 0), (999, 0, OFF, 0), (2000, 1, ON, 0), (3000, 1, OFF, 0), (4000, 0, ON, 0))
    (finding,) = check.run(trace, select=["BLINKER"])
    assert (finding.code, finding.location.track) == ("BLINKER101", "blinker/lamp 0")
    assert finding.evidence.ids.tolist() == [0]


def test_export_names_and_unknown_frequency(decode_records):
    records = (7, 0, ON, 0), (9, 0, OFF, 0), (10, 1, FLASH, 0), (11, 1, LEVEL, 33), (12, 1, ON, 0)
    trace = decode_records(*records, tick_hz=0, lamps=["red", "green", "blue"])
    assert b"".join(as_csv(trace)) == b"lamp,start_ns,dur_ns\nred,0,2\ngreen,5,\n"
    assert trace.time.time_unit == "cycles"
    assert trace.counters["value"].tolist() == [33.0]
    assert "green level" in trace.tracks["name"].tolist()
    assert "blue" not in trace.tracks["name"].tolist(), "it has no lamp"


@pytest.mark.parametrize("tick_hz", [0, 1, 2**32 - 1])
def test_noise_after_a_header_is_decoded_and_checked(tmp_path, tick_hz):
    path = tmp_path / "noise.blink"
    path.write_bytes(HEADER.encode({"lamps": 2, "tick_hz": tick_hz}) + np.random.default_rng(0).bytes(80_003))
    trace = lanescope.open(path)
    assert trace.time.time_unit == ("ns" if tick_hz > 1 else "cycles"), "at 1 Hz the times do not fit into 63 bits"
    assert check.run(trace)


@pytest.mark.parametrize(("lamps", "before"), [(1, 0), (256, 1 << 30)])
def test_the_options_of_the_simulator_fit_the_layout(lamps, before):
    given = {option.name: option.default for option in FAMILY.sim_options}
    FAMILY.simulate(given | {"changes": 1, "lamps": lamps, "before": before}, 1)
    for name, text in (("lamps", "257"), ("lamps", "0"), ("before", "-1"), ("changes", "0"), ("drop", "2")):
        (option,) = [option for option in FAMILY.sim_options if option.name == name]
        with pytest.raises(lanescope.UsageError, match=name):
            option.value(text)


def test_random_bytes_are_not_ours():
    data = np.random.default_rng(0).bytes(4096)
    assert FAMILY.detect(FileHead(data, len(data), "x")).score < 50
