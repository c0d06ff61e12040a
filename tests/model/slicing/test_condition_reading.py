"""Conditions of queries as expressions: each form that docs/inputs.md lists, and what is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sqlglot

from penstock.model.slicing.condition_reading import read_conditions

PAGE = Path(__file__).parents[3] / "docs/inputs.md"
#: a condition with each function of the page
CONDITIONS = {
    "date_add": "date_add(day, 1) = '2026-01-02'",
    "date_sub": "date_sub(day, 1) = '2026-01-02'",
    "add_months": "add_months(day, 1) = '2026-01-02'",
    "datediff": "datediff('2026-01-02', day) = 1",
    "last_day": "last_day(day) = '2026-01-31'",
    "trunc": "trunc(day, 'MONTH') = '2026-01-01'",
    "date_trunc": "date_trunc('MONTH', day) = '2026-01-01'",
    "year": "year(day) = 2026",
    "quarter": "quarter(day) = 1",
    "month": "month(day) = 1",
    "weekofyear": "weekofyear(day) = 1",
    "day": "day(day) = 1",
    "dayofmonth": "dayofmonth(day) = 1",
    "dayofyear": "dayofyear(day) = 1",
    "dayofweek": "dayofweek(day) = 1",
    "hour": "hour(day) = 1",
    "extract": "extract(YEAR FROM day) = 2026",
    "substring": "substring(day, 1, 4) = '2026'",
    "left": "left(day, 4) = '2026'",
    "right": "right(day, 2) = '01'",
    "concat": "concat(day, 'x') = '2026-01-01x'",
    "||": "day || 'x' = '2026-01-01x'",
    "replace": "replace(day, '-', '') = '20260101'",
    "upper": "upper(day) = 'A'",
    "lower": "lower(day) = 'a'",
    "trim": "trim(day) = 'a'",
    "length": "length(day) = 10",
    "startswith": "startswith(day, '2026')",
    "endswith": "endswith(day, '01')",
    "contains": "contains(day, '-01-')",
    "if": "if(day = '2026-01-01', true, false)",
    "coalesce": "coalesce(day, '2026-01-01') = '2026-01-01'",
    "nullif": "nullif(day, '2026-01-01') IS NULL",
    "greatest": "greatest(day, '2026-01-01') = '2026-01-01'",
    "least": "least(day, '2026-01-01') = '2026-01-01'",
    "to_date": "to_date(day) = DATE '2026-01-01'",
    "date_format": "date_format(day, 'yyyy-MM') = '2026-01'",
    "+": "year(day) + 1 = 2027",
    "-": "year(day) - 1 = 2025",
    "*": "month(day) * 2 = 2",
    "%": "month(day) % 2 = 0",
    "<=>": "day <=> '2026-01-01'",
}
#: other words of the list: values, formats and statements
OTHERS = {"yyyy", "MM", "dd"}


def conditions_of(text: str) -> int:
    tree = sqlglot.parse_one(text, read="spark", into=sqlglot.exp.Condition)
    return len(read_conditions(tree, text, lambda _: None))


def test_the_page_lists_the_functions_that_are_tried_here() -> None:
    page = PAGE.read_text()
    begin = page.index("These forms are known:")
    listed = re.findall(r"`([^`]+)`", page[begin : page.index("A condition with anything else")])
    assert set(listed) - OTHERS == set(CONDITIONS)


@pytest.mark.parametrize("function", CONDITIONS)
def test_each_function_of_the_page_is_evaluated(function: str) -> None:
    assert conditions_of(CONDITIONS[function]) == 1


@pytest.mark.parametrize(
    "text",
    ["day RLIKE '2026'", "my_function(day) = 1", "day = other", "day = '2026-01-01' OR x = 1"],
)
def test_what_is_not_known_is_no_condition(text: str) -> None:
    assert conditions_of(text) == 0
