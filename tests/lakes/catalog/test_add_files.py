"""Adding files leaves the same rows in the catalog as DuckDB's own function."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import (
    CommitConflict,
    DataFileCorrupt,
    DataFileMissing,
    PenstockError,
    SchemaMismatch,
)
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.methods import Added, add_data_files
from penstock.lakes.writing.adding.fit import Rules
from penstock.sql.predicate import of_where
from tests import duck
from tests.lakes.catalog.conftest import Place

SMALL = pa.table({"i": pa.array([1, 2], pa.int32())})
TABLES = (
    "CREATE TABLE t (i BIGINT, s VARCHAR, st STRUCT(a INT, b VARCHAR), l STRUCT(x INT, y INT)[], "
    "m MAP(VARCHAR, INT), d DECIMAL(10, 2), ts TIMESTAMP, b BOOLEAN, u UUID)",
    "CREATE TABLE hive (i INT, country VARCHAR, yr INT, day DATE)",
    "CREATE TABLE parted (i INT, country VARCHAR, ts TIMESTAMP)",
    "ALTER TABLE parted SET PARTITIONED BY (country, month(ts))",
    "CREATE TABLE loose (i BIGINT, j INT DEFAULT 5, k VARCHAR NOT NULL DEFAULT 'kk')",
    "ALTER TABLE loose ADD COLUMN n INT DEFAULT 42",
)
KEPT = (
    *("data_file", "file_column_stats", "file_partition_value", "column_mapping", "table_stats"),
    *("name_mapping", "snapshot_changes", "table_column_stats"),
)


def wide() -> pa.Table:
    inner = pa.struct([("a", pa.int32()), ("b", pa.string())])
    pairs = pa.list_(pa.struct([("x", pa.int32()), ("y", pa.int32())]))
    return pa.table(
        {
            "i": pa.array([1, 2, None], pa.int32()),
            "s": ["a", "b", "ü"],
            "st": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}], inner),
            "l": pa.array([[{"x": 1, "y": 2}], None, []], pairs),
            "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
            "d": pa.array([Decimal("1.10")] * 3, pa.decimal128(9, 2)),
            "ts": pa.array([dt.datetime(2020, 1, 1)] * 3, pa.timestamp("ms")),  # noqa: DTZ001 - no zone
            "b": [True, None, False],
            "u": pa.array([b"0" * 16, None, None], pa.uuid()),
        }
    )


def write(folder: Path, name: str, table: pa.Table) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


def sources(folder: Path) -> list[tuple[str, str, dict[str, Any]]]:
    """What is added to which table, and how."""
    table = wide()
    write(folder, "wide/a.parquet", table)
    write(folder, "wide/b.parquet", table.rename_columns([n.upper() for n in table.column_names]))
    write(folder, "wide/c.parquet", table.select(["ts", "st", "i", "s", "l", "m", "d", "u", "b"]))
    write(folder, "hive/country=a%2Fb/yr=2020/day=2020-01-02/1.parquet", SMALL)
    gone = "country=__HIVE_DEFAULT_PARTITION__"
    write(folder, f"hive/{gone}/yr=2021/day=2020-01-02/2.parquet", SMALL)
    times = pa.array([dt.datetime(2020, 3, 1), dt.datetime(2021, 3, 1)], pa.timestamp("us"))  # noqa: DTZ001 - no zone
    write(folder, "parted/country=nl/month=3/1.parquet", SMALL.append_column("ts", times))
    write(folder, "loose/1.parquet", SMALL)
    write(folder, "loose/2.parquet", SMALL.append_column("extra", [[1], [2]]))
    return [
        ("t", f"{folder}/wide/*.parquet", {}),
        ("hive", f"{folder}/hive/**/*.parquet", {}),
        ("parted", f"{folder}/parted", {"hive_partitioning": True}),
        ("loose", f"{folder}/loose/1.parquet", {"allow_missing": True}),
        (
            "loose",
            f"{folder}/loose/[2-3].parquet",
            {"allow_missing": True, "ignore_extra_columns": True},
        ),
    ]


def stored(place: Place) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {}
    with duck.attach(place.uri) as connection:
        for name in KEPT:
            query = f"SELECT * FROM __ducklake_metadata_lk.ducklake_{name}"
            rows[name] = sorted(connection.execute(query).fetchall(), key=repr)
        for table in ("t", "hive", "parted", "loose"):
            query = f"SELECT rowid, * FROM {table} ORDER BY rowid"
            rows[table] = connection.execute(query).fetchall()
    return rows


def make(place: Place) -> None:
    with duck.attach(place.uri, place.data_path.rstrip("/")) as connection:
        for statement in TABLES:
            connection.execute(statement)


def test_the_rows_of_duckdb(place: Place, tmp_path: Path) -> None:
    duck.required()
    cases = sources(tmp_path / "source")
    other = Place(f"ducklake:{tmp_path / 'other.ducklake'}", f"{tmp_path}/other/")
    make(other)
    with duck.attach(other.uri) as connection:
        for table, paths, how in cases:
            listed = "".join(f", {name} => {value}" for name, value in how.items())
            connection.execute(f"CALL ducklake_add_data_files('lk', '{table}', '{paths}'{listed})")
    make(place)
    with place.open() as catalog:
        for table, paths, how in cases:
            add_data_files(catalog, table, paths, Rules(**how))
    ours, theirs = stored(place), stored(other)
    for name in ("t", "hive", "parted", "loose", "data_file", "file_partition_value", *KEPT[3:5]):
        assert ours[name] == theirs[name], name
    assert_same_statistics(ours["file_column_stats"], theirs["file_column_stats"])
    assert mapped(ours) == mapped(theirs)


def assert_same_statistics(ours: list[Any], theirs: list[Any]) -> None:
    def text(row: Any) -> Any:
        bounds = [{"true": "1", "false": "0"}.get(str(v), v) for v in row[6:8]]
        return (*row[:6], *bounds, *row[8:])

    assert sorted(map(text, ours), key=repr) == sorted(map(text, theirs), key=repr)


def mapped(rows: dict[str, list[Any]]) -> list[Any]:
    """DuckDB numbers the columns of a path in no order."""
    return sorted(((m, *rest) for m, _, *rest in rows["name_mapping"]), key=repr)


@pytest.fixture
def ready(sqlite_place: Place) -> Any:
    make(sqlite_place)
    with sqlite_place.open() as catalog:
        yield catalog


def refused(catalog: Catalog, table: str, paths: object, **how: Any) -> PenstockError:
    before = catalog.latest().id
    with pytest.raises(PenstockError) as caught:
        add_data_files(catalog, table, str(paths), Rules(**how))
    assert catalog.latest().id == before
    return caught.value


def test_columns_that_do_not_fit(ready: Catalog, tmp_path: Path) -> None:
    path = write(tmp_path, "x.parquet", SMALL)
    error = refused(ready, "loose", path)
    assert isinstance(error, SchemaMismatch)
    assert "column 'j' of table main.loose is not in the file" in str(error)
    more = write(tmp_path, "y.parquet", SMALL.append_column("extra", [[1], [2]]))
    assert "'extra' is in the file and not" in str(
        refused(ready, "loose", more, allow_missing=True)
    )
    text = write(tmp_path, "z.parquet", pa.table({"i": ["a"]}))
    error = refused(ready, "loose", text, allow_missing=True)
    assert "z.parquet: column 'i' is varchar there and int64 in table main.loose" in str(error)
    assert error.data["file_type"] == "varchar"
    inside = pa.array([[{"x": "a", "y": 1}]])
    deep = write(tmp_path, "w.parquet", pa.table({"l": inside}))
    assert "'l.list.x' is varchar there and int32" in str(
        refused(ready, "t", deep, allow_missing=True)
    )


def test_values_that_do_not_fit(ready: Catalog, tmp_path: Path) -> None:
    null = SMALL.append_column("k", pa.array([None, "a"], pa.string()))
    path = write(tmp_path, "null.parquet", null)
    assert "'k' is NOT NULL" in str(refused(ready, "loose", path, allow_missing=True))
    gone = "strict/k=__HIVE_DEFAULT_PARTITION__/1.parquet"
    path = write(tmp_path, gone, SMALL)
    assert "'k' is NOT NULL" in str(refused(ready, "loose", path, allow_missing=True))
    base = "parted/country=nl/month=4/1.parquet"
    march = pa.array([dt.datetime(2020, 3, 1)] * 2, pa.timestamp("us"))  # noqa: DTZ001 - no zone
    path = write(tmp_path, base, SMALL.append_column("ts", march))
    assert "month of 'ts' is 4 by the path" in str(refused(ready, "parted", path))
    path = write(tmp_path, "parted/1.parquet", SMALL.append_column("ts", march))
    assert "no directory country=" in str(refused(ready, "parted", path, allow_missing=True))
    both = SMALL.append_column("country", [["nl", "de"]])
    path = write(tmp_path, "hive/country=nl/yr=1/day=2020-01-01/1.parquet", both)
    assert "is nl by the path and something else" in str(refused(ready, "hive", path))
    path = write(tmp_path, "hive/country=nl/yr=x/day=2020-01-01/1.parquet", SMALL)
    assert "yr=x is not a valid int32" in str(refused(ready, "hive", path))


def test_files_that_are_no_good(ready: Catalog, tmp_path: Path) -> None:
    assert isinstance(refused(ready, "t", tmp_path / "*.parquet"), DataFileMissing)
    bad = tmp_path / "bad.parquet"
    bad.write_text("no")
    assert isinstance(refused(ready, "t", bad), DataFileCorrupt)
    good = write(tmp_path, "good.parquet", SMALL)
    how: dict[str, Any] = {"allow_missing": True}
    added = add_data_files(ready, "loose", [str(good), str(good)], Rules(**how))
    assert (added.rows, len(added.files)) == (2, 1)
    error = refused(ready, "loose", good, **how)
    assert isinstance(error, CommitConflict)
    assert "in table main.loose already" in str(error)
    with ready.writing() as connection:
        connection.exec_driver_sql(
            "INSERT INTO ducklake_files_scheduled_for_deletion "
            f"(data_file_id, path, path_is_relative) VALUES (9, '{tmp_path}/dying.parquet', 0)"
        )
    dying = write(tmp_path, "dying.parquet", SMALL)
    assert "scheduled for deletion" in str(refused(ready, "loose", dying, **how))


def test_no_rows_no_snapshot(ready: Catalog, tmp_path: Path) -> None:
    empty = write(tmp_path, "empty.parquet", SMALL.slice(0, 0))
    said: list[tuple[int, int]] = []
    added = add_data_files(
        ready,
        "loose",
        str(empty),
        Rules(allow_missing=True),
        progress=lambda *now: said.append(now),
    )
    assert added == Added((), None)
    assert said == [(1, 1)]


@pytest.mark.parametrize("keys", ["year(d), month(d), day(d)", "day(d), year(d), month(d)"])
def test_partition_values_that_duckdb_put_under_one_key(
    place: Place, tmp_path: Path, keys: str
) -> None:
    """DuckDB 1.5.5 writes year, month and day of one column under the last key of the three."""
    for day in (6, 7):
        table = pa.table({"d": [dt.date(2026, 5, day)] * day})
        write(tmp_path, f"h/year=2026/month=5/day={day}/1.parquet", table)
    with duck.attach(place.uri, place.data_path.rstrip("/")) as connection:
        connection.execute(f"CREATE TABLE t (d DATE); ALTER TABLE t SET PARTITIONED BY ({keys})")
        files = f"'{tmp_path}/h/**/*.parquet', hive_partitioning => true"
        connection.execute(f"CALL ducklake_add_data_files('lk', 't', {files})")
        connection.execute("INSERT INTO t VALUES (DATE '2026-05-08')")  # all keys as they should be
    with place.open() as catalog:
        latest = catalog.latest().id
        table_ = catalog.table("main", "t", latest)
        for where, counts in (
            ("d = DATE '2026-05-06'", [6]),
            ("d >= DATE '2026-05-07'", [7, 1]),
            ("d = DATE '2026-05-08'", [1]),
            ("d < DATE '2026-01-01'", []),
        ):
            listed = catalog.files(table_, latest, of_where(where)).files
            assert [file.record_count for file in listed] == counts, where
        values = [file.partition_values for file in catalog.files(table_, latest).files]
        assert values[:2] == [None, None]
        assert set(values[2] or ()) == {"2026", "5", "8"}
