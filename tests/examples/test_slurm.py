"""The tasks of a Slurm array, run side by side without Slurm: together they make the dataset of one command."""

import os
import subprocess
import sys
from pathlib import Path

import lanescope

SCRIPT = Path(__file__).parents[2] / "examples/slurm/ingest.sbatch"


def contents(dataset):
    """Return the Parquet files of a dataset and their bytes."""
    return {path.relative_to(dataset): path.read_bytes() for path in dataset.rglob("*.parquet")}


def test_tasks_of_an_array_make_one_dataset(tmp_path):
    for rank in range(5):
        folder = tmp_path / f"job/rank_{rank}"
        folder.mkdir(parents=True)
        for name, content in lanescope.simulate("cuda", seed=rank, tiles=1).files.items():
            (folder / name).write_bytes(content)
    program = tmp_path / "bin/lanescope"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lanescope "$@"\n')
    program.chmod(0o700)
    environment = {
        **os.environ,
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "SLURM_ARRAY_TASK_COUNT": "7",
    }
    command = [SCRIPT, tmp_path / "fleet", tmp_path / "job"]
    # Seven tasks for five captures, the first three twice, as of a job that is submitted again: two have nothing to do.
    tasks = [
        subprocess.Popen(command, env=environment | {"SLURM_ARRAY_TASK_ID": str(number)}, stdout=subprocess.PIPE)
        for number in (0, 1, 2, 0, 1, 2, 3, 4, 5, 6)
    ]
    for task in tasks:
        task.communicate(timeout=120)
    assert [task.returncode for task in tasks] == [0] * 10
    once = [sys.executable, "-m", "lanescope", "ingest", tmp_path / "job", "-o", tmp_path / "once", "--jobs", "1"]
    subprocess.run(once, check=True, capture_output=True, timeout=120)
    assert contents(tmp_path / "fleet") == contents(tmp_path / "once")
    assert len(list((tmp_path / "once/_captures").glob("*.json"))) == 5
