"""What a model is: a strategy over a slice, a query, tests, and what triggers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import Diagnostic, Location
from penstock.model.asset import ColumnLineage, ColumnType, TableName
from penstock.model.data_test import DataTest
from penstock.model.partition import PartitionSpec
from penstock.model.query import Query
from penstock.model.schedule import Retry, Schedule


@dataclass(frozen=True, slots=True)
class TestScript:
    """The query of ``data_test <path>``: the rows it returns are failures.

    ``name`` is the path as the annotation has it.
    """

    __test__ = False  # not a test class, whatever pytest thinks of the name

    name: str
    query: Query


@dataclass(frozen=True, slots=True)
class Model:
    """One script of a project, in whatever form it says what it makes.

    ``name`` is the script's path below the models directory without its suffix, ``/`` kept
    (``clean/flights``). ``strategy`` is ``replace``, ``append``, ``merge``, ``history`` or
    ``manual``. ``keys`` is empty but for merge and history. ``reads`` are the managed tables its
    query refers to, in the order of first mention; ``on`` the tables its ``on`` lines name;
    ``test_reads`` those that only its data tests look at, its own not among them.
    ``definition_hash`` changes when the meaning of the script may have changed.
    ``places`` says where the script says each thing: ``target``, ``partition``, ``on:0``,
    ``data_test:0`` and so on.
    """

    name: str
    path: Path
    target: TableName
    strategy: str
    keys: tuple[str, ...]
    partition: PartitionSpec | None
    query: Query
    reads: tuple[TableName, ...]
    on: tuple[TableName, ...]
    definition_hash: str
    on_schema_change: str = "warn"
    data_tests: tuple[DataTest, ...] = ()
    test_scripts: tuple[TestScript, ...] = ()
    test_reads: tuple[TableName, ...] = ()
    column_types: tuple[ColumnType, ...] = ()
    column_lineage: tuple[ColumnLineage, ...] = ()
    schedule: Schedule = field(default_factory=Schedule)
    retry: Retry | None = None
    tags: tuple[str, ...] = ()
    places: Mapping[str, Location] = field(default_factory=dict, compare=False, repr=False)
    warnings: tuple[Diagnostic, ...] = ()

    def place(self, what: str) -> Location:
        """Where the script says ``what``; where that is not said, where it names its table."""
        return self.places.get(what) or self.places.get("target") or Location(self.path)

    @property
    def slicing(self) -> str:
        """What a slice of the table is; ``""`` where that is all of it."""
        return self.partition.slicing if self.partition else ""

    @property
    def lakes(self) -> tuple[str, ...]:
        """The lakes that it and its data tests read, each once."""
        tests = [lake for script in self.test_scripts for lake in script.query.lakes]
        tables = [table.lake for table in (*self.reads, *self.test_reads)]
        return tuple(dict.fromkeys([*tables, *self.query.lakes, *tests]))

    @property
    def inputs(self) -> tuple[TableName, ...]:
        """Everything upstream, each once, in order."""
        return tuple(dict.fromkeys((*self.reads, *self.on)))
