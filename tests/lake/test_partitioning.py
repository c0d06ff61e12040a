"""Partition columns, values and directories."""

from __future__ import annotations

import datetime as dt

import pytest

from penstock.errors import ColumnNotFound, UnsupportedFeature
from penstock.lake.files import PartitionField
from penstock.lake.partitioning import hive_directory, partition_columns, partition_value
from penstock.lake.schema import Column, TableSchema

SCHEMA = TableSchema(
    (Column("day", "date"), Column("s", "struct", children=(Column("x", "int32"),)))
)


def test_columns_by_any_letter_case() -> None:
    assert partition_columns(SCHEMA, [PartitionField("DAY")]) == (SCHEMA.columns[0],)


@pytest.mark.parametrize("name", ["nope", "s"])
def test_columns_that_cannot_be(name: str) -> None:
    with pytest.raises(ColumnNotFound, match="day"):
        partition_columns(SCHEMA, [PartitionField(name)])


def test_transforms_are_refused() -> None:
    with pytest.raises(UnsupportedFeature, match=r"year\(day\)"):
        partition_columns(SCHEMA, [PartitionField("day", "year")])


def test_directories_are_those_of_the_real_extension() -> None:
    found = hive_directory(["we ird=", "s", "n"], ["3", "a/b =ç%'~", None])
    assert found == "we%20ird%3D=3/s=a%2Fb%20%3D%C3%A7%25%27~/n=__HIVE_DEFAULT_PARTITION__/"


def test_values() -> None:
    assert partition_value(SCHEMA.columns[0], dt.date(2013, 1, 2)) == "2013-01-02"
    assert partition_value(SCHEMA.columns[0], None) is None
