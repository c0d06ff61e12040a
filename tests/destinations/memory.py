"""A destination of rows in memory, to compare others with: the plain meaning of what each does.

It has no views, SQL statements, change feed, or files. Frames are of the session that it is given.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

from sqlalchemy import Connection, StaticPool, create_engine

from penstock.destinations.capabilities import Capabilities
from penstock.destinations.destination import Place
from penstock.destinations.values import (
    AddressedRows,
    At,
    FinalRows,
    Ranges,
    Rows,
    Snapshot,
    Staged,
    Table,
    TableSchema,
    Written,
)
from penstock.errors import CommitConflict, MergeKeyError, TableNotFound, UnsupportedFeature
from penstock.lakes.limits import Limits
from penstock.lakes.reading.conversions.spark_types import schema_of
from penstock.model.values.strategy import Capability
from penstock.sql.identifiers import TableRef

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LACKS = {Capability.VIEWS, Capability.STATEMENTS, Capability.CHANGES}
MEMORY = Capabilities("Memory", frozenset(Capability) - _LACKS)
_ADDRESS = "_penstock_row"
Row = tuple[Any, ...]


def _no_such(*_: object, **__: object) -> NoReturn:
    raise UnsupportedFeature("rows in memory have no views, statements or change feed")


@dataclass(frozen=True)
class _Content:
    """A table at one moment; ``types`` are those of Spark, by the names of columns."""

    types: Mapping[str, Any]
    rows: tuple[Row, ...] = ()
    made_in: int = 0
    comments: Mapping[str | None, str | None] = field(default_factory=dict)

    def index(self, column: str) -> int:
        return list(self.types).index(column)

    def of(self, place: Place | None) -> list[Row]:
        at = None if place is None or place[0] not in self.types else self.index(place[0])
        return [row for row in self.rows if at is None or row[at] == (place or "")[1]]

    def frame(self, session: SparkSession) -> DataFrame:
        from pyspark.sql.types import StructField, StructType

        fields = [StructField(name, kind) for name, kind in self.types.items()]
        return session.createDataFrame(list(self.rows), StructType(fields))


def _like(pattern: str, text: str | None) -> bool:
    """Tell whether a note is like a pattern of SQL's LIKE, of which only ``%`` is known."""
    parts = map(re.escape, pattern.split("%"))
    return text is not None and re.fullmatch(".*".join(parts), text, re.DOTALL) is not None


