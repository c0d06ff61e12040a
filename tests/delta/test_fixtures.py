"""Tables that delta-spark 4.4 wrote (`make_fixtures`) are read as it reads them, or refused.

Tests ``delta/scan.py``, ``delta/log.py`` and ``delta/vectors.py``.
"""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from penstock import Delta
from penstock.delta.log_files import list_log
from penstock.errors import UnsupportedFeature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXTURES = Path(__file__).with_name("fixtures")
EXPECTED = json.loads((FIXTURES / "expected.json").read_text(encoding="utf-8"))
NOT_READ = {
    "mapped_ids": "column mapping by id",
    "variant": "the reader feature variantType",
    "widened": "the reader feature typeWidening",
}
NOT_WRITTEN = {
    "constraint": "the CHECK constraint positive",
    "generated": "the generated column day",
    "in_commit_times": "in-commit timestamps",
    "mapped": "column mapping",
    "mapped_names": "column mapping",
    "row_tracking": "the writer feature rowTracking",
}
NOT_CHANGED = {"append_only": "delta.appendOnly", "change_feed": "a change data feed"}


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - set(NOT_READ)))
def test_every_version(spark: SparkSession, name: str) -> None:
    """All versions in one job: columns differ between them, so rows are compared as JSON."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    expected = EXPECTED[name]
    table = Delta.attach(FIXTURES, spark=spark).table(f"others.{name}")
    assert table.version() == max(map(int, expected))
    texts = [
        table.to_df(int(version)).select(
            fn.lit(version).alias("version"), fn.to_json(fn.struct("*")).alias("text")
        )
        for version in expected
    ]
    found: dict[str, list[str]] = {version: [] for version in expected}
    for row in reduce(DataFrame.unionAll, texts).collect():
        found[row["version"]].append(row["text"])
    assert {version: sorted(rows) for version, rows in found.items()} == expected


@pytest.mark.parametrize(("name", "feature"), NOT_READ.items())
def test_what_is_not_read_is_named(spark: SparkSession, name: str, feature: str) -> None:
    table = Delta.attach(FIXTURES, spark=spark).table(f"others.{name}")
    with pytest.raises(UnsupportedFeature, match=f"has {feature} and is not read"):
        table.to_df()


@pytest.mark.parametrize(("name", "feature"), (NOT_WRITTEN | NOT_CHANGED).items())
def test_rules_that_a_write_would_break_are_named(
    spark: SparkSession, name: str, feature: str
) -> None:
    table = Delta.attach(FIXTURES, spark=spark).table(f"others.{name}")
    with pytest.raises(UnsupportedFeature, match=f"has {feature}.* and is not written"):
        table.delete()


def test_conditions_choose_files(spark: SparkSession) -> None:
    table = Delta.attach(FIXTURES, spark=spark).table("others.mapped")
    assert table.to_df(where="p = 'even' AND n.renamed < 3").count() == 2
    assert table.to_df(where="p IS NULL").count() == 4


def test_a_checkpoint_of_version_2() -> None:
    log = list_log(str(FIXTURES / "others" / "checkpoints"))
    assert [point.version for point in log.checkpoints] == [2, 4]
