"""Indexes of a SQLite catalog that ``COPY FROM DATABASE`` of DuckDB does not copy.

DuckDB copies each index that ``CREATE INDEX`` made, and fails where the copy is a SQLite file. It
leaves out those that SQLite makes for UNIQUE. So an index is a UNIQUE constraint here, and ends in
a generated column that is always NULL: no two rows are equal then. Such a column is in no INSERT
without names, and DuckDB does not list it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection

from penstock.sql.identifiers import quote_identifier

NULL_COLUMN = "penstock_null"
_COLUMN = f'"{NULL_COLUMN}" INTEGER GENERATED ALWAYS AS (NULL) VIRTUAL, '
_UNIQUE = re.compile(rf', UNIQUE \((?:"[^"]+", )+"{NULL_COLUMN}"\)')
_PREFIX = "penstock_"
Columns = tuple[str, ...]


def add_indexes(connection: Connection, indexes_by_table: Mapping[str, Iterable[Columns]]) -> None:
    """Give tables indexes of these columns, by the table's name, where they are missing."""
    for table, indexes in indexes_by_table.items():
        _give(connection, table, indexes)


def hide_indexes(connection: Connection) -> None:
    """Turn the indexes that Penstock made with CREATE INDEX into ones that DuckDB leaves out."""
    query = (
        "SELECT DISTINCT tbl_name FROM sqlite_master "
        f"WHERE type = 'index' AND sql IS NOT NULL AND substr(name, 1, {len(_PREFIX)}) = ?"
    )
    for (table,) in connection.exec_driver_sql(query, (_PREFIX,)).all():
        _give(connection, str(table), ())


def _give(connection: Connection, table: str, more: Iterable[Columns]) -> None:
    hidden, visible = _indexes(connection, table)
    all_of_them = tuple(dict.fromkeys((*hidden, *visible, *more)))
    if visible or len(all_of_them) > len(hidden):
        _rebuild(connection, table, all_of_them)


def _indexes(connection: Connection, table: str) -> tuple[list[Columns], list[Columns]]:
    """The columns of the indexes that DuckDB leaves out, and of those made with CREATE INDEX."""
    hidden: list[Columns] = []
    visible: list[Columns] = []
    listed = connection.exec_driver_sql(f"PRAGMA index_list({quote_identifier(table)})").all()
    for _, name, _, origin, _ in sorted(listed):
        info = f"PRAGMA index_info({quote_identifier(name)})"
        columns = tuple(column for _, _, column in connection.exec_driver_sql(info))
        if origin == "u" and columns[-1] == NULL_COLUMN:
            hidden.append(columns[:-1])
        elif origin == "c" and name.startswith(_PREFIX):
            visible.append(columns)
    return hidden, visible


def _rebuild(connection: Connection, table: str, indexes: Sequence[Columns]) -> None:
    """Write a table again with these indexes: SQLite adds no constraint to a table that exists."""
    query = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?"
    text = str(connection.exec_driver_sql(query, (table,)).scalar_one())
    body = text[text.index("(") + 1 : text.rindex(")")].replace(_COLUMN, "")
    unique = "".join(f", UNIQUE ({_listed((*index, NULL_COLUMN))})" for index in indexes)
    new, old = quote_identifier(f"{_PREFIX}new_{table}"), quote_identifier(table)
    info = connection.exec_driver_sql(f"PRAGMA table_info({old})")
    columns = _listed([str(row[1]) for row in info])
    remaining = (
        "SELECT sql FROM sqlite_master WHERE tbl_name = ? AND sql IS NOT NULL "
        f"AND type IN ('index', 'trigger') AND substr(name, 1, {len(_PREFIX)}) <> ?"
    )
    statements = [str(sql) for (sql,) in connection.exec_driver_sql(remaining, (table, _PREFIX))]
    for statement in (
        f"CREATE TABLE {new} ({_COLUMN}{_UNIQUE.sub('', body)}{unique})",
        f"INSERT INTO {new} ({columns}) SELECT {columns} FROM {old} ORDER BY rowid",
        f"DROP TABLE {old}",
        f"ALTER TABLE {new} RENAME TO {old}",
        *statements,
    ):
        connection.exec_driver_sql(statement)


def _listed(columns: Iterable[str]) -> str:
    return ", ".join(map(quote_identifier, columns))
