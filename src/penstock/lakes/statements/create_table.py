"""CREATE TABLE, with columns or AS a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.lakes.format.files import PartitionField
from penstock.lakes.format.naming import TableRef
from penstock.lakes.format.objects import SortKey
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.reading.conversions import align
from penstock.lakes.reading.conversions.spark_types import schema_of
from penstock.lakes.statements import columns
from penstock.lakes.statements.assignments import by_position
from penstock.lakes.statements.columns import accept_partitioned_by, accept_sorted_by
from penstock.lakes.statements.session import Answer, Session, counts, name_of, nothing
from penstock.lakes.transaction import Transaction, TransactionTable
from penstock.sql.statement import Reader, StatementText, TableName, alone, if_not_exists
from penstock.sql.text import Span

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


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A CREATE TABLE with ``defined`` columns or with the span of its query, and then possibly
    ``names`` of its columns: ``CREATE TABLE t (a, b) AS SELECT 1, 2``.
    """

    table: TableName
    or_replace: bool
    there_may_be: bool
    statement: StatementText
    defined: tuple[columns.Defined, ...] | None = None
    names: tuple[str, ...] | None = None
    partition_by: tuple[PartitionField, ...] = ()
    sort_by: tuple[SortKey, ...] = ()
    comment: str | None = None
    query: Span | None = None
    with_data: bool = True


def parse(reader: Reader, or_replace: bool) -> CreateTable:
    """Return what follows ``CREATE [OR REPLACE] TABLE``: ``[IF NOT EXISTS] t (a INT, ...)
    [PARTITIONED BY ...] [AS ...]``.
    """
    there_may_be = if_not_exists(reader, or_replace)
    create = CreateTable(reader.table(), or_replace, there_may_be, reader.statement)
    if reader.token.text == "(" and reader.ahead(1).upper not in QUERIES - {"("}:
        if reader.ahead(2).text in {",", ")"}:
            create = replace(create, names=reader.names())
        else:
            create = replace(create, defined=columns.definitions(reader))
    create = _clauses(reader, create)
    if reader.accept("AS") or reader.token.upper in QUERIES:
        if create.defined is not None:
            raise reader.unsupported(
                "columns with types and AS", "CAST in the SELECT, or CREATE and then INSERT"
            )
        query, with_data = until_data(reader)
        return replace(create, query=query, with_data=with_data)
    reader.finish()
    if create.defined is None:
        raise reader.wrong("the columns are expected, (a INT, ...), or AS SELECT ...")
    return create


def _clauses(reader: Reader, create: CreateTable) -> CreateTable:
    """Return what may stand between the columns and AS, in any order."""
    while True:
        partition_by, sort_by = accept_partitioned_by(reader), accept_sorted_by(reader)
        if partition_by is not None:
            create = replace(create, partition_by=partition_by)
        elif sort_by is not None:
            create = replace(create, sort_by=sort_by)
        elif reader.accept("COMMENT"):
            reader.accept("=")
            create = replace(create, comment=reader.string("a comment"))
        elif reader.accept("USING"):
            _format(reader)
        elif reader.token.upper in _NEAREST:
            word = reader.token.upper
            raise reader.unsupported(f"{word} of a table", _NEAREST[word])
        else:
            return create


def _format(reader: Reader) -> None:
    at = reader.token.start
    if reader.name("a format").upper() not in {"DUCKLAKE", "PARQUET"}:
        raise reader.unsupported("another format", "leave USING out: files are Parquet", at)


def until_data(reader: Reader) -> tuple[Span, bool]:
    """The query's span, and whether its rows are inserted, unless WITH NO DATA follows."""
    tail = [token.upper for token in reader.tokens[-3:]]
    cut = 3 if tail == ["WITH", "NO", "DATA"] else 2 if tail[1:] == ["WITH", "DATA"] else 0
    if cut:
        del reader.tokens[-cut:]
    return reader.rest(), cut != 3


def execute(session: Session, create: CreateTable) -> Answer:
    ref = session.ref(create.table, new=True)
    if create.query is not None:
        return _from_query(session, create, ref, alone(create.statement, create.query))
    with session.writing() as transaction:
        _create(transaction, create, ref, [defined.column for defined in create.defined or ()])
    return nothing(session.spark)


def _create(
    transaction: Transaction, create: CreateTable, ref: TableRef, defined: Sequence[Column]
) -> TransactionTable:
    comments = {
        column.column.name: column.comment
        for column in create.defined or ()
        if column.comment is not None
    }
    return transaction.create_table(
        name_of(ref),
        TableSchema(tuple(defined)),
        partition_by=create.partition_by,
        sort_by=create.sort_by,
        comment=create.comment,
        column_comments=comments,
        or_replace=create.or_replace,
        if_not_exists=create.there_may_be,
    )


def _from_query(session: Session, create: CreateTable, ref: TableRef, query: str) -> Answer:
    """Create a table with the columns of the query, and its rows unless WITH NO DATA is set."""
    with session.writing() as transaction:
        if create.there_may_be and transaction.kind_of(name_of(ref)) is not None:
            return counts(session.spark)
        df = session.query(query)
        if create.names is not None:
            rest = df.columns[len(create.names) :]  # they have the query's names, as in DuckDB
            named = [Column(name, "") for name in (*create.names, *rest)]
            df = by_position(df, named, str(ref))
        df = align.known(df)
        defined = [replace(column, id=None) for column in schema_of(df).columns]
        table = _create(transaction, create, ref, defined)
        if not create.with_data:
            return counts(session.spark)
        staged = table.append(df)
    return counts(session.spark, inserted=staged.rows_inserted)
