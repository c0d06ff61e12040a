"""Versions that others made, as snapshots of an index: read without Spark. Tables are delta-rs'.

Tests ``destinations/delta/discovery.py``, ``destinations/delta/versions.py`` and
``destinations/delta/versions.py``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock.destinations.delta import versions
from penstock.destinations.delta.lake import DeltaLake
from penstock.errors import CommitConflict, DataPathError, LakeError, UnsupportedFeature
from penstock.lakes.catalog.files.registration import load_mappings
from penstock.lakes.format.changes import ChangeSet, TableChange
from tests import postgres


@pytest.fixture
def root(tmp_path: Path) -> Iterator[DeltaLake]:
    with opened(tmp_path) as lake:
        yield lake


def opened(tmp_path: Path, index: str = "index") -> DeltaLake:
    uri = f"ducklake:sqlite:{tmp_path / index}.sqlite"
    return DeltaLake.of_root(f"{tmp_path}/root", uri, name="sales")


def write(tmp_path: Path, ids: list[int], **options: Any) -> str:
    place = tmp_path / "root/main/t"
    place.mkdir(parents=True, exist_ok=True)
    days = [f"2026-01-0{1 + id_ % 2}" for id_ in ids]
    rows = pa.table({"id": pa.array(ids, pa.int64()), "day": days})
    write_deltalake(str(place), rows, **options)
    return str(place)


def counts(lake: DeltaLake) -> list[int | None]:
    return [lake.catalog.count_rows("main", "t", each.id) for each in lake.snapshots()]


def test_versions_of_others_are_snapshots(tmp_path: Path, root: DeltaLake) -> None:
    assert lake_tables(root) == []
    place = write(tmp_path, [1, 2, 3], partition_by=["day"])
    root.refresh()
    write(tmp_path, [4], mode="append")
    DeltaTable(place).delete("id = 1")
    root.refresh()
    assert lake_tables(root) == ["main.t"]
    assert counts(root) == [None, 3, 4, 3]
    table = root.catalog.table("main", "t", 3)
    assert [each.column for each in table.partition_by] == ["day"]
    assert root.catalog.changed_since(table, 2)
    assert not root.catalog.changed_since(table, 2, ("day", "2026-01-01"))
    assert root.snapshots()[-1].message == "DELETE"
    assert root.snapshots()[1].time < root.snapshots()[2].time


def lake_tables(lake: DeltaLake) -> list[str]:
    return [each.qualified_name for each in lake.tables()]


def test_a_compaction_changes_nothing(tmp_path: Path, root: DeltaLake) -> None:
    place = write(tmp_path, [1])
    write(tmp_path, [2], mode="append")
    root.refresh()
    before = root.catalog.latest()
    DeltaTable(place).optimize.compact()
    root.refresh()
    assert counts(root) == [None, 1, 2, 2]
    assert (root.snapshots()[-1].changes or "").startswith("rewrite_delete:")
    assert len(root.list_files("main.t")) == 1
    assert before.id < root.catalog.latest().id


def test_a_table_whose_directory_was_removed(tmp_path: Path, root: DeltaLake) -> None:
    place = write(tmp_path, [1, 2])
    write(tmp_path, [3], mode="append")
    root.refresh()
    shutil.move(place, tmp_path / "aside")
    root.refresh()
    assert lake_tables(root) == []
    write(tmp_path, [4])
    root.refresh()
    assert counts(root) == [None, 2, 3, None, 1]
    shutil.rmtree(tmp_path / "root/main")
    root.refresh()  # what is below the root may not be there for a moment
    assert lake_tables(root) == ["main.t"]
    change = TableChange("main", "t", table_id=root.table("main.t").info().id)
    with pytest.raises(DataPathError, match="the log of the Delta table"):
        root.catalog.commit(root.catalog.latest(), ChangeSet(tables=(change,)))
    assert not (tmp_path / "root/main").exists()


@pytest.mark.parametrize("commits", [1, 2, 3])
def test_a_table_that_was_made_anew(tmp_path: Path, root: DeltaLake, commits: int) -> None:
    """Its log has fewer versions than the index knows, as many, or more."""
    place = write(tmp_path, [1, 2])
    write(tmp_path, [3], mode="append")
    root.refresh()
    shutil.rmtree(place)
    write(tmp_path, [4])
    for number in range(1, commits):
        write(tmp_path, [4 + number], mode="append")
    with pytest.raises(CommitConflict, match="another writer has made"):
        root.table("main.t").append([{"id": 7, "day": "x"}])
    assert DeltaTable(place).version() == commits - 1
    root.table("main.t").append([{"id": 7, "day": "x"}])
    assert counts(root) == [None, 2, 3, None, *range(1, commits + 2)]
    assert len(DeltaTable(place).file_uris()) == commits + 1
    with opened(tmp_path, "new") as other:
        assert counts(other) == [None, *range(1, commits + 2)]
        assert len(other.list_files("main.t")) == len(root.list_files("main.t")) == commits + 1


def test_columns_are_added_and_replaced(tmp_path: Path, root: DeltaLake) -> None:
    place = write(tmp_path, [1])
    more = pa.table({"id": [2], "day": ["x"], "size": [1.5]})
    write_deltalake(place, more, mode="append", schema_mode="merge")
    root.refresh()
    assert root.table("main.t").info().schema.names == ("id", "day", "size")
    write_deltalake(place, pa.table({"id": ["a"]}), mode="overwrite", schema_mode="overwrite")
    root.refresh()
    assert root.table("main.t").info().schema.names == ("id",)
    assert counts(root) == [None, 1, 2, 1]


def test_a_log_that_begins_with_a_checkpoint(tmp_path: Path) -> None:
    place = write(tmp_path, [1, 2], partition_by=["day"])
    write(tmp_path, [3], mode="append")
    DeltaTable(place).create_checkpoint()
    write(tmp_path, [4], mode="append")
    (Path(place) / "_delta_log" / f"{0:020}.json").unlink()
    with opened(tmp_path) as lake:
        assert counts(lake) == [None, 3, 4]
        assert [version for version, _ in versions.new_versions(f"{place}/", -1)] == [1, 2]
    (Path(place) / "_delta_log" / f"{1:020}.checkpoint.parquet").unlink()
    with opened(tmp_path, "again") as lake, pytest.raises(UnsupportedFeature, match="neither"):
        lake.table("main.t").info()


def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, [1])
    place = tmp_path / "root/main/mapped"
    place.mkdir()
    mode = {"delta.columnMapping.mode": "id"}
    first = Path(tmp_path / "root/main/t/_delta_log") / f"{0:020}.json"
    text = first.read_text().replace(
        '"configuration":{}', f'"configuration":{mode}'.replace("'", '"')
    )
    versions.add_version(f"{place}/", 0, [])
    (place / "_delta_log" / f"{0:020}.json").write_text(text)
    with opened(tmp_path) as lake:
        assert counts(lake) == [None, 1]
        with pytest.raises(UnsupportedFeature, match="column mapping by id"):
            lake.table("main.mapped").info()


PROTOCOL = '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}'
METADATA = '{"metaData":{"id":"x","format":{"provider":"parquet"},"partitionColumns":[]%s}}'


@pytest.mark.parametrize(
    "lines",
    [
        [PROTOCOL, METADATA % ',"schemaString":"{}"'],
        [PROTOCOL, METADATA % "", '{"add":{"path":"a","size":1,"modificationTime":1}}'],
        [PROTOCOL, METADATA % ',"schemaString":null', '{"add":{"path":"a"}}'],
        ['{"protocol":{}}', METADATA % ""],
        ["[1, 2]"],
        ['{"commitInfo":7}'],
        ["no JSON"],
    ],
)
def test_an_error_of_one_table_stops_no_other(tmp_path: Path, lines: list[str]) -> None:
    write(tmp_path, [1])
    broken = tmp_path / "root/main/broken/_delta_log"
    broken.mkdir(parents=True)
    (broken / f"{0:020}.json").write_text("\n".join(lines))
    with opened(tmp_path) as lake:
        assert counts(lake) == [None, 1]
        with pytest.raises(LakeError):
            lake.table("main.broken").info()


def test_a_schema_that_comes_with_the_first_rows(tmp_path: Path) -> None:
    """As Databricks' Delta Live Tables have it: version 0 has metadata without columns."""
    place = write(tmp_path, [1, 2])
    log_folder = Path(place) / "_delta_log"
    (log_folder / f"{0:020}.json").rename(log_folder / f"{1:020}.json")
    (log_folder / f"{0:020}.json").write_text(f"{PROTOCOL}\n{METADATA % ''}")
    with opened(tmp_path) as lake:
        assert counts(lake) == [None, 2]
        assert lake.table("main.t").info().schema.names == ("id", "day")


