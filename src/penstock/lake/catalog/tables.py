"""The 28 tables of format 1.0, with the column types that DuckDB 1.5.5 gives them.

SQLite has neither booleans, UUIDs nor timestamps there: they are BIGINT 0/1 and text. PostgreSQL
has them all. Tables carry no schema; the engine puts the metadata schema in.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    MetaData,
    String,
    Table,
    Uuid,
    types,
)

from penstock.lake.bounds import format_timestamp


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


class Instant(types.TypeDecorator[dt.datetime]):
    """TIMESTAMP WITH TIME ZONE, or text in UTC on SQLite; aware and in UTC in Python."""

    # the unused arguments below belong to SQLAlchemy's signatures

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> types.TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(String())
        return dialect.type_descriptor(types.TIMESTAMP(timezone=True))

    def process_bind_param(self, value: dt.datetime | None, dialect: Dialect) -> Any:
        return format_timestamp(value) if value and dialect.name == "sqlite" else value

    def process_result_value(
        self,
        value: Any,
        dialect: Dialect,  # noqa: ARG002 - SQLAlchemy's
    ) -> dt.datetime | None:
        if value is None:
            return None
        moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.astimezone(dt.UTC)


METADATA = MetaData()

_KINDS: dict[str, type[types.TypeEngine[Any]]] = {
    "big": BigInteger,
    "text": String,
    "flag": Flag,
    "uuid": Identity,
    "time": Instant,
}


def _table(name: str, spec: str, *, key: str | None = None) -> Table:
    """A table from ``name:kind`` pairs, ``!`` for NOT NULL; bare names are BIGINT."""
    columns: list[Column[Any]] = []
    for item in spec.split():
        column, _, kind = item.partition(":")
        required = kind.endswith("!")
        columns.append(
            Column(
                column,
                _KINDS[kind.rstrip("!") or "big"](),
                primary_key=column == key,
                autoincrement=False,
                nullable=not required and column != key,
            )
        )
    return Table(f"ducklake_{name}", METADATA, *columns)


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
