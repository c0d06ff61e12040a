"""history: the documents' examples row by row, bad rows, columns, and what is not written.

Tests ``engine/history/versions.py`` (the order of versions within one load);
``engine/history/current.py`` (the view of current versions); ``engine/history/load.py`` (rows with
bad keys and times); ``engine/history/versions.py`` (late rows and open versions); and
``engine/running/redefinition.py`` (a history that others edited).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.results import StepResult
from penstock.errors import DefinitionChanged, MergeKeyError
from penstock.project.project import Project
from tests import duck
from tests.engine.conftest import Make
from tests.engine.strategies import history_sequences as sequences
from tests.engine.toy import rows, step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MENU = """
    MODEL (name db.menu_items, kind SCD_TYPE_2 (unique_key id,));
    SELECT id::INT, name::STRING, price::DOUBLE, updated_at::TIMESTAMP
    FROM VALUES {} AS v(id, name, price, updated_at)
"""
SANDWICH, BURGER, FRIES = "Chicken Sandwich", "Cheeseburger", "French Fries"
MONDAY = [
    (1, SANDWICH, 10.99, "2020-01-01"),
    (2, BURGER, 8.99, "2020-01-01"),
    (3, FRIES, 4.99, "2020-01-01"),
]
TUESDAY = [(1, SANDWICH, 12.99, "2020-01-02"), MONDAY[2], (4, "Milkshake", 3.99, "2020-01-02")]
WEDNESDAY = [
    (1, SANDWICH, 14.99, "2020-01-03"),
    (2, BURGER, 8.99, "2020-01-03"),
    MONDAY[2],
    (4, "Chocolate Milkshake", 3.99, "2020-01-03"),
]
CUSTOMERS = """
    -- pipeline
    -- materialize ducklake://main/dim_customer key=id history track=name,tier deletes=close{}
    -- data_test unique id
    SELECT * FROM VALUES {} AS v(id, name, tier, seen)
"""
ADA, BOB = "(1, 'Ada', 'gold', 1)", "(2, 'Bob', NULL, 1)"


CASE_1 = """
    MODEL (name main.case_1, kind SCD_TYPE_2_BY_TIME (unique_key id, invalidate_hard_deletes true));
    SELECT id, value, updated_at::TIMESTAMP FROM VALUES {} AS v(id, value, updated_at)
"""
CASE_2 = """
    MODEL (name main.case_2, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns (name, status),
      invalidate_hard_deletes true));
    SELECT * FROM VALUES {} AS v(id, name, status)
"""
#: by model: the two loads, and the table after them (history.md, "Cases")
CASES: dict[str, tuple[Sequence[tuple[Any, ...]], ...]] = {
    CASE_1: (
        [(1, "a", "2022-01-01"), (2, "b", "2022-01-02"), (3, "c", "2022-01-03")],
        [(1, "x", "2022-01-04"), (3, "c", "2022-01-03"), (4, "d", "2022-01-04")],
        [
            (1, "a", "1970-01-01 00", "2022-01-04 00"),
            (1, "x", "2022-01-04 00", None),
            (2, "b", "1970-01-01 00", "2023-01-05 00"),
            (3, "c", "1970-01-01 00", None),
            (4, "d", "2022-01-04 00", None),
        ],
    ),
    CASE_2: (
        [(1, "a", "act"), (2, "b", "inact"), (3, "c", "act"), (4, "d", "act")],
        [(1, "x", "act"), (3, "c", "act"), (4, "d", "inact"), (5, "e", "inact")],
        [
            (1, "a", "act", "1970-01-01 00", "2023-01-05 00"),
            (1, "x", "act", "2023-01-05 00", None),
            (2, "b", "inact", "1970-01-01 00", "2023-01-05 00"),
            (3, "c", "act", "1970-01-01 00", None),
            (4, "d", "act", "1970-01-01 00", "2023-01-05 00"),
            (4, "d", "inact", "2023-01-05 00", None),
            (5, "e", "inact", "2023-01-05 00", None),
        ],
    ),
}


def values(found: Sequence[tuple[Any, ...]]) -> str:
    return ", ".join(map(str, found))


def run(make: Make, script: str, at: datetime) -> tuple[Project, StepResult]:
    project = make({"models/t": script})
    (made,) = project.run(fire_time=at).steps
    return project, made


def day(number: int, hour: int = 0) -> datetime:
    return datetime(2020, 1, number, hour, tzinfo=UTC)


def shown(found: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Moments as the documents write them, to the hour."""
    return [
        tuple(str(each)[:13] if isinstance(each, datetime) else each for each in row)
        for row in found
    ]


