"""Models that make Delta tables, by each strategy, read back by DuckDB; and a run that is
killed between the commit of its data and its records.

Tests ``destinations/delta/lake.py``, ``destinations/delta/catalog.py``,
``engine/session/connections.py`` and ``engine/state/carried.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from sqlalchemy import text

from penstock.delta import commit
from penstock.delta.log_files import list_log
from penstock.destinations.delta import versions as log
from penstock.engine.results import RunResult
from penstock.errors import CatalogLocked
from penstock.project.project import Project
from tests.delta.oracles import Row, by_duckdb
from tests.engine.toy import CONFIG, rows, write_project

pytestmark = pytest.mark.spark

DELTA = f"""{CONFIG}
[delta.sales]
root = "delta"
"""
HEADER = "-- pipeline\n-- materialize delta://sales/main/{}\n"
SOURCE = "SELECT * FROM main.source"
IN_ONE_FILE = "SELECT /*+ COALESCE(1) */ * FROM main.source"
RANGE = """
MODEL (name sales.main.ranged, kind INCREMENTAL_BY_TIME_RANGE (time_column day),
  start '2026-01-01');
SELECT * FROM (VALUES (DATE '2026-01-01', 1), (DATE '2026-01-02', 2)) AS v(day, id)
WHERE day BETWEEN @start_ds AND @end_ds
"""
DAILY = """
-- pipeline
-- partitioned daily
-- materialize delta://sales/shop/daily
SELECT '{partition}' AS said, count(*) AS n FROM sales.main.whole
"""
SCRIPTS = {
    "models/source": "-- pipeline\n-- materialize ducklake://main/source\n"
    "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v(id, name)",
    "models/whole": HEADER.format("whole") + SOURCE,
    "models/added": HEADER.format("added append") + SOURCE,
    "models/merged": HEADER.format("merged key=id") + IN_ONE_FILE,
    "models/daily": DAILY,
    "models/ranged": RANGE,
    "models/in_lake": "-- pipeline\n-- materialize ducklake://main/in_lake\n"
    "SELECT count(*) AS n FROM sales.main.merged",
}
FIRST = [(1, "a"), (2, "b")]


def delta_rows(table: Path, version: int | None = None) -> list[Row]:
    """The rows of a table, sorted, as DuckDB reads them."""
    return by_duckdb(str(table), DeltaTable(str(table)).version() if version is None else version)


def states(result: RunResult) -> dict[str, str]:
    return {each.name: each.state for each in result.steps}


def test_each_strategy(tmp_path: Path, spark: Any) -> None:
    root, place = tmp_path / "p/delta", write_project(tmp_path / "p", SCRIPTS, DELTA)
    with Project.load(place, spark=spark) as project:
        assert set(states(project.run(partition="2026-01-02")).values()) == {"done"}
        for name in ("whole", "added", "merged"):
            assert delta_rows(root / "main" / name) == FIRST
        assert delta_rows(root / "shop/daily") == [("2026-01-02", 2, "2026-01-02")]
        assert [id_ for _, id_ in delta_rows(root / "main/ranged")] == [2]
        entry = DeltaTable(str(root / "shop/daily")).history(1)[0]  # as delta-rs shows it
        assert entry["operationMetrics"]["numOutputRows"] == "1"
        assert entry["operationParameters"]["partitionBy"] == '["_wm_partition"]'
        assert rows(project, "SELECT n FROM main.in_lake") == [(2,)]
        again = states(project.run(partition="2026-01-02"))
        assert again == {**dict.fromkeys(again, "unchanged"), "added": "done"}  # as in a lake
    source = "-- pipeline\n-- materialize ducklake://main/source\n"
    source += "SELECT * FROM VALUES (2, 'B'), (3, 'c') AS v(id, name)"
    marking = f"{DELTA}deletion_vectors = true\n"
    write_project(tmp_path / "p", {**SCRIPTS, "models/source": source}, marking)
    with Project.load(place, spark=spark) as project:
        result = states(project.run(partition="2026-01-02"))
        same = {"ranged": "unchanged", "daily": "unchanged"}
        assert result == {**dict.fromkeys(result, "done"), **same}
        assert delta_rows(root / "main/whole") == [(2, "B"), (3, "c")]
        assert delta_rows(root / "main/merged") == [(1, "a"), (2, "B"), (3, "c")]
        assert delta_rows(root / "main/added") == sorted([*FIRST, *FIRST, (2, "B"), (3, "c")])
        assert delta_rows(root / "main/whole", 0) == FIRST
        assert delta_rows(root / "main/merged", 0) == FIRST
        assert rows(project, "SELECT * FROM sales.main.merged ORDER BY id")[0] == (1, "a")
    marked = log.only(log.read(f"{root}/main/merged/", 1), "add")
    assert [
        each["deletionVector"]["cardinality"] for each in marked if "deletionVector" in each
    ] == [1]
    assert not list((root / "main/merged").rglob("deletes.parquet"))


STRUCTS = "SELECT id, named_struct({}) AS place FROM VALUES (1, 'x'), (2, '{}') AS v(id, town)"
HISTORY = (
    "MODEL (name sales.main.versions, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns *));\n"
)


def test_fields_of_structs_go_by_name(tmp_path: Path, spark: Any) -> None:
    """In another order, and with one that is new: a history, merges and appends."""
    fields = ("'zip', 1, 'town', town", "'town', town, 'zip', 1")
    new = (fields[0], "'town', town, 'country', 'c', 'zip', 1")
    for number in range(2):
        same, wider = (STRUCTS.format(said[number], "xy"[number]) for said in (fields, new))
        scripts = {
            "models/versions": HISTORY + same,
            "models/merged": HEADER.format("merged key=id") + wider,
            "models/added": HEADER.format("added append on_schema_change=ignore") + wider,
        }
        with Project.load(write_project(tmp_path / "p", scripts, DELTA), spark=spark) as project:
            result = project.run()
            assert set(states(result).values()) == {"done"}, result.steps
            query = "SELECT id, place.zip, place.town FROM sales.main.{} ORDER BY id, place.town"
            found = {name: rows(project, query.format(name)) for name in states(result)}
            if number:
                countries = "SELECT DISTINCT place.country FROM sales.main.merged"
                assert rows(project, countries) == [("c",)]
    versions = [(1, 1, "x"), (2, 1, "x"), (2, 1, "y")]
    assert found["versions"] == versions
    assert found["merged"] == [(1, 1, "x"), (2, 1, "y")]
    assert found["added"] == [(1, 1, "x"), *versions]


APPENDS = {"models/added": HEADER.format("added append") + "SELECT 1 AS id"}


class Killed(BaseException):
    """The process ends here."""


def failing(error: BaseException) -> Any:
    """Add a version to the log as ever, and then fail."""
    add = log.add_version

    def fail(*given: Any) -> bool:
        assert add(*given)
        raise error

    return fail


def test_a_run_that_is_killed_before_its_records(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write_project(tmp_path / "p", APPENDS, DELTA)
    with Project.load(place, spark=spark) as project:
        monkeypatch.setattr(log, "add_version", failing(Killed()))
        with pytest.raises(Killed):
            project.run()
        monkeypatch.undo()
        with project.lake("sales").catalog.writing() as connection:
            connection.execute(text("UPDATE penstock_run SET process_started = 'long ago'"))
            connection.execute(text("DELETE FROM penstock_claim"))
    assert delta_rows(place / "delta/main/added") == [(1,)]
    with Project.load(place, spark=spark) as project:
        assert states(project.run()) == {"added": "unchanged"}
        assert delta_rows(place / "delta/main/added") == [(1,)]
        monkeypatch.setattr(log, "add_version", failing(CatalogLocked("busy")))
        assert states(project.run()) == {"added": "done"}  # looked up in the log
        monkeypatch.undo()
        monkeypatch.setattr(commit, "_USUAL", 2)  # instead of 10
        assert states(project.run()) == {"added": "done"}
        assert delta_rows(place / "delta/main/added") == [(1,)] * 3
        (point,) = list_log(str(place / "delta/main/added")).checkpoints
        assert point.version == 2
