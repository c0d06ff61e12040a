"""The maintenance functions, by name for SQL's CALL and the command line, and as methods of a lake;
CHECKPOINT runs all of them.

Names and parameters are DuckDB's, and those that are positional there are so in CALL. A function is
called with the lake and these parameters by name; it returns rows of one frozen class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import LakeError
from penstock.lakes.maintenance import compaction, removal, snapshots
from penstock.lakes.maintenance import flush_inlined_data as flushing
from penstock.lakes.maintenance.compaction import merge_adjacent_files, rewrite_data_files
from penstock.lakes.maintenance.flush_inlined_data import FlushedTable, flush_inlined_data
from penstock.lakes.maintenance.removal import cleanup_old_files, delete_orphaned_files
from penstock.lakes.maintenance.scope import Compacted, Expired, HasCatalog, Removed
from penstock.lakes.maintenance.snapshots import RolledBackTable, expire_snapshots
from penstock.lakes.maintenance.writing import DEFAULT, Resources


@dataclass(frozen=True, slots=True)
class Done:
    """One function of the checkpoint and the rows that it returned."""

    name: str
    rows: tuple[Any, ...]


def run_checkpoint(
    lake: HasCatalog,
    table: str | None = None,
    *,
    schema: str | None = None,
    dry_run: bool = False,
    resources: Resources = DEFAULT,
    on_done: Callable[[Done], None] | None = None,
) -> list[Done]:
    """All maintenance by the lake's options: ``lake.checkpoint()``.

    Flush, expire, merge, rewrite, clean up, remove orphans; of a table or schema only files.
    Snapshots expire by the option ``expire_older_than`` (without it none does), files are
    rewritten by ``rewrite_delete_threshold`` and removed by ``delete_older_than``; tables with
    ``auto_compact`` off are skipped. ``on_done`` is called after each function. In a dry run each
    function reports what it would do to the lake as it is now; the flush is skipped. When a
    function fails (for a table with columns that cannot be compacted, say) the others still run,
    and the error is raised at the end.
    """
    whole = table is None and schema is None
    done: list[Done] = []
    failed: list[LakeError] = []
    for name, run, is_of_tables in _steps(lake, _Of(table, schema, dry_run, resources)):
        if not (is_of_tables or whole):
            continue
        try:
            step = Done(name, tuple(run()))
        except LakeError as error:
            failed.append(error)  # a table that cannot be merged must not stop the other functions
            continue
        done.append(step)
        if on_done is not None:
            on_done(step)
    if failed:
        raise failed[0]
    return done


@dataclass(frozen=True, slots=True)
class _Of:
    table: str | None
    schema: str | None
    dry_run: bool
    resources: Resources


_Step = tuple[str, Callable[[], Sequence[Any]], bool]  # whether it is of tables


def _steps(lake: HasCatalog, of: _Of) -> Iterator[_Step]:
    dry = of.dry_run
    if not dry:
        yield (
            "flush_inlined_data",
            lambda: flush_inlined_data(lake, of.table, schema=of.schema),
            True,
        )
    yield "expire_snapshots", lambda: expire_snapshots(lake, dry_run=dry), False
    yield (
        "merge_adjacent_files",
        lambda: merge_adjacent_files(
            lake, of.table, schema=of.schema, dry_run=dry, resources=of.resources
        ),
        True,
    )
    yield (
        "rewrite_data_files",
        lambda: rewrite_data_files(
            lake, of.table, schema=of.schema, dry_run=dry, resources=of.resources
        ),
        True,
    )
    yield "cleanup_old_files", lambda: cleanup_old_files(lake, dry_run=dry), False
    yield "delete_orphaned_files", lambda: delete_orphaned_files(lake, dry_run=dry), False


@dataclass(frozen=True, slots=True)
class Parameter:
    """``type`` is DuckDB's: VARCHAR, BOOLEAN, UBIGINT, UBIGINT[], DOUBLE, TIMESTAMPTZ.

    A TIMESTAMPTZ is given as an aware datetime, a list as a sequence.
    """

    name: str
    type: str
    default: Any = None
    positional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """``returns`` is the class of its rows."""

    name: str
    function: Callable[..., Sequence[Any]]
    returns: type
    parameters: tuple[Parameter, ...] = field(default=())

    def parameter(self, name: str) -> Parameter | None:
        return next((p for p in self.parameters if p.name == name), None)


_TABLE = Parameter("table", "VARCHAR", positional=True)
_SCHEMA = Parameter("schema", "VARCHAR")
_DRY_RUN = Parameter("dry_run", "BOOLEAN", default=False)
_OLDER_THAN = Parameter("older_than", "TIMESTAMPTZ")
_ALL = Parameter("cleanup_all", "BOOLEAN", default=False)
_CALLS = (
    Call(
        "merge_adjacent_files",
        compaction.merge_adjacent_files,
        Compacted,
        (
            *(_TABLE, _SCHEMA),
            Parameter("max_compacted_files", "UBIGINT"),
            Parameter("min_file_size", "UBIGINT"),
            Parameter("max_file_size", "UBIGINT"),
            _DRY_RUN,
        ),
    ),
    Call(
        "rewrite_data_files",
        compaction.rewrite_data_files,
        Compacted,
        (_TABLE, _SCHEMA, Parameter("delete_threshold", "DOUBLE"), _DRY_RUN),
    ),
    Call(
        "expire_snapshots",
        snapshots.expire_snapshots,
        Expired,
        (_OLDER_THAN, Parameter("versions", "UBIGINT[]"), _DRY_RUN),
    ),
    Call("flush_inlined_data", flushing.flush_inlined_data, FlushedTable, (_TABLE, _SCHEMA)),
    Call(
        "cleanup_old_files",
        removal.cleanup_old_files,
        Removed,
        (_OLDER_THAN, _ALL, Parameter("outside_data_path", "BOOLEAN", default=False), _DRY_RUN),
    ),
    Call(
        "delete_orphaned_files",
        removal.delete_orphaned_files,
        Removed,
        (_OLDER_THAN, _ALL, _DRY_RUN),
    ),
    Call(
        "rollback_to_snapshot",
        snapshots.rollback_to_snapshot,
        RolledBackTable,
        (
            _TABLE,
            Parameter("snapshot", "UBIGINT", positional=True),
            _SCHEMA,
            Parameter("timestamp", "TIMESTAMPTZ"),
        ),
    ),
    Call(
        "checkpoint", run_checkpoint, Done, (_TABLE, _SCHEMA, _DRY_RUN)
    ),  # the statement CHECKPOINT
)
CALLS: Mapping[str, Call] = {call.name: call for call in _CALLS}


class Maintained:
    """The maintenance functions as methods of a lake, which has a ``catalog``."""

    merge_adjacent_files = compaction.merge_adjacent_files
    rewrite_data_files = compaction.rewrite_data_files
    flush_inlined_data = flushing.flush_inlined_data
    expire_snapshots = snapshots.expire_snapshots
    cleanup_old_files = removal.cleanup_old_files
    delete_orphaned_files = removal.delete_orphaned_files
    checkpoint = run_checkpoint
