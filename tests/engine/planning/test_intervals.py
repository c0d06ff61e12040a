"""What a run makes of a model by time, run after run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.errors import ArgumentError
from penstock.events import Notice, ignore
from penstock.project.project import Project
from penstock.states import SliceState
from tests import duck
from tests.engine.conftest import Make
from tests.engine.toy import rows

pytestmark = pytest.mark.spark

MODEL = """
    MODEL (
      name main.t,
      kind INCREMENTAL_BY_TIME_RANGE (time_column ds, {options}),
      start '2026-01-01',
      {properties}
    );
    SELECT ds, n FROM raw WHERE ds BETWEEN @start_date AND @end_date
"""


def at(day: int, hour: int = 1) -> datetime:
    return datetime(2026, 1, day, hour, tzinfo=UTC)


def project(make: Make, options: str = "", properties: str = "") -> Project:
    made = make({"models/t": MODEL.format(options=options, properties=properties)})
    lake = made.lake("main")
    if not lake.tables():
        lake.sql("CREATE TABLE raw (ds DATE, n INT)")
    return made


def put(project: Project, *days: int, n: int | None = None) -> None:
    values = ", ".join(f"(DATE '2026-01-{day:02d}', {n or day})" for day in days)
    project.lake("main").sql(f"INSERT INTO raw VALUES {values}")


def made(project: Project, moment: datetime, **request: Any) -> list[tuple[str | None, str]]:
    """The slices of a run, and what became of them."""
    result = project.run(fire_time=moment, **request)
    assert [step.error for step in result.steps if step.error] == []
    return [(step.slice, step.state) for step in result.steps]


def recorded(project: Project) -> list[tuple[str | None, str, int | None]]:
    (status,) = (each for each in project.status() if each.model == "t")
    return [(each.slice, each.state, each.rows) for each in status.slices]


def test_only_what_is_missing_is_made(make: Make) -> None:
    toy = project(make)
    put(toy, 1, 2, 3, 4)
    assert made(toy, at(4)) == [("2026-01-01 to 2026-01-03", "done")]
    assert made(toy, at(4, 9)) == [(None, "skipped")]
    assert made(toy, at(5)) == [("2026-01-04", "done")]
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(1,), (2,), (3,), (4,)]
    uri = toy.lake("main").catalog.uri
    assert duck.rows(uri, "SELECT n FROM t ORDER BY n") == [(1,), (2,), (3,), (4,)]
    assert recorded(toy) == [
        ("2026-01-01 to 2026-01-03", SliceState.MATERIALIZED, 3),
        ("2026-01-04", SliceState.MATERIALIZED, 1),
    ]
    assert [row[1] for row in toy.read("t", "2026-01-02").rows] == [2]


def test_lookback_does_the_days_before_again(make: Make) -> None:
    toy = project(make, "lookback 1")
    put(toy, 1, 2, 3)
    made(toy, at(4))
    put(toy, 3, 4, n=9)
    toy.lake("main").sql("DELETE FROM raw WHERE n = 1")
    assert made(toy, at(5)) == [("2026-01-03 to 2026-01-04", "done")]
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(1,), (2,), (3,), (9,), (9,)]
    assert recorded(toy) == [
        ("2026-01-01", SliceState.BEHIND, None),  # the row that went was of this day
        ("2026-01-02", SliceState.MATERIALIZED, None),
        ("2026-01-03 to 2026-01-04", SliceState.MATERIALIZED, 3),
    ]


def test_batches_and_the_range_of_a_run(make: Make) -> None:
    toy = project(make, "batch_size 2")
    put(toy, 1, 2, 3, 4, 5)
    assert made(toy, at(6), from_="2026-01-03", to="2026-01-03") == [("2026-01-03", "done")]
    assert made(toy, at(6)) == [
        ("2026-01-01 to 2026-01-02", "done"),
        ("2026-01-04 to 2026-01-05", "done"),
    ]
    toy.lake("main").sql("DELETE FROM raw WHERE ds IN (DATE '2026-01-02', DATE '2026-01-03')")
    again = made(toy, at(6), from_="2026-01-02", to="2026-01-04", all_=True)
    assert again == [("2026-01-02 to 2026-01-03", "done"), ("2026-01-04", "unchanged")]
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(1,), (4,), (5,)]
    assert [rows for _, _, rows in recorded(toy)] == [1, 0, 1, 1]
    with pytest.raises(ArgumentError, match="2026-01-01 is before 2026-01-02"):
        toy.run(fire_time=at(6), from_="2026-01-02", to="2026-01-01")


def test_audits_see_the_intervals_alone_and_rows_outside_are_said(make: Make) -> None:
    toy = project(make, "lookback 1", "audits (unique_values(columns := n))")
    put(toy, 1, 2, 3)
    made(toy, at(4))
    put(toy, 4, n=1)  # as in an interval that is not looked at
    said: list[str] = []
    toy.run(
        fire_time=at(5),
        on_event=lambda e: said.append(e.message) if isinstance(e, Notice) else None,
    )
    assert said == []
    put(toy, 5, 5)
    assert toy.run(fire_time=at(6)).state == "failed"
    assert rows(toy, "SELECT count(*) FROM t WHERE n = 5") == [(0,)]
    assert recorded(toy)[-1][:2] == ("2026-01-05", "failed")


def test_a_full_refresh_makes_all_batches_anew(make: Make) -> None:
    toy = project(make, "batch_size 2")
    put(toy, 1, 2, 3)
    made(toy, at(4))
    toy.lake("main").sql("DELETE FROM raw WHERE n = 1")
    assert made(toy, at(4), select=["t"], full_refresh=True) == [
        ("2026-01-01 to 2026-01-02", "done"),
        ("2026-01-03", "done"),
    ]
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(2,), (3,)]


def test_a_merge_that_reads_by_intervals_has_some(make: Make) -> None:
    toy = make(
        {
            "models/t": "MODEL (name main.t, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key ds), start "
            "'2026-01-01'); SELECT ds, n FROM raw WHERE ds BETWEEN @start_date AND @end_date"
        }
    )
    toy.lake("main").sql("CREATE TABLE raw (ds DATE, n INT)")
    put(toy, 1, 2, 3)
    assert made(toy, at(3)) == [("2026-01-01 to 2026-01-02", "done")]
    assert made(toy, at(3)) == [(None, "skipped")]
    assert made(toy, at(4)) == [("2026-01-03", "done")]
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(1,), (2,), (3,)]


def test_auto_restatement_does_again_what_was_made_before_it_was_due(make: Make) -> None:
    kind = "kind INCREMENTAL_BY_UNIQUE_KEY (unique_key n)"
    options = "auto_restatement_cron '@daily', auto_restatement_intervals 2"
    toy = make(
        {
            "models/t": MODEL.format(options=options, properties="end '2026-01-03'"),
            "models/most": f"MODEL (name main.most, {kind});\nSELECT n FROM t",
            "models/slice": "-- materialize ducklake://main/slice key=n\n"
            "-- partitioned daily\nSELECT n FROM t WHERE ds = '{partition}'",
        }
    )
    toy.lake("main").sql("CREATE TABLE raw (ds DATE, n INT)")
    put(toy, 1, 2, 3)
    made(toy, at(4), select=["t", "most"])
    toy.run("2026-01-02", select="slice", on_event=ignore)
    toy.lake("main").sql("DELETE FROM raw WHERE n < 3")
    later = datetime.now(UTC) + timedelta(days=1)
    assert made(toy, later, select=["t", "most"]) == [
        ("2026-01-02 to 2026-01-03", "done"),
        (None, "done"),
    ]
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(1,), (3,)]
    assert rows(toy, "SELECT n FROM most ORDER BY n") == [(1,), (3,)]
    assert toy.plan(fire_time=later, select="most").notices == ()
    assert rows(toy, "SELECT n FROM slice") == [(2,)]
    restated = toy.restate("slice", "2026-01-02", "2026-01-02", on_event=ignore)
    assert [(step.slice, step.rows) for step in restated.steps] == [("2026-01-02", 0)]


def test_a_restatement_is_one_commit_and_says_what_is_there(make: Make) -> None:
    below = "-- materialize ducklake://main/{}{}\nSELECT sum(n) AS n FROM t"
    text = MODEL.format(options="batch_size 1", properties="")
    toy = make(
        {
            "models/t": text,
            "models/most": below.format("most", ""),
            "models/log": below.format("log", " append"),
            "models/sum": below.format("sum", " key=n"),
        }
    )
    toy.lake("main").sql("CREATE TABLE raw (ds DATE, n INT)")
    put(toy, 1, 2, 3)
    made(toy, at(4))
    toy.lake("main").sql("DELETE FROM raw WHERE n > 1")
    first, *_, last = toy.restatement("t", "2026-01-02", "2026-01-03", downstream=True)
    assert (first.slice, first.slices, first.rows) == ("2026-01-02 to 2026-01-03", 1, 2)
    assert (last.model, last.rows, last.anew) == ("sum", 1, True)
    before = toy.lake("main").catalog.latest().id
    result = toy.restate("t", "2026-01-02", "2026-01-03", downstream=True)
    states = {step.name: (step.slice, step.state) for step in result.steps}
    assert states == {
        "t": ("2026-01-02 to 2026-01-03", "done"),
        "most": (None, "done"),
        "log": (None, "skipped"),
        "sum": (None, "done"),
    }
    assert toy.lake("main").catalog.latest().id == before + 3
    assert rows(toy, "SELECT t.n, most.n, sum.n FROM t, most, sum") == [(1, 1, 1)]
    assert rows(toy, "SELECT count(*) FROM log") == [(1,)]


HISTORY = """
    MODEL (name main.t, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns *, batch_size 1,
      invalidate_hard_deletes true, disable_restatement false), start '2026-01-01');
    SELECT id, v FROM raw WHERE ds = @start_date
