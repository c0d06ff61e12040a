"""Positions of rows to delete, written as delete files; the data files are never rewritten.

A delete file is cumulative: it holds what the one in force deletes as well, and takes its place.
Then it tells for each row which snapshot deletes it, with the one that is to come foreseen as the
next; the commit corrects it where another writer was quicker. A data file that loses its last row
ends whole and needs none. The driver writes positions up to a limit, Spark writes more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.lake.candidate.state import Removed, live_rows
from penstock.lake.format.delete_files import FIELD_IDS, SNAPSHOT_ID
from penstock.lake.format.delete_files import write as write_deletes
from penstock.lake.format.files import DataFile, DeleteFile
from penstock.lake.format.naming import new_uuid7
from penstock.lake.format.schema import TableSchema
from penstock.lake.format.types import FIELD_ID
from penstock.lake.limits import LIMITS
from penstock.lake.reading.deleted.frames import Deletes, deleted_positions
from penstock.lake.reading.deleted.positions import Gone, Whose, as_one, load
from penstock.lake.reading.parquet.footers import describe, list_files, remove_directory
from penstock.lake.reading.scan import FILE, POSITION, Scan
from penstock.lake.spark.failures import explained
from penstock.lake.storage import make_directory
from penstock.lake.writing import publishing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NUMBER = "_penstock_number"
_SINCE = "_penstock_since"


Positions = Mapping[str, "pa.Int64Array"]  # by FILE: each once, in order


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
                _write_on_driver(job, found if isinstance(found, Mapping) else collected(found))
            else:
                frame = frame_of(spark, found) if isinstance(found, Mapping) else found
                _write_by_spark(job, _with_before(job, frame))
        return Removed(whole, _described(job), rows, (job.directory,))
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
        """Whether its delete file takes another's place: only such tell the snapshots apart."""
        return _began(file) is not None and self.snapshot is not None


def _began(file: DataFile) -> int | None:
    """When its committed deletes began; one that this transaction staged has no snapshot yet."""
    return None if file.delete is None else file.delete.begin_snapshot


def _with_before(job: _Job, found: DataFrame) -> DataFrame:
    """FILE, POSITION and since when: the new ones, and those of the delete files in force."""
    from pyspark.sql import functions as fn

    now = fn.lit(job.snapshot).cast("long").alias(_SINCE)
    found = found.select(FILE, POSITION, now)
    before = [file for file in job.partial if file.delete is not None]
    if not before:
        return found
    source = job.source
    deletes = Deletes(source.table, before, source.snapshot_id)
    old = deleted_positions(job.spark, deletes, source.keys(), (FILE, POSITION), since=_SINCE)
    return found.unionByName(old)


def collected(found: DataFrame) -> dict[str, pa.Int64Array]:
    """FILE and POSITION, which are not NULL and may repeat, collected."""
    return by_file(found.select(FILE, POSITION).toArrow())


def by_file(places: pa.Table) -> dict[str, pa.Int64Array]:
    """The positions by FILE, each once and in order."""
    codes = pc.dictionary_encode(places[FILE]).combine_chunks()
    rows = pa.table({"file": codes.indices, "pos": as_one(places[POSITION])})
    rows = rows.sort_by([("file", "ascending"), ("pos", "ascending")]).combine_chunks()
    found, start = {}, 0
    for one in pc.value_counts(rows["file"]).to_pylist():  # in the order of the rows
        positions = as_one(rows["pos"].slice(start, one["counts"]))
        start += one["counts"]
        found[codes.dictionary[one["values"]].as_py()] = _once(positions)
    return found


def _once(ordered: pa.Int64Array) -> pa.Int64Array:
    if len(ordered) < 2:
        return ordered
    news = pc.not_equal(ordered.slice(1), ordered.slice(0, len(ordered) - 1))
    return ordered if pc.all(news).as_py() else pc.unique(ordered)


def frame_of(spark: SparkSession, found: Positions) -> DataFrame:
    owners = [pa.repeat(pa.scalar(key), len(one)) for key, one in found.items()]
    table = {
        FILE: pa.chunked_array(owners, pa.string()),
        POSITION: pa.chunked_array(list(found.values()), pa.int64()),
    }
    return spark.createDataFrame(pa.table(table))


def _write_on_driver(job: _Job, found: Positions) -> None:
    source, keys = job.source, job.source.keys()
    before = [
        replace(file, delete=delete, more_deletes=())
        for file in job.partial
        for delete in file.deletes
    ]
    gone: dict[str, list[Gone]] = {}
    for one in load(before, Whose(source.table, source.snapshot_id)):
        gone.setdefault(one.file.path, []).append(one)
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
        write_deletes(f"{folder}/deletes.parquet", file.path, mine["pos"], since)


def _write_by_spark(job: _Job, found: DataFrame) -> None:
    """One file of sorted positions per data file, in a directory named by its number."""
    from pyspark.sql import functions as fn

    keys = job.source.keys()
    owners = pa.table(
        {
            FILE: pa.array([keys.key(file.path) for file in job.partial], pa.string()),
            _NUMBER: pa.array(range(len(job.partial)), pa.int32()),
            "file_path": pa.array([file.path for file in job.partial], pa.string()),
        }
    )
    joined = found.join(fn.broadcast(job.spark.createDataFrame(owners)), FILE)
    # Spark must not know the columns as never NULL: the format has them optional.
    shown = fn.spark_partition_id() >= 0
    sources = {"file_path": "file_path", "pos": POSITION, SNAPSHOT_ID: _SINCE}
    rows = joined.repartition(_NUMBER).sortWithinPartitions(_NUMBER, POSITION)
    rows = rows.select(
        _NUMBER,
        *(
            fn.when(shown, fn.col(sources[name])).alias(name, metadata={FIELD_ID: number})
            for name, number in FIELD_IDS.items()
        ),
    )
    options = publishing.options(job.spark, job.directory)
    rows.write.mode("append").options(**options).partitionBy(_NUMBER).parquet(job.directory)


def _described(job: _Job) -> dict[int, DeleteFile]:
    """The delete files by data file id. AQE never splits one data file's positions."""
    found: dict[int, DeleteFile] = {}
    for file in describe(list_files(job.directory), TableSchema(())):
        number = int(file.path.rsplit("/", 2)[1].removeprefix(f"{_NUMBER}="))
        data_file = job.partial[number]
        assert data_file.id is not None, "checked by the caller"
        assert data_file.id not in found, "two delete files for one data file"
        began = _began(data_file)
        found[data_file.id] = DeleteFile(
            path=file.path,
            delete_count=file.record_count,
            size_bytes=file.size_bytes,
            footer_size=file.footer_size,
            begin_snapshot=began,
            partial_max=None if began is None else job.snapshot,
        )
    return found
