"""A DuckDB file as a catalog, open only for the transaction at hand, and its SQLAlchemy dialect.

The dialect does as much as a catalog needs: docs/adr/0006 says why the published one is not used.
"""

from __future__ import annotations

import itertools
import re
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, text, types
from sqlalchemy.engine import default, reflection
from sqlalchemy.engine.interfaces import (
    DBAPIConnection,
    DBAPIModule,
    ReflectedColumn,
    ReflectedIndex,
    ReflectedPrimaryKeyConstraint,
)
from sqlalchemy.sql import compiler

from penstock.errors import CatalogLocked, CatalogMissing, EnvironmentMissing
from penstock.lakes.catalog.database.faults import duckdb_code
from penstock.lakes.catalog.database.location import CatalogLocation
from penstock.lazy import pa
from penstock.sql.literals import plain_text_literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ATTACHED = "penstock_catalog"  # what the file is attached as
_PAUSE = 0.01  # seconds between two looks at a file that is in use
_BATCH = 50  # rows of one INSERT with parameters
_ROWS = "penstock_rows"
_ONLY_MARKS = re.compile(r"\((\?, )*\?\)")
_BUSY = {("IO", "11"), ("Binder", None)}  # EAGAIN: a lock; open in this process already


class DuckDBFile:
    """The file, and who uses it. Threads share it."""

    def __init__(self, where: CatalogLocation, lock_timeout: float) -> None:
        """``lock_timeout`` is in seconds."""
        self._where = where
        self._timeout = lock_timeout
        self._changed = threading.Condition()
        self._memory: DuckDBPyConnection | None = None
        self._users = 0
        self._writable = False  # how it is attached, while there are users
        self._has_writer = False

    def connect(self) -> FileConnection:
        """A connection that has no transaction yet, hence no file open."""
        with self._changed:
            if self._memory is None:
                self._memory = _in_memory()
            return FileConnection(self, _with_codes(self._memory.cursor()))

    def enter(self, *, write: bool) -> None:
        """Have the file attached. One may write at a time. Raises CatalogLocked, CatalogMissing."""
        deadline = time.monotonic() + self._timeout
        with self._changed:
            while not self._try(write):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise CatalogLocked(
                        f"the catalog {self._where} is locked by another process or connection",
                        hint="run again when it has finished; DuckDB files have one user who "
                        "writes, or several who read",
                    )
                self._changed.wait(min(left, _PAUSE))
            self._users += 1
            self._has_writer = self._has_writer or write

    def leave(self, *, write: bool) -> None:
        with self._changed:
            self._users -= 1
            if write:
                self._has_writer = False
            try:
                if self._users == 0 and self._memory is not None:
                    self._detach(self._memory)
            finally:
                self._changed.notify_all()

    def _detach(self, memory: DuckDBPyConnection) -> None:
        """DuckDB checkpoints meanwhile. Where that fails (the disk is full) the file is detached
        all the same, and its log holds what was committed."""
        try:
            memory.execute(f"DETACH {ATTACHED}")
        except self._error():
            attached = memory.execute(
                "SELECT count(*) FROM duckdb_databases() WHERE database_name = ?", [ATTACHED]
            ).fetchone()
            if attached != (0,):
                raise

    def _try(self, write: bool) -> bool:
        if self._users:
            return not write or (self._writable and not self._has_writer)
        try:
            self._attach(write)
        except self._error() as error:
            if duckdb_code(error) in _BUSY:
                return False
            raise
        self._writable = write
        return True

    def _attach(self, write: bool) -> None:
        assert self._memory is not None
        path = self._where.target
        if not write and not Path(path).exists():
            raise CatalogMissing(
                f"there is no catalog at {self._where}",
                hint="check the path, or attach it with creation on",
            )
        mode = "" if write else ", READ_ONLY"
        self._memory.execute(f"ATTACH {plain_text_literal(path)} AS {ATTACHED} (TYPE duckdb{mode})")

    def _error(self) -> type[Exception]:
        import duckdb

        return duckdb.Error


def _plain(value: Any) -> Any:
    """DuckDB makes a UUID of its text; Arrow has none."""
    return str(value) if isinstance(value, uuid.UUID) else value


def require_library() -> None:
    """Raise EnvironmentMissing where DuckDB is not installed: it is an extra."""
    try:
        import duckdb  # noqa: F401 - whether it can be
    except ImportError as error:
        raise EnvironmentMissing(
            "a catalog in a DuckDB file needs the library duckdb",
            hint="pip install 'penstock-spark[duckdb]'",
        ) from error


