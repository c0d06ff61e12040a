"""VIEW and EMBEDDED models: run, read by DuckDB, changed, and become tables and back."""

from __future__ import annotations

import pytest

from penstock.engine.results import RunResult
from penstock.errors import DataTestFailed, DefinitionChanged
from tests import duck
from tests.engine.conftest import Make
from tests.engine.toy import rows, step

T = "MODEL (name s.t, kind FULL);\nSELECT id, id * 10 AS amount FROM VALUES (1), (2), (3) AS v(id)"
E = "MODEL (name s.e, kind EMBEDDED);\nSELECT id, amount FROM s.t WHERE id > 1"
V = """
MODEL (name s.v, description 'the large', audits (not_null(columns := id)));
SELECT id, amount AS most FROM s.e
"""
READER = "MODEL (name s.r, kind FULL, dialect duckdb);\nSELECT sum(most) AS total FROM s.v"
PROJECT = {"models/t": T, "models/e": E, "models/v": V, "models/r": READER}


def states(result: RunResult) -> dict[str, str]:
    return {each.name: each.state for each in result.steps}


@pytest.mark.spark
def test_a_view_over_an_embedded_query(make: Make) -> None:
    project = make(PROJECT)
    first = project.run()
    assert states(first) == {"t": "done", "v": "done", "r": "done"}
    assert step(first, "v").rows is None
    assert [check.passed for check in step(first, "v").checks] == [True]
    assert rows(project, "SELECT total FROM s.r") == [(50,)]
    assert [v.comment for v in project.lake("main").views()] == ["the large"]
    (made,) = project.schema_history("v")
    assert dict(made.version.lineage) == {"id": ("main.s.e.id",), "most": ("main.s.e.amount",)}
    with duck.attach(project.lake("main").catalog.uri, read_only=True) as connection:
        found = connection.execute("SELECT * FROM lk.s.v ORDER BY id").fetchall()
    assert found == [(2, 20), (3, 30)]
    assert set(states(project.run()).values()) == {"unchanged"}
    assert [each.state for each in project.status()] == ["materialized"] * 3
    changed = make({**PROJECT, "models/e": E.replace("> 1", "> 2")})
    assert states(changed.run()) == {"t": "unchanged", "v": "done", "r": "done"}
    assert rows(changed, "SELECT total FROM s.r") == [(30,)]


@pytest.mark.spark
def test_a_view_whose_test_fails_stays_as_it_was(make: Make) -> None:
    make({"models/t": T, "models/v": "MODEL (name s.v);\nSELECT id FROM s.t"}).run()
    broken = (
        "MODEL (name s.v, audits (not_null(columns := id)));\nSELECT nullif(id, 1) AS id FROM s.t"
    )
    project = make({"models/t": T, "models/v": broken})
    result = project.run()
    assert isinstance(step(result, "v").error, DataTestFailed)
    assert rows(project, "SELECT id FROM s.v ORDER BY id") == [(1,), (2,), (3,)]


@pytest.mark.spark
def test_a_view_gives_way_to_a_table_and_a_table_only_to_a_full_refresh(make: Make) -> None:
    view = {"models/v": "MODEL (name s.v, dialect duckdb);\nSELECT 1 AS id"}
    table = {"models/v": view["models/v"].replace("s.v", "s.v, kind FULL")}
    assert states(make(view).run()) == {"v": "done"}
    assert states(make(table).run()) == {"v": "done"}
    project = make(view)
    error = step(project.run(), "v").error
    assert isinstance(error, DefinitionChanged)
    assert "s.v is a table, and v makes a view of that name" in error.message
    assert states(project.run(select="v", full_refresh=True)) == {"v": "done"}
    assert [v.dialect for v in project.lake("main").views()] == ["duckdb"]
    dropped = project.drop("v")
    assert (dropped.rows, project.lake("main").views()) == (0, [])


@pytest.mark.spark
def test_a_view_that_others_made_is_replaced_only_by_a_full_refresh(make: Make) -> None:
    project = make({"models/v": "MODEL (name s.v, dialect duckdb);\nSELECT 1 AS id"})
    lake = project.lake("main")
    lake.sql("CREATE SCHEMA s")
    lake.sql("CREATE VIEW s.v AS SELECT 7 AS theirs")
    error = step(project.run(), "v").error
    assert isinstance(error, DefinitionChanged)
    assert "s.v is a view that no run made, and v makes a view of that name" in error.message
    assert rows(project, "SELECT theirs FROM s.v") == [(7,)]
    assert states(project.run(select="v", full_refresh=True)) == {"v": "done"}
    assert states(project.run()) == {"v": "unchanged"}
    assert rows(project, "SELECT id FROM s.v") == [(1,)]
