"""What is read of a statement's text, and what it says when it is wrong. No Spark in these.

Tests ``lakes/statements/columns.py``.

Tests ``lakes/statements/session.py`` (answers that need no Spark);
``lakes/statements/assignments.py`` (SET, lists and queries); ``lakes/statements/session.py``
(the lake and transaction of a statement); ``lakes/statements/show.py`` (SHOW and DESCRIBE);
``lakes/statements/transactions.py`` (BEGIN, COMMIT, ROLLBACK); and ``sql/statement.py`` (words and
places of a statement).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import (
    ArgumentError,
    LakeError,
    NameTaken,
    PenstockError,
    QueryFailed,
    SchemaMismatch,
    TableNotFound,
    UnsupportedFeature,
)
from penstock.lakes.format.schema import type_text
from penstock.lakes.lake import Lake
from penstock.lakes.statements.columns import column_type, duckdb_type
from penstock.lakes.statements.dispatch import first_word, is_statement
from penstock.lakes.transaction import Transaction
from penstock.sql.statement import Reader
from penstock.sql.tokens import split


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=f"{tmp_path}/data") as attached:
        attached.sql("CREATE TABLE t (a INT NOT NULL, b VARCHAR, s STRUCT(x INT))")
        yield attached


TYPES = {
    "INTEGER[][]": "list<list<int32>>",
    "ARRAY<MAP<STRING, STRUCT<a: INT, `b c`: DECIMAL(10, 2)>>>": (
        "list<map<varchar, struct<a: int32, b c: decimal(10,2)>>>"
    ),
    'STRUCT(a HUGEINT, "b" TIMESTAMP WITH TIME ZONE)': "struct<a: int128, b: timestamptz>",
    "MAP(VARCHAR(10), DOUBLE PRECISION)": "map<varchar, float64>",
    "TIMESTAMP_NTZ": "timestamp",
    "timestamp_ltz": "timestamptz",
    "TIMESTAMP(0)": "timestamp_s",
    "BYTE": "int8",
    "binary": "blob",
    "NUMERIC": "decimal(18,3)",
}


@pytest.mark.parametrize("text", TYPES)
def test_types(text: str) -> None:
    column = column_type(Reader(text), "c")
    assert type_text(column) == TYPES[text]
    assert column_type(Reader(duckdb_type(column)), "c") == column


def test_a_colon_after_a_key() -> None:
    kinds = [token.kind for token in Reader("{'a':b, \"c\":NULL, d: :e, f::INT}").tokens]
    assert kinds.count("marker") == 1


def test_statements_of_a_text() -> None:
    text = "SELECT ';' -- one;\n; /* two; */ INSERT INTO t VALUES ('a;b', `c;`);;"
    assert [text[a:b] for a, b in split(text)] == [
        "SELECT ';'",
        "INSERT INTO t VALUES ('a;b', `c;`)",
    ]


QUERIES = {
    "SELECT 1": False,
    "-- insert\n/* update */ (SELECT 1)": False,
    "WITH a AS (SELECT 1) SELECT 'insert' FROM a": False,
    "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a": True,
    "WITH a(x) AS NOT MATERIALIZED (SELECT 1), b AS (SELECT 2) DELETE FROM t": True,
    "WITH RECURSIVE `update` AS (SELECT 1) SELECT * FROM `update`": False,
    "WITH insert AS (SELECT 1) SELECT delete FROM insert": False,
    "SET x = 1; SELECT 1": False,
    "SELECT 1; drop table t": True,
}


@pytest.mark.parametrize("text", QUERIES)
def test_what_is_a_statement(text: str) -> None:
    assert is_statement(text) == QUERIES[text]
    assert first_word(f"  -- x\n{text}") == first_word(text)


WRONG: dict[str, tuple[type[PenstockError], str]] = {
    "CREATE TABLE x (a INT,\n b NOPE)": (QueryFailed, r"type NOPE does not exist, at line 2:4"),
    "CREATE TABLE x (a INT, A INT)": (QueryFailed, r"two columns named 'A', at line 1:24"),
    "CREATE TABLE t (a INT)": (NameTaken, "main.t"),
    "CREATE TABLE x (a INT DEFAULT 'b')": (QueryFailed, r"'b' of column 'a' is not a valid int32"),
    "CREATE TABLE x (a ENUM('x'))": (UnsupportedFeature, "ENUM.*line 1:19"),
    "CREATE TABLE x (a INT) PARTITIONED BY (truncate(4, a))": (UnsupportedFeature, "truncate"),
    "CREATE INDEX i ON t (a)": (UnsupportedFeature, "CREATE INDEX"),
    "INSERT INTO t VALUES (1)": (QueryFailed, "1 values are given for 3 columns"),
    "INSERT INTO t VALUES ('x', 'y', NULL)": (SchemaMismatch, "'x' is not a valid int32"),
    "INSERT INTO t (b) VALUES ('y')": (SchemaMismatch, "NOT NULL"),
    "INSERT INTO t (a) VALUES (:nope)": (ArgumentError, ":nope"),
    "INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING": (UnsupportedFeature, "ON CONFLICT"),
    "INSERT INTO t VALUES ((SELECT 1), 2), (3)": (QueryFailed, "1 and 2 values"),
    "INSERT INTO nope VALUES (1)": (TableNotFound, "nope"),
    "UPDATE t SET\n z = 1": (QueryFailed, r"no column 'z', at line 2:2"),
    "UPDATE t SET b = 'x', b = 'y'": (QueryFailed, "twice"),
    "UPDATE t SET\n b = 'x', s.z = 1": (
        QueryFailed,
        "s of type struct has no field 'z', at line 2:11",
    ),
    "UPDATE t SET s.x = 1, t.s = NULL": (QueryFailed, "'s' is set twice"),
    "UPDATE t SET s.x = 1, main.t.s.X = 2": (QueryFailed, "'s.x' is set twice"),
    "UPDATE t AS u SET t.a = 1": (QueryFailed, "no column 't.a'"),
    "WITH a AS (SELECT 1)\n DELETE FROM nope": (TableNotFound, "nope"),
    "WITH a AS (SELECT 1)\n UPDATE t SET z = 1": (QueryFailed, r"column 'z', at line 2:15"),
    "DELETE t": (QueryFailed, "FROM is expected"),
    "MERGE INTO t USING t AS s ON true": (QueryFailed, "WHEN"),
    "MERGE INTO t USING t AS s ON true WHEN MATCHED THEN INSERT": (UnsupportedFeature, "INSERT"),
    "ALTER TABLE t ALTER a SET TYPE VARCHAR": (UnsupportedFeature, "int64"),
    "ALTER TABLE nope ADD a INT": (TableNotFound, "nope"),
    "DROP VIEW t": (TableNotFound, "it is a table"),
    "CREATE MACRO m(a) AS hash(a)": (UnsupportedFeature, "hash"),
    "CREATE MACRO m(a := NULL) AS a": (UnsupportedFeature, "NULL as a default"),
    "CALL lake.expire_snapshot()": (ArgumentError, "expire_snapshot"),
    "COMMIT": (LakeError, "no transaction"),
    "OPTIMIZE t": (UnsupportedFeature, "OPTIMIZE"),
    "INSERT INTO t (a) VALUES ('1": (QueryFailed, r"not closed, at line 1:27"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong(lake: Lake, text: str) -> None:
    kind, words = WRONG[text]
    with pytest.raises(kind, match=words) as caught:
        lake.sql(text)
    assert "\n" not in caught.value.message
    assert len(lake.snapshots()) == 2


def test_a_transaction(lake: Lake) -> None:
    lake.sql("BEGIN; INSERT INTO t (a) VALUES (:a); CREATE TABLE u (x INT)", args={"a": 1})
    assert [row.name for row in lake.sql("SHOW TABLES").collect()] == ["t", "u"]
    assert len(lake.snapshots()) == 2
    lake.sql("COMMIT")
    assert len(lake.snapshots()) == 3
    with pytest.raises(LakeError, match="no transaction is open"):
        lake.sql("ROLLBACK")


def test_a_transaction_that_fails(lake: Lake) -> None:
    lake.sql("BEGIN; INSERT INTO t (a) VALUES (1)")
    with pytest.raises(SchemaMismatch) as caught:
        lake.sql("INSERT INTO t (a) VALUES (NULL)")
    assert "ROLLBACK ends it" in str(caught.value)
    with pytest.raises(LakeError, match="has failed"):
        lake.sql("COMMIT")
    lake.sql("ROLLBACK")
    assert len(lake.snapshots()) == 2


def test_a_statement_that_fails_with_nothing_to_undo(lake: Lake) -> None:
    """As errors of DuckDB's binder, it does not end the transaction."""
    lake.sql("BEGIN")
    with pytest.raises(SchemaMismatch):
        lake.sql("INSERT INTO t (a) VALUES (NULL)")
    lake.sql("INSERT INTO t (a) VALUES (1)")
    for text in ("DELETE FROM nosuch", "INSERT INTO nosuch VALUES (1)", "DROP TABLE nosuch"):
        with pytest.raises(TableNotFound):
            lake.sql(text)
    lake.sql("COMMIT")
    assert len(lake.snapshots()) == 3


