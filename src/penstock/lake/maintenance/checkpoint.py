"""CHECKPOINT: all maintenance, in the order of the real extension, by the lake's options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import LakeError
from penstock.lake.maintenance.compaction import merge_adjacent_files, rewrite_data_files
from penstock.lake.maintenance.flush_inlined_data import flush_inlined_data
from penstock.lake.maintenance.removal import cleanup_old_files, delete_orphaned_files
from penstock.lake.maintenance.scope import HasCatalog
from penstock.lake.maintenance.snapshots import expire_snapshots
from penstock.lake.maintenance.writing import DEFAULT, Resources


@dataclass(frozen=True, slots=True)
class Done:
    """One function of the checkpoint and the rows that it returned."""

    name: str
    rows: tuple[Any, ...]


def checkpoint(
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
