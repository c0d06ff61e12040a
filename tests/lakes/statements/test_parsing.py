"""Statements as values: what a text is parsed to, before anything is looked up. No Spark.

Tests ``lakes/statements/delete.py``, ``lakes/statements/update.py``,
``lakes/statements/insert.py``, ``lakes/statements/merge.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import PenstockError, QueryFailed, UnsupportedFeature
from penstock.lakes.lake import Lake
from penstock.lakes.statements.delete import Delete
from penstock.lakes.statements.dispatch import FORMS
from penstock.lakes.statements.insert import Insert, by_row_alone
from penstock.lakes.statements.merge import Merge
from penstock.lakes.statements.update import Update
from penstock.sql.statement import Reader, TableName
from penstock.sql.text import SqlExpression


def parsed(text: str, **args: object) -> Any:
    reader = Reader(text, args=args)
    word = reader.past_with() if reader.sees("WITH") else reader.token.upper
    return FORMS[word].parse(reader)


def part(text: str, expression: str) -> SqlExpression:
    return SqlExpression(expression, text.index(expression))


def test_a_delete() -> None:
    text = "WITH a AS (SELECT 1)\nDELETE FROM lake.s.t AS u USING a WHERE u.k >= (SELECT 2)"
    delete = parsed(text)
    assert isinstance(delete, Delete)
    assert delete.target.table == TableName(("s",), "t")
    assert delete.target.alias == "u"
    assert delete.where == part(text, "u.k >= (SELECT 2)")
    assert text[slice(*delete.using or ())] == "a"
    assert delete.statement.with_names == ("a",)
    with pytest.raises(FrozenInstanceError):
        delete.where = None  # type: ignore[misc]  # on purpose


def test_an_update() -> None:
    text = "UPDATE t SET a = b + 1, (s.x, c) = (2, DEFAULT) WHERE c IS NULL"
    update = parsed(text)
    assert isinstance(update, Update)
    sets = [(assigned.parts, assigned.value) for assigned in update.sets]
    assert sets == [
        (("a",), part(text, "b + 1")),
        (("s", "x"), part(text, "2")),
        (("c",), None),
    ]
    assert update.where == part(text, "c IS NULL")


@pytest.mark.parametrize("source", ["VALUES (2), (3)", "(VALUES (2), (3))"])
def test_a_merge_of_constants(source: str) -> None:
    text = f"MERGE INTO t USING {source} AS d(id) ON t.id = d.id WHEN MATCHED THEN DELETE"
    merge = parsed(text)
    assert (merge.alias, merge.named) == ("d", None)
    assert text[slice(*merge.source)] == f"{source} AS d(id)"
    assert merge.on == part(text, "t.id = d.id")


def test_a_merge() -> None:
    text = "MERGE INTO t USING main.s ON t.k = s.k WHEN MATCHED AND s.gone THEN DELETE "
    text += "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 'new')"
    merge = parsed(text)
    assert isinstance(merge, Merge)
    assert (merge.alias, merge.named) == ("s", TableName(("main",), "s"))
    assert merge.on == part(text, "t.k = s.k")
    actions = [(when.kind, when.action, when.all_) for when in merge.whens]
    assert actions == [
        ("matched", "delete", None),
        ("matched", "update", "name"),
        ("not matched", "insert", None),
    ]
    assert list(merge.whens[0].expressions) == [part(text, "s.gone")]
    assert merge.whens[2].values == (SqlExpression("s.k", text.rindex("s.k")), part(text, "'new'"))


def test_an_insert() -> None:
    literals = parsed("INSERT INTO t (a) VALUES (:a), (DEFAULT)", a=5)
    assert isinstance(literals, Insert)
    assert literals.rows is not None
    assert [len(row) for row in literals.rows] == [1, 1]
    text = "INSERT INTO t REPLACE WHERE k < 5 VALUES (upper('x'), DEFAULT)"
    computed = parsed(text)
    assert (computed.rows, computed.replaces) == (None, part(text, "k < 5"))
    assert computed.computed.rows == ((part(text, "upper('x')"), None),)
    assert computed.computed.by_select


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("k < 5 AND v IN ('a', 'b')", True),
        ("k < :n", False),
        ("k IN (SELECT max(k) FROM t)", False),
    ],
)
def test_new_rows_are_checked_by_themselves(where: str, expected: bool) -> None:
    insert = parsed(f"INSERT INTO t REPLACE WHERE {where} VALUES (1, 'a')", n=1)
    assert insert.replaces.text == where
    assert by_row_alone(insert.statement, insert.replaces) is expected


def test_an_expression_is_parsed_once() -> None:
    expression = SqlExpression("k >= 5")
    assert expression.tree is expression.tree
    assert SqlExpression("k >=").tree is None


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder: Path = tmp_path_factory.mktemp("parsing")
    with Lake.attach(f"ducklake:sqlite:{folder}/m.sqlite", new_catalog=True) as attached:
        yield attached


# The whole statement is parsed before a look-up: none of these tables exists.
GRAMMAR: dict[str, tuple[type[PenstockError], str]] = {
    "DELETE FROM nope WHERE": (QueryFailed, "a condition is expected, at line 1:23"),
    "DELETE FROM nope USING WHERE a": (QueryFailed, "a table is expected"),
    "DELETE FROM nope WHERE a GROUP BY b": (UnsupportedFeature, "GROUP BY"),
    "UPDATE nope SET a = 1 WHERE": (QueryFailed, "a condition is expected"),
    "MERGE INTO nope USING s ON a = b WHEN MATCHED THEN UPDATE SET a = ": (QueryFailed, "is exp"),
    "INSERT INTO nope VALUES ((SELECT 1), 2), (3)": (QueryFailed, "1 and 2 values"),
    "ALTER TABLE nope ALTER a SET DEFAULT )": (QueryFailed, "a default is expected"),
    "COMMENT ON COLUMN nope.a IS 5": (QueryFailed, "a comment in quotes is expected"),
    "DROP TABLE nope extra": (QueryFailed, "'extra' is not expected"),
    "SHOW COLUMNS FROM nope extra": (QueryFailed, "'extra' is not expected"),
    "CALL nope(1": (QueryFailed, ", is expected"),
    "BEGIN TRANSACTION nope": (UnsupportedFeature, "'nope' of a transaction"),
}


@pytest.mark.parametrize("text", GRAMMAR)
def test_errors_of_grammar_come_first(lake: Lake, text: str) -> None:
    kind, message = GRAMMAR[text]
    with pytest.raises(kind, match=message):
        lake.sql(text)
