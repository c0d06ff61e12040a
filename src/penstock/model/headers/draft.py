"""Declarations of a header while it is read: lines, or a ``MODEL (...)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import Diagnostic, Location
from penstock.model.files.header_lines import CommentLine
from penstock.model.files.source_map import Source
from penstock.model.headers.syntax import Property, Value, Wrong
from penstock.model.script.declaration import Options
from penstock.model.script.script import Setting
from penstock.model.time.needs import Need, NeedLine
from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import ColumnLineage, ColumnType, Materialize, TableName
from penstock.model.values.custom_strategy import Materialization
from penstock.model.values.data_test import DataTest
from penstock.model.values.kinds import Kind
from penstock.model.values.names import Names
from penstock.model.values.schedule import Retry, Trigger
from penstock.model.values.strategy import Strategy

if TYPE_CHECKING:
    from penstock.model.headers.audit_blocks import AuditBlock


@dataclass(slots=True)
class LineDraft:
    """Filled line by line while a header is parsed, then frozen into ``Annotations``."""

    in_pipeline: bool = False
    macros: bool = False
    use_libs: list[str] = field(default_factory=list)
    triggers: list[Trigger] = field(default_factory=list)
    join_mode: str | None = None
    partition: PartitionSpec | None = None
    materialize: Materialize | None = None
    data_tests: list[tuple[DataTest, Location]] = field(default_factory=list)
    column_lineage: list[ColumnLineage] = field(default_factory=list)
    column_types: list[ColumnType] = field(default_factory=list)
    reads_changes: bool = False
    reads_files: bool = False
    late_run: bool = False
    needs: list[NeedLine] = field(default_factory=list)
    freshness: str | None = None
    debounce_default: str | None = None
    retry: Retry | None = None
    timeout: str | None = None
    tag: str | None = None
    dialect: str | None = None
    places: dict[str, Location] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)

    def warn(
        self, where: Location, message: str, hint: str | None = None, *, rule: str = ""
    ) -> None:
        self.findings.append(Diagnostic("warning", message, where, hint, rule))

    def error(
        self,
        where: Location,
        message: str,
        hint: str | None = None,
        *,
        rule: str = "",
        lost: str | None = None,
    ) -> None:
        """``lost`` is the keyword that goes missing: harmless where another line has it."""
        details = {"lost": lost} if lost else {}
        self.findings.append(Diagnostic("error", message, where, hint, rule, details))

    def drop(self, line: CommentLine, reason: str, form: str) -> None:
        """A line that is dropped where dropping is harmless."""
        self.warn(
            line.location,
            f"`{line.text}` is dropped: {reason}",
            f"write `{line.prefix} {form}`",
            rule=f"dropped-{line.keyword}",
        )

    def refuse(self, line: CommentLine, reason: str, form: str) -> None:
        """A line whose loss would write other data than the author asked for."""
        self.error(
            line.location,
            f"`{line.text}` cannot be read: {reason}",
            f"write `{line.prefix} {form}`",
            rule=f"dropped-{line.keyword}",
            lost=line.keyword,
        )


@dataclass(slots=True)
class BlockDraft:
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
