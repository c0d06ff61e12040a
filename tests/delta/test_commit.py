"""A commit lands where nothing excludes it, and says so where it does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from penstock.delta import commit as checkpoints
from penstock.delta import commit as commits
from penstock.delta.commit import (
    BYTES,
    DELETED,
    FILES,
    INSERTED,
    UPDATED,
    WRITTEN,
    name_metrics,
    name_parameters,
    storage_options,
    user_metadata,
    write_checkpoint,
)
from penstock.delta.commit import is_due as is_due_at
from penstock.delta.log import LogState, commits_of, load, read_commit
from penstock.delta.log_files import commit_path, list_log, put_if_absent
from penstock.delta.statistics import parsed
from penstock.errors import CommitConflict, CommitUnknown, UnsupportedFeature
from penstock.lakes import storage
from penstock.lakes.storage import Storage
from penstock.sql.predicate import of_where
from tests.delta.tables import EVERYTHING, file, land, make, metadata, paths
from tests.delta.test_fixtures import FIXTURES

UNDER_10, FROM_10 = of_where("id < 10"), of_where("id >= 10")


def test_blind_appends_land_on_newer_versions(tmp_path: Path) -> None:
    base = make(tmp_path, file("a"))
    land(tmp_path, base, added=(file("b"),))
    after = land(tmp_path, base, added=(file("c"),))
    assert (after.number, paths(after)) == (2, ["a", "b", "c"])
    assert commits_of(str(tmp_path))[2].info["isBlindAppend"] is True


def test_two_that_make_the_table(tmp_path: Path) -> None:
    make(tmp_path, file("a"))
    with pytest.raises(CommitConflict, match="another commit has made it meanwhile"):
        make(tmp_path, file("b"))


def test_two_that_replace_one_file(tmp_path: Path) -> None:
    base = make(tmp_path, file("a"))
    land(tmp_path, base, removed=(file("a"),), added=(file("b"),))
    with pytest.raises(CommitConflict, match="version 1 no longer has a"):
        land(tmp_path, base, removed=(file("a"),), added=(file("c"),))
    assert paths(load(str(tmp_path))) == ["b"]


def test_rows_that_others_added_count_where_they_were_read(tmp_path: Path) -> None:
    base = make(tmp_path, file("a"))
    land(tmp_path, base, added=(file("b", low=20, high=30),))
    land(tmp_path, base, removed=(file("a"),), reads=(UNDER_10,))
    with pytest.raises(CommitConflict, match="version 1 added rows that this commit depends on"):
        land(tmp_path, base, added=(file("c"),), reads=(FROM_10,))


def test_rows_that_others_removed_count_where_they_were_read(tmp_path: Path) -> None:
    """A MERGE that inserts what has no partner depends on the partners that it saw."""
    base = make(tmp_path, file("a"), file("b", low=20, high=30))
    land(tmp_path, base, removed=(file("b", low=20, high=30),))
    land(tmp_path, base, added=(file("c"),), reads=(UNDER_10,))
    with pytest.raises(CommitConflict, match="version 1 removed or changed rows that this commit"):
        land(tmp_path, base, added=(file("d", low=25, high=25),), reads=(FROM_10,))
    base = land(tmp_path, base, added=(file("g"),))
    compacted = land(tmp_path, base, removed=(file("c"),), added=(file("e"),))
    log = Path(commit_path(str(tmp_path), compacted.number))
    log.write_text(log.read_text().replace('"dataChange":true', '"dataChange":false'))
    land(tmp_path, base, added=(file("f"),), reads=(UNDER_10,))  # OPTIMIZE leaves the rows


def test_another_definition_excludes_it(tmp_path: Path) -> None:
    base = make(tmp_path, file("a"))
    land(tmp_path, base, metadata=metadata(description="new"))
    with pytest.raises(CommitConflict, match="version 1 changed what it is"):
        land(tmp_path, base, added=(file("b"),))


def test_a_table_that_was_made_anew_meanwhile(tmp_path: Path) -> None:
    """The next version of the table before would leave a gap in the log."""
    base = land(tmp_path, make(tmp_path, file("a")), added=(file("b"),))
    shutil.rmtree(tmp_path / "_delta_log")
    with pytest.raises(CommitConflict, match="replaced the table"):
        land(tmp_path, base, added=(file("c"),))
    make(tmp_path, file("d"))
    with pytest.raises(CommitConflict, match="replaced the table"):
        land(tmp_path, base, added=(file("c"),))
    assert paths(load(str(tmp_path))) == ["d"]


@pytest.mark.parametrize("more", [0, 2])
def test_another_table_with_as_many_versions(tmp_path: Path, more: int) -> None:
    base = land(tmp_path, make(tmp_path, file("a")), added=(file("b"),))
    shutil.rmtree(tmp_path / "_delta_log")
    state = make(tmp_path, file("d"), id="t2")
    for number in range(1 + more):
        state = land(tmp_path, state, added=(file(f"e{number}"),))
    with pytest.raises(CommitConflict, match="replaced the table"):
        land(tmp_path, base, added=(file("c"),))
    assert load(str(tmp_path)) == state


def test_a_table_whose_id_changed_is_the_same(tmp_path: Path) -> None:
    """As by delta-rs' creation over a table, which keeps the log."""
    base = land(tmp_path, make(tmp_path, file("a")), metadata=metadata(id="t2"))
    assert land(tmp_path, base, added=(file("b"),)).number == 2


