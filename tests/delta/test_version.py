"""The end of a change: it lands, or not, or nobody can tell; and which files are left then.

Tests ``delta/version.py`` and ``delta/commit.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock import Delta
from penstock.delta import commit as commits
from penstock.delta.log_files import put_if_absent
from penstock.delta.merge import Clause, merge
from penstock.delta.table import Table, append, delete, overwrite, replace_where, update
from penstock.delta.version import Draft, carry_out
from penstock.errors import CommitConflict, CommitUnknown
from tests.delta.test_table import all_files, check, data_files, ids, orders_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ON = {"delta.enableDeletionVectors": "true"}
Put = Callable[[str, bytes], bool]


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> Table:
    table = Delta.attach(tmp_path, spark=spark).table("shop.orders")
    table.append(orders_of(spark, range(5)))
    table.append(orders_of(spark, range(5, 10)))
    return table


def test_what_others_exclude(orders: Table, spark: SparkSession) -> None:
    """Changes of a version that another commit has followed meanwhile."""
    base = orders.place.at()
    draft = Draft.of_version(orders.place, base)
    orders.update({"name": "'other'"}, "id = 1")
    orders.append(orders_of(spark, [30]))
    _, state = carry_out(append(orders.place, base, orders_of(spark, [40]), evolve=False))
    assert state is not None  # an append reads nothing
    carry_out(delete(draft, "id = 7"))  # whose file and rows the others did not touch
    for work in (
        delete(draft, "id = 1"),
        update(draft, {"price": "0"}, "id >= 5"),
        replace_where(draft, orders_of(spark, [31]), "id > 29"),
        merge(draft, orders_of(spark, [30, 40], "m"), ["id"]),
        overwrite(orders.place, base, orders_of(spark, [1]), None),
        append(orders.place, None, orders_of(spark, [41]), evolve=False),
    ):
        with pytest.raises(CommitConflict, match="did not land"):
            carry_out(work)
    check(orders)
    assert ids(orders) == [*range(7), 8, 9, 30, 40]
    assert data_files(orders) == all_files(orders)


def test_a_merge_beside_the_keys_that_others_added(orders: Table, spark: SparkSession) -> None:
    draft = Draft.of_version(orders.place, orders.place.at())
    orders.append(orders_of(spark, [30]))
    change, state = carry_out(merge(draft, orders_of(spark, [8, 20], "m"), ["id"]))
    assert (change.rows_updated, change.rows_inserted) == (1, 1)
    assert state is not None
    check(orders)
    assert ids(orders) == [*range(10), 20, 30]


def test_an_insert_of_what_had_a_partner(orders: Table, spark: SparkSession) -> None:
    """Another commit removes the row that the MERGE had found, so that it has to be inserted."""
    draft = Draft.of_version(orders.place, orders.place.at())
    insert = [Clause("not_matched", "insert")]
    work = merge(draft, orders_of(spark, [8, 20], "m"), ["id"], insert)
    orders.delete()
    with pytest.raises(CommitConflict, match="removed or changed rows"):
        carry_out(work)
    assert ids(orders) == []


def test_the_version_is_that_of_the_change(
    orders: Table, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another commit lands before this one has looked at what it has made."""
    put: Put = put_if_absent
    others: list[int | None] = []

    def and_another(path: str, content: bytes) -> bool:
        landed = put(path, content)
        if not others:
            others.append(None)
            others[0] = orders.append(orders_of(spark, [50])).version
        return landed

    monkeypatch.setattr(commits, "put_if_absent", and_another)
    assert orders.append(orders_of(spark, [40])).version == 2
    assert others == [3]


@pytest.mark.parametrize("options", [{}, ON])
def test_files_stay_where_the_outcome_is_open(
    orders: Table, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    orders.set_options(options)
    put: Put = put_if_absent
    before = data_files(orders)

    def interrupted(path: str, content: bytes) -> bool:
        put(path, content)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(commits, "put_if_absent", interrupted)
        with pytest.raises(KeyboardInterrupt):
            orders.delete("id = 7")
    assert before < data_files(orders)
    assert 7 not in ids(orders)
    check(orders)


def test_files_stay_where_the_version_cannot_be_read(
    orders: Table, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("the store does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(commits, "advance", fails)
        with pytest.raises(OSError, match="does not answer"):
            orders.append(orders_of(spark, [40]))  # before it is made: nothing landed
    assert data_files(orders) == all_files(orders)
    seen: list[object] = []

    def fails_later(uri: str, state: object, until: int | None = None) -> object:
        seen.append(until)
        if until == 2:
            raise OSError("the store does not answer")
        return state

    with monkeypatch.context() as patch:
        patch.setattr(commits, "advance", fails_later)
        with pytest.raises(CommitUnknown, match=r"version 2 of the Delta table shop\.orders"):
            orders.append(orders_of(spark, [40]))
    assert seen == [1, 2]
    assert 40 in ids(orders)
    check(orders)


def test_a_schema_whose_name_is_main_in_other_letters(spark: SparkSession, tmp_path: Path) -> None:
    table = Delta.attach(tmp_path, spark=spark).table("Main.orders")
    table.append(orders_of(spark, [1]))
    table.append(orders_of(spark, [2]))
    table.delete("id = 1")
    assert ids(table) == [2]
    check(table)