def _in_memory() -> DuckDBPyConnection:
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false"
    }
    return _with_codes(duckdb.connect(":memory:", config=settings))


def _with_codes(connection: DuckDBPyConnection) -> DuckDBPyConnection:
    """Make DuckDB report errors as JSON, with codes."""
    connection.execute("SET errors_as_json = true")
    return connection


class FileConnection:
    """A PEP 249 connection whose transactions begin with `begin`."""

    def __init__(self, file: DuckDBFile, raw: DuckDBPyConnection) -> None:
        self._file = file
        self._raw = raw
        self._write: bool | None = None  # None: no transaction
        self.will_write = False  # what the next transaction is for

    def begin(self) -> None:
        write = self.will_write
        self._file.enter(write=write)
        self._write = write
        try:
            self._raw.execute(f"USE {ATTACHED}")
            self._raw.execute("BEGIN TRANSACTION")
        except BaseException:
            self._leave()
            raise

    def commit(self) -> None:
        if self._write is not None:
            self._end("COMMIT")

    def rollback(self) -> None:
        if self._write is not None:
            self._end("ROLLBACK")

    def _end(self, statement: str) -> None:
        try:
            self._raw.execute(statement)
        finally:
            self._leave()

    def _leave(self) -> None:
        write, self._write = bool(self._write), None
        try:
            self._raw.execute("USE memory")
        finally:
            self._file.leave(write=write)

    def cursor(self) -> _Cursor:
        return _Cursor(self._raw)

    def close(self) -> None:
        try:
            self.rollback()
        finally:
            self._raw.close()


class _Cursor:
    """DuckDB's own cursors are connections, with transactions of their own; this one is not.

    It takes all rows at once, as the next statement on the connection would end the result.
    """

    def __init__(self, raw: DuckDBPyConnection) -> None:
        self._raw = raw
        self._rows: list[Any] = []
        self.description: Sequence[Any] | None = None
        self.rowcount = -1
        self.arraysize = 1

    def execute(self, statement: str, parameters: Sequence[Any] | None = None) -> None:
        self._raw.execute(statement, list(parameters or ()))
        rows = self._raw.fetchall()
        if statement.startswith(("INSERT", "UPDATE", "DELETE")):
            self.description, self.rowcount = None, rows[0][0]
        else:
            self.description, self._rows = self._raw.description, rows

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]]) -> None:
        """Insert rows in batches, which is ten times as fast as row by row.

        Many rows are inserted as Arrow columns: DuckDB would plan each of thousands of parameters.
        """
        head, values, row = statement.rpartition(" VALUES ")
        if not (statement.startswith("INSERT") and values):
            for parameter_row in parameters:
                self.execute(statement, parameter_row)
            return
        if len(parameters) > _BATCH and _ONLY_MARKS.fullmatch(row):
            self._insert(head, parameters)
            return
        for start in range(0, len(parameters), _BATCH):
            batch = parameters[start : start + _BATCH]
            listed = ", ".join([row] * len(batch))
            self.execute(f"{head} VALUES {listed}", list(itertools.chain.from_iterable(batch)))

    def _insert(self, head: str, rows: Sequence[Sequence[Any]]) -> None:
        columns = [pa.array([_plain(v) for v in column]) for column in zip(*rows, strict=True)]
        self._raw.register(_ROWS, pa.table(columns, [f"c{n}" for n in range(len(columns))]))
        try:
            self.execute(f"{head} SELECT * FROM temp.{_ROWS}")
        finally:
            self._raw.unregister(_ROWS)

    def fetchone(self) -> Any:
        return self._rows.pop(0) if self._rows else None

    def fetchmany(self, size: int | None = None) -> list[Any]:
        count = size or self.arraysize
        taken, self._rows = self._rows[:count], self._rows[count:]
        return taken

    def fetchall(self) -> list[Any]:
        taken, self._rows = self._rows, []
        return taken

    def close(self) -> None:
        self._rows = []

    def setinputsizes(self, sizes: Any) -> None:
        """Required by PEP 249; does nothing."""

    def setoutputsize(self, size: Any, column: Any = None) -> None:
        """Required by PEP 249; does nothing."""


_KINDS: Mapping[str, type[types.TypeEngine[Any]]] = {
    "VARCHAR": types.TEXT,
    "BIGINT": types.BIGINT,
    "BOOLEAN": types.BOOLEAN,
    "FLOAT": types.FLOAT,
}


