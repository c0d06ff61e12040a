"""The maintenance functions, by name for SQL's CALL and the command line, and as methods of a lake.

Names and parameters are DuckDB's, and those that are positional there are so in CALL. A function is
called with the lake and these parameters by name; it returns rows of one frozen class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.lake.maintenance import checkpoint as checkpointing
from penstock.lake.maintenance import compaction, removal, snapshots
from penstock.lake.maintenance import flush_inlined_data as flushing
from penstock.lake.maintenance.checkpoint import Done
from penstock.lake.maintenance.flush_inlined_data import FlushedTable
from penstock.lake.maintenance.scope import Compacted, Expired, Removed
from penstock.lake.maintenance.snapshots import RolledBackTable


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
        "checkpoint", checkpointing.checkpoint, Done, (_TABLE, _SCHEMA, _DRY_RUN)
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
    checkpoint = checkpointing.checkpoint
