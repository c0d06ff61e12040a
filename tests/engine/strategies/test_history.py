"""history: the documents' examples row by row, bad rows, columns, and what is not written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.engine.results import StepResult
from penstock.project import Project
from tests.engine.conftest import Make
from tests.engine.toy import rows

pytestmark = pytest.mark.spark

MENU = """
    MODEL (name db.menu_items, kind {kind} (unique_key id,));
    SELECT id::INT, name::STRING, price::DOUBLE, updated_at::TIMESTAMP
    FROM VALUES {values} AS v(id, name, price, updated_at)
"""
MONDAY = "(1, 'Chicken Sandwich', 10.99, '2020-01-01'), (2, 'Cheeseburger', 8.99, '2020-01-01'), "
MONDAY += "(3, 'French Fries', 4.99, '2020-01-01')"
TUESDAY = "(1, 'Chicken Sandwich', 12.99, '2020-01-02'), (3, 'French Fries', 4.99, '2020-01-01'), "
TUESDAY += "(4, 'Milkshake', 3.99, '2020-01-02')"
WEDNESDAY = "(1, 'Chicken Sandwich', 14.99, '2020-01-03'), (2, 'Cheeseburger', 8.99, '2020-01-03'),"
WEDNESDAY += (
    "(3, 'French Fries', 4.99, '2020-01-01'), (4, 'Chocolate Milkshake', 3.99, '2020-01-03')"
)


def run(make: Make, script: str, at: datetime, name: str = "t") -> tuple[Project, StepResult]:
    project = make({f"models/{name}": script})
    (made,) = project.run(fire_time=at).steps
    return project, made


def day(number: int, hour: int = 0) -> datetime:
    return datetime(2020, 1, number, hour, tzinfo=UTC)


def test_the_menu_of_the_document(make: Make) -> None:
    states = []
    for values, at in ((MONDAY, day(1, 1)), (TUESDAY, day(2, 2)), (WEDNESDAY, day(3, 2))):
        script = MENU.format(kind="SCD_TYPE_2", values=values)
        project, made = run(make, script, at)
        assert made.state == "done", made.error
        states.append(made.rows)
    assert states == [3, 5, 8]
    query = (
        "SELECT id, name, price, valid_from, valid_to FROM db.menu_items ORDER BY id, valid_from"
    )
    found = [(i, n, p, _text(start), _text(end)) for i, n, p, start, end in rows(project, query)]
    assert found == [
        (1, "Chicken Sandwich", 10.99, "1970-01-01 00", "2020-01-02 00"),
        (1, "Chicken Sandwich", 12.99, "2020-01-02 00", "2020-01-03 00"),
        (1, "Chicken Sandwich", 14.99, "2020-01-03 00", None),
        (2, "Cheeseburger", 8.99, "1970-01-01 00", "2020-01-02 02"),
        (2, "Cheeseburger", 8.99, "2020-01-03 00", None),
        (3, "French Fries", 4.99, "1970-01-01 00", None),
        (4, "Milkshake", 3.99, "2020-01-02 00", "2020-01-03 00"),
        (4, "Chocolate Milkshake", 3.99, "2020-01-03 00", None),
    ]


def _text(moment: Any) -> str | None:
    return None if moment is None else str(moment)[:13]
