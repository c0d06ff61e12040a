"""Copy on write: data files that lose some rows are written again without them.

Delta's tables get no delete files: readers of the first protocols know none, and deletion vectors
are an option of penstock.Delta. A file is rewritten batch by batch, on the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from penstock.delta.schema import columns_written_again
from penstock.lake.format.changes import TableChange
from penstock.lake.format.files import DataFile, DeleteFile
from penstock.lake.format.naming import new_uuid7
from penstock.lake.format.schema import TableSchema
from penstock.lake.format.statistics import from_footer
from penstock.lake.reading.deleted.positions import Whose, load
from penstock.lake.storage import open_system, output, remove_file, size_of
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
