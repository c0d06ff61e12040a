from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ModelError
from penstock.model.definition.build_model import ScriptFile, build_model
from penstock.model.definition.graph import Graph
from penstock.model.definition.model import Model
from penstock.model.headers.annotation import declare, parse
from penstock.model.values.names import Names

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
