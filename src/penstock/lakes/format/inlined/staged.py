"""Inlined rows that a transaction inserts, ends and deletes, as a value.

New rows have a provisional row id below 0, by which the same transaction can change them again; the
commit assigns the final one. Their statistics are those of the stored values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.lakes.format.changes import InlineChange
from penstock.lakes.format.files import (
    BEGIN_COLUMN,
    END_COLUMN,
    ROW_ID_COLUMN,
    ColumnStats,
    FileSet,
    InlinedDeletes,
    InlinedPart,
    InlinedRows,
)
from penstock.lakes.format.inlined.text import moved
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import base_type, bound_from_text, bound_to_text
from penstock.lakes.format.values.duck_text import CAST, parse
from penstock.lazy import pa


@dataclass(frozen=True, slots=True)
class StagedInline:
    """``parts`` are rows to insert (as `InlinedPart` has them, their row ids possibly provisional),
    ``ended`` the ids of inlined rows of the base that end, ``deleted`` positions by data file id.
    """

    parts: tuple[InlinedPart, ...] = ()
    ended: frozenset[int] = frozenset()
    deleted: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.parts or self.ended or self.deleted)

    @property
    def rows(self) -> int:
        """Rows to insert."""
        return sum(part.rows.num_rows for part in self.parts)

    def with_rows(
        self,
        schema: TableSchema,
        values: pa.Table,
        begin: int,
        row_ids: Iterable[int | None] | None = None,
    ) -> StagedInline:
        """With rows inserted; ``values`` has columns by field id, as of `inlined.text.stored`.

        ``begin`` is the snapshot that this transaction will most likely make. ``row_ids`` are
        those of updated rows; a row whose id is None or below 0 gets a new id.
        """
        if not values.num_rows:
            return self
        wanted_ids = [None] * values.num_rows if row_ids is None else list(row_ids)
        first = min((id_ for part in self.parts for id_ in _ids(part)), default=0)
        fresh = iter(range(min(first, 0) - 1, min(first, 0) - 1 - len(wanted_ids), -1))
        ids = [next(fresh) if row_id is None or row_id < 0 else row_id for row_id in wanted_ids]
        system = {
            ROW_ID_COLUMN: pa.array(ids, pa.int64()),
            BEGIN_COLUMN: pa.array([begin] * len(ids), pa.int64()),
            END_COLUMN: pa.nulls(len(ids), pa.int64()),
        }
        names = [*system, *values.column_names]
        rows = pa.table([*system.values(), *values.columns], names=names)
        return replace(self, parts=(*self.parts, InlinedPart(schema, rows, "cast")))

    def without_rows(self, row_ids: Iterable[int]) -> StagedInline:
        """Without these inlined rows: staged ones vanish, those of the base end."""
        gone = set(row_ids)
        staged = {id_ for part in self.parts for id_ in _ids(part)}
        parts = (_less(part, gone) for part in self.parts)
        return replace(
            self,
            parts=tuple(part for part in parts if part.rows.num_rows),
            ended=self.ended | (gone - staged),
        )

    def with_deletes(self, positions: Mapping[int, Iterable[int]]) -> StagedInline:
        """With rows of data files deleted, by the files' ids."""
        merged = dict(self.deleted)
        for file_id, places in positions.items():
            merged[file_id] = merged.get(file_id, frozenset()) | frozenset(places)
        return replace(self, deleted={k: v for k, v in merged.items() if v})

    def without_files(self, file_ids: Iterable[int]) -> StagedInline:
        """Without the deletes from data files that end whole."""
        gone = set(file_ids)
        return replace(self, deleted={k: v for k, v in self.deleted.items() if k not in gone})

    def over(self, files: FileSet) -> FileSet:
        """The base's ``files`` with these staged changes."""
        if not self:
            return files
        base = () if files.inlined is None else files.inlined.parts
        remaining = (_less(part, self.ended) for part in base)
        parts = (*(part for part in remaining if part.rows.num_rows), *self.parts)
        return replace(
            files,
            inlined=InlinedRows(parts) if parts else None,
            inlined_deletes=self._deletes(files.inlined_deletes),
        )

    def _deletes(self, base: InlinedDeletes | None) -> InlinedDeletes | None:
        if not self.deleted:
            return base
        pairs = [(key, place) for key, places in self.deleted.items() for place in sorted(places)]
        mine = pa.table(
            {
                "file_id": pa.array([key for key, _ in pairs], pa.int64()),
                "position": pa.array([place for _, place in pairs], pa.int64()),
                # in force in the candidate state, whichever snapshot it becomes
                "snapshot": pa.array([0] * len(pairs), pa.int64()),
            }
        )
        return InlinedDeletes(mine if base is None else pa.concat_tables([base.rows, mine]))

    def change(self, schema: TableSchema) -> InlineChange | None:
        """The change for the commit; ``schema`` is the table's after it."""
        if not self:
            return None
        delete = {key: tuple(sorted(places)) for key, places in self.deleted.items()}
        change = InlineChange(end_rows=tuple(sorted(self.ended)), delete=delete)
        if not self.parts:
            return change
        values = pa.concat_tables([moved(part, schema) for part in self.parts])
        ids = [id_ for part in self.parts for id_ in _ids(part)]
        return replace(
            change,
            insert=values,
            row_ids=tuple(id_ if id_ >= 0 else None for id_ in ids),
            stats=statistics(values, schema),
        )


