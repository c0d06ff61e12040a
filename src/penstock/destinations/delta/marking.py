"""Rows that go from files that stay: by deletion vectors of Delta, or by writing the files again.

A table with ``delta.enableDeletionVectors`` gets vectors, one file of them in each version. A data
file of which more than half is gone is written again all the same, so that readers never skip more
rows than they read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from penstock.delta import vectors
from penstock.delta.actions import DeletionVector
from penstock.destinations.delta.rewriting import rewritten
from penstock.lake.format.changes import TableChange
from penstock.lake.format.files import DataFile, DeleteFile, Table
from penstock.lake.reading.deleted.positions import Whose, load
from penstock.lake.storage import remove_directory, remove_file

_FRAME = 8  # bytes around a vector: its length, and a checksum


@dataclass(frozen=True, slots=True)
class Settled:
    """A change as Delta can have it. ``marks`` are the new vectors by the whole path of their data
    file, ``written`` the paths of what was written for it.
    """

    change: TableChange
    marks: Mapping[str, DeletionVector] = field(default_factory=dict)
    written: tuple[str, ...] = ()

    def discard(self) -> None:
        """Remove what was written, as far as that is possible."""
        for path in self.written:
            with contextlib.suppress(Exception):
                remove_file(path)


def settled(
    change: TableChange, files: Mapping[int, DataFile], table: Table, *, by_vectors: bool
) -> Settled:
    """The change with vectors, or copies, in place of delete files; ``files`` are by their ids."""
    deletes = change.deletes or {}
    few = {
        file_id: delete
        for file_id, delete in deletes.items()
        if by_vectors and 2 * delete.delete_count <= files[file_id].record_count
    }
    many = {file_id: delete for file_id, delete in deletes.items() if file_id not in few}
    change, copied = rewritten(replace(change, deletes=many), files, change.schema or table.schema)
    return _marked(change, few, files, table, copied) if few else Settled(change, written=copied)


def _marked(
    change: TableChange,
    deletes: Mapping[int, DeleteFile],
    files: Mapping[int, DataFile],
    table: Table,
    copied: tuple[str, ...],
) -> Settled:
    losing = [replace(files[file_id], delete=delete) for file_id, delete in deletes.items()]
    gone = load(losing, Whose(table.qualified_name, None))
    by_path = {each.file.path: each.positions for each in gone}
    marks, written = vectors.write(table.path, by_path)
    marked = {file_id: in_index(table.path, marks[files[file_id].path]) for file_id in deletes}
    paths = copied if written is None else (*copied, written)
    return Settled(replace(change, deletes=marked), marks, paths)


def in_index(table: str, vector: DeletionVector) -> DeleteFile:
    """A vector of a table's directory as the index has it: a place in a file of Delta's."""
    place, size = vectors.path_of(table, vector), vector.size + _FRAME
    return DeleteFile(place, vector.cardinality, size, vector.offset or 0, format="vector")


def discard(deletes: Iterable[DeleteFile]) -> None:
    """Remove delete files that nothing names, each in a directory of its removal, as far as that is
    possible.
    """
    for directory in {delete.path.rsplit("/", 2)[0] for delete in deletes}:
        with contextlib.suppress(Exception):  # another name than that of staged files
            remove_directory(directory)
