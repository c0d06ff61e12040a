"""SQLAlchemy engines for the three databases, and how a transaction begins on each."""

from __future__ import annotations

import re
import select
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, RootTransaction, create_engine, event, exc, text
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.pool import QueuePool
from sqlalchemy.util import LRUCache

from penstock.errors import (
    CatalogMissing,
    CatalogUnreachable,
    ConfigError,
    EnvironmentMissing,
    UnsupportedFeature,
)
from penstock.lakes.catalog.database.faults import translating
from penstock.lakes.catalog.database.location import CatalogLocation
from penstock.lakes.catalog.database.round_trips import Answer, Query, ask

_WRITES = "penstock_writes"  # the execution option of a transaction that will write
# libpq's keywords where the connection string sets none. A server that went away without a word is
# noticed after a minute rather than the two hours of the system's own defaults.
_POSTGRES_DEFAULTS: Mapping[str, str] = {
    "application_name": "penstock",
    "connect_timeout": "10",  # seconds
    "keepalives_idle": "30",  # seconds
    "keepalives_interval": "10",  # seconds
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",  # milliseconds
}
_USED = "penstock_used"  # when a connection last returned to the pool
_IDLE = 10.0  # seconds after which it is asked whether it is alive
# "penstock": the lock that writers take in turn, until their transaction ends.
_LOCK = Query(text("SELECT pg_advisory_xact_lock(:key)"), {"key": 0x70656E73746F636B})


def make_engine(
    where: CatalogLocation,
    *,
    read_only: bool,
    create: bool,
    lock_timeout: float,
    metadata_schema: str | None,
) -> Engine:
    """An engine whose tables live in ``metadata_schema`` (default ``public``, DuckDB: ``main``).

    ``lock_timeout`` is in seconds. Nothing is connected yet, but a missing file is said.
    """
    if where.kind == "postgres":
        return _postgres_engine(where, lock_timeout).execution_options(
            schema_translate_map={None: metadata_schema or "public"}
        )
    _check_file(Path(where.target), where, create and not read_only)
    if where.kind == "duckdb":
        return _duckdb_engine(where, lock_timeout).execution_options(
            schema_translate_map={None: metadata_schema or "main"}
        )
    if metadata_schema not in {None, "main"}:
        raise UnsupportedFeature(
            f"the catalog {where} has no schema {metadata_schema!r}: SQLite has none but main",
            hint="leave metadata_schema out",
        )
    return _sqlite_engine(where, read_only, create, lock_timeout)


def _check_file(path: Path, where: CatalogLocation, create: bool) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if create:
            _make_folder(path.parent, where)
            return
        raise CatalogMissing(
            f"there is no catalog at {where}", hint="check the path, or attach it with creation on"
        ) from None
    except OSError as error:
        raise CatalogUnreachable(
            f"the catalog {where} cannot be opened ({error.strerror})", hint="check the path"
        ) from error
    if not stat.S_ISREG(mode):
        raise CatalogUnreachable(f"the catalog {where} is not a file", hint="check the path")


def is_absent(where: CatalogLocation) -> bool:
    """Return whether the catalog is to be a file that does not exist yet."""
    return where.kind != "postgres" and not Path(where.target).exists()


def is_void(where: CatalogLocation) -> bool:
    """Return whether there is nothing to read yet: DuckDB does not make a file by reading it."""
    return where.kind == "duckdb" and is_absent(where)


def _make_folder(folder: Path, where: CatalogLocation) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CatalogUnreachable(
            f"the folder of the catalog {where} cannot be made ({error.strerror})",
            hint="check the path and its permissions",
        ) from error


def _sqlite_engine(
    where: CatalogLocation, read_only: bool, create: bool, lock_timeout: float
) -> Engine:
    mode = "ro" if read_only else "rwc" if create else "rw"
    uri = f"file:{quote(where.target)}?mode={mode}"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(
            uri,
            uri=True,
            timeout=lock_timeout,
            isolation_level=None,
            check_same_thread=False,
            factory=_SQLiteConnection,
        )

    registry.register("penstock_sqlite", __name__, _SQLiteDialect.__name__)
    engine = create_engine(
        "penstock_sqlite://", creator=connect, poolclass=QueuePool, pool_size=4, max_overflow=-1
    )
    engine.update_execution_options(compiled_cache=_compiled())
    if read_only:
        event.listen(engine, "begin", lambda _: roll_back_hot_journal(where, lock_timeout))
    event.listen(engine, "begin", _begin_sqlite)
    return engine


