"""The public class of a Delta table: its rows at any version, and changes of one commit each.

Changes of a Delta table, each as the work that makes a version of another.

What the table is (its columns, partitions and options) is decided here, by the log's metadata. Its
rows are changed by a lake's transaction (`version`), whose table has that metadata already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from penstock.delta.actions import Metadata
from penstock.delta.features import checked_options
from penstock.delta.merge import UPSERT, assigned, merge
from penstock.delta.merge import Clause as MergeClause
from penstock.delta.place import HistoryEntry, Place, Version
from penstock.delta.scan import absolute, live_rows
from penstock.delta.schema import commented, evolved, partition_names, schema_text, table_schema
from penstock.delta.version import Change, Draft, Work, carry_out
from penstock.errors import ColumnNotFound, CommitConflict, SchemaMismatch
from penstock.lakes.format.schema import TableSchema
from penstock.lakes.reading.conversions.align import known
from penstock.lakes.reading.conversions.spark_types import schema_of
from penstock.lakes.rows.change import Clause, Condition, RowChange
from penstock.lakes.rows.engine import stage
from penstock.lakes.rows.given import frame_for
from penstock.lakes.snapshot import Moment
from penstock.spark.functions import expr
from penstock.spark.session import session_zone
from penstock.sql.predicate import contrary, of_where
from penstock.sql.text import Predicate, SqlExpression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lakes.rows.given import Given


_ALL = Predicate(None)


def create(
    place: Place,
    like: DataFrame | TableSchema,
    partition_by: Sequence[str],
    options: Mapping[str, str],
) -> Work:
    """Make an empty table with these columns."""
    return Work(
        Draft(place, None, _metadata(place, None, like, partition_by, options)), "CREATE TABLE"
    )


def append(place: Place, base: Version | None, df: DataFrame, *, evolve: bool) -> Work:
    """Add rows; ``evolve`` adds columns that the table lacks. The table is made if needed.

    Raises SchemaMismatch for columns that the table lacks, and for a type that differs.
    """
    if base is None:
        draft = Draft(place, None, _metadata(place, None, df, ()))
        return Work(draft, "CREATE TABLE AS SELECT", lambda table: table.append(df))
    draft = Draft.of_version(place, base)
    if evolve:
        draft = replace(draft, metadata=evolved(base.metadata, _schema(df), place.name))
    return Work(draft, "WRITE", lambda table: table.append(df))


def overwrite(
    place: Place, base: Version | None, df: DataFrame, partition_by: Sequence[str] | None
) -> Work:
    """Replace all rows; the columns become those of ``df``. The table is made if needed.

    ``partition_by`` is what the table is partitioned by from now on; None leaves it.
    """
    keys = partition_by
    if keys is None:
        keys = () if base is None else base.partition_by
    draft = Draft(place, base, _metadata(place, base, df, keys))
    if base is None:
        return Work(draft, "CREATE TABLE AS SELECT", lambda table: table.append(df))
    rows = sum(live_rows(place.uri, file) for file in base.files)
    return Work(draft, "WRITE", lambda table: table.append(df), _ALL, replaced=rows)


def delete(draft: Draft, where: str | None) -> Work:
    """Remove the rows of a condition, or all."""
    change = RowChange.delete(_condition(draft, where))
    return Work(draft, "DELETE", lambda table: stage(table, change), _predicate(draft, where))


def update(draft: Draft, assignments: Mapping[str, str], where: str | None) -> Work:
    """Set columns to expressions in the rows of a condition, or in all.

    Raises ColumnNotFound.
    """
    for name in assignments:
        if draft.schema.find(name.partition(".")[0]) is None and draft.schema.find(name) is None:
            raise ColumnNotFound(
                f"the Delta table {draft.place.name} has no column {name!r}",
                hint=f"its columns are {', '.join(draft.schema.names)}",
                data={"column": name},
            )
    values = assigned(assignments, draft.schema)
    clause = Clause("matched", "update", values=values, rounds=False)
    change = RowChange(_condition(draft, where), (clause,))
    return Work(draft, "UPDATE", lambda table: stage(table, change), _predicate(draft, where))


def replace_where(draft: Draft, df: DataFrame, where: str) -> Work:
    """Replace the rows of a condition by those of ``df``, which must satisfy it."""
    change = RowChange.overwrite(df, _condition(draft, where))
    return Work(draft, "WRITE", lambda table: stage(table, change), _predicate(draft, where))


def set_options(draft: Draft, options: Mapping[str, str]) -> Work:
    """Set options of the table. Raises UnsupportedFeature, ArgumentError."""
    pairs = _options(draft.place, draft.metadata, options)
    return _redefined(draft, replace(draft.metadata, configuration=pairs))


def comment(draft: Draft, text: str | None, column: str | None) -> Work:
    """Set or remove the comment of the table or of a column."""
    return _redefined(draft, commented(draft.metadata, text, column))


def _redefined(draft: Draft, metadata: Metadata) -> Work:
    return Work(replace(draft, metadata=metadata), "SET TBLPROPERTIES")


def _condition(draft: Draft, where: str | None) -> Condition:
    """The condition as a column.

    In a lake's texts, quotes and names of hidden columns have a meaning that Spark's have not.
    """
    if where is None:
        return Condition()
    predicate = _predicate(draft, where)
    others = None
    if not predicate.unused:
        others = contrary(SqlExpression(where), zone=predicate.zone, args={})
    return Condition(expr(where), files=predicate, others=others)


def _predicate(draft: Draft, where: str | None) -> Predicate:
    return _ALL if where is None else of_where(where, zone=session_zone(draft.place.spark()))


def _metadata(
    place: Place,
    base: Version | None,
    like: DataFrame | TableSchema,
    partition_by: Sequence[str],
    options: Mapping[str, str] | None = None,
) -> Metadata:
    """Return the metadata of a table with these columns; an existing table keeps its options."""
    before = None if base is None else base.metadata
    schema = _schema(like)
    if before is not None:
        text = schema_text(schema, before.schema_text)
        keys = partition_names(table_schema(text), partition_by)
        return replace(before, schema_text=text, partition_by=keys)
    return Metadata(
        id=str(uuid4()),
        schema_text=schema_text(schema),
        partition_by=partition_names(schema, partition_by),
        configuration=_options(place, None, options or {}),
        created=time.time_ns() // 1_000_000,
    )


def _options(
    place: Place, before: Metadata | None, options: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    known_options = {} if before is None else before.options
    return tuple({**known_options, **checked_options(options, place.name)}.items())


def _schema(like: DataFrame | TableSchema) -> TableSchema:
    schema = like if isinstance(like, TableSchema) else schema_of(known(like))
    if not schema.columns:
        raise SchemaMismatch("a table needs a column", hint="select at least one")
    return schema


_TRIES = 5


@dataclass(frozen=True, slots=True)
class WriteResult:
    """A finished change: its counts, and the version that it made; None when it changed nothing."""

    change: Change
    version: int | None


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a Delta root; whether it exists is checked when it is used::

        orders = delta.table("shop.orders")
        orders.append([{"id": 3, "customer": "edsger"}])
        orders.update({"customer": "upper(customer)"}, "id = 1")
        rows = orders.to_df(version=0).collect()

    A change that others exclude is made again on the table as it is then, a few times.
    """

    place: Place
    made: Callable[[str], None]  # called with the name of a table that a change has made

    @property
    def name(self) -> str:
        return self.place.name

    def exists(self) -> bool:
        """Return whether there is such a table: ``orders.exists()``."""
        return self.place.latest() is not None

    def to_df(
        self,
        version: int | None = None,
        timestamp: Moment | None = None,
        where: str | None = None,
    ) -> DataFrame:
        """The rows at a version, at a time, or the latest: ``orders.to_df(where="id > 1")``.

        Files that cannot match ``where`` are not read. Raises TableNotFound, SnapshotNotFound,
        UnsupportedFeature.
        """
        return self.place.read(self.place.at(version, timestamp), where)

    def version(self) -> int:
        """The number of the latest version: ``orders.version()``."""
        return self.place.at().number

    def schema(self, version: int | None = None) -> TableSchema:
        """The columns: ``orders.schema().names``."""
        return self.place.at(version).schema

    def partition_columns(self, version: int | None = None) -> tuple[str, ...]:
        """The columns that the table is partitioned by: ``orders.partition_columns()``."""
        return self.place.at(version).partition_by

    def files(self, version: int | None = None) -> list[str]:
        """The paths of the data files: ``orders.files(version=1)``."""
        return [absolute(self.place.uri, file.path) for file in self.place.at(version).files]

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """The commits, newest first: ``orders.history(limit=3)``."""
        self.place.at()
        return self.place.history(limit)

    def create(
        self,
        like: DataFrame | TableSchema,
        *,
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> WriteResult:
        """Make an empty table with these columns: ``orders.create(df, partition_by=["day"])``.

        ``options`` are Delta's, as in ``{"delta.enableDeletionVectors": "true"}``. A table that is
        there is left as it is.
        """
        return self._change(
            lambda base: (
                create(self.place, like, partition_by, options or {}) if base is None else None
            )
        )

    def append(self, rows: Given, *, evolve: bool = False) -> WriteResult:
        """Add rows; ``evolve`` adds columns that the table lacks. A DataFrame makes the table::

        orders.append(df, evolve=True)
        """
        return self._change(
            lambda base: append(
                self.place, base, self._frame(rows, base, whole=evolve), evolve=evolve
            )
        )

    def overwrite(self, rows: Given, *, partition_by: Sequence[str] | None = None) -> WriteResult:
        """Replace all rows, and the columns by those of the rows: ``orders.overwrite(df)``."""
        return self._change(
            lambda base: overwrite(
                self.place, base, self._frame(rows, base, whole=True), partition_by
            )
        )

    def replace_where(self, rows: Given, where: str) -> WriteResult:
        """Replace the rows of a condition by rows that satisfy it::

        orders.replace_where(df, "day = DATE '2026-05-01'")
        """
        return self._change(
            lambda base: replace_where(self._draft(base), self._frame(rows, base), where)
        )

    def delete(self, where: str | None = None) -> WriteResult:
        """Remove the rows of a condition, or all: ``orders.delete("id = 2")``."""
        return self._change(lambda base: delete(self._draft(base), where))

    def update(self, assignments: Mapping[str, str], where: str | None = None) -> WriteResult:
        """Set columns to expressions: ``orders.update({"price": "price * 2"}, "id = 2")``."""
        return self._change(lambda base: update(self._draft(base), assignments, where))

    def merge(
        self, source: Given, on: str | Sequence[str], clauses: Sequence[MergeClause] = UPSERT
    ) -> WriteResult:
        """Merge rows by keys, or by a condition on ``target`` and ``source``::

            orders.merge(df, ["id"])
            orders.merge(df, "target.id = source.id", [Delta.when("matched", "delete")])

        Without clauses matched rows are updated, others inserted. Raises MergeKeyError.
        """
        return self._change(
            lambda base: merge(
                self._draft(base), self._frame(source, base, whole=True), on, clauses
            )
        )

    def set_options(self, options: Mapping[str, str]) -> WriteResult:
        """Set Delta's options: ``orders.set_options({"delta.enableDeletionVectors": "true"})``."""
        return self._change(lambda base: set_options(self._draft(base), options))

    def comment(self, text: str | None, column: str | None = None) -> WriteResult:
        """Set the comment of the table or of a column: ``orders.comment("paid ones")``."""
        return self._change(lambda base: comment(self._draft(base), text, column))

    def _draft(self, base: Version | None) -> Draft:
        return Draft.of_version(self.place, base)

    def _frame(self, rows: Given, base: Version | None, *, whole: bool = False) -> DataFrame:
        schema = None if base is None else base.schema
        return frame_for(rows, self.place.spark_source, self.name, schema, whole=whole)

    def _change(self, plan: Callable[[Version | None], Work | None]) -> WriteResult:
        """Carry out a change of the newest version, again where others exclude it."""
        for left in reversed(range(_TRIES)):
            base = self.place.latest()
            work = plan(base)
            if work is None:
                return WriteResult(Change(), None)
            try:
                change, state = carry_out(work)
            except CommitConflict:
                if not left:
                    raise
            else:
                if state is not None and base is None:
                    self.made(self.name)
                return WriteResult(change, None if state is None else state.number)
        raise AssertionError("the last try has returned or raised")
