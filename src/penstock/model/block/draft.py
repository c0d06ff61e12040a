"""A ``MODEL (...)`` while its properties are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import Diagnostic, Location
from penstock.model.block.syntax import Property, Value, Wrong
from penstock.model.files.source_map import Source
from penstock.model.script.declaration import Options
from penstock.model.script.script import Setting
from penstock.model.time.needs import Need
from penstock.model.values.asset import ColumnType, TableName
from penstock.model.values.custom_strategy import Materialization
from penstock.model.values.data_test import DataTest
from penstock.model.values.kinds import Kind
from penstock.model.values.names import Names
from penstock.model.values.strategy import Strategy

if TYPE_CHECKING:
    from penstock.model.block.audit_blocks import AuditBlock


@dataclass(slots=True)
class Draft:
    """``given`` are the names of all properties in their order, and ``places`` has each;
    ``chosen`` are the kind's options as a value; ``cadence``, ``layout`` and ``about`` have the
    fields of the values of these names.
    """

    source: Source
    names: Names
    dialect: str = "spark"
    audits: Mapping[str, AuditBlock] = field(default_factory=dict)
    materializations: Mapping[str, Materialization] = field(default_factory=dict)
    target: TableName | None = None
    kind: Kind | None = None
    given: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    key_expressions: tuple[str, ...] = ()
    chosen: Options = None
    cadence: dict[str, Any] = field(default_factory=dict)
    layout: dict[str, tuple[str, ...]] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    columns: list[ColumnType] = field(default_factory=list)
    data_tests: list[tuple[DataTest, Location]] = field(default_factory=list)
    depends_on: tuple[TableName, ...] = ()
    needs: tuple[tuple[TableName, Need], ...] = ()
    settings: tuple[Setting, ...] = ()
    tags: tuple[str, ...] = ()
    formatted: bool = True
    reads_changes: bool = False
    reads_files: bool = False
    late_run: bool = False
    enabled: bool = True
    places: dict[str, Location] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)

    @property
    def strategy(self) -> Strategy | None:
        return None if self.kind is None else self.kind.strategy

    def refuse(self, error: Wrong) -> None:
        self.findings.append(error.diagnostic(self.source))

    def warn(self, at: int, message: str, hint: str | None, rule: str) -> None:
        where = self.source.location(at)
        self.findings.append(Diagnostic("warning", message, where, hint, rule))

    def place(self, prop: Property | Value) -> Location:
        return self.source.location(prop.start)

    def error_at(self, what: str, message: str, hint: str | None) -> None:
        """An error that several properties make together, placed at ``what``."""
        where = self.places.get(what) or self.places["MODEL"]
        self.findings.append(Diagnostic("error", message, where, hint, "model-property"))
