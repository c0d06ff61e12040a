"""Expressions that conditions are evaluated with, compared with what Spark makes of them.

``python -m tests.model.slicing.evaluated --values 2000 --zone America/New_York --no-ansi`` tries
values by chance, in a session of its own.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from penstock.model.slicing.condition_reading import read_conditions
from penstock.model.slicing.evaluated_values import Casts, Unknown
from penstock.model.slicing.evaluation import Evaluator, Expression
from penstock.sql.text import parse_expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: of a column ``c``, which is a date, a time or a text of either
VALUES = (
    "date_add(c, 1)", "date_sub(c, 3)", "datediff('2026-03-01', c)", "datediff(c, '2026-03-01')",
    "date_diff(DAY, CAST(c AS DATE), DATE '2026-03-01')", "add_months(c, -1)", "add_months(c, 13)",
    "CAST(c AS DATE)", "to_date(c)", "CAST(c AS TIMESTAMP)", "CAST(c AS STRING)", "last_day(c)",
    "CAST(CAST(c AS TIMESTAMP) AS DATE)", "CAST(CAST(c AS TIMESTAMP) AS STRING)",
    "CAST(CAST(c AS DATE) AS TIMESTAMP_NTZ)", "CAST(c AS DATE) + INTERVAL 1 DAY",
    "CAST(c AS DATE) - INTERVAL 2 MONTH", "CAST(c AS DATE) + INTERVAL 1 YEAR",
    "CAST(c AS DATE) + INTERVAL 2 WEEKS", "CAST(c AS DATE) - 2", "CAST(c AS DATE) + 2",
    "CAST(c AS TIMESTAMP) + INTERVAL 1 HOUR", "CAST(c AS TIMESTAMP) - INTERVAL 30 MINUTES",
    "trunc(c, 'MM')", "trunc(c, 'YEAR')", "trunc(c, 'WEEK')", "trunc(c, 'QUARTER')",
    "date_trunc('YEAR', c)", "date_trunc('QUARTER', c)", "date_trunc('MONTH', c)",
    "date_trunc('WEEK', c)", "date_trunc('DAY', c)", "date_trunc('HOUR', c)",
    "date_trunc('MINUTE', c)", "year(c)", "quarter(c)", "month(c)", "weekofyear(c)", "day(c)",
    "dayofmonth(c)", "dayofyear(c)", "dayofweek(c)", "hour(c)", "extract(YEAR FROM c)",
    "extract(WEEK FROM c)", "extract(DOW FROM c)", "extract(DOY FROM c)", "extract(DAY FROM c)",
    "date_format(c, 'yyyy-MM')", "date_format(c, 'yyyyMMdd')",
    "to_date(replace(substring(c, 1, 10), '-', ''), 'yyyyMMdd')", "substring(c, 1, 7)",
    "substring(c, -2)", "substring(c, -12, 5)", "substring(c, 0, 3)", "substring(c, 6, 2)",
    "left(c, 4)", "right(c, 2)", "concat(c, 'x')", "c || 'x'", "replace(c, '-', '')",
    "replace(c, '', 'x')", "upper(c)", "lower(c)", "trim(c)", "length(c)", "coalesce(c, NULL)",
    "if(c = '2026-02-28', 'a', 'b')", "CASE WHEN year(c) = 2026 THEN 1 ELSE 2 END",
    "nullif(month(c), 2)", "greatest(c, NULL)", "least(year(c), 2026)",
    "year(c) * 100 + month(c)", "year(c) - 2026", "day(c) % 2", "-day(c)",
    "CAST(substring(c, 1, 4) AS INT)",
)  # fmt: skip
CONDITIONS = (
    "c = '2026-02-28'", "c <> '2026-02-28'", "c < '2026-02-28'", "c >= DATE '2026-02-28'",
    "c = DATE '2026-02-28'", "c <= TIMESTAMP '2026-02-28 00:00:00'", "c <=> '2026-02-28'",
    "c <=> NULL", "c BETWEEN '2026-01-01' AND '2026-02-28'", "c IN ('2026-02-28', '2026-03-01')",
    "c NOT IN ('2026-02-28')", "CAST(c AS DATE) IN (DATE '2026-02-28', NULL)", "c IS NULL",
    "c IS NOT NULL", "NOT (c > '2026-02-28')", "c > '2026-01-31' AND c < '2026-03-01'",
    "c = '2026-01-31' OR c IS NULL", "(c = '2026-02-28') IS TRUE", "(c < '2026-03') IS NOT FALSE",
    "CASE c WHEN '2026-02-28' THEN TRUE ELSE FALSE END", "substring(c, 1, 4) = 2026",
    "c LIKE '2026-0%'", "c LIKE '2026-__-01%'", "c NOT LIKE '%1'", "startswith(c, '2026')",
    "endswith(c, '1')", "contains(c, '-02-')", "CAST(c AS DATE) = '2026-02'",
    "datediff(c, '2026-03-01') BETWEEN -40 AND 2",
)  # fmt: skip
#: what is NULL of most values
_NULL_ONLY = frozenset({"CAST(c AS DATE) IN (DATE '2026-02-28', NULL)"})
DAYS = tuple(map(date.fromisoformat, ("2024-02-29", "2025-12-28", "2026-01-01", "2026-01-31",
             "2026-02-28", "2026-03-01", "2026-03-29", "2026-10-25")))  # fmt: skip
TIMES = ("00:00:00", "02:30:00", "12:10:05.5", "23:59:59.999999")
#: literals of a column's values, by its type
LITERALS: Mapping[str, Sequence[str]] = {
    "DATE": [f"DATE '{day}'" for day in DAYS],
    "STRING": [f"'{day}'" for day in DAYS] + ["'2026-02-28 10:11:12'"],
    "TIMESTAMP": [f"TIMESTAMP '{day} {time}'" for day in DAYS for time in TIMES],
}


def expression_of(text: str) -> Expression:
    """Return an expression about the column ``c``."""
    return read_conditions(parse_expression(text), text, lambda _: None)["", "c"].expression


def differences(spark: SparkSession, literals: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield what differs from Spark, and the expressions whose value is never known."""
    zone = ZoneInfo(str(spark.conf.get("spark.sql.session.timeZone")))
    evaluator = Evaluator(Casts(zone), {})
    for kind, values in literals.items():
        shown = [*values, f"CAST(NULL AS {kind})"]
        rows = _computed(spark, [(text,) for text in shown])
        for text in (*VALUES, *CONDITIONS):
            expression, known = expression_of(text), 0
            for row in rows:
                found = evaluator.value(expression, _single(row["c"]))
                if isinstance(found, Unknown) or (isinstance(found, frozenset) and len(found) > 1):
                    continue
                found = next(iter(found)) if isinstance(found, frozenset) else found
                known += found is not None
                expected = _single(row[text])
                if (found, type(found)) != (expected, type(expected)):
                    yield f"{text} of {kind} {row['c']}: {found!r}, in Spark {expected!r}"
            if not known and text not in _NULL_ONLY:
                yield f"{text} of {kind} is never known"