def _ids(part: InlinedPart) -> list[int]:
    ids: list[int] = part.rows[ROW_ID_COLUMN].to_pylist()
    return ids


def _less(part: InlinedPart, gone: Iterable[int]) -> InlinedPart:
    gone = gone if isinstance(gone, frozenset | set) else set(gone)
    if not gone:
        return part
    remains = [id_ not in gone for id_ in _ids(part)]
    return part if all(remains) else replace(part, rows=part.rows.filter(remains))


_FLOATS = frozenset({"float32", "float64"})


def statistics(values: pa.Table, schema: TableSchema) -> tuple[ColumnStats, ...]:
    """Statistics of each leaf column of ``values``, which has columns by field id, stored as by
    `inlined.text`. A bound that could be wrong is left out.
    """
    stats: list[ColumnStats] = []
    for column in schema.columns:
        stored = values[str(column.id)].to_pylist()
        if not column.children:
            stats.append(_leaf(column, stored))
            continue
        trees = [None if text is None else parse(text, column, (CAST,)) for text in stored]
        stats += [_leaf(leaf, leaves) for leaf, leaves in _leaves(column, trees)]
    return tuple(stats)


def _leaves(column: Column, trees: list[Any]) -> Iterator[tuple[Column, list[Any]]]:
    """The leaf columns inside with their texts; a NULL above a leaf counts as NULL there."""
    if not column.children:
        yield column, trees
        return
    for child, inner in zip(column.children, _INSIDE[column.type](column, trees), strict=True):
        yield from _leaves(child, inner)


def _in_struct(column: Column, trees: list[Any]) -> list[list[Any]]:
    return [
        [None if tree is None else tree[at] for tree in trees] for at in range(len(column.children))
    ]


def _in_list(_: Column, trees: list[Any]) -> list[list[Any]]:
    return [[item for tree in trees for item in ([None] if tree is None else tree)]]


def _in_map(_: Column, trees: list[Any]) -> list[list[Any]]:
    pairs = [pair for tree in trees for pair in ([(None, None)] if tree is None else tree)]
    return [[key for key, _ in pairs], [value for _, value in pairs]]


_INSIDE: Mapping[str, Callable[[Column, list[Any]], list[list[Any]]]] = {
    "struct": _in_struct,
    "list": _in_list,
    "map": _in_map,
}


def _leaf(column: Column, stored: list[Any]) -> ColumnStats:
    assert column.id is not None, f"column {column.name} has no id"
    values = [value for value in stored if value is not None]
    low: str | None = None
    high: str | None = None
    nan: bool | None = None
    if base_type(column.type) in _FLOATS:
        numbers = [float(value) for value in values]
        nan = any(math.isnan(number) for number in numbers)
        values = [number for number in numbers if not math.isnan(number)]
        count = len(numbers)
    else:
        count = len(values)
    texts = [_text(column.type, value) for value in values]
    known = [(bound_from_text(column.type, text), text) for text in texts if text is not None]
    if known and len(known) == len(values) and all(key is not None for key, _ in known):
        low, high = min(known)[1], max(known)[1]
    return ColumnStats(column.id, None, count, len(stored) - count, low, high, nan)


def _text(kind: str, value: Any) -> str | None:
    """The text of a bound; a value stored as text has the same text as its bound, if any."""
    if isinstance(value, str):
        if base_type(kind) == "blob":
            return None
        return None if "\x00" in value else value
    return bound_to_text(kind, value)
