"""Datasets as what they say: records, failures and rows."""

from __future__ import annotations

from lanescope.io.dataset import tables
from lanescope.io.dataset.records import Catalog
from lanescope.io.dataset.store import open_store


def content(url):
    """All that a dataset says: its records without times, its failures, and the rows of each table."""
    catalog = Catalog(open_store(str(url)))
    rows = {}
    with tables.connect(catalog, catalog.captures) as connection:
        for name in tables.declarations(catalog, catalog.captures):
            found = connection.execute(f'select * from "{name}" order by all').fetchall()
            rows[name] = found
    return catalog.captures, catalog.failed, rows