def test_a_log_without_the_next_version(tmp_path: Path) -> None:
    """Its first files were cleaned up since, behind a checkpoint."""
    base = make(tmp_path, file("a"))
    for number in range(3):
        land(tmp_path, None, added=(file(f"b{number}"),))
    checkpoints.write_checkpoint(str(tmp_path), 2)
    for number in (0, 1):
        Path(commit_path(str(tmp_path), number)).unlink()
    with pytest.raises(CommitConflict, match="has version 3, but not version 1"):
        land(tmp_path, base, added=(file("c"),))
    assert list_log(str(tmp_path)).commits == (2, 3)


def test_rules_of_the_table_are_kept(tmp_path: Path) -> None:
    base = make(tmp_path, file("a"), options={"delta.appendOnly": "true"})
    land(tmp_path, base, added=(file("b"),))
    with pytest.raises(UnsupportedFeature, match="appendOnly"):
        land(tmp_path, base, removed=(file("a"),))


def test_what_a_commit_says_of_itself(tmp_path: Path) -> None:
    make(tmp_path)
    land(tmp_path, None, added=(file("b"),))
    info = commits_of(str(tmp_path))[1].info
    assert (info["readVersion"], info["operation"]) == (0, "WRITE")
    assert user_metadata({"userMetadata": '{"run": "7"}'}) == {"run": "7"}
    assert user_metadata({"userMetadata": "plain"}) == {"message": "plain"}
    assert user_metadata({"userMetadata": "1"}) == {"message": "1"}
    assert user_metadata({}) == {}


Put = Callable[[str, bytes], bool]


@pytest.mark.parametrize("landed", [True, False])
def test_an_error_after_the_file_was_made_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    """The file of the version tells whose commit it is."""
    base = make(tmp_path, file("a"))
    put: Put = put_if_absent
    failed: list[str] = []

    def fails(path: str, content: bytes) -> bool:
        if failed:
            return put(path, content)
        failed.append(path)
        others = content.replace(b'"txnId":"', b'"txnId":"x')
        put(path, content if landed else others)
        raise OSError("the line is cut")

    monkeypatch.setattr(commits, "put_if_absent", fails)
    after = land(tmp_path, base, added=(file("b"),))
    assert after.number == (1 if landed else 2)


def test_a_repeated_request_finds_its_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = make(tmp_path, file("a"))
    put: Put = put_if_absent
    monkeypatch.setattr(commits, "put_if_absent", lambda p, c: put(p, c) and False)
    assert land(tmp_path, base, added=(file("b"),)).number == 1


