"""Penstock writes options as DuckDB does, and DuckDB follows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import CommitError, ReadOnlyLake, SchemaNotFound, TableNotFound
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.methods import add_data_files, set_option
from tests import duck
from tests.lakes.catalog.conftest import Place

SETTINGS: tuple[tuple[str, object, dict[str, str]], ...] = (
    ("parquet_compression", "zstd", {}),
    ("parquet_compression", "gzip", {"schema": "s"}),
    ("parquet_compression", "snappy", {"table": "t"}),
    ("target_file_size", "3MB", {"table": "u", "schema": "s"}),
    ("parquet_compression", "lz4", {}),
    ("rewrite_delete_threshold", 0.5, {}),
    ("expire_older_than", "30 days", {}),
    ("require_commit_message", False, {}),
    ("data_inlining_row_limit", 7, {"table": "t"}),
)


def make(place: Place) -> None:
    with duck.attach(place.uri, place.data_path.rstrip("/")) as connection:
        connection.execute("CREATE SCHEMA s; CREATE TABLE t (i INT); CREATE TABLE s.u (i INT)")


def stored(catalog: Catalog) -> list[tuple[Any, ...]]:
    fixed = "('version', 'created_by', 'data_path', 'encrypted')"
    query = f'SELECT * FROM ducklake_metadata WHERE "key" NOT IN {fixed}'
    with catalog.reading() as connection:
        return sorted(map(tuple, connection.exec_driver_sql(query)), key=repr)


def duck_call(key: str, value: object, scope: dict[str, str]) -> str:
    named = {"table": "table_name", "schema": "schema"}
    arguments = "".join(f", {named[name]} => '{text}'" for name, text in scope.items())
    shown = f"'{value}'" if isinstance(value, str) else str(value)
    return f"CALL lk.set_option('{key}', {shown}{arguments})"


def test_the_rows_of_duckdb(place: Place) -> None:
    duck.required()
    make(place)
    with place.open() as catalog:
        before = catalog.latest().id
        for key, value, scope in SETTINGS:
            set_option(catalog, key, value, **scope)
        ours = stored(catalog)
        for key, _, scope in SETTINGS:
            set_option(catalog, key, None, **scope)
        assert stored(catalog) == []
        assert catalog.latest().id == before
    with duck.attach(place.uri) as connection:
        for setting in SETTINGS:
            connection.execute(duck_call(*setting))
    with place.open() as catalog:
        assert stored(catalog) == ours


def test_scopes(place: Place) -> None:
    make(place)
    with place.open() as catalog:
        set_option(catalog, "target_file_size", "1MB")
        set_option(catalog, "target_file_size", "2MB", schema="S")
        set_option(catalog, "target_file_size", "3MB", table="s.U")
        latest = catalog.latest().id
        tables = [catalog.table("main", "t", latest), catalog.table("s", "u", latest)]
        sizes = [catalog.option("target_file_size", table) for table in tables]
        assert sizes == ["1000000", "3000000"]
        set_option(catalog, "target_file_size", None, table="s.u")
        assert catalog.option("target_file_size", tables[1]) == "2000000"


def test_refused(sqlite_place: Place) -> None:
    make(sqlite_place)
    with sqlite_place.open() as catalog:
        with pytest.raises(SchemaNotFound, match="did you mean s"):
            set_option(catalog, "target_file_size", 1, schema="ss")
        with pytest.raises(TableNotFound, match=r"main\.tt"):
            set_option(catalog, "target_file_size", 1, table="tt")
    with sqlite_place.open(read_only=True) as catalog, pytest.raises(ReadOnlyLake):
        set_option(catalog, "target_file_size", 1)


def test_a_message_is_asked_for(sqlite_place: Place, tmp_path: Path) -> None:
    make(sqlite_place)
    file = tmp_path / "one.parquet"
    pq.write_table(pa.table({"i": pa.array([1], pa.int32())}), file)
    with sqlite_place.open() as catalog:
        set_option(catalog, "require_commit_message", True)
        with pytest.raises(CommitError, match="wants a message"):
            add_data_files(catalog, "t", str(file))
        assert add_data_files(catalog, "t", str(file), message="why").snapshot is not None
