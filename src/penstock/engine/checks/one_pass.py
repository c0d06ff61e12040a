"""All tests of rows, aggregates and unique keys of a step, in one pass over its slice.

The pass finds whether anything fails, as cheaply as it can: Spark observes metrics row by row,
outside of the code that it generates. Keys need a shuffle: each key of a row is one 64-bit hash,
and all hashes of all unique tests are grouped together; a row that fails a test of rows has a mark
in place of a hash. Only where there is a mark, or a hash that occurs twice, are failures counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.checks.check import Aggregate, Check, UniqueKey, quoted
from penstock.spark.functions import expr, run_sql
from penstock.spark.session import cache_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PREFIX = "penstock_"  # of the columns of the pass, beside those that aggregates read
_ALL_ROWS_BUT = "spark_partition_id() < 0"  # Spark cannot fold it: it looks at rows, collects none
_MARK = 1  # in place of a hash; a hash that is the same only makes tests be counted


@dataclass(frozen=True, slots=True)
class Counts:
    """``failures`` of the checks in their order; those of ``suspects`` are not known yet: of unique
    tests, where a key of the pass occurs twice."""

    failures: tuple[int, ...]
    suspects: frozenset[int]


def count(session: SparkSession, checks: Sequence[Check], view: str) -> Counts:
    """Run the pass; each check is ``in_pass``."""
    of_rows = {at: check for at, check in enumerate(checks) if check.predicate is not None}
    whole = {at: check.aggregate for at, check in enumerate(checks) if check.aggregate is not None}
    keys = distinct_keys([check.key for check in checks if check.key is not None])
    failures: dict[int, int] = {}
    fails = True  # possibly, tests of rows or of keys
    if keys or whole:
        args = _args(of_rows.values())
        rows = run_sql(session, pass_query(checks, keys, view), args=args)
        failures, fails = _pass(session, rows, whole, len(keys), marked=bool(of_rows))
    if of_rows and fails:
        failures |= _count_rows(session, of_rows, view)
    keyed = frozenset(at for at, check in enumerate(checks) if check.key)
    return Counts(
        tuple(failures.get(at, 0) for at, _ in enumerate(checks)),
        keyed if fails else frozenset(),
    )


def _pass(
    session: SparkSession,
    rows: DataFrame,
    whole: Mapping[int, Aggregate],
    keys: int,
    *,
    marked: bool,
) -> tuple[dict[int, int], bool]:
    """The failures of aggregates, and whether tests of rows or of keys may fail."""
    from pyspark.sql import Observation

    observed, repeated = Observation(), Observation()
    wanted = metrics(whole) | (
        {_flag("rows"): f"sum({_flag('rows')})"} if not keys and marked else {}
    )
    if wanted:
        rows = rows.observe(observed, *_columns(session, wanted))
    if keys:
        counts = _columns(session, {"repeated": "count(*)"})
        rows = _repeated(session, rows, keys).observe(repeated, *counts)
    rows.where(_ALL_ROWS_BUT).collect()
    found: Mapping[str, int | None] = observed.get if wanted else {}
    fails = bool(keys) and repeated.get["repeated"] > 0
    failures = {at: found[_flag(at)] or 0 for at in whole}
    return failures, fails or bool(found.get(_flag("rows")))


def _count_rows(session: SparkSession, checks: Mapping[int, Check], view: str) -> dict[int, int]:
    """The failures of tests of rows, observed while the failing rows pass by."""
    from pyspark.sql import Observation

    observed = Observation()
    query = failing_rows(checks, view)
    wanted = _columns(session, {_flag(at): f"sum({_flag(at)})" for at in checks})
    rows = run_sql(session, query, args=_args(checks.values())).observe(observed, *wanted)
    rows.where(_ALL_ROWS_BUT).collect()
    found = observed.get
    return {at: found[_flag(at)] or 0 for at in checks}


def _args(checks: Iterable[Check]) -> dict[str, Any]:
    return {name: value for check in checks for name, value in check.args.items()}


def failing_rows(checks: Mapping[int, Check], view: str) -> str:
    """The rows that fail a test of rows: a column each, 1 in those of the tests that fail."""
    flags = (
        f"CASE WHEN {check.predicate} THEN 1 ELSE 0 END AS {_flag(at)}"
        for at, check in checks.items()
    )
    return f"SELECT {', '.join(flags)} FROM {quoted(view)} WHERE {_any_of(checks.values())}"


def _any_of(checks: Iterable[Check]) -> str:
    return " OR ".join(f"({check.predicate})" for check in checks if check.predicate is not None)


def pass_query(checks: Sequence[Check], keys: Sequence[UniqueKey], view: str) -> str:
    """Each column that aggregates read, and each key; a mark for a row that fails in place of the
    first key, or beside the columns where there are no keys.
    """
    aggregates = [check.aggregate for check in checks if check.aggregate is not None]
    read = dict.fromkeys(name for aggregate in aggregates for name in aggregate.columns)
    columns = list(map(quoted, read))
    hashes = [key.hashed(at) for at, key in enumerate(keys)]
    fails = _any_of(checks)
    if fails and hashes:
        hashes[0] = f"CASE WHEN {fails} THEN {_MARK}L ELSE {hashes[0]} END"
    elif fails:
        columns.append(f"CASE WHEN {fails} THEN 1 ELSE 0 END AS {_flag('rows')}")
    columns += [f"{hashed} AS {_key(at)}" for at, hashed in enumerate(hashes)]
    return f"SELECT {', '.join(columns) or '1'} FROM {quoted(view)}"


def metrics(aggregates: Mapping[int, Aggregate]) -> dict[str, str]:
    """Return whether each aggregate fails, over `pass_query`."""
    return {
        _flag(at): f"CASE WHEN NOT ({aggregate.condition}) THEN 1 ELSE 0 END"
        for at, aggregate in aggregates.items()
    }


def distinct_keys(keys: Sequence[UniqueKey]) -> list[UniqueKey]:
    """Without those that are unique where another of the keys is."""
    kept: list[UniqueKey] = []
    for key in sorted(keys, key=lambda key: (len(key.columns), not key.nulls_equal)):
        if not any(known.implies(key) for known in kept):
            kept.append(key)
    return kept


def _repeated(session: SparkSession, rows: DataFrame, keys: int) -> DataFrame:
    """The hashes that occur more than once, and the mark.

    A row of its own keeps the input of the shuffle from being empty: Spark would then take the
    observed rows out of its plan.
    """
    names = [_key(at) for at in range(keys)]
    hashed = names[0] if keys == 1 else f"explode(array({', '.join(names)}))"
    one_more = run_sql(session, "SELECT CAST(0 AS BIGINT) AS hashed")
    hashes = rows.selectExpr(f"{hashed} AS hashed").where("hashed IS NOT NULL").unionAll(one_more)
    counts = _columns(session, {"occurrences": "count(*)"})
    return hashes.groupBy("hashed").agg(*counts).where(f"occurrences > 1 OR hashed = {_MARK}")


def _columns(session: SparkSession, metrics: Mapping[str, str]) -> list[Column]:

    return cache_of(session).get(
        ("metrics", *metrics.items()),
        lambda: [expr(f"{sql} AS {name}") for name, sql in metrics.items()],
    )


def _flag(at: int | str) -> str:
    return f"{_PREFIX}{at}"


def _key(at: int) -> str:
    return f"{_PREFIX}key_{at}"
