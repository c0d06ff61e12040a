"""A data test as SQL over a view of the candidate slice. Pure text; values are bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.lake.naming import quote_identifier

SAMPLE_ROWS = 20


@dataclass(frozen=True, slots=True)
class Check:
    """``failing``: a query of what fails, one row a failure.

    When the failing rows are those of the slice for which ``predicate`` holds, and nothing else,
    ``predicate`` is set too: all such tests of a step are counted in one pass.
    """

    name: str
    failing: str
    predicate: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)


def quoted(name: str) -> str:
    return quote_identifier(name, mark="`")


def of_rows(name: str, view: str, predicate: str, args: Mapping[str, Any] | None = None) -> Check:
    """A test of each row by itself: it fails where ``predicate`` is true."""
    failing = f"SELECT * FROM {quoted(view)} WHERE {predicate}"
    return Check(name, failing, predicate, args or {})


def counting_query(checks: Sequence[Check], view: str) -> str:
    """One query for all tests: rows of (leg, counts), a leg for all row tests, then one a test.

    ``counts`` of leg 0 are those of the row tests in order; of every other leg the first counts. A
    leg without rows is not there. All are counted by one aggregation over all legs: one each
    would be another shuffle each, and Spark plans the rest of a query anew after every one.
    """
    by_row = [check.predicate for check in checks if check.predicate is not None]
    others = [check.failing for check in checks if check.predicate is None]
    columns = [f"c{at}" for at in range(max(1, len(by_row)))]
    legs = []
    if by_row:
        counts = ", ".join(
            f"CASE WHEN {predicate} THEN 1 ELSE 0 END AS {name}"
            for name, predicate in zip(columns, by_row, strict=True)
        )
        legs.append(f"SELECT 0 AS leg, {counts} FROM {quoted(view)}")
    ones = ", ".join(f"1 AS {name}" for name in columns)
    legs += [
        f"SELECT {number} AS leg, {ones} FROM ({failing})"
        for number, failing in enumerate(others, start=1)
    ]
    sums = ", ".join(f"sum({name})" for name in columns)
    return f"SELECT leg, array({sums}) AS counts FROM ({' UNION ALL '.join(legs)}) GROUP BY leg"


def assign_counts(checks: Sequence[Check], legs: Mapping[int, Sequence[int]]) -> list[int]:
    """The failures of each test in order, from the rows of `counting_query`."""
    number, row_test = 0, 0
    found: list[int] = []
    for check in checks:
        if check.predicate is not None:
            found.append(legs[0][row_test] if 0 in legs else 0)
            row_test += 1
        else:
            number += 1
            found.append(legs[number][0] if number in legs else 0)
    return found


def sample_query(check: Check) -> str:
    return f"SELECT * FROM ({check.failing}) LIMIT {SAMPLE_ROWS}"