def test_the_menu_of_the_document(make: Make) -> None:
    for found, at in ((MONDAY, day(1, 1)), (TUESDAY, day(2, 2)), (WEDNESDAY, day(3, 2))):
        project, made = run(make, MENU.format(values(found)), at)
        assert made.state == "done", made.error
    query = (
        "SELECT id, name, price, valid_from, valid_to FROM db.menu_items ORDER BY id, valid_from"
    )
    assert shown(rows(project, query)) == [
        (1, SANDWICH, 10.99, "1970-01-01 00", "2020-01-02 00"),
        (1, SANDWICH, 12.99, "2020-01-02 00", "2020-01-03 00"),
        (1, SANDWICH, 14.99, "2020-01-03 00", None),
        (2, BURGER, 8.99, "1970-01-01 00", "2020-01-02 02"),
        (2, BURGER, 8.99, "2020-01-03 00", None),
        (3, FRIES, 4.99, "1970-01-01 00", None),
        (4, "Milkshake", 3.99, "2020-01-02 00", "2020-01-03 00"),
        (4, "Chocolate Milkshake", 3.99, "2020-01-03 00", None),
    ]
    at_one = "SELECT name, price FROM db.menu_items WHERE id = 1 AND '2020-01-02 01:00:00' >= "
    at_one += "valid_from AND '2020-01-02 01:00:00' < COALESCE(valid_to, "
    at_one += "CAST('2199-12-31 23:59:59+00:00' AS TIMESTAMP))"
    assert rows(project, at_one) == [(SANDWICH, 12.99)]


def test_the_cases_by_time_and_by_column(make: Make) -> None:
    for load, number in ((0, 1), (1, 5)):
        texts = [case.format(values(CASES[case][load])) for case in CASES]
        project = make({f"models/case_{n}": text for n, text in enumerate(texts)})
        made = project.run(fire_time=datetime(2023, 1, number, tzinfo=UTC))
        assert [step.state for step in made.steps] == ["done", "done"]
    query = "SELECT * EXCEPT (updated_at) FROM case_1 ORDER BY id, valid_from"
    assert shown(rows(project, query)) == CASES[CASE_1][2]
    query = "SELECT * FROM case_2 ORDER BY id, valid_from"
    assert shown(rows(project, query)) == CASES[CASE_2][2]


def test_customers_as_windmill_keeps_them(make: Make) -> None:
    project, made = run(make, CUSTOMERS.format("", f"{ADA}, {BOB}"), day(1))
    assert (made.state, made.rows) == ("done", 2), made.error
    table = project.lake("main").table("dim_customer")
    before = {row["id"]: row["rowid"] for row in table_ids(project)}
    _, made = run(make, CUSTOMERS.format("", "(1, 'Ada', 'gold', 7), (2, 'Bob', NULL, 8)"), day(2))
    assert made.state == "unchanged", "seen is not tracked"
    _, made = run(make, CUSTOMERS.format("", "(1, 'Ada', NULL, 2), (3, 'Cy', 'new', 2)"), day(3))
    assert (made.state, made.rows) == ("done", 4), made.error
    assert [check.passed for check in made.checks] == [True], "unique among current rows"
    project, _ = run(make, CUSTOMERS.format("", f"(1, 'Ada', NULL, 2), {BOB}"), day(4))
    with duck.attach(table.catalog.uri, read_only=True) as connection:
        found = connection.execute(
            "SELECT * FROM lk.dim_customer ORDER BY id, valid_from"
        ).fetchall()
        current = connection.execute("SELECT id, seen FROM lk.dim_customer_current ORDER BY id")
        assert current.fetchall() == [(1, 2), (2, 1)]
    assert rows(project, "SELECT * FROM dim_customer ORDER BY id, valid_from") == found
    assert rows(project, "SELECT id, seen FROM dim_customer_current ORDER BY id") == [
        (1, 2),
        (2, 1),
    ]
    assert shown(found) == [
        (1, "Ada", "gold", 1, "2020-01-01 00", "2020-01-03 00", False),
        (1, "Ada", None, 2, "2020-01-03 00", None, True),
        (2, "Bob", None, 1, "2020-01-01 00", "2020-01-03 00", False),
        (2, "Bob", None, 1, "2020-01-04 00", None, True),
        (3, "Cy", "new", 2, "2020-01-03 00", "2020-01-04 00", False),
    ]
    ids = {row["id"]: row["rowid"] for row in table_ids(project, "NOT is_current AND id < 3")}
    assert ids == before, "closed versions keep their row ids"
    project.drop("t")
    assert project.lake("main").views() == [] or not list(project.lake("main").views())


