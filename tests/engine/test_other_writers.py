"""What other writers did to the slices of a model: plan, run, status and restate see the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.events import ignore
from penstock.project.project import Project
from tests import duck
from tests.engine.conftest import Make
from tests.engine.planning.test_intervals import MODEL, at, made, put
from tests.engine.toy import rows

pytestmark = pytest.mark.spark

RANGE: dict[str, Any] = {"from_": "2026-01-01", "to": "2026-01-04"}
DAYS = "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/t{}\n"
DAYS += "SELECT n FROM raw WHERE day(ds) = day('{{partition}}')"


def by_duckdb(project: Project, statement: str) -> None:
    duck.required()
    with duck.attach(project.lake("main").catalog.uri) as connection:
        connection.execute(statement)


def states(project: Project, **asked: Any) -> list[tuple[str | None, str]]:
    (status,) = (each for each in project.status("t", **asked))
    return [(each.slice, each.state) for each in status.slices]


def planned(project: Project, **asked: Any) -> tuple[str | None, dict[str, int]]:
    (step,) = project.plan(fire_time=at(5), **asked).steps
    assert step.tally is not None
    counts = {state.value: number for state, number in step.tally.states.items()}
    return (None if step.skipped else step.slice), counts


def test_an_interval_that_was_damaged_is_made_again(make: Make) -> None:
    script = MODEL.format(options="partition_by_time_column true", properties="end '2026-01-04'")
    toy = make({"models/t": script})
    toy.lake("main").sql("CREATE TABLE raw (ds DATE, n INT)")
    put(toy, 1, 2, 3, 4)
    made(toy, at(5))
    by_duckdb(toy, "DELETE FROM t WHERE n = 2")
    damaged = [
        ("2026-01-01", "materialized"),
        ("2026-01-02", "changed outside"),
        ("2026-01-03 to 2026-01-04", "materialized"),
    ]
    assert states(toy) == damaged == states(toy, **RANGE)
    counts = {"changed outside": 1, "materialized": 3}
    assert planned(toy) == ("2026-01-02", counts) == planned(toy, **RANGE)
    assert [each.rows for each in toy.restatement("t", **RANGE)] == [3]
    assert made(toy, at(5)) == [("2026-01-02", "done")]
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(1,), (2,), (3,), (4,)]
    assert {state for _, state in states(toy)} == {"materialized"}


def test_a_rollback_leaves_intact_what_it_did_not_undo(make: Make) -> None:
    toy = make({"models/t": MODEL.format(options="", properties="end '2026-01-04'")})
    toy.lake("main").sql("CREATE TABLE raw (ds DATE, n INT)")
    put(toy, 1, 2, 3, 4)
    made(toy, at(4))
    good = toy.lake("main").catalog.latest().id
    made(toy, at(5))
    by_duckdb(toy, "DELETE FROM t WHERE n = 2")
    toy.lake("main").table("t").rollback(good)
    assert states(toy) == [("2026-01-01 to 2026-01-03", "materialized")]
    assert planned(toy) == ("2026-01-04", {"materialized": 3, "missing": 1})
    assert made(toy, at(5)) == [("2026-01-04", "done")]


@pytest.mark.parametrize("strategy", [" key=n", " append"])
def test_a_partition_that_was_damaged(make: Make, strategy: str) -> None:
    toy = make({"models/t": DAYS.format(strategy)})
    toy.lake("main").sql("CREATE TABLE raw (ds DATE, n INT)")
    put(toy, 1, 2, 3, 4)
    asked = {"fire_time": at(5), **RANGE}
    toy.run(**asked, on_event=ignore)
    by_duckdb(toy, "DELETE FROM t WHERE n = 2")
    assert states(toy) == states(toy, **RANGE)
    assert states(toy)[1] == ("2026-01-02", "changed outside")
    if strategy != " append":
        assert [each.rows for each in toy.restatement("t", **RANGE)] == [3]
    result = toy.run(**asked, on_event=ignore)
    left = [(1,), (2,), (3,), (4,)]
    if strategy == " append":  # it would add rows again
        assert "drop the slices and run again" in (result.steps[0].reason or "")
        left.remove((2,))
    else:
        assert [(each.slice, each.state) for each in result.steps] == [("2026-01-02", "done")]
        assert "1 slice changed by another writer" in result.notices[0].message
    assert rows(toy, "SELECT n FROM t ORDER BY n") == left


def test_a_history_continues_after_a_rollback(make: Make) -> None:
    kind = "SCD_TYPE_2_BY_COLUMN (unique_key id, columns *, batch_size 1)"
    query = "SELECT 1 AS id, max(n) AS n FROM raw WHERE ds = @start_date HAVING count(*) > 0"
    toy = make({"models/t": f"MODEL (name main.t, kind {kind}, start '2026-01-01');\n{query}"})
    toy.lake("main").sql("CREATE TABLE raw (ds DATE, n INT)")
    put(toy, 1, 2, n=1)
    made(toy, at(2))
    good = toy.lake("main").catalog.latest().id
    put(toy, 3, n=2)
    made(toy, at(4))  # the second day is as the first, and has no snapshot of its own
    toy.lake("main").table("t").rollback(good)
    assert states(toy) == [("2026-01-01", "materialized")]
    assert [slice_ for slice_, _ in made(toy, at(4))] == ["2026-01-02", "2026-01-03"]
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(1,), (2,)]
    assert [each.rows for each in toy.status("t")[0].slices] == [None, None, None]


def test_a_slice_is_dropped_by_the_name_that_status_shows(make: Make) -> None:
    toy = make({"models/t": MODEL.format(options="", properties="end '2026-01-04'")})
    toy.lake("main").sql("CREATE TABLE raw (ds DATE, n INT)")
    put(toy, 1, 2, 3, 4)
    made(toy, at(5))
    good = toy.lake("main").catalog.latest().id
    assert toy.drop("t", "2026-01-02").rows == 1
    counts = [(each.slice, each.rows) for each in toy.status("t")[0].slices]
    assert counts == [("2026-01-01", 1), ("2026-01-03 to 2026-01-04", 2)]
    assert toy.drop("t", "2026-01-03 to 2026-01-04").rows == 2
    assert states(toy) == [("2026-01-01", "materialized")]
    assert rows(toy, "SELECT n FROM t") == [(1,)]
    (table,) = toy.rollback("t", good).tables
    assert table.slices_back == ("2026-01-01 to 2026-01-04",)
    left = [("2026-01-01", "materialized"), ("2026-01-02 to 2026-01-04", "stale")]
    assert states(toy) == left
    assert made(toy, at(5)) == [(None, "skipped")]
    assert toy.drop("t", "2026-01-02 to 2026-01-04").rows == 3
    assert made(toy, at(5)) == [("2026-01-02 to 2026-01-04", "done")]


def test_a_failed_slice_and_a_model_that_is_gone_are_forgotten(make: Make) -> None:
    below = "-- materialize ducklake://main/below\nSELECT n FROM t"
    fails = DAYS.format("") + " AND raise_error('no') IS NULL"
    toy = make({"models/t": fails, "models/below": below})
    toy.lake("main").sql("CREATE TABLE raw AS SELECT DATE '2026-01-05' AS ds, 1 AS n")
    toy.run("2026-05-05", on_event=ignore)
    assert states(toy) == [("2026-05-05", "failed")]
    (skipped,) = toy.status("below")[0].slices
    assert skipped.state == "skipped"
    assert "upstream t failed" in (skipped.reason or "")
    assert toy.drop("t", "2026-05-05").rows == 0
    assert states(toy) == []
    toy = make({"models/t": DAYS.format("")})
    toy.run("2026-05-05", on_event=ignore)
    for name in ("t", "below"):
        (toy.settings.root / "models" / f"{name}.sql").unlink()
    other = make({"models/u": "-- materialize ducklake://main/u\nSELECT 1 AS a"})
    assert other.drop("t").rows == 1
    assert "main.t" not in [each.target for each in other.status()]


def test_a_reader_that_failed_is_restated_by_the_same_command(make: Make) -> None:
    kind = "MODEL (name main.{}, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), start "
    kind += "'2026-01-01'{});\nSELECT ds, n FROM {} WHERE ds BETWEEN @start_date AND @end_date"
    audit = ", audits (accepted_range(column := n, max_v := 50))"
    toy = make({"models/a": kind.format("a", "", "raw"), "models/b": kind.format("b", audit, "a")})
    toy.lake("main").sql("CREATE TABLE raw (ds DATE, n INT)")
    put(toy, 1, 2)
    made(toy, at(3))
    asked: dict[str, Any] = {"from_": "2026-01-01", "to": "2026-01-02", "downstream": True}
    for n, outcome in ((99, "failed"), (7, "done")):
        toy.lake("main").sql(f"UPDATE raw SET n = {n} WHERE day(ds) = 1")
        result = toy.restate("a", **asked, fire_time=at(3), on_event=ignore)
        assert outcome in [each.state for each in result.steps if each.name == "b"]
    assert rows(toy, "SELECT n FROM b ORDER BY n") == [(2,), (7,)]


def test_a_reader_of_what_is_stale_is_not_up_to_date(make: Make) -> None:
    kind = "MODEL (name main.{}, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), start "
    kind += "'2026-01-01', end '2026-01-02');\nSELECT ds, n{} FROM {} WHERE ds BETWEEN @start_date"
    kind += " AND @end_date"
    models = {"models/a": kind.format("a", "", "raw"), "models/t": kind.format("t", "", "a")}
    toy = make(models)
    toy.lake("main").sql("CREATE TABLE raw (ds DATE, n INT)")
    put(toy, 1, 2)
    made(toy, at(4))
    toy = make(models | {"models/a": kind.format("a", " + 1000 AS n", "raw")})
    _, reader = toy.run(fire_time=at(4), on_event=ignore).steps
    assert reader.reason == "nothing to do: 2 materialized; a, which it reads, is stale"
    assert [str(each.skipped) for each in toy.plan(fire_time=at(4), select="t").steps] == [
        reader.reason
    ]


def test_the_current_slice_is_made_again_when_it_is_over(make: Make) -> None:
    toy = make({"models/t": DAYS.format("").replace("SELECT n", "SELECT 1 AS n").split(" FROM")[0]})
    now = datetime.now(UTC)
    today, tomorrow = now.date().isoformat(), now + timedelta(days=1)
    assert made(toy, now, from_=today) == [(None, "skipped")], "it is not over"
    assert made(toy, now, from_=today, to=today) == [(today, "done")]
    assert states(toy) == [(today, "unfinished")] == states(toy, from_=today, to=today)
    (step,) = toy.plan(fire_time=tomorrow, from_=today).steps
    assert step.slice == today
