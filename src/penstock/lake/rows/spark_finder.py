"""Rows that a change is about, found by Spark: by their places, or with their new values too.

Collected at once, places leave nothing for a further job of Spark; beyond a limit they stay with
Spark, which then counts them by file. New values are collected where the driver may write them: the
least that a job of Spark costs is more than writing some thousand rows takes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import UnsupportedFeature
from penstock.lake.format.files import live_rows
from penstock.lake.format.schema import EMBEDDED_ROW_ID
from penstock.lake.limits import Limits
from penstock.lake.reading import scan
from penstock.lake.reading.conversions.align import align, typed
from penstock.lake.reading.deleted.row_addresses import RowAddresses
from penstock.lake.reading.hidden import FILENAME, ROWID, columns, refusals
from penstock.lake.reading.scan import FILE, POSITION, ROW_ID, Scan
from penstock.lake.rows.change import MatchedRows
from penstock.lake.rows.change import row_ids as ids_of
from penstock.lake.rows.new_rows import not_null
from penstock.lake.rows.route import Facts, collected_rows
from penstock.lazy import pa, pc
from penstock.spark.functions import fn
from penstock.sql.identifiers import quoted
from penstock.sql.predicate import of_where
from penstock.sql.text import as_expression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.table import CandidateTable
    from penstock.sql.text import Predicate

_NUMBER = "_penstock_number"
_ADDRESS = (FILE, POSITION, ROW_ID)


@dataclass(frozen=True, slots=True)
class AddressedRows:
    """Rows of a table; the columns ``address`` tell each from all others. ``files`` are those that
    the rows may be in, None for all.
    """

    df: DataFrame
    files: Predicate | None = None
    address: tuple[str, ...] = _ADDRESS


def addressed_rows(table: CandidateTable, where: str | None) -> AddressedRows:
    """The rows for which ``where`` holds, a condition in Spark's SQL."""
    every = table.scan_all()
    if where is None:
        return AddressedRows(rows_of(table, every))
    files: Predicate | None = of_where(as_expression(where), zone="UTC", args={})
    source = table.scan_all(files)
    if source.keys() != every.keys():  # files would be called by other names
        files, source = None, every
    return AddressedRows(rows_of(table, source).where(where), files)


def target_rows(table: CandidateTable) -> DataFrame:
    """`rows_of` all of the candidate state."""
    return rows_of(table, table.scan_all())


def rows_of(table: CandidateTable, source: Scan, hidden: Collection[str] = ()) -> DataFrame:
    """The rows of a scan with what tells them apart: FILE and POSITION of those in files (the
    transaction's own included), ROW_ID where the row has an id embedded; a row in the catalog has
    only that.

    The ``hidden`` columns come too, which costs a join.

    Raises UnsupportedFeature where the table has no such column now.
    """
    spark = table.context.spark()
    if not hidden:
        rows = scan.read(spark, source, positions=True)
        return rows.withColumnRenamed(EMBEDDED_ROW_ID, ROW_ID)
    for problem in refused(hidden, table).values():
        raise problem
    rows = scan.read(spark, source, positions=True, row_ids=True, paths=FILENAME in hidden)
    embedded = fn.col(EMBEDDED_ROW_ID).alias(ROW_ID)
    own = map(quoted, table.schema.names)
    return rows.select(*own, FILE, POSITION, *columns(hidden), embedded)


def refused(names: Collection[str], table: CandidateTable) -> dict[str, UnsupportedFeature]:
    """Explain why hidden columns of the candidate state cannot be read, those that cannot."""
    changed = None if table.candidate.change() is None else table.candidate.qualified_name
    return refusals(set(names) - {ROWID}, changed)