def test_partitions_by_texts_that_depend_on_the_writer(tmp_path: Path, root: DeltaLake) -> None:
    place = tmp_path / "root/main/t"
    place.mkdir(parents=True)
    at = pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    write_deltalake(str(place), pa.table({"id": [1], "at": at}), partition_by=["at"])
    root.refresh()
    with pytest.raises(UnsupportedFeature, match="partitioned by at, which is timestamptz"):
        root.table("main.t").info()


def test_values_of_partitions_are_those_of_the_log(tmp_path: Path, root: DeltaLake) -> None:
    """A path may say another value than the log, or none: then the log's is kept."""
    write(tmp_path, [1, 2], partition_by=["day"])
    moved = tmp_path / "root/main/t/abc"
    (tmp_path / "root/main/t/day=2026-01-01").rename(moved)
    (commit,) = (tmp_path / "root/main/t/_delta_log").glob("*.json")
    commit.write_text(commit.read_text().replace("day=2026-01-01/", "abc/"))
    root.refresh()
    with root.catalog.reading() as connection:
        mappings = load_mappings(connection, root.catalog.table("main", "t", 1).id)
    names = sorted(name for each in mappings.values() for name in each.partitions.values())
    assert names == ["=2026-01-01", "day"]


@pytest.mark.postgres
def test_an_index_in_postgresql(tmp_path: Path) -> None:
    if (reason := postgres.why_not()) is not None:
        pytest.skip(reason)
    with postgres.server() as conninfo:
        uri = f"ducklake:postgres:{conninfo} dbname=postgres"
        for number in (1, 2):  # made, and opened again
            write(tmp_path, [number], mode="append")
            schema = "penstock_delta_sales"
            with DeltaLake.of_root(f"{tmp_path}/root", uri, metadata_schema=schema) as lake:
                assert counts(lake) == [None, *range(1, number + 1)]
        with psycopg.connect(f"{conninfo} dbname=postgres") as connection:
            found = connection.execute("SELECT table_schema FROM information_schema.tables")
            schemas = {name for (name,) in found} - {"information_schema", "pg_catalog"}
        assert schemas == {schema}


def test_files_are_not_removed(root: DeltaLake) -> None:
    for call in (root.cleanup_old_files, root.delete_orphaned_files):
        with pytest.raises(UnsupportedFeature, match="VACUUM"):
            call()
