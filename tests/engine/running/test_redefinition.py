"""A definition that does not fit the rows there are is refused; a full refresh makes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ArgumentError, DataFileMissing, DefinitionChanged
from penstock.events import Notice
from penstock.project.project import Project
from tests.engine.conftest import Make
from tests.engine.toy import rows, step

pytestmark = pytest.mark.spark

DAILY = """
    -- pipeline
    -- partitioned daily
    -- materialize ducklake://main/t
    -- data_test not_null id
    SELECT id, '{partition}' AS made FROM range(2)
"""
MONTHLY = DAILY.replace("daily", "monthly")
WHOLE = DAILY.replace("-- partitioned daily\n", "\n").replace("'{partition}'", "'all'")
COUNT = "SELECT made, count(*) AS n FROM t GROUP BY made ORDER BY made"


def whole(line: str, query: str) -> dict[str, str]:
    return {"models/t": f"-- pipeline\n-- materialize ducklake://main/t {line}\n{query}"}


def error_of(project: Project, **arguments: object) -> Exception | None:
    return step(project.run(**arguments), "t").error  # type: ignore[arg-type]


def notices(events: list[object]) -> str:
    return "\n".join(event.message for event in events if isinstance(event, Notice))


@pytest.fixture
def two_days(make: Make) -> Make:
    project = make({"models/t": DAILY})
    for day in ("2026-01-01", "2026-01-02"):
        assert project.run(day).state == "done"
    return make


@pytest.mark.parametrize(
    ("script", "partition"),
    [
        (MONTHLY, "2026-01"),
        (WHOLE, None),
        (DAILY.replace("daily", 'daily tz="Asia/Tokyo"'), "2026-01-03"),
        (DAILY.replace("daily", 'dynamic key="$.k"'), "eu"),
    ],
    ids=["monthly", "whole", "tz", "dynamic"],
)
def test_another_kind_of_slice_is_refused_by_name(
    two_days: Make, script: str, partition: str | None
) -> None:
    project = two_days({"models/t": script})
    error = error_of(project, partition=partition)
    assert isinstance(error, DefinitionChanged)
    assert "2 slices of `partitioned daily` (2026-01-01, 2026-01-02)" in error.message
    assert "penstock run t --full-refresh" in str(error)
    assert "penstock drop t" in str(error)
    assert rows(project, COUNT) == [("2026-01-01", 2), ("2026-01-02", 2)]


def test_rows_of_a_whole_table_are_no_slices(make: Make) -> None:
    make({"models/t": WHOLE}).run()
    project = make({"models/t": DAILY})
    error = error_of(project, partition="2026-01-01")
    assert isinstance(error, DefinitionChanged)
    assert "holds 2 rows, and the model is now `partitioned daily`" in error.message


def test_a_table_without_rows_takes_another_kind_of_slice(make: Make) -> None:
    make({"models/t": DAILY.replace("range(2)", "range(0)")}).run("2026-01-01")
    project = make({"models/t": MONTHLY})
    assert project.run("2026-01").state == "done"
    assert [slice_.slice for slice_ in project.status("t")[0].slices] == ["2026-01"]


def test_a_full_refresh_makes_the_table_anew_and_says_so(two_days: Make) -> None:
    project = two_days({"models/t": MONTHLY})
    events: list[object] = []
    result = project.run("2026-01", ["t"], full_refresh=True, on_event=events.append)
    assert result.state == "done"
    assert "full refresh drops every slice and makes this run's only" in notices(events)
    assert "2 slices of `partitioned daily` (2026-01-01, 2026-01-02)" in notices(events)
    assert rows(project, COUNT) == [("2026-01", 2)]
    assert [slice_.slice for slice_ in project.status("t")[0].slices] == ["2026-01"]
    assert len(rows(project, "SELECT * FROM t AT (VERSION => 2)")) == 4
    assert step(project.run("2026-01"), "t").state == "unchanged"


def test_a_full_refresh_whose_tests_fail_leaves_all_as_it_was(two_days: Make) -> None:
    project = two_days({"models/t": MONTHLY.replace("SELECT id", "SELECT nullif(id, 1) AS id")})
    assert project.run("2026-01", ["t"], full_refresh=True).state == "failed"
    assert rows(project, COUNT) == [("2026-01-01", 2), ("2026-01-02", 2)]
    assert {"2026-01-01", "2026-01-02"} < {slice_.slice for slice_ in project.status("t")[0].slices}


def test_a_full_refresh_is_of_named_models(two_days: Make) -> None:
    with pytest.raises(ArgumentError, match="for the models that you name"):
        two_days({"models/t": DAILY}).plan("2026-01-01", full_refresh=True)


def test_replace_does_not_drop_what_was_appended(make: Make) -> None:
    make(whole("append", "SELECT 1 AS id")).run()
    project = make(whole("", "SELECT 2 AS id"))
    error = error_of(project)
    assert isinstance(error, DefinitionChanged)
    assert "holds 1 row made by append, and replace would leave only" in error.message
    assert rows(project, "SELECT id FROM t") == [(1,)]
    project.run(select=["t"], full_refresh=True)
    assert rows(project, "SELECT id FROM t") == [(2,)]


def test_append_to_what_was_replaced_is_said(make: Make) -> None:
    make(whole("", "SELECT 1 AS id")).run()
    events: list[object] = []
    project = make(whole("append", "SELECT 2 AS id"))
    assert project.run(on_event=events.append).state == "done"
    assert "the SELECT's rows are added to 1 row made by replace" in notices(events)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("SELECT 1 AS n", "has no column id, so none of the rows there has the key id"),
        ("SELECT 1 AS id UNION ALL SELECT 1", "holds 1 key shared by several rows"),
        ("SELECT CAST(NULL AS INT) AS id", "holds 1 row with NULL in it"),
    ],
)
def test_a_key_that_the_rows_lack_is_refused(make: Make, before: str, said: str) -> None:
    make(whole("append", before)).run()
    project = make(whole("key=id", "SELECT 1 AS id, 1 AS n"))
    error = error_of(project)
    assert isinstance(error, DefinitionChanged)
    assert said in error.message


def test_another_key_that_the_rows_have_goes_on(make: Make) -> None:
    make(whole("key=id", "SELECT id, id AS n FROM range(3)")).run()
    project = make(whole("key=n", "SELECT id, id AS n FROM range(4)"))
    assert project.run().state == "done"
    assert len(rows(project, "SELECT * FROM t")) == 4


def test_a_failure_before_the_first_slice_stays_listed(make: Make) -> None:
    query = "SELECT if('{partition}' = '2026-01-01', raise_error('no'), id) AS id"
    project = make({"models/t": DAILY.replace("SELECT id", query)})
    assert project.run("2026-01-01").state == "failed"
    assert project.run("2026-01-02").state == "done"
    states = {slice_.slice: slice_.state for slice_ in project.status("t")[0].slices}
    assert states == {"2026-01-01": "failed", "2026-01-02": "materialized"}


def remove_files(project: Project) -> None:
    for path in (project.settings.root / "lake").rglob("*.parquet"):
        path.unlink()


@pytest.mark.parametrize(
    ("script", "partition"), [(WHOLE, None), (DAILY, "2026-01-01")], ids=["whole", "slice"]
)
def test_a_replaced_slice_heals_when_its_file_is_gone(
    make: Make, script: str, partition: str | None
) -> None:
    project = make({"models/t": script})
    project.run(partition)
    remove_files(project)
    assert step(project.run(partition, force=True), "t").state == "done"
    assert len(rows(project, "SELECT * FROM t")) == 2
    assert step(project.run(partition, force=True), "t").state == "unchanged"


def test_an_input_without_its_files_names_the_model_that_makes_it(make: Make) -> None:
    below = "-- pipeline\n-- materialize ducklake://main/below\nSELECT count(id) AS n FROM t"
    project = make({"models/t": WHOLE, "models/below": below})
    project.run()
    remove_files(project)
    error = step(project.run(select=["below"], force=True), "below").error
    assert isinstance(error, DataFileMissing)
    assert "rebuild main.t: penstock run t --full-refresh" in str(error)


def test_a_merge_without_its_files_names_the_full_refresh(make: Make) -> None:
    project = make(whole("key=id", "SELECT id FROM range(3)"))
    project.run()
    remove_files(project)
    error = error_of(project, force=True)
    assert isinstance(error, DataFileMissing)
    assert "penstock run t --full-refresh" in str(error)
    assert project.run(select=["t"], full_refresh=True).state == "done"
    assert len(rows(project, "SELECT * FROM t")) == 3


def test_a_merge_of_nothing_looks_for_its_files(make: Make) -> None:
    make(whole("key=id", "SELECT id FROM range(3)")).run()
    project = make(whole("key=id", "SELECT id FROM range(3) WHERE id > 9"))
    assert step(project.run(), "t").state == "unchanged"
    remove_files(project)
    assert isinstance(error_of(project, force=True), DataFileMissing)


def test_an_empty_slice_has_a_state_of_its_own(make: Make, tmp_path: Path) -> None:
    script = """
        -- pipeline
        -- partitioned dynamic key="$.k"
        -- materialize ducklake://main/t
        SELECT 'eu' AS k WHERE '{partition}' = 'eu'
    """
    project = make({"models/t": script})
    project.run(partition="eu")
    events: list[object] = []
    made = step(project.run(partition="us", on_event=events.append), "t")
    assert (made.state, made.rows, made.snapshot_id) == ("done", 0, None)
    assert "slice 'us' is new and has 0 rows" in notices(events)
    (_, us) = project.status("t")[0].slices
    assert (us.state, us.rows, us.snapshot_id) == ("materialized", 0, None)
    again = step(project.run(partition="us", force=True), "t")
    assert (again.state, again.rows, again.snapshot_id) == ("unchanged", 0, None)
