"""SQLAlchemy's view of DuckDB: as much as a catalog needs.

(docs/adr/0006 says why the published dialect is not used.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
        given = {"schema": schema or "main", "table": table_name}
        return connection.execute(query, given).first() is not None

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
        """In order. Types that none of our own tables has are left open."""
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
        """Of plain columns; DuckDB has them as text, ``[a, "b c"]``."""
        query = text(
            "SELECT index_name, is_unique, expressions FROM duckdb_indexes() "
            "WHERE database_name = current_database() "
            "AND schema_name = :schema AND table_name = :table ORDER BY index_name"
        )
        rows = connection.execute(query, {"schema": schema or "main", "table": table_name})
        return [
            {
                "name": name,
                "column_names": [one.strip("'\"") for one in listed.strip("[]").split(", ")],
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
