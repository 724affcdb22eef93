"""Static pictures: valid XML, the same bytes each time, true to the tables, inert names; PNG of the same."""

import re
import struct
import xml.etree.ElementTree as ET

import pytest

from devices.cuda.helpers import decode_simulation, simulate
from lanescope.errors import MissingDependencyError
from lanescope.pipeline import session
from lanescope.trace import TimeBase, TraceBuilder
from lanescope.view.picture import markup, png, svg

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ["</text><script>alert(1)</script>", "a&b\"'<", "\x1b[2J\u202e\0", "\ud800", "]]>", "x" * 100_000]


def one_lane(names, dur=100, unit="ns"):
    builder = TraceBuilder(TimeBase(0, "unix", unit))
    group = builder.track(names[0], kind="group", role="device")
    lane = builder.track(names[-1], kind="lane", role="core", parent=group)
    other = builder.track("other", kind="lane", role="core", parent=group)
    ts = [at * dur * 2 for at in range(len(names))]
    builder.append("slices", track_id=[lane] * len(names), ts=ts, dur=[dur] * len(names), name=names)
    builder.append("slices", track_id=[other], ts=[0], dur=[dur * 2 * len(names)], name="all")
    return builder.finish()


def texts(drawn):
    return ["".join(each.itertext()) for each in ET.fromstring(drawn).iter(f"{SVG}text")]


def test_it_holds_lanes_shares_names_and_facts():
    drawn = svg.draw(one_lane(["load", "mma"]), findings=False)
    shown = texts(drawn)
    for wanted in ("other", "50.0%", "100.0%", "span 400 ns", "3 slices", "load", "all"):
        assert any(wanted in text for text in shown), (wanted, shown)
    titles = {each.text for each in ET.fromstring(drawn).iter(f"{SVG}title")}
    assert {"load: 100 ns", "mma: 100 ns", "all: 400 ns"} <= titles


def test_few_lanes_are_of_each_kind_of_work():
    """The lanes that store wait for all others, so they are the busiest: a picture of them alone would tell nothing."""
    builder = TraceBuilder(TimeBase(0, "unix", "ns"))
    for block in range(20):
        group = builder.track(f"block {block}", kind="group", role="block")
        for name, dur in (("load", 50), ("compute", 70), ("store", 95)):
            lane = builder.track(name, kind="lane", role="group", parent=group)
            builder.append("slices", track_id=[lane], ts=[0], dur=[dur], name=name)
    shown = texts(svg.draw(builder.finish(), height=220, findings=False))
    lanes = [text.rsplit("/")[-1] for text in shown if text.rsplit("/")[-1] in ("load", "compute", "store")]
    assert {"load", "compute", "store"} <= set(lanes)
    assert len(lanes) < 20


def test_cycles_are_never_time():
    shown = texts(svg.draw(one_lane(["load", "mma"], dur=50_000, unit="cycles"), findings=False))
    assert "0 cycles" in shown
    assert not [text for text in shown if re.search(r"\d [nµm]?s\b", text)]
    assert any(text.startswith(("20,000", "50,000")) for text in shown)


def test_the_same_trace_gives_the_same_bytes():
    trace = decode_simulation(simulate(1, blocks=4))
    assert svg.draw(trace) == svg.draw(decode_simulation(simulate(1, blocks=4)))


