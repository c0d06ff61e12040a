"""Texts that are handed to Spark: read as written, whatever the session's settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import penstock
from penstock.errors import UnsupportedFeature
from penstock.lakes.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTING = "spark.sql.variable.substitute"
_PAST_US = re.compile(r"\b(spark|session)(\(\))?\.sql\(|\bfn\.expr\(|functions\.expr\(")


@pytest.fixture
def substituting(spark: SparkSession) -> Iterator[SparkSession]:
    """A session as users start it, in which Spark substitutes variables."""
    before = spark.conf.get(_SETTING)
    spark.conf.set(_SETTING, "true")
    yield spark
    spark.conf.set(_SETTING, str(before))


def test_texts_are_handed_over_in_one_way() -> None:
    root = Path(penstock.__file__).parent
    files = [file for file in root.rglob("*.py") if _PAST_US.search(file.read_text())]
    assert [str(file.relative_to(root)) for file in files] == ["spark/functions.py"]


@pytest.mark.spark
def test_views_macros_and_queries(lake: Lake, substituting: SparkSession) -> None:
    for dialect in ("spark", "duckdb"):
        lake.sql("CREATE OR REPLACE VIEW v AS SELECT '${env:PATH}' AS a", dialect=dialect)
        lake.sql("CREATE OR REPLACE MACRO m() AS '${no.such}'", dialect=dialect)
        query = "SELECT a || m() || '${system:user.home}' AS b FROM v WHERE a = '${env:PATH}'"
        shown = lake.sql(query, dialect=dialect).collect()
        assert [row.b for row in shown] == ["${env:PATH}${no.such}${system:user.home}"]
    with lake.transaction() as transaction:
        transaction.create_view("w", "SELECT 1 AS `${env:PATH}`", dialect="spark")
    with pytest.raises(UnsupportedFeature, match="outside of a text"):
        lake.sql("SELECT * FROM w")
    assert substituting.conf.get(_SETTING) == "true"
    # What the user's own session does with its texts stays as it was.
    assert substituting.sql(f"SELECT '${{{_SETTING}}}' AS a").first() == ("true",)


@pytest.mark.spark
def test_conditions_and_values(lake: Lake, substituting: SparkSession) -> None:
    table = lake.table("t")
    lake.sql("CREATE TABLE t AS SELECT id, upper('${env:path}') AS a FROM range(3)")
    table.update({"a": "lower('${no.such}')"}, "id = 1 AND a = '${ENV:PATH}'")
    table.delete("id = 2 AND a <> '${env:HOME}' AND upper(a) = a")
    lake.sql("UPDATE t SET a = concat('${x}', a) WHERE a LIKE '${ENV:%' AND id + 1 = 1")
    rows = table.to_df(where="a <> '${spark.app.name}' AND lower(a) LIKE '%${%'").orderBy("id")
    assert [tuple(row) for row in rows.collect()] == [(0, "${x}${ENV:PATH}"), (1, "${no.such}")]
