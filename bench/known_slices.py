"""Catalogs that know very many slices, made by inserting records: what plans and states cost.

The project has ``generated.partitioned`` models, or a source with readers. Each of them was made by
a run of its whole range, in one commit: a snapshot and a read for each model, a slice and a step
for each of its days. No rows are written, and no data files: neither a plan nor a status looks at
them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, update

from bench import generated
from penstock import Project
from penstock.engine.state.records import this_process
from penstock.engine.state.tables import READ, RUN, SLICE, STEP, migrate, to_text
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.database import metadata as t
from penstock.model.definition.model import Model

FIRST = date(2025, 1, 1)
_AT = datetime(2026, 1, 1, tzinfo=UTC)
_RUN = "01976f00-0000-7000-8000-000000000001"
_CORRECTION = "01976f00-0000-7000-8000-000000000002"
_READER = """\
-- pipeline
-- partitioned daily
-- materialize ducklake://main/{name}
SELECT id, c1, day FROM {table} WHERE _wm_partition = '{{partition}}'
"""
_COLUMNS = (*(f"c{n}" for n in range(1, 11)), "day", "_wm_partition")


def make(root: Path, models: int, days: int) -> None:
    """Write a project of so many models, and the catalog after a run of so many days."""
    generated.write(root, models, partitioned=True)
    _record(root, days)


def make_readers(root: Path, readers: int, days: int) -> None:
    """Write a project of a source and so many models that read its same slice, all of them built.

    Then a day of the source, `corrected_day`, is built again: that slice of all readers is behind.
    """
    generated.write(root, 0)
    (root / "models").mkdir()
    names = {"source": "raw_events"} | {f"reader{n:02}": "source" for n in range(readers)}
    for name, table in names.items():
        (root / "models" / f"{name}.sql").write_text(_READER.format(name=name, table=table))
    _record(root, days)
    _correct(root, readers + 2, corrected_day(days))


def corrected_day(days: int) -> date:
    """The day of the source that is built again: the one in the middle."""
    return FIRST + timedelta(days=days // 2)


def _correct(root: Path, snapshot_id: int, day: date) -> None:
    """Record that a later run built a day of the source again."""
    extra = json.dumps({"run": _CORRECTION, "step": "source"})
    changes = {"changes_made": "inserted_into_table:1", "commit_extra_info": extra}
    snapshot = _snapshots(snapshot_id)[-1] | {"snapshot_time": _AT + timedelta(days=1)}
    moment = to_text(_AT + timedelta(days=1))
    of_day = (SLICE.c.target == "main.source") & (SLICE.c.slice == day.isoformat())
    built = {"run_id": _CORRECTION, "snapshot_id": snapshot_id, "made_in": snapshot_id}
    catalog = Catalog.open(f"sqlite:{root}/meta.ducklake", data_path=str(root / "data"))
    with catalog, catalog.writing() as connection:
        _insert(connection, t.snapshot, [snapshot])
        _insert(connection, t.snapshot_changes, [{"snapshot_id": snapshot_id, **changes}])
        _insert(connection, RUN, [{**_run(), "run_id": _CORRECTION}])
        connection.execute(update(SLICE).where(of_day).values(**built, published_at=moment))


def _record(root: Path, days: int) -> None:
    with Project.load(root) as project:
        ordered = project.graph.ordered(project.models)
    catalog = Catalog.open(f"sqlite:{root}/meta.ducklake", data_path=str(root / "data"))
    with catalog, catalog.writing() as connection:
        migrate(connection)
        _insert(connection, t.snapshot, _snapshots(len(ordered)))
        _insert(connection, t.snapshot_changes, _changes(len(ordered)))
        _insert(connection, t.table, _tables(ordered))
        _insert(connection, t.column, _columns(len(ordered)))
        _insert(connection, RUN, [_run()])
        _insert(connection, READ, _reads(ordered))
        for at, model in enumerate(ordered, 1):
            _insert(connection, SLICE, _slices(model, at, days))
            _insert(connection, STEP, _steps(model, at, days))


def last(days: int) -> date:
    """The last of so many days."""
    return FIRST + timedelta(days=days - 1)


def _insert(connection: Connection, table: Any, rows: Sequence[dict[str, Any]]) -> None:
    connection.execute(insert(table), rows)


def _snapshots(count: int) -> list[dict[str, Any]]:
    return [
        {
            "snapshot_id": at,
            "snapshot_time": _AT,
            "schema_version": at,
            "next_catalog_id": count + 1,
            "next_file_id": 0,
        }
        for at in range(1, count + 1)
    ]


def _changes(count: int) -> list[dict[str, Any]]:
    extra = json.dumps({"run": _RUN, "step": "bench"})
    return [
        {
            "snapshot_id": at,
            "changes_made": f'created_table:"main"."m{at}",inserted_into_table:{at}',
            "commit_extra_info": extra,
        }
        for at in range(1, count + 1)
    ]


def _tables(models: Sequence[Model]) -> list[dict[str, Any]]:
    return [
        {
            "table_id": at,
            "table_uuid": f"00000000-0000-7000-8000-{at:012}",
            "begin_snapshot": at,
            "schema_id": 0,
            "table_name": model.target.table,
            "path": f"{model.target.table}/",
            "path_is_relative": True,
        }
        for at, model in enumerate(models, 1)
    ]


def _columns(count: int) -> list[dict[str, Any]]:
    return [
        {
            "column_id": number,
            "begin_snapshot": at,
            "table_id": at,
            "column_order": number,
            "column_name": name,
            "column_type": "varchar",
            "nulls_allowed": True,
            "default_value": "NULL",
        }
        for at in range(1, count + 1)
        for number, name in enumerate(("id", *_COLUMNS), 1)
    ]


def _run() -> dict[str, Any]:
    process = this_process()
    return {
        "run_id": _RUN,
        "state": "done",
        "args": "{}",
        "trigger_kind": "manual",
        "started_at": to_text(_AT),
        "finished_at": to_text(_AT),
        "host": process.host,
        "pid": process.pid,
        "process_started": process.started,
    }


def _reads(models: Sequence[Model]) -> list[dict[str, Any]]:
    return [
        {
            "read_id": f"read-{at}",
            "target": model.target.qualified,
            "run_id": _RUN,
            "lakes": json.dumps({"main": at - 1}),
            "inputs": json.dumps(
                [{"kind": "table", "name": f"ducklake://{table}"} for table in model.inputs],
                default=str,
            ),
            "arguments": "{}",
            "tests": model.terms,
            "version": "bench",
        }
        for at, model in enumerate(models, 1)
    ]


def _days(count: int) -> Iterator[str]:
    return ((FIRST + timedelta(days=number)).isoformat() for number in range(count))


def _slices(model: Model, at: int, days: int) -> list[dict[str, Any]]:
    return [
        {
            "target": model.target.qualified,
            "slice": day,
            "run_id": _RUN,
            "step": model.name,
            "strategy": model.strategy.name,
            "snapshot_id": at,
            "row_count": 1000,
            "definition_hash": model.definition_hash,
            "published_at": to_text(_AT),
            "slicing": model.slicing,
            "made_in": at,
            "read_id": f"read-{at}",
        }
        for day in _days(days)
    ]


def _steps(model: Model, at: int, days: int) -> list[dict[str, Any]]:
    return [
        {
            "run_id": _RUN,
            "step": model.name,
            "slice": day,
            "target": model.target.qualified,
            "state": "done",
            "started_at": to_text(_AT),
            "finished_at": to_text(_AT),
            "row_count": 1000,
            "snapshot_id": at,
        }
        for day in _days(days)
    ]
