"""Every public name has an example in its docstring; it parses, and runs where that is cheap."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock import Lake, Project
from penstock.lakes.table import Table
from penstock.lakes.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = """\
-- pipeline
-- materialize ducklake://main/orders
SELECT 1 AS id, 'ada' AS customer
"""


SPAN = re.compile(
    r"``((?:with )?(?:(?:project|Project|lake|Lake|orders|tx)\."
    r"|(?:Column|TableSchema|PartitionField|SortKey|Resources)\()[^`]+)``"
)
# Starts Spark, or ends what the others use.
DEAR = re.compile(
    r"\b(df|spark|spark_source|run|restate|restatement|adopt|drop|to_pandas|preview|preview_rows|query|read|sql|explain|diff|images|row_history|log|past_run|retry|retry_plan|reproduce)\b|\.show\(\)"
    r"|changes\(|_data_files|add_files|delete_orphaned|delete\(|update\(|rollback\((2|.*dry_run)"
)


def example(documented: object) -> str:
    """The indented block after ``::``, or else what is called in a line."""
    text = documented.__doc__ or ""
    lines = text.partition("::\n\n")[2].splitlines()
    if lines:
        margin = len(lines[0]) - len(lines[0].lstrip())
        block = takewhile(lambda line: not line.strip() or line.startswith(" " * margin), lines)
        return textwrap.dedent("\n".join(block))
    span = SPAN.search(text)
    return "" if span is None else span[1]


def public_methods() -> Iterator[tuple[str, object]]:
    for owner in (Project, Lake, Table, Transaction):
        for name, member in inspect.getmembers(owner):
            documented = callable(member) or isinstance(member, property) or name == "graph"
            if documented and not name.startswith("_"):
                yield f"{owner.__name__}.{name}", member


METHODS = dict(public_methods())
CLASSES = {name: getattr(penstock, name) for name in penstock.__all__}
CLASSES |= {"Table": Table, "Transaction": Transaction}


@pytest.mark.parametrize("name", [*METHODS, *CLASSES])
def test_every_public_name_has_an_example(name: str) -> None:
    code = example(CLASSES.get(name) or METHODS[name])
    assert ast.parse(code).body, f"{name} has no example"
    called = name.rpartition(".")[2]
    assert name in CLASSES or re.search(rf"\b{called}\b|tx\.sql|merge", code), code


@pytest.mark.parametrize(
    "name", ["Column", "PartitionField", "Resources", "SortKey", "TableSchema"]
)
def test_values_of_the_examples(name: str) -> None:
    assert isinstance(eval(example(CLASSES[name]), CLASSES), CLASSES[name])


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "shop"
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "orders.sql").write_text(MODEL)
    (folder / "penstock.toml").write_text('[lakes.main]\ncatalog = "sqlite:meta.sqlite"\n')
    return folder


def test_examples_run_that_need_no_spark(shop: Path) -> None:
    Lake.attach("ducklake:sqlite:meta.sqlite", data_path="data").close()
    with (
        Project.load(shop) as project,
        Lake.attach("ducklake:sqlite:lake.sqlite", data_path="lake") as lake,
    ):
        lake.sql(
            "CREATE TABLE orders (id INTEGER, customer VARCHAR); INSERT INTO orders VALUES "
            "(1, 'ada'), (2, 'grace')"
        )
        lake.sql("CREATE SCHEMA shop")
        names = {"Project": Project, "Lake": Lake, "lake": lake, "project": project}
        names |= {"orders": lake.table("orders")}
        ran = 0
        for name, method in METHODS.items():
            code = example(method)
            if DEAR.search(code) or name.endswith(".close"):
                continue
            tx = lake.transaction()
            if "ids" in code and "create_view" not in code:
                tx.create_view("ids", "SELECT id FROM orders")
            exec(code, names | {"tx": tx})
            if "tx." in code and "commit" not in code:
                tx.rollback()
            ran += 1
        assert ran > 40


@pytest.mark.spark
def test_the_examples_run(shop: Path, spark: SparkSession) -> None:
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