def find(rows: DataFrame, source: Scan, limits: Limits, *, once: bool = False) -> MatchedRows:
    """The rows of ``rows`` by FILE, POSITION and ROW_ID, which are of ``source``.

    ``once`` says that each row of it comes once at most.
    """
    most = limits.unbounded_places
    numbers = RowAddresses.by_key(source.files.files, source.keys(), limits.numbered_files)
    picked = rows.select(FILE, POSITION, ROW_ID)
    if numbers is None:
        places = picked.limit(most + 1).toArrow()
        return MatchedRows.named(places) if places.num_rows <= most else _counted(picked)
    # The row's id is asked for only where something may have no other place: it is not read then.
    beside = [] if source.files.inlined is None else [ROW_ID]
    numbered = rows.select(numbers.named_column(FILE, POSITION).alias(_NUMBER), *beside)
    if once and _bounded(source, limits):
        return MatchedRows.numbered(numbers, numbered.toArrow(), _NUMBER)
    places = numbered.limit(most + 1).toArrow()
    if places.num_rows > most:
        return _counted(picked)
    return MatchedRows.numbered(numbers, places, _NUMBER)


def _bounded(source: Scan, limits: Limits) -> bool:
    """Return whether all places may be collected, and Spark has nothing to do
    with them afterwards.
    """
    files = source.files.files
    return live_rows(files) <= limits.places and not any("://" in file.path for file in files)


def _counted(picked: DataFrame) -> MatchedRows:
    """The rows by places that stay with Spark."""
    persisted = picked.persist()
    try:
        of_files = persisted.where(fn.col(FILE).isNotNull()).select(FILE, POSITION)
        sums = of_files.groupBy(FILE).agg(
            fn.count(fn.lit(1)).alias("n"), fn.count_distinct(POSITION).alias("once")
        )
        rows = sums.collect()
        ids = persisted.where(fn.col(FILE).isNull()).select(ROW_ID).distinct()
        inlined = tuple(sorted(ids.toArrow()[ROW_ID].to_pylist()))
        asked = persisted.count()
    except BaseException:
        persisted.unpersist()
        raise
    counts = {row[FILE]: row["once"] for row in rows}
    repeated = any(row["n"] != row["once"] for row in rows)
    places = of_files.dropDuplicates() if repeated else of_files
    return MatchedRows(places, counts, inlined, asked, persisted=persisted)


def find_updated(
    table: CandidateTable, source: Scan, rows: DataFrame, facts: Facts, *, once: bool = False
) -> MatchedRows | None:
    """The rows of ``rows``, which has their new values, with these; ``once`` says that none is of a
    row that another is of.

    ``None`` where they are too many, or of types that only Spark writes.
    """
    schema, name, limits = table.schema, table.candidate.qualified_name, table.context.limits
    most = collected_rows(facts, limits)
    if most == 0:
        return None
    new = not_null(typed(rows, schema), schema, name)
    names = [column for column in new.columns if schema.find(column) is not None]
    fitted = align(new.select(*map(quoted, names)), schema, table=name)
    numbers = RowAddresses.by_key(source.files.files, source.keys(), limits.numbered_files)
    place = (
        [FILE, POSITION]
        if numbers is None
        else [numbers.named_column(FILE, POSITION).alias(_NUMBER)]
    )
    picked = new.select(*fitted, *place, ROW_ID)
    # A small table alone bounds nothing: each of its rows may match all rows of a large one.
    is_bounded = once and not facts.inlined and facts.live_rows <= most
    if not is_bounded:
        picked = picked.limit(most + 1)
    collected = picked.toArrow()
    if collected.num_rows > most:
        return None
    values = collected.select(list(schema.names))
    if numbers is None:
        return with_values(source, values, collected)
    places, embedded = collected[_NUMBER], collected[ROW_ID]
    of_files = numbers.files(places), numbers.positions(places)
    ids = ids_of(source, numbers.keys, *of_files, embedded)
    return MatchedRows.numbered(numbers, collected, _NUMBER).with_values(values, ids)


def with_values(source: Scan, values: pa.Table, places: pa.Table) -> MatchedRows:
    """Rows of FILE, POSITION and ROW_ID in ``places``, which get these values."""
    codes = pc.dictionary_encode(places[FILE]).combine_chunks()
    files, keys = pa.chunked_array([codes.indices]), codes.dictionary.to_pylist()
    ids = ids_of(source, keys, files, places[POSITION], places[ROW_ID])
    return MatchedRows.named(places).with_values(values, ids)