def _computed(spark: SparkSession, rows: Sequence[tuple[str]]) -> list[Mapping[str, Any]]:
    """Return the column and all expressions of each of its values; times as microseconds."""
    listed = ", ".join(f"({value})" for (value,) in rows)
    names = ("c", *VALUES, *CONDITIONS)
    table = spark.sql(f"SELECT c FROM VALUES {listed} AS v (c)")
    types = dict(table.selectExpr(*(f"{e} AS e{n}" for n, e in enumerate(names))).dtypes)
    columns = [
        f"struct(unix_micros(CAST({e} AS TIMESTAMP)) AS micros) AS e{n}"
        if types[f"e{n}"].startswith("timestamp")
        else f"{e} AS e{n}"
        for n, e in enumerate(names)
    ]
    found = table.selectExpr(*columns).collect()
    return [dict(zip(names, row, strict=True)) for row in found]


def _single(value: Any) -> Any:
    """Return a value of Spark as the evaluator has it."""
    if not isinstance(value, tuple):
        return value
    (micros,) = value
    start = datetime(1970, 1, 1, tzinfo=UTC)
    return None if micros is None else start + timedelta(microseconds=micros)


def by_chance(number: int, seed: int) -> Mapping[str, Sequence[str]]:
    """Return values of each type, drawn from the years around the ones of the conditions."""
    draw = random.Random(seed)
    moments = [
        datetime(2023, 12, 1) + timedelta(microseconds=draw.randrange(4 * 366 * 86_400_000_000))  # noqa: DTZ001 - of the session's zone
        for _ in range(number)
    ]
    days = [moment.date() for moment in moments]
    return {
        "DATE": [f"DATE '{day}'" for day in days],
        "STRING": [f"'{day}'" for day in days],
        "TIMESTAMP": [f"TIMESTAMP '{moment}'" for moment in moments],
    }


def main() -> None:
    from pyspark.sql import SparkSession

    parser = argparse.ArgumentParser()
    parser.add_argument("--values", type=int, default=500)
    parser.add_argument("--zone", default="UTC")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-ansi", action="store_true")
    asked = parser.parse_args()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.ansi.enabled", str(not asked.no_ansi).lower())
    spark = builder.config("spark.sql.session.timeZone", asked.zone).getOrCreate()
    found = list(differences(spark, by_chance(asked.values, asked.seed)))
    spark.stop()
    print("\n".join(found) or "nothing differs")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
