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

    ``counts`` of leg 0 are those of the row tests in order; every other leg has one count.
    """
    by_row = [check.predicate for check in checks if check.predicate is not None]
    legs = []
    if by_row:
        counts = ", ".join(f"count_if({predicate})" for predicate in by_row)
        legs.append(f"SELECT 0 AS leg, array({counts}) AS counts FROM {quoted(view)}")
    others = [check.failing for check in checks if check.predicate is None]
    legs += [
        f"SELECT {number} AS leg, array(count(*)) AS counts FROM ({failing})"
        for number, failing in enumerate(others, start=1)
    ]
    return " UNION ALL ".join(legs)


def assign_counts(checks: Sequence[Check], legs: Mapping[int, Sequence[int]]) -> list[int]:
    """The failures of each test in order, from the rows of `counting_query`."""
    by_row = iter(legs.get(0, ()))
    others = iter(sorted(leg for leg in legs if leg))
    return [
        next(by_row) if check.predicate is not None else legs[next(others)][0] for check in checks
    ]


def sample_query(check: Check) -> str:
    return f"SELECT * FROM ({check.failing}) LIMIT {SAMPLE_ROWS}"