class _SQLiteDialect(SQLiteDialect_pysqlite):
    """SQLAlchemy's, of which all are alike: what one has compiled is good for the others."""

    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SQLiteDialect)

    def __hash__(self) -> int:
        return hash(_SQLiteDialect)


@cache
def _compiled() -> LRUCache[Any, Any]:
    """The statements compiled for SQLite, which takes longer than running them: half of the time
    that a small commit to a catalog just attached takes."""
    return LRUCache(500)


class _SQLiteConnection(sqlite3.Connection):
    """Roll back a transaction whose COMMIT SQLite refused because a reader held the file too long.

    SQLite leaves it open, SQLAlchemy takes it for ended, and the connection would go back to the
    pool with a lock that blocks all readers.
    """

    def commit(self) -> None:
        try:
            super().commit()
        except sqlite3.Error:
            self.rollback()
            raise


def _begin_sqlite(connection: Connection) -> None:
    """Stop the driver from beginning transactions: it would do so too late and too weakly."""
    connection.exec_driver_sql("BEGIN IMMEDIATE" if _writes(connection) else "BEGIN")


def roll_back_hot_journal(where: CatalogLocation, lock_timeout: float) -> None:
    """Undo what a killed writer had begun to commit: read-only connections cannot, and fail.

    Reading the catalog reports an error in it (https://sqlite.org/lockingv3.html, 4.0).
    """
    try:
        if Path(f"{where.target}-journal").stat().st_size == 0:
            return
    except OSError:
        return
    uri = f"file:{quote(where.target)}?mode=rw"
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(uri, uri=True, timeout=lock_timeout)) as connection,
    ):
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()


def _writes(connection: Connection) -> bool:
    return bool(connection.get_execution_options().get(_WRITES, False))


def _duckdb_engine(where: CatalogLocation, lock_timeout: float) -> Engine:
    # Late: a lake elsewhere needs none of it.
    from penstock.lakes.catalog.database.duckdb_file import (
        DuckDBDialect,
        DuckDBFile,
        require_library,
    )

    require_library()
    file = DuckDBFile(where, lock_timeout)
    registry.register("penstock_duckdb", DuckDBDialect.__module__, DuckDBDialect.__name__)
    engine = create_engine(
        "penstock_duckdb://",
        creator=file.connect,
        poolclass=QueuePool,
        pool_size=4,
        max_overflow=-1,
    )
    event.listen(engine, "begin", _announce)
    return engine


def _announce(connection: Connection) -> None:
    """The file is opened when the transaction begins, which decides how."""
    raw: Any = connection.connection.dbapi_connection
    raw.will_write = _writes(connection)


def _connection_options(where: CatalogLocation) -> dict[str, Any]:
    """The keywords of libpq in the connection string. Raises ConfigError."""
    import psycopg

    try:
        options: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(where.target)
    except psycopg.ProgrammingError as error:
        # What libpq quotes may be a part of the password.
        reason = re.sub('"[^"]*"', '"..."', str(error).splitlines()[0])
        raise ConfigError(
            f"the catalog {where} cannot be read: {reason}",
            hint="write postgres:dbname=NAME host=HOST, with libpq's keywords, or a URL; a value "
            "with a blank stands in single quotes: password='two words'",
        ) from None
    timeout = options.get("connect_timeout", "0")
    try:
        int(float(timeout))  # as psycopg reads it, which looks at no other value
    except (ValueError, OverflowError):
        raise ConfigError(
            f"the catalog {where} has a connect_timeout that is not a number: {timeout!r}",
            hint="write the seconds to wait, as connect_timeout=10",
        ) from None
    return options


