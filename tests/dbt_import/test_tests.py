from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.dbt_import.tests import Audit, audit_of
from tests.dbt_import.manifests import data_test, manifest, node

A, B, C = (f"model.shop.{name}" for name in "abc")


def audit(root: Path, test: dict[str, Any]) -> Audit | str:
    """``b`` is made from ``a``, ``c`` from nothing; ``e`` is ephemeral."""
    nodes = (
        node("model", "a"),
        node("model", "b", depends_on={"nodes": [A]}),
        node("model", "c"),
        node("model", "e", config={"materialized": "ephemeral"}),
    )
    return audit_of(test, manifest(root, *nodes, test))


def generic(name: str, **more: Any) -> dict[str, Any]:
    arguments = more.pop("arguments", {})
    about = {"name": name, "namespace": None, "kwargs": {"column_name": "id", **arguments}}
    return data_test(
        f"{name}_a_id", [A], attached_node=A, column_name="id", test_metadata=about, **more
    )


@pytest.mark.parametrize(
    ("test", "call"),
    [
        (generic("not_null"), "not_null(columns := (id))"),
        (generic("unique"), "unique_values(columns := (id))"),
        (
            generic("unique", config={"severity": "WARN", "where": "x > 1"}),
            "unique_values(columns := (id), condition := x > 1, blocking := false)",
        ),
        (
            generic("accepted_values", arguments={"values": ["a", "it's"]}),
            "accepted_values(column := id, is_in := ('a', 'it''s'))",
        ),
        (
            generic("accepted_values", arguments={"values": [1, 2], "quote": False}),
            "accepted_values(column := id, is_in := (1, 2))",
        ),
    ],
)
def test_tests_of_dbts_own_are_audits(tmp_path: Path, test: dict[str, Any], call: str) -> None:
    found = audit(tmp_path, test)
    assert isinstance(found, Audit)
    assert (found.model, found.call, found.query) == (A, call, None)


def test_another_test_is_an_audit_of_the_table_that_is_made_last(tmp_path: Path) -> None:
    query = 'select * from "lake"."shop"."a" join "lake"."shop"."b" using (id)'
    found = audit(tmp_path, data_test("mine", [A, B], compiled_code=query))
    assert found == Audit(
        B,
        "mine",
        "mine",
        "AUDIT (name mine, dialect spark);\n\nselect * from shop.a join @this_model using (id);\n",
        ("shop.a",),
    )


def test_a_test_of_two_tables_is_of_that_which_it_is_attached_to(tmp_path: Path) -> None:
    found = audit(tmp_path, data_test("r", [A, C], attached_node=C))
    assert isinstance(found, Audit)
    assert (found.model, found.reads) == (C, ("shop.a",))


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (data_test("x", [A, C]), "none of them is made last"),
        (data_test("x", ["source.shop.s"]), "no model makes"),
        (data_test("x", ["model.shop.e"]), "no model makes"),
        (data_test("x", [A], compiled_code=None), "is not compiled"),
        (generic("unique", config={"error_if": ">10"}), "an audit fails on any row"),
    ],
)
def test_what_is_not_taken_says_why(tmp_path: Path, test: dict[str, Any], reason: str) -> None:
    found = audit(tmp_path, test)
    assert isinstance(found, str)
    assert reason in found
