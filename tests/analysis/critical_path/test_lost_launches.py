"""Level Zero operations of which the Append is known and the call that executed their list is not.

The recorder writes which runs of a list there were, apart from the calls: where calls are lost, nothing but the Append
is known of what an operation waited for. Either the Append was late, or what followed it.
"""

from __future__ import annotations

import random

import pytest

from analysis.critical_path.paths import checked
from analysis.critical_path.test_late_causes import PAUSE, ROUNDS, SEEDS, is_named
from devices.levelzero.helpers import Script, epoch


def program(folder, seed, *, before=0, behind=0):
    """Write a program that records one operation after the other, each in a list of its own, and waits for it.

    Args:
        folder: where it is written.
        seed: of the random numbers.
        before: once, so long passes before an Append.
        behind: once, so long passes between an Append and its operation.
    """
    draw = random.Random(seed)
    made = Script(step=0)
    made.device(resolution=1, bits=64, kernel_bits=64).pair(0)
    zero = made.now
    made.now += 20_000
    chosen = draw.randrange(ROUNDS)
    for number in range(1, ROUNDS + 1):
        is_late = number == chosen + 1
        made.regular(number)
        made.now += before * is_late
        recorded = made.now - zero
        made.entry("zeCommandListAppendMemoryFill")
        made.record("lanescope_ze:op", op_id=number, list_id=number, api='"zeCommandListAppendMemoryFill"')
        made.now += draw.randint(500, 1_000)
        made.exit("zeCommandListAppendMemoryFill")
        made.now += draw.randint(300, 900)
        span = {"t_entry": epoch(made.now), "t_exit": epoch(made.now + 200)}
        made.record("lanescope_ze:list_run", list_id=number, run=1, queue=9, **span)  # its call was lost
        begin = recorded + draw.randint(4_000, 5_000) + behind * is_late
        end = begin + draw.randint(5_000, 20_000)
        made.entry("zeCommandQueueSynchronize", hCommandQueue=9, timeout=(1 << 64) - 1)
        made.now = zero + end + draw.randint(700, 1_500)
        made.harvest(number, 1, begin, end)
        made.exit("zeCommandQueueSynchronize")
        made.now += draw.randint(500, 2_000)
    return made.open(folder)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_late_behind_the_append_is_laid_at_it(tmp_path, seed):
    is_named(lambda pause: program(tmp_path, seed, behind=pause), "append", PAUSE)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_late_append_leads_back_to_the_thread_that_called_it(tmp_path, seed):
    path = checked(program(tmp_path, seed, before=PAUSE))
    rows = list(path.parts.rows())
    top = max(rows, key=lambda row: row["dur"])
    assert (top["cause"], path.trace.tracks["role"][top["track_id"]]) == ("lane idle", "host_thread")
    assert top["dur"] >= 0.95 * PAUSE
    assert next(row["kind"] for row in rows[rows.index(top) + 1 :] if row["kind"]) == "append"
    assert max(row["dur"] for row in checked(program(tmp_path, seed)).parts.rows()) < PAUSE / 2
