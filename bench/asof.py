"""ASOF JOIN of facts with a tenth as many versions, against Spark's range join over the intervals
in which versions are valid; with ``--own`` also against Spark's own plan of ASOF JOIN, which takes
minutes where keys have many versions.

``--versions`` is how many versions a key has. The range join compares each fact with all of them;
it is given the intervals, which Penstock does not need.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench import harness
from penstock.engine.inputs.asof import with_asof
from penstock.model.query.query import read_query
from penstock.model.values.asset import Names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS, RANGE, OWN = "penstock", "Spark, range join", "Spark, ASOF JOIN"
SECONDS = 10_000_000  # that facts and versions are spread over
VERSIONS = 1000
COLUMNS = "f.id, f.amount, v.tier, v.price"
ASOF = f"SELECT {COLUMNS} FROM facts f ASOF JOIN versions v ON f.k = v.k AND f.at >= v.at"
INTERVALS = (
    f"SELECT {COLUMNS} FROM facts f JOIN versions v "
    "ON f.k = v.k AND f.at >= v.at AND (f.at < v.until OR v.until IS NULL)"
)


def fill(spark: SparkSession, work: Path, rows: int, versions: int) -> None:
    """Facts at random times, and versions at even ones, under those names."""
    keys = max(rows // 10 // versions, 1)
    start, step = 1_700_000_000, SECONDS // versions
    facts = spark.range(rows).selectExpr(
        "id",
        f"CAST(pmod(hash(id), {keys}) AS INT) AS k",
        f"timestamp_seconds({start} + pmod(hash(id, 1), {SECONDS})) AS at",
        "id * 2 AS amount",
    )
    at = f"timestamp_seconds({start} + (id DIV {keys}) * {step} + id % 7)"
    made = spark.range(keys * versions).selectExpr(
        f"CAST(id % {keys} AS INT) AS k", f"{at} AS at", "concat('t', id) AS tier", "id AS price"
    )
    until = "lead(at) OVER (PARTITION BY k ORDER BY at) AS until"
    for name, rows_of in (("facts", facts), ("versions", made.selectExpr("*", until))):
        rows_of.write.parquet(str(work / name))
        spark.read.parquet(str(work / name)).createOrReplaceTempView(name)


def texts(spark: SparkSession) -> dict[str, str]:
    """The query of each side, as Spark runs it."""
    query, findings = read_query(ASOF, Path("asof.sql"), names=Names(("main",)))
    if query is None:
        raise SystemExit(str(findings))
    rendered = query.render({source: source.table.table for source in query.tables})
    planned, notices = with_asof(spark, rendered, {}, calls_macros=False)
    if notices:
        raise SystemExit(notices[0].message)
    return {OURS: planned.sql, RANGE: INTERVALS, OWN: rendered.sql}


def total(spark: SparkSession, text: str) -> tuple[object, ...]:
    """The rows of a query as one, which takes nearly all the work of writing them."""
    sums = f"SELECT count(*), sum(hash(id, amount, tier, price)) FROM ({text})"
    return tuple(spark.sql(sums).collect()[0])


def side(spark: SparkSession, name: str, text: str) -> harness.Side:
    return harness.Side(name, lambda: total(spark, text))


def main() -> None:
    extra = argparse.ArgumentParser(add_help=False)
    extra.add_argument("--versions", type=int, default=VERSIONS)
    extra.add_argument("--own", action="store_true")
    chosen, sys.argv[1:] = extra.parse_known_args()
    options = harness.options("asof", __doc__, rows=10_000_000, rounds=3)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        fill(spark, work, options.rows, chosen.versions)
        queries = texts(spark)
        if not chosen.own:
            del queries[OWN]
        answers = {name: total(spark, text) for name, text in queries.items()}
        if len(set(answers.values())) > 1:
            raise SystemExit(f"the sides do not agree: {answers}")
        racers = [side(spark, name, text) for name, text in queries.items()]
        seconds = harness.race(racers, options.rounds, warmup=0)
    own = ""
    if chosen.own:
        own = f"; {harness.ratio(seconds, OURS, OWN):.2f} x of Spark's own ASOF JOIN"
    figure = harness.Figure(
        "ASOF JOIN against Spark's range join",
        harness.ratio(seconds, OURS, RANGE),
        0.5,
        note=f"{chosen.versions} versions a key{own}",
    )
    report = harness.Report(
        "asof", (figure,), seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
