"""How the catalog's booleans, UUIDs and times are stored on each database.

SQLite has none of them: they are BIGINT 0/1 and text there, as DuckDB writes them.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from sqlalchemy import BigInteger, Boolean, ColumnElement, Dialect, String, Uuid, types
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from penstock.lake.catalog.database.rows import damaged
from penstock.lake.values.bounds import format_timestamp

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Flag(types.TypeDecorator[bool]):
    """BOOLEAN, or BIGINT 0/1 on SQLite."""

    impl = Boolean
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> types.TypeEngine[Any]:
        return dialect.type_descriptor(
            BigInteger() if dialect.name == "sqlite" else Boolean(create_constraint=False)
        )

    def process_bind_param(self, value: bool | None, dialect: Dialect) -> Any:
        return value if value is None else int(value) if dialect.name == "sqlite" else bool(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> bool | None:  # noqa: ARG002 - SQLAlchemy's
        return None if value is None else bool(value)


class Identity(types.TypeDecorator[str]):
    """UUID, or text on SQLite; a string in Python."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> types.TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(String())
        return dialect.type_descriptor(Uuid(as_uuid=True))

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        return value if value is None or dialect.name == "sqlite" else uuid.UUID(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's
        return None if value is None else str(value)


class _Fetched(FunctionElement[Any]):
    """A time as it is selected. From DuckDB microseconds: for more, its driver wants pytz."""

    inherit_cache = True
    name = "fetched"

    def __init__(self, kind: types.TypeEngine[Any], column: ColumnElement[Any]) -> None:
        super().__init__(column)
        self.type = kind


@compiles(_Fetched)
def _plain(element: _Fetched, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(*element.clauses, **kw)


@compiles(_Fetched, "duckdb")
def _microseconds(element: _Fetched, compiler: SQLCompiler, **kw: Any) -> str:
    return f"epoch_us({compiler.process(*element.clauses, **kw)})"


class Instant(types.TypeDecorator[dt.datetime]):
    """TIMESTAMP WITH TIME ZONE, or text in UTC on SQLite; aware and in UTC in Python."""

    # the unused arguments below belong to SQLAlchemy's signatures

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> types.TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(String())
        return dialect.type_descriptor(types.TIMESTAMP(timezone=True))

    def column_expression(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return _Fetched(self, column)

    def process_bind_param(self, value: dt.datetime | None, dialect: Dialect) -> Any:
        return format_timestamp(value) if value and dialect.name == "sqlite" else value

    def process_result_value(
        self,
        value: Any,
        dialect: Dialect,  # noqa: ARG002 - SQLAlchemy's
    ) -> dt.datetime | None:
        if value is None:
            return None
        if isinstance(value, int):
            return _EPOCH + dt.timedelta(microseconds=value)
        try:
            moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            raise damaged(f"{value!r} is where a time must be") from None
        return moment.astimezone(dt.UTC)
