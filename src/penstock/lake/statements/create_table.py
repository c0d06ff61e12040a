"""CREATE TABLE, with columns or AS a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.lake.format.files import PartitionField
from penstock.lake.format.naming import TableRef
from penstock.lake.format.objects import SortKey
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.reading.conversions import align
from penstock.lake.reading.conversions.spark_types import schema_of
from penstock.lake.statements import assignment, columns
from penstock.lake.statements.answer import Answer, counts, nothing
from penstock.lake.statements.layout import accept_partitioned_by, accept_sorted_by
from penstock.lake.statements.session import Session, name_of, table_ref
from penstock.lake.transaction import Transaction, TransactionTable
from penstock.sql.statement import Reader, alone, if_not_exists

QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "("})
_NEAREST: Mapping[str, str] = {
    "LOCATION": "set data_path when the lake is attached",
    "TBLPROPERTIES": "use CALL set_option(..., table_name => ...)",
    "OPTIONS": "use CALL set_option(..., table_name => ...)",
    "STORED": "leave it out: files are Parquet",
    "ROW": "leave it out: files are Parquet",
    "LIKE": "use CREATE TABLE AS SELECT * FROM t WHERE false",
    "CLONE": "use CREATE TABLE AS SELECT * FROM t",
    "DEEP": "use CREATE TABLE AS SELECT * FROM t",
    "SHALLOW": "use CREATE TABLE AS SELECT * FROM t",
    "CLUSTER": "use SORTED BY",
    "CLUSTERED": "use SORTED BY",
}


@dataclass(slots=True)
class _Table:
    """A CREATE TABLE as far as it was read; ``names`` of CTAS: ``CREATE TABLE t (a, b) AS``."""

    ref: TableRef
    or_replace: bool
    there_may_be: bool
    defined: list[columns.Defined] | None = None
    names: tuple[str, ...] | None = None
    partition_by: tuple[PartitionField, ...] = ()
    sort_by: tuple[SortKey, ...] = ()
    comment: str | None = None


def run(session: Session, reader: Reader, or_replace: bool) -> Answer:
    """``CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t (a INT, ...) [PARTITIONED BY ...] [AS ...]``"""
    there_may_be = if_not_exists(reader, or_replace)
    wanted = _Table(table_ref(reader, new=True), or_replace, there_may_be)
    if reader.token.text == "(" and reader.ahead(1).upper not in QUERIES - {"("}:
        if reader.ahead(2).text in {",", ")"}:
            wanted.names = reader.names()
        else:
            wanted.defined = columns.definitions(reader, session.args)
    _clauses(reader, wanted)
    if reader.accept("AS") or reader.token.upper in QUERIES:
        if wanted.defined is not None:
            raise reader.unsupported(
                "columns with types and AS", "CAST in the SELECT, or CREATE and then INSERT"
            )
        return _from_query(session, reader, wanted)
    reader.finish()
    if wanted.defined is None:
        raise reader.wrong("the columns are expected, (a INT, ...), or AS SELECT ...")
    with session.writing() as transaction:
        defined = [one.column for one in wanted.defined]
        _create(transaction, wanted, defined)
    return nothing(session.spark)


def _clauses(reader: Reader, wanted: _Table) -> None:
    """What may stand between the columns and AS, in any order."""
    while True:
        partition_by, sort_by = accept_partitioned_by(reader), accept_sorted_by(reader)
        if partition_by is not None:
            wanted.partition_by = partition_by
        elif sort_by is not None:
            wanted.sort_by = sort_by
        elif reader.accept("COMMENT"):
            reader.accept("=")
            wanted.comment = reader.string("a comment")
        elif reader.accept("USING"):
            _format(reader)
        elif reader.token.upper in _NEAREST:
            word = reader.token.upper
            raise reader.unsupported(f"{word} of a table", _NEAREST[word])
        else:
            return


def _format(reader: Reader) -> None:
    at = reader.token.start
    if reader.name("a format").upper() not in {"DUCKLAKE", "PARQUET"}:
        raise reader.unsupported("another format", "leave USING out: files are Parquet", at)


def _create(
    transaction: Transaction, wanted: _Table, defined: Sequence[Column]
) -> TransactionTable:
    comments = {
        one.column.name: one.comment for one in wanted.defined or () if one.comment is not None
    }
    return transaction.create_table(
        name_of(wanted.ref),
        TableSchema(tuple(defined)),
        partition_by=wanted.partition_by,
        sort_by=wanted.sort_by,
        comment=wanted.comment,
        column_comments=comments,
        or_replace=wanted.or_replace,
        if_not_exists=wanted.there_may_be,
    )


def _from_query(session: Session, reader: Reader, wanted: _Table) -> Answer:
    """The table has the columns of the query; its rows too, unless WITH NO DATA."""
    span, with_data = until_data(reader)
    with session.writing() as transaction:
        if wanted.there_may_be and transaction.kind_of(name_of(wanted.ref)) is not None:
            return counts(session.spark)
        df = session.query(alone(reader, span))
        if wanted.names is not None:
            rest = df.columns[len(wanted.names) :]  # keep the query's names, as in DuckDB
            named = [Column(name, "") for name in (*wanted.names, *rest)]
            df = assignment.by_position(df, named, str(wanted.ref))
        df = align.known(df)
        found = [replace(column, id=None) for column in schema_of(df).columns]
        table = _create(transaction, wanted, found)
        if not with_data:
            return counts(session.spark)
        staged = table.append(df)
    return counts(session.spark, inserted=staged.rows_inserted)


def until_data(reader: Reader) -> tuple[tuple[int, int], bool]:
    """The query's span, and whether its rows are wanted: ``WITH NO DATA`` is DuckDB's."""
    tail = [token.upper for token in reader.tokens[-3:]]
    cut = 3 if tail == ["WITH", "NO", "DATA"] else 2 if tail[1:] == ["WITH", "DATA"] else 0
    if cut:
        del reader.tokens[-cut:]
    return reader.rest(), cut != 3
