"""SHOW what a lake holds: TABLES, VIEWS, SCHEMAS, COLUMNS, FUNCTIONS; or, by name, a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from penstock.errors import EnvironmentMissing, LakeError, QueryFailed, SchemaNotFound
from penstock.lake.catalog import objects
from penstock.lake.format import naming
from penstock.lake.format.naming import DEFAULT_SCHEMA, TableRef, fold
from penstock.lake.format.schema import Column
from penstock.lake.reading.conversions.spark_types import quoted, schema_of
from penstock.lake.statements import describe
from penstock.lake.statements.answer import Answer, table
from penstock.lake.statements.session import Session, name_of, table_ref
from penstock.lake.statements.types import duckdb_type
from penstock.sql.statement import Reader
from penstock.sql.tokens import WORD

_ALL = (
    "database STRING, schema STRING, name STRING, column_names ARRAY<STRING>, "
    "column_types ARRAY<STRING>, temporary BOOLEAN"
)


def run(session: Session, reader: Reader) -> Answer:
    """``SHOW TABLES [IN schema] [LIKE 'pattern']`` and its like."""
    reader.next()
    if reader.accept("ALL", "TABLES"):
        reader.finish()
        return _all_tables(session)
    if reader.sees("USER", "FUNCTIONS"):  # a lake has no others
        reader.next()
    show = _KINDS.get(reader.token.upper)
    if show is not None and reader.ahead(1).text != ".":
        reader.next()
        return show(session, reader)
    for word, nearest in _NEAREST.items():
        if reader.sees(*word.split()):
            raise reader.unsupported(f"SHOW {word}", nearest)
    word = reader.token.upper
    if word in _OF_SOMETHING and reader.ahead(1).kind == WORD:
        raise reader.unsupported(f"SHOW {word}", _OF_SOMETHING[word])
    ref = table_ref(reader)
    reader.finish()
    return describe.of(session, ref)


def _tables(session: Session, reader: Reader) -> Answer:
    """Tables and views, as DuckDB lists them."""
    schema, matches = _narrowed(session, reader)
    return _named(session, [name for name, _ in _held(session, schema)], matches)


def _views(session: Session, reader: Reader) -> Answer:
    schema, matches = _narrowed(session, reader)
    names = [name for name, kind in _held(session, schema) if kind == "view"]
    return _named(session, names, matches)


def _schemas(session: Session, reader: Reader) -> Answer:
    if reader.accept_any("FROM", "IN") is not None:
        at, lake = reader.token.start, reader.name("the lake's name")
        if fold(lake) not in reader.lakes:
            called = naming.called(reader.lakes)
            raise reader.wrong(f"{lake} is not this lake", f"it is called {called}", at)
    matches = _like(reader)
    reader.finish()
    return _named(session, session.catalog.schemas(session.snapshot_id()), matches)


def _functions(session: Session, reader: Reader) -> Answer:
    """The lake's macros."""
    schema, matches = _narrowed(session, reader)
    with session.catalog.reading() as connection:
        found = objects.macros(connection, session.snapshot_id())
    names = [one.name for one in found if fold(one.schema_name) == fold(schema)]
    return _named(session, names, matches)


def _columns(session: Session, reader: Reader) -> Answer:
    if reader.accept_any("FROM", "IN") is None:
        raise reader.wrong(f"FROM is expected, not {reader.shown()}")
    ref = table_ref(reader)
    if reader.accept_any("FROM", "IN") is not None:
        ref = TableRef(reader.name("a schema"), ref.name)
    reader.finish()
    return describe.of(session, ref)


def _all_tables(session: Session) -> Answer:
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
    """Every table and view with its columns; ``None`` of a view that cannot be read here."""
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


def _narrowed(session: Session, reader: Reader) -> tuple[str, Callable[[str], bool]]:
    """The schema, and which names of it are asked for."""
    schema = reader.schema
    if reader.accept_any("FROM", "IN") is not None:
        at = reader.token.start
        schema = reader.qualified(1, "a schema")[-1]
        known = session.catalog.schemas(session.snapshot_id())
        if fold(schema) in reader.lakes and fold(schema) not in map(fold, known):
            schema = DEFAULT_SCHEMA  # the lake's name alone, as in DuckDB
        if fold(schema) not in map(fold, known):
            raise SchemaNotFound(
                f"there is no schema {schema!r}",
                hint=f"there are {', '.join(known)}",
                data={"schema": schema, "at": at},
            )
    matches = _like(reader)
    reader.finish()
    return schema, matches


def _like(reader: Reader) -> Callable[[str], bool]:
    """``LIKE 'a%'``, Spark's ``'a*|b*'`` as well."""
    if not reader.accept("LIKE") and reader.token.kind != "string":
        return lambda _: True
    text = re.escape(reader.string("a pattern").lower())
    for written, meant in ((r"\*", ".*"), ("%", ".*"), ("_", "."), (r"\|", "|")):
        text = text.replace(written, meant)
    pattern = re.compile(text, re.S)
    return lambda name: pattern.fullmatch(name.lower()) is not None


def _named(session: Session, names: Iterable[str], matches: Callable[[str], bool]) -> Answer:
    rows = [(name,) for name in names if matches(name)]
    return table(session.spark, "name STRING", rows)


def _held(session: Session, schema: str) -> list[tuple[str, str]]:
    """The names of a schema's tables and views, inside the transaction if one is open."""
    transaction = session.transaction
    if transaction is not None:
        return transaction.names_in(schema)
    snapshot_id = session.snapshot_id()
    with session.catalog.reading() as connection:
        views = objects.views(connection, snapshot_id)
    found = [(t.schema_name, t.name, "table") for t in session.catalog.tables(snapshot_id)]
    found += [(v.schema_name, v.name, "view") for v in views]
    return sorted((name, kind) for its, name, kind in found if fold(its) == fold(schema))


_KINDS: Mapping[str, Callable[[Session, Reader], Answer]] = {
    "COLUMNS": _columns,
    "DATABASES": _schemas,
    "FUNCTIONS": _functions,
    "MACROS": _functions,
    "NAMESPACES": _schemas,
    "SCHEMAS": _schemas,
    "TABLES": _tables,
    "VIEWS": _views,
}
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
