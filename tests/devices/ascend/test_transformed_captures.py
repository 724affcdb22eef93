"""The producer's captures as it would have written them otherwise, against scripts without this package.

Levels, missing files, the other chip, full chips, several collectors: kinds, slices, labels and edges stay those of the
files, nothing is lost, and nothing is reported above notice.
"""

from pathlib import Path

import pytest

from devices.ascend.compare_captures import differences, folders, main
from devices.ascend.transformed import TRANSFORMS, read, write
from effort import some


@pytest.fixture(scope="module")
def captures(corpus):
    """Return the files of each capture of the producer, by folder."""
    return {path: read(path) for path in folders(Path(corpus, "producers/ascend"))}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_what_the_files_say_is_what_is_decoded(captures, name, tmp_path):
    # Different ones for each transform.
    every = max(1, len(captures) // some(len(captures)))
    first = list(TRANSFORMS).index(name) % every
    for number, (path, files) in enumerate(list(captures.items())[first::every]):
        folder = tmp_path / str(number)
        write(TRANSFORMS[name](files), folder)
        found = list(differences(folder))
        assert not found, (path.parent.name, path.name, found)


def test_differences_are_found(captures, tmp_path, capsys):
    files = next(files for path, files in captures.items() if path.parent.name == "pa_l4")
    write(files, tmp_path / "a")
    assert main([str(tmp_path)]) == 0
    # A lost execution is a loss, and one with another task has no dispatch of its own.
    lost = files["chip_swimlane_records.json"]["aicore_tasks"].pop()
    write(files, tmp_path / "b")
    assert main([str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "a: equal" in told
    assert "LS401" in told
    files["chip_swimlane_records.json"]["aicore_tasks"].append(lost)
