"""The first tables: runs, their steps, slices, checks and schema versions. Never changed."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Connection, Index, MetaData, Table, Text

_METADATA = MetaData()


def _key(name: str) -> Column[str]:
    return Column(name, Text, primary_key=True)


def _texts(*names: str, null: bool = False) -> tuple[Column[str], ...]:
    return tuple(Column(name, Text, nullable=null) for name in names)


def _number(name: str, *, key: bool = False, null: bool = False) -> Column[int]:
    return Column(name, BigInteger, primary_key=key, nullable=null, autoincrement=False)


_RUN = Table(
    "penstock_run",
    _METADATA,
    _key("run_id"),
    *_texts("state", "args", "trigger_kind", "started_at", "host", "process_started"),
    *_texts("partition_value", "finished_at", null=True),
    _number("pid"),
)
Index("penstock_run_state", _RUN.c.state)

_STEP = Table(
    "penstock_step",
    _METADATA,
    _key("run_id"),
    _key("step"),
    _key("slice"),
    *_texts("target", "state", "started_at"),
    *_texts("finished_at", "reason", null=True),
    _number("row_count", null=True),
    _number("snapshot_id", null=True),
)
Index("penstock_step_target", _STEP.c.target, _STEP.c.slice, _STEP.c.started_at)

Table(
    "penstock_slice",
    _METADATA,
    _key("target"),
    _key("slice"),
    *_texts("run_id", "step", "strategy", "definition_hash", "published_at"),
    *_texts("fingerprint", null=True),
    _number("snapshot_id"),
    _number("row_count"),
)

_CHECK = Table(
    "penstock_check",
    _METADATA,
    _key("run_id"),
    _key("target"),
    _key("slice"),
    _number("position", key=True),
    *_texts("name", "samples", "checked_at"),
    _number("passed"),
    _number("failures"),
)
Index("penstock_check_target", _CHECK.c.target, _CHECK.c.slice, _CHECK.c.checked_at)

Table(
    "penstock_schema_version",
    _METADATA,
    _key("target"),
    _number("version", key=True),
    *_texts("run_id", "columns", "created_at"),
    _number("snapshot_id"),
)


def apply(connection: Connection) -> None:
    _METADATA.create_all(connection, checkfirst=False)