"""


def history(make: Make) -> Project:
    """A source that has the state of each day: 1 changes and goes, 2 comes and goes wrong."""
    toy = make({"models/t": HISTORY})
    toy.lake("main").sql("CREATE TABLE raw (ds DATE, id INT, v STRING)")
    states = {1: "(1, 'a')", 2: "(1, 'b')", 3: "(1, 'b'), (2, 'x'), (2, 'y')", 4: "(2, 'y')"}
    for day, state in states.items():
        for row in state.split(", ("):
            values = row.strip("()")
            toy.lake("main").sql(f"INSERT INTO raw VALUES (DATE '2026-01-{day:02d}', {values})")
    return toy


def test_a_history_takes_its_intervals_in_order_and_stops_at_one_that_fails(make: Make) -> None:
    toy = history(make)
    result = toy.run(fire_time=at(9), to="2026-01-04")
    assert [step.state for step in result.steps] == ["done", "done", "failed", "skipped"]
    assert "an interval before it failed" in str(result.steps[3].reason)
    with pytest.raises(ArgumentError, match="03 to 2026-01-08 is missing before 2026-01-04"):
        toy.run(fire_time=at(9), from_="2026-01-04", to="2026-01-04")
    toy.lake("main").sql("DELETE FROM raw WHERE v = 'x'")
    assert made(toy, at(9), to="2026-01-04") == [("2026-01-03", "done"), ("2026-01-04", "done")]
    query = "SELECT id, v, day(valid_from), day(valid_to) FROM t ORDER BY 1, valid_from"
    assert rows(toy, query) == [(1, "a", 1, 3), (1, "b", 3, 5), (2, "y", 4, None)]
    again = made(toy, at(9), from_="2026-01-04", to="2026-01-04", all_=True)
    assert again == [("2026-01-04", "unchanged")], "the last one may be made again"
    with pytest.raises(ArgumentError, match="before the end of 2026-01-01 to 2026-01-04"):
        toy.run(fire_time=at(9), from_="2026-01-01", to="2026-01-04", all_=True)
    toy.lake("main").sql("DELETE FROM t WHERE id = 1 AND v = 'a'")
    refused = toy.run(fire_time=at(9), to="2026-01-05").steps[0]
    assert "was changed outside of its runs" in str(refused.error)
    assert made(toy, at(5), select=["t"], full_refresh=True)[0] == ("2026-01-01", "done")
    assert rows(toy, query) == [(1, "a", 1, 3), (1, "b", 3, 5), (2, "y", 4, None)]


EPOCHS = """
    MODEL (
      name main.t, kind INCREMENTAL_BY_TIME_RANGE (time_column (e, 'epoch')),
      start '2026-01-01', end '2026-01-02', audits (few(most := 2))
    );
    SELECT CAST(floor(e) AS BIGINT) AS e, @twice(n) AS n FROM
    VALUES (1767225600.0D, 1), (1767311999.5D, 2), (1767312000.25D, 3) AS raw (e, n)
    WHERE e BETWEEN @start_epoch AND @end_epoch
