"""Stage a change of rows, whatever kind it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from penstock.lake.rows import by_condition, merge, merge_by_key
from penstock.lake.rows.change import Condition, Keys, On, RowChange

if TYPE_CHECKING:
    from penstock.lake.candidate.staged import StagedTable
    from penstock.lake.candidate.state import Staged

_STAGERS: Mapping[type, Callable[[StagedTable, RowChange], Staged]] = {
    Condition: by_condition.stage,
    Keys: merge_by_key.stage,
    On: merge.stage,
}


def stage(table: StagedTable, change: RowChange) -> Staged:
    """Stage the change in ``table``. A call that fails, or changes no row, stages nothing.

    Raises what the kinds of changes do: QueryFailed, MergeKeyError, SchemaMismatch, ColumnNotFound.
    """
    return _STAGERS[type(change.match)](table, change)
