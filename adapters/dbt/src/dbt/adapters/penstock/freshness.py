"""The age of a source by the snapshots of its lake, where it names no `loaded_at_field`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from penstock.engine.planning.table_changes import last_change
from penstock.model.values.asset import TableName

if TYPE_CHECKING:
    from dbt.adapters.penstock.relation import PenstockRelation
    from penstock.lakes.lake import Lake


def response(lake: Lake, source: PenstockRelation) -> dict[str, Any]:
    """Return what dbt records of a source's freshness. Raises DbtRuntimeError for views."""
    table = TableName(lake.name, source.schema or "main", source.identifier or "")
    changed = last_change(lake.catalog, table)
    if isinstance(changed, str):
        raise DbtRuntimeError(
            f"the freshness of {source.render()} is not known: it {changed}; "
            "name its loaded_at_field"
        )
    now = datetime.now(UTC)
    age = (now - changed).total_seconds()
    return {"max_loaded_at": changed, "snapshotted_at": now, "age": age}
