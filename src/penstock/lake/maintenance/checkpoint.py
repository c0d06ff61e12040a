"""CHECKPOINT: all of the upkeep, in the order of the real extension, by the lake's options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.lake.maintenance.cleanup_old_files import cleanup_old_files
from penstock.lake.maintenance.compacting import MEMORY
from penstock.lake.maintenance.delete_orphaned_files import delete_orphaned_files
from penstock.lake.maintenance.expire_snapshots import expire_snapshots
from penstock.lake.maintenance.merge_adjacent_files import merge_adjacent_files
from penstock.lake.maintenance.rewrite_data_files import rewrite_data_files
from penstock.lake.maintenance.scope import HasCatalog


@dataclass(frozen=True, slots=True)
class Done:
    """One function of the checkpoint and the rows that it answered."""

    name: str
    rows: tuple[Any, ...]


def checkpoint(
    lake: HasCatalog, *, memory: int = MEMORY, on_done: Callable[[Done], None] | None = None
) -> list[Done]:
    """Flush, expire, merge, rewrite, clean up, remove orphans.

    Snapshots expire by the option ``expire_older_than`` (without it none does), files are rewritten
    by ``rewrite_delete_threshold`` and removed by ``delete_older_than``; tables with
    ``auto_compact`` off are left alone. ``on_done`` is called after each function.
    """
    done: list[Done] = []
    for name, run in _steps(lake, memory):
        one = Done(name, tuple(run()))
        done.append(one)
        if on_done is not None:
            on_done(one)
    return done


def _steps(lake: HasCatalog, memory: int) -> Iterator[tuple[str, Callable[[], Sequence[Any]]]]:
    yield "expire_snapshots", lambda: expire_snapshots(lake)
    yield "merge_adjacent_files", lambda: merge_adjacent_files(lake, memory=memory)
    yield "rewrite_data_files", lambda: rewrite_data_files(lake, memory=memory)
    yield "cleanup_old_files", lambda: cleanup_old_files(lake)
    yield "delete_orphaned_files", lambda: delete_orphaned_files(lake)
