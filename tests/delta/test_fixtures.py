"""Tables that delta-spark 4.4 wrote (`write_fixtures`) are read as it reads them.

Tests ``delta/scan.py``, ``delta/log.py`` and ``delta/vectors.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock import Delta
from penstock.delta.log_files import list_log
from penstock.errors import UnsupportedFeature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXTURES = Path(__file__).with_name("fixtures")


@pytest.mark.parametrize("name", ["vectors", "mapped", "checkpoints"])
def test_every_version(spark: SparkSession, quick_session: None, name: str) -> None:
    """The first version with rows, the last, and one between."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    expected = json.loads((FIXTURES / f"{name}.json").read_text())
    table = Delta.attach(FIXTURES, spark=spark).table(f"lake.{name}")
    assert table.version() == len(expected) - 1
    for version in (1, len(expected) - 2, len(expected) - 1):
        rows = table.to_df(version).selectExpr("to_json(struct(*)) AS text").collect()
        assert sorted(row.text for row in rows) == expected[str(version)], version


def test_conditions_choose_files(spark: SparkSession, quick_session: None) -> None:
    table = Delta.attach(FIXTURES, spark=spark).table("lake.mapped")
    assert table.to_df(where="p = 'even' AND n.renamed < 3").count() == 2
    assert table.to_df(where="p IS NULL").count() == 4


def test_a_checkpoint_of_version_2() -> None:
    log = list_log(str(FIXTURES / "lake" / "checkpoints"))
    assert [point.version for point in log.checkpoints] == [2, 4]


def test_a_mapped_table_is_not_written(spark: SparkSession) -> None:
    table = Delta.attach(FIXTURES, spark=spark).table("lake.mapped")
    with pytest.raises(UnsupportedFeature, match="has column mapping and is not written"):
        table.set_options({"delta.appendOnly": "true"})
