"""Declarations of a script besides its query, in whatever form: annotations or MODEL (...).

Both forms are read into a `Declaration`, and with its query that is a `Model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import Location
from penstock.model.script.script import Setting
from penstock.model.time.cron import AutoRestatement
from penstock.model.time.needs import Need
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.time_range import TimeRange
from penstock.model.values.asset import ColumnLineage, ColumnType, TableName, table_of
from penstock.model.values.custom_strategy import Custom
from penstock.model.values.data_test import DataTest
from penstock.model.values.history import History
from penstock.model.values.schedule import Cadence, Retry, Schedule
from penstock.model.values.seed import Seed
from penstock.model.values.strategy import Strategy
from penstock.model.values.upsert import Upsert

#: what a kind says besides: rules of a merge, how a history is kept, a class, the query of a seed
Options = Upsert | History | Custom | Seed | None
CHANGES, FILES = "changes", "files"  # what is new of an input
BY_TIME = "time"  # slices that are intervals, of whatever length


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """The treatment of columns that only the SELECT has, and of those that only the table has.

    ``added``: ``allow`` and ``warn`` add them (the latter says so), ``ignore`` leaves them out,
    ``error`` fails the step. ``missing``: ``allow`` and ``warn`` drop them, ``ignore`` and ``keep``
    leave them, NULL in new rows (the latter says so), ``error`` fails the step.
    """

    added: str = "warn"
    missing: str = "error"


@dataclass(frozen=True, slots=True)
class Layout:
    """Keys that files are partitioned and sorted by, as the lake writes them: ``month(at)``."""

    partitioned_by: tuple[str, ...] = ()
    clustered_by: tuple[str, ...] = ()

    @property
    def is_said(self) -> bool:
        """Return whether the model has one: without, a table keeps what it was given by others."""
        return bool(self.partitioned_by or self.clustered_by)


@dataclass(frozen=True, slots=True)
class About:
    """Information for people about a model; nothing acts on it."""

    description: str | None = None
    column_descriptions: tuple[tuple[str, str], ...] = ()
    owner: str | None = None
    stamp: str | None = None
    project: str | None = None
    grains: tuple[tuple[str, ...], ...] = ()
    references: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """``keys`` are columns, but for ``key_expressions``. ``time_range`` is that of kinds that have
    intervals, or may have them where their query reads by them. ``incremental``: its runs read only
    what is new of its input, ``changes`` where that gives the same table, or ``files``.
    ``late_run``: each run makes
    slices with late rows again. ``takes_statements``: some may follow its query.
    ``disable_restatement`` is None where the model says nothing of it, and its kind neither.
    ``input_needs`` is what it says of its inputs' slices.

    ``code`` is the offset at which the script's code begins. ``column_types`` are those that only a
    model which reads its own table needs; to ``columns`` the query's columns are cast.
    ``meaning`` says, for the definition's hash, how the table is written, and ``places`` where the
    script says each thing: ``target``, ``partition``, ``on:0``, ``data_test:0`` and so on.
    """

    path: Path
    target: TableName
    strategy: Strategy
    code: int = 0
    dialect: str = "spark"
    keys: tuple[str, ...] = ()
    key_expressions: tuple[str, ...] = ()
    options: Options = None
    partition: PartitionSpec | None = None
    layout: Layout = field(default_factory=Layout)
    schema_change: SchemaChange = field(default_factory=SchemaChange)
    forward_only: bool = False
    disable_restatement: bool | None = None
    auto_restatement: AutoRestatement | None = None
    incremental: str | None = None
    late_run: bool = False
    takes_statements: bool = False
    data_tests: tuple[DataTest, ...] = ()
    columns: tuple[ColumnType, ...] = ()
    column_types: tuple[ColumnType, ...] = ()
    column_lineage: tuple[ColumnLineage, ...] = ()
    depends_on: tuple[TableName, ...] = ()
    input_needs: tuple[tuple[TableName, Need], ...] = ()
    schedule: Schedule = field(default_factory=Schedule)
    cadence: Cadence = field(default_factory=Cadence)
    time_range: TimeRange | None = None
    retry: Retry | None = None
    timeout: str | None = None
    settings: tuple[Setting, ...] = ()
    tags: tuple[str, ...] = ()
    about: About = field(default_factory=About)
    formatted: bool = True
    meaning: Mapping[str, object] = field(default_factory=dict)
    places: Mapping[str, Location] = field(default_factory=dict, compare=False, repr=False)

    @property
    def reads_changes(self) -> bool:
        """Return whether its runs read what changed in its inputs since the run before."""
        return self.incremental == CHANGES

    @property
    def reads_files(self) -> bool:
        """Return whether its runs read files that no run before has read."""
        return self.incremental == FILES

    def place(self, what: str) -> Location:
        """Return where the script says ``what``; where that is not said, where
        it names its table.
        """
        return self.places.get(what) or self.places.get("target") or Location(self.path)

    @property
    def placed_tests(self) -> tuple[tuple[DataTest, Location], ...]:
        """The data tests in the order of the script, each with its place."""
        return tuple(
            (test, self.place(f"data_test:{number}")) for number, test in enumerate(self.data_tests)
        )

    @property
    def by_block(self) -> bool:
        """Return whether ``MODEL (...)`` declares it, and not header lines."""
        return "MODEL" in self.places

    @property
    def on(self) -> tuple[TableName, ...]:
        """The tables that trigger it."""
        assets = (trigger.asset for trigger in self.schedule.triggers)
        tables = (table_of(asset) for asset in assets if asset is not None)
        return tuple(dict.fromkeys(table for table in tables if table is not None))

    @property
    def upsert(self) -> Upsert:
        return self.options if isinstance(self.options, Upsert) else Upsert()

    @property
    def history(self) -> History | None:
        return self.options if isinstance(self.options, History) else None

    @property
    def custom(self) -> Custom | None:
        return self.options if isinstance(self.options, Custom) else None

    @property
    def generated(self) -> str:
        """The query of a kind that has none of its own."""
        return self.options.query if isinstance(self.options, Seed) else ""

    @property
    def keeps_columns(self) -> bool:
        """Return whether columns that the query does not make stay in its table."""
        return self.strategy.keeps_columns or self.partition is not None

    @property
    def keeps_removed_columns(self) -> bool:
        """Return whether its header says to keep columns that the query no longer returns."""
        return self.keeps_columns and self.schema_change.missing in {"keep", "ignore"}

    @property
    def replaces_table(self) -> bool:
        """Return whether each run makes the table what the SELECT returns, whatever it was."""
        return self.strategy.replaces and self.partition is None

    @property
    def ranges(self) -> TimeRange | None:
        """Its intervals, where its rows say which of them they are of."""
        return self.time_range if self.strategy.time_column else None

    @property
    def slicing(self) -> str:
        """Return what a slice of the table is; ``""`` where that is all of it."""
        if self.strategy.time_column:
            return BY_TIME
        return self.partition.slicing if self.partition else ""
