"""New values of rows by Spark: assigned by an UPDATE or MERGE, in the types that the table has for
them, checked, and written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import ColumnNotFound, SchemaMismatch
from penstock.lake.format.naming import fold
from penstock.lake.format.schema import (
    EMBEDDED_ROW_ID,
    MAPPED_ROW_ID,
    ROW_ID_FIELD,
    Column,
    TableSchema,
)
from penstock.lake.format.types import FIELD_ID, needs_mapping
from penstock.lake.reading import scan
from penstock.lake.reading.conversions.align import align, typed
from penstock.lake.reading.conversions.casts import stored
from penstock.lake.reading.scan import ROW_ID, Scan
from penstock.lake.rows.change import Clause, MatchedRows
from penstock.lake.writing.spark import Written, write
from penstock.spark.functions import expr, fn
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.table import CandidateTable

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
