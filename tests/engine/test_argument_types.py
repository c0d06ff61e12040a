"""Arguments of every type in Spark's hands, in both dialects."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.model.query.query import ScriptKind, read_query
from penstock.model.script import arguments
from penstock.model.script.constants import Bindings
from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import Names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEADER = """
-- $ids (int[])
-- $names (text[])
-- $seen (timestamp[])
-- $lag (interval)
-- $doc (json)
-- $id (uuid)
-- $at (time)
-- $raw (blob)
-- $none (int[]) = null
"""
TEXTS: dict[str, str | None] = {
    "ids": "[1, 2]",
    "names": '["a\'b", "c"]',
    "seen": '["2026-03-08T10:30"]',
    "lag": "1 month 2 hours",
    "doc": '{"a": 1}',
    "id": "550E8400-E29B-41D4-A716-446655440000",
    "at": "09:30",
    "raw": "00ff",
}
QUERIES = {
    "spark": """
SELECT array_contains($ids, 2) AS a, $names AS b, $seen[0] AS c,
    TIMESTAMP_NTZ '2026-01-31 00:00:00' + $lag AS d, get_json_object($doc, '$.a') AS e, $id AS f,
    $at AS g, $raw AS h, $none IS NULL AS i,
    count_if(at >= $partition_start AND at < $partition_end) AS n
FROM VALUES (TIMESTAMP_LTZ '2026-03-08 13:59:59Z'), (TIMESTAMP_LTZ '2026-03-08 14:00:00Z'),
    (TIMESTAMP_LTZ '2026-03-08 14:59:59Z'), (TIMESTAMP_LTZ '2026-03-08 15:00:00Z') AS t(at)
""",
    "duckdb": """
SELECT 2 IN $ids AS a, $names AS b, $seen[1] AS c, TIMESTAMP '2026-01-31 00:00:00' + $lag AS d,
    '1' AS e, $id AS f, $at AS g, $raw AS h, $none IS NULL AS i,
    count(*) FILTER (WHERE at >= $partition_start AND at < $partition_end) AS n
FROM (VALUES ('2026-03-08 13:59:59Z'::TIMESTAMPTZ), ('2026-03-08 14:00:00Z'::TIMESTAMPTZ),
    ('2026-03-08 14:59:59Z'::TIMESTAMPTZ), ('2026-03-08 15:00:00Z'::TIMESTAMPTZ)) AS t(at)
""",
}


@pytest.mark.spark
@pytest.mark.parametrize("dialect", QUERIES)
def test_values_of_every_type(spark: SparkSession, dialect: str) -> None:
    hourly = PartitionSpec("hourly", tz="America/New_York")
    text = HEADER + QUERIES[dialect]
    query, findings = read_query(
        text,
        Path("m.sql"),
        names=Names(("main",)),
        dialect=dialect,
        kind=ScriptKind(partition=hourly),
    )
    assert query is not None, findings
    values = arguments.bind(query.arguments, TEXTS, partition="2026-03-08T10", spec=hourly)
    rendered = query.render({})
    (row,) = spark.sql(rendered.sql, args=rendered.args(Bindings(None, values))).collect()
    assert row.asDict() == {
        "a": True,
        "b": ["a'b", "c"],
        "c": datetime(2026, 3, 8, 10, 30, tzinfo=UTC).replace(tzinfo=None),
        "d": datetime(2026, 2, 28, 2, tzinfo=UTC).replace(tzinfo=None),
        "e": "1",
        "f": "550e8400-e29b-41d4-a716-446655440000",
        "g": "09:30:00",
        "h": b"\x00\xff",
        "i": True,
        "n": 2,
    }