class MemoryTable:
    """A table of a transaction. Names of columns are compared as they are written."""

    def __init__(self, lake: MemoryDestination, name: str, at: int) -> None:
        self.session, self.qualified_name = lake.session, name
        self.base = self.candidate = lake.states[at].get(name)
        self._lake, self._at, self._slices = lake, at, ""

    def stage(self, candidate: _Content | None, /) -> None:
        self.candidate = candidate

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        before = self.candidate
        try:
            yield
        except BaseException:
            self.candidate = before
            raise

    @property
    def exists(self) -> bool:
        return self.candidate is not None

    @property
    def content(self) -> _Content:
        if self.candidate is None:
            raise TableNotFound(f"table {self.qualified_name} does not exist yet")
        return self.candidate

    @property
    def schema(self) -> TableSchema:
        return schema_of(replace(self.content, rows=()).frame(self.session))

    @property
    def made_in(self) -> int:
        return 0 if self.base is None else self.base.made_in

    def to_df(self, _: object = None, /) -> DataFrame:
        return self.content.frame(self.session)

    def rows(self, _: object = None, /) -> Rows:
        return Rows(self.to_df())

    def slice_df(self, column: str, value: object, /) -> DataFrame:
        self._slices = column
        return self.slices_df([str(value)])

    def slices_df(self, values: Sequence[str], /) -> DataFrame:
        kept = tuple(row for value in values for row in self.content.of((self._slices, value)))
        return replace(self.content, rows=kept).frame(self.session)

    def few_rows(self, _: Sequence[str], __: Place | None = None, /) -> None:
        return None

    def count_rows(self, place: Place | None = None, /) -> int:
        return len(self.content.of(place))

    def missing_files(self, _: Place | None = None, /) -> tuple[str, ...]:
        return ()

    def changed_by_others(self, since: int, own: Sequence[str], /) -> Snapshot | None:
        states, notes = self._lake.states, self._lake.notes
        for at in range(since + 1, self._at + 1):
            before, after = (states[n].get(self.qualified_name) for n in (at - 1, at))
            if before is not after and not any(_like(pattern, notes[at]) for pattern in own):
                return self._lake.snapshot(At(at))
        return None

    def _fit(self, df: DataFrame, place: Place | None = None) -> list[Row]:
        """Take rows, with the column of their slice, in the table's types; create the table."""
        from pyspark.sql import functions as fn

        if place is not None and place[0] not in df.columns:
            df = df.withColumn(place[0], fn.lit(place[1]))
        if self.candidate is None:
            self.candidate = _Content({each.name: each.dataType for each in df.schema.fields})
        columns = (
            (fn.col(name) if name in df.columns else fn.lit(None)).cast(kind).alias(name)
            for name, kind in self.content.types.items()
        )
        return [tuple(row) for row in df.select(*columns).collect()]

    def _put(self, gone: list[Row], new: list[Row]) -> Staged:
        """Stage ``new`` in place of rows that are there; the same rows stage nothing."""
        if self.base is not None and Counter(map(repr, gone)) == Counter(map(repr, new)):
            return Staged(unchanged=True, slice_rows=len(new))
        left = [id(row) for row in gone]
        kept = tuple(row for row in self.content.rows if id(row) not in left)
        self.candidate = replace(self.content, rows=(*kept, *new))
        return Staged(rows_written=len(new), rows_deleted=len(gone), slice_rows=len(new))

    def append(
        self,
        df: DataFrame,
        /,
        *,
        partition_by: Sequence[str] = (),
        slice: Place | None = None,  # noqa: A002 - the lake's word
    ) -> Staged:
        staged = self._put([], self._fit(df, slice))
        return replace(staged, rows_inserted=staged.rows_written, slice_rows=self.count_rows(slice))

    def replace(self, df: DataFrame, /, *, known_fingerprint: str | None = None) -> Staged:
        before = [] if self.candidate is None else list(self.candidate.rows)
        made = {each.name: each.dataType for each in df.schema.fields}
        if self.candidate is not None and made != self.candidate.types:
            before, self.candidate = [], None
        return self._put(before, self._fit(df))

    def replace_slice(
        self,
        df: DataFrame,
        column: str,
        value: object,
        /,
        *,
        partition_by: Sequence[str] | None = None,
        known_fingerprint: str | None = None,
    ) -> Staged:
        new = self._fit(df, (column, str(value)))
        return self._put(self.content.of((column, str(value))), new)

    def replace_partitions(self, df: DataFrame, keys: Sequence[str], /) -> Staged:
        new = self._fit(df)
        at = [self.content.index(key) for key in keys]
        own = {tuple(row[each] for each in at) for row in new}
        gone = [row for row in self.content.rows if tuple(row[each] for each in at) in own]
        return replace(self._put(gone, new), slice_rows=self.count_rows())

    def replace_ranges(
        self, df: DataFrame, ranges: Ranges, /, *, known_fingerprint: str | None = None
    ) -> Staged:
        new = self._fit(df)
        inside = self.addressed_rows(ranges.where).df.collect()
        return self._put([self.content.rows[row[_ADDRESS]] for row in inside], new)

    def merge(
        self,
        df: DataFrame,
        keys: Sequence[str],
        /,
        *,
        slice: Place | None = None,  # noqa: A002 - the lake's word
    ) -> Staged:
        new, given = self._fit(df, slice), {*df.columns, *([] if slice is None else [slice[0]])}
        at = [self.content.index(key) for key in keys]
        by_key = {tuple(row[each] for each in at): row for row in new}
        if len(by_key) < len(new) or any(None in key for key in by_key):
            raise MergeKeyError(f"the rows to merge into {self.qualified_name} have no unique key")
        place = list(zip(self.content.types, range(len(self.content.types)), strict=True))
        gone, changed = [], []
        for row in self.content.of(slice):
            source = by_key.pop(tuple(row[each] for each in at), None)
            if source is not None:
                wanted = tuple((source if name in given else row)[n] for name, n in place)
                if wanted != row:
                    gone.append(row)
                    changed.append(wanted)
        inserted = list(by_key.values())
        staged = self._put(gone, [*changed, *inserted])
        return replace(
            staged,
            rows_updated=len(changed),
            rows_inserted=len(inserted),
            rows_deleted=0,
            slice_rows=self.count_rows(slice),
        )

    def addressed_rows(self, where: str | None = None, /) -> AddressedRows:
        from pyspark.sql.types import IntegerType

        types = {**self.content.types, _ADDRESS: IntegerType()}
        rows = tuple((*row, number) for number, row in enumerate(self.content.rows))
        df = _Content(types, rows).frame(self.session)
        return AddressedRows(df if where is None else df.where(where), None, (_ADDRESS,))

    def close_versions(
        self, closed: DataFrame, void: DataFrame | None, opened: DataFrame, _: AddressedRows, /
    ) -> Staged:
        new, rows = self._fit(opened), dict(enumerate(self.content.rows))
        gone = [] if void is None else [row[_ADDRESS] for row in void.collect()]
        changed = {row[_ADDRESS]: row for row in closed.collect()}
        rows.update((n, tuple(row[c] for c in self.content.types)) for n, row in changed.items())
        kept = tuple(row for number, row in rows.items() if number not in gone)
        if not (gone or changed or new):
            return Staged(unchanged=True, slice_rows=len(kept))
        self.candidate = replace(self.content, rows=(*kept, *new))
        written = len(changed) + len(new)
        return Staged(written, len(new), len(changed), len(gone), slice_rows=self.count_rows())

    def drop_slice(self, column: str, value: object, /) -> int:
        return self._put(self.content.of((column, str(value))), []).rows_deleted

    def fits_slices(self, column: str, /) -> bool:
        return self.candidate is None or column in self.candidate.types

    def write_slices(self, df: DataFrame, column: str, _: int, /) -> tuple[_Content, list[Row]]:
        new, self._slices = self._fit(df), column
        return self.content, new

    def stage_slices(
        self, written: tuple[_Content, list[Row]], values: Sequence[str], /, *, replaces: bool
    ) -> dict[str, Staged]:
        self.candidate, new = written
        at, found = self.content.index(self._slices), {}
        for value in values:
            place = (self._slices, value)
            gone = self.content.of(place) if replaces else []
            staged = self._put(gone, [row for row in new if row[at] == value])
            found[value] = replace(staged, slice_rows=self.count_rows(place))
        return found

    def drop(self) -> None:
        self.candidate = None

    def evolve(self, df: DataFrame, /, *, drop: Sequence[str] = ()) -> None:
        old = self.content
        names = [name for name in old.types if name not in drop]
        added = {f.name: f.dataType for f in df.schema.fields if f.name not in old.types}
        nulls = (None,) * len(added)
        rows = tuple((*(row[old.index(name)] for name in names), *nulls) for row in old.rows)
        types = {**{name: old.types[name] for name in names}, **added}
        self.candidate = replace(old, types=types, rows=rows)

    def lay_out(self, _: Sequence[str], __: Sequence[str], /) -> None:
        """Files have a layout; rows in memory have none."""

    def comments(self) -> tuple[str | None, Mapping[str, str]]:
        known = self.content.comments
        return known.get(None), {name: text for name, text in known.items() if name and text}

    def comment(self, text: str | None, column: str | None = None, /) -> None:
        known = {**self.content.comments, column: text}
        self.candidate = replace(self.content, comments=known)


