"""Which snapshots changed rows, as Penstock itself commits."""

from __future__ import annotations

from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.snapshots.row_changes import load_row_changes, newest_id
from tests.lakes.catalog import staging

NAME = ("main", "t")


def test_a_table_that_is_made_and_written(lake: Catalog) -> None:
    staging.create(lake, "T", staging.columns(id="int64"))
    staging.append(lake, "T", {"id": [1]})
    staging.create(lake, "other", staging.columns(id="int64"))
    with lake.reading() as connection:
        assert newest_id(connection) == 3
        found = load_row_changes(connection, {NAME}, 0)
        later = load_row_changes(connection, {NAME}, 2)
    assert [(each.snapshot.id, each.name, each.is_new) for each in found.changes] == [
        (1, NAME, True),
        (2, NAME, False),
    ]
    assert (found.newest.id, found.after_gaps) == (3, ())
    assert found.named == {NAME}
    assert later.changes == ()
    assert not found.without_base


def test_a_catalog_that_is_older_than_what_was_seen(lake: Catalog) -> None:
    with lake.reading() as connection:
        found = load_row_changes(connection, {NAME}, 9)
    assert [(snapshot.id, before) for snapshot, before in found.after_gaps] == [(0, 9)]
    assert found.named == frozenset()
