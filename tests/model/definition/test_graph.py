"""What a model may be called. No Spark, no catalog."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ArgumentError, ModelError
from penstock.model.definition.build_model import ScriptFile, build_model
from penstock.model.definition.graph import Graph, Naming, named, paths_of
from penstock.model.definition.model import Model
from penstock.model.headers.annotation import declare, parse
from penstock.model.values.asset import Names, TableName

NAMES = Names(("main",))


def model(name: str, *reads: str, on: tuple[str, ...] = (), tests: tuple[str, ...] = ()) -> Model:
    """A model that makes the table of its name."""
    lines = [
        "-- pipeline",
        f"-- materialize ducklake://main/{name}",
        *(f"-- on ducklake://main/{table}" for table in on),
        *(f"-- data_test relationships a -> ducklake://main/{table}.a" for table in tests),
        f"SELECT * FROM {', '.join(reads)}" if reads else "SELECT 1",
    ]
    text, path = "\n".join(lines), Path(f"{name}.sql")
    declaration, _ = declare(text, path, parse(text, path)[0], NAMES)
    assert declaration is not None
    built, findings = build_model(ScriptFile(name, text, declaration), NAMES, ())
    assert built is not None, findings
    return built


DIAMOND = (
    model("d", "b", "c"),
    model("b", "a"),
    model("c", "a", "outside.t"),
    model("a"),
    model("e"),
)


def test_order_is_by_parents_then_by_name() -> None:
    assert Graph.of(DIAMOND).order() == ("a", "b", "c", "d", "e")
    assert Graph.of(reversed(DIAMOND)).order() == ("a", "b", "c", "d", "e")


def test_levels() -> None:
    assert Graph.of(DIAMOND).levels() == (("a", "e"), ("b", "c"), ("d",))
    assert Graph.of(()).levels() == ()


def test_neighbours_reach_far() -> None:
    graph = Graph.of(DIAMOND)
    assert graph.upstream("d") == ("a", "b", "c")
    assert graph.downstream("a") == ("b", "c", "d")
    assert graph.upstream("e") == graph.downstream("e") == ()
    assert graph.parents["d"] == ("b", "c")
    with pytest.raises(KeyError):
        graph.upstream("nobody")


def test_on_makes_an_edge() -> None:
    assert Graph.of((model("a", on=("b",)), model("b"))).order() == ("b", "a")


def test_reading_oneself_is_no_cycle() -> None:
    assert Graph.of((model("a", "a", "b", on=("a",)), model("b"))).order() == ("b", "a")


def test_names_of_tables_do_not_mind_case() -> None:
    assert Graph.of((model("a", "MAIN.B"), model("b"))).order() == ("b", "a")


def test_a_cycle_is_reported_as_a_path_of_files() -> None:
    with pytest.raises(ModelError) as error:
        Graph.of((model("c", "a"), model("a", "b"), model("b", "c"), model("d", "a")))
    (finding,) = error.value.diagnostics
    assert "a.sql -> b.sql -> c.sql -> a.sql" in finding.message
    assert (str(finding.location.path), finding.location.line) == ("a.sql", 3)
    assert finding.location.column == 15
    assert finding.hint


def test_two_cycles_are_two_findings() -> None:
    models = (model("a", "b"), model("b", "a"), model("x", "y"), model("y", on=("x",)), model("z"))
    with pytest.raises(ModelError) as error:
        Graph.of(models)
    assert [finding.message.split(": ")[1] for finding in error.value.diagnostics] == [
        "a.sql -> b.sql -> a.sql",
        "x.sql -> y.sql -> x.sql",
    ]


def test_two_makers_of_one_table() -> None:
    with pytest.raises(ModelError) as error:
        Graph.of((model("a"), model("b"), model("A", "b")))
    (finding,) = error.value.diagnostics
    assert "made by two models: A.sql and a.sql" in finding.message
    assert (finding.location.line, finding.rule) == (2, "two-makers")


def test_a_test_waits_for_the_table_that_it_looks_at() -> None:
    graph = Graph.of((model("a", tests=("z",)), model("z")))
    assert graph.order() == ("z", "a")
    assert graph.upstream("a") == ("z",)


def test_a_test_that_looks_downstream_waits_for_nothing() -> None:
    graph = Graph.of((model("a", tests=("b", "a")), model("b", "a", tests=("a",))))
    assert graph.order() == ("a", "b")
    assert graph.upstream("a") == ()


@given(st.dictionaries(st.integers(0, 9), st.sets(st.integers(0, 9)), max_size=10))
def test_every_parent_comes_first(wanted: dict[int, set[int]]) -> None:
    edges = {str(n): tuple(str(p) for p in ps if p < n and p in wanted) for n, ps in wanted.items()}
    order = Graph(edges).order()
    assert sorted(order) == sorted(edges)
    for name, parents in edges.items():
        assert all(order.index(parent) < order.index(name) for parent in parents)
        assert set(parents) <= set(Graph(edges).upstream(name))


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
