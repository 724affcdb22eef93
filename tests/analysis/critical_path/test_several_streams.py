"""A call that waits for a device, or for a list, waits for all that runs there, not only for what ends last."""

import random

import pytest

from analysis.critical_path.test_late_causes import Profile, Queue
from effort import seeds

STREAMS = (7, 20, 33)


def program(folder, seed, factor=(1, 1), longer=()):
    """Run rounds of kernels on three streams, each with a call that waits for all of them.

    Args:
        folder: where the profile is written.
        seed: of the program.
        factor: of the lengths of kernels on the first stream, as a fraction.
        longer: number of a kernel, and by how much it takes longer.
    """
    draw, run = random.Random(seed), Profile(seed)
    last = number = 0
    for _ in range(12):
        for _ in range(draw.randint(2, 6)):
            stream, length = draw.choice(STREAMS), 1_000 * draw.randint(2, 120)
            if stream == STREAMS[0]:
                length = length * factor[0] // factor[1]
            if longer and longer[0] == number:
                length += longer[1]
            last = max(last, run.work(stream, length, name=f"on {stream}"))
            number += 1
        run.sync(last)
    folder.mkdir()
    return run.open(folder)


def queued(folder, seed, *, target, longer=()):
    """Run rounds of operations on two lists in order, or on one on which they overlap, and wait for all of a round.

    Args:
        folder: where the recording is written.
        seed: of the program.
        target: ``device``: two lists, and calls wait for the device; ``list``: one list.
        longer: number of an operation, and by how much it takes longer.
    """
    draw, run = random.Random(seed), Queue(seed)
    is_device = target == "device"
    run.made.immediate(1, in_order=is_device)
    if is_device:
        run.made.immediate(2, in_order=True)
    number, free = 0, {1: 0, 2: 0}
    for _ in range(12):
        for _ in range(draw.randint(2, 5)):
            what, length = draw.choice(["MemoryFill", "MemoryCopy"]), 1_000 * draw.randint(3, 80)
            if longer and longer[0] == number:
                length += longer[1]
            lane = 2 if is_device and what == "MemoryFill" else 1
            event = run.append(what, lane)
            begin = max(run.now + 2_500, free[lane] + 300 if is_device else 0)
            end = run.ran(event, begin, begin + length)
            free[lane] = max(free[lane], end)
            number += 1
        handle = {"hDevice": 0xD0} if is_device else {"hCommandList": 1}
        run.wait("zeDeviceSynchronize" if is_device else "zeCommandListHostSynchronize", max(free.values()), **handle)
    folder.mkdir()
    return run.made.open(folder)


def total(trace):
    return int((trace.slices["ts"] + trace.slices["dur"]).max() - trace.slices["ts"].min())


@pytest.mark.parametrize("seed", seeds(60, least=6))
def test_what_ifs_hold_where_another_stream_becomes_the_last(tmp_path, seed):
    path = program(tmp_path / "seen", seed).critical_path()
    for number, (num, den) in enumerate([(1, 4), (1, 2), (3, 2), (3, 1)]):
        (answer,) = path.what_if([f"on 7={num / den}"]).rows()
        truth = total(program(tmp_path / str(number), seed, (num, den)))
        assert answer["low"] <= truth <= answer["high"]
        assert abs(answer["nominal"] - truth) <= 0.03 * truth


@pytest.mark.parametrize("seed", seeds(60, least=6))
def test_kernels_of_streams_that_ended_earlier_may_take_their_safe_slack(tmp_path, seed):
    trace = program(tmp_path / "seen", seed)
    slack = dict(zip(trace.critical_path().slack["slice_id"].tolist(), trace.critical_path().slack.rows(), strict=True))
    launched = trace.sql("select dst_slice_id as id from flows where kind = 'submit' order by src_ts")["id"].tolist()
    number = random.Random(seed).randrange(len(launched))
    safe = slack[launched[number]]["slack_safe"]
    assert safe is not None  # the end of the run waits for it
    assert total(program(tmp_path / "longer", seed, longer=(number, safe))) == total(trace)


@pytest.mark.parametrize("target", ["device", "list"])
@pytest.mark.parametrize("seed", seeds(40, least=4))
def test_operations_that_ended_earlier_may_take_their_safe_slack(tmp_path, seed, target):
    trace = queued(tmp_path / "seen", seed, target=target)
    slack = trace.critical_path().slack
    safe_of = dict(zip(slack["slice_id"].tolist(), slack["slack_safe"].tolist(), strict=True))
    order = trace.sql("select dst_slice_id as id from flows where kind = 'dispatch' order by src_ts")["id"].tolist()
    number = random.Random(seed).randrange(len(order))
    safe = safe_of[order[number]]
    assert safe is not None
    longer = queued(tmp_path / "longer", seed, target=target, longer=(number, safe))
    assert total(longer) == total(trace)
