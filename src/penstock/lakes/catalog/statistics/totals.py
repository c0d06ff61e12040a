"""A table's statistics as a whole, kept up to date as files are added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, Executable, bindparam, false, select

from penstock.lakes.catalog.commit_context import CommitContext, Target, Totals
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.faults import check_column
from penstock.lakes.format.files import DataFile
from penstock.lakes.format.statistics import TableColumnStats, merge


def columns_without_nulls(connection: Connection, table_id: int) -> set[int]:
    """The columns that are known to have no NULL in any row the table ever had."""
    c = t.table_column_stats.c
    query = select(c.column_id).where(c.table_id == table_id, c.contains_null == false())
    return set(connection.execute(query).scalars())


def new_row_ids(file: DataFile) -> int:
    """Return how many row ids the rows of a staged file still need."""
    return file.record_count if file.row_id_start is None else 0


def of(context: CommitContext, table_id: int) -> Totals:
    """The table's statistics as changed by the commit so far; read once, in one query."""
    if table_id not in context.totals:
        context.totals[table_id] = _load(context, table_id)
    return context.totals[table_id]


def _load(context: CommitContext, table_id: int) -> Totals:
    return from_rows(context.connection.execute(_QUERY, {"table": table_id}).all())


def from_rows(rows: Sequence[Sequence[Any]]) -> Totals:
    """Parse `COLUMNS`: a row for each column with statistics, all NULL without statistics."""
    if not rows or rows[0][0] is None:
        return Totals()
    first = rows[0][1:]
    for name, value in zip(_COUNTED, first, strict=False):
        check_column([value], "ducklake_table_stats", name, optional=name == "file_size_bytes")
    columns = {row[4]: TableColumnStats(*row[4:]) for row in rows if row[4] is not None}
    return Totals(True, first[0] or 0, first[1] or 0, first[2] or 0, columns)


def add(
    context: CommitContext, target: Target, files: Sequence[DataFile], *, row_ids: int | None = None
) -> None:
    """Count new files, or inlined rows as a file of no size, with ``row_ids`` new row ids."""
    totals = of(context, target.id)
    fresh = not totals.exists and not totals.touched
    totals.record_count += sum(file.record_count for file in files)
    totals.next_row_id += sum(map(new_row_ids, files)) if row_ids is None else row_ids
    totals.file_size_bytes += sum(file.size_bytes for file in files)
    totals.touched = True
    by_column = [
        {stat.column_id: stat for stat in file.stats} for file in files if file.record_count
    ]
    for column in target.schema.walk():
        column_id = column.id or 0
        known = totals.columns.get(column_id)
        if column.children or (known is None and not fresh):
            continue  # no row and not fresh: unknown, and must stay so
        merged = merge(column, known, [stats.get(column_id) for stats in by_column])
        if merged is None:
            totals.columns.pop(column_id, None)
            if known is not None and totals.changed.setdefault(column_id, True):
                context.later(_FORGET, [{"of_table": target.id, "of_column_id": column_id}])
        elif merged != known:
            totals.columns[column_id] = merged
            totals.changed.setdefault(column_id, known is not None)


def grow(context: CommitContext, table_id: int, size: int) -> None:
    """Count the bytes of files whose rows were counted before."""
    totals = of(context, table_id)
    totals.file_size_bytes += size
    totals.touched = True


def write(context: CommitContext) -> None:
    """Queue the statistics to be written at the end of the commit."""
    for table_id, totals in context.totals.items():
        if not totals.touched:
            continue
        counts = {
            "record_count": totals.record_count,
            "next_row_id": totals.next_row_id,
            "file_size_bytes": totals.file_size_bytes,
        }
        if totals.exists:
            context.later(_COUNT, [{"of_table": table_id, **counts}])
        else:
            context.insert(t.table_stats, [{"table_id": table_id, **counts}])
        changed = [
            (column_id, totals.columns[column_id])
            for column_id in totals.changed
            if column_id in totals.columns
        ]
        old = [stats for key, stats in changed if totals.changed[key]]
        new = [stats for key, stats in changed if not totals.changed[key]]
        context.later(_BOUND, [_key(table_id, stats) | _bounds(stats) for stats in old])
        context.insert(
            t.table_column_stats,
            [
                {"table_id": table_id, "column_id": stats.column_id} | _bounds(stats)
                for stats in new
            ],
        )


def _key(table_id: int, stats: TableColumnStats) -> dict[str, Any]:
    return {"of_table": table_id, "of_column_id": stats.column_id}


def _bounds(stats: TableColumnStats) -> dict[str, Any]:
    return {
        "contains_null": stats.contains_null,
        "contains_nan": stats.contains_nan,
        "min_value": stats.min_value,
        "max_value": stats.max_value,
    }


def _bound(*names: str) -> dict[str, BindParameter[Any]]:
    return {name: bindparam(name) for name in names}


def _queries() -> tuple[Executable, Executable, Executable, Executable]:
    s, c = t.table_stats.c, t.table_column_stats.c
    read = (
        select(*COLUMNS)
        .join_from(t.table_stats, t.table_column_stats, c.table_id == s.table_id, isouter=True)
        .where(s.table_id == bindparam("table"))
    )
    count = t.table_stats.update().where(s.table_id == bindparam("of_table"))
    count = count.values(_bound("record_count", "next_row_id", "file_size_bytes"))
    of_column = (c.table_id == bindparam("of_table"), c.column_id == bindparam("of_column_id"))
    bound = t.table_column_stats.update().where(*of_column)
    bound = bound.values(_bound("contains_null", "contains_nan", "min_value", "max_value"))
    return read, count, bound, t.table_column_stats.delete().where(*of_column)


_COUNTED = ("record_count", "next_row_id", "file_size_bytes")
_S, _C = t.table_stats.c, t.table_column_stats.c
COLUMNS = (
    *(_S.table_id, _S.record_count, _S.next_row_id, _S.file_size_bytes),
    *(_C.column_id, _C.contains_null, _C.contains_nan, _C.min_value, _C.max_value),
)

# Built once: with few rows to write, building a statement costs more than running it.
_QUERY, _COUNT, _BOUND, _FORGET = _queries()
