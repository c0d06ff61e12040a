"""The public class of a Delta table: its rows at any version, and changes of one commit each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.delta import changes
from penstock.delta.merge import UPSERT, Clause, merge
from penstock.delta.place import HistoryEntry, Place, Version
from penstock.delta.scan import absolute
from penstock.delta.version_catalog import Draft
from penstock.delta.version_commit import Change, Work, carry_out
from penstock.errors import CommitConflict
from penstock.lake.format.schema import TableSchema
from penstock.lake.rows.given import frame_for
from penstock.lake.snapshot import Moment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.rows.given import Given

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
                changes.create(self.place, like, partition_by, options or {})
                if base is None
                else None
            )
        )

    def append(self, rows: Given, *, evolve: bool = False) -> WriteResult:
        """Add rows; ``evolve`` adds columns that the table lacks. A DataFrame makes the table::

        orders.append(df, evolve=True)
        """
        return self._change(
            lambda base: changes.append(
                self.place, base, self._frame(rows, base, whole=evolve), evolve=evolve
            )
        )

    def overwrite(self, rows: Given, *, partition_by: Sequence[str] | None = None) -> WriteResult:
        """Replace all rows, and the columns by those of the rows: ``orders.overwrite(df)``."""
        return self._change(
            lambda base: changes.overwrite(
                self.place, base, self._frame(rows, base, whole=True), partition_by
            )
        )

    def replace_where(self, rows: Given, where: str) -> WriteResult:
        """Replace the rows of a condition by rows that satisfy it::

        orders.replace_where(df, "day = DATE '2026-05-01'")
        """
        return self._change(
            lambda base: changes.replace_where(self._draft(base), self._frame(rows, base), where)
        )

    def delete(self, where: str | None = None) -> WriteResult:
        """Remove the rows of a condition, or all: ``orders.delete("id = 2")``."""
        return self._change(lambda base: changes.delete(self._draft(base), where))

    def update(self, assignments: Mapping[str, str], where: str | None = None) -> WriteResult:
        """Set columns to expressions: ``orders.update({"price": "price * 2"}, "id = 2")``."""
        return self._change(lambda base: changes.update(self._draft(base), assignments, where))

    def merge(
        self, source: Given, on: str | Sequence[str], clauses: Sequence[Clause] = UPSERT
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
        return self._change(lambda base: changes.set_options(self._draft(base), options))

    def comment(self, text: str | None, column: str | None = None) -> WriteResult:
        """Set the comment of the table or of a column: ``orders.comment("paid ones")``."""
        return self._change(lambda base: changes.comment(self._draft(base), text, column))

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