class MemoryTransaction:
    view = create_view = comment_on_view = drop_view = staticmethod(_no_such)
    sql = staticmethod(_no_such)

    def __init__(self, lake: MemoryDestination, note: str | None) -> None:
        self.base = lake.latest()
        self._lake, self._note = lake, note
        self._tables: dict[str, MemoryTable] = {}
        self._also: list[Callable[[Connection, int], None]] = []

    def __enter__(self) -> MemoryTransaction:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any, /) -> None:
        if error is None:
            self.commit()

    def table(self, name: str, /) -> MemoryTable:
        key = str(TableRef.parse(name))
        if key not in self._tables:
            self._tables[key] = MemoryTable(self._lake, key, self.base.id)
        return self._tables[key]

    def kind_of(self, name: str, /) -> str | None:
        return "table" if self.table(name).exists else None

    def create_schema(self, name: str, /) -> None:
        """Tables are by their names alone."""

    def drop_table(self, name: str, /) -> None:
        self.table(name).drop()

    def describe(
        self, author: str | None = None, message: str | None = None, extra: str | None = None
    ) -> None:
        self._note = extra or self._note

    def on_commit(self, write: Callable[[Connection, int], None], /) -> None:
        self._also.append(write)

    @property
    def _changed(self) -> dict[str, MemoryTable]:
        return {n: each for n, each in self._tables.items() if each.candidate is not each.base}

    @property
    def has_changes(self) -> bool:
        return bool(self._changed)

    def commit(self) -> Snapshot | None:
        lake, changed = self._lake, self._changed
        if not changed:
            return None
        number = len(lake.states)
        states: dict[str, _Content | None] = {**lake.states[-1]}
        for name, table in changed.items():
            states[name] = self._rebased(table, states.get(name), number)
        with lake.writing() as connection:
            for write in self._also:
                write(connection, number)
        lake.states.append({name: each for name, each in states.items() if each is not None})
        lake.notes.append(self._note)
        self.rollback()
        return lake.latest()

    def _rebased(self, table: MemoryTable, now: _Content | None, number: int) -> _Content | None:
        """Add what was only added to what others made; refuse all else where they were."""
        new, base = table.candidate, table.base
        if now is not base:
            rows = () if base is None else base.rows
            added = None if new is None or now is None else new.rows[len(rows) :]
            if new is None or now is None or added is None or new.rows[: len(rows)] != rows:
                raise CommitConflict(f"another transaction has changed {table.qualified_name}")
            return replace(now, rows=(*now.rows, *added))
        return replace(new, made_in=number) if new is not None and base is None else new

    def rollback(self) -> None:
        self._tables.clear()
        self._also.clear()