def table_ids(project: Project, where: str = "true") -> list[Any]:
    query = f"SELECT id, rowid FROM dim_customer WHERE {where}"
    return project.lake("main").sql(query).collect()


def test_bad_rows_write_nothing(make: Make) -> None:
    run(make, MENU.format(values(MONDAY)), day(1))
    bad = [*TUESDAY, TUESDAY[0], (None, "x", 1.0, "2020-01-01")]
    script = MENU.format(values(bad).replace("None", "NULL"))
    project, made = run(make, script, day(2))
    assert isinstance(made.error, MergeKeyError)
    assert "1 rows with a NULL in the key (id)" in made.error.message
    assert "1 rows that repeat another's (id, updated_at)" in made.error.message
    assert "id = NULL" in str(made.error.hint)
    assert made.error.location is not None
    assert rows(project, "SELECT count(*) FROM db.menu_items") == [(3,)]


def test_bad_rows_of_the_first_load_make_no_table(make: Make) -> None:
    project, made = run(make, CUSTOMERS.format("", f"{ADA}, {ADA}, (NULL, 'x', 'y', 1)"), day(1))
    assert isinstance(made.error, MergeKeyError)
    assert made.error.data["duplicate_count"] == made.error.data["null_count"] == 1
    assert project.status("t")[0].state == "failed"
    run(make, CUSTOMERS.format("", ADA), day(1))
    _, made = run(make, CUSTOMERS.format("", f"{ADA}, {ADA}"), day(2))
    assert isinstance(made.error, MergeKeyError), "though both are like the open version"
    assert made.error.data["duplicate_count"] == 1


ADDRESSES = {
    "models/by_key": "-- pipeline\n-- materialize ducklake://main/by_key key=id history\n{}",
    "models/by_column": """
        MODEL (name main.by_column, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns (place)));
        {}
    """,
    "models/by_time": """
        MODEL (name main.by_time, kind SCD_TYPE_2_BY_TIME (unique_key id));
        {}
    """,
}


def test_structs_are_compared_and_kept_by_the_names_of_their_fields(make: Make) -> None:
    query = (
        "SELECT id, named_struct({}) AS place, TIMESTAMP '2020-01-0{} 00:00:00' AS updated_at "
        "FROM VALUES (1), (2) AS v(id)"
    )
    loads = ["'zip', '1', 'town', 'x'", "'town', 'x', 'zip', '1'", "'town', 'y', 'zip', '1'"]
    for number, fields in enumerate(loads, 1):
        text = query.format(fields, min(number, 2) if number < 3 else 3)
        project = make({name: script.format(text) for name, script in ADDRESSES.items()})
        made = project.run(fire_time=day(number)).steps
        assert not [each.error for each in made if each.error], made
    for name in ("by_key", "by_column", "by_time"):
        query = f"SELECT place.town, place.zip FROM {name} WHERE id = 1 ORDER BY valid_from"
        assert set(rows(project, query)) == {("x", "1"), ("y", "1")}, name
    assert rows(project, "SELECT count(*) FROM by_column") == [(4,)], "no version for the order"


GUARDED = """
    -- pipeline
    -- materialize ducklake://main/guarded key=id history deletes=close{}
    SELECT id FROM range(20) WHERE id < {}
"""


def test_a_load_that_lacks_most_keys_closes_none(make: Make) -> None:
    run(make, GUARDED.format("", 20), day(1))
    _, made = run(make, GUARDED.format("", 9), day(2))
    assert "guarded would close 11 of 20 keys: more than 50% (max_closed)" in str(made.error)
    assert made.error is not None
    assert "max_closed=100" in str(made.error.hint)
    _, made = run(make, GUARDED.format("", 0), day(2))
    assert "would close 20 of 20 keys: the SELECT returned no rows" in str(made.error)
    _, made = run(make, GUARDED.format(" max_closed=60", 9), day(2))
    assert made.state == "done", made.error
    project, made = run(make, GUARDED.format(" max_closed=100", 0), day(3))
    assert rows(project, "SELECT count(*) FROM guarded WHERE is_current") == [(0,)]


