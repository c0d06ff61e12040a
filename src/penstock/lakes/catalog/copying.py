"""Copy a catalog: a file by its database's own means, else its rows to another kind of database.

SQLite (https://sqlite.org/backup.html) copies from one state: a read transaction makes commits wait
until all pages are copied, as they would otherwise restart the copy. DuckDB has COPY FROM DATABASE.

Between kinds, tables of the format and Penstock's own are copied column by column. Inlined rows go
through what their values mean, since each kind of database stores them in types and texts of its
own (`inlined.columns`, `nested_text`).
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    MetaData,
    Select,
    Table,
    Text,
    exc,
    func,
    inspect,
    select,
    text,
    true,
    types,
)
from sqlalchemy.schema import CreateSchema

from penstock.errors import UnsupportedFeature
from penstock.lakes.catalog import opening, reads
from penstock.lakes.catalog.catalog import LOCK_TIMEOUT, Catalog
from penstock.lakes.catalog.database import engine as engines
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.duckdb_file import ATTACHED
from penstock.lakes.catalog.database.engine import metadata_schema, roll_back_hot_journal
from penstock.lakes.catalog.database.faults import translating
from penstock.lakes.catalog.database.location import CatalogLocation
from penstock.lakes.catalog.inlined import inlined
from penstock.lakes.catalog.inlined.columns import Schemas, bound, placeholder, settle
from penstock.lakes.catalog.inlined.writes import make_table, qualified
from penstock.lakes.format.files import BEGIN_COLUMN, END_COLUMN, ROW_ID_COLUMN, InlinedPart
from penstock.lakes.format.files import Table as TableInfo
from penstock.lakes.format.inlined.text import may_inline, stored
from penstock.lakes.format.inlined.values import arrow_schema, batches
from penstock.lakes.format.schema import TableSchema
from penstock.lazy import pa
from penstock.sql.literals import plain_text_literal

_CHUNK = 5_000  # rows
_SAME_KIND = "restore it to the kind of database that it is of; on PostgreSQL use pg_dump"
_SYSTEM = (ROW_ID_COLUMN, BEGIN_COLUMN, END_COLUMN)
_DATA, _DELETE = "ducklake_inlined_data_", "ducklake_inlined_delete_"


def copy(source: Connection, target: Connection, progress: Progress | None) -> None:
    """Copy the catalog at ``source`` to the empty ``target``, in a transaction that writes.

    The catalog must have the format version that Penstock writes (`require_written`). Raises
    UnsupportedFeature for what the other database cannot hold.
    """
    names = [n for n in inspect(source).get_table_names(metadata_schema(source)) if is_ours(n)]
    own = [name for name in names if name.startswith("penstock_")]
    deletes = [name for name in names if name.startswith(_DELETE)]
    _refuse_unknown(set(names) - {*own, *deletes})
    schema = metadata_schema(target)
    if schema is not None:
        target.execute(CreateSchema(schema, if_not_exists=True))
    t.METADATA.create_all(target, checkfirst=False)
    plain = [table for table in t.METADATA.sorted_tables if table is not t.inlined_data_tables]
    steps: list[Callable[[], None]] = [
        *(partial(_plain, source, target, table) for table in plain),
        *(partial(_own, source, target, name) for name in own),
        *(partial(_deletes, source, target, name) for name in deletes),
        partial(_inlined, source, target),
        partial(opening.create_indexes, target),
    ]
    for done, step in enumerate(steps, 1):
        step()
        if progress is not None:
            progress(done, len(steps))


def require_written(catalog: Catalog, what: str) -> None:
    """Raise UnsupportedFeature for a catalog of another version of the format."""
    if catalog.version != opening.WRITTEN:
        raise UnsupportedFeature(
            f"{what} is of version {catalog.version} of the format, and only {opening.WRITTEN} is "
            "copied to another kind of database",
            hint="copy it by the database's own means (pg_dump, or the file), and migrate it with "
            "DuckDB",
            data={"version": catalog.version},
        )


@contextmanager
def new_catalog(where: CatalogLocation, schema: str | None = None) -> Iterator[Connection]:
    """Open a transaction on a new catalog; nothing stays open after it."""
    engine = engines.make_engine(
        where,
        read_only=False,
        create=where.kind != "postgres",
        lock_timeout=LOCK_TIMEOUT,
        metadata_schema=schema,
    )
    try:
        with engines.writing(engine, where) as connection:
            yield connection
    finally:
        engine.dispose()


def _refuse_unknown(names: set[str]) -> None:
    unknown = sorted(n for n in names - t.METADATA.tables.keys() if not n.startswith(_DATA))
    if unknown:
        raise UnsupportedFeature(
            f"the catalog has the table {unknown[0]}, which this version does not know",
            hint=_SAME_KIND,
            data={"tables": unknown},
        )


def is_ours(name: str) -> bool:
    return name.startswith(("ducklake_", "penstock_"))


def _plain(source: Connection, target: Connection, table: Table) -> None:
    columns = inspect(source).get_columns(table.name, metadata_schema(source))
    stored = (column["name"] for column in columns if "computed" not in column)
    more = [name for name in stored if name not in table.c]
    for name in more:  # left by a migration
        there = Table(table.name, MetaData(), Column(name))
        query = select(func.count()).select_from(there).where(there.c[name].is_not(None))
        if source.execute(query).scalar():
            raise UnsupportedFeature(
                f"{table.name} of the catalog has the column {name}, which this version does not "
                "know",
                hint=_SAME_KIND,
                data={"table": table.name, "column": name},
            )
    _rows(source, target, select(table), table)


def _rows(source: Connection, target: Connection, query: Select[Any], into: Table) -> None:
    result = source.execute(query.execution_options(yield_per=_CHUNK))
    for rows in result.mappings().partitions(_CHUNK):
        target.execute(into.insert(), [dict(row) for row in rows])


def _own(source: Connection, target: Connection, name: str) -> None:
    """A table of Penstock's own: texts and whole numbers, with keys and indexes."""
    inspector, schema = inspect(source), metadata_schema(source)
    key = inspector.get_pk_constraint(name, schema)["constrained_columns"]
    columns = [
        Column(
            column["name"],
            _kind(name, column["type"]),
            primary_key=column["name"] in key,
            nullable=column["nullable"] and column["name"] not in key,
            autoincrement=False,
        )
        for column in inspector.get_columns(name, schema)
        if "computed" not in column
    ]
    table = Table(name, MetaData(), *columns)
    for index in inspector.get_indexes(name, schema):
        if index["name"] is not None and not index["name"].startswith("sqlite_autoindex"):
            listed = [table.c[column] for column in index["column_names"] if column is not None]
            Index(index["name"], *listed, unique=bool(index["unique"]))
    table.create(target, checkfirst=False)
    _rows(source, target, select(table), table)


