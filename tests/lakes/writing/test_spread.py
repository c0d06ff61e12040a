"""Partition values of staged files, by the directories of their helper columns."""

from __future__ import annotations

import pytest

from penstock.errors import UnsupportedFeature
from penstock.lakes.format.files import ColumnStats, DataFile
from penstock.lakes.format.partitioning import PartitionKey
from penstock.lakes.format.schema import Column
from penstock.lakes.writing.spread import ValuesNotProven, values_of

TEXT = PartitionKey(Column("k", "varchar", id=1))


def staged(folder: str, low: str | None = None, high: str | None = None) -> DataFile:
    stats = ColumnStats(1, None, 2, 0, low, high)
    return DataFile(f"/d/_penstock_part0={folder}/part-0.parquet", 2, 1, 1, stats=(stats,))


@pytest.mark.parametrize(
    ("folder", "low", "high", "value"),
    [
        ("-8012345678901234567", "a/b=c", "a/b=c", "a/b=c"),
        ("42", "", "", ""),
        ("__HIVE_DEFAULT_PARTITION__", None, None, None),
        ("v412f42", "x", "y", "A/B"),
        ("n", None, None, None),
    ],
)
def test_values(folder: str, low: str | None, high: str | None, value: str | None) -> None:
    assert values_of(staged(folder, low, high), "/d", [TEXT]) == (value,)


@pytest.mark.parametrize(("low", "high"), [("a", "b"), (None, None)])
def test_a_hash_alone_proves_nothing(low: str | None, high: str | None) -> None:
    """Two texts of one hash, and a text too long for the footer's bounds."""
    with pytest.raises(ValuesNotProven):
        values_of(staged("42", low, high), "/d", [TEXT])


def test_a_value_with_a_nul_character_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="NUL character"):
        values_of(staged("42", "a\0b", "a\0b"), "/d", [TEXT])
