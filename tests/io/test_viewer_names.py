"""Names under which the Perfetto UI shows tracks and findings: as they are written, and as Perfetto reads them."""

import pytest

import lanescope
from lanescope.io import perfetto
from lanescope.io.viewer_names import CYCLES, finding_label, is_red, numbered, shown_names, viewer_hue
from lanescope.trace import TimeBase, TraceBuilder

#: As the UI's own function answered them under node.
HUES = {"dependency": 124, "lost": 280, "unknown": 176, "LS unfinished slices": 12, "日本x": 92}


@pytest.mark.parametrize(("name", "hue"), HUES.items())
def test_hues_are_those_of_the_viewer(name, hue):
    assert viewer_hue(name) == hue


def test_digits_and_the_space_before_them_do_not_count():
    assert viewer_hue("LS103 unfinished slices") == viewer_hue("LS unfinished slices")
    assert viewer_hue("core 12 load") == viewer_hue("core load")


def test_only_errors_may_be_red():
    titles = [f"a title of {word}" for word in ("loss", "order", "time", "names", "flows", "lanes", "bytes", "gaps")]
    labels = {title: finding_label("LS103", "warning", title) for title in titles}
    assert not [label for label in labels.values() if is_red(label)]
    assert {label.rstrip() for label in labels.values()} == {f"warning LS103: {title}" for title in titles}
    words = [f"{chr(97 + n)}{chr(122 - n % 7)}{chr(97 + n * 5 % 26)}" for n in range(26)]
    reds = [title for title in words if is_red(f"notice LS103: {title}")]
    assert reds, "without one that would be red nothing is tried"
    assert all(finding_label("LS103", "notice", title).endswith(" ") for title in reds)
    assert finding_label("LS101", "error", "slices overlap") == "error LS101: slices overlap"


def test_addresses_become_numbers_by_kind():
    names = ["queue 0x5500000c1680, index 0", "list 0xABCDEF, index 1", "queue 0x5500000c1700", "queue 0x5500000C1680"]
    assert list(numbered(names).values()) == ["queue 0, index 0", "list 0, index 1", "queue 1", "queue 0"]
    assert numbered(["kernel 0x12", "0x5500000c1680", "a"]) == {name: name for name in ()}, (
        "neither a small number nor an address without a kind is one"
    )


def test_two_names_never_become_one():
    assert numbered(["queue 0x5500000c1680"], ["queue 0"]) == {}
    assert numbered(["queue 0x5500000c1680", "queue 0x5500000C1680"]) == {"queue 0x5500000c1680": "queue 0"}


def tops(*roles, unit="ns"):
    builder = TraceBuilder(TimeBase(0, "unix", unit))
    for name, role in roles:
        lane = builder.track("lane", kind="lane", role="queue", parent=builder.track(name, kind="group", role=role))
        builder.append("slices", track_id=[lane], ts=[0], dur=[5], name="a")
    return builder.finish()


@pytest.mark.parametrize(
    ("roles", "shown"),
    [
        ((("GPU 0", "device"), ("simhost", "host")), ["GPU 0", " simhost"]),
        ((("GPU 0", "device"), ("A host", "host")), ["GPU 0", "A host"]),
        ((("z", "host"), ("a", "host")), ["z", "a"]),
        ((("z", "device"),), ["z"]),
    ],
)
def test_hosts_stand_above_devices(roles, shown, trace_processor, tmp_path):
    trace = tops(*roles)
    names = shown_names(trace.tracks, trace.time)
    assert [names.get(row, name) for row, (name, _) in zip((0, 2, 4), roles, strict=False)] == shown
    if len(roles) > 1 and shown[1].startswith(" "):
        perfetto.write(trace, tmp_path / "out.pftrace")
        query = (
            "include perfetto module viz.summary.track_event; select name from _track_event_tracks_ordered_groups"
            " where parent_id is null order by order_id"
        )
        assert [row["name"] for row in trace_processor(tmp_path / "out.pftrace", query)[0]] == [" simhost", "GPU 0"]
        assert lanescope.open(tmp_path / "out.pftrace").tracks.values("name").tolist()[0] in ("GPU 0", "simhost")


def test_cycles_are_said_at_the_top_and_in_the_metadata(trace_processor, tmp_path):
    trace = tops(("tile", "tile"), unit="cycles")
    perfetto.write(trace, tmp_path / "out.pftrace")
    names, told, faults = trace_processor(
        tmp_path / "out.pftrace",
        "select name from track order by id",
        "select name, str_value from metadata where name glob '*lanescope*'",
        "select name from stats where severity in ('error', 'data_loss') and value != 0",
    )
    assert [row["name"] for row in names] == ["tile" + CYCLES, "lane"]
    assert {row["name"]: row["str_value"] for row in told if not row["name"].endswith("tracks")} == {
        "cr-lanescope.time_unit": "cycles",
        "cr-lanescope.drawn": "1 cycle as 1 ns",
    }
    assert faults == []
    back = lanescope.open(tmp_path / "out.pftrace")
    assert back.tracks.values("name").tolist() == ["tile", "lane"]
    assert "perfetto_other_packet" not in back.stats.values("name").tolist()


def test_a_trace_in_ns_does_not_say_its_unit_twice(tmp_path):
    report = perfetto.write(tops(("tile", "tile")), tmp_path / "out.pftrace", compress=False)
    assert b"lanescope.time_unit" not in (tmp_path / "out.pftrace").read_bytes()
    assert report.slices == 1