class _Types(compiler.GenericTypeCompiler):
    # the names and unused arguments are SQLAlchemy's

    def visit_TIMESTAMP(self, type_: types.TIMESTAMP, **kw: Any) -> str:  # noqa: ARG002, N802
        return "TIMESTAMP WITH TIME ZONE" if type_.timezone else "TIMESTAMP"


class DuckDBDialect(default.DefaultDialect):
    """Transactions begin on `duckdb_file.FileConnection`, which opens the file for each."""

    name = "duckdb"
    driver = "duckdb"
    type_compiler_cls = _Types
    default_paramstyle = "qmark"
    supports_native_boolean = True
    supports_native_uuid = True
    supports_statement_cache = True
    supports_sane_multi_rowcount = False
    supports_default_values = True
    insert_returning = False

    @classmethod
    def import_dbapi(cls) -> DBAPIModule:
        import duckdb

        return duckdb  # type: ignore[return-value] # a module, as PEP 249 has it

    def do_begin(self, dbapi_connection: Any) -> None:
        dbapi_connection.begin()

    def do_ping(self, dbapi_connection: DBAPIConnection) -> bool:  # noqa: ARG002 - SQLAlchemy's
        return True

    @reflection.cache
    def has_table(
        self,
        connection: Connection,
        table_name: str,
        schema: str | None = None,
        **kw: Any,  # noqa: ARG002 - SQLAlchemy's
    ) -> bool:
        query = text(
            "SELECT 1 FROM duckdb_tables() WHERE database_name = current_database() "
            "AND schema_name = :schema AND table_name = :table"
        )
        parameters = {"schema": schema or "main", "table": table_name}
        return connection.execute(query, parameters).first() is not None

    @reflection.cache
    def get_table_names(
        self,
        connection: Connection,
        schema: str | None = None,
        **kw: Any,  # noqa: ARG002 - SQLAlchemy's
    ) -> list[str]:
        query = text(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() "
            "AND schema_name = :schema ORDER BY table_name"
        )
        return list(connection.execute(query, {"schema": schema or "main"}).scalars())

    @reflection.cache
    def get_columns(
        self,
        connection: Connection,
        table_name: str,
        schema: str | None = None,
        **kw: Any,  # noqa: ARG002 - SQLAlchemy's
    ) -> list[ReflectedColumn]:
        """The columns in order; types that Penstock's own tables do not have become NullType."""
        query = text(
            "SELECT column_name, data_type, is_nullable FROM duckdb_columns() "
            "WHERE database_name = current_database() "
            "AND schema_name = :schema AND table_name = :table ORDER BY column_index"
        )
        rows = connection.execute(query, {"schema": schema or "main", "table": table_name})
        return [
            {
                "name": name,
                "type": _KINDS.get(kind, types.NullType)(),
                "nullable": nullable,
                "default": None,
            }
            for name, kind, nullable in rows
        ]

    @reflection.cache
    def get_indexes(
        self,
        connection: Connection,
        table_name: str,
        schema: str | None = None,
        **kw: Any,  # noqa: ARG002 - SQLAlchemy's
    ) -> list[ReflectedIndex]:
        """The indexes of plain columns, which DuckDB lists as text, ``[a, "b c"]``."""
        query = text(
            "SELECT index_name, is_unique, expressions FROM duckdb_indexes() "
            "WHERE database_name = current_database() "
            "AND schema_name = :schema AND table_name = :table ORDER BY index_name"
        )
        rows = connection.execute(query, {"schema": schema or "main", "table": table_name})
        return [
            {
                "name": name,
                "column_names": [column.strip("'\"") for column in listed.strip("[]").split(", ")],
                "unique": unique,
            }
            for name, unique, listed in rows
        ]

    @reflection.cache
    def get_pk_constraint(
        self,
        connection: Connection,
        table_name: str,
        schema: str | None = None,
        **kw: Any,  # noqa: ARG002 - SQLAlchemy's
    ) -> ReflectedPrimaryKeyConstraint:
        query = text(
            "SELECT unnest(constraint_column_names) FROM duckdb_constraints() "
            "WHERE database_name = current_database() AND schema_name = :schema "
            "AND table_name = :table AND constraint_type = 'PRIMARY KEY'"
        )
        rows = connection.execute(query, {"schema": schema or "main", "table": table_name})
        return {"name": None, "constrained_columns": list(rows.scalars())}
