"""The 28 tables of format 1.0, with the column types that DuckDB 1.5.5 gives them.

Writers use them as they stand: only 1.0 is written. Readers ask `of` for the tables of their
catalog, which bridges what other versions lack. Tables carry no schema; the engine adds the
metadata schema. SQLite has no booleans, UUIDs and times: they are BIGINT 0/1 and text there, as
DuckDB writes them.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    FromClause,
    MetaData,
    String,
    Table,
    Uuid,
    and_,
    cast,
    false,
    null,
    or_,
    select,
    types,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from penstock.lakes.catalog.database.faults import damaged
from penstock.lakes.format.values.bounds import format_timestamp

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
def _fetched(element: _Fetched, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(*element.clauses, **kw)


@compiles(_Fetched, "duckdb")
def _microseconds(element: _Fetched, compiler: SQLCompiler, **kw: Any) -> str:
    # A copy of a SQLite catalog, which DuckDB made, has times as text.
    return f"epoch_us(CAST({compiler.process(*element.clauses, **kw)} AS TIMESTAMPTZ))"


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


FORMAT = "penstock_format"  # the execution option that holds the catalog's version

METADATA = MetaData()

_KINDS: dict[str, type[types.TypeEngine[Any]]] = {
    "big": BigInteger,
    "text": String,
    "flag": Flag,
    "uuid": Identity,
    "time": Instant,
}


def _columns(spec: str, key: str | None = None) -> list[Column[Any]]:
    """Columns from ``name:kind`` pairs, ``!`` for NOT NULL; bare names are BIGINT."""
    columns: list[Column[Any]] = []
    for item in spec.split():
        name, _, kind = item.partition(":")
        required = kind.endswith("!")
        columns.append(
            Column(
                name,
                _KINDS[kind.rstrip("!") or "big"](),
                primary_key=name == key,
                autoincrement=False,
                nullable=not required and name != key,
            )
        )
    return columns


def _table(name: str, spec: str, *, key: str | None = None) -> Table:
    return Table(f"ducklake_{name}", METADATA, *_columns(spec, key))


metadata = _table("metadata", "key:text! value:text! scope:text scope_id")
snapshot = _table(
    "snapshot",
    "snapshot_id snapshot_time:time schema_version next_catalog_id next_file_id",
    key="snapshot_id",
)
snapshot_changes = _table(
    "snapshot_changes",
    "snapshot_id changes_made:text author:text commit_message:text commit_extra_info:text",
    key="snapshot_id",
)
schema = _table(
    "schema",
    "schema_id schema_uuid:uuid begin_snapshot end_snapshot schema_name:text path:text "
    "path_is_relative:flag",
    key="schema_id",
)
table = _table(
    "table",
    "table_id table_uuid:uuid begin_snapshot end_snapshot schema_id table_name:text path:text "
    "path_is_relative:flag",
)
view = _table(
    "view",
    "view_id view_uuid:uuid begin_snapshot end_snapshot schema_id view_name:text dialect:text "
    "sql:text column_aliases:text",
)
tag = _table("tag", "object_id begin_snapshot end_snapshot key:text value:text")
column_tag = _table(
    "column_tag", "table_id column_id begin_snapshot end_snapshot key:text value:text"
)
data_file = _table(
    "data_file",
    "data_file_id table_id begin_snapshot end_snapshot file_order path:text path_is_relative:flag "
    "file_format:text record_count file_size_bytes footer_size row_id_start partition_id "
    "encryption_key:text mapping_id partial_max",
    key="data_file_id",
)
file_column_stats = _table(
    "file_column_stats",
    "data_file_id table_id column_id column_size_bytes value_count null_count min_value:text "
    "max_value:text contains_nan:flag extra_stats:text",
)
file_variant_stats = _table(
    "file_variant_stats",
    "data_file_id table_id column_id variant_path:text shredded_type:text column_size_bytes "
    "value_count null_count min_value:text max_value:text contains_nan:flag extra_stats:text",
)
delete_file = _table(
    "delete_file",
    "delete_file_id table_id begin_snapshot end_snapshot data_file_id path:text "
    "path_is_relative:flag format:text delete_count file_size_bytes footer_size "
    "encryption_key:text partial_max",
    key="delete_file_id",
)
column = _table(
    "column",
    "column_id begin_snapshot end_snapshot table_id column_order column_name:text "
    "column_type:text initial_default:text default_value:text nulls_allowed:flag parent_column "
    "default_value_type:text default_value_dialect:text",
)
table_stats = _table("table_stats", "table_id record_count next_row_id file_size_bytes")
table_column_stats = _table(
    "table_column_stats",
    "table_id column_id contains_null:flag contains_nan:flag min_value:text max_value:text "
    "extra_stats:text",
)
partition_info = _table("partition_info", "partition_id table_id begin_snapshot end_snapshot")
partition_column = _table(
    "partition_column", "partition_id table_id partition_key_index column_id transform:text"
)
file_partition_value = _table(
    "file_partition_value", "data_file_id table_id partition_key_index partition_value:text"
)
files_scheduled_for_deletion = _table(
    "files_scheduled_for_deletion",
    "data_file_id path:text path_is_relative:flag schedule_start:time",
)
inlined_data_tables = _table("inlined_data_tables", "table_id table_name:text schema_version")
column_mapping = _table("column_mapping", "mapping_id table_id type:text")
name_mapping = _table(
    "name_mapping",
    "mapping_id column_id source_name:text target_field_id parent_column is_partition:flag",
)
schema_versions = _table("schema_versions", "begin_snapshot schema_version table_id")
macro = _table("macro", "schema_id macro_id macro_name:text begin_snapshot end_snapshot")
macro_impl = _table("macro_impl", "macro_id impl_id dialect:text sql:text type:text")
macro_parameters = _table(
    "macro_parameters",
    "macro_id impl_id column_id parameter_name:text parameter_type:text default_value:text "
    "default_value_type:text",
)
sort_info = _table("sort_info", "sort_id table_id begin_snapshot end_snapshot")
sort_expression = _table(
    "sort_expression",
    "sort_id table_id sort_key_index expression:text dialect:text sort_direction:text "
    "null_order:text",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The tables as one version has them, under the names and with the columns of 1.0.

    A column that the version lacks is NULL, a table that it lacks is empty.
    """

    metadata: FromClause
    snapshot: FromClause
    snapshot_changes: FromClause
    schema: FromClause
    table: FromClause
    view: FromClause
    tag: FromClause
    column_tag: FromClause
    data_file: FromClause
    file_column_stats: FromClause
    file_variant_stats: FromClause
    delete_file: FromClause
    column: FromClause
    table_stats: FromClause
    table_column_stats: FromClause
    partition_info: FromClause
    partition_column: FromClause
    file_partition_value: FromClause
    files_scheduled_for_deletion: FromClause
    inlined_data_tables: FromClause
    column_mapping: FromClause
    name_mapping: FromClause
    schema_versions: FromClause  # 0.3 counts for all tables at once: each has every version there
    macro: FromClause
    macro_impl: FromClause
    macro_parameters: FromClause
    sort_info: FromClause
    sort_expression: FromClause
    view_column_tag: FromClause = field(default_factory=lambda: _empty(_view_column_tag))  # 1.1

    @property
    def partial_file_info(self) -> ColumnElement[str | None]:
        """The column of `data_file` with 0.3's snapshots of a merged file, or NULL."""
        return optional(self.data_file, "partial_file_info", String())


