"""Rows that go from files that stay: by deletion vectors of Delta, or by writing the files again.

A table with ``delta.enableDeletionVectors`` gets vectors, one file of them in each version. A data
file of which more than half is gone is written again all the same, so that readers never skip more
rows than they read.

Copy on write: data files that lose some rows are written again without them.

Delta's tables get no delete files: readers of the first protocols know none, and deletion vectors
are an option of penstock.Delta. A file is rewritten batch by batch, on the driver.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from penstock.delta import vectors
from penstock.delta.actions import DeletionVector
from penstock.delta.schema import columns_written_again
from penstock.lakes.format.changes import TableChange
from penstock.lakes.format.files import DataFile, DeleteFile, Table
from penstock.lakes.format.naming import new_uuid7
from penstock.lakes.format.schema import TableSchema
from penstock.lakes.format.statistics import from_footer
from penstock.lakes.reading.deleted.positions import Whose, load
from penstock.lakes.storage import open_system, output, remove_directory, remove_file, size_of
from penstock.lazy import pa, pc, pq

_THREADS = 4  # files at a time: each holds one batch
_BATCH = 131_072  # rows


def rewritten(
    change: TableChange, files: Mapping[int, DataFile], schema: TableSchema
) -> tuple[TableChange, tuple[str, ...]]:
    """The change with files in place of its delete files; ``files`` are those that lose rows, by
    their ids. Also returns the paths of the files that were written, and of those not needed.
    """
    deletes = change.deletes or {}
    if not deletes:
        return change, ()
    pairs = [(files[file_id], delete) for file_id, delete in deletes.items()]
    table = f"{change.schema_name}.{change.name}"
    made = [file for file in copies(pairs, schema, table) if file is not None]
    staged = tuple(file.path for file in made)
    return (
        replace(change, end=(*change.end, *deletes), add=(*change.add, *made), deletes=None),
        staged,
    )


def copies(
    pairs: Sequence[tuple[DataFile, DeleteFile]], schema: TableSchema, table: str
) -> list[DataFile | None]:
    """New files with the rows of each that are left; None where none is."""
    if not pairs:
        return []
    with ThreadPoolExecutor(min(_THREADS, len(pairs)), "penstock-rewritten") as pool:
        return list(pool.map(lambda pair: _rewrite(pair[0], pair[1], schema, table), pairs))


def _rewrite(
    file: DataFile, delete: DeleteFile, schema: TableSchema, table: str
) -> DataFile | None:
    (gone,) = load([replace(file, delete=delete)], Whose(table, None))
    folder, _, _ = file.path.rpartition("/")
    path = f"{folder}/ducklake-{new_uuid7()}.parquet"
    kept = _copy(file.path, path, gone.positions)
    if not kept:
        remove_file(path)
        return None
    system, place = open_system(path)
    with system.open_input_file(place) as source:
        footer = pq.read_metadata(source)
    return replace(
        file,
        path=path,
        id=None,
        begin_snapshot=None,
        row_id_start=None,
        has_row_ids=False,
        record_count=kept,
        size_bytes=size_of(path) or 0,
        footer_size=footer.serialized_size,
        delete=None,
        stats=from_footer(footer, schema),
    )


def _copy(source: str, target: str, gone: Sequence[int]) -> int:
    """Copy a file without rows at these positions, in order; returns how many rows are left."""
    system, place = open_system(source)
    positions = gone if isinstance(gone, pa.Array) else pa.array(gone, pa.int64())
    start = kept = 0
    with (
        system.open_input_file(place) as opened,
        pq.ParquetFile(opened, coerce_int96_timestamp_unit="us") as content,
    ):
        schema = columns_written_again(content, source)
        codec = content.metadata.row_group(0).column(0).compression.lower()
        with (
            output(target) as out,
            pq.ParquetWriter(
                out,
                schema,
                compression=codec if codec != "uncompressed" else "none",
                store_schema=False,
                use_deprecated_int96_timestamps=False,
            ) as writer,
        ):
            for batch in content.iter_batches(_BATCH):
                numbers = pa.array(range(start, start + batch.num_rows), pa.int64())
                is_left = pc.invert(pc.is_in(numbers, value_set=positions))
                left = batch.cast(schema).filter(is_left)
                start += batch.num_rows
                kept += left.num_rows
                if left.num_rows:
                    writer.write_batch(left)
    return kept


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


def needs_settling(change: TableChange) -> bool:
    """Return whether rows go from files: those of the table, or some that are brought back."""
    return bool(change.deletes) or any(file.delete is not None for file in change.add)


def settled(
    change: TableChange, files: Mapping[int, DataFile], table: Table, *, by_vectors: bool
) -> Settled:
    """The change with vectors, or copies, in place of delete files; ``files`` are by their ids."""
    deletes = change.deletes or {}
    losing = {id_: replace(files[id_], delete=delete) for id_, delete in deletes.items()}
    few = {id_: file for id_, file in losing.items() if by_vectors and _loses_few(file)}
    many = {id_: delete for id_, delete in deletes.items() if id_ not in few}
    back = [file for file in change.add if by_vectors and _loses_few(file)]
    change, brought = _brought_back(change, back, table)
    change, copied = rewritten(replace(change, deletes=many), files, change.schema or table.schema)
    marks, written = _vectors([*few.values(), *back], table)
    change = replace(
        change,
        add=tuple(_with(marks, file, table) for file in change.add),
        deletes={
            id_: vectors.as_delete_file(table.path, marks[file.path]) for id_, file in few.items()
        }
        or None,
    )
    return Settled(change, marks, (*brought, *copied, *written))


def _loses_few(file: DataFile) -> bool:
    return file.delete is not None and 2 * file.delete.delete_count <= file.record_count


def _brought_back(
    change: TableChange, marked: Sequence[DataFile], table: Table
) -> tuple[TableChange, tuple[str, ...]]:
    """The change with copies of the files that a rollback brings back with delete files, but for
    those that get vectors; and the paths of the copies.
    """
    pairs = [(f, f.delete) for f in change.add if f.delete is not None and f not in marked]
    made = copies(pairs, change.schema or table.schema, table.qualified_name)
    anew = {file.path: copy for (file, _), copy in zip(pairs, made, strict=True)}
    kept = (anew.get(file.path, file) for file in change.add)
    paths = tuple(copy.path for copy in made if copy is not None)
    return replace(change, add=tuple(file for file in kept if file is not None)), paths


def _vectors(
    files: Sequence[DataFile], table: Table
) -> tuple[dict[str, DeletionVector], tuple[str, ...]]:
    """The vectors of the delete files of these, by their paths, and the path of the new file."""
    if not files:
        return {}, ()
    gone = load(files, Whose(table.qualified_name, None))
    marks, written = vectors.write(table.path, {each.file.path: each.positions for each in gone})
    return marks, () if written is None else (written,)


def _with(marks: Mapping[str, DeletionVector], file: DataFile, table: Table) -> DataFile:
    vector = marks.get(file.path)
    return (
        file if vector is None else replace(file, delete=vectors.as_delete_file(table.path, vector))
    )


def discard(change: TableChange) -> None:
    """Remove what a change staged and nothing names now, as far as that is possible: delete files,
    each in a directory of its removal, and those of files that are brought back.
    """
    deletes = (change.deletes or {}).values()
    for directory in {delete.path.rsplit("/", 2)[0] for delete in deletes}:
        with contextlib.suppress(Exception):  # another name than that of staged files
            remove_directory(directory)
    for file in change.add:
        if file.delete is not None:
            with contextlib.suppress(Exception):
                remove_file(file.delete.path)
