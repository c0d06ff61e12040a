"""A root of tables: discovery by listing, names, and what is missing.

Tests ``delta/log_files.py`` and ``delta/delta.py``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from penstock import Delta
from penstock.delta import commit
from penstock.delta.log_files import find_tables
from penstock.errors import (
    ArgumentError,
    ConfigError,
    EnvironmentMissing,
    LakeClosed,
    TableNotFound,
    UnsupportedFeature,
)
from tests.delta.tables import file, make

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_tables_are_found_by_their_logs(tmp_path: Path) -> None:
    for place in ("shop/orders", "shop/Users", "main/t", "_hidden/t", "shop/.tmp"):
        make(tmp_path / place, file("a"))
    (tmp_path / "shop" / "empty" / "_delta_log").mkdir(parents=True)
    (tmp_path / "shop" / "file").touch()
    assert find_tables(str(tmp_path)) == ["main.t", "shop.Users", "shop.orders"]
    assert find_tables(str(tmp_path / "none")) == []


def test_they_are_listed_once(tmp_path: Path) -> None:
    delta = Delta.attach(tmp_path)
    assert delta.tables() == []
    make(tmp_path / "shop" / "orders")
    assert delta.tables() == []
    delta.add("shop.made")
    assert delta.tables() == ["shop.made"]
    delta.refresh()
    assert delta.tables() == ["shop.orders"]


def test_letter_case_does_not_make_another_table(tmp_path: Path) -> None:
    make(tmp_path / "shop" / "Orders")
    delta = Delta.attach(tmp_path)
    delta.tables()
    assert delta.place("SHOP.orders").name == "shop.Orders"


def test_a_table_without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)  # of another test
    make(tmp_path / "main" / "orders", file("a b%20c"), partition_by=("day",))
    orders = Delta.attach(tmp_path).table("orders")
    assert (orders.name, orders.exists(), orders.version()) == ("main.orders", True, 0)
    assert orders.files() == [f"{tmp_path}/main/orders/a b c"]
    assert orders.partition_columns() == ("day",)
    assert orders.schema().names == ("id", "day", "name", "price")
    (entry,) = orders.history()
    assert (entry.version, entry.operation) == (0, "WRITE")
    with pytest.raises(EnvironmentMissing, match="without a Spark session"):
        orders.to_df()


def test_a_table_that_does_not_exist(tmp_path: Path) -> None:
    orders = Delta.attach(tmp_path).table("shop.orders")
    assert not orders.exists()
    with pytest.raises(TableNotFound, match=r"no Delta table shop\.orders"):
        orders.version()


@pytest.mark.parametrize("name", ['"a/b".c', "_x.t", 'x.".t"', "a.b.c"])
def test_names_that_are_no_directories(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArgumentError, match="is not the name of a"):
        Delta.attach(tmp_path).table(name)


@pytest.mark.parametrize(
    ("statement", "method"),
    [
        ("UPDATE shop.e SET v = 'u' WHERE id = 9", "update"),
        ("DELETE FROM shop.e WHERE id = 9", "delete"),
        ("INSERT INTO shop.e VALUES (1)", "append"),
        ("MERGE INTO shop.e AS t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", "merge"),
        ("CREATE TABLE shop.e (id INT)", "create"),
    ],
)
def test_statements_that_change_rows_name_a_method(
    tmp_path: Path, statement: str, method: str
) -> None:
    session = cast("SparkSession", None)  # the text is refused before rows are asked for
    delta = Delta.attach(tmp_path, spark=lambda: session)
    with pytest.raises(UnsupportedFeature, match="is not a statement that sql") as caught:
        delta.sql(statement)
    assert f'delta.table("schema.name").{method}(' in (caught.value.hint or "")
    assert callable(getattr(delta.table("shop.e"), method))


def test_a_closed_root(tmp_path: Path) -> None:
    with Delta.attach(tmp_path) as delta:
        assert repr(delta) == f"Delta('delta', '{tmp_path}')"
    with pytest.raises(LakeClosed):
        delta.tables()


def test_settings_of_a_store_for_a_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not in S3"):
        Delta.attach(tmp_path, storage={"region": "eu-west-1"})


def test_a_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "find_spec", lambda name: None)
    with pytest.raises(EnvironmentMissing, match="need the package deltalake") as caught:
        Delta.attach(tmp_path)
    assert caught.value.hint == "pip install 'penstock-spark[delta]'"


def test_attaching_loads_neither_spark_nor_delta_rs(tmp_path: Path) -> None:
    code = (
        "import sys; from penstock import Delta; Delta.attach(sys.argv[1]).tables();"
        "assert not {'pyspark', 'deltalake'} & set(sys.modules), 'loaded'"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
