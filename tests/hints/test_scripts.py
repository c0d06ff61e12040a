"""Hints about scripts, in SQL and Python. Each row: what is wrong, part of its hint, as hinted."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import Diagnostic, ModelError
from penstock.project.project import Project
from tests.engine.toy import write_project

HEAD = "-- pipeline\n-- materialize ducklake://main/t\n"
PYTHON = "# pipeline\n# materialize ducklake://main/t\n"
DAILY = "-- partitioned daily\n"
MODELS = (
    ("kind FULL", "name schema.table", "name s.t, kind FULL"),
    ("name t, kind FUL", "FULL", "name t, kind FULL"),
    ("name t, kind FULL, crn '@daily'", "cron", "name t, kind FULL, cron '@daily'"),
    ("name t, kind FULL, cron 'daily'", "@daily", "name t, kind FULL, cron '@daily'"),
    ("name t, kind FULL, cron 6", "'0 6 * * *'", "name t, kind FULL, cron '0 6 * * *'"),
    ("name t, kind FULL, start 'x'", "'1 year ago'", "name t, kind FULL, start '1 year ago'"),
    ("name t, kind FULL, interval_unit 'dy'", "day", "name t, kind FULL, interval_unit 'day'"),
    ("name t, kind FULL, dialect duck", "duckdb", "name t, kind FULL, dialect duckdb"),
    ("name t, kind FULL, enabled maybe", "true", "name t, kind FULL, enabled true"),
    ("name t kind FULL", "schema.table", "name s.t, kind FULL"),
    ("name t, kind FULL owner x", "comma missing before `owner`", "name t, kind FULL, owner x"),
    ("name a.b.c.d, kind FULL", "lake.schema.table", "name main.b.c, kind FULL"),
    ("name t, kind FULL, tags a b", "comma missing before `b`", "name t, kind FULL, tags (a, b)"),
    ("name t, kind FULL, columns (id)", "name TYPE", "name t, kind FULL, columns (id INT)"),
    ("name t, kind FULL, columns (id BIGNT)", "BIGINT", "name t, kind FULL, columns (id BIGINT)"),
    (
        "name t, kind FULL, cron_tz 'x'",
        "Europe/Paris",
        "name t, kind FULL, cron_tz 'Europe/Paris'",
    ),
    (
        "name t, kind INCREMENTAL_BY_UNIQUE_KEY",
        "(unique_key ...)",
        "name t, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id)",
    ),
    (
        "name t, kind SCD_TYPE_2_BY_COLUMN (unique_key id)",
        "(columns ...)",
        "name t, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns (ds))",
    ),
    (
        "name t, kind INCREMENTAL_BY_PARTITION",
        "partitioned_by column",
        "name t, kind INCREMENTAL_BY_PARTITION, partitioned_by id",
    ),
    (
        "name t, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id, batch_size x)",
        "1",
        "name t, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id, batch_size 1)",
    ),
    ("name t, kind VIEW (materialized maybe)", "false", "name t, kind VIEW (materialized false)"),
    (
        "name t, kind FULL, partitioned_by (nope(ds))",
        "month(column)",
        "name t, kind FULL, partitioned_by (month(ds))",
    ),
    (
        "name t, kind FULL, audits (unique_values)",
        "unique_values(columns := ...)",
        "name t, kind FULL, audits (unique_values(columns := id))",
    ),
    (
        "name t, kind FULL, audits (accepted_range(column := id))",
        "min_v := 0",
        "name t, kind FULL, audits (accepted_range(column := id, min_v := 0))",
    ),
)
QUERIES = (
    ("SELECT * FROM 'x.csv'", "read_csv('x.csv')", "SELECT * FROM read_csv('x.csv')"),
    ("SELECT '{partition}' AS p", "`-- partitioned daily`", DAILY + "SELECT '{partition}' AS p"),
    (DAILY + 'SELECT "{partition}" AS p', "'{partition}'", DAILY + "SELECT '{partition}' AS p"),
    (DAILY + "SELECT {partition} AS p", "'{partition}'", DAILY + "SELECT '{partition}' AS p"),
    (
        DAILY + "SELECT 'a{partition}b' AS p",
        "'before' || '{partition}' || 'after'",
        DAILY + "SELECT 'a' || '{partition}' || 'b' AS p",
    ),
    ("SELECT $nope AS p", "-- $nope (text)", "-- $nope (text)\nSELECT $nope AS p"),
    ("-- $n (itn)\nSELECT $n AS p", "`-- $n (int)`", "-- $n (int)\nSELECT $n AS p"),
    ("-- $n int\nSELECT $n AS p", "`-- $n (int)`", "-- $n (int)\nSELECT $n AS p"),
    (
        "SELECT $partition_start AS p",
        "`-- partitioned daily`",
        DAILY + "SELECT $partition_start AS p",
    ),
    (
        "SELECT 1 AS a; SELECT 2 AS a",
        "CREATE TEMP VIEW ... AS",
        "CREATE TEMP VIEW v AS SELECT 1 AS a; SELECT 2 AS a",
    ),
    (
        "CREATE MACRO f(a) AS a; SELECT f(1) AS a",
        "CREATE TEMP MACRO",
        "CREATE TEMP MACRO f(a) AS a; SELECT f(1) AS a",
    ),
    (
        "CREATE TEMP VIEW v (a) AS SELECT 1 AS a; SELECT 1 AS a",
        "CREATE TEMP VIEW name AS SELECT ...",
        "CREATE TEMP VIEW v AS SELECT 1 AS a; SELECT 1 AS a",
    ),
    (
        "ATTACH 'main' AS dl; SELECT 1 AS a",
        "ATTACH 'ducklake://main' AS dl",
        "ATTACH 'ducklake://main' AS dl; SELECT 1 AS a",
    ),
    (
        "SELECT 1 AS a FROM u AT (VERSION => abc)",
        "AT (VERSION => 3)",
        "SELECT 1 AS a FROM u AT (VERSION => 3)",
    ),
    (
        "SELECT * EXCLUDE (a) FROM u",
        "`-- dialect duckdb`",
        "-- dialect duckdb\nSELECT * EXCLUDE (a) FROM u",
    ),
    ("SELEC 1 AS a", "SELECT", "SELECT 1 AS a"),
    ("SELECT @start_dte AS a", "@start_date", "SELECT @start_date AS a"),
    (
        "SELECT getvariable(x) AS a",
        "getvariable('x')",
        "SET VARIABLE x = 1; SELECT getvariable('x') AS a",
    ),
    (
        "SELECT getvariable('x') AS a",
        "SET VARIABLE x = ...",
        "SET VARIABLE x = 1; SELECT getvariable('x') AS a",
    ),
    (
        "SELECT u.a FROM u ASOF JOIN v ON u.a = v.a",
        "ASOF JOIN t ON a.key = t.key AND a.time >= t.time",
        "SELECT u.a FROM u ASOF JOIN v ON u.a = v.a AND u.b >= v.b",
    ),
)
STEPS = (
    ("def mian(): return []", "def main", "def main(): return []"),
    ("x = 1", "def main(...)", "def main(): return []"),
    (
        "def main(partition: str): return []",
        "`# partitioned daily`",
        "# partitioned daily\ndef main(partition: str): return []",
    ),
    ("def main(x): return []", "x: str", "def main(x: str): return []"),
    ("def main(x: itn): return []", "int", "def main(x: int): return []"),
    (
        "import pyarrow\ndef main(rows: pyarrow.Table): return []",
        "`# on ducklake://main/rows`",
        "# on ducklake://main/rows\nimport pyarrow\ndef main(rows: pyarrow.Table): return []",
    ),
)
CASES = (
    *(
        (
            f"MODEL ({wrong});\nSELECT 1 AS id, DATE '2026-01-01' AS ds",
            hint,
            f"MODEL ({right});\nSELECT 1 AS id, DATE '2026-01-01' AS ds",
        )
        for wrong, hint, right in MODELS
    ),
    *((HEAD + wrong, hint, HEAD + right) for wrong, hint, right in QUERIES),
    *((PYTHON + wrong, hint, PYTHON + right) for wrong, hint, right in STEPS),
)


def errors(root: Path, script: str) -> list[Diagnostic]:
    name = "models/t.py" if script.startswith("#") else "models/t"
    try:
        Project.load(write_project(root, {name: script}))
    except ModelError as error:
        return [each for each in error.diagnostics if each.severity == "error"]
    return []


@pytest.mark.parametrize(("wrong", "hint", "right"), CASES, ids=range(len(CASES)))
def test_the_script_as_hinted_has_no_error(
    wrong: str, hint: str, right: str, tmp_path: Path
) -> None:
    (found,) = errors(tmp_path / "wrong", wrong)
    assert hint in str(found.hint)
    assert errors(tmp_path / "right", right) == []
