"""Checkpoints every so many commits, which delta-rs writes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from penstock.delta.checkpoints import is_due as is_due_at
from penstock.delta.checkpoints import storage_options, write_checkpoint
from penstock.delta.log import LogState, load
from penstock.delta.log_files import list_log
from penstock.delta.statistics import parsed
from penstock.lake import storage
from penstock.lake.storage import Storage
from tests.delta.tables import file, land, make, paths
from tests.delta.test_fixtures import FIXTURES


def is_due(state: LogState) -> bool:
    return is_due_at(state.number, state.metadata)


def test_when_one_is_due(tmp_path: Path) -> None:
    state = make(tmp_path, options={"delta.checkpointInterval": "2"})
    assert not is_due(state)
    assert [is_due(land(tmp_path, None, added=(file(f"f{at}"),))) for at in range(3)] == [
        False,
        True,
        False,
    ]


def test_none_is_due_where_another_engine_protects_its_own(tmp_path: Path) -> None:
    protected = {"delta.requireCheckpointProtectionBeforeVersion": "1"}
    make(tmp_path, options={"delta.checkpointInterval": "1", **protected})
    assert not is_due(land(tmp_path, None, added=(file("f"),)))


def test_ten_commits_are_usual(tmp_path: Path) -> None:
    make(tmp_path)
    due = [is_due(land(tmp_path, None, added=(file(f"f{at}"),))) for at in range(10)]
    assert due == [False] * 9 + [True]


def test_a_checkpoint_is_the_version(tmp_path: Path) -> None:
    make(tmp_path, file("a"))
    state = land(tmp_path, None, added=(file("b"),), removed=(file("a"),))
    write_checkpoint(str(tmp_path), state.number)
    (point,) = list_log(str(tmp_path)).checkpoints
    assert point.version == 1
    (tmp_path / "_delta_log" / ("0" * 20 + ".json")).unlink()
    assert paths(load(str(tmp_path))) == ["b"]


def test_one_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    write_checkpoint(str(tmp_path / "none"), make(tmp_path).number)


def test_the_settings_of_a_store() -> None:
    assert storage_options("/data") is None
    own = Storage(access_key="a", secret_key="b", endpoint="http://127.0.0.1:1", path_style=True)
    release = storage.hold("s3://delta-options/t", own)
    try:
        options = storage_options("s3://delta-options/t")
    finally:
        release()
    assert options == {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_REGION": "us-east-1",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
        "AWS_ALLOW_HTTP": "true",
    }


@pytest.mark.parametrize("name", ["partitioned", "vectors", "deletion_vectors"])
def test_files_of_a_checkpoint_are_those_of_the_commits(tmp_path: Path, name: str) -> None:
    uri = str(tmp_path / name)
    shutil.copytree(FIXTURES / "others" / name, uri)
    before = load(uri)
    assert before is not None
    for checkpoint in Path(uri, "_delta_log").glob("*checkpoint*"):
        checkpoint.unlink()
    DeltaTable(uri).create_checkpoint()
    for commit in Path(uri, "_delta_log").glob("*.json"):
        commit.unlink()
    after = load(uri)
    assert after is not None
    assert (after.number, after.metadata) == (before.number, before.metadata)
    said = [
        {key: (file.values, file.size, file.modified, file.vector) for key, file in files.items()}
        for files in (before.by_key, after.by_key)
    ]
    assert said[0] == said[1]
    assert any(file.vector for file in after.by_key.values()) == ("vectors" in name)
    rows = [parsed(file.stats)["numRecords"] for file in after.by_key.values()]
    assert rows == [parsed(before.by_key[key].stats)["numRecords"] for key in after.by_key]