def _kind(table: str, kind: types.TypeEngine[Any]) -> types.TypeEngine[Any]:
    if isinstance(kind, types.Integer):
        return BigInteger()
    if isinstance(kind, types.String):
        return Text()
    raise UnsupportedFeature(
        f"the table {table} of the catalog has a column of type {kind}, which is not copied",
        hint=_SAME_KIND,
        data={"table": table, "type": str(kind)},
    )


def _deletes(source: Connection, target: Connection, name: str) -> None:
    columns = (Column(column, BigInteger) for column in ("file_id", "row_id", "begin_snapshot"))
    table = Table(name, MetaData(), *columns)
    table.create(target, checkfirst=False)
    _rows(source, target, select(table), table)


def _inlined(source: Connection, target: Connection) -> None:
    settle(source)
    ids = select(t.inlined_data_tables.c.table_id).distinct()
    for table_id in sorted(source.execute(ids).scalars()):
        of = _table(source, table_id)
        schemas = Schemas(source, of)
        for table in inlined.stored_tables(source, table_id):
            of_version = replace(of, schema=schemas.at(table.version))
            if not may_inline(of_version.schema):
                _refuse_rows(source, table, of_version)
                continue  # the other database has none of it; DuckDB makes one where it has
            part = inlined.load_part(source, table, schemas, of_version, lambda *_: true())
            make_table(target, table.rows.name, of_version.schema)
            row = {"table_id": table_id, "table_name": table.rows.name}
            target.execute(
                t.inlined_data_tables.insert(), [row | {"schema_version": table.version}]
            )
            _insert(target, table.rows.name, part, of_version)


