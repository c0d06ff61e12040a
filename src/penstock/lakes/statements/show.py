"""SHOW what a lake holds: tables, views, schemas, macros; DESCRIBE a table, a view or a query."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import (
    EnvironmentMissing,
    LakeError,
    QueryFailed,
    SchemaNotFound,
    TableNotFound,
)
from penstock.lakes.catalog.definitions import tables
from penstock.lakes.catalog.definitions.stored_sql import load_macros, load_views
from penstock.lakes.format import naming
from penstock.lakes.format.naming import DEFAULT_SCHEMA, TableRef, fold
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.reading.conversions.spark_types import schema_of
from penstock.lakes.statements.columns import duckdb_type
from penstock.lakes.statements.session import Answer, Session, name_of, table
from penstock.sql.identifiers import quoted
from penstock.sql.statement import Reader, StatementText, TableName, alone
from penstock.sql.text import Span
from penstock.sql.tokens import NAME, WORD

_ALL = (
    "database STRING, schema STRING, name STRING, column_names ARRAY<STRING>, "
    "column_types ARRAY<STRING>, temporary BOOLEAN"
)
_NOT_DESCRIBED = {
    "CATALOG": "use SELECT * FROM settings()",
    "DATABASE": "use SHOW TABLES IN schema",
    "DETAIL": "use SELECT * FROM table_info(), and lake.table(name).info() for its partitioning",
    "FUNCTION": "use SHOW FUNCTIONS for the lake's macros",
    "HISTORY": "use SELECT * FROM snapshots(), or table_changes('t', from, to)",
    "NAMESPACE": "use SHOW TABLES IN schema",
    "SCHEMA": "use SHOW TABLES IN schema",
    "VOLUME": "a lake has none",
}
_DESCRIBED = (
    "column_name STRING, column_type STRING, null STRING, key STRING, default STRING, "
    "extra STRING, comment STRING"
)
# These alone may be the name of a table.
_OF_SOMETHING = {
    "CURRENT": "names without a schema are of main: write schema.table",
    "GRANT": "ask the catalog's database for rights",
    "GRANTS": "ask the catalog's database for rights",
    "HISTORY": "use SELECT * FROM snapshots(), or table_changes('t', from, to)",
    "INDEX": "use DESCRIBE: tables are partitioned and sorted, not indexed",
    "INDEXES": "use DESCRIBE: tables are partitioned and sorted, not indexed",
    "LOCKS": "nothing is locked: commits that exclude each other are found",
}
_NEAREST = {
    "CREATE VIEW": "use lake.views(), whose sql is the view's query",
    "TABLE EXTENDED": "use SHOW TABLES, and SELECT * FROM table_info()",
    "CREATE TABLE": "use DESCRIBE, and lake.table(name).info() for its partitioning",
    "PARTITIONS": "use SELECT * FROM ducklake_list_files('lake', 't')",
    "TBLPROPERTIES": "use SELECT * FROM options()",
    "CATALOGS": "use SHOW SCHEMAS",
}


@dataclass(frozen=True, slots=True)
class Show:
    """``kind`` is one of `_KINDS`; ``schema`` is what its IN names, at ``at``; ``of`` a table."""

    kind: str
    schema: str | None = None
    at: int = 0
    of: TableName | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """A DESCRIBE of a table or view or, with the span of a query, of its columns."""

    table: TableName | None
    query: Span | None
    statement: StatementText


def parse(reader: Reader) -> Show:
    """``SHOW TABLES [IN schema] [LIKE 'pattern']`` and its like, or ``SHOW t``."""
    reader.next()
    if reader.accept("ALL", "TABLES"):
        reader.finish()
        return Show("ALL TABLES")
    if reader.sees("USER", "FUNCTIONS"):  # a lake has no others
        reader.next()
    kind = reader.token.upper
    if kind in _PARSE and reader.ahead(1).text != ".":
        reader.next()
        show = _PARSE[kind](reader, kind)
        reader.finish()
        return show
    for word, nearest in _NEAREST.items():
        if reader.sees(*word.split()):
            raise reader.unsupported(f"SHOW {word}", nearest)
    if kind in _OF_SOMETHING and reader.ahead(1).kind == WORD:
        raise reader.unsupported(f"SHOW {kind}", _OF_SOMETHING[kind])
    table = reader.table()
    reader.finish()
    return Show("COLUMNS", of=table)


def _in_schema(reader: Reader, kind: str) -> Show:
    if reader.accept_any("FROM", "IN") is None:
        return Show(kind, pattern=_like(reader))
    at, schema = reader.token.start, reader.qualified(1, "a schema")[-1]
    return Show(kind, schema, at, pattern=_like(reader))


def _in_lake(reader: Reader, kind: str) -> Show:
    if reader.accept_any("FROM", "IN") is not None:
        at, lake = reader.token.start, reader.name("the lake's name")
        if fold(lake) not in reader.lakes:
            called = naming.called(reader.lakes)
            raise reader.wrong(f"{lake} is not this lake", f"it is called {called}", at)
    return Show(kind, pattern=_like(reader))


def _of_table(reader: Reader, kind: str) -> Show:
    if reader.accept_any("FROM", "IN") is None:
        raise reader.wrong(f"FROM is expected, not {reader.shown()}")
    table = reader.table()
    if reader.accept_any("FROM", "IN") is not None:
        return Show(kind, reader.name("a schema"), of=table)
    return Show(kind, of=table)


def _like(reader: Reader) -> str | None:
    """``LIKE 'a%'``"""
    if not reader.accept("LIKE") and reader.token.kind != "string":
        return None
    return reader.string("a pattern")


def parse_describe(reader: Reader) -> Describe:
    """``DESCRIBE [TABLE] t``, ``DESCRIBE SELECT ...``; ``t`` may be a view."""
    reader.next()
    if reader.token.upper in {"SELECT", "WITH", "FROM", "VALUES"} or reader.accept("QUERY"):
        return Describe(None, reader.rest(), reader.statement)
    for word, nearest in _NOT_DESCRIBED.items():
        if reader.sees(word) and reader.ahead(1).kind in {WORD, NAME}:
            raise reader.unsupported(f"DESCRIBE {word}", nearest)
    if reader.ahead(1).kind != "end" and reader.ahead(1).text != ".":
        reader.accept_any("TABLE", "VIEW")
    reader.accept_any("EXTENDED", "FORMATTED")
    table = reader.table()
    if not reader.done:
        raise reader.unsupported(
            f"{reader.shown()} after the table",
            "DESCRIBE t lists all columns; lake.table(t).describe(version=...) those of a snapshot",
        )
    return Describe(table, None, reader.statement)


def execute(session: Session, show: Show) -> Answer:
    return _KINDS[show.kind](session, show)


def describe(session: Session, wanted: Describe) -> Answer:
    """The columns as DuckDB lists them, with their comments."""
    if wanted.table is not None:
        return _described(session, session.ref(wanted.table))
    assert wanted.query is not None, "one of the two is there"
    df = session.query(alone(wanted.statement, wanted.query))
    return _columns(session, schema_of(df))


def _tables(session: Session, show: Show) -> Answer:
    """Tables and views, as DuckDB lists them."""
    return _named(session, show, [name for name, _ in _held(session, _schema(session, show))])


def _views(session: Session, show: Show) -> Answer:
    held = _held(session, _schema(session, show))
    return _named(session, show, [name for name, kind in held if kind == "view"])


def _schemas(session: Session, show: Show) -> Answer:
    return _named(session, show, session.catalog.schemas(session.snapshot_id()))


def _functions(session: Session, show: Show) -> Answer:
    """The lake's macros."""
    schema = _schema(session, show)
    with session.catalog.reading() as connection:
        macros = load_macros(connection, session.snapshot_id())
    names = [macro.name for macro in macros if fold(macro.schema_name) == fold(schema)]
    return _named(session, show, names)