def test_rectangles_lie_where_the_slices_are():
    drawn = ET.fromstring(svg.draw(one_lane(["load", "mma"]), width=1200, findings=False))
    boxes = [group.find(f"{SVG}rect") for group in drawn.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    places = sorted((float(box.get("x")), float(box.get("width"))) for box in boxes)
    plot = 1200 - 268 - 16
    assert places == [(268, plot / 4 - 1), (268, plot - 1), (268 + plot / 2, plot / 4 - 1)]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_text(name):
    drawn = svg.draw(one_lane([name, name]), findings=False)
    found = ET.fromstring(drawn)
    assert {each.tag for each in found.iter()} <= {
        SVG + tag for tag in ("svg", "title", "defs", "pattern", "rect", "text", "path", "g")
    }
    assert not [each for each in found.iter() if any(key.startswith("on") for key in each.attrib)]
    assert len(drawn) < 20_000
    assert "\u202e" not in drawn.decode()


def test_a_height_leaves_lanes_out_and_names_how_many():
    trace = decode_simulation(simulate(1, blocks=12))
    tall, low = svg.draw(trace), svg.draw(trace, height=300)
    assert int(ET.fromstring(low).get("height")) <= 300 < int(ET.fromstring(tall).get("height"))
    assert any("more lanes not drawn" in text for text in texts(low))


def test_findings_are_marked_with_their_severity():
    trace = decode_simulation(simulate(1, blocks=4))
    found = session.check(trace)
    assert found
    shown = texts(svg.draw(trace))
    assert any(text.startswith(f"▲ {found[0].code} {found[0].severity}: ") for text in shown)
    assert not [text for text in texts(svg.draw(trace, findings=False)) if found[0].code in text]
    assert not [text for text in texts(svg.draw(trace, ignore=["LS"])) if found[0].code in text]


def with_flows(count, lanes=2):
    """Slices one after the other on the first lane, and a flow from each to the one beside it on the last."""
    builder = TraceBuilder(TimeBase(0, "unix", "ns"))
    tracks = [builder.track(f"lane {number}", kind="lane", role="core") for number in range(lanes)]
    ts = [at * 100 for at in range(count)]
    first = builder.append("slices", track_id=tracks[0], ts=ts, dur=[50] * count, name="cause")
    second = builder.append("slices", track_id=tracks[-1], ts=[at + 60 for at in ts], dur=[30] * count, name="effect")
    for track in tracks[1:-1]:
        builder.append("slices", track_id=track, ts=0, dur=100 * count, name="busy")
    builder.append(
        "flows", kind=["signal"] * count, src_track_id=[tracks[0]] * count, src_ts=[at + 50 for at in ts],
        dst_track_id=[tracks[-1]] * count, dst_ts=[at + 60 for at in ts],
        src_slice_id=[first + at for at in range(count)], dst_slice_id=[second + at for at in range(count)],
    )  # fmt: skip
    return builder.finish()


def test_flows_are_arrows_from_lane_to_lane():
    drawn = svg.draw(with_flows(4), findings=False)
    lines = [each for each in ET.fromstring(drawn).iter(f"{SVG}path") if each.get("fill") == "none"]
    (line,) = lines
    curves = re.findall(r"M([\d.]+) ([\d.]+)C.*?([\d.]+) ([\d.]+)(?=M|$)", line.get("d"))
    pixels = 1200 - 268 - 16
    assert len(curves) == 4
    for at, (x1, y1, x2, y2) in enumerate(curves):
        span = 3 * 100 + 90
        assert float(x1) == pytest.approx(268 + (at * 100 + 50) / span * pixels, abs=0.01)
        assert float(x2) == pytest.approx(268 + (at * 100 + 60) / span * pixels, abs=0.01)
        assert float(y2) - float(y1) == svg._STRIP + 3
    assert "signal (4)" in texts(drawn)


def test_flows_that_are_not_drawn_are_counted():
    too_many = svg.draw(with_flows(svg.FLOWS + 1), findings=False)
    assert f"{svg.FLOWS + 1} flows not drawn: more than {svg.FLOWS}, choose a window" in texts(too_many)
    assert b'fill="none"' not in too_many
    low = svg.draw(with_flows(4, lanes=8), height=130, findings=False)
    (rest,) = [text for text in texts(low) if "not drawn" in text]
    assert re.fullmatch(r"\d more lanes not drawn; 4 flows to or from lanes that are not drawn", rest)


@pytest.mark.parametrize("height", [160, 200, 333, 700, 2000])
def test_a_height_is_used_up_by_lanes_and_never_passed(height):
    trace = with_flows(3, lanes=100)
    drawn = ET.fromstring(svg.draw(trace, height=height, findings=False))
    found = int(drawn.get("height"))
    shown = [text for text in ("".join(each.itertext()) for each in drawn.iter(f"{SVG}text")) if "lane " in text]
    lanes = sum(text.startswith("lane ") for text in shown)
    assert found <= height
    assert lanes == 100 or height - found < svg._STRIP + 3
    assert len(ET.fromstring(svg.draw(trace, findings=False)).findall(f".//{SVG}text")) > svg.LANES


def test_an_empty_trace_has_a_picture():
    assert "no lane has anything to draw" in texts(svg.draw(TraceBuilder(TimeBase()).finish()))


def test_a_png_has_twice_the_pixels():
    pytest.importorskip("resvg_py")
    drawn = svg.draw(one_lane(["load", "mma"]), findings=False)
    data = png.render(drawn)
    height = int(ET.fromstring(drawn).get("height"))
    assert struct.unpack(">II", data[16:24]) == (2400, 2 * height)


def test_without_resvg_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "resvg_py", None)
    with pytest.raises(MissingDependencyError, match="resvg") as error:
        png.render(b"<svg/>")
    assert "lanescope[png]" in str(error.value.hint)