def test_statements_of_a_transaction_object(lake: Lake) -> None:
    with lake.transaction(author="me") as transaction:
        transaction.sql("INSERT INTO t (a) VALUES (1)")
        transaction.sql("CREATE TABLE u (x INT)")
        assert transaction.sql("SHOW TABLES").count() == 2
        assert lake.sql("SHOW TABLES").count() == 1
        with pytest.raises(UnsupportedFeature, match="COMMIT"):
            transaction.sql("COMMIT")
    assert lake.snapshots()[-1].author == "me"


def test_a_statement_of_a_transaction_is_all_or_nothing(lake: Lake) -> None:
    def fail(transaction: Transaction) -> None:
        with transaction.all_or_nothing():
            transaction.sql("INSERT INTO t (a) VALUES (2); ALTER TABLE t RENAME TO v")
            transaction.sql("CREATE SCHEMA s; CREATE TABLE s.w (x INT); CREATE TABLE t (x INT)")
            transaction.sql("CREATE VIEW z AS SELECT 1 AS one; DROP TABLE v; SELECT")

    with lake.transaction() as transaction:
        transaction.sql("INSERT INTO t (a, b) VALUES (1, 'kept')")
        table, candidate = transaction.table("t"), transaction.table("t").candidate
        with pytest.raises(PenstockError):
            fail(transaction)
        assert transaction.table("t") is table
        assert table.candidate == candidate
        assert transaction.names_in("main") == [("t", "table")]
        with pytest.raises(SchemaMismatch) as caught:
            transaction.sql("INSERT INTO t (a) VALUES (3), (NULL)")
        assert "ROLLBACK" not in str(caught.value)
        transaction.sql("INSERT INTO t (a) VALUES (4)")
    assert lake.snapshots()[-1].id == 2
    assert lake.sql("DESCRIBE t").count() == 3
    assert lake.sql("SHOW TABLES").count() == 1


def test_what_is_there(lake: Lake) -> None:
    columns = lake.sql("DESCRIBE t").collect()
    assert [(row.column_name, row.column_type, row.null) for row in columns] == [
        ("a", "INTEGER", "NO"),
        ("b", "VARCHAR", "YES"),
        ("s", "STRUCT(x INTEGER)", "YES"),
    ]
    assert lake.sql("SHOW TABLES LIKE 'x*|T'").count() == 1
    assert lake.sql("SHOW SCHEMAS").first() == ("main",)
    answer = lake.sql("INSERT INTO t (a) VALUES (1), (2)")
    assert answer.first() == (2, 0, 0, 2)
