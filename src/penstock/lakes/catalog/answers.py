"""Count a table's rows and find a column's least and greatest values without its files.

Only what is exact. A bound need not be (the format says "does not have to be exact"), so a column
is answered for where its writers' bounds are: no deletes, no values that a bound cuts or rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Boolean, ColumnElement, Connection, FromClause, and_, case, func, or_, select

from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.database.faults import NoNumber, damaged
from penstock.lakes.catalog.inlined import inlined
from penstock.lakes.catalog.reads import visible
from penstock.lakes.catalog.statistics.exclusion import TO_MICROSECONDS
from penstock.lakes.format.files import Table
from penstock.lakes.format.schema import Column
from penstock.lakes.format.values.bounds import INTEGERS, base_type, bound_from_text

# No known writer truncates text shorter than this: the real extension does after 256 bytes.
_CUT = 16


@dataclass(frozen=True, slots=True)
class Totals:
    """``rows`` is ``None`` where only the files know. ``plain``: only files, no deletes."""

    rows: int | None
    files: int
    plain: bool


def totals(connection: Connection, table: Table, snapshot_id: int) -> Totals:
    """The number of rows at a snapshot, by five sums."""
    t = metadata.of(connection)
    f, d = t.data_file.c, t.delete_file.c
    inside = case((or_(f.partial_max > snapshot_id, t.partial_file_info.is_not(None)), 1), else_=0)
    unread = case(
        (or_(f.encryption_key.is_not(None), f.file_format != "parquet", *_damaged(f)), 1), else_=0
    )
    files, rows, odd = connection.execute(
        select(func.count(), func.sum(f.record_count), func.sum(inside) + func.sum(unread)).where(
            f.table_id == table.id, visible(t.data_file, snapshot_id)
        )
    ).one()
    unsure = case((or_(NoNumber(d.begin_snapshot), NoNumber(d.delete_count)), 1), else_=0)
    deletes, over, deleted, no_numbers = connection.execute(
        select(
            *(func.count(), func.count(d.data_file_id.distinct())),
            *(func.sum(d.delete_count), func.sum(unsure)),
        )
        .join_from(t.delete_file, t.data_file, d.data_file_id == f.data_file_id)
        .where(
            d.table_id == table.id,
            visible(t.delete_file, snapshot_id),
            visible(t.data_file, snapshot_id),
        )
    ).one()
    if inlined.load_deletes(connection, table, snapshot_id) is not None:
        return Totals(None, files, False)
    held = inlined.load_rows(connection, table, snapshot_id)
    # A delete file may hold what later snapshots deleted, and the catalog need not say so: the
    # real extension's flush of inlined rows leaves partial_max out.
    last = connection.execute(select(func.max(t.snapshot.c.snapshot_id))).scalar()
    deletes_known = not deletes or (deletes == over and snapshot_id == last)
    sure = not odd and not no_numbers and deletes_known and (rows is not None or not files)
    count = int(rows or 0) - int(deleted or 0) + (0 if held is None else held.count)
    return Totals(count if sure else None, files, sure and not deletes and held is None)


def _damaged(f: Any) -> tuple[ColumnElement[bool], ...]:
    """Rows that no sum may ignore; reading the files names what is wrong with them."""
    return NoNumber(f.begin_snapshot), NoNumber(f.record_count), f.record_count < 0


def extremes(
    connection: Connection, table: Table, column: Column, snapshot_id: int, files: int
) -> tuple[str | None, str | None] | None:
    """The least and the greatest value of a column as text; ``None`` where they are not sure.

    Both are ``None`` of a column without values. ``files`` is how many there are; none of them may
    have deletes.
    """
    exact = _EXACT.get("integer" if column.type in INTEGERS else base_type(column.type))
    if exact is None or column.id is None:
        return None
    t = metadata.of(connection)
    s, f = t.file_column_stats.c, t.data_file.c
    of_bounds = [
        metadata.optional(t.file_column_stats, f"{end}_is_exact", Boolean()) for end in _ENDS
    ]
    query = (
        select(f.record_count, s.value_count, s.null_count, s.min_value, s.max_value, *of_bounds)
        .join_from(
            t.data_file,
            t.file_column_stats,
            and_(s.data_file_id == f.data_file_id, s.column_id == column.id),
        )
        .where(s.table_id == table.id, f.table_id == table.id, visible(t.data_file, snapshot_id))
    )
    rows = connection.execute(query).all()
    if len(rows) != files:
        return None
    return _extremes(rows, column, exact)


_ENDS = ("min", "max")


def _extremes(
    rows: Iterable[Any], column: Column, exact: Callable[[str], bool]
) -> tuple[str | None, str | None] | None:
    bounds: list[tuple[Any, str]] = []
    for records, values, nulls, low, high, low_exact, high_exact in rows:
        if nulls is None or values is None or values + nulls != records:
            return None
        if values == 0:
            continue
        if low_exact is False or high_exact is False:
            return None
        for text in (low, high):
            value = None if text is None or not exact(text) else bound_from_text(column.type, text)
            if value is None:
                return None
            bounds.append((value, text))
    if not bounds:
        return None, None
    return min(bounds)[1], max(bounds)[1]


_ANY: Callable[[str], bool] = lambda _: True  # noqa: E731 - a name for the table below
# Without floats: -0.0 has the bound 0.0, and the text of a 32-bit float is rounded.
_EXACT: Mapping[str, Callable[[str], bool]] = {
    "integer": _ANY,
    "decimal": _ANY,
    "date": lambda text: len(text) == 10,
    # Values that are finer than microseconds are cut when they are read.
    "timestamp": lambda text: "BC" not in text and len(text) <= TO_MICROSECONDS,
    "timestamptz": lambda text: text.endswith("+00") and len(text) <= TO_MICROSECONDS + len("+00"),
    "varchar": lambda text: len(text.encode()) < _CUT,
}


def table_sizes(connection: Connection, snapshot_id: int) -> list[tuple[Any, ...]]:
    """Files and deletes of every table in force, as ``ducklake_table_info`` has them."""
    t = metadata.of(connection)
    c = t.table.c
    named = select(c.table_name, c.schema_id, c.table_id, c.table_uuid)
    named = named.where(visible(t.table, snapshot_id)).order_by(c.table_id)
    data = _sizes(connection, t.data_file, snapshot_id)
    deletes = _sizes(connection, t.delete_file, snapshot_id)
    return [
        (
            *(row.table_name, row.schema_id, row.table_id, str(row.table_uuid)),
            *data.get(row.table_id, (0, 0)),
            *deletes.get(row.table_id, (0, 0)),
        )
        for row in connection.execute(named)
    ]


def _sizes(
    connection: Connection, files: FromClause, snapshot_id: int
) -> dict[int, tuple[int, int]]:
    c = files.c
    bad = case((or_(NoNumber(c.begin_snapshot), NoNumber(c.file_size_bytes)), 1), else_=0)
    query = select(c.table_id, func.count(), func.sum(c.file_size_bytes), func.sum(bad))
    query = query.where(visible(files, snapshot_id)).group_by(c.table_id)
    rows = connection.execute(query).all()
    for row in rows:
        if row[3]:
            raise damaged(
                f"{row[3]} rows of table {row[0]} in {files.description} have no begin_snapshot "
                "or no file_size_bytes"
            )
    return {row[0]: (int(row[1]), int(row[2] or 0)) for row in rows}
