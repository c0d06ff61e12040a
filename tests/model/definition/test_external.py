"""EXTERNAL models: files that describe tables, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.definition.external import read_externals, unlike
from penstock.model.project.loader import load_models
from penstock.model.values.asset import Names, TableName
from tests.model.project.test_loader import LAKES, project

ENTRY = """
- name: raw.orders
  description: from the shop
  fresh: 36h
  columns:
    id: bigint
    at: TIMESTAMPTZ
    lines: STRUCT(a INTEGER)[]
"""


def test_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "external_models").mkdir()
    (tmp_path / "external_models" / "shop.yaml").write_text(ENTRY)
    (tmp_path / "external_models.yaml").write_text("- name: analytics.main.other\n")
    other, orders = load_models(project(tmp_path, models__a="SELECT 1"), lakes=LAKES).externals
    assert (other.table, other.columns) == (TableName("analytics", "main", "other"), ())
    assert (orders.table, orders.description, orders.fresh) == (
        TableName("main", "raw", "orders"),
        "from the shop",
        "36h",
    )
    assert [(c.name, c.type) for c in orders.columns] == [
        ("id", "BIGINT"),
        ("at", "TIMESTAMP"),
        ("lines", "ARRAY<STRUCT<a: INT>>"),
    ]
    assert (orders.columns[1].location.line, orders.columns[1].location.column) == (7, 9)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("name: x", (1, 1), "the file is not a list"),
        ("- name: x\n  colums: {}", (2, 3), "an external model has no colums"),
        ("- description: x", (1, 3), "an external model has no name"),
        ("- name: a.b.c.d", (1, 9), "`a.b.c.d` has 4 parts"),
        ("- name: nowhere.main.t", (1, 9), "lake `nowhere` does not exist"),
        ("- name: t\n  columns:\n    id: bigjnt", (3, 9), "column id has the unknown type"),
        ("- name: t\n  columns: [id]", (2, 12), "columns is not a mapping of names"),
        ("- name: t\n  gateway: x", (2, 12), "a lake is the first part of a table's name"),
        ("- name: t\n- name: T", (2, 9), "main.T is described twice, first in external"),
        ("- name: t\n  fresh: 1 day", (2, 10), "fresh is not a duration"),
        ("- name: made", (1, 9), "main.made is made by made, so it is not external"),
        ("- name: !!python/name:os.x [y]", (1, 9), "the tag !!python/name:os.x is not known"),
        ("- name: [", (1, 10), "expected the node content"),
    ],
)  # fmt: skip
def test_what_is_wrong(tmp_path: Path, text: str, place: tuple[int, int], message: str) -> None:
    (tmp_path / "external_models.yaml").write_text(text)
    made = "MODEL (name made, kind FULL);\nSELECT 1 AS id"
    (found,) = load_models(project(tmp_path, models__made=made), lakes=LAKES).errors
    assert message in found.message
    assert (found.location.line, found.location.column) == place


def test_what_is_not_so() -> None:
    externals, _ = read_externals(ENTRY, Path("e.yaml"), Names(LAKES))
    (missing,) = unlike(externals, lambda _: {})
    assert (missing.severity, missing.message) == (
        "warning",
        "table main.raw.orders does not exist",
    )
    assert list(unlike(externals, lambda _: None)) == []
    real = {"id": "int", "AT": "timestamp", "more": "string"}
    assert [(f.location.line, f.message) for f in unlike(externals, lambda _: real)] == [
        (6, "column id of main.raw.orders is int, not bigint"),
        (8, "main.raw.orders has no column lines"),
    ]
