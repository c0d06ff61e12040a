"""The rows of a step as staged data of its table: columns that fit, by the model's strategy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from penstock.destinations.values import Staged
from penstock.engine.checks.run import require_tests
from penstock.engine.history.current import stage_view
from penstock.engine.inputs.declared_columns import cast_to
from penstock.engine.inputs.pinned_tables import spark_types, types_of
from penstock.engine.planning.schema_change import difference, fit_columns
from penstock.engine.strategies.registry import strategy_of
from penstock.engine.strategies.target import AnyTarget, WriteTarget
from penstock.errors import (
    ArgumentError,
    ColumnNotFound,
    DataFileCorrupt,
    DataFileMissing,
    Location,
    MergeKeyError,
    PenstockError,
    QueryFailed,
    SchemaMismatch,
    StepError,
    UnsupportedFeature,
)
from penstock.events import EventSink, Notice
from penstock.model.definition.model import Model
from penstock.spark.struct_casts import fields_apart, without
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.destinations.destination import StagedTable, Transaction, Written


class StepRows(Protocol):
    """Rows that a script made, and where what is wrong with them is to be said."""

    @property
    def df(self) -> DataFrame: ...

    @property
    def start(self) -> Location:
        """Where the code that made them begins: for what no nearer place is known."""
        ...

    def placed(self, error: PenstockError) -> PenstockError:
        """An error of reading the rows, at its place in the script."""
        ...


@dataclass(frozen=True, slots=True)
class Writer:
    """``managed`` is the column that holds the slice's value."""

    model: Model
    managed: str
    session: SparkSession
    sink: EventSink

    def stage(
        self, tx: Transaction, table: StagedTable, made: StepRows, target: AnyTarget
    ) -> Staged:
        """Raises SchemaMismatch, MergeKeyError, QueryFailed and others, each placed."""
        for name in (self.managed, *self._managed(target)):
            refuse_managed(made.df.columns, name, made.start)
        rows = cast_to(made.df, self.model.columns)
        layout = self.model.layout
        self._require_sorting(rows, table)
        try:
            df = self._fit(table, rows, target)
            if layout.is_said and self.model.ranges is None:  # which lays the table out itself
                table.lay_out(layout.partitioned_by, layout.clustered_by)
            return self._by_strategy(tx, table, df, target)
        except (QueryFailed, DataFileCorrupt, DataFileMissing) as error:
            raise made.placed(error) from error.__cause__
        except SchemaMismatch as error:
            of_key = error.data.get("column") in self.model.key_columns
            error.location = error.location or (
                self.model.place("unique_key") if of_key else made.start
            )
            if self.model.history is not None and error.data.keys() >= {"added", "missing"}:
                error.hint = frozen(self.model)
            raise
        except (ArgumentError, ColumnNotFound, UnsupportedFeature) as error:  # of its keys
            if layout.is_said:
                error.location = error.location or self.model.place("partitioned_by")
            raise
        except MergeKeyError as error:
            error.location = self.model.place("unique_key")
            error.hint = of_several_intervals(error, self.model)
            raise
        except StepError as error:  # of a strategy of the project, or a time column
            what = "kind" if self.model.ranges is None else "time_column"
            error.location = error.location or self.model.place(what)
            raise

    def _by_strategy(
        self, tx: Transaction, table: StagedTable, df: DataFrame, target: AnyTarget
    ) -> Staged:
        if target.again and target.place and table.exists and self.model.strategy.merges:
            table.drop_slice(*target.place)
        begins = not table.exists
        staged = strategy_of(self.model).stage(table, df, target)
        stage_view(tx, self.model, begins=begins)
        return staged

    def _managed(self, target: AnyTarget) -> tuple[str, ...]:
        """Columns of the table that no SELECT has: the engine writes them."""
        history = self.model.history
        return (*target.partition_by, *(history.managed if history is not None else ()))

    def write_slices(self, table: StagedTable, made: StepRows, count: int) -> Written:
        """Write rows of ``count`` slices, which the managed column tells apart.

        Raises what `stage` does.
        """
        df = cast_to(made.df, self.model.columns)
        try:
            df = self._fit(table, df, WriteTarget(None, (self.managed, "")))
            return table.write_slices(df, self.managed, count)
        except (QueryFailed, DataFileCorrupt, DataFileMissing) as error:
            raise made.placed(error) from error.__cause__
        except SchemaMismatch as error:
            error.location = error.location or made.start
            raise

    def _fit(self, table: StagedTable, df: DataFrame, target: AnyTarget) -> DataFrame:
        """The columns that the table takes, by ``on_schema_change``."""
        if self.model.replaces_table or not table.exists:
            return df
        managed = self._managed(target)
        changes = difference(df.columns, table.schema.names, managed)
        if any(column.children for column in table.schema.columns):
            changes = changes.with_fields(*fields_apart(df, spark_types(table.schema)))
        merges, name = self.model.strategy.merges, self.model.target.qualified
        try:
            fit = fit_columns(changes, self.model.schema_change, name, merges=merges)
        except SchemaMismatch as error:
            option = "on_destructive_change" if error.data["missing"] else "on_additive_change"
            error.location = self.model.place(option)
            raise
        for notice in fit.notices:
            self.sink(Notice(notice, self.model.name))
        if fit.leave_out:
            df = without(df, fit.leave_out)
        if fit.evolves:
            table.evolve(df, drop=fit.drop)
        return df

    def _require_sorting(self, df: DataFrame, table: StagedTable) -> None:
        """Raise SchemaMismatch for a column to sort by that the table will not have."""
        kept = table.schema.names if table.exists and self.model.keeps_columns else []
        known = {fold(name) for name in (*df.columns, *kept, self.managed)}
        for name in self.model.layout.clustered_by:
            if fold(name) not in known:
                raise SchemaMismatch(
                    f"no column {name!r} to sort by",
                    hint=f"the columns are {', '.join(df.columns)}",
                    location=self.model.place("clustered_by"),
                )

    def check_tests(self, df: DataFrame, table: StagedTable) -> None:
        """Refuse data tests of columns that the table will not have, before rows are written."""
        kept = table.exists and self.model.keeps_columns
        types = {**(types_of(table.schema) if kept else {}), **dict(df.dtypes)}
        if self.model.partition is not None:
            types.setdefault(self.managed, "string")
        require_tests(self.model, types, self.session)


