"""The three stages of dump."""

from __future__ import annotations

import pytest

from devices.cuda.helpers import buffer, ls2, simulate
from lanescope.cli.commands.dump import stage_lines
from lanescope.devices.cuda.formats.encode import strided
from lanescope.errors import UsageError
from lanescope.pipeline.sources import CaptureSource

LANES = [
    [("B", 0, 0x100), ("I", 3, 0x110), ("E", 0, 0x140), ("F", 0, 0x150)],
    [("E", 1, 0x120), ("B", 2, 0x130)],
]


@pytest.fixture
def lines(tmp_path):
    words = buffer(LANES, slots=12)
    words[7] ^= 1 << 12
    (tmp_path / "run.npy").write_bytes(strided.to_npy(words))

    def dump(stage, **options):
        with CaptureSource(tmp_path / "run.npy", "cuda", options) as source:
            return list(stage_lines(source, stage))

    return dump


def test_packet(lines):
    assert lines("packet") == [
        "0x00000080  01 00 00 00 02 00 00 00  slot 0 header",
        "0x00000088  00 00 00 00 00 01 00 00  slot 1 record",
        "0x00000090  05 10 00 00 20 01 00 00  slot 2 record",
        "0x00000098  0e 00 00 00 10 01 00 00  slot 3 record",
        "0x000000a0  08 10 00 00 30 01 00 00  slot 4 record",
        "0x000000a8  01 00 00 00 40 01 00 00  slot 5 record",
        "0x000000b0                           slot 6 empty",
        "0x000000b8  03 10 00 00 50 01 00 00  slot 7 record",
        "0x000000c0                           slots 8 to 11 empty",
    ]


def test_record(lines):
    found = lines("record")
    assert found[0] == "0x00000080  01 00 00 00 02 00 00 00  header  num_blocks=1 num_groups=2"
    assert found[3] == (
        "0x00000098  0e 00 00 00 10 01 00 00  instant   event=3 lane=0 time=272 block=0 group=0 index=1"
    )
    assert found[-1].endswith("lane=1 time=336 block=0 group=1 index=3  NOT OF THIS LANE")
    assert len(found) == 7


def test_row(lines):
    found = lines("row", events="a,b,c,d")
    assert found == [
        "0  slice  block 0 / group 0  dur=64 name=a category=region",
        "16  instant  block 0 / group 0  name=d category=mark",
        "32  instant  block 0 / group 1  name=end b? category=unmatched_end",
        "48  slice  block 0 / group 1  name=c category=region last_known_ts=48 flags=unfinished",
        "64  gap  block 0 / group 0  cause=bad_bytes lost_count=1 first_offset=184",
        "stat  cuda_layout_assumed  notice  count=1",
        "stat  cuda_corrupt_record  data_loss  count=1 first_offset=184",
        "stat  cuda_unfinished_region  notice  count=1 first_offset=160 first_ts=48",
        "stat  cuda_end_unmatched  notice  count=1 first_offset=144 first_ts=32",
    ]


def test_unknown_stage(lines):
    with pytest.raises(UsageError, match="unknown stage"):
        lines("frame")


def dumped(tmp_path, data, stage, name="run.npy", **options):
    (tmp_path / name).write_bytes(data)
    with CaptureSource(tmp_path / name, "cuda", options) as source:
        return list(stage_lines(source, stage))


def test_ls2(tmp_path):
    lanes = [[("B", 1, 100), ("c", 2, 110, 0, 7), ("o", 3, 120, 5), ("E", 1, 130)], [("f", 3, 125, 5)]]
    data = strided.to_npy(ls2(lanes, groups=2, capacity=8))
    found = dumped(tmp_path, data, "record")
    assert found[0].startswith("0x00000080  header  magic=")
    assert "num_groups=2 capacity=8" in found[0]
    assert found[1] == "0x00000140  01 00 01 00 64 00 00 00  begin        lane=0 time=100 event_id=1"
    assert [line.split()[9] for line in found[1:]] == ["begin", "counter", "value", "flow_out", "end", "flow_in"]
    rows = dumped(tmp_path, data, "row", events="a,b,fill,full")
    assert "20  flow  block 0 / group 0 -> block 0 / group 1  kind=signal dst_ts=25" in rows
    assert "10  counter  block 0 / group 0 fill  value=7.0" in rows
    assert len(dumped(tmp_path, data, "packet")) > 20


def test_ls2_shows_what_it_had_no_room_for(tmp_path):
    data = simulate(1, layout="ls2", blocks=3, groups=2, tiles=1, refused=1).files["attention.npy"]
    assert dumped(tmp_path, data, "record")[0].endswith(" refused=2 required_blocks=3")
    lost = "stat  cuda_unallocated_lane  data_loss  count=2"
    assert any(line.startswith(lost) for line in dumped(tmp_path, data, "row"))
    assert "0x000000e0  02 00 00 00 00 00 00 00  slot 12 record" in dumped(tmp_path, data, "packet")


def test_proton(tmp_path):
    simulation = simulate(layout="proton", blocks=2, groups=1, tiles=1)
    data = simulation.files["attention.bin"]
    found = dumped(tmp_path, data, "record", "run.bin")
    assert found[0] == (
        "0x00000000  header  version=1 header_offset=4 header_size=44 payload_offset=44 "
        "payload_size=512 device=1 blocks=2 units=2 scratch=256 uids=1"
    )
    assert len(found) == 1 + simulation.truth["records"]
    assert sum("metric" in line for line in found) == 2
    packets = dumped(tmp_path, data, "packet", "run.bin")
    assert packets[0] == "0x00000000  01 00 00 00  word 0"


def test_flashinfer2(tmp_path):
    simulation = simulate(layout="flashinfer2", blocks=3, groups=2, tiles=1, nested=False)
    found = dumped(tmp_path, simulation.files["attention.npy"], "record")
    assert len(found) == 1 + simulation.truth["records"]
    assert all("NOT OF" not in line for line in found)
    for line, group in zip(found[1:3], (0, 1), strict=True):
        assert "block=0 sm=0" in line
        assert line.endswith(f"group={group} index=0")
