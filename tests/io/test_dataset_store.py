"""The folder of a dataset, written and cleaned by several processes at once."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lanescope.io.dataset import records
from lanescope.io.dataset.store import open_store


@pytest.fixture
def store(tmp_path):
    return open_store(str(tmp_path / "dataset"))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    return path


@pytest.mark.parametrize("method", ["put", "put_new", "put_file"])
def test_a_folder_that_another_process_removes_is_made_again(store, file, method, monkeypatch):
    """Another process removes the last file of the folder, and with it the folder, before the new file is in it."""
    removed = []

    def removing(whole):
        def wrapper(made, target, **kwargs):
            if len(removed) < 3:
                removed.append(target)
                store.delete("_failed/other")
                assert not Path(target).parent.exists()
            return whole(made, target, **kwargs)

        return wrapper

    monkeypatch.setattr(os, "link", removing(os.link))
    monkeypatch.setattr(os, "rename", removing(os.rename))
    monkeypatch.setattr(os, "replace", removing(os.replace))
    monkeypatch.setattr(Path, "replace", lambda made, target: os.replace(made, target))  # noqa: PTH105
    getattr(store, method)("_failed/name", file if method == "put_file" else b"content")
    assert len(removed) == 3
    assert store.get("_failed/name") == b"content"
    assert store.names("_staging") == []


def test_files_come_and_go_side_by_side(store):
    def come_and_go(number):
        for _ in range(200):
            store.put(f"_failed/{number}", b"content")
            store.delete(f"_failed/{number}")
        return store.put_new(f"_failed/{number}", b"content")

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(come_and_go, range(4)))
    assert store.names("_failed") == ["0", "1", "2", "3"]


def test_a_file_that_exists_stays(store):
    assert store.put_new("name", b"first")
    assert not store.put_new("name", b"second")
    assert store.get("name") == b"first"


def test_a_dataset_that_another_process_begins_is_one(store, monkeypatch):
    """Another process writes the marker and a file after this one found no marker, before it lists the folder."""
    get = type(store).get
    begun = []

    def beginning(self, name):
        content = get(self, name)
        if not begun:
            begun.append(name)
            records.mark(open_store(self.url))
            self.put("_captures/other", b"content")
        return content

    monkeypatch.setattr(type(store), "get", beginning)
    records.mark(store)
    assert begun == [records.MARKER]
    assert store.names("") == ["_captures", "_staging", records.MARKER]
