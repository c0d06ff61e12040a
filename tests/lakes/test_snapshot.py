"""Which snapshot, as callers say it; and what a closed lake or project answers. No Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ArgumentError, LakeClosed
from penstock.lakes.lake import Lake
from penstock.lakes.snapshot import LATEST, At
from penstock.project.project import Project
from tests.engine.toy import write_project

NINE = datetime(2026, 5, 16, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("2026-05-16 09:30", NINE),
        ("2026-05-16T11:30:00+02:00", NINE),
        ("2026-05-16T09:30:00Z", NINE),
        (NINE.replace(tzinfo=None), NINE),
        (NINE, NINE),
        ("2026-05-16", datetime(2026, 5, 16, tzinfo=UTC)),
        (date(2026, 5, 16), datetime(2026, 5, 16, tzinfo=UTC)),
    ],
)
def test_a_time_may_be_a_text(timestamp: Any, expected: datetime) -> None:
    assert At.of(None, timestamp) == At(timestamp=expected)


def test_a_version_or_the_latest() -> None:
    assert (At.of(3, None), At.of(None, None)) == (At(3), LATEST)


@pytest.mark.parametrize(
    ("version", "timestamp", "said"),
    [
        (3, NINE, "by a version or by a time, not by both"),
        (None, "yesterday", "'yesterday' is not a time"),
        ("three", None, "'three' is not a snapshot's version"),
    ],
)
def test_what_names_no_snapshot_is_refused(version: Any, timestamp: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        At.of(version, timestamp)


def test_methods_take_them_so(tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(tmp_path / "data")) as lake:
        lake.sql("CREATE TABLE t (i INT)")
        made = lake.snapshots()[-1].time
        assert lake.table("t").list_files(timestamp=str(made)) == []
        for read in (lake.table("t").to_df, lake.table("t").list_files):
            with pytest.raises(ArgumentError, match="not by both"):
                read(version=1, timestamp=made)
    with Lake.attach(uri, snapshot_time=str(made)) as then:
        assert [table.name for table in then.tables()] == ["t"]
    with pytest.raises(ArgumentError, match="not by both"):
        Lake.attach(uri, snapshot_time=made, snapshot_version=1)


def test_a_closed_lake_has_one_answer(tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    lake = Lake.attach(uri, data_path=str(tmp_path / "data"))
    lake.sql("CREATE TABLE t (i INT)")
    table, open_transaction = lake.table("t"), lake.transaction()
    open_transaction.rollback()
    lake.close()
    lake.close()
    calls: list[Callable[[], object]] = [
        lake.snapshots,
        lake.tables,
        lake.options,
        lake.transaction,
        lambda: lake.sql("SELECT 1"),
        lambda: lake.set_option("parquet_compression", "zstd"),
        lambda: lake.expire_snapshots(versions=[0]),
        lambda: table.append([{"i": 1}]),
        table.exists,
        table.to_df,
    ]
    for call in calls:
        with pytest.raises(LakeClosed, match="is closed"):
            call()


def test_a_closed_project_has_one_answer(tmp_path: Path) -> None:
    script = "-- pipeline\n-- materialize ducklake://main/t\nSELECT 1 AS a"
    with Project.load(write_project(tmp_path / "p", {"models/t": script})) as project:
        project.lake("main").close()
        assert project.lake("main").snapshots()  # what the project lends it can open again
    for call in (project.check, project.plan, project.run, project.status, project.snapshots):
        with pytest.raises(LakeClosed, match="is closed"):
            call()
    for ask in (project.show, project.lake, project.sql, project.query, project.explain):
        with pytest.raises(LakeClosed, match="is closed"):
            ask("t")
    for see in (project.preview, project.preview_rows, project.read):
        with pytest.raises(LakeClosed, match="is closed"):
            see("t")