def _table(source: Connection, table_id: int) -> TableInfo:
    """The table, which may have been dropped, under its name for messages."""
    c = t.table.c
    query = select(c.table_name).where(c.table_id == table_id).order_by(c.begin_snapshot.desc())
    name = source.execute(query.limit(1)).scalar()
    return TableInfo(table_id, "", "", name or f"of id {table_id}", "", TableSchema(()), 0)


def _refuse_rows(source: Connection, stored_table: inlined.Stored, of: TableInfo) -> None:
    if source.execute(select(func.count()).select_from(stored_table.rows)).scalar():
        raise _not_moved(of)


def _not_moved(of: TableInfo) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"table {of.name} has inlined rows that another kind of database does not hold",
        hint="flush them first, CALL flush_inlined_data(), and copy the catalog then",
        data={"table": of.name},
    )


def _insert(target: Connection, name: str, part: InlinedPart, of: TableInfo) -> None:
    if not part.rows.num_rows:
        return
    dialect, columns = target.dialect.name, of.schema.columns
    typed = pa.Table.from_batches(batches(part, of.schema), arrow_schema(of.schema))
    values = stored(typed, of.schema)
    if values is None:
        raise _not_moved(of)
    places = ["?"] * len(_SYSTEM) + [placeholder(column, dialect) for column in columns]
    marks = ", ".join(place.replace("?", f":p{at}", 1) for at, place in enumerate(places))
    statement = text(f"INSERT INTO {qualified(target, name)} VALUES ({marks})")
    listed = [part.rows[column].to_pylist() for column in _SYSTEM]
    for column in columns:
        cells = values[str(column.id)].to_pylist()
        listed.append([bound(value, column, dialect) for value in cells])
    rows = [{f"p{at}": value for at, value in enumerate(row)} for row in zip(*listed, strict=True)]
    for start in range(0, len(rows), _CHUNK):
        target.execute(statement, rows[start : start + _CHUNK])


_PAGES = 4096  # of one step; 16 MB with pages as they are by default


def copy_sqlite(
    where: CatalogLocation, target: Path, lock_timeout: float, progress: Progress | None
) -> int:
    """Copy the catalog to a new file; the newest snapshot in it.

    ``lock_timeout`` is in seconds. Raises CatalogLocked.
    """

    def tell(_: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    roll_back_hot_journal(where, lock_timeout)
    uri = f"file:{quote(where.target)}?mode=ro"
    with translating(where):
        try:
            source = sqlite3.connect(uri, uri=True, timeout=lock_timeout, isolation_level=None)
            copy = sqlite3.connect(target)
            try:
                source.execute("BEGIN")
                newest = "SELECT max(snapshot_id) FROM ducklake_snapshot"
                snapshot = int(source.execute(newest).fetchone()[0])
                source.backup(copy, pages=_PAGES, progress=tell)
                return snapshot
            finally:
                copy.close()
                source.close()
        except sqlite3.Error as error:
            raise exc.OperationalError("backup", {}, error) from error


Progress = Callable[[int, int], None]  # the number done, and the total
Reading = Callable[[], AbstractContextManager[Connection]]


def copy_duckdb(reading: Reading, target: Path) -> int:
    """Copy the catalog to a new file; the newest snapshot in it.

    ``reading`` begins a transaction on the catalog.
    """
    name = f"penstock_backup_{uuid.uuid4().hex}"
    path = plain_text_literal(str(target))
    try:
        with reading() as connection:
            connection.exec_driver_sql(f"ATTACH {path} AS {name} (TYPE duckdb)")
            connection.exec_driver_sql(f"COPY FROM DATABASE {ATTACHED} TO {name}")
            newest = reads.latest(connection)
            return -1 if newest is None else newest.id
    finally:
        with reading() as connection:
            connection.exec_driver_sql(f"DETACH DATABASE IF EXISTS {name}")
