"""Forms of Spark's SQL for DuckDB. `tests/lakes/statements/test_create_view.py` compares rows."""

from __future__ import annotations

import pytest

from penstock.sql.duckdb.translate import in_duckdb

WRITTEN = {
    "a / 100": "(a / 100)",
    "a / nullif(b, 0)": "(a / NULLIF(b, 0))",
    "a / b": None,
    "a / 0": None,
    "1.5 / nullif(b, 0)": None,  # a DECIMAL in Spark
    "cast(a as string)": "CAST(a AS TEXT)",
    "cast(a / 100 as decimal(16, 2))": "CAST((a / 100) AS DECIMAL(16, 2))",
    "cast(null as string)": "CAST(NULL AS TEXT)",
    "cast('2026-01-01 00:00:00' as timestamp_ntz)": "CAST('2026-01-01 00:00:00' AS TIMESTAMP)",
    "cast('2026-01-01 00:00:00+02' as timestamp_ntz)": None,
    "cast(1.5 as int)": None,  # DuckDB rounds
    "cast(a as timestamp)": None,  # of the zone of the session
    "try_cast(a as boolean)": None,
    "cast(date_trunc('month', t) as date)": (
        "CAST(DATE_TRUNC('MONTH', CAST(t AS TIMESTAMP)) AS DATE)"
    ),
    "date_trunc('month', t)": None,
    "to_date(t)": "CAST(t AS DATE)",
    "to_date(t, 'yyyy')": None,
    "datediff(a, b)": "CAST(DATE_DIFF('DAY', CAST(b AS DATE), CAST(a AS DATE)) AS INT)",
    "timestampadd(month, -1, t)": "(t + INTERVAL '-1' MONTH)",
    "timestampadd(month, n, t)": None,
    "concat(a, b, 'c')": "(a || b || 'c')",
    "upper(a)": None,
    "cast(a as decimal) > 1": None,  # of another size
    "datediff(to_date(a, 'yyyy'), b)": None,
    "year(to_date(a, 'yyyy'))": None,
    "datediff(month, a, b)": None,
}


@pytest.mark.parametrize("form", WRITTEN)
def test_forms(form: str) -> None:
    counterpart = in_duckdb(f"SELECT {form} AS x FROM t")
    expected = WRITTEN[form]
    written = None if counterpart is None else counterpart.text
    assert written == (None if expected is None else f"SELECT {expected} AS x FROM t")


def test_guards_grow_with_the_text_and_not_with_its_square() -> None:
    sizes = []
    for links in (8, 16):
        parts = " || ".join(f"coalesce(cast(c{n} as string), '')" for n in range(links))
        counterpart = in_duckdb(f"SELECT md5({parts}) AS x FROM t")
        assert counterpart is not None
        assert counterpart.guarded is not None
        sizes.append(len(counterpart.guarded))
    assert sizes[1] < 3 * sizes[0]
