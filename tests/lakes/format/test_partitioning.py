"""Partition columns, values and directories."""

from __future__ import annotations

import datetime as dt
import re

import pytest

from penstock.errors import ColumnNotFound, UnsupportedFeature
from penstock.lakes.format.files import PartitionField
from penstock.lakes.format.partitioning import (
    catalog_text,
    directory_names,
    hive_directory,
    hive_segment,
    parse_partition_field,
    partition_columns,
    partition_keys,
    partition_value,
)
from penstock.lakes.format.schema import Column, TableSchema

SCHEMA = TableSchema(
    (
        *(Column("day", "date"), Column("n", "int32"), Column("b", "blob")),
        Column("s", "struct", children=(Column("x", "int32"),)),
    )
)


def test_columns_by_any_letter_case() -> None:
    assert partition_columns(SCHEMA, [PartitionField("DAY")]) == (SCHEMA.columns[0],)


@pytest.mark.parametrize("name", ["nope", "s"])
def test_columns_that_cannot_be(name: str) -> None:
    with pytest.raises(ColumnNotFound, match="day"):
        partition_columns(SCHEMA, [PartitionField(name)])


@pytest.mark.parametrize(
    ("column", "transform"),
    [("day", "week"), ("day", "bucket(0)"), ("n", "year"), ("b", "identity")],
)
def test_what_is_not_written_is_named(column: str, transform: str) -> None:
    with pytest.raises(UnsupportedFeature, match=re.escape(f"{transform}({column})")):
        partition_columns(SCHEMA, [PartitionField(column, transform)])


def test_keys_as_texts_have_them() -> None:
    texts = ["country", "Year(at)", "bucket( 8 , id )", "odd(name)", "identity(x)"]
    fields = [parse_partition_field(text) for text in texts]
    assert [(field.column, field.transform) for field in fields] == [
        *(("country", "identity"), ("at", "year"), ("id", "bucket(8)")),
        *(("odd(name)", "identity"), ("identity(x)", "identity")),
    ]


def test_directories_are_called_as_the_real_extension_calls_them() -> None:
    fields = [("n", "identity"), ("n", "bucket(3)"), ("d", "bucket(2)"), ("d", "year")]
    schema = TableSchema((Column("n", "int32"), Column("d", "date")))
    keys = partition_keys(schema, [PartitionField(*field) for field in fields])
    assert directory_names(keys) == ["n", "bucket", "bucket_d", "year"]


def test_a_name_too_long_for_a_file_system_ends_in_a_digest() -> None:
    first, other = hive_segment("c", "ü" * 100 + "a"), hive_segment("c", "ü" * 100 + "b")
    assert max(len(first), len(other)) <= 255
    assert first != other


TEXTS = {
    ("float64", "1.0E300"): "1e+300",
    ("float64", "1.0E-7"): "1e-07",
    ("float64", "NaN"): "nan",
    ("float64", "-Infinity"): "-inf",
    ("float64", "-0.0"): "0.0",
    ("float32", "1.17549435E-38"): "1.1754944e-38",
    ("date", "-0043-03-15"): "0044-03-15 (BC)",
    ("date", "0000-12-31"): "0001-12-31 (BC)",
    ("date", "+99999-01-01"): "99999-01-01",
    ("date", "0001-01-01"): "0001-01-01",
    ("timestamp", "2020-01-02 03:04:05.5"): "2020-01-02 03:04:05.5",
    ("uuid", "00112233-4455-6677-8899-AABBCCDDEEFF"): "00112233-4455-6677-8899-aabbccddeeff",
    ("varchar", "-0043-03-15"): "-0043-03-15",
}


@pytest.mark.parametrize(("kind", "text"), TEXTS)
def test_texts_are_those_of_the_real_extension(kind: str, text: str) -> None:
    assert catalog_text(kind, text) == TEXTS[kind, text]


def test_directories_are_those_of_the_real_extension() -> None:
    directory = hive_directory(["we ird=", "s", "n"], ["3", "a/b =ç%'~", None])
    assert directory == "we%20ird%3D=3/s=a%2Fb%20%3D%C3%A7%25%27~/n=__HIVE_DEFAULT_PARTITION__/"


def test_values() -> None:
    assert partition_value(SCHEMA.columns[0], dt.date(2013, 1, 2)) == "2013-01-02"
    assert partition_value(SCHEMA.columns[0], None) is None
