"""All tests of rows, aggregates and unique keys of a step, in one pass over its slice.

Counts and aggregates are observed while the rows pass by, which needs no shuffle. Keys need one:
each key of a row is one 64-bit hash, and all hashes of all unique tests are grouped together. Where
none occurs twice, all keys are unique; otherwise the tests are counted one by one, by their values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.checks.check import Check, UniqueKey, quoted
from penstock.lake.spark.session import cache_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PREFIX = "penstock_"  # of the columns of the pass, beside those that aggregates read
_ALL_ROWS_BUT = "spark_partition_id() < 0"  # Spark cannot fold it: it looks at rows, collects none


@dataclass(frozen=True, slots=True)
class Counts:
    """``failures`` of the checks in their order; of one with a key they are known only if no key
    of the pass occurs twice: else it is among ``suspects``."""

    failures: tuple[int, ...]
    suspects: frozenset[int]


def count(session: SparkSession, checks: Sequence[Check], view: str) -> Counts:
    """Run the pass; each check is ``in_pass``."""
    from pyspark.sql import Observation

    args: dict[str, Any] = {name: value for check in checks for name, value in check.args.items()}
    keys = distinct_keys([check.key for check in checks if check.key is not None])
    rows = session.sql(pass_query(checks, keys, view), args=args)
    wanted = metrics(checks)
    observed, repeated = Observation(), Observation()
    if wanted:
        rows = rows.observe(observed, *_columns(session, wanted))
    if keys:
        counts = _columns(session, {"repeated": "count(*)"})
        rows = _repeated(session, rows, len(keys)).observe(repeated, *counts)
    rows.where(_ALL_ROWS_BUT).collect()
    failures: Mapping[str, int | None] = observed.get if wanted else {}
    twice = bool(keys) and repeated.get["repeated"] > 0
    return Counts(
        tuple(failures.get(_flag(at)) or 0 for at, _ in enumerate(checks)),
        frozenset(at for at, check in enumerate(checks) if twice and check.key),
    )


def pass_query(checks: Sequence[Check], keys: Sequence[UniqueKey], view: str) -> str:
    """A column for each test of rows, each column that aggregates read, and each key."""
    columns = [
        f"CASE WHEN {check.predicate} THEN 1 ELSE 0 END AS {_flag(at)}"
        for at, check in enumerate(checks)
        if check.predicate is not None
    ]
    aggregates = [check.aggregate for check in checks if check.aggregate is not None]
    read = dict.fromkeys(name for aggregate in aggregates for name in aggregate.columns)
    columns += map(quoted, read)
    columns += [f"{key.hashed(at)} AS {_key(at)}" for at, key in enumerate(keys)]
    return f"SELECT {', '.join(columns) or '1'} FROM {quoted(view)}"


def metrics(checks: Sequence[Check]) -> dict[str, str]:
    """The number of failures of each test without a key, as aggregates over `pass_query`."""
    return {
        _flag(at): f"sum({_flag(at)})"
        if check.aggregate is None
        else f"CASE WHEN NOT ({check.aggregate.condition}) THEN 1 ELSE 0 END"
        for at, check in enumerate(checks)
        if check.key is None
    }


def distinct_keys(keys: Sequence[UniqueKey]) -> list[UniqueKey]:
    """Without those that are unique where another of the keys is."""
    kept: list[UniqueKey] = []
    for key in sorted(keys, key=lambda key: (len(key.columns), not key.nulls_equal)):
        if not any(known.implies(key) for known in kept):
            kept.append(key)
    return kept


def _repeated(session: SparkSession, rows: DataFrame, keys: int) -> DataFrame:
    """The hashes that occur more than once.

    A row of its own keeps the input of the shuffle from being empty: Spark would then take the
    observed rows out of its plan.
    """
    names = [_key(at) for at in range(keys)]
    hashed = names[0] if keys == 1 else f"explode(array({', '.join(names)}))"
    one_more = session.sql("SELECT CAST(0 AS BIGINT) AS hashed")
    hashes = rows.selectExpr(f"{hashed} AS hashed").where("hashed IS NOT NULL").unionAll(one_more)
    counts = _columns(session, {"occurrences": "count(*)"})
    return hashes.groupBy("hashed").agg(*counts).where("occurrences > 1")


def _columns(session: SparkSession, metrics: Mapping[str, str]) -> list[Column]:
    from pyspark.sql import functions as fn

    return cache_of(session).get(
        ("metrics", *metrics.items()),
        lambda: [fn.expr(f"{sql} AS {name}") for name, sql in metrics.items()],
    )


def _flag(at: int) -> str:
    return f"{_PREFIX}{at}"


def _key(at: int) -> str:
    return f"{_PREFIX}key_{at}"
