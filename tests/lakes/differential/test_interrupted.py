"""A commit that ends without an answer: its files stay, for they may be the table's by now."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

from penstock.errors import CommitConflict
from penstock.lakes.lake import Lake
from penstock.lakes.transaction import Transaction
from tests.lakes.catalog.conftest import Place
from tests.lakes.differential.conftest import Rows
from tests.lakes.differential.content import assert_same, expected

pytestmark = pytest.mark.spark


def parquet_files(place: Place) -> set[Path]:
    return set(Path(place.data_path).rglob("*.parquet"))


def staged(lake: Lake, rows: Rows) -> Transaction:
    transaction = lake.transaction()
    transaction.table("t").append(rows("k INT", [(1,)]))
    return transaction


def interrupt(*_: Any) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_rollback_after_an_interrupted_commit_keeps_the_files(
    lake: Lake, place: Place, rows: Rows, error: type[BaseException]
) -> None:
    def fail(*_: Any) -> NoReturn:
        raise error

    transaction = staged(lake, rows)
    transaction.on_commit(fail)
    before = parquet_files(place)
    with pytest.raises(error):
        transaction.commit()
    transaction.rollback()
    assert parquet_files(place) == before != set()


def test_the_end_of_a_block_rolls_nothing_back(lake: Lake, place: Place, rows: Rows) -> None:
    def in_a_block() -> None:
        with lake.transaction() as transaction:
            transaction.table("t").append(rows("k INT", [(1,)]))
            transaction.on_commit(interrupt)

    with pytest.raises(KeyboardInterrupt):
        in_a_block()
    assert len(parquet_files(place)) == 1
    staged(lake, rows).commit()
    assert assert_same(lake, place)[1]["main.t"] == expected(("k",), [(1,)])


def test_rollback_before_a_commit_and_after_a_refusal_removes_them(
    lake: Lake, place: Place, rows: Rows
) -> None:
    staged(lake, rows).rollback()
    assert parquet_files(place) == set()
    late = staged(lake, rows)
    staged(lake, rows).commit()
    others = parquet_files(place) - {Path(file.path) for file in late.table("t").files().files}
    with pytest.raises(CommitConflict):
        late.commit()
    late.rollback()
    assert parquet_files(place) == others
