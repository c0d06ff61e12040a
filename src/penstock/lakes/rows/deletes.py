"""Rows removed wherever they are: in committed files, in files that the same transaction staged,
and in the catalog itself. Data files that were committed are never rewritten.

Committed files get delete files. Each is cumulative: it holds what the one in force deletes too and
takes its place. Then it tells for each row which snapshot deletes it, with the one that is to come
foreseen as the next; the commit corrects it where another writer was quicker. A data file that
loses its last row ends whole and needs none. The driver writes positions up to a limit, Spark
writes more.

A staged file is rewritten without its rows: a delete file that begins with its data file would
be an update of the row to itself in DuckDB's feed of changes (1.5.5), and the net effect of a
transaction is what its snapshot should tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.lakes.candidate.state import Removed
from penstock.lakes.format.files import ROW_ID_COLUMN, DataFile, DeleteFile, live_rows, sequence
from penstock.lakes.format.files import write as write_deletes
from penstock.lakes.format.naming import new_uuid7
from penstock.lakes.format.schema import EMBEDDED_ROW_ID, OF_DELETES, SNAPSHOT_ID, TableSchema
from penstock.lakes.format.types import FIELD_ID
from penstock.lakes.limits import LIMITS
from penstock.lakes.reading import scan
from penstock.lakes.reading.deleted.frames import Deletes, deleted_positions
from penstock.lakes.reading.deleted.positions import Gone, Whose, load
from penstock.lakes.reading.parquet.footers import describe, list_files, remove_directory
from penstock.lakes.reading.scan import FILE, POSITION, Scan
from penstock.lakes.rows.change import MatchedRows, Positions, collected, frame_of
from penstock.lakes.rows.spark_finder import write_rows
from penstock.lakes.storage import make_directory
from penstock.lakes.writing.spark import Written, publishing_options
from penstock.lazy import pa, pc
from penstock.spark.failures import explained
from penstock.spark.functions import arrow_frame, fn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lakes.candidate.table import CandidateTable

_NUMBER = "_penstock_number"
_SINCE = "_penstock_since"

Numbered = list[tuple[int, DeleteFile]]  # by the place of their data file among `partial`


def remove_rows(table: CandidateTable, source: Scan, found: MatchedRows) -> Removed:
    """Remove these rows of ``source``, whose FILE keys ``found`` has. Nothing is staged by this."""
    if not found.total:
        return Removed()
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
    left = _rewritten(table, source, rest, found) if rest else []
    return replace(
        removed,
        files=(*removed.files, *whole, *rest),
        rows=found.total,
        added=tuple(file for written in left for file in written.files),
        directories=(*removed.directories, *(w.directory for w in left if w.directory)),
        inlined=found.inlined,
    )


def _in_catalog(
    table: CandidateTable, source: Scan, found: MatchedRows, counts: Mapping[str, int]
) -> dict[int, tuple[int, ...]]:
    """Positions by file id that are deleted in the catalog: of each file that loses some rows, as
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


def both(left: Removed, right: Removed) -> Removed:
    """Join two removals, of different files."""
    return Removed(
        files=(*left.files, *right.files),
        deletes={**left.deletes, **right.deletes},
        rows=left.rows + right.rows,
        directories=(*left.directories, *right.directories),
        added=(*left.added, *right.added),
        inlined=(*left.inlined, *right.inlined),
        places={**left.places, **right.places},
    )


def end_whole(table: CandidateTable, source: Scan, files: Sequence[DataFile]) -> Removed:
    """Take away all rows of these files of ``source``.

    A file with deletes in the catalog gets a delete file of all rows that are left: when it ends,
    DuckDB's feed of changes (1.5.5) tells those deletes again.
    """
    deleted = source.files.inlined_deletes
    gone = _inlined_positions(deleted.rows) if deleted is not None else {}
    before = table.candidate.inline.deleted
    odd = [f for f in files if f.id in gone and len(gone[f.id]) > len(before.get(f.id, ()))]
    plain = [f for f in files if f not in odd]
    staged = sum(len(before.get(f.id, ())) for f in plain if f.id is not None)
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

    Files end, but those with at most the inlining limit left lose them in the catalog, as
    DuckDB does it (1.5.5).
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


def _inlined_rows(source: Scan) -> tuple[int, ...]:
    parts = () if source.files.inlined is None else source.files.inlined.parts
    return tuple(id_ for part in parts for id_ in part.rows[ROW_ID_COLUMN].to_pylist())


