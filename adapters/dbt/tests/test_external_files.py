"""`external` models: files that other programs read, and that `ref` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from dbt.tests.util import run_dbt

TEXTS = """
{{ config(materialized="external", location="files/texts.csv", delimiter="|") }}
select 1 as id, date '2026-01-31' as day, 'a|b "c"' as text, {{ var("n", 1) }} as n
union all select 2, date '2026-02-01', null, 2
"""
PARTS = """
{{ config(materialized="external", options={"partition_by": "day", "codec": "zstd"}) }}
select id, day, n from {{ ref("texts") }}
"""
LINES = """
{{ config(materialized="external", location="files/lines.json",
   post_hook="create table if not exists {{ target.schema }}.hooked (id int)") }}
select t.id, t.text from {{ ref("texts") }} t join {{ ref("parts") }} p on t.id = p.id
"""
EMPTY = (
    "{{ config(materialized='external', location='files/none.parquet') }} select 1 as a where false"
)
PYTHON = """
def model(dbt, session):
    dbt.config(materialized="external", location="files/python.parquet")
    return dbt.ref("parts").groupBy("day").count()
"""
LAST = """
{{ config(materialized="table") }}
select * from {{ ref("lines") }} where exists (select * from {{ ref("python") }})
"""
PROPERTIES = """
models:
  - name: texts
    columns: [{name: id, data_tests: [unique, not_null]}]
"""  # fmt: skip


class TestExternal:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sql = {"texts": TEXTS, "parts": PARTS, "lines": LINES, "none": EMPTY, "last": LAST}
        return {f"{name}.sql": text for name, text in sql.items()} | {
            "python.py": PYTHON,
            "texts.yml": PROPERTIES,
        }

    def test_files_are_written_read_by_ref_and_replaced(self, project: Any) -> None:
        results = {r.node.name: r for r in run_dbt(["build"]).results}
        assert str(results["texts"].message) == "WRITE 2"
        root = Path(project.project_root)
        rows = "select * from '{}' order by 1"
        assert duckdb.sql(rows.format(root / "files/texts.csv")).fetchall()[0][2:] == ('a|b "c"', 1)
        assert len(list((root / "parts.parquet").glob("day=2026-*/*.zstd.parquet"))) == 2
        assert duckdb.sql(rows.format(root / "files/lines.json")).fetchall() == [
            (1, 'a|b "c"'),
            (2, None),
        ]
        assert duckdb.sql(rows.format(root / "files/none.parquet")).columns == ["a"]
        last = project.run_sql("select * from {schema}.last order by id", fetch="all")
        assert last == [(1, 'a|b "c"'), (2, None)]
        run_dbt(["build", "--select", "texts+", "--vars", "n: 7"])
        parts = root / "parts.parquet/*/*.parquet"
        assert duckdb.sql(f"select max(n), count(*) from '{parts}'").fetchall() == [(7, 2)]
        assert not [path for path in root.rglob("_penstock*") if "target" not in path.parts]
        assert project.run_sql("select count(*) from {schema}.hooked", fetch="one") == (0,)

    def test_a_directory_with_other_files_is_left_alone(self, project: Any) -> None:
        other = Path(project.project_root) / "parts.parquet" / "notes.txt"
        other.parent.mkdir(exist_ok=True)
        other.write_text("mine")
        run_dbt(["run", "--select", "texts"])
        failed = run_dbt(["run", "--select", "parts"], expect_pass=False)
        assert "holds files that are not parquet, such as notes.txt" in failed.results[0].message
        assert other.exists()
