"""Small captures whose rows go to disk all the same, as those of large ones do where the memory is limited."""

from contextlib import contextmanager

from lanescope.devices.cuda import decoder
from lanescope.devices.cuda.emit import batches
from lanescope.pipeline import memory
from lanescope.source import disk_arrays


def few_rows_to_disk(monkeypatch, module):
    """Have a few rows that a module keeps go to disk; return a list that grows each time."""
    spilled = []
    kept = module.kept_on_disk

    @contextmanager
    def counted():
        spilled.append(True)
        with kept():
            yield

    monkeypatch.setattr(module, "SPILLED_ROWS", 50)
    monkeypatch.setattr(module, "kept_on_disk", counted)
    monkeypatch.setattr(disk_arrays, "_KEPT", 16)
    monkeypatch.setattr(memory, "_LARGE_SHARE", 1 << 24)
    monkeypatch.setattr(batches, "PART_RECORDS", 900)
    monkeypatch.setattr(batches, "PIECE_ROWS", 300)
    monkeypatch.setattr(decoder, "LIMITED_BYTES", 0)
    return spilled
