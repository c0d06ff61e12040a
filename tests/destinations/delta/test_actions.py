"""Actions of Delta's log, of columns, files and statistics of a lake."""

from __future__ import annotations

import json

import pytest

from penstock.destinations.delta import actions
from penstock.errors import SchemaMismatch, UnsupportedFeature
from penstock.lakes.format.files import ColumnStats, DataFile, PartitionField
from penstock.lakes.format.schema import Column, TableSchema

SCHEMA = TableSchema(
    (
        Column("id", "int64", id=1),
        Column("day", "date", id=2),
        Column("at", "timestamptz", id=3),
        Column("price", "decimal(9,2)", id=4),
        Column("ratio", "float64", id=5),
    )
)
BOUNDS = {
    1: ("1", "20"),
    2: ("2026-01-01", "2026-01-31"),
    3: ("2026-01-01 00:00:00+00", "2026-01-01 10:00:00.5+00"),
    4: ("1.00", "2.00"),
    5: ("0.5", "1.5"),
}


def file(*, nan: bool | None = False) -> DataFile:
    stats = tuple(ColumnStats(id_, 8, 3, 0, *bounds, nan) for id_, bounds in BOUNDS.items())
    return DataFile("/root/main/t/day=2026-01-01/a%2Fb c.parquet", 3, 100, 10, stats=stats)


def test_statistics_are_values_of_json() -> None:
    found = json.loads(actions.added("/root/main/t/", file(), (), SCHEMA, now=5)["add"]["stats"])
    assert found["numRecords"] == 3
    assert found["minValues"] == {
        "id": 1,
        "day": "2026-01-01",
        "at": "2026-01-01T00:00:00Z",
        "price": 1.0,
        "ratio": 0.5,
    }
    assert found["maxValues"]["at"] == "2026-01-01T10:00:00.5Z"
    assert found["nullCount"]["price"] == 0
    unsure = actions.added("/root/main/t/", file(nan=None), (), SCHEMA, now=5)["add"]["stats"]
    assert "ratio" not in json.loads(unsure)["minValues"]


def test_paths_are_relative_and_encoded() -> None:
    path = actions.added("/root/main/t/", file(), (), SCHEMA, now=5)["add"]["path"]
    assert path == "day=2026-01-01/a%252Fb%20c.parquet"


def test_values_of_partitions() -> None:
    assert actions.partition_values(["day", "x"], ["1", None], "p") == {"day": "1", "x": None}
    for values in ([""], None):
        with pytest.raises(SchemaMismatch):
            actions.partition_values(["day"], values, "p")


def test_partitions_by_a_transform_are_plain_files_to_delta() -> None:
    fields = (PartitionField("day"), PartitionField("id", "bucket(4)"))
    assert actions.partition_columns(SCHEMA, fields, "main.t") == ()
    assert actions.partition_columns(SCHEMA, fields[:1], "main.t") == ("day",)
    with pytest.raises(UnsupportedFeature, match="timestamptz"):
        actions.partition_columns(SCHEMA, (PartitionField("at"),), "main.t")


def test_columns_are_those_of_spark() -> None:
    plain = TableSchema((Column("at", "timestamp", id=1),))
    fields = json.loads(actions.schema_of(plain, "main.t"))["fields"]
    assert fields == [{"name": "at", "type": "timestamp_ntz", "nullable": True, "metadata": {}}]


def test_a_type_that_delta_lacks() -> None:
    with pytest.raises(UnsupportedFeature, match="uint8, a type that Delta does not have"):
        actions.schema_of(TableSchema((Column("n", "uint8", id=1),)), "main.t")
