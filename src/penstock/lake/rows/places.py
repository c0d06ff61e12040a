"""Which rows a statement touches: their places, on the driver up to a limit.

One query tells them all. Collected at once, they leave nothing for a further job of Spark; beyond
the limit they stay with Spark, which then counts them by file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.lake.candidate.state import live_rows
from penstock.lake.limits import Limits
from penstock.lake.reading.deleted.places import Places
from penstock.lake.reading.scan import FILE, POSITION, ROW_ID, Scan
from penstock.lake.rows.deletes import Positions, by_file

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

NUMBER = "_penstock_number"


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """Rows of a table, each once: of files by place, inlined ones by id.

    ``places`` has FILE and POSITION: a mapping where the driver has them. ``asked`` counts the rows
    that were asked for, with repetitions.
    """

    places: DataFrame | Positions = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    inlined: tuple[int, ...] = ()
    asked: int = 0
    persisted: DataFrame | None = None  # what is to be released

    @property
    def total(self) -> int:
        return sum(self.counts.values()) + len(self.inlined)

    def release(self) -> None:
        if self.persisted is not None:
            self.persisted.unpersist()


def find(rows: DataFrame, source: Scan, limits: Limits, *, once: bool = False) -> RowPlaces:
    """The rows of ``rows`` by FILE, POSITION and ROW_ID, which are of ``source``.

    ``once`` says that each row of it comes once at most.
    """
    most = limits.unbounded_places
    numbers = Places.by_key(source.files.files, source.keys(), limits.numbered_files)
    picked = rows.select(FILE, POSITION, ROW_ID)
    if numbers is None:
        places = picked.limit(most + 1).toArrow()
        return by_name(places) if places.num_rows <= most else _by_spark(picked)
    # The row's id is asked for only where something may have no other place: it is not read then.
    beside = [] if source.files.inlined is None else [ROW_ID]
    numbered = rows.select(numbers.named_column(FILE, POSITION).alias(NUMBER), *beside)
    if once and _bounded(source, limits):
        return by_number(numbers, numbered.toArrow(), NUMBER)
    places = numbered.limit(most + 1).toArrow()
    return by_number(numbers, places, NUMBER) if places.num_rows <= most else _by_spark(picked)


def _bounded(source: Scan, limits: Limits) -> bool:
    """Whether all places may be collected, and Spark has nothing to do with them afterwards."""
    files = source.files.files
    return live_rows(files) <= limits.places and not any("://" in file.path for file in files)


def by_number(numbers: Places, places: pa.Table, column: str) -> RowPlaces:
    """The rows that were collected by their numbers, those of no file by ROW_ID."""
    import pyarrow.compute as pc

    of_files = places[column]
    inlined: tuple[int, ...] = ()
    if of_files.null_count:
        inlined = _ids(places.filter(pc.is_null(of_files)))
        of_files = of_files.drop_null()
    positions = numbers.by_file(of_files)
    counts = {key: len(one) for key, one in positions.items()}
    return RowPlaces(positions, counts, inlined, asked=places.num_rows)


def by_name(places: pa.Table) -> RowPlaces:
    """The rows of FILE, POSITION and ROW_ID that were collected."""
    import pyarrow.compute as pc

    of_files = places
    inlined: tuple[int, ...] = ()
    if places[FILE].null_count:
        inlined = _ids(places.filter(pc.is_null(places[FILE])))
        of_files = places.filter(pc.is_valid(places[FILE]))
    positions = by_file(of_files)
    counts = {key: len(one) for key, one in positions.items()}
    return RowPlaces(positions, counts, inlined, asked=places.num_rows)


def _by_spark(picked: DataFrame) -> RowPlaces:
    from pyspark.sql import functions as fn

    persisted = picked.persist()
    try:
        of_files = persisted.where(fn.col(FILE).isNotNull()).select(FILE, POSITION)
        sums = of_files.groupBy(FILE).agg(
            fn.count(fn.lit(1)).alias("n"), fn.count_distinct(POSITION).alias("once")
        )
        rows = sums.collect()
        ids = persisted.where(fn.col(FILE).isNull()).select(ROW_ID).distinct()
        inlined = _ids(ids.toArrow())
        asked = persisted.count()
    except BaseException:
        persisted.unpersist()
        raise
    counts = {row[FILE]: row["once"] for row in rows}
    repeated = any(row["n"] != row["once"] for row in rows)
    places = of_files.dropDuplicates() if repeated else of_files
    return RowPlaces(places, counts, inlined, asked, persisted)


def _ids(places: pa.Table) -> tuple[int, ...]:
    return tuple(sorted(set(places[ROW_ID].to_pylist())))