def _of(session: Session, show: Show) -> Answer:
    """The columns of a table."""
    assert show.of is not None, "a table is named"
    if show.schema is not None:
        return _described(session, TableRef(show.schema, show.of.name))
    return _described(session, session.ref(show.of))


def _all_tables(session: Session, _: Show) -> Answer:
    rows = [
        (
            *(None, schema, name),
            None if columns is None else [column.name for column in columns],
            None if columns is None else [duckdb_type(column) for column in columns],
            False,
        )
        for schema, name, columns in _shapes(session)
    ]
    names = [name for name, _ in (pair.strip().split(" ") for pair in _ALL.split(", "))]
    types = tuple(pair.strip().split(" ")[1].lower() for pair in _ALL.split(", "))
    return Answer(names, types, tuple(rows), session.spark)


def _shapes(session: Session) -> Iterator[tuple[str, str, Sequence[Column] | None]]:
    """Every table and view with its columns; ``None`` for a view that cannot be read."""
    snapshot_id = session.snapshot_id()
    tables = {(fold(t.schema_name), t.name): t for t in session.catalog.tables(snapshot_id)}
    transaction = session.transaction
    for schema in session.catalog.schemas(snapshot_id):
        for name, kind in _held(session, schema):
            ref = TableRef(schema, name)
            if kind == "view":
                yield schema, name, _of_view(session, ref)
            elif transaction is not None:
                yield schema, name, transaction.table(name_of(ref)).schema.columns
            else:
                yield schema, name, tables[fold(schema), name].schema.columns