def _inlined_positions(rows: pa.Table) -> dict[int, list[int]]:
    positions: dict[int, list[int]] = {}
    for row in rows.select(["file_id", "position"]).to_pylist():
        positions.setdefault(row["file_id"], []).append(row["position"])
    return positions


def _left(file: DataFile, inlined: Sequence[int], whose: Whose) -> pa.Int64Array:
    """Positions of the file that nothing deletes."""
    listed = [replace(file, delete=delete, more_deletes=()) for delete in file.deletes]
    gone = [deleted.positions for deleted in load(listed, whose)]
    gone.append(pa.array(inlined, pa.int64()))
    all_ = sequence(file.record_count)
    return all_.filter(pc.invert(pc.is_in(all_, pa.chunked_array(gone))))


def _rewritten(
    table: CandidateTable, source: Scan, files: Sequence[DataFile], found: MatchedRows
) -> list[Written]:
    """Return what is left of staged files; those with row ids of their own apart."""
    by_ids: dict[bool, list[DataFile]] = {}
    for file in files:
        by_ids.setdefault(file.has_row_ids, []).append(file)
    spark = table.context.spark()
    gone = found.places
    if isinstance(gone, Mapping):
        mine = {source.keys().key(file.path) for file in files}
        frame = frame_of(spark, {key: own for key, own in gone.items() if key in mine})
    else:
        frame = gone
    written = []
    for has_ids, some in by_ids.items():
        part = replace(source, files=replace(source.files, files=tuple(some), inlined=None))
        rows = scan.read(spark, part, positions=True)
        own = frame if part.keys() == source.keys() else _with_keys(frame, source, part)
        rows = rows.join(own, [FILE, POSITION], "left_anti")
        written.append(write_rows(table, rows, row_id=EMBEDDED_ROW_ID if has_ids else None))
    return written


def _with_keys(places: DataFrame, source: Scan, part: Scan) -> DataFrame:
    """``places`` by the keys of another scan over some of the files of ``source``."""
    old, new = source.keys(), part.keys()
    paths = [file.path for file in part.files.files]
    names = {
        FILE: pa.array([old.key(path) for path in paths], pa.string()),
        "_penstock_key": pa.array([new.key(path) for path in paths], pa.string()),
    }
    known = arrow_frame(places.sparkSession, pa.table(names))
    joined = places.join(fn.broadcast(known), FILE)
    return joined.select(fn.col("_penstock_key").alias(FILE), POSITION)


def remove(
    spark: SparkSession,
    source: Scan,
    found: DataFrame | Positions,
    counts: Mapping[str, int],
    table_path: str,
    *,
    collect: int = LIMITS.written_places,
) -> Removed:
    """Delete the rows ``found`` (FILE and POSITION, each once) from committed files of ``source``.

    ``counts`` is the number of rows found by FILE; the driver writes up to ``collect`` positions.
    A file with deletes in the catalog never ends whole, as DuckDB has it.
    """
    keys = source.keys()
    files = {keys.key(f.path): f for f in source.files.files}
    hit = {key: files[key] for key in counts}
    assert all(file.id is not None for file in hit.values()), "staged files are in no catalog yet"
    whole = tuple(f for key, f in hit.items() if counts[key] == live_rows([f]))
    partial = [f for key, f in hit.items() if counts[key] < live_rows([f])]
    rows = sum(counts.values())
    if not partial:
        return Removed(whole, {}, rows)
    job = _Job(spark, source, tuple(partial), f"{table_path}{new_uuid7()}")
    total = rows + sum(d.delete_count for f in partial for d in f.deletes)
    on_driver = isinstance(found, Mapping) or total <= collect
    try:
        with explained(table=source.table):
            if on_driver and "://" not in job.directory:
                places = found if isinstance(found, Mapping) else collected(found)
                written = _write_on_driver(job, places)
            else:
                frame = frame_of(spark, found) if isinstance(found, Mapping) else found
                written = _write_by_spark(job, _with_before(job, frame))
        return Removed(whole, _by_data_file(job, written), rows, (job.directory,))
    except BaseException:
        remove_directory(job.directory)
        raise


@dataclass(frozen=True, slots=True)
class _Job:
    """``partial`` are the data files that keep some rows, numbered by their place."""

    spark: SparkSession
    source: Scan
    partial: tuple[DataFile, ...]
    directory: str

    @property
    def snapshot(self) -> int | None:
        """The snapshot that these deletes will most likely be."""
        return None if self.source.snapshot_id is None else self.source.snapshot_id + 1

    def succeeds(self, file: DataFile) -> bool:
        """Return whether its delete file takes another's place: only such tell
        the snapshots apart.
        """
        return _began(file) is not None and self.snapshot is not None


