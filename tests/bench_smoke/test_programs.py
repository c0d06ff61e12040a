"""The programs still run, and their sides do the same work; on a few rows, timing nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench import (
    append,
    asof,
    data,
    data_tests,
    harness,
    merge,
    scan,
    scan_deletes,
    small_files,
    update_delete,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS = 2_000


def test_half_of_the_changes_are_updates(spark: SparkSession) -> None:
    target, changes = data.orders(spark, 0, ROWS), data.changes(spark, ROWS, 200)
    assert changes.count() == changes.select("id").distinct().count() == 200
    assert changes.join(target, "id", "left_semi").count() == 100
    assert changes.join(target, target.columns, "left_semi").count() == 0


def test_append_and_its_peer_run(spark: SparkSession, tmp_path: Path) -> None:
    frame = data.orders(spark, 0, ROWS)
    seconds = harness.race(append.contenders(spark, tmp_path, frame), 1, warmup=0)
    assert set(seconds) == {append.OURS, append.SPARK}


def test_the_scans_agree(spark: SparkSession, tmp_path: Path) -> None:
    sides = scan.readers(spark, scan.fill(spark, tmp_path, ROWS))
    answers = [scan.aggregate(read()) for read in sides.values()]
    assert len(answers[0]) == 4
    assert answers == [answers[0]] * 3


def test_the_sides_of_asof_agree(spark: SparkSession, tmp_path: Path) -> None:
    asof.fill(spark, tmp_path, ROWS, 20)
    spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    answers = {asof.total(spark, text) for text in asof.texts(spark).values()}
    ((count, _),) = answers
    assert 0 < int(str(count)) <= ROWS


def test_data_tests_pass_in_each_number(spark: SparkSession, tmp_path: Path) -> None:
    assert [len(tests) for tests in data_tests.SIDES.values()] == [1, 10, 10, 1, 10]
    for side in data_tests.sides(spark, tmp_path, ROWS):
        side.run()


def test_one_row_of_a_hundred_is_deleted(spark: SparkSession, tmp_path: Path) -> None:
    sides = scan_deletes.readers(scan_deletes.fill(spark, tmp_path, ROWS))
    assert [read().count() for read in sides.values()] == [ROWS - ROWS // 100, ROWS]


def test_the_scans_of_small_files_agree(spark: SparkSession, tmp_path: Path) -> None:
    sides = small_files.readers(spark, small_files.fill(spark, tmp_path, ROWS, 7))
    ours, theirs = (scan.aggregate(read()) for read in sides.values())
    assert ours == theirs


def test_the_merges_agree(spark: SparkSession, tmp_path: Path) -> None:
    target, source = tmp_path / "target", tmp_path / "source"
    data.orders(spark, 0, ROWS).write.parquet(str(target))
    data.changes(spark, ROWS, 200).write.parquet(str(source))
    ours = merge.Penstock(spark, tmp_path, target, source)
    duck = merge.Duck(tmp_path, target, source)
    rewrite = merge.Rewrite(spark, tmp_path, target, source)
    sides = [
        harness.Side("ours", ours.run, ours.prepare, ours.clean),
        harness.Side("duck", duck.run, duck.prepare, duck.clean),
        harness.Side("rewrite", rewrite.run, clean=rewrite.clean),
    ]
    harness.race(sides, 1, warmup=0)
    assert merge.agree((ours, duck, rewrite)) == ROWS + 100


@pytest.mark.parametrize("statement", ["update", "delete"])
def test_one_row_of_a_hundred_changes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """`measure` itself refuses sides that differ."""
    monkeypatch.setattr(update_delete, "WARMUP", 0)
    data.orders(spark, 0, ROWS).write.parquet(str(tmp_path / "target"))
    assert len(update_delete.measure(spark, tmp_path, statement, 1)) == 3
