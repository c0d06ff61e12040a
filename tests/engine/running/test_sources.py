"""Rows of many slices by one query: files a day, in one job, as a run a day makes them."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.state.reading import read
from penstock.engine.state.records import InputRead
from penstock.engine.state.store import State
from penstock.events import Event, Notice, StepFinished, ignore
from penstock.lazy import pa, pq
from penstock.project.project import Project
from tests.engine.toy import rows, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FIRST, DAYS = date(2026, 1, 1), 4
LAST = FIRST + timedelta(DAYS - 1)
DIM = "-- pipeline\n-- materialize ducklake://main/dim\nSELECT id, id % 2 AS even FROM range(9)"
HEAD = "-- pipeline\n-- partitioned {kind}\n-- materialize ducklake://main/t{strategy}\n{more}"
Write = Callable[[Path, int], None]


def days() -> list[str]:
    return [str(FIRST + timedelta(day)) for day in range(DAYS)]


def write_days(root: Path, name: str, write: Write) -> None:
    for number, day in enumerate(days()):
        path = root / name.replace("{}", day)
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, number)


def csv_of(*lines: str) -> Write:
    """Rows of a day; ``{n}`` in a line is the number of the day."""

    def write(path: Path, number: int) -> None:
        text = "\n".join(lines).replace("{n}", str(number)) + "\n"
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())

    return write


def json_of(path: Path, number: int) -> None:
    values = [{"id": number, "tags": ["x"], "in": {"a": 1.5}}, {"id": None, "more": "y"}]
    path.write_text("\n".join(map(json.dumps, values)))


def array_of(path: Path, number: int) -> None:
    path.write_text(json.dumps([{"id": number}, {"id": number + 1}], indent=1))


def parquet_of(path: Path, number: int) -> None:
    pq.write_table(pa.table({"id": [number, None], "at": [FIRST, FIRST]}), path)


def project_of(
    root: Path, spark: SparkSession, query: str, strategy: str = "", more: str = "", **kind: str
) -> Project:
    head = HEAD.format(kind=kind.get("kind", "daily"), strategy=strategy, more=more)
    scripts = {"models/dim": DIM, "models/t": head + query}
    return Project.load(write_project(root, scripts), spark=spark)


def state_of(project: Project) -> list[Any]:
    """Everything that is to be the same: rows with their types, and what is recorded of slices."""
    slices = project.status("t")[0].slices
    status = sorted((str(each.slice), each.state, each.rows) for each in slices)
    if not any(rows is not None for _, _, rows in status):
        return [status]
    query = "SELECT to_json(struct(*)) AS row FROM t ORDER BY row"
    return [status, project.sql("SELECT * FROM t").dtypes, rows(project, query)]


def both(root: Path, spark: SparkSession, query: str, write: Callable[[Path], None], **of: str):  # type: ignore[no-untyped-def]
    """Run a range, and a run a day; return the events of the former and both states."""
    events: list[Event] = []
    found = []
    for name in ("range", "days"):
        (root / name).mkdir()
        write(root / name)
        with project_of(root / name, spark, query, **of) as project:
            project.run(select="dim", on_event=ignore)
            if name == "range":
                project.run(select="t", from_=days()[0], to=days()[-1], on_event=events.append)
            else:
                for day in days():
                    project.run(day, select="t", on_event=ignore)
            found.append(state_of(project))
    return [each.slices for each in events if isinstance(each, StepFinished)], *found


CSV = ("id,name,at", "{n},x,2026-01-1{n} 10:00:00", "7,a b,2026-01-01 00:00:00")
COLUMNS = "columns = {'id': 'BIGINT', 'name': 'VARCHAR', 'at': 'TIMESTAMP'}"
FORMS: dict[str, tuple[str, str, Write]] = {
    "csv": (
        "data/{}.csv",
        "SELECT * FROM read_csv('data/' || '{partition}' || '.csv')",
        csv_of(*CSV),
    ),
    "columns": (
        "data/{}.csv",
        f"SELECT * FROM read_csv('data/{{partition}}.csv', {COLUMNS})",
        csv_of(*CSV),
    ),
    "no header": (
        "in/{} a%20b.csv",
        "SELECT *, '{partition}' AS day FROM read_csv('in/{partition} a%20b.csv', header = false)",
        csv_of("{n};x", "2;y"),
    ),
    "gzip": ("data/{}.csv.gz", "SELECT * FROM read_csv('data/{partition}.csv.gz')", csv_of(*CSV)),
    "json": ("data/{}.json", "SELECT * FROM read_json('data/{partition}.json')", json_of),
    "array": ("data/{}.json", "SELECT * FROM read_json('data/{partition}.json')", array_of),
    "parquet": ("{}/x.parquet", "SELECT id, at FROM read_parquet('{partition}')", parquet_of),
    "pattern": ("data/{}/a.csv", "SELECT * FROM read_csv('data/{partition}/*.csv')", csv_of(*CSV)),
    "query": (
        "data/{}.csv",
        """
        WITH f AS (SELECT id, name FROM read_csv('data/{partition}.csv') WHERE id < 9)
        SELECT f.name, d.even, count(*) AS n, '{partition}' AS day, max(DATE '{partition}') AS d
        FROM f LEFT JOIN dim AS d ON d.id = f.id GROUP BY f.name, d.even
        """,
        csv_of(*CSV),
    ),
    "two": (
        "data/{}.csv",
        """
        SELECT a.id, b.name, row_number() OVER (ORDER BY a.id, b.name) AS r
        FROM read_csv('data/{partition}.csv') AS a
        JOIN read_csv('data/{partition}.csv', header = false, all_varchar = true) AS b(name, x, y)
        ON a.name = b.name
        """,
        csv_of(*CSV),
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_one_job_makes_what_a_run_a_day_makes(
    tmp_path: Path, spark: SparkSession, form: str
) -> None:
    name, query, write = FORMS[form]
    ended, together, one_by_one = both(
        tmp_path, spark, query, lambda root: write_days(root, name, write)
    )
    assert ended == [DAYS]
    assert together == one_by_one
    assert together[0][0][1:] == ("materialized", together[0][0][2])


@pytest.mark.parametrize("strategy", ["", " append"])
def test_missing_empty_and_wrong_files_stop_no_other_slice(
    tmp_path: Path, spark: SparkSession, strategy: str
) -> None:
    query = f"SELECT * FROM read_csv('data/{{partition}}.csv', {COLUMNS})"

    def write(root: Path) -> None:
        write_days(root, "data/{}.csv", csv_of(*CSV))
        (root / "data" / f"{days()[0]}.csv").unlink()
        (root / "data" / f"{days()[1]}.csv").write_text("id,name,at\n")
        (root / "data" / f"{days()[2]}.csv").write_text("id,name,at\nx,y,z\n")

    ended, together, one_by_one = both(tmp_path, spark, query, write, strategy=strategy)
    assert together == one_by_one
    assert [(slice_, state) for slice_, state, _ in together[0]] == [
        (days()[0], "failed"),
        (days()[1], "materialized"),
        (days()[2], "failed"),
        (days()[3], "materialized"),
    ]
    assert ended == [1, 2, 1]


@pytest.mark.warm
def test_words_of_a_missing_file_and_the_notice(tmp_path: Path, spark: SparkSession) -> None:
    write_days(tmp_path / "p", "data/{}.csv", csv_of(*CSV))
    (tmp_path / "p" / "data" / f"{days()[1]}.csv").unlink()
    events: list[Event] = []
    query = "SELECT * FROM read_csv('data/{partition}.csv')"
    with project_of(tmp_path / "p", spark, query) as project:
        asked: dict[str, Any] = {"select": "t", "from_": days()[0], "to": days()[-1]}
        (step,) = project.plan(**asked).steps
        assert step.apart is None
        result = project.run(**asked, on_event=events.append)
        alone = project.run(days()[1], select="t", on_event=ignore)
    assert result.exit_code == alone.exit_code == 1
    (failed,) = [step for step in result.steps if step.state == "failed"]
    assert str(failed.error) == str(alone.steps[0].error)
    assert f"file data/{days()[1]}.csv does not exist" in str(failed.error)
    said = [event.message for event in events if isinstance(event, Notice)]
    assert said == [
        f"{days()[0]} to {days()[-1]} (4 slices) are made in 2 parts: "
        f"file data/{days()[1]}.csv does not exist"
    ]


def test_files_of_other_types_are_made_apart(tmp_path: Path, spark: SparkSession) -> None:
    cells = ("1", "2", "x", "3")

    def write(root: Path) -> None:
        write_days(root, "data/{}.csv", lambda path, n: csv_of("id,b", f"{cells[n]},1")(path, n))

    query = "SELECT CAST(id AS STRING) AS id FROM read_csv('data/{partition}.csv')"
    ended, together, one_by_one = both(tmp_path, spark, query, write)
    assert together == one_by_one
    assert ended == [2, 1, 1]


@pytest.mark.warm
def test_tests_of_slices_and_hours(tmp_path: Path, spark: SparkSession) -> None:
    root = tmp_path / "p"
    for hour in range(4):
        (root / "data").mkdir(parents=True, exist_ok=True)
        text = "id\n" + "1\n" * (3 if hour == 2 else 1)
        (root / "data" / f"2026-01-01T{hour:02}.csv").write_text(text)
    query = "SELECT * FROM read_csv('data/{partition}.csv')"
    more = "-- data_test row_count max=2\n"
    with project_of(root, spark, query, more=more, kind="hourly") as project:
        result = project.run(select="t", from_="2026-01-01T00", to="2026-01-01T03", on_event=ignore)
        assert [step.state for step in result.steps] == ["done", "done", "failed", "done"]
        assert rows(project, "SELECT count(*) FROM t") == [(3,)]


def test_each_slice_records_its_own_files(tmp_path: Path, spark: SparkSession) -> None:
    write_days(tmp_path / "p", "data/{}.csv", csv_of(*CSV))
    os.utime(tmp_path / "p" / "data" / f"{days()[0]}.csv", ns=(5, 5))
    query = "SELECT id FROM read_csv('data/{partition}.csv')"
    with project_of(tmp_path / "p", spark, query) as project:
        project.run(select="t", from_=days()[0], to=days()[-1], on_event=ignore)
        state = State(project.lake("main").catalog)
        records = {each.slice: str(each.read_id) for each in state.slices("main.t")}
        found = {slice_: _inputs_of(state, id_) for slice_, id_ in records.items()}
    assert {slice_: [each.name for each in own] for slice_, own in found.items()} == {
        day: [f"data/{day}.csv"] for day in days()
    }
    assert found[days()[0]][0].time == 5


def _inputs_of(state: State, read_id: str) -> tuple[InputRead, ...]:
    with state.reading() as connection:
        record = None if connection is None else read(connection, read_id)
        return () if record is None else record.inputs
