"""What a model may be called. No Spark, no catalog."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import ArgumentError
from penstock.model.definition.model import Model
from penstock.model.definition.naming import Naming, named, paths_of
from penstock.model.values.asset import TableName
from tests.model.definition.test_graph import model

ROOT = "/srv/shop"


def placed(name: str, table: str, lake: str = "main", schema: str = "main") -> Model:
    target = TableName(lake, schema, table)
    path = Path(f"{ROOT}/models/{name}.sql")
    return replace(model("x"), name=name, target=target, path=path)


MODELS = (
    placed("marts/orders", "orders"),
    placed("raw/orders", "raw_orders"),
    placed("raw/customers", "customers", schema="crm"),
    placed("raw/items", "items", lake="other"),
    placed("other/main.items", "dotted"),
    placed("a b+c", "odd"),
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("marts/orders", "marts/orders"),
        ("main.orders", "marts/orders"),
        ("main.main.orders", "marts/orders"),
        ("MAIN.Orders", "marts/orders"),
        ("main.raw_orders", "raw/orders"),
        ("crm.customers", "raw/customers"),
        ("main.crm.customers", "raw/customers"),
        ("other.main.items", "raw/items"),
        ("main.items", "raw/items"),  # a table before the last part of a name
        ("marts/orders.sql", "marts/orders"),
        ("models/marts/orders.sql", "marts/orders"),
        ("./models/marts/orders.sql", "marts/orders"),
        ("models/marts/orders", "marts/orders"),
        (f"{ROOT}/models/marts/orders.sql", "marts/orders"),
        (f"{ROOT}/models/marts/orders", "marts/orders"),
        ("customers", "raw/customers"),
        ("customers.sql", "raw/customers"),
        ("a b+c", "a b+c"),
        ("a b+c.sql", "a b+c"),
    ],
)
def test_what_a_model_is_called(text: str, name: str) -> None:
    assert named(MODELS, text).name == name


def test_a_short_name_of_several_is_refused() -> None:
    with pytest.raises(ArgumentError) as raised:
        named(MODELS, "orders")
    assert raised.value.message == "'orders' is short for several models: marts/orders, raw/orders"


def test_a_table_of_two_lakes_is_named_with_its_lake() -> None:
    models = (placed("a", "t", lake="one"), placed("b", "t", lake="two"))
    with pytest.raises(ArgumentError, match="several models: a, b"):
        named(models, "main.t")
    assert named(models, "two.main.t").name == "b"


def test_the_table_of_the_main_lake_is_meant() -> None:
    models = (placed("a", "t", lake="one"), placed("b", "t"))
    assert named(models, "main.t").name == "b"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("marts/order", "did you mean 'marts/orders'?"),
        ("crm.customer", "did you mean 'crm.customers'?"),
        ("marts", "did you mean 'marts/'?"),
        (
            "zzz",
            "models are marts/orders, raw/orders, raw/customers, raw/items, other/main.items, "
            "a b+c",
        ),
    ],
)
def test_what_no_model_is_called(text: str, hint: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        named(MODELS, text)
    assert raised.value.message == f"model {text!r} does not exist"
    assert raised.value.hint == hint


def test_of_many_models_some_are_named() -> None:
    many = [replace(MODELS[0], name=f"m{at:03}") for at in range(100)]
    with pytest.raises(ArgumentError) as raised:
        named(many, "zz")
    first = ", ".join(f"m00{at}" for at in range(10))
    assert raised.value.hint == f"models are {first}, ..."


def test_indexes_are_made_when_they_are_needed() -> None:
    naming = Naming(MODELS)
    assert naming.find("marts/orders")
    assert list(naming._indexes) == [0]


def test_paths_of_a_model_outside_of_its_directory() -> None:
    assert list(paths_of(model("x"))) == ["x", "x.sql", "x.sql", "x"]
