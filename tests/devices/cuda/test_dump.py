"""The three stages of dump."""

from __future__ import annotations

import pytest

from devices.cuda.helpers import buffer
from lanescope import devices
from lanescope.devices.cuda import encode
from lanescope.devices.cuda.family import FAMILY
from lanescope.errors import UsageError
from lanescope.source import Capture

LANES = [
    [("B", 0, 0x100), ("I", 3, 0x110), ("E", 0, 0x140), ("F", 0, 0x150)],
    [("E", 1, 0x120), ("B", 2, 0x130)],
]


@pytest.fixture
def lines(tmp_path):
    words = buffer(LANES, slots=12)
    words[7] ^= 1 << 12
    (tmp_path / "run.npy").write_bytes(encode.to_npy(words))

    def dump(stage, **options):
        with Capture(tmp_path / "run.npy") as capture:
            return list(FAMILY.dump(capture, stage, devices.settle(FAMILY.options, options, what="family cuda")))

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
    assert found[:5] == [
        "slice 0  block 0 / group 0  ts=0 dur=64 a  slots 1 5",
        "slice 1  block 0 / group 1  ts=48 dur=open c  slots 4 -  [open_end]",
        "instant 0  block 0 / group 0  ts=16 d  slot 3",
        "instant 1  block 0 / group 1  ts=32 end b?  slot 2",
        "gap 0  block 0 / group 0  ts=64 dur=None bad_bytes lost=1",
    ]
    assert "stat cuda_corrupt_record 1 (data_loss)" in found


def test_unknown_stage(lines):
    with pytest.raises(UsageError, match="no stage"):
        lines("frame")
