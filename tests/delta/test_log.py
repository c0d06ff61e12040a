"""A log is replayed, from its checkpoints on, as delta-rs replays it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock.delta.log import (
    advance,
    commits_of,
    key_of,
    load,
    read_commit,
    version_at,
)
from penstock.delta.log_files import commit_path
from penstock.delta.schema import table_schema
from penstock.errors import DataFileCorrupt, SnapshotNotFound
from tests.delta.tables import file, land, make, paths


def test_no_table(tmp_path: Path) -> None:
    assert load(str(tmp_path)) is None


def test_versions(tmp_path: Path) -> None:
    first = make(tmp_path, file("a"), file("b"))
    land(tmp_path, first, added=(file("c"),), removed=(file("a"),))
    assert paths(load(str(tmp_path), 0)) == ["a", "b"]
    assert paths(load(str(tmp_path))) == ["b", "c"]
    assert paths(advance(str(tmp_path), first)) == ["b", "c"]


def test_a_version_that_is_not_there(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(SnapshotNotFound, match="has no version 4: its log has versions 0 to 0"):
        load(str(tmp_path), 4)


def test_a_log_that_is_cut_short(tmp_path: Path) -> None:
    make(tmp_path)
    path = Path(commit_path(str(tmp_path), 0))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataFileCorrupt, match="cannot be read"):
        load(str(tmp_path))


def test_a_log_with_a_gap(tmp_path: Path) -> None:
    for _ in range(3):
        write_deltalake(tmp_path, pa.table({"id": [1]}), mode="append")
    Path(commit_path(str(tmp_path), 1)).unlink()
    with pytest.raises(SnapshotNotFound, match="its log lacks the file of version 1"):
        load(str(tmp_path))
    with pytest.raises(SnapshotNotFound, match="its log has versions 0 to 2"):
        load(str(tmp_path), 3)


PROTOCOL = '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}'
NO_SCHEMA = '{"metaData":{"id":"x","format":{"provider":"parquet"},"partitionColumns":[]}}'


def write_log(uri: Path, *lines: str) -> str:
    path = Path(commit_path(str(uri), 0))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))
    return str(uri)


def test_metadata_without_a_schema(tmp_path: Path) -> None:
    """Databricks' Delta Live Tables begin so: the columns come with the first rows."""
    state = load(write_log(tmp_path, PROTOCOL, NO_SCHEMA))
    assert state is not None
    assert table_schema(state.metadata.schema_text).columns == ()
    add = '{"add":{"path":"a","size":1,"modificationTime":1,"dataChange":true}}'
    with pytest.raises(DataFileCorrupt, match="its metadata has no columns"):
        load(write_log(tmp_path, PROTOCOL, NO_SCHEMA, add))


@pytest.mark.parametrize(
    "line",
    [
        '{"add":{"path":"a"}}',
        '{"add":[1]}',
        '{"add":{"path":"a","size":1,"modificationTime":1,"deletionVector":{"storageType":"u"}}}',
        '{"protocol":{}}',
        '{"metaData":{"schemaString":"{}"}}',
        "[1]",
        "7",
    ],
)
def test_actions_that_are_not_as_delta_has_them(tmp_path: Path, line: str) -> None:
    with pytest.raises(DataFileCorrupt, match="cannot be read"):
        load(write_log(tmp_path, PROTOCOL, NO_SCHEMA, line))


def written(uri: Path, versions: int) -> DeltaTable:
    """A table of delta-rs with a checkpoint of every version but the first."""
    for at in range(versions):
        rows = pa.table({"id": [at, at + 1], "p": ["x", None]})
        write_deltalake(uri, rows, mode="append", partition_by=["p"])
        table = DeltaTable(uri)
        if at:
            table.create_checkpoint()
    return DeltaTable(uri)


def test_checkpoints_of_delta_rs(tmp_path: Path) -> None:
    table = written(tmp_path, 4)
    table.delete("id = 1 AND p = 'x'")
    for name in ("0" * 19 + "0.json", "0" * 19 + "1.json"):
        (tmp_path / "_delta_log" / name).unlink()
    state = load(str(tmp_path))
    assert state is not None
    expected = sorted(pa.table(DeltaTable(tmp_path).get_add_actions())["path"].to_pylist())
    assert paths(state) == expected
    assert {dict(f.values)["p"] for f in state.by_key.values()} == {"x", None}
    with pytest.raises(SnapshotNotFound, match="versions 1 to 4"):
        load(str(tmp_path), 0)


def test_a_log_that_begins_with_a_checkpoint(tmp_path: Path) -> None:
    make(tmp_path, file("a"))
    state = land(tmp_path, None, added=(file("b"),))
    DeltaTable(tmp_path).create_checkpoint()
    (tmp_path / "_delta_log" / ("0" * 20 + ".json")).unlink()
    again = load(str(tmp_path))
    assert again is not None
    assert again.metadata == state.metadata


def test_history(tmp_path: Path) -> None:
    make(tmp_path, file("a"))
    land(tmp_path, None, added=(file("b"),), operation="WRITE")
    first, second = commits_of(str(tmp_path))
    assert (first.version, first.changes_rows, second.operation) == (0, True, "WRITE")
    assert first.time <= second.time
    assert read_commit(str(tmp_path), 2) is None


def test_a_version_by_time(tmp_path: Path) -> None:
    make(tmp_path)
    land(tmp_path, None, added=(file("b"),))
    first, second = (commit.time for commit in commits_of(str(tmp_path)))
    assert version_at(str(tmp_path), second + dt.timedelta(hours=1)) == 1
    assert version_at(str(tmp_path), first + (second - first) / 2) == 0
    with pytest.raises(SnapshotNotFound, match="has no version of"):
        version_at(str(tmp_path), first - dt.timedelta(hours=1))


def test_a_file_with_another_vector_is_another() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    assert key_of({"path": "a"}) == ("a", None)
    assert key_of({"path": "a", "deletionVector": {**vector, "offset": 4}}) == ("a", "ux@4")
