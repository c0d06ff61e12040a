"""The examples in the docstrings of the public classes run as they are written."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock import Lake, Project
from penstock.lake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = """\
-- pipeline
-- materialize ducklake://main/orders
SELECT 1 AS id, 'ada' AS customer
"""


def example(documented: type) -> str:
    """The indented block after ``::``."""
    text = textwrap.dedent("    " + (documented.__doc__ or "")).partition("::\n\n")[2]
    return textwrap.dedent(text)


@pytest.mark.spark
def test_the_examples_run(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = tmp_path / "shop"
    (shop / "models").mkdir(parents=True)
    (shop / "models" / "orders.sql").write_text(MODEL)
    (shop / "penstock.toml").write_text('[lakes.main]\ncatalog = "sqlite:meta.sqlite"\n')
    names: dict[str, Any] = {"Lake": Lake, "Project": Project, "spark": spark}
    for documented in (Project, Lake):
        code = example(documented)
        assert "with" in code
        exec(code, names)
    with Lake.attach("ducklake:sqlite:meta.sqlite", spark=spark) as lake:
        names["lake"] = lake
        exec(example(Table), names)
        rows = sorted(tuple(row) for row in lake.table("orders").to_df().collect())
    assert rows == [(1, "ADA"), (3, "edsger")]
    assert sorted(tuple(row) for row in names["rows"]) == [(1, "ada"), (2, "grace")]
