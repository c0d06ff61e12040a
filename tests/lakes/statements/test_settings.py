"""SET and RESET of the settings for retries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import PenstockError, RetriesExhausted
from penstock.lakes.catalog.commits.retry import RetryPolicy
from penstock.lakes.catalog.commits.writes import SnapshotTaken
from penstock.lakes.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake.attach(f"ducklake:sqlite:{tmp_path}/lake.sqlite", data_path=str(tmp_path)) as lake:
        yield lake


def test_the_next_commits_follow_what_is_set(lake: Lake) -> None:
    lake.sql("SET ducklake_max_retry_count = 100; SET SESSION ducklake_retry_wait_ms TO 2.5")
    lake.sql("SET GLOBAL ducklake_retry_backoff = 2")
    assert lake.catalog.retry == RetryPolicy(retries=100, wait=0.0025, backoff=2.0)
    lake.sql("RESET ducklake_max_retry_count")
    assert lake.catalog.retry.retries == RetryPolicy().retries


def test_no_retry_is_one_attempt(lake: Lake) -> None:
    def taken(*_: object) -> None:
        raise SnapshotTaken

    lake.sql("SET ducklake_max_retry_count = 0; CREATE TABLE t (id INTEGER)")
    before = lake.snapshots()
    transaction = lake.transaction()
    transaction.create_schema("s")
    transaction.on_commit(taken)
    with pytest.raises(RetriesExhausted, match=r"in 1 attempt\n") as caught:
        transaction.commit()
    assert "SET ducklake_max_retry_count" in (caught.value.hint or "")
    assert lake.snapshots() == before


@pytest.mark.parametrize("value", ["1.5", "-1", "'a'", "many"])
def test_a_value_that_does_not_fit_is_placed(lake: Lake, value: str) -> None:
    with pytest.raises(PenstockError, match=r"whole number is expected.* at line 1:32"):
        lake.sql(f"SET ducklake_max_retry_count = {value}")


def test_a_backoff_below_one_would_retry_ever_faster(lake: Lake) -> None:
    with pytest.raises(PenstockError, match="from 1 on"):
        lake.sql("SET ducklake_retry_backoff = 0.5")


def test_settings_of_duckdbs_that_are_options_of_the_lake(lake: Lake) -> None:
    with pytest.raises(PenstockError, match="is not supported") as caught:
        lake.sql("SET ducklake_target_file_size = '1MB'")
    assert "CALL lake.set_option('target_file_size', ...)" in (caught.value.hint or "")
    lake.sql("CREATE TABLE t (id INTEGER)")
    lake.sql("CALL lake.set_option('target_file_size', '1MB', table_name = 't')")
    with pytest.raises(PenstockError, match="no parameter"):
        lake.sql("CALL lake.set_option('target_file_size', '1MB', tabel = 't')")
