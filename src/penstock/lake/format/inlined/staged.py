"""What a transaction does to the rows that the catalog itself holds, as a value.

Rows without an id yet have a provisional one, below 0, by which the same transaction can change
them again; the commit gives them theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.lake.format.changes import InlineChange
from penstock.lake.format.files import FileSet
from penstock.lake.format.inlined.found import (
    BEGIN_COLUMN,
    END_COLUMN,
    ROW_ID_COLUMN,
    InlinedDeletes,
    InlinedPart,
    InlinedRows,
)
from penstock.lake.format.inlined.stats import statistics
from penstock.lake.format.inlined.text import moved
from penstock.lake.format.schema import TableSchema

if TYPE_CHECKING:
    import pyarrow as pa


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
        """With rows inserted; ``values`` has them by field id, as `inlined.text.stored` makes them.

        ``begin`` is the snapshot that this transaction will most likely be. ``row_ids`` are those
        of updated rows; without one, or below 0, a row gets a new one.
        """
        import pyarrow as pa

        if not values.num_rows:
            return self
        given = [None] * values.num_rows if row_ids is None else list(row_ids)
        first = min((id_ for part in self.parts for id_ in _ids(part)), default=0)
        fresh = iter(range(min(first, 0) - 1, min(first, 0) - 1 - len(given), -1))
        ids = [next(fresh) if one is None or one < 0 else one for one in given]
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
        """``files``, those of the base, with what is staged here."""
        if not self:
            return files
        base = () if files.inlined is None else files.inlined.parts
        kept = (_less(part, self.ended) for part in base)
        parts = (*(part for part in kept if part.rows.num_rows), *self.parts)
        return replace(
            files,
            inlined=InlinedRows(parts) if parts else None,
            inlined_deletes=self._deletes(files.inlined_deletes),
        )

    def _deletes(self, base: InlinedDeletes | None) -> InlinedDeletes | None:
        import pyarrow as pa

        if not self.deleted:
            return base
        pairs = [(key, place) for key, places in self.deleted.items() for place in sorted(places)]
        mine = pa.table(
            {
                "file_id": pa.array([key for key, _ in pairs], pa.int64()),
                "position": pa.array([place for _, place in pairs], pa.int64()),
                # in force in the candidate state, whichever snapshot it will be
                "snapshot": pa.array([0] * len(pairs), pa.int64()),
            }
        )
        return InlinedDeletes(mine if base is None else pa.concat_tables([base.rows, mine]))

    def change(self, schema: TableSchema) -> InlineChange | None:
        """What the commit is asked for; ``schema`` is the table's as it will be."""
        import pyarrow as pa

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
    keep = [id_ not in gone for id_ in _ids(part)]
    return part if all(keep) else replace(part, rows=part.rows.filter(keep))
