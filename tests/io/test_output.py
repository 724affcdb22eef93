import os
from pathlib import Path

import pytest

from lanescope.errors import UsageError
from lanescope.io import atomic_file


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fill(folder, text):
    (folder / "file").write_text(text)


@pytest.fixture
def old(tmp_path):
    made = tmp_path / "out"
    made.mkdir()
    fill(made, "old")
    return made


@pytest.mark.parametrize("has_exchange", [True, False])
def test_a_folder_is_replaced_whole(old, monkeypatch, has_exchange):
    if not has_exchange:
        monkeypatch.setattr(atomic_file, "_exchanged", lambda *_: False)
    with atomic_file.folder(old) as made:
        fill(made, "new")
        (made / "more").touch()
        assert (old / "file").read_text() == "old", "what is there stays until the new one is whole"
    assert names(old) == ["file", "more"]
    assert (old / "file").read_text() == "new"
    assert names(old.parent) == ["out"]


@pytest.mark.parametrize("at", [1, 2, 3])
def test_without_exchange_every_step_leaves_the_old_or_the_new_one(old, monkeypatch, at):
    """A kill between two steps is the same as an exception that nothing catches: nothing cleans up behind it."""
    steps = []

    def rename(self, target, renaming=os.rename):
        steps.append(self)
        if len(steps) == at:
            raise KeyboardInterrupt
        renaming(self, target)

    monkeypatch.setattr(atomic_file, "_exchanged", lambda *_: False)
    new = old.with_name("new")
    new.mkdir()
    fill(new, "new")
    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        atomic_file._exchange(new, old)
    contents = sorted((folder / "file").read_text() for folder in old.parent.iterdir())
    assert contents == ["new", "old"]
    assert (old / "file").read_text() == ("new" if at == 3 else "old")


def test_names_are_exchanged_in_one_step_where_the_system_can(old):
    new = old.with_name("new")
    new.mkdir()
    fill(new, "new")
    if not atomic_file._exchanged(new, old):
        pytest.skip("this file system cannot exchange names")
    assert ((old / "file").read_text(), (new / "file").read_text()) == ("new", "old")


def test_an_error_leaves_what_was_there(old):
    def broken_folder():
        with atomic_file.folder(old) as made:
            fill(made, "new")
            raise RuntimeError

    def broken_file():
        with atomic_file.atomic_writer(old / "file") as file:
            file.write(b"new")
            raise RuntimeError

    for broken in (broken_folder, broken_file):
        with pytest.raises(RuntimeError):
            broken()
    assert (old / "file").read_text() == "old"
    assert (names(old.parent), names(old)) == (["out"], ["file"])


def test_devices_pipes_and_folders_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/null", tmp_path / "pipe", tmp_path):
        with pytest.raises(UsageError), atomic_file.atomic_writer(path):
            pass
    for path in ("/dev/null", tmp_path / "pipe"):
        with pytest.raises(UsageError), atomic_file.folder(path):
            pass
    assert names(tmp_path) == ["pipe"]
    assert Path("/dev/null").is_char_device()


def test_links_stay_and_what_they_point_to_is_replaced(old):
    link = old.parent / "link"
    link.symlink_to("out/file")
    with atomic_file.atomic_writer(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert (old / "file").read_text() == "new"
    link.unlink()
    link.symlink_to("out")
    with atomic_file.folder(link) as made:
        fill(made, "newer")
    assert link.is_symlink()
    assert (old / "file").read_text() == "newer"


def test_errors_name_what_the_user_named(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, atomic_file.atomic_writer(tmp_path / "nowhere/x.json"):
        pass
    assert caught.value.filename == str(tmp_path / "nowhere/x.json")
    with pytest.raises(FileNotFoundError) as caught, atomic_file.folder(tmp_path / "nowhere/x.parquet"):
        pass
    assert caught.value.filename == str(tmp_path / "nowhere/x.parquet")


def test_a_name_as_long_as_names_may_be(tmp_path):
    path = tmp_path / ("x" * 255)
    with atomic_file.atomic_writer(path) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x"


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system has no posix_fadvise")
@pytest.mark.parametrize("is_there", [True, False])
def test_what_replaces_a_file_goes_to_the_disk_while_it_is_written(tmp_path, monkeypatch, is_there):
    target, begun, advise = tmp_path / "out", [], os.posix_fadvise

    def advised(descriptor, start, size, advice):
        begun.append((start, size))
        advise(descriptor, start, size, advice)

    if is_there:
        target.write_bytes(b"old")
    monkeypatch.setattr(os, "posix_fadvise", advised)
    piece = bytes(range(256)) * (3 << 12)
    with atomic_file.atomic_writer(target) as file:
        for _ in range(5):
            file.write(piece)
    assert target.read_bytes() == 5 * piece
    assert begun == ([(0, 2 * len(piece)), (2 * len(piece), 2 * len(piece))] if is_there else [])


def test_scratch_is_private_and_goes(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with atomic_file.scratch() as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
        fill(folder, "secret")
    assert names(tmp_path) == []


def test_discard_is_for_the_process_that_writes(tmp_path, monkeypatch):
    with atomic_file.atomic_writer(tmp_path / "x") as file:
        file.write(b"x")
        (unfinished,) = tmp_path.iterdir()
        monkeypatch.setitem(atomic_file._unfinished, unfinished, os.getpid() + 1)
        atomic_file.discard()
        assert unfinished.exists(), "a forked child must not remove its parent's"
    assert names(tmp_path) == ["x"]
