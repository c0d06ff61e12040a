"""A history's run over a whole snapshot with 1% changed, against rewriting the table by Spark.

The table is loaded once a round; the snapshot is Parquet, as is what Spark rewrites. An unchanged
snapshot is measured against reading both sides once: all columns, without joining them. As in a run
over files, the fingerprint of the load before is known, so that also a snapshot that changed is
read once to compare that.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from bench import data, harness
from penstock import Lake
from penstock.engine.strategies import history
from penstock.engine.strategies.target import WriteTarget
from penstock.lakes.candidate.state import Staged
from penstock.model.values.history import annotated

CHANGED, UNCHANGED = "penstock, 1% changed", "penstock, unchanged"
REWRITE, READ = "spark rewrites all versions", "both sides read once"
_COLUMNS = ("id", "account", "amount", "ordered_at", "state", "note")


@dataclass(slots=True)
class Penstock:
    """``load`` is the snapshot of the run that is measured."""

    spark: SparkSession
    work: Path
    first: Path
    load: Path
    staged: Staged | None = None
    known: str | None = None
    _lake: Lake | None = None

    def prepare(self) -> None:
        root = self.work / "lake"
        root.mkdir()
        self._lake = Lake.attach(
            f"ducklake:sqlite:{root / 'meta.sqlite'}", data_path=f"{root}/data", spark=self.spark
        )
        self.known = None
        self._run(self.first, 1)

    def run(self) -> None:
        self.staged = self._run(self.load, 2)

    def _run(self, source: Path, day: int) -> Staged:
        assert self._lake is not None
        now = datetime(2026, 1, day, tzinfo=UTC)
        options = history.Options(annotated((), closes=True), (("id", "`id`"),), now)
        into = WriteTarget(options, known_fingerprint=self.known)
        with self._lake.transaction() as tx:
            rows = self.spark.read.parquet(str(source))
            staged = history.stage(tx.table("orders"), rows, into)
            tx.commit()
        self.known = staged.fingerprint
        return staged

    def read(self) -> None:
        """Both sides, each row once."""
        assert self._lake is not None
        for rows in (self.spark.read.parquet(str(self.load)), self._lake.table("orders").to_df()):
            rows.write.format("noop").mode("overwrite").save()

    def clean(self) -> None:
        assert self._lake is not None
        self._lake.close()
        shutil.rmtree(self.work / "lake")


@dataclass(slots=True)
class Rewrite:
    """One full outer join, as SQLMesh's kind is one, and all versions rewritten."""

    spark: SparkSession
    work: Path
    first: Path
    load: Path

    def prepare(self) -> None:
        rows = self.spark.read.parquet(str(self.first))
        now, never = "TIMESTAMP_NTZ '2026-01-01' AS since", "CAST(NULL AS TIMESTAMP_NTZ) AS until"
        rows.selectExpr("*", now, never).write.parquet(str(self.work / "versions"))

    def run(self) -> None:
        self.spark.read.parquet(str(self.work / "versions")).createOrReplaceTempView("old")
        self.spark.read.parquet(str(self.load)).createOrReplaceTempView("new")
        differs = " OR ".join(f"NOT old.{c} <=> new.{c}" for c in _COLUMNS[1:])
        old, new = (", ".join(f"{side}.{c}" for c in _COLUMNS) for side in ("old", "new"))
        now = "TIMESTAMP_NTZ '2026-01-02'"
        self.spark.sql(f"""
            SELECT inline(filter(array(
              CASE WHEN old.id IS NOT NULL THEN struct({old}, old.since,
                CASE WHEN new.id IS NULL OR {differs} THEN {now} END AS until) END,
              CASE WHEN old.id IS NULL OR (new.id IS NOT NULL AND ({differs})) THEN
                struct({new}, {now} AS since, CAST(NULL AS TIMESTAMP_NTZ) AS until) END
            ), v -> v IS NOT NULL))
            FROM old FULL OUTER JOIN new ON old.id = new.id
        """).write.parquet(str(self.work / "rewritten"))

    def clean(self) -> None:
        for name in ("versions", "rewritten"):
            shutil.rmtree(self.work / name, ignore_errors=True)


def measure(
    spark: SparkSession, work: Path, rows: int, rounds: int
) -> tuple[dict[str, list[float]], Staged]:
    """Seconds by side, and what a run with 1% changed writes."""
    first, load = work / "first", work / "load"
    data.orders(spark, 0, rows).write.parquet(str(first))
    changed = "CASE WHEN id % 100 = 0 THEN 'upd' ELSE state END AS state"
    columns = [changed if name == "state" else name for name in _COLUMNS]
    data.orders(spark, 0, rows).selectExpr(*columns).write.parquet(str(load))
    some = Penstock(spark, work, first, load)
    none = Penstock(spark, work, first, first)
    rewrite = Rewrite(spark, work, first, load)
    sides = [
        harness.Side(CHANGED, some.run, some.prepare, some.clean),
        harness.Side(UNCHANGED, none.run, none.prepare, none.clean),
        harness.Side(READ, none.read, none.prepare, none.clean),
        harness.Side(REWRITE, rewrite.run, rewrite.prepare, rewrite.clean),
    ]
    seconds = harness.race(sides, rounds)
    assert some.staged is not None, "it ran"
    assert none.staged is not None, "it ran"
    if not none.staged.unchanged:
        raise SystemExit("an unchanged snapshot was written")
    return seconds, some.staged


def main() -> None:
    options = harness.options("history", __doc__, rows=10_000_000, rounds=3)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        seconds, staged = measure(spark, work, options.rows, options.rounds)
    print(
        f"  {staged.rows_written:,} rows written, {staged.rows_updated:,} of them versions closed"
    )
    note = f"{staged.rows_written:,} rows written of {options.rows:,}"
    figures = (
        harness.Figure(
            "History, 1% changed, against rewriting all versions",
            harness.ratio(seconds, CHANGED, REWRITE),
            0.35,
            note=note,
        ),
        harness.Figure(
            "History, nothing changed, against reading both sides",
            harness.ratio(seconds, UNCHANGED, READ),
            1.2,
        ),
    )
    report = harness.Report(
        "history", figures, seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
