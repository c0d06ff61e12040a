"""Hand rows from the finders of a change to the stager: the affected rows, by their places, and
where the driver has them the values that they get.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.lake.format.files import DataFile
from penstock.lake.reading.deleted.positions import combined
from penstock.lake.reading.deleted.row_addresses import RowAddresses
from penstock.lake.reading.scan import FILE, POSITION, ROW_ID, Scan
from penstock.lazy import pa, pc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Positions = Mapping[str, "pa.Int64Array"]  # by FILE: each once, in order


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """Rows of a table, each once: of files by place, inlined ones by id.

    ``places`` has FILE and POSITION: a mapping where the driver has them. ``asked`` counts the rows
    that were asked for, with repetitions. ``values`` has all columns of rows that are updated, in
    any order, and ``ids`` their row ids, NULL or negative of rows that this transaction wrote.
    """

    places: DataFrame | Positions = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    inlined: tuple[int, ...] = ()
    asked: int = 0
    values: pa.Table | None = None
    ids: pa.ChunkedArray | None = None
    persisted: DataFrame | None = None  # what is to be released

    @property
    def total(self) -> int:
        return sum(self.counts.values()) + len(self.inlined)

    def release(self) -> None:
        if self.persisted is not None:
            self.persisted.unpersist()

    @classmethod
    def of(
        cls, positions: Positions, inlined: tuple[int, ...] = (), asked: int | None = None
    ) -> MatchedRows:
        counts = {key: len(own) for key, own in positions.items()}
        known = sum(counts.values()) + len(inlined)
        return cls(positions, counts, inlined, known if asked is None else asked)

    @classmethod
    def numbered(cls, numbers: RowAddresses, rows: pa.Table, column: str) -> MatchedRows:
        """The rows that were collected by their numbers, those of no file by ROW_ID."""
        of_files = rows[column].drop_null()
        return cls.of(numbers.by_file(of_files), _inlined(rows, column), rows.num_rows)

    @classmethod
    def named(cls, rows: pa.Table) -> MatchedRows:
        """The rows of FILE, POSITION and ROW_ID that were collected."""
        inlined, places = _inlined(rows, FILE), rows.select([FILE, POSITION])
        of_files = places.filter(pc.is_valid(places[FILE])) if inlined else places
        return cls.of(by_file(of_files), inlined, rows.num_rows)

    @classmethod
    def of_files(cls, source: Scan, parts: Sequence[FileRows]) -> MatchedRows:
        """Rows of ``source`` that were found file by file."""
        keys = source.keys()
        places: dict[str, list[pa.Int64Array]] = {}
        for part in parts:
            if len(part.positions):
                places.setdefault(keys.key(part.file.path), []).append(part.positions)
        return cls.of({key: pa.concat_arrays(own) for key, own in places.items()})

    def with_inlined(self, ids: Sequence[int]) -> MatchedRows:
        """With these rows of the catalog too, each of them once."""
        inlined = tuple(sorted((*self.inlined, *ids)))
        return replace(self, inlined=inlined, asked=self.asked + len(ids))

    def with_values(self, values: pa.Table, ids: pa.ChunkedArray) -> MatchedRows:
        return replace(self, values=values, ids=ids)


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows of one file, in its order, not deleted before. ``embedded`` are the ids that the file
    has for them; ``values`` their new values; ``matched`` the places of the source's rows that
    match them.
    """

    file: DataFile
    positions: pa.Int64Array
    embedded: pa.Array | None = None
    values: pa.Table | None = None
    matched: pa.Int64Array | None = None

    @property
    def ids(self) -> pa.Int64Array:
        """The row ids; NULL in a file of this transaction that embeds none."""
        counted = pc.add(self.positions, pa.scalar(self.file.row_id_start, pa.int64()))
        return counted if self.embedded is None else pc.coalesce(self.embedded, counted)

    def some(self, which: slice | pa.BooleanArray) -> FileRows:
        """Some of them, by their places here or by a mask. They have no values yet."""

        def pick(column: pa.Array | None) -> pa.Array | None:
            if column is None:
                return None
            return column[which] if isinstance(which, slice) else column.filter(which)

        assert self.values is None, "rows are picked before they get values"
        positions = pick(self.positions)
        return replace(
            self, positions=positions, embedded=pick(self.embedded), matched=pick(self.matched)
        )


def _inlined(rows: pa.Table, place: str) -> tuple[int, ...]:
    """The ids of the rows that are in no file."""
    if not rows[place].null_count:
        return ()
    return tuple(sorted(set(rows.filter(pc.is_null(rows[place]))[ROW_ID].to_pylist())))


def by_file(places: pa.Table) -> dict[str, pa.Int64Array]:
    """The positions by FILE, each once and in order."""
    codes = pc.dictionary_encode(places[FILE]).combine_chunks()
    rows = pa.table({"file": codes.indices, "pos": combined(places[POSITION])})
    rows = rows.sort_by([("file", "ascending"), ("pos", "ascending")]).combine_chunks()
    positions, start = {}, 0
    for run in pc.value_counts(rows["file"]).to_pylist():  # in the order of the rows
        own = combined(rows["pos"].slice(start, run["counts"]))
        start += run["counts"]
        positions[codes.dictionary[run["values"]].as_py()] = _once(own)
    return positions


def _once(ordered: pa.Int64Array) -> pa.Int64Array:
    if len(ordered) < 2:
        return ordered
    news = pc.not_equal(ordered.slice(1), ordered.slice(0, len(ordered) - 1))
    return ordered if pc.all(news).as_py() else pc.unique(ordered)


def collected(places: DataFrame) -> dict[str, pa.Int64Array]:
    """FILE and POSITION, which are not NULL and may repeat, collected."""
    return by_file(places.select(FILE, POSITION).toArrow())


def frame_of(spark: SparkSession, positions: Positions) -> DataFrame:
    """FILE and POSITION as a DataFrame."""
    files = [pa.repeat(pa.scalar(key), len(own)) for key, own in positions.items()]
    table = {
        FILE: pa.chunked_array(files, pa.string()),
        POSITION: pa.chunked_array(list(positions.values()), pa.int64()),
    }
    return spark.createDataFrame(pa.table(table))


def row_ids(
    source: Scan,
    keys: Sequence[str],
    files: pa.ChunkedArray,
    positions: pa.ChunkedArray,
    embedded: pa.ChunkedArray,
) -> pa.ChunkedArray:
    """The id that a row has embedded, else its file's first plus its position; NULL for none.

    ``files`` are places in ``keys``, NULL of inlined rows, whose ids are embedded.
    """
    own = source.keys()
    first = {own.key(file.path): file.row_id_start for file in source.files.files}
    starts = pa.array([first.get(key) for key in keys], pa.int64())
    counted = pc.add(pc.take(starts, files), positions.cast(pa.int64()))
    return pc.coalesce(embedded.cast(pa.int64()), counted)
