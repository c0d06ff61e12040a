"""Fewer round trips to PostgreSQL: compiled statements, pipelines and combined changes.

Committing one row takes a dozen small statements, which cost mostly round trips. So compiled
statements are cached, some statements are sent without waiting for the answer to the one before,
and small changes are combined into one statement. Catalogs in files have no round trips: their
statements are executed as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Dialect, Executable, Select, exc
from sqlalchemy.sql.compiler import SQLCompiler

_T = TypeVar("_T")
Values = Mapping[str, Any]
Convert = Callable[[Any], Any]

_CACHED = 512  # statements
_BOUND = 5000  # values in one statement; both databases take 32,000 and more
_TOGETHER = 16  # changes in one statement
_ONE_BY_ONE = 32  # rows; above, the driver's own way for many is quicker


@dataclass(frozen=True, slots=True)
class Query:
    """A statement that gives rows, and the values it is asked with."""

    statement: Executable
    values: Values = field(default_factory=dict)


Answer = Sequence[Sequence[Any]]


def chunks(values: Iterable[_T]) -> Iterator[list[_T]]:
    """The values in chunks of as many as one statement can bind."""
    listed = list(values)
    for start in range(0, len(listed), _BOUND):
        yield listed[start : start + _BOUND]


def is_remote(connection: Connection) -> bool:
    """Return whether statements go to a server."""
    return connection.dialect.name == "postgresql"


def ask(connection: Connection, *queries: Query) -> list[Answer]:
    """The rows of each query, which sees what was committed when its turn came."""
    if not is_remote(connection):
        return [connection.execute(query.statement, query.values).all() for query in queries]
    with _errors(connection):
        raw = _driver(connection)
        if len(queries) == 1:
            return [_fetch(*_execute(connection, queries[0]))]
        with raw.pipeline():
            asked = [_execute(connection, query) for query in queries]
        return [_fetch(*pending) for pending in asked]


@contextmanager
def pipelined(connection: Connection) -> Iterator[None]:
    """Send the statements in the block to PostgreSQL without waiting for the answer to each.

    They must not return rows. An error is raised at the end of the block at the latest; no
    statement after the failed one is executed, not even a COMMIT.
    """
    if not is_remote(connection):
        yield
        return
    failed: BaseException | None = None
    with _errors(connection) as aside, _driver(connection).pipeline():
        try:
            yield
        except BaseException as error:  # raised below: the driver would log the one it causes
            failed = aside.error = error
    if failed is not None:
        raise failed


@contextmanager
def committing(connection: Connection) -> Iterator[None]:
    """`pipelined`, for a block that ends with the transaction's commit.

    SQLAlchemy takes a failed commit for the end of the transaction. In a pipeline an earlier
    statement may have failed, and PostgreSQL waits for a ROLLBACK.
    """
    raw = _driver(connection)
    try:
        with pipelined(connection):
            yield
    except BaseException:
        if is_remote(connection) and not raw.closed:
            dialect: Any = connection.dialect
            with suppress(dialect.dbapi.Error):
                raw.rollback()
        raise


def send(connection: Connection, statement: Executable, rows: Sequence[Values]) -> None:
    """Run a statement without a result once for each of ``rows``, which have the same keys."""
    if not is_remote(connection) or len(rows) > _ONE_BY_ONE:
        connection.execute(statement, list(rows))
        return
    text = _text(statement, connection, rows[0])
    cursor = _driver(connection).cursor()
    with _errors(connection):
        for row in rows:
            cursor.execute(text.sql, text.bound(row))


def send_together(
    connection: Connection, changes: Sequence[tuple[Executable, Sequence[Values]]]
) -> None:
    """Run ``changes``, the first one first and the others in any order.

    No two may change the same row. A small number becomes one statement, which costs one round
    trip.
    """
    count = sum(len(rows) for _, rows in changes)
    if not is_remote(connection) or not 1 < count <= _TOGETHER:
        for statement, rows in changes:
            send(connection, statement, rows)
        return
    texts: list[str] = []
    values: dict[str, Any] = {}
    for statement, rows in changes:
        text = _text(statement, connection, rows[0])
        for row in rows:
            texts.append(text.sql)
            values |= {f"p{len(texts)}_{key}": value for key, value in text.bound(row).items()}
    with _errors(connection):
        _driver(connection).execute(_joined(tuple(texts)), values)


@lru_cache(_CACHED)
def _joined(texts: tuple[str, ...]) -> str:
    """Combine statements into one. PostgreSQL runs the main statement, the last one, first."""
    own = [_numbered(text, number) for number, text in enumerate(texts, 1)]
    parts = ", ".join(f"c{number} AS ({text})" for number, text in enumerate(own[1:], 1))
    return f"WITH {parts} {own[0]}"


def _numbered(text: str, number: int) -> str:
    """``text`` with parameters of its own."""
    return text.replace("%%", "%%%%") % _Numbered(number)


class _Numbered(dict[str, str]):
    def __init__(self, number: int) -> None:
        self._number = number
        super().__init__()

    def __missing__(self, key: str) -> str:
        return f"%(p{self._number}_{key})s"


@dataclass(frozen=True, slots=True)
class _Text:
    """A statement compiled by SQLAlchemy; some of its values need a conversion."""

    sql: str
    fixed: Values  # that the statement brings itself
    into: Mapping[str, Convert]
    out: Sequence[tuple[int, Convert]]

    def bound(self, values: Values) -> Values:
        converted = {**self.fixed, **values}
        for name, convert in self.into.items():
            converted[name] = convert(converted[name])
        return converted


def _text(statement: Executable, connection: Connection, values: Values) -> _Text:
    options = connection.get_execution_options()
    schemas = options.get("schema_translate_map") or {}
    return _compiled(statement, connection.dialect, schemas.get(None), tuple(values))


@lru_cache(_CACHED)
def _compiled(statement: Any, dialect: Dialect, schema: str | None, keys: tuple[str, ...]) -> _Text:
    compiled = statement.compile(
        dialect=dialect,
        column_keys=list(keys) if statement.is_insert else None,
        schema_translate_map={None: schema},
        render_schema_translate=True,
    )
    assert isinstance(compiled, SQLCompiler), "a statement, not a definition"
    into = {
        name: bind.type.dialect_impl(dialect).bind_processor(dialect)
        for name, bind in compiled.binds.items()
    }
    columns = statement.selected_columns if isinstance(statement, Select) else ()
    out = [column.type.dialect_impl(dialect).result_processor(dialect, None) for column in columns]
    return _Text(
        compiled.string,
        {name: value for name, value in compiled.params.items() if name not in keys},
        {name: convert for name, convert in into.items() if convert is not None},
        [(at, convert) for at, convert in enumerate(out) if convert is not None],
    )


def _execute(connection: Connection, query: Query) -> tuple[Any, _Text]:
    text = _text(query.statement, connection, query.values)
    return _driver(connection).execute(text.sql, text.bound(query.values)), text


def _fetch(cursor: Any, text: _Text) -> Answer:
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    if not text.out:
        return rows
    converted = [list(row) for row in rows]
    for row in converted:
        for at, convert in text.out:
            row[at] = convert(row[at])
    return converted


def _driver(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


@dataclass(slots=True)
class _Aside:
    error: BaseException | None = None


@contextmanager
def _errors(connection: Connection) -> Iterator[_Aside]:
    """The driver's errors as SQLAlchemy has them. What it causes itself stays ``aside``."""
    dialect: Any = connection.dialect
    raw, aside = _driver(connection), _Aside()
    try:
        yield aside
    except dialect.dbapi.Error as error:
        if aside.error is None:
            lost = raw.closed
            if lost and not connection.invalidated:
                connection.invalidate(error)  # the pool is not to hand it out again
            raise exc.DBAPIError.instance(
                None, None, error, dialect.dbapi.Error, connection_invalidated=lost, dialect=dialect
            ) from error
