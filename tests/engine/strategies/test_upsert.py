"""A merge by rules against plain Python: expression keys, when_matched, merge_filter."""

from __future__ import annotations

import pytest

from penstock.errors import MergeKeyError
from tests.engine.conftest import Make
from tests.engine.toy import rows, step

COLUMNS = "id, name, n"


def script(kind: str, values: str, dialect: str = "spark") -> dict[str, str]:
    query = f"SELECT {COLUMNS} FROM (VALUES {values}) AS v({COLUMNS})"
    made = f"kind INCREMENTAL_BY_UNIQUE_KEY ({kind}), dialect {dialect}"
    return {"models/t": f"MODEL (name s.t, {made});\n{query}"}


BEFORE = "(1, 'a', 1), (2, NULL, 2), (3, 'c', 3)"


@pytest.mark.spark
@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
def test_clauses_in_their_order(make: Make, dialect: str) -> None:
    kind = """
        unique_key (id, coalesce(name, '')),
        when_matched (
          WHEN MATCHED AND source.n < 0 THEN DELETE
          WHEN MATCHED AND source.n > target.n THEN UPDATE SET target.n = source.n + 100
        )"""
    assert make(script(kind, BEFORE, dialect)).run().state == "done"
    after = "(1, 'a', 9), (2, NULL, 0), (3, 'c', -1), (3, 'new', 4)"
    project = make(script(kind, after, dialect))
    result = project.run()
    assert result.state == "done", result.steps[0].error
    found = [(1, "a", 109), (2, None, 2), (3, "new", 4)]
    assert rows(project, f"SELECT {COLUMNS} FROM s.t ORDER BY id, name") == found
    again = make(script(kind, "(1, 'a', 9), (2, NULL, 0)", dialect))
    assert step(again.run(), "t").state == "unchanged"


@pytest.mark.spark
def test_a_filter_lets_what_it_excludes_be_inserted(make: Make) -> None:
    kind = "unique_key id, merge_filter target.n > 1 AND source.n > 0"
    make(script(kind, BEFORE)).run()
    project = make(script(kind, "(1, 'x', 5), (2, 'y', 6), (3, 'c', 3)"))
    assert project.run().state == "done"
    found = [(1, "a", 1), (1, "x", 5), (2, "y", 6), (3, "c", 3)]
    assert rows(project, f"SELECT {COLUMNS} FROM s.t ORDER BY id, n") == found


@pytest.mark.spark
def test_double_and_null_keys_are_errors(make: Make) -> None:
    project = make(script("unique_key lower(name)", "(1, 'a', 1), (2, 'A', 2), (3, NULL, 3)"))
    error = step(project.run(), "t").error
    assert isinstance(error, MergeKeyError)
    assert "(lower(name)): 1 rows with a NULL in it and 1 values that come more than once" in str(
        error
    )
    assert error.location is not None