@pytest.mark.parametrize("is_new", [True, False])
def test_its_own_file_that_the_store_shows_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    """A repeated request meets the first one, which is still under way."""
    base = None if is_new else make(tmp_path, file("a"))
    put: Put = put_if_absent
    hidden: list[int] = []

    def put_late(path: str, content: bytes) -> bool:
        assert put(path, content)
        hidden.append(0 if base is None else 1)
        return False

    def read_late(uri: str, version: int) -> object:
        return None if version in hidden and hidden.pop() == version else read_commit(uri, version)

    monkeypatch.setattr(commits, "put_if_absent", put_late)
    monkeypatch.setattr(commits, "read_commit", read_late)
    if base is None:
        state = make(tmp_path, file("b"))
    else:
        state = land(tmp_path, base, added=(file("b"),), reads=(EVERYTHING,))
    assert (state.number, hidden) == (0 if is_new else 1, [])
    assert paths(state) == (["b"] if is_new else ["a", "b"])


def test_an_outcome_that_cannot_be_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = make(tmp_path, file("a"))

    def fails(path: str, content: bytes) -> bool:
        Path(path).write_bytes(b"{")  # what is there cannot be read
        raise OSError("the line is cut")

    monkeypatch.setattr(commits, "put_if_absent", fails)
    with pytest.raises(CommitUnknown, match="whether version 1 of the Delta table"):
        land(tmp_path, base, added=(file("b"),))


def test_a_full_disk_is_no_unknown_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = make(tmp_path, file("a"))

    def fails(path: str, content: bytes) -> bool:
        raise OSError("No space left on device")

    monkeypatch.setattr(commits, "put_if_absent", fails)
    with pytest.raises(OSError, match="No space left"):
        land(tmp_path, base, added=(file("b"),))


def test_actions_are_in_the_log(tmp_path: Path) -> None:
    make(tmp_path, file("a"))
    land(tmp_path, None, removed=(file("a"),), added=(file("b"),), reads=(EVERYTHING,))
    text = Path(commit_path(str(tmp_path), 1)).read_text()
    kinds = [next(iter(json.loads(line))) for line in text.splitlines()]
    assert kinds == ["commitInfo", "remove", "add"]


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


COUNTS = {INSERTED: 1, UPDATED: 2, DELETED: 3, WRITTEN: 4, FILES: 5, BYTES: 6}


@pytest.mark.parametrize(
    ("operation", "metrics"),
    [
        ("WRITE", {"numOutputRows": "4", "numFiles": "5", "numOutputBytes": "6"}),
        (
            "CREATE TABLE AS SELECT",
            {"numOutputRows": "4", "numFiles": "5", "numOutputBytes": "6"},
        ),
        ("UPDATE", {"numUpdatedRows": "2"}),
        ("DELETE", {"numDeletedRows": "3"}),
        (
            "MERGE",
            {
                "numTargetRowsInserted": "1",
                "numTargetRowsUpdated": "2",
                "numTargetRowsDeleted": "3",
                "numOutputRows": "4",
            },
        ),
    ],
)
def test_metrics_have_the_names_of_deltas_writers(operation: str, metrics: dict[str, str]) -> None:
    assert name_metrics(operation, COUNTS) == metrics


def test_what_is_not_counted_is_left_out() -> None:
    assert name_metrics("MERGE", {WRITTEN: 0}) == {"numOutputRows": "0"}


@pytest.mark.parametrize(
    ("operation", "is_overwrite", "parameters"),
    [
        ("WRITE", False, {"mode": "Append", "partitionBy": '["day"]'}),
        ("WRITE", True, {"mode": "Overwrite", "partitionBy": '["day"]'}),
        ("REPLACE TABLE AS SELECT", True, {"partitionBy": '["day"]'}),
        ("SET TBLPROPERTIES", False, {}),
        ("MERGE", True, {}),
    ],
)
def test_parameters(operation: str, is_overwrite: bool, parameters: dict[str, str]) -> None:
    assert name_parameters(operation, ["day"], is_overwrite=is_overwrite) == parameters
