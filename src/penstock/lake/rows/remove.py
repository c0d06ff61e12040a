"""Rows taken away wherever they are: in committed files, in files that the same transaction staged,
and in the catalog itself.

Committed files get delete files. A staged file is written anew without its rows: a delete file that
begins with its data file would be an update of the row to itself in DuckDB's feed of changes
(1.5.5), and the net effect of a transaction is what its snapshot should tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.lake.candidate.state import Removed, live_rows
from penstock.lake.format.files import DataFile
from penstock.lake.format.inlined.found import ROW_ID_COLUMN
from penstock.lake.format.types import FIELD_ID, needs_mapping
from penstock.lake.format.values.sequence import sequence
from penstock.lake.reading import scan
from penstock.lake.reading.conversions.align import align, typed
from penstock.lake.reading.conversions.spark_types import quoted
from penstock.lake.reading.deleted.positions import Whose, load
from penstock.lake.reading.parquet.columns import EMBEDDED_ROW_ID, MAPPED_ROW_ID, ROW_ID_FIELD
from penstock.lake.reading.scan import FILE, POSITION
from penstock.lake.rows.assign import not_null
from penstock.lake.rows.deletes import frame_of, remove
from penstock.lake.rows.places import RowPlaces
from penstock.lake.writing.spark import Written, write

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.table import CandidateTable
    from penstock.lake.format.schema import TableSchema


def take_away(table: CandidateTable, source: scan.Scan, found: RowPlaces) -> Removed:
    """Remove these rows of ``source``, whose FILE keys ``found`` has. Nothing is staged by this."""
    keys = source.keys()
    files = {keys.key(f.path): f for f in source.files.files}
    staged = {key: f for key, f in files.items() if f.id is None}
    mine = {key: n for key, n in found.counts.items() if key in staged}
    committed = {key: n for key, n in found.counts.items() if key not in staged}
    places = _in_catalog(table, source, found, committed)
    many = {key: n for key, n in committed.items() if files[key].id not in places}
    removed = Removed()
    if many:
        path = str(table.candidate.path)
        most = table.context.limits.written_places
        removed = remove(table.context.spark(), source, found.places, many, path, collect=most)
    removed = replace(removed, places=places)
    whole = [staged[key] for key, n in mine.items() if n == live_rows([staged[key]])]
    rest = [staged[key] for key, n in mine.items() if n < live_rows([staged[key]])]
    kept = _rewritten(table, source, rest, found) if rest else []
    return replace(
        removed,
        files=(*removed.files, *whole, *rest),
        rows=found.total,
        added=tuple(file for written in kept for file in written.files),
        directories=(*removed.directories, *(w.directory for w in kept if w.directory)),
        inlined=found.inlined,
    )


def _in_catalog(
    table: CandidateTable, source: scan.Scan, found: RowPlaces, counts: Mapping[str, int]
) -> dict[int, tuple[int, ...]]:
    """Positions by file id that are deleted in the catalog: of each file that loses a few rows, as
    DuckDB does it (1.5.5), all of its rows or not.
    """
    limit = table.inline_limit()
    places, keys = found.places, source.keys()
    if not limit or not isinstance(places, Mapping):
        return {}
    keys_by_id = {f.id: keys.key(f.path) for f in source.files.files if f.id is not None}
    return {
        file_id: tuple(places[key].to_pylist())
        for file_id, key in keys_by_id.items()
        if 0 < counts.get(key, 0) <= limit
    }


def both(one: Removed, other: Removed) -> Removed:
    """What two removals of different files take away."""
    return Removed(
        files=(*one.files, *other.files),
        deletes={**one.deletes, **other.deletes},
        rows=one.rows + other.rows,
        directories=(*one.directories, *other.directories),
        added=(*one.added, *other.added),
        inlined=(*one.inlined, *other.inlined),
        places={**one.places, **other.places},
    )


def end_whole(table: CandidateTable, source: scan.Scan, files: Sequence[DataFile]) -> Removed:
    """Take away all rows of these files of ``source``.

    A file with deletes in the catalog gets a delete file of all rows that are left: when it ends,
    DuckDB's feed of changes (1.5.5) tells those deletes again.
    """
    deleted = source.files.inlined_deletes
    gone = _inlined_positions(deleted.rows) if deleted is not None else {}
    kept = table.candidate.inline.deleted
    odd = [f for f in files if f.id in gone and len(gone[f.id]) > len(kept.get(f.id, ()))]
    plain = [f for f in files if f not in odd]
    staged = sum(len(kept.get(f.id, ())) for f in plain if f.id is not None)
    removed = Removed(files=tuple(plain), rows=live_rows(plain) - staged)
    if not odd:
        return removed
    keys, whose = source.keys(), Whose(source.table, source.snapshot_id)
    left = {keys.key(f.path): _left(f, gone[f.id], whose) for f in odd if f.id is not None}
    left = {key: positions for key, positions in left.items() if len(positions)}
    counts = {key: len(positions) for key, positions in left.items()}
    path = str(table.candidate.path)
    return both(removed, remove(table.context.spark(), source, left, counts, path))


def take_all(table: CandidateTable) -> Removed:
    """Take away all rows of the candidate state. Reads no data."""
    source = table.scan_all()
    removed = end_whole(table, source, source.files.files)
    inlined = _inlined_rows(source)
    return replace(removed, rows=removed.rows + len(inlined), inlined=inlined)


def delete_all(table: CandidateTable) -> Removed:
    """Delete all rows of the candidate state, without Spark where the catalog tells them.

    Files end, but those with few rows left lose them in the catalog, as DuckDB does it (1.5.5).
    """
    source, limit = table.scan_all(), table.inline_limit()
    whose = Whose(source.table, source.snapshot_id)
    deleted = source.files.inlined_deletes
    gone = _inlined_positions(deleted.rows) if deleted is not None else {}
    places: dict[int, tuple[int, ...]] = {}
    rest: list[DataFile] = []
    for file in source.files.files:
        before = () if file.id is None else gone.get(file.id, ())
        left = live_rows([file]) - len(before)
        if file.id is None or left > limit:
            rest.append(file)
        elif left:
            places[file.id] = tuple(_left(file, before, whose).to_pylist())
    inlined = _inlined_rows(source)
    small = Removed(places=places, rows=sum(map(len, places.values())) + len(inlined))
    return both(end_whole(table, source, rest), replace(small, inlined=inlined))


def _inlined_rows(source: scan.Scan) -> tuple[int, ...]:
    parts = () if source.files.inlined is None else source.files.inlined.parts
    return tuple(id_ for part in parts for id_ in part.rows[ROW_ID_COLUMN].to_pylist())


def _inlined_positions(rows: pa.Table) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row in rows.select(["file_id", "position"]).to_pylist():
        found.setdefault(row["file_id"], []).append(row["position"])
    return found


def _left(file: DataFile, inlined: Sequence[int], whose: Whose) -> pa.Int64Array:
    """Positions of the file that nothing deletes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    listed = [replace(file, delete=delete, more_deletes=()) for delete in file.deletes]
    gone = [one.positions for one in load(listed, whose)]
    gone.append(pa.array(inlined, pa.int64()))
    all_ = sequence(file.record_count)
    return all_.filter(pc.invert(pc.is_in(all_, pa.chunked_array(gone))))