def _of_view(session: Session, ref: TableRef) -> Sequence[Column] | None:
    try:
        df = session.query(f"SELECT * FROM {quoted(ref.schema)}.{quoted(ref.name)}")
        return schema_of(df).columns
    except (EnvironmentMissing, LakeError, QueryFailed):
        return None


def _schema(session: Session, show: Show) -> str:
    """The schema whose names are listed. Raises SchemaNotFound."""
    if show.schema is None:
        return session.current.schema
    known = session.catalog.schemas(session.snapshot_id())
    if fold(show.schema) in map(fold, known):
        return show.schema
    if fold(show.schema) in session.lakes:
        return DEFAULT_SCHEMA  # the lake's name alone, as in DuckDB
    raise SchemaNotFound(
        f"schema {show.schema!r} does not exist",
        hint=f"there are {', '.join(known)}",
        data={"schema": show.schema, "at": show.at},
    )


def _named(session: Session, show: Show, names: Iterable[str]) -> Answer:
    """The names that match the pattern, which may also be Spark's ``'a*|b*'``."""
    text = re.escape(show.pattern.lower()) if show.pattern is not None else "%"
    for written, meant in ((r"\*", ".*"), ("%", ".*"), ("_", "."), (r"\|", "|")):
        text = text.replace(written, meant)
    pattern = re.compile(text, re.S)
    rows = [(name,) for name in names if pattern.fullmatch(name.lower())]
    return table(session.spark, "name STRING", rows)


def _held(session: Session, schema: str) -> list[tuple[str, str]]:
    """The names of a schema's tables and views, inside the transaction if one is open."""
    transaction = session.transaction
    if transaction is not None:
        return transaction.names_in(schema)
    snapshot_id = session.snapshot_id()
    with session.catalog.reading() as connection:
        views = load_views(connection, snapshot_id)
    held = [(t.schema_name, t.name, "table") for t in session.catalog.tables(snapshot_id)]
    held += [(v.schema_name, v.name, "view") for v in views]
    return sorted((name, kind) for inside, name, kind in held if fold(inside) == fold(schema))


def _described(session: Session, ref: TableRef) -> Answer:
    """The columns of a table or view."""
    transaction = session.transaction
    if transaction is not None:
        staged = transaction.table(name_of(ref))
        if staged.exists and staged.candidate.change() is not None:
            return _columns(session, staged.schema)
    snapshot_id = session.snapshot_id()
    known = session.catalog.find_table(ref.schema, ref.name, snapshot_id)
    if known is not None:
        with session.catalog.reading() as connection:
            description = tables.describe(connection, known, snapshot_id)
        return _columns(session, known.schema, description.column_tags)
    names = session.names(transaction)
    at = names.snapshot(names.at)
    view = names.find_view(ref, at)
    if view is not None:
        return _columns(session, schema_of(names.view(view, at)), view.column_tags)
    session.catalog.table(ref.schema, ref.name, snapshot_id)  # raises and suggests
    raise TableNotFound(f"table {ref.schema}.{ref.name} does not exist")


def _columns(
    session: Session, schema: TableSchema, tags: Mapping[str, Mapping[str, str]] | None = None
) -> Answer:
    comments = {fold(name): of.get("comment") for name, of in (tags or {}).items()}
    rows = [_row(column, comments.get(fold(column.name))) for column in schema.columns]
    return table(session.spark, _DESCRIBED, rows)


def _row(column: Column, comment: str | None) -> tuple[str | None, ...]:
    null = "YES" if column.nullable else "NO"
    return (column.name, duckdb_type(column), null, None, _shown_default(column), None, comment)


def _shown_default(column: Column) -> str | None:
    """A default as SQL: in quotes, except numbers and expressions."""
    if column.default is None or column.default_kind != "literal":
        return column.default
    if column.type.startswith(("int", "uint", "float", "decimal", "boolean")):
        return column.default
    return "'" + column.default.replace("'", "''") + "'"


_PARSE: Mapping[str, Callable[[Reader, str], Show]] = {
    **dict.fromkeys(("FUNCTIONS", "MACROS", "TABLES", "VIEWS"), _in_schema),
    **dict.fromkeys(("DATABASES", "NAMESPACES", "SCHEMAS"), _in_lake),
    "COLUMNS": _of_table,
}
_KINDS: Mapping[str, Callable[[Session, Show], Answer]] = {
    "ALL TABLES": _all_tables,
    "COLUMNS": _of,
    **dict.fromkeys(("DATABASES", "NAMESPACES", "SCHEMAS"), _schemas),
    **dict.fromkeys(("FUNCTIONS", "MACROS"), _functions),
    "TABLES": _tables,
    "VIEWS": _views,
}
