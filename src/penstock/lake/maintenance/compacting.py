"""What merges and rewrites share: groups of files written anew, and the commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from penstock.errors import ArgumentError, CommitUnknown, LakeError
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.changes import ChangeSet, Compaction
from penstock.lake.compaction import NewFile
from penstock.lake.files import DataFile, Table
from penstock.lake.maintenance.results import Compacted
from penstock.lake.maintenance.writing import Job, remove_staged, write_together
from penstock.lake.snapshot import Snapshot

MEMORY = 256 << 20  # bytes
_LEAST_MEMORY = 1 << 20


def memory_checked(memory: int) -> int:
    if memory < _LEAST_MEMORY:
        raise ArgumentError(
            f"memory is {memory} bytes, which is too little to read files in",
            hint=f"give {_LEAST_MEMORY} or more; {MEMORY} is the default",
        )
    return memory


def compact(
    catalog: Catalog,
    base: Snapshot,
    table: Table,
    work: Iterable[tuple[Sequence[DataFile], Job]],
    of_files: Callable[[tuple[NewFile, ...]], Compaction],
) -> list[Compacted]:
    """Write each group, and commit what came of them as one snapshot.

    Nothing is left behind where the commit fails; where nobody can tell whether it did, nothing is
    touched. Raises CommitConflict when rows of the table were deleted or compacted meanwhile.
    """
    done: list[NewFile] = []
    try:
        for files, job in work:
            done += write_together(files, job)
        if done:
            changes = ChangeSet(compactions=(of_files(tuple(done)),))
            catalog.commit(base, changes, message=_message(catalog, table))
    except CommitUnknown:
        raise
    except BaseException:
        remove_staged(done)
        raise
    return [
        Compacted(table.schema_name, table.name, len(one.sources), int(one.file is not None))
        for one in done
    ]


def _message(catalog: Catalog, table: Table) -> str | None:
    """None, as DuckDB writes, but in a lake that takes no commit without one."""
    asked = catalog.option("require_commit_message") == "true"
    return f"compaction of {table.qualified_name}" if asked else None


def each(tables: Sequence[Table], run: Callable[[Table], list[Compacted]]) -> list[Compacted]:
    """``run`` for each table, in its order. One that fails does not keep the others from it: its
    error is raised at the end."""
    found: list[Compacted] = []
    failed: list[LakeError] = []
    for table in tables:
        try:
            found += run(table)
        except LakeError as error:
            failed.append(error)
    if failed:
        raise failed[0]
    return found


def planned(table: Table, groups: Sequence[Sequence[DataFile]]) -> list[Compacted]:
    """What a dry run answers: each group would become one file."""
    return [Compacted(table.schema_name, table.name, len(group), 1) for group in groups]
