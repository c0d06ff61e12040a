"""Rows that a change is about, found by Spark: by their places, or with their new values too.

Collected at once, places leave nothing for a further job of Spark; beyond a limit they stay with
Spark, which then counts them by file. New values are collected where the driver may write them: the
least that a job of Spark costs is more than writing some thousand rows takes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.errors import ColumnNotFound, SchemaMismatch, UnsupportedFeature
from penstock.lakes.format.files import live_rows
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import (
    EMBEDDED_ROW_ID,
    MAPPED_ROW_ID,
    ROW_ID_FIELD,
    Column,
    TableSchema,
)
from penstock.lakes.format.types import FIELD_ID, needs_mapping
from penstock.lakes.limits import Limits
from penstock.lakes.reading import scan
from penstock.lakes.reading.conversions.align import align, typed
from penstock.lakes.reading.conversions.casts import stored
from penstock.lakes.reading.deleted.positions import RowAddresses
from penstock.lakes.reading.hidden import FILENAME, ROWID, columns, refusals
from penstock.lakes.reading.scan import FILE, POSITION, ROW_ID, Scan
from penstock.lakes.rows.change import Clause, MatchedRows
from penstock.lakes.rows.change import row_ids as ids_of
from penstock.lakes.rows.route import Facts, collected_rows
from penstock.lakes.writing.spark import Written, write
from penstock.lazy import pa, pc
from penstock.spark.functions import expr, fn
from penstock.sql.identifiers import quoted
from penstock.sql.predicate import of_where
from penstock.sql.text import as_expression

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lakes.candidate.table import CandidateTable
    from penstock.sql.text import Predicate


Path = tuple[str, ...]  # names of fields inside a struct; none for the whole
_SHOWN = 8  # columns of a sample


def assigned(rows: DataFrame, clause: Clause, table: CandidateTable) -> DataFrame:
    """``rows`` with the new values of a clause, all of which see the old ones.

    Raises ColumnNotFound, and SchemaMismatch for a column that is assigned twice.
    """
    columns = expressions(clause.values or {}, table.schema, table.candidate.qualified_name)
    return rows.withColumns(stored(rows, columns, table.schema, rounds=clause.rounds))


def expressions(
    values: Mapping[str, object], schema: TableSchema, table: str, alias: str | None = None
) -> dict[str, SparkColumn]:
    """The new value of each column that ``values`` names, ``struct.field`` included.

    ``alias`` is what the table's rows are called where struct fields keep their other values.
    """
    by_column: dict[str, dict[Path, SparkColumn]] = {}
    for name, value in values.items():
        column, path = _column(name, schema, table)
        news = by_column.setdefault(column.name, {})
        if overlaps(path, news):
            raise SchemaMismatch(
                f"column {column.name!r} of {table} is given two values",
                hint="assign each column once",
                data={"table": table, "column": column.name},
            )
        news[path] = _value(value)
    columns: dict[str, SparkColumn] = {}
    for name, news in by_column.items():
        old = fn.col(f"{quoted(alias)}.{quoted(name)}" if alias else quoted(name))
        known = schema.find(name)
        assert known is not None, "found above"
        columns[name] = news[()] if () in news else with_fields(old, known, news)
    return columns


def overlaps(path: Path, others: Iterable[Path]) -> bool:
    """Return whether one of the other paths is this one, inside it or around it."""
    return any(path[: len(other)] == other[: len(path)] for other in others)


def with_fields(old: SparkColumn, column: Column, news: Mapping[Path, SparkColumn]) -> SparkColumn:
    """The struct ``old`` with new values of the fields at these paths, others as they were.

    Where it is NULL it becomes a struct: a value that is assigned is never lost.
    """
    fields: list[SparkColumn] = []
    for child in column.children:
        value = old.getField(child.name)
        inside = {path[1:]: new for path, new in news.items() if path[0] == child.name}
        if inside:
            value = inside[()] if () in inside else with_fields(value, child, inside)
        fields.append(value.alias(child.name))
    return fn.struct(*fields)


def fields_at(column: Column, names: Sequence[str]) -> Path | None:
    """The names of the fields inside of a struct, as the table has them; ``None`` where it has no
    such field.
    """
    path: list[str] = []
    for name in names:
        inside = column.children if column.type == "struct" else ()
        field = next((child for child in inside if fold(child.name) == fold(name)), None)
        if field is None:
            return None
        path.append(field.name)
        column = field
    return tuple(path)


def _column(name: str, schema: TableSchema, table: str) -> tuple[Column, Path]:
    whole = schema.find(name)
    if whole is not None:
        return whole, ()
    first, *rest = name.split(".")
    column = schema.find(first)
    path = None if column is None else fields_at(column, rest)
    if column is None or not path:
        raise ColumnNotFound(
            f"{table} has no column {name!r}",
            hint=f"its columns are {', '.join(schema.names)}",
            data={"table": table, "column": name},
        )
    return column, path


def _value(value: object) -> SparkColumn:
    from pyspark.sql import Column as Expression

    if isinstance(value, str):
        return expr(value)
    return value if isinstance(value, Expression) else fn.lit(value)


def not_null(rows: DataFrame, schema: TableSchema, table: str) -> DataFrame:
    """``rows`` that fail, when they are written, at a NULL in a column that takes none.

    The message names the column and shows the row.
    """
    names = {fold(name): name for name in rows.columns}
    shown = [quoted(names[fold(c.name)]) for c in schema.columns if fold(c.name) in names]
    sample = fn.to_json(fn.struct(*shown[:_SHOWN]), {"ignoreNullFields": "false"})
    checked: dict[str, SparkColumn] = {}
    for column in schema.columns:
        if column.nullable or fold(column.name) not in names:
            continue
        said = fn.lit(f"column {column.name} of {table} is NOT NULL, and it is NULL in ")
        old = fn.col(quoted(names[fold(column.name)]))
        checked[names[fold(column.name)]] = fn.coalesce(
            old, fn.raise_error(fn.concat(said, sample))
        )
    return rows.withColumns(checked) if checked else rows


def write_rows(table: CandidateTable, rows: DataFrame, *, row_id: str | None) -> Written:
    """Write rows of the table, under the ids that column ``row_id`` has where it is set."""
    name, schema = table.candidate.qualified_name, table.schema
    names = [column for column in rows.columns if schema.find(column) is not None]
    rows = not_null(typed(rows, schema), schema, name)
    fitted = align(rows.select(*map(quoted, names)), schema, table=name)
    if row_id is None:
        return write(rows, fitted, table.target(None))
    return with_row_ids(write(rows, [*fitted, row_id_column(row_id, schema)], table.target(None)))


def with_row_ids(written: Written) -> Written:
    """Return what was written with a column of row ids."""
    return replace(written, files=tuple(replace(f, has_row_ids=True) for f in written.files))


def row_id_column(name: str, schema: TableSchema) -> SparkColumn:
    """The column of embedded row ids as the format has it."""
    embedded = MAPPED_ROW_ID if needs_mapping(schema) else EMBEDDED_ROW_ID
    return fn.col(name).alias(embedded, metadata={FIELD_ID: ROW_ID_FIELD})


def rewrite(
    table: CandidateTable, source: Scan, rows: DataFrame, found: MatchedRows
) -> list[Written]:
    """Write updated rows, which are those found: under the ids they have, and those that the
    transaction itself made without.
    """
    known = rows.withColumnRenamed(ROW_ID, EMBEDDED_ROW_ID)
    known = scan.with_row_ids(table.context.spark(), source, known)
    id_ = fn.col(ROW_ID)
    keys = source.keys()
    fresh = {keys.key(f.path) for f in source.files.files if f.id is None and not f.has_row_ids}
    if all(row >= 0 for row in found.inlined) and fresh.isdisjoint(found.counts):
        return [write_rows(table, known, row_id=ROW_ID)]
    is_old = id_.isNotNull() & (id_ >= 0)
    old = write_rows(table, known.where(is_old), row_id=ROW_ID)
    return [old, write_rows(table, known.where(~fn.coalesce(is_old, fn.lit(False))), row_id=None)]


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
