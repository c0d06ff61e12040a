"""Models with `file_format: delta` are Delta tables of the profile's root: DuckDB's extension and
delta-rs read the same rows, and models of the lake read them by ``ref``.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from dbt.tests.util import run_dbt
from deltalake import DeltaTable, QueryBuilder, write_deltalake

SOURCE = """
{{ config(materialized="table") }}
select /*+ coalesce(1) */ * from values
  (1, 'a', date '2026-01-01'), (2, '{{ var("two", "b") }}', date '2026-01-02') as v(id, text, day)
"""
MODEL = """
{{ config(materialized="incremental", file_format="delta", partition_by="day", OPTIONS) }}
select * from {{ ref("given") }}
{% if is_incremental() and var("newer", false) %}
where id > (select max(id) from {{ this }})
{% endif %}
"""
STRATEGIES = {
    "appended": "incremental_strategy='append'",
    "merged": "unique_key='id'",
    "replaced": "incremental_strategy='delete+insert', unique_key='id'",
}
WHOLE = """
{{ config(materialized="table", file_format="delta") }}
select id, text from {{ ref("merged") }}
"""
IN_LAKE = """
{{ config(materialized="table") }}
select count(*) as n, (select count(*) from {{ ref("appended") }}) as added from {{ ref("whole") }}
"""
KEPT = """
{% snapshot kept %}
{{ config(file_format="delta", target_schema=target.schema, unique_key="id", strategy="check",
   check_cols=["text"]) }}
select id, text from {{ ref("given") }}
{% endsnapshot %}
"""
PROPERTIES = """
models:
  - name: whole
    description: All of it
    columns: [{name: id, description: The key, data_tests: [unique, not_null]}]
"""


def by_duckdb(table: Path, version: int | None = None) -> list[tuple[Any, ...]]:
    package = importlib.import_module("duckdb_extension_delta")
    folder = Path(package.__path__[0]) / "extensions" / f"v{duckdb.__version__}"
    at = "" if version is None else f", version => {version}"
    with duckdb.connect(config={"allow_unsigned_extensions": True}) as con:
        con.execute(f"LOAD '{folder / 'delta'}.duckdb_extension'")
        rows = con.execute(f"SELECT id, text FROM delta_scan('{table}'{at}) ORDER BY ALL")
        return rows.fetchall()


class TestDelta:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: Any, lake_directory: Path) -> dict[str, Any]:
        outside = {"root": str(lake_directory / "delta"), "deletion_vectors": True}
        return dbt_profile_target | {"delta": {"outside": outside}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        made = {f"{n}.sql": MODEL.replace("OPTIONS", text) for n, text in STRATEGIES.items()}
        others = {"given.sql": SOURCE, "whole.sql": WHOLE, "in_lake.sql": IN_LAKE}
        return {**made, **others, "delta.yml": PROPERTIES}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"kept.sql": KEPT}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+persist_docs": {"relation": True, "columns": True}}}

    def test_each_strategy(self, project: Any, lake_directory: Path) -> None:
        root = lake_directory / "delta" / project.test_schema
        run_dbt(["build"])
        first = [(1, "a"), (2, "b")]
        for name in (*STRATEGIES, "whole", "kept"):
            assert by_duckdb(root / name) == first, name
        run_dbt(["build", "--vars", "two: B"])
        second = [(1, "a"), (2, "B")]
        assert by_duckdb(root / "appended") == sorted([*first, *second])
        for name in ("merged", "replaced", "whole"):
            assert (by_duckdb(root / name), by_duckdb(root / name, 0)) == (second, first), name
        assert by_duckdb(root / "kept") == [(1, "a"), (2, "B"), (2, "b")]
        marked = DeltaTable(str(root / "kept")).deletion_vectors().read_all()
        assert pa.table(marked).num_rows == 1  # of the file that has the closed version's row
        merged = DeltaTable(str(root / "merged"))
        assert merged.metadata().partition_columns == ["day"]
        assert DeltaTable(str(root / "whole")).metadata().description == "All of it"
        query = QueryBuilder().register("t", merged)  # `to_pyarrow_table` refuses vectors
        row = pa.table(query.execute("SELECT * FROM t LIMIT 1").read_all())
        write_deltalake(str(root / "appended"), row, mode="append")
        run_dbt(["run", "--select", "in_lake"])
        rows = project.run_sql("select n, added from {schema}.in_lake", fetch="all")
        assert rows == [(2, 5)]
        docs = run_dbt(["docs", "generate"])
        key = next(key for key in docs.nodes if key.endswith(".whole"))
        assert docs.nodes[key].metadata.database == "outside"
