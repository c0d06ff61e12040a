from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.penstock import external
from dbt.adapters.penstock.external import Files

CSV = "'header' = 'true', 'escape' = '\"'"


@pytest.mark.parametrize(
    ("config", "reading", "single"),
    [
        ({"location": "/d/a.parquet"}, "parquet.`/d/a.parquet`", True),
        ({"location": "/d/a"}, "parquet.`/d/a`", False),
        ({}, "parquet.`/root/orders.parquet`", True),
        (
            {"format": "csv"},
            f"csv.`/root/orders.csv` WITH ('inferSchema' = 'true', {CSV})",
            True,
        ),
        (
            {"location": "/d/a.csv.gz", "options": {"codec": "gzip"}},
            f"csv.`/d/a.csv.gz` WITH ('inferSchema' = 'true', {CSV})",
            True,
        ),
        (
            {"location": "/d/a.csv", "delimiter": "\t", "options": {"header": False}},
            "csv.`/d/a.csv` WITH ('inferSchema' = 'true', 'header' = 'false', "
            "'escape' = '\"', 'sep' = '\\t')",
            True,
        ),
        ({"location": "/d/a.json", "partition_by": "x"}, "json.`/d/a.json`", False),
        ({"location": "s3://b/a.parquet"}, "parquet.`s3://b/a.parquet`", True),
    ],
)
def test_what_a_configuration_means(config: dict[str, Any], reading: str, single: bool) -> None:
    files = Files.of("orders", config, "/root")
    assert (files.reading, files.single) == (reading, single)


def test_partitions_and_options_have_the_names_of_dbt_duckdb() -> None:
    files = Files.of("o", {"options": {"partition_by": "a, b", "codec": "zstd"}})
    assert files.partition_by == ("a", "b")
    assert files.options["compression"] == "zstd"
    assert Files.of("o", {"partition_by": ["a"]}).partition_by == ("a",)


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"format": "xlsx"}, "format 'xlsx' of orders: it is parquet, csv or json"),
        ({"location": "/a`b.csv"}, "has a backquote"),
    ],
)
def test_what_is_refused(config: dict[str, Any], error: str) -> None:
    with pytest.raises(DbtRuntimeError, match=error):
        Files.of("orders", config)


def test_only_external_models_are_files() -> None:
    def node(**config: str) -> Any:
        return SimpleNamespace(identifier="orders", config=config or None)

    assert external.of_relation(node(), "/root") is None
    assert external.of_relation(node(materialized="table"), "/root") is None
    found = external.of_relation(node(materialized="external"), None)
    assert found is not None
    assert found.location == str(Path.cwd() / "orders.parquet")
