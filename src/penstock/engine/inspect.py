"""Questions about a project that its catalogs answer, without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.engine.outside import look
from penstock.engine.results import ModelDetail, ModelStatus, SchemaVersion, SnapshotInfo, StepRun
from penstock.engine.state import reading
from penstock.engine.state.records import column_infos, is_gone
from penstock.engine.state.store import State, find_tables
from penstock.engine.status import LakeState, model_status
from penstock.lake.catalog import reads
from penstock.model.header.lines import read_header
from penstock.model.model import Model

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lake.catalog.catalog import Catalog

LAST_RUNS = 10


def read_state(catalog: Catalog | None, column: str, target: str | None = None) -> LakeState:
    """What a lake's state says, and what others did to its tables; nothing without a catalog.

    ``column`` carries the values of slices.
    """
    if catalog is None:
        return LakeState()

    def ask(connection: Connection) -> LakeState:
        return _state(connection, catalog, column, target)

    return State(catalog).read(ask, LakeState())


def _state(connection: Connection, catalog: Catalog, column: str, target: str | None) -> LakeState:
    state = LakeState.read(connection, target)
    return replace(state, outside=look(connection, catalog.data_path, state.slices, column))


def status_of(model: Model, state: LakeState) -> ModelStatus:
    return model_status(model, state, is_gone)


def detail_of(model: Model, catalog: Catalog | None, column: str) -> ModelDetail:
    target = model.target.qualified
    versions: tuple[SchemaVersion, ...] = ()
    runs: tuple[StepRun, ...] = ()
    table, state = None, LakeState()
    if catalog is not None:
        with catalog.reading() as connection:
            if find_tables(connection):
                versions = reading.schema_versions(connection, target)
                runs = reading.step_runs(connection, target, LAST_RUNS)
                state = _state(connection, catalog, column, target)
            latest, place = reads.newest(connection), (model.target.schema, model.target.table)
            table = reads.find_table(connection, catalog.data_path, latest.id, *place)
    return ModelDetail(
        status=status_of(model, state),
        path=str(model.path),
        keys=model.keys,
        inputs=tuple(str(one) for one in model.inputs),
        tests=tuple(test.name for test in model.annotations.data_tests),
        columns=column_infos(table.schema) if table else (),
        schema_versions=versions,
        query=query_text(model),
        runs=runs,
    )


def query_text(model: Model) -> str:
    """The script's code as written: setup statements and query, without the header."""
    text = model.query.source.text
    return text[read_header(text, model.path).end :].strip()


def snapshot_infos(lake: str, catalog: Catalog) -> list[SnapshotInfo]:
    """Newest first."""
    return [
        SnapshotInfo(
            lake,
            snapshot.id,
            snapshot.time,
            snapshot.changes,
            snapshot.author,
            snapshot.message,
            snapshot.extra,
        )
        for snapshot in reversed(catalog.snapshots())
    ]
