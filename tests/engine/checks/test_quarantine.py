"""severity=quarantine: rows that fail are set aside in the commit of the others.

Tests ``engine/running/quarantine.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ModelError
from penstock.project.project import Project
from tests.engine.conftest import Make
from tests.engine.toy import rows, step, write_project

TESTS = """-- data_test not_null id severity=quarantine
    -- data_test accepted_range amount min=0 severity=quarantine"""
SOURCE = (
    "SELECT id, amount, '{partition}' AS day FROM VALUES %s AS v(id, amount) "
    "WHERE '{partition}' > '2026'"
)
HEADERS = {
    "replaced": "partitioned daily\n    -- materialize ducklake://main/replaced",
    "merged": "partitioned daily\n    -- materialize ducklake://main/merged key=id",
    "added": "partitioned daily\n    -- materialize ducklake://main/added append",
}
BAD = "(1, 5), (NULL, -1), (2, -7), (3, 4)"


def scripts(values: str) -> dict[str, str]:
    return {
        f"models/{name}": f"-- pipeline\n-- {header}\n{TESTS}\n{SOURCE % values}"
        for name, header in HEADERS.items()
    }


@pytest.mark.spark
def test_rows_that_fail_are_set_aside_in_the_same_commit(make: Make) -> None:
    project = make(scripts(BAD))
    result = project.run("2026-01-01")
    for name in HEADERS:
        made = step(result, name)
        assert made.state == "done", made.error
        assert rows(project, f"SELECT id FROM {name} ORDER BY id") == [(1,), (3,)]
        query = "SELECT id, amount, concat_ws('; ', _rejected_tests), _rejected_slice, "
        query += f"_rejected_run = '{result.run_id}' FROM {name}_rejected ORDER BY amount"
        assert rows(project, query) == [
            (2, -7, "accepted_range amount", "2026-01-01", True),
            (None, -1, "not_null id; accepted_range amount", "2026-01-01", True),
        ]
        assert [(each.failures, each.outcome) for each in made.checks] == [
            (1, "warned"),
            (2, "warned"),
        ]
        own, aside = (
            project.lake("main").table(each).info() for each in (name, f"{name}_rejected")
        )
        assert own.begin_snapshot == aside.begin_snapshot


DAYS = """
    -- pipeline
    -- materialize ducklake://main/src
    SELECT id, amount, day FROM VALUES {} AS v(id, amount)
    CROSS JOIN VALUES ('2026-01-01'), ('2026-01-02'), ('2026-01-03') AS d(day)
"""
OF_DAYS = f"""
    -- pipeline
    -- {HEADERS["replaced"]}
    {TESTS}
    SELECT id, amount, day FROM src WHERE day = '{{partition}}'
"""


@pytest.mark.spark
def test_a_rerun_replaces_the_rejected_rows_of_its_slices(make: Make) -> None:
    """The first run makes three slices in one job."""
    project = make({"models/src": DAYS.format(BAD), "models/replaced": OF_DAYS})
    first = project.run(from_="2026-01-01", to="2026-01-03")
    assert [each.state for each in first.steps if each.name == "replaced"] == ["done"] * 3
    make({"models/src": DAYS.format("(1, 5), (2, 7), (4, -4)"), "models/replaced": OF_DAYS}).run(
        select="src"
    )
    result = project.run("2026-01-02", select="replaced")
    assert [(each.failures, each.passed) for each in step(result, "replaced").checks] == [
        (0, True),
        (1, False),
    ]
    query = "SELECT _rejected_slice, id FROM replaced_rejected ORDER BY ALL"
    assert rows(project, query) == [
        ("2026-01-01", None),
        ("2026-01-01", 2),
        ("2026-01-02", 4),
        ("2026-01-03", None),
        ("2026-01-03", 2),
    ]


PAIRS = """
    -- pipeline
    -- partitioned dynamic key="$.slice"
    -- materialize ducklake://main/pairs
    -- data_test unique id {}
    SELECT 1 AS id, split_part('{{partition}}', ':', 1) AS day,
      split_part('{{partition}}', ':', 2) AS customer
"""


@pytest.mark.spark
def test_slices_of_two_dimensions_and_keys_of_the_whole_table(make: Make) -> None:
    project = make({"models/pairs": PAIRS.format("")})
    for pair in ("2026-01-01:eu", "2026-01-01:us"):
        assert project.run(payload={"slice": pair}).state == "done"
    query = "SELECT day, customer FROM pairs ORDER BY ALL"
    assert rows(project, query) == [("2026-01-01", "eu"), ("2026-01-01", "us")]
    project = make({"models/pairs": PAIRS.format("whole table")})
    (check,) = step(project.run(payload={"slice": "2026-01-01:eu"}), "pairs").checks
    assert (check.name, check.failures) == ("unique id whole table", 1)
    assert "_wm_partition" not in check.query


REFUSED = {
    "-- materialize ducklake://main/t\n-- data_test unique id": "id does not test single rows",
    "-- materialize ducklake://main/t\n-- data_test row_count min=1": "does not test single rows",
    "-- materialize ducklake://main/t key=id history deletes=close\n-- data_test not_null id": (
        "the history would close the keys"
    ),
    "-- materialize manual ducklake://main/t\n-- data_test not_null id": "",
}


@pytest.mark.parametrize(("header", "why"), REFUSED.items())
def test_it_is_refused_where_it_cannot_work(tmp_path: Path, header: str, why: str) -> None:
    text = f"{header} severity=quarantine\nSELECT 1 AS id"
    with pytest.raises(ModelError, match=f"cannot set rows aside: .*{why}"):
        Project.load(write_project(tmp_path / "p", {"models/t": text}))


def test_audits_of_model_have_it_too(tmp_path: Path) -> None:
    text = """MODEL (name t, kind FULL,
      audits (not_null(columns := (id), severity := quarantine)));
    SELECT 1 AS id"""
    project = Project.load(write_project(tmp_path / "p", {"models/t": text}))
    assert [test.severity for test in project.model("t").data_tests] == ["quarantine"]
