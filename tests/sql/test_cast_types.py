"""The format's types in casts of Spark's SQL."""

from __future__ import annotations

import pytest

from penstock.sql.cast_types import in_spark


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAST(x AS VARCHAR)", "CAST(x AS STRING )"),
        ("try_cast(f(x) as text)", "try_cast(f(x) as STRING)"),
        ("x::VARCHAR || y::varchar(3)", "x::STRING  || y::varchar(3)"),
        ("x::TIMESTAMPTZ, CAST(y AS DOUBLE PRECISION)", None),
        ("x :: timestamp with  time\nzone", "x :: TIMESTAMP_LTZ           \n"),
        ("x::INT8 + y::BIGINT", "x::BIGINT + y::BIGINT"),
        ("(SELECT a AS text) AS varchar", "(SELECT a AS text) AS varchar"),
        ("CAST((SELECT a AS text) AS TEXT)", "CAST((SELECT a AS text) AS STRING)"),
        ("'x::TEXT' AS a -- x::TEXT", "'x::TEXT' AS a -- x::TEXT"),
        ("x::TIMESTAMP, y::STRING, z::CHARACTER", "x::TIMESTAMP, y::STRING, z::CHARACTER"),
    ],
)
def test_names(text: str, expected: str | None) -> None:
    wanted = expected or "x::TIMESTAMP_LTZ, CAST(y AS DOUBLE          )"
    assert in_spark(text) == wanted