def _rewritten(
    table: CandidateTable, source: scan.Scan, files: Sequence[DataFile], found: RowPlaces
) -> list[Written]:
    """What is left of staged files; those with row ids of their own apart."""
    by_ids: dict[bool, list[DataFile]] = {}
    for file in files:
        by_ids.setdefault(file.has_row_ids, []).append(file)
    spark = table.context.spark()
    gone = found.places
    if isinstance(gone, Mapping):
        mine = {source.keys().key(file.path) for file in files}
        frame = frame_of(spark, {key: one for key, one in gone.items() if key in mine})
    else:
        frame = gone
    written = []
    for has_ids, some in by_ids.items():
        one = replace(source, files=replace(source.files, files=tuple(some), inlined=None))
        rows = scan.read(spark, one, positions=True)
        own = frame if one.keys() == source.keys() else _with_keys(frame, source, one)
        rows = rows.join(own, [FILE, POSITION], "left_anti")
        written.append(write_rows(table, rows, row_id=EMBEDDED_ROW_ID if has_ids else None))
    return written


def _with_keys(places: DataFrame, source: scan.Scan, one: scan.Scan) -> DataFrame:
    """``places`` by the keys of another scan over some of the files of ``source``."""
    import pyarrow as pa
    from pyspark.sql import functions as fn

    old, new = source.keys(), one.keys()
    paths = [file.path for file in one.files.files]
    names = {
        FILE: pa.array([old.key(path) for path in paths], pa.string()),
        "_penstock_key": pa.array([new.key(path) for path in paths], pa.string()),
    }
    known = places.sparkSession.createDataFrame(pa.table(names))
    joined = places.join(fn.broadcast(known), FILE)
    return joined.select(fn.col("_penstock_key").alias(FILE), POSITION)


def write_rows(table: CandidateTable, rows: DataFrame, *, row_id: str | None) -> Written:
    """Write rows of the table, under the ids that column ``row_id`` has where it is given."""
    names = [name for name in rows.columns if table.schema.find(name) is not None]
    rows = not_null(typed(rows, table.schema), table.schema, _name(table))
    fitted = align(rows.select(*map(quoted, names)), table.schema, table=_name(table))
    if row_id is None:
        return write(rows, fitted, table.target(None))
    written = write(rows, [*fitted, row_id_column(row_id, table.schema)], table.target(None))
    return replace(written, files=tuple(replace(f, has_row_ids=True) for f in written.files))


def has_fresh(source: scan.Scan) -> bool:
    """Whether some rows were written by this transaction itself and have no id yet."""
    parts = () if source.files.inlined is None else source.files.inlined.parts
    return any(f.id is None and not f.has_row_ids for f in source.files.files) or any(
        id_ < 0 for part in parts for id_ in part.rows[ROW_ID_COLUMN].to_pylist()
    )


def row_id_column(name: str, schema: TableSchema) -> SparkColumn:
    """The column of embedded row ids as the format has it."""
    from pyspark.sql import functions as fn

    stored = MAPPED_ROW_ID if needs_mapping(schema) else EMBEDDED_ROW_ID
    return fn.col(name).alias(stored, metadata={FIELD_ID: ROW_ID_FIELD})


def _name(table: CandidateTable) -> str:
    return table.candidate.qualified_name