def of(connection: Connection) -> Tables:
    """The tables of the catalog that ``connection`` reads. The engine knows its version."""
    return _BRIDGES[connection.get_execution_options()[FORMAT]]()


def optional(table: FromClause, name: str, kind: types.TypeEngine[Any]) -> ColumnElement[Any]:
    """A column that not all versions have (1.1's ``min_is_exact``, say), NULL where it is not."""
    return table.c[name] if name in table.c else cast(null(), kind).label(name)


def _plain() -> dict[str, FromClause]:
    return {table.name.removeprefix("ducklake_"): table for table in METADATA.tables.values()}


@cache
def _tables_0_3() -> Tables:
    return Tables(
        **{
            name: _ONLY_0_3[name]() if name in _ONLY_0_3 else table
            for name, table in _plain().items()
        }
    )


@cache
def _tables_1_0() -> Tables:
    return Tables(**_plain())


@cache
def _tables_1_1() -> Tables:
    added: dict[str, FromClause] = {}
    for name, spec in _ADDED_IN_1_1.items():
        known = METADATA.tables[f"ducklake_{name}"]
        columns = [Column(c.name, c.type) for c in known.c]
        added[name] = Table(known.name, MetaData(), *columns, *_columns(spec))
    return Tables(**_plain() | added | {"view_column_tag": _view_column_tag})


