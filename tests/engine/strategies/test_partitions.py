"""partitions: those that the SELECT's rows have are replaced whole; others stay.

Tests ``lakes/rows/slices.py`` (ranges and partitions).
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from penstock.errors import ArgumentError
from penstock.lakes.rows import slices
from tests.engine.conftest import Make
from tests.engine.toy import rows

pytestmark = pytest.mark.spark

MODEL = """
    MODEL (
      name main.t,
      kind INCREMENTAL_BY_PARTITION,
      partitioned_by ({}),
    );
    SELECT * FROM VALUES {} AS v(area, at, n)
"""


def test_partitions_of_the_new_rows_are_replaced_and_others_stay(make: Make) -> None:
    by = "area"
    first = "('it''s', 1, 1), ('it''s', 2, 2), ('b', 1, 3), (CAST(NULL AS STRING), 1, 4)"
    make({"models/t": MODEL.format(by, first)}).run()
    project = make({"models/t": MODEL.format(by, "('it''s', 9, 9), (NULL, 1, 5), ('c', 1, 6)")})
    result = project.run()
    assert (result.steps[0].state, result.steps[0].rows) == ("done", 4)
    assert rows(project, "SELECT area, at, n FROM t ORDER BY n") == [
        ("b", 1, 3),
        (None, 1, 5),
        ("c", 1, 6),
        ("it's", 9, 9),
    ]
    assert project.run(force=True).steps[0].state == "unchanged"


@pytest.mark.warm
def test_keys_that_are_expressions(make: Make) -> None:
    by = "area, months(at)"
    first = "('a', DATE '2024-01-01', 1), ('a', DATE '2024-02-01', 2), ('a', DATE '2025-01-01', 3)"
    make({"models/t": MODEL.format(by, first)}).run()
    project = make({"models/t": MODEL.format(by, "('a', DATE '2024-01-31', 9)")})
    project.run()
    left = rows(project, "SELECT year(at), n FROM t ORDER BY n")
    assert left == [(2024, 2), (2025, 3), (2024, 9)]


def test_values_of_every_type_tell_partitions_apart(spark: SparkSession) -> None:
    values = (
        "true AS a, 1.50BD AS b, DATE '2024-01-01' AS c, TIMESTAMP '2024-01-01 00:00:00.5' AS d, "
        "TIMESTAMP_NTZ '2024-03-31 02:30:00' AS e, 'x\\\\''y' AS f, 2.5D AS g, X'00FF' AS h"
    )
    nothing = ", ".join(f"NULL AS {name}" for name in "abcdefgh")
    both = spark.sql(f"SELECT {values} UNION ALL SELECT {nothing}")
    for column in both.columns[:-1]:
        key = slices._expression(both, column)
        where = slices._condition(both.limit(2), [key], "t")
        assert where is not None
        assert both.where(where).count() == 2, where


def test_a_key_that_is_not_known(spark: SparkSession) -> None:
    with pytest.raises(ArgumentError) as caught:
        slices._expression(spark.sql("SELECT 1 AS a, 2 AS b"), "bucket(8, a)")
    assert caught.value.message == "partitions cannot be replaced by 'bucket(8, a)'"
    assert caught.value.hint == "write a column, or year, month, day, hour of one: a, b"