def of_several_intervals(error: MergeKeyError, model: Model) -> str | None:
    """The hint of the error: a key may come once in each of the intervals that are made at once."""
    by_time = model.by_time
    if by_time is None or by_time.batch_size == 1 or not error.data.get("duplicate_count"):
        return error.hint
    return f"{error.hint}; a key that comes in several intervals needs batch_size 1"


def refuse_managed(columns: Sequence[str], managed: str, location: Location) -> None:
    """The partition column is the engine's to write (seeds/materialization.md)."""
    if fold(managed) in map(fold, columns):
        raise SchemaMismatch(
            f"the SELECT has a column {managed}, which Penstock writes itself",
            hint=f"leave it out, as in SELECT * EXCEPT ({managed}), or give it another name",
            location=location,
            data={"column": managed},
        )


def frozen(model: Model) -> str:
    """The ways on where a history's columns are not those of its SELECT: versions that are closed
    keep what they had."""
    adds = "on_schema_change=sync"
    if model.history is not None and model.history.is_current is None:
        adds = "on_additive_change allow"
    refresh = f"`penstock run {model.name} --full-refresh`"
    if model.disable_restatement:
        refresh += " (with disable_restatement false)"
    return (
        f"the columns of a history are frozen: {adds} adds new ones, and {refresh} starts the "
        "history over; earlier snapshots keep what is there"
    )


def describe(table: StagedTable, model: Model) -> None:
    """Stage the comments that the model gives and the table does not have yet.

    A comment on what the model does not describe stays as a user wrote it; what it says of
    other columns is left out (`undescribable`).
    """
    if model.about.description is None and not model.about.column_descriptions:
        return
    own, columns = table.comments()
    if model.about.description not in (None, own):
        table.comment(model.about.description)
    names = {fold(name): name for name in table.schema.names}
    for column, text in model.about.column_descriptions:
        name = names.get(fold(column))
        if name is not None and columns.get(name) != text:
            table.comment(text, name)


def undescribable(model: Model, columns: Iterable[str]) -> str | None:
    """Find faults of the columns that the model describes, where its table has these."""
    known = set(map(fold, columns))
    others = [name for name, _ in model.about.column_descriptions if fold(name) not in known]
    if not others:
        return None
    return f"column_descriptions describes {', '.join(others)}, which the table does not have"