def test_addresses_of_lanes_are_numbers():
    shown = texts(svg.draw(one_lane(["queue 0x5500000c1680, index 0", "queue 0x5500000c1700"]), findings=False))
    assert any("queue 0, index 0" in text for text in shown)
    assert "queue 1" in shown


def test_suffixes_choose_pictures(tmp_path):
    trace = one_lane(["load", "mma"])
    session.write(trace, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_bytes() == svg.draw(trace)


def counted(values, unit=""):
    builder = TraceBuilder(TimeBase(0, "unix", "ns"))
    lane = builder.track("core", kind="lane", role="core")
    counter = builder.track("level", kind="counter", role="counter", unit=unit)
    builder.append("slices", track_id=lane, ts=0, dur=100 * len(values), name="all")
    builder.append("counters", track_id=counter, ts=[100 * at for at in range(len(values))], value=values)
    return builder.finish()


def area(drawn):
    """The heights of the steps of the only counter, above 0, in pixels."""
    (path,) = [each.get("d") for each in ET.fromstring(drawn).iter(f"{SVG}path") if each.get("fill") == "#9db8d9"]
    zero = float(re.match(r"M\S+ (\S+?)H", path)[1])
    return [zero - float(y) for y in re.findall(r"V(-?[\d.]+)", path)]


def test_a_counter_reaches_from_zero_to_its_values_below_it_too():
    up, down, zero, *_ = area(svg.draw(counted([4, -2, 0])))
    assert up == pytest.approx(-2 * down, abs=0.02)
    assert up > 5
    assert zero == 0


@pytest.mark.parametrize(
    ("values", "unit", "text"),
    [([1, 3], "1", "to 3"), ([1, 2**20], "bytes", "to 1.0 MiB"), ([-5, 7], "", "-5 to 7"), ([-5, -1], "", "from -5"),
     ([1.5, 87.5], "%", "to 87.5%"), ([float("inf"), 1], "", "to 1e+300")],
)  # fmt: skip
def test_values_of_a_counter_are_said_with_their_unit(values, unit, text):
    assert text in texts(svg.draw(counted(values, unit)))


def test_codes_of_findings_that_are_close_together_stand_behind_the_last():
    found = [
        markup.Mark(10, "blue", 2, "LS104", "notice", "a"), markup.Mark(10, "brown", 1, "LS401", "warning", "b"),
        markup.Mark(30, "blue", 2, "LS104", "notice", "a"), markup.Mark(300, "blue", 2, "LS303", "notice", "c"),
        markup.Mark(395, "red", 0, "LS002", "error", "d"),
    ]  # fmt: skip
    drawn = ET.fromstring(f'<svg xmlns="http://www.w3.org/2000/svg">{"".join(markup.marks(found, 0, 400))}</svg>')
    texts = [(each.text, float(each.get("x")), each.get("text-anchor")) for each in drawn.iter(f"{SVG}text")]
    assert texts == [
        ("LS401 warning; LS104 notice", 36, None), ("LS303 notice", 306, None), ("LS002 error", 389, "end"),
    ]  # fmt: skip
    assert [each.get("fill") for each in drawn.iter(f"{SVG}path")] == ["blue", "blue", "brown", "blue", "red"]