def _postgres_engine(where: CatalogLocation, lock_timeout: float) -> Engine:
    try:
        import psycopg
    except ImportError as error:
        raise EnvironmentMissing(
            "a catalog in PostgreSQL needs the driver psycopg",
            hint="pip install 'penstock-spark[postgres]'",
        ) from error

    options = {**_POSTGRES_DEFAULTS, **_connection_options(where)}

    def connect() -> psycopg.Connection[Any]:
        connection: psycopg.Connection[Any] = psycopg.connect(**options)
        # Whatever the server's default: under the lock a writer has to see what came before it.
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        with connection.cursor() as cursor:
            milliseconds = str(int(lock_timeout * 1000))
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [milliseconds])
        connection.commit()
        return connection

    engine = create_engine(
        "postgresql+psycopg://", creator=connect, poolclass=QueuePool, pool_size=4, max_overflow=-1
    )
    event.listen(engine, "checkout", _check_alive)
    event.listen(engine, "checkin", _note_use)
    return engine


def _note_use(raw: Any, record: Any) -> None:  # noqa: ARG001 - of the event's shape
    record.info[_USED] = time.monotonic()


def _check_alive(raw: Any, record: Any, proxy: Any) -> None:  # noqa: ARG001 - of the event's shape
    """Check a pooled connection, so that the pool reconnects after a restart of the server.

    A connection that the server closed shows so without a query; only one that was idle for long
    may be dead without notice.
    """
    if _USED not in record.info:
        return
    said_something = bool(select.select([raw.fileno()], [], [], 0)[0])
    idle = time.monotonic() - record.info[_USED]
    if said_something or (idle > _IDLE and not _answers(raw)):
        raise exc.DisconnectionError


def _answers(raw: Any) -> bool:
    try:
        raw.execute("SELECT 1")
        raw.rollback()
    except OSError:
        return False
    except Exception as error:  # of a driver that this module does not import
        if type(error).__module__.partition(".")[0] != "psycopg":
            raise
        return False
    return True


@contextmanager
def reading(engine: Engine, where: CatalogLocation) -> Iterator[Connection]:
    """A transaction in which every query sees the same state."""
    with translating(where), engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        with connection.begin():
            yield connection


def answer(engine: Engine, where: CatalogLocation, query: Query) -> Answer:
    """The rows of one query, for which PostgreSQL needs no transaction around it."""
    with translating(where), engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.execution_options(isolation_level="AUTOCOMMIT")
            return ask(connection, query)[0]
        with connection.begin():
            return ask(connection, query)[0]


@contextmanager
def writing(engine: Engine, where: CatalogLocation) -> Iterator[Connection]:
    """A transaction that is alone in writing from its first statement; commits on a clean exit.

    SQLite takes its write lock at BEGIN. On PostgreSQL writers of Penstock queue up for an advisory
    lock, so they do not lose races to each other; DuckDB does not take it, and a race with DuckDB
    ends in a duplicate key that `commit` retries.
    """
    with translating(where), engine.connect() as connection, begin_writing(connection):
        yield connection


@contextmanager
def begin_writing(connection: Connection) -> Iterator[RootTransaction]:
    """As `writing`, but the block may commit before its end."""
    with begin_and_ask(connection) as (transaction, _):
        yield transaction


@contextmanager
def begin_and_ask(
    connection: Connection, *queries: Query
) -> Iterator[tuple[RootTransaction, list[Answer]]]:
    """`begin_writing`, with the answers to the first queries under the lock."""
    options: dict[str, Any] = {_WRITES: True}
    lock = (_LOCK,) if connection.dialect.name == "postgresql" else ()
    with connection.execution_options(**options).begin() as transaction:
        answers = ask(connection, *lock, *queries) if lock or queries else []
        yield transaction, answers[len(lock) :]


def metadata_schema(connection: Connection) -> str | None:
    """The schema that the catalog's tables are in; ``None`` on SQLite."""
    translated = connection.get_execution_options().get("schema_translate_map") or {}
    schema: str | None = translated.get(None)
    return schema