@dataclass(frozen=True)
class MemoryPublished:
    """A table of each snapshot. Reads raise TableNotFound."""

    lake: MemoryDestination
    name: str

    def info(self, version: int | None = None, /) -> Table:
        ref, at = TableRef.parse(self.name), len(self.lake.states) - 1
        found = self.lake.find_table(ref.schema, ref.name, at if version is None else version)
        if found is None:
            raise TableNotFound(f"table {self.name} does not exist")
        return found

    def to_df(
        self, version: int | None = None, timestamp: Any = None, *, predicate: object = None
    ) -> DataFrame:
        assert timestamp is None, "snapshots in memory are named by their numbers"
        found = self.lake.states[-1 if version is None else version].get(self.name)
        if found is None:
            raise TableNotFound(f"table {self.name} does not exist")
        return found.frame(self.lake.session)

    def rows_at(self, version: int, _: object = None, /) -> Rows:
        return Rows(self.to_df(version))

    def few_rows(self, names: Sequence[str], version: int) -> None:
        return None

    def changed_rows(self, after: int, until: int, /, *, only_new: bool = False) -> FinalRows:
        _no_such(after, until, only_new)


class MemoryDestination:
    """Its own catalog as well: ``states`` are the tables of each snapshot, ``notes`` its notes."""

    limits = Limits()
    names_at = staticmethod(_no_such)

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.states: list[dict[str, _Content]] = [{}]
        self.notes: list[str | None] = [None]
        self._records = create_engine("sqlite://", poolclass=StaticPool)

    @property
    def catalog(self) -> MemoryDestination:
        return self

    def with_session(self, session: SparkSession, /) -> MemoryDestination:
        other = MemoryDestination(session)
        other.states, other.notes, other._records = self.states, self.notes, self._records
        return other

    def transaction(
        self, author: str | None = None, message: str | None = None, extra: str | None = None
    ) -> MemoryTransaction:
        return MemoryTransaction(self, extra)

    def table(self, name: str, /) -> MemoryPublished:
        return MemoryPublished(self, str(TableRef.parse(name)))

    def latest(self) -> Snapshot:
        return self.snapshot(At(len(self.states) - 1))

    def snapshot(self, at: At, /) -> Snapshot:
        number = len(self.states) - 1 if at.version is None else at.version
        return Snapshot(number, datetime.now(UTC), number, 0, 0)

    def find_table(self, schema: str, name: str, snapshot_id: int, /) -> Table | None:
        found = self.states[snapshot_id].get(f"{schema}.{name}")
        if found is None:
            return None
        columns = schema_of(replace(found, rows=()).frame(self.session))
        return Table(found.made_in, "", schema, name, "", columns, found.made_in)

    def known_table(self, schema: str, name: str, snapshot: Snapshot, /) -> Table | None:
        return self.find_table(schema, name, snapshot.id)

    def changed_since(
        self, table: Table, snapshot_id: int, partition: Place | None = None, /
    ) -> bool:
        before, now = (self.states[n].get(table.qualified_name) for n in (snapshot_id, -1))
        if before is None or now is None:
            return True
        return before.types != now.types or before.of(partition) != now.of(partition)

    def written_in(self, _: Sequence[int], /) -> Mapping[tuple[int, str], Written]:
        return {}  # it has no files

    def count_rows(self, schema: str, name: str, snapshot_id: int, /) -> int | None:
        found = self.states[snapshot_id].get(f"{schema}.{name}")
        return None if found is None else len(found.rows)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._records.begin() as connection:
            yield connection

    writing = reading
