"""Choosing files in the catalog's database: which of a table's may hold rows that matter.

A file is left out only when its statistics or partition values show that none of its rows can
satisfy the predicate. Files without a row of statistics for a column (older than the column,
written without) are kept by it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, exists, false, func, literal, not_, or_, select

from penstock.lake.catalog.database import metadata
from penstock.lake.catalog.statistics.exclusion import Extent, excluded, identity
from penstock.lake.catalog.statistics.transforms import excluded_by_transform
from penstock.lake.catalog.statistics.typed_text import Test
from penstock.lake.format.files import Table
from penstock.lake.format.naming import fold
from penstock.lake.format.schema import Column, TableSchema
from penstock.sql.conditions import And, Condition, IsNull, Or, Path, Predicate


@dataclass(frozen=True, slots=True)
class _Key:
    """One column of one partitioning that the table has or had."""

    partition_id: int
    index: int
    column_id: int
    transform: str


def kept(connection: Connection, table: Table, predicate: Predicate) -> Test | None:
    """A test on ``ducklake_data_file``; ``None`` when nothing can be left out."""
    if predicate.condition is None:
        return None
    _prepare(connection)
    t = metadata.of(connection)
    choice = _Choice(
        t, table, _keys(connection, t, table.id), predicate.zone, connection.dialect.name
    )
    return choice.kept(predicate.condition)


def _prepare(connection: Connection) -> None:
    """Room for the ids of a million files: PostgreSQL compares them one by one without."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL work_mem = '128MB'")


def _keys(connection: Connection, t: metadata.Tables, table_id: int) -> list[_Key]:
    c = t.partition_column.c
    query = select(c.partition_id, c.partition_key_index, c.column_id, c.transform)
    rows = connection.execute(query.where(c.table_id == table_id))
    return [_Key(*row) for row in rows]


def find(schema: TableSchema, path: Path) -> Column | None:
    """The column at a path through structs, letter case aside."""
    columns: Sequence[Column] = schema.columns
    found: Column | None = None
    for name in path:
        if found is not None and found.type != "struct":
            return None
        found = next((c for c in columns if fold(c.name) == fold(name)), None)
        if found is None:
            return None
        columns = found.children
    return None if found is None or found.children else found


def paths(condition: Condition) -> frozenset[tuple[str, ...]]:
    """The columns that a condition speaks of, folded."""
    if isinstance(condition, And | Or):
        return frozenset().union(*(paths(part) for part in condition.parts))
    return frozenset({tuple(fold(name) for name in condition.path)})


@dataclass(frozen=True, slots=True)
class _Choice:
    tables: metadata.Tables
    table: Table
    keys: Sequence[_Key]
    zone: str
    dialect: str

    def kept(self, condition: Condition) -> Test | None:
        """True for files that may hold a row for which ``condition`` is true."""
        over = paths(condition)
        if len(over) == 1:
            return self._by_column(condition, next(iter(over)))
        if isinstance(condition, Or):
            tests = [self.kept(part) for part in condition.parts]
            known = [test for test in tests if test is not None]
            return or_(*known) if len(known) == len(tests) else None
        assert isinstance(condition, And)
        return self._every(condition)

    def _every(self, condition: And) -> Test | None:
        """Parts on the same column are asked at once: one look at its statistics."""
        together: dict[frozenset[tuple[str, ...]], list[Condition]] = defaultdict(list)
        for part in condition.parts:
            together[paths(part)].append(part)
        tests = [
            self.kept(parts[0] if len(parts) == 1 else And(tuple(parts)))
            for over, parts in together.items()
            if len(over) == 1 or len(parts) == 1
        ]
        tests += [
            self.kept(part)
            for over, parts in together.items()
            if len(over) > 1 and len(parts) > 1
            for part in parts
        ]
        known = [test for test in tests if test is not None]
        return and_(*known) if known else None

    def _by_column(self, condition: Condition, path: Path) -> Test | None:
        column = find(self.table.schema, path)
        if column is None or column.id is None:
            return None
        tests = [self._by_statistics(condition, column, nested=len(path) > 1)]
        tests += [
            self._by_partition(condition, column, key)
            for key in self.keys
            if key.column_id == column.id
        ]
        known = [test for test in tests if test is not None]
        return and_(*known) if known else None

    def _by_statistics(self, condition: Condition, column: Column, *, nested: bool) -> Test | None:
        if nested and _asks_for_null(condition):
            return None  # whether NULLs of the struct itself are counted depends on the writer
        t = self.tables
        s = t.file_column_stats.c
        extent = Extent(
            low=s.min_value,
            high=s.max_value,
            no_nan=s.contains_nan == literal(False, s.contains_nan.type),
            only_null=and_(s.value_count == 0, s.null_count > 0),
            no_null=s.null_count == 0,
            whole=False,
        )
        test = excluded(condition, column, extent, self.zone, self.dialect)
        if test is None:
            return None
        mine = and_(s.table_id == self.table.id, s.column_id == column.id, test)
        f = t.data_file.c
        if self.dialect == "postgresql":
            one = select(literal(1)).select_from(t.file_column_stats)
            return not_(exists(one.where(mine, s.data_file_id == f.data_file_id)))
        # Asked once for all files: SQLite would look for each, without an index through them all.
        ids = select(s.data_file_id).where(mine, s.data_file_id.is_not(None))
        return f.data_file_id.not_in(ids)

    def _by_partition(self, condition: Condition, column: Column, key: _Key) -> Test | None:
        t = self.tables
        v, f = t.file_partition_value.c, t.data_file.c
        value = v.partition_value
        test = (
            excluded(condition, column, identity(value), self.zone, self.dialect)
            if key.transform == "identity"
            else excluded_by_transform(
                condition,
                column,
                transform=key.transform,
                value=value,
                zone=self.zone,
                dialect=self.dialect,
            )
        )
        if test is None:
            return None
        mine = and_(v.table_id == self.table.id, v.partition_key_index == key.index, test)
        ours = f.partition_id == key.partition_id
        if self.dialect == "postgresql":
            one = select(literal(1)).select_from(t.file_partition_value)
            return not_(exists(one.where(mine, ours, v.data_file_id == f.data_file_id)))
        ids = select(v.data_file_id).where(mine, v.data_file_id.is_not(None))
        return not_(and_(func.coalesce(ours, false()), f.data_file_id.in_(ids)))


def _asks_for_null(condition: Condition) -> bool:
    if isinstance(condition, And | Or):
        return any(_asks_for_null(part) for part in condition.parts)
    return isinstance(condition, IsNull)