"""
FEW = """
    AUDIT (name few);
    SELECT count(*) FROM @this_model WHERE @AND(e >= @start_epoch, NULL, e <= @end_epoch)
    HAVING count(*) > @most OR @start_ds NOT IN ('2026-01-01', '2026-01-02')
"""
TWICE = """
    from sqlmesh import macro
    @macro()
    def twice(evaluator, column):
        return column * 2
"""


def test_macros_of_sqlmesh_in_a_model_by_time_and_its_audit(make: Make) -> None:
    made = make({"models/t": EPOCHS, "audits/few": FEW, "macros/twice.py": TWICE})
    result = made.run(fire_time=at(3))
    assert [(step.state, step.error) for step in result.steps] == [("done", None)]
    assert [n for (n,) in rows(made, "SELECT n FROM t ORDER BY n")] == [2, 4, 6]


def test_a_batch_with_the_same_rows_keeps_when_each_day_was_made(make: Make) -> None:
    """What reads the first of them is not behind the second."""
    with project(make) as toy:
        put(toy, 1, 2, 3)
        made(toy, at(2))
        made(toy, at(3))
        made(toy, at(4))
        before = [(each.slice, each.snapshot_id) for each in toy.status("t")[0].slices]
        assert len({snapshot for _, snapshot in before}) == 3
        days = {"from_": "2026-01-01", "to": "2026-01-03"}
        (again,) = made(toy, at(4), **days, all_=True)
        assert again == ("2026-01-01 to 2026-01-03", "unchanged")
        slices = toy.status("t")[0].slices
        assert [(each.slice, each.snapshot_id) for each in slices] == before
        assert [each.rows for each in slices] == [1, 1, 1]
        put(toy, 2, n=9)
        made(toy, at(4), **days, all_=True)
        (whole,) = toy.status("t")[0].slices
        assert (whole.slice, whole.rows) == ("2026-01-01 to 2026-01-03", 4)
