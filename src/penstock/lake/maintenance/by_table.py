"""Upkeep table by table: one that fails does not keep the others from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from penstock.errors import CommitUnknown, LakeError
from penstock.lake.files import Table

T = TypeVar("T")


def each(tables: Sequence[Table], run: Callable[[Table], list[T]]) -> list[T]:
    """``run`` for each table, in its order; the rows of all.

    The first error is raised at the end, with what else failed and how many tables did not in its
    data. Where nobody can tell what became of a commit, nothing more is tried.
    """
    found: list[T] = []
    failed: list[tuple[Table, LakeError]] = []
    for table in tables:
        try:
            found += run(table)
        except CommitUnknown:
            raise
        except LakeError as error:
            failed.append((table, error))
    if failed:
        raise _told(failed, len(tables))
    return found


def _told(failed: Sequence[tuple[Table, LakeError]], tables: int) -> LakeError:
    (table, first), *more = failed
    first.data["table"] = table.qualified_name
    if tables > 1:
        first.data["tables_done"] = tables - len(failed)
        first.data["also_failed"] = {one.qualified_name: str(error) for one, error in more}
        others = f"; so did {len(more)} more" if more else ""
        done = f"this table failed{others}; {tables - len(failed)} of {tables} are done"
        first.hint = f"{first.hint} ({done})" if first.hint else done
    return first
