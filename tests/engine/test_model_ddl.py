"""Models that say what they make in MODEL (...), run, and read by DuckDB.

Tests ``engine/inputs/declared_columns.py`` (columns that the query does not make, and those that it
does).
"""

from __future__ import annotations

import pytest

from penstock.errors import ArgumentError, QueryFailed
from penstock.lakes.format.objects import SortKey
from tests import duck
from tests.engine.conftest import Make
from tests.engine.toy import rows, step

SCRIPTS = {
    "models/raw": """
        MODEL (
          name raw.orders,
          kind FULL,
          columns (id BIGINT, area STRING, day DATE, amount DECIMAL(10, 2)),
          partitioned_by area,
          clustered_by (amount, id),
          session_properties ('spark.sql.ansi.enabled' = true),
        );
        SET spark.sql.shuffle.partitions = 2;
        CREATE TEMP VIEW lines AS
          SELECT * FROM VALUES (1, 'n', '2024-01-01', 5), (2, 's', '2024-01-02', 1)
          AS v(id, area, day, amount);
        SELECT day, id, area, amount FROM lines
    """,
    "models/totals": """
        MODEL (
          name marts.totals,
          kind INCREMENTAL_BY_UNIQUE_KEY (unique_key area),
          dialect duckdb,
          audits (not_null(columns := (area, total)), unique_values(columns := area)),
        );
        SELECT area, sum(amount)::DOUBLE AS total FROM raw.orders GROUP BY ALL
    """,
    "models/log": """
        MODEL (name log, kind INCREMENTAL_UNMANAGED, depends_on marts.totals);
        SELECT count(*) AS orders FROM raw.orders
    """,
}


@pytest.mark.spark
def test_a_project_of_models(make: Make) -> None:
    project = make(SCRIPTS)
    result = project.run()
    assert [(each.name, each.state, each.rows) for each in result.steps] == [
        ("raw", "done", 2),
        ("totals", "done", 2),
        ("log", "done", 1),
    ]
    assert [check.name for check in step(result, "totals").checks] == [
        "not_null area, total",
        "unique area",
    ]
    table = project.lake("main").table("raw.orders")
    assert [field.column for field in table.info().partition_by] == ["area"]
    assert table.describe().sorted_by == (SortKey("amount"), SortKey("id"))
    uri = project.lake("main").catalog.uri
    orders = "SELECT id, area, day::VARCHAR, amount::VARCHAR FROM raw.orders"
    assert duck.rows(uri, orders) == [
        (1, "n", "2024-01-01", "5.00"),
        (2, "s", "2024-01-02", "1.00"),
    ]
    assert duck.rows(uri, "SELECT * FROM marts.totals") == [("n", 5.0), ("s", 1.0)]
    again = project.run()
    assert [each.state for each in again.steps] == ["unchanged", "unchanged", "done"]
    assert rows(project, "SELECT * FROM log") == [(2,), (2,)]
    changed = {name: text.replace("AS", " as ", 1) for name, text in SCRIPTS.items()}
    changed |= {name: text.replace("sum(", "max(") for name, text in changed.items()}
    changed["models/log"] = changed["models/log"].replace("count(*)", "count(1)")
    states = {status.model: status.state for status in make(changed).status()}
    assert states == {"raw": "materialized", "totals": "stale", "log": "materialized"}


def test_a_model_is_excluded_from_a_full_refresh(make: Make) -> None:
    project = make(SCRIPTS)
    with pytest.raises(ArgumentError) as caught:
        project.plan(select=["log"], full_refresh=True)
    assert str(caught.value).endswith(
        "log is excluded from being rebuilt: disable_restatement is true\n"
        "  → write disable_restatement false in its kind, or `penstock drop` the table"
    )


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("FULL, partitioned_by (a, nope)", "no column 'nope' to partition by"),
        (
            "INCREMENTAL_BY_PARTITION, partitioned_by (a, nope)",
            "no column 'nope' to partition by",
        ),
        ("FULL, clustered_by nope", "no column 'nope' to sort by"),
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key nope)", "main.t has no key column 'nope'"),
    ],
)
def test_columns_that_the_query_does_not_make_are_placed(make: Make, kind: str, said: str) -> None:
    text = f"MODEL (name t, kind {kind});\nSELECT 1 AS a"
    error = make({"models/t": text}).run().steps[0].error
    assert error is not None
    assert (error.message, error.hint) == (said, "the columns are a")
    assert error.location is not None
    words = ("partitioned_by", "clustered_by", "unique_key")
    (at,) = (text.index(word) for word in words if word in text)
    assert (error.location.line, error.location.column) == (1, at + 1)


@pytest.mark.spark
def test_columns_are_all_that_the_query_makes(make: Make) -> None:
    text = "MODEL (name t, kind FULL, columns (a INT, b INT));\nSELECT 1 AS a{}"
    for made, said in (
        ("", "column b is declared, and the query does not make it"),
        (", 2 AS b, 3 AS c", "the query makes c, which `columns` does not declare"),
    ):
        result = make({"models/t": text.format(made)}).run()
        error = result.steps[0].error
        assert isinstance(error, QueryFailed)
        assert error.message == said
        assert error.location is not None
        assert error.location.line == 1
