"""The table that a statement changes, as its expressions name it."""

from __future__ import annotations

import pytest

from penstock.lakes.format.naming import TableRef
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.statements.targets import Target, unqualified
from penstock.sql.statement import Reader
from penstock.sql.text import SqlExpression

SCHEMA = TableSchema(
    (Column("k", "int64", 1), Column("s", "struct", 2, children=(Column("k", "int64", 3),)))
)


@pytest.mark.parametrize(
    ("text", "alias", "expected"),
    [
        ("k >= 200", None, "k >= 200"),
        ("t.k >= 200 AND T.`K` < 5", None, "k >= 200 AND `K` < 5"),
        ("main.t.k = 1 OR lake.main.t.k = 2", None, "k = 1 OR k = 2"),
        ("x.k = 1", "x", "k = 1"),
        ("t.k = 1", "x", "t.k = 1"),  # what Spark does not know either
        ("s.k = 1", None, "s.k = 1"),
        ("s.k = 1", "s", "k = 1"),  # the alias before the struct of its name
        ("s.s.k = 1", "s", None),
        ("t.n = 1", None, None),
        ("o.t.k = 1", None, None),  # of another schema
    ],
)
def test_columns_without_the_name_before_them(
    text: str, alias: str | None, expected: str | None
) -> None:
    statement = Reader(f"DELETE FROM t WHERE {text}").statement
    written = SqlExpression(text, len("DELETE FROM t WHERE "))
    plain = unqualified(statement, written, Target(TableRef("main", "t"), alias), SCHEMA)
    assert (plain and plain.text) == expected
