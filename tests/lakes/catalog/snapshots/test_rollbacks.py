"""Which snapshots of a table rollbacks have undone."""

from __future__ import annotations

import pytest

from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.snapshots.history import Rollbacks, rollbacks
from penstock.lakes.recovery.rollback import rollback
from tests.lakes.catalog import staging

ID = staging.columns(id="int64")


@pytest.mark.parametrize(
    ("made", "undone"),
    [
        ((), ()),
        (((6, 3),), (4, 5)),
        (((9, 7), (6, 3)), (4, 5, 8)),
        (((9, 5), (6, 3)), (6, 7, 8)),  # the first was undone: 4 and 5 are back
        (((9, 2), (6, 3)), (3, 4, 5, 6, 7, 8)),
    ],
)
def test_what_is_undone(made: tuple[tuple[int, int], ...], undone: tuple[int, ...]) -> None:
    found = Rollbacks(made)
    assert tuple(id_ for id_ in range(12) if found.undid(id_)) == undone


def test_rollbacks_are_those_of_a_table(lake: Catalog) -> None:
    staging.create(lake, "other", ID)
    before = staging.create(lake, "t", ID).id
    staging.append(lake, "t", {"id": [1]})
    done = rollback(lake, "t", before)
    assert done.snapshot is not None
    table = lake.table("main", "t", before)
    expected = Rollbacks(((done.snapshot.id, before),), before, ("main", "t"))
    with lake.reading() as connection:
        assert rollbacks(connection) == {table.id: expected}