def test_columns_are_frozen_until_they_may_be_added(make: Make) -> None:
    run(make, CUSTOMERS.format("", ADA), day(1))
    wider = CUSTOMERS.replace("(id, name", "(id, name, city").format
    _, made = run(make, wider("", "(1, 'Ada', 'Ulm', 'gold', 1)"), day(2))
    assert made.state == "failed"
    assert "city is new" in str(made.error)
    assert "--full-refresh" in str(made.error)
    _, made = run(make, wider(" on_schema_change=sync", "(1, 'Ada', 'Ulm', 'gold', 1)"), day(3))
    assert made.state == "unchanged" or made.rows == 1, made.error
    _, made = run(make, CUSTOMERS.format(" on_schema_change=sync", ADA), day(4))
    assert "city is missing" in str(made.error)
    reserved = CUSTOMERS.replace("seen)", "valid_to)").format("", ADA)
    _, made = run(make, reserved, day(5))
    assert "valid_to, which Penstock writes itself" in str(made.error)


def test_a_history_that_was_edited_is_refused_until_it_is_rolled_back(make: Make) -> None:
    project, _ = run(make, CUSTOMERS.format("", ADA), day(1))
    table = project.lake("main").table("dim_customer")
    good = project.snapshots("main")[0].id
    table.update({"tier": "'silver'"}, "id = 1")
    changed = CUSTOMERS.format("", "(1, 'Ada', 'lead', 1)")
    project, made = run(make, changed, day(2))
    assert isinstance(made.error, DefinitionChanged)
    assert f"changed outside of its runs, in snapshot {good + 1}" in made.error.message
    assert "rollback_to_snapshot('main.dim_customer'" in str(made.error.hint)
    table.rollback(good)
    project, made = run(make, changed, day(3))
    assert made.state == "done", made.error
    found = rows(project, "SELECT tier FROM dim_customer ORDER BY valid_from")
    assert found == [("gold",), ("lead",)]


ONCE = {
    "models/a": "-- pipeline\n-- materialize ducklake://main/a key=id history deletes=close\n",
    "models/b": """
        MODEL (name main.b, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns *,
          time_data_type DATE, invalidate_hard_deletes true, execution_time_as_valid_from true));
    """,
    "models/c": """
        MODEL (name main.c, kind SCD_TYPE_2_BY_TIME (unique_key id, updated_at_name at,
          invalidate_hard_deletes true, updated_at_as_valid_from true));
    """,
}
SELECT = "SELECT id, tier{} FROM VALUES {} AS v(id, tier, at)"


def test_a_version_that_was_never_valid_is_not_stored(make: Make) -> None:
    loads = [[(1, "silver"), (2, "x"), (3, "x")], [(1, "gold"), (2, "x")]]
    for load, fired in zip(loads, (day(3, 8), day(3, 8)), strict=True):
        rows_ = values([(*row, "2020-02-01") for row in load])  # updated ahead of the run
        at = {"models/c": ", at::TIMESTAMP AS at"}
        project = make({n: head + SELECT.format(at.get(n, ""), rows_) for n, head in ONCE.items()})
        assert [made.state for made in project.run(fire_time=fired).steps] == ["done"] * 3
    uri = project.lake("main").catalog.uri
    for table, first in (("a", "2020-01-03"), ("b", "2020-01-03"), ("c", "2020-02-01")):
        query = f"SELECT id, tier, valid_from::DATE::TEXT, valid_to FROM {table} ORDER BY id"
        assert duck.rows(uri, query) == [(1, "gold", first, None), (2, "x", first, None)]


def test_readers_of_the_view_come_after_the_history(make: Make) -> None:
    reader = """
        -- pipeline
        -- on ducklake://main/dim_customer_current
        -- materialize ducklake://main/golden
        SELECT count(*) AS n, max(valid_from) AS since FROM dim_customer_current
    """
    project = make({"models/t": CUSTOMERS.format("", f"{ADA}, {BOB}"), "models/a": reader})
    result = project.run(fire_time=day(1))
    assert step(result, "a").state == "done", step(result, "a").error
    assert shown(rows(project, "SELECT * FROM golden")) == [(2, "2020-01-01 00")]
    since = project.lineage("a.since").columns[0]
    assert [(each.asset, each.column) for each in since.links] == [
        ("main.dim_customer", "valid_from")
    ]


@pytest.mark.parametrize("form", sorted(sequences.FORMS.keys() - {"by time"}))  # closing has it
def test_sequences_by_chance_are_those_of_the_reference(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    seeds = range(1)  # history_hunt tries thousands
    table = sequences.run(spark, tmp_path, sequences.FORMS[form], seeds)
    assert sequences.faults(table, seeds) == {}