_BRIDGES: Mapping[str, Callable[[], Tables]] = {
    "0.3": _tables_0_3,
    "0.4": _tables_1_0,  # its tables are those of 1.0
    "1.0": _tables_1_0,
    "1.1": _tables_1_1,
}


def _with_nulls(table: Table, *missing: str, more: tuple[str, ...] = ()) -> FromClause:
    """``table`` where it has ``more`` columns (text) and lacks those that are ``missing``."""
    there = [Column(c.name, c.type) for c in table.c if c.name not in missing]
    stored = Table(table.name, MetaData(), *there, *(Column(name, String) for name in more))
    nulls = [cast(null(), table.c[name].type).label(name) for name in missing]
    return select(*stored.c, *nulls).subquery(table.name)


def _empty(table: Table) -> FromClause:
    nulls = [cast(null(), c.type).label(c.name) for c in table.c]
    return select(*nulls).where(false()).subquery(table.name)


def _versions_by_table() -> FromClause:
    """0.3 has one counter for all tables: a table has every version made during its life.

    That is also how DuckDB's migration fills the column.
    """
    v = Table(
        schema_versions.name,
        MetaData(),
        Column("begin_snapshot", BigInteger),
        Column("schema_version", BigInteger),
    )
    lived = and_(
        v.c.begin_snapshot >= table.c.begin_snapshot,
        or_(table.c.end_snapshot.is_(None), v.c.begin_snapshot < table.c.end_snapshot),
    )
    query = select(v.c.begin_snapshot, v.c.schema_version, table.c.table_id)
    return query.join_from(v, table, lived).subquery(schema_versions.name)


_ONLY_0_3: Mapping[str, Callable[[], FromClause]] = {
    "data_file": lambda: _with_nulls(data_file, "partial_max", more=("partial_file_info",)),
    "delete_file": lambda: _with_nulls(delete_file, "partial_max"),
    "column": lambda: _with_nulls(column, "default_value_type", "default_value_dialect"),
    "schema_versions": _versions_by_table,
    "file_variant_stats": lambda: _empty(file_variant_stats),
    "macro": lambda: _empty(macro),
    "macro_impl": lambda: _empty(macro_impl),
    "macro_parameters": lambda: _empty(macro_parameters),
    "sort_info": lambda: _empty(sort_info),
    "sort_expression": lambda: _empty(sort_expression),
}

_view_column_tag: Table = Table(  # not among those that a new lake gets
    "ducklake_view_column_tag",
    MetaData(),
    *_columns("view_id column_name:text begin_snapshot end_snapshot key:text value:text"),
)
_ADDED_IN_1_1 = {
    "data_file": "row_group_count",
    "delete_file": "row_group_count",
    "file_column_stats": "min_is_exact:flag max_is_exact:flag",
    "table_column_stats": "min_is_exact:flag max_is_exact:flag",
    "schema": "parent_schema_id",
}