def _began(file: DataFile) -> int | None:
    """Return when its committed deletes began; what this transaction staged has no snapshot yet."""
    return None if file.delete is None else file.delete.begin_snapshot


def _with_before(job: _Job, found: DataFrame) -> DataFrame:
    """FILE, POSITION and since when: the new ones, and those of the delete files in force."""
    now = fn.lit(job.snapshot).cast("long").alias(_SINCE)
    found = found.select(FILE, POSITION, now)
    before = [file for file in job.partial if file.delete is not None]
    if not before:
        return found
    source = job.source
    deletes = Deletes(source.table, before, source.snapshot_id)
    old = deleted_positions(job.spark, deletes, source.keys(), (FILE, POSITION), since=_SINCE)
    return found.unionByName(old)


def _write_on_driver(job: _Job, found: Positions) -> Numbered:
    source, keys = job.source, job.source.keys()
    before = [
        replace(file, delete=delete, more_deletes=())
        for file in job.partial
        for delete in file.deletes
    ]
    gone: dict[str, list[Gone]] = {}
    for old in load(before, Whose(source.table, source.snapshot_id)):
        gone.setdefault(old.file.path, []).append(old)
    written: Numbered = []
    for number, file in enumerate(job.partial):
        new = found[keys.key(file.path)]
        olds = gone.get(file.path, [])
        since = pa.repeat(pa.scalar(job.snapshot, pa.int64()), len(new))
        places = pa.table(
            {
                "pos": pa.chunked_array([new, *(old.positions for old in olds)]),
                SNAPSHOT_ID: pa.chunked_array([since, *(old.since for old in olds)]),
            }
        )
        mine = places.sort_by("pos") if olds else places
        folder = Path(job.directory) / f"{_NUMBER}={number}"
        make_directory(str(folder))
        since = mine[SNAPSHOT_ID] if job.succeeds(file) else None
        path = f"{folder}/deletes.parquet"
        written.append((number, write_deletes(path, file.path, mine["pos"], since)))
    return written


def _write_by_spark(job: _Job, found: DataFrame) -> Numbered:
    """One file of sorted positions per data file, in a directory named by its number."""
    keys = job.source.keys()
    owners = pa.table(
        {
            FILE: pa.array([keys.key(file.path) for file in job.partial], pa.string()),
            _NUMBER: pa.array(range(len(job.partial)), pa.int32()),
            "file_path": pa.array([file.path for file in job.partial], pa.string()),
        }
    )
    joined = found.join(fn.broadcast(arrow_frame(job.spark, owners)), FILE)
    # Spark must not know the columns as never NULL: the format has them optional.
    shown = fn.spark_partition_id() >= 0
    sources = {"file_path": "file_path", "pos": POSITION, SNAPSHOT_ID: _SINCE}
    rows = joined.repartition(_NUMBER).sortWithinPartitions(_NUMBER, POSITION)
    rows = rows.select(
        _NUMBER,
        *(
            fn.when(shown, fn.col(sources[name])).alias(name, metadata={FIELD_ID: number})
            for name, number in OF_DELETES.items()
        ),
    )
    options = publishing_options(job.spark, job.directory)
    rows.write.mode("append").options(**options).partitionBy(_NUMBER).parquet(job.directory)
    written = describe(list_files(job.directory), TableSchema(()))
    numbers = (file.path.rsplit("/", 2)[1].removeprefix(f"{_NUMBER}=") for file in written)
    return [
        (int(number), DeleteFile(file.path, file.record_count, file.size_bytes, file.footer_size))
        for number, file in zip(numbers, written, strict=True)
    ]


def _by_data_file(job: _Job, written: Numbered) -> dict[int, DeleteFile]:
    """The delete files by data file id. AQE never splits one data file's positions."""
    by_id: dict[int, DeleteFile] = {}
    for number, file in written:
        data_file = job.partial[number]
        assert data_file.id is not None, "checked by the caller"
        assert data_file.id not in by_id, "two delete files for one data file"
        began = _began(data_file)
        last = None if began is None else job.snapshot
        by_id[data_file.id] = replace(file, begin_snapshot=began, partial_max=last)
    return by_id
