"""Tables that were changed, and files that were added by DuckDB, as DuckDB reads them.

Tests ``lakes/format/schema.py``.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.errors import UnsupportedFeature
from penstock.lakes.lake import Lake
from tests.lakes.catalog.conftest import Place
from tests.lakes.differential.test_types import run
from tests.lakes.differential.typed import differences

pytestmark = pytest.mark.spark


def test_columns_that_came_went_and_came_again(place: Place, spark: SparkSession) -> None:
    run(
        place,
        'CREATE TABLE t(a INT, b VARCHAR, "C c" DATE)',
        "INSERT INTO t VALUES (1, 'x', '2020-01-01')",
        "ALTER TABLE t DROP COLUMN b",
        "INSERT INTO t VALUES (2, '2020-01-02')",
        "ALTER TABLE t ADD COLUMN b INT DEFAULT 7",
        "ALTER TABLE t RENAME a TO z",
        "ALTER TABLE t ADD COLUMN A VARCHAR",
        "INSERT INTO t VALUES (3, NULL, NULL, 'a')",
        "ALTER TABLE t ALTER b SET DEFAULT 8",
        "ALTER TABLE t RENAME TO u",
        "CREATE TABLE t AS SELECT 'other' AS a",
        "DROP TABLE u",
        "CREATE TABLE u AS SELECT 9 AS a",
    )
    assert differences(place, spark) == []


def test_fields_of_structs(place: Place, spark: SparkSession) -> None:
    row = "{'a': 1, 'b': 'x'}"
    run(
        place,
        "CREATE TABLE t(s STRUCT(a INT, b VARCHAR), l STRUCT(a INT, b VARCHAR)[], "
        "m MAP(INT, STRUCT(a INT, b VARCHAR)))",
        f"INSERT INTO t VALUES ({row}, [{row}, NULL], MAP {{1: {row}}}), (NULL, NULL, NULL)",
        "ALTER TABLE t RENAME COLUMN s.a TO z",
        "ALTER TABLE t DROP COLUMN s.z",
        "ALTER TABLE t ADD COLUMN s.a BIGINT DEFAULT 5",
        "ALTER TABLE t DROP COLUMN s.b",
        "ALTER TABLE t DROP COLUMN l.element.b",
        "ALTER TABLE t ADD COLUMN m.value.c STRUCT(d INT)",
        "ALTER TABLE t ALTER m SET TYPE MAP(BIGINT, STRUCT(a BIGINT, b VARCHAR, c STRUCT(d INT)))",
        "INSERT INTO t VALUES ({'a': 2}, [{'a': 3}], MAP {1: {'a': 4, 'b': 'y', 'c': {'d': 6}}})",
    )
    assert differences(place, spark) == []


def test_a_field_of_a_renamed_struct(place: Place, spark: SparkSession) -> None:
    """Spark alone gives NULL for it: what it reads a part of, it looks for by name."""
    create = "CREATE TABLE t AS SELECT {'a': 1, 'b': 'x'} AS s, [{'c': 2, 'd': 3}] AS l"
    run(place, create, "ALTER TABLE t RENAME s TO r", "ALTER TABLE t RENAME l TO k")
    with Lake.attach(place.uri, spark=spark) as lake:
        assert lake.sql("SELECT r.b, k.d FROM t").collect() == [("x", [3])]
        assert lake.sql("SELECT r.a FROM t WHERE r.b = 'x'").collect() == [(1,)]


def write(path: Path, columns: dict[str, Any], **options: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, **options)
    return str(path)


def added(name: str, path: str, **options: bool) -> str:
    said = "".join(f", {key} => {value}" for key, value in options.items())
    return f"CALL ducklake_add_data_files('lk', '{name}', '{path}'{said})"


_TIME = dt.datetime(2020, 1, 1, 1, 2, 3)  # noqa: DTZ001 - without a zone is what is tested
# Types of the table, and columns of files that DuckDB takes for them.
TAKEN = {
    "SMALLINT": pa.array([255], pa.uint8()),
    "INTEGER": pa.array([65535], pa.uint16()),
    "BIGINT": pa.array([4294967295], pa.uint32()),
    "UINTEGER": pa.array([7], pa.uint8()),
    "UBIGINT": pa.array([4294967295], pa.uint32()),
    "DOUBLE": pa.array([1.5], pa.float32()),
    "DECIMAL(18,3)": pa.array([Decimal("1.5")], pa.decimal128(4, 1)),
    "TIME": pa.array([dt.time(1, 2, 3)], pa.time64("us")),
    "TIMESTAMP": pa.array([_TIME], pa.timestamp("ms")),
    "TIMESTAMP_S": pa.array([_TIME], pa.timestamp("us")),
    "TIMESTAMP_MS": pa.array([_TIME], pa.timestamp("us")),
    "TIMESTAMP_NS": pa.array([_TIME], pa.timestamp("us")),
    "TIMESTAMPTZ": pa.array([_TIME], pa.timestamp("ms", "UTC")),
    "VARCHAR": pa.array(["x"], pa.dictionary(pa.int32(), pa.string())),
    "BLOB": pa.array([b"0123"], pa.binary(4)),
}


def test_added_files_of_narrower_types(place: Place, spark: SparkSession, tmp_path: Path) -> None:
    names = {kind: f"c{at}" for at, kind in enumerate(TAKEN)}
    columns = ", ".join(f"{name} {kind}" for kind, name in names.items())
    path = write(tmp_path / "f/a.parquet", {names[kind]: TAKEN[kind] for kind in TAKEN})
    int96 = write(
        tmp_path / "f/b.parquet",
        {names["TIMESTAMP"]: TAKEN["TIMESTAMP"], names["TIMESTAMP_NS"]: TAKEN["TIMESTAMP"]},
        use_deprecated_int96_timestamps=True,
    )
    last = run(
        place,
        f"CREATE TABLE t({columns})",
        added("t", path),
        added("t", int96, allow_missing=True),
        f"ALTER TABLE t ALTER {names['INTEGER']} SET TYPE DOUBLE",
        f"ALTER TABLE t RENAME {names['BIGINT']} TO renamed",
    )
    assert differences(place, spark, [3, last]) == []


def test_added_files_that_lack_and_have_more(
    place: Place, spark: SparkSession, tmp_path: Path
) -> None:
    struct = pa.struct([("A", pa.int32()), ("b", pa.string())])
    whole: dict[str, Any] = {
        "K": pa.array([1, 2], pa.int32()),
        "s": pa.array([{"A": 1, "b": "x"}, None], struct),
        "l": pa.array([[{"A": 1, "b": "x"}, None], None], pa.list_(struct)),
        "m": pa.array([[("k", {"A": 1, "b": "x"})], None], pa.map_(pa.string(), struct)),
    }
    more = pa.array(
        [[{"b": "x", "c": 1}]], pa.list_(pa.struct([("b", pa.string()), ("c", pa.int8())]))
    )
    ids = pa.field("k", pa.int32(), metadata={"PARQUET:field_id": "3"})
    foreign = pa.table([pa.array([9], pa.int32())], schema=pa.schema([ids]))
    pq.write_table(foreign, tmp_path / "foreign.parquet")
    lenient = {"allow_missing": True, "ignore_extra_columns": True}
    run(
        place,
        "CREATE TABLE t(k BIGINT, s STRUCT(a BIGINT, b VARCHAR), l STRUCT(a INT, b VARCHAR)[], "
        "m MAP(VARCHAR, STRUCT(a INT, b VARCHAR)))",
        added("t", write(tmp_path / "a.parquet", whole)),
        added("t", write(tmp_path / "b.parquet", whole, use_compliant_nested_type=False)),
        added("t", write(tmp_path / "c.parquet", {"l": more, "zz": [1]}), **lenient),
        added("t", str(tmp_path / "foreign.parquet"), **lenient),
        "ALTER TABLE t ADD COLUMN d INT DEFAULT 7",
        "ALTER TABLE t RENAME k TO kk",
        "ALTER TABLE t ADD COLUMN K INT",
        "ALTER TABLE t ADD COLUMN zz INT DEFAULT 3",
        "ALTER TABLE t ADD COLUMN s.z INT DEFAULT 5",
        "ALTER TABLE t ADD COLUMN l.element.z DATE DEFAULT '2020-01-01'",
        "INSERT INTO t(kk) VALUES (10)",
        "DELETE FROM t WHERE kk = 1",
    )
    assert differences(place, spark) == []


FOLDERS = [
    *("p=1/q=a%2Fb%20c", "p=2/q=__HIVE_DEFAULT_PARTITION__", "p=3/q=a+b", "p=4/q=", "p=5/q=NULL"),
    *("q=%C3%A9/p=6", "p=7/q=null"),
]


def test_columns_that_are_only_in_the_path(
    place: Place, spark: SparkSession, tmp_path: Path
) -> None:
    paths = [
        write(tmp_path / f"h/{folder}/f.parquet", {"x": [at]}) for at, folder in enumerate(FOLDERS)
    ]
    both = write(tmp_path / "h/p=8/q=path/f.parquet", {"x": [9], "q": ["file"]})
    run(
        place,
        "CREATE TABLE t(x BIGINT, p INT, q VARCHAR)",
        *(added("t", path, hive_partitioning=True) for path in [*paths, both]),
        "ALTER TABLE t RENAME p TO pp",
        "ALTER TABLE t ALTER pp SET TYPE DOUBLE",
        "CREATE TABLE d(x BIGINT, p DATE)",
        added("d", write(tmp_path / "d/p=2020-01-02/f.parquet", {"x": [1]})),
    )
    assert differences(place, spark, [2, 7, 9, 13]) == []


def test_a_path_with_a_type_that_text_has_not_alike(
    place: Place, spark: SparkSession, tmp_path: Path
) -> None:
    path = write(tmp_path / "p=01/f.parquet", {"x": [1]})
    run(place, "CREATE TABLE t(x BIGINT, p BLOB)", added("t", path))
    refused = pytest.raises(UnsupportedFeature, match="'p' is blob, and is only in the paths")
    with Lake.attach(place.uri, spark=spark) as lake, refused:
        lake.table("t").to_df()
