"""The maintenance functions by name: what SQL's CALL, the methods and the command line offer.

Names and parameters are DuckDB's, and those that are positional there are so here. A function is
called with the lake and these parameters by name; what it answers are rows of one frozen class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.lake.maintenance.checkpoint import Done, checkpoint
from penstock.lake.maintenance.cleanup_old_files import cleanup_old_files
from penstock.lake.maintenance.delete_orphaned_files import delete_orphaned_files
from penstock.lake.maintenance.expire_snapshots import expire_snapshots
from penstock.lake.maintenance.flush_inlined_data import FlushedTable, flush_inlined_data
from penstock.lake.maintenance.merge_adjacent_files import merge_adjacent_files
from penstock.lake.maintenance.rewrite_data_files import rewrite_data_files
from penstock.lake.maintenance.rollback_to_snapshot import RolledBackTable, rollback_to_snapshot
from penstock.lake.maintenance.scope import Compacted, Expired, Removed


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
        return next((one for one in self.parameters if one.name == name), None)


_TABLE = Parameter("table", "VARCHAR", positional=True)
_SCHEMA = Parameter("schema", "VARCHAR")
_DRY_RUN = Parameter("dry_run", "BOOLEAN", default=False)
_OLDER_THAN = Parameter("older_than", "TIMESTAMPTZ")
_ALL = Parameter("cleanup_all", "BOOLEAN", default=False)

_CALLS = (
    Call(
        "merge_adjacent_files",
        merge_adjacent_files,
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
        rewrite_data_files,
        Compacted,
        (_TABLE, _SCHEMA, Parameter("delete_threshold", "DOUBLE"), _DRY_RUN),
    ),
    Call(
        "expire_snapshots",
        expire_snapshots,
        Expired,
        (_OLDER_THAN, Parameter("versions", "UBIGINT[]"), _DRY_RUN),
    ),
    Call("flush_inlined_data", flush_inlined_data, FlushedTable, (_TABLE, _SCHEMA)),
    Call(
        "cleanup_old_files",
        cleanup_old_files,
        Removed,
        (_OLDER_THAN, _ALL, Parameter("outside_data_path", "BOOLEAN", default=False), _DRY_RUN),
    ),
    Call("delete_orphaned_files", delete_orphaned_files, Removed, (_OLDER_THAN, _ALL, _DRY_RUN)),
    Call(
        "rollback_to_snapshot",
        rollback_to_snapshot,
        RolledBackTable,
        (
            _TABLE,
            Parameter("snapshot", "UBIGINT", positional=True),
            _SCHEMA,
            Parameter("timestamp", "TIMESTAMPTZ"),
        ),
    ),
    Call("checkpoint", checkpoint, Done, (_TABLE, _SCHEMA, _DRY_RUN)),  # the statement CHECKPOINT
)
CALLS: Mapping[str, Call] = {one.name: one for one in _CALLS}
