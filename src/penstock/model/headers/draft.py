"""Declarations of a header while it is read: lines, or a ``MODEL (...)``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from penstock.errors import Diagnostic, Location
from penstock.model.files.header_lines import CommentLine
from penstock.model.files.source_map import Source
from penstock.model.headers.audit_blocks import AuditBlock
from penstock.model.headers.syntax import NamedValue, Value, Wrong
from penstock.model.script.declaration import About, Declaration, Layout, Options
from penstock.model.time.needs import NeedLine
from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import ColumnLineage, ColumnType, Materialize, Names, TableName
from penstock.model.values.custom_strategy import Materialization
from penstock.model.values.data_test import DataTest
from penstock.model.values.kinds import Kind
from penstock.model.values.schedule import Cadence, CatchupLine, Retry, Schedule, Trigger


@dataclass(frozen=True, slots=True)
class Annotations:
    """The content of a header.

    ``places`` maps a keyword (``materialize``, ``pipeline``, ``on:0``, ``data_test:0``...) to where
    it stands.
    """

    in_pipeline: bool = False
    macros: bool = False
    use_libs: tuple[str, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    join_mode: str | None = None
    partition: PartitionSpec | None = None
    materialize: Materialize | None = None
    data_tests: tuple[DataTest, ...] = ()
    column_lineage: tuple[ColumnLineage, ...] = ()
    column_types: tuple[ColumnType, ...] = ()
    incremental: str | None = None
    late_run: bool = False
    needs: tuple[NeedLine, ...] = ()
    freshness: str | None = None
    debounce_default: str | None = None
    catchup: CatchupLine | None = None
    retry: Retry | None = None
    timeout: str | None = None
    tag: str | None = None
    dialect: str = "spark"
    places: Mapping[str, Location] = field(default_factory=dict, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``annotation-cases.jsonl``: only what is set."""
        values = {item.name: _to_json(getattr(self, item.name)) for item in fields(self)}
        values["needs"] = [{"table": need.asset, "of": need.text} for need in self.needs]
        if self.retry is not None:
            delay = {"delay": self.retry.delay} if self.retry.delay else {}
            values["retry"] = {"count": self.retry.count, **delay}
        values["freshness"] = self.freshness and {"duration": self.freshness}
        values["late_run"] = "run" if self.late_run else None
        values["dialect"] = self.dialect if self.dialect != "spark" else None
        del values["column_types"], values["places"]
        return {name.removesuffix("_run"): value for name, value in values.items() if value}


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


@dataclass(slots=True)
class LineDraft:
    """The annotations of the lines read so far, and what is wrong with them."""

    annotations: Annotations = field(default_factory=lambda: Annotations(dialect=""))
    places: dict[str, Location] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)

    def record(self, **values: Any) -> None:
        self.annotations = replace(self.annotations, **values)

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
    """The properties of a block that are read so far.

    ``values`` are by the fields of a declaration (``cadence.start``). ``given`` are the names of
    all properties in their order, and ``places`` has each; ``options`` are those of the kind by
    their names, and ``chosen`` as a value.
    """

    source: Source
    names: Names
    audits: Mapping[str, AuditBlock]
    materializations: Mapping[str, Materialization]
    values: dict[str, Any]
    kind: Kind | None = None
    given: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    key_expressions: tuple[str, ...] = ()
    chosen: Options = None
    places: dict[str, Location] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)

    @property
    def dialect(self) -> str:
        """The dialect of the script."""
        return str(self.values["dialect"])

    @property
    def target(self) -> TableName | None:
        """The table, where it has been named."""
        target: TableName | None = self.values.get("target")
        return target

    def refuse(self, error: Wrong) -> None:
        self.findings.append(error.diagnostic(self.source))

    def warn(self, at: int, message: str, hint: str | None, rule: str) -> None:
        where = self.source.location(at)
        self.findings.append(Diagnostic("warning", message, where, hint, rule))

    def place(self, prop: NamedValue | Value) -> Location:
        return self.source.location(prop.start)

    def error_at(self, what: str, message: str, hint: str | None) -> None:
        # an error that several properties make together
        where = self.places.get(what) or self.places["MODEL"]
        self.findings.append(Diagnostic("error", message, where, hint, "model-property"))


_PARTS: Mapping[str, Callable[..., object]] = {
    "schedule": Schedule,
    "cadence": Cadence,
    "layout": Layout,
    "about": About,
}


def build_declaration(values: Mapping[str, Any]) -> Declaration:
    """Build what a header declares.

    Args:
        values: Fields of a declaration by their names; those of its parts as ``cadence.start``.

    Returns:
        The declaration; a field without a value has its default.
    """
    fields: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        part, _, field_name = name.rpartition(".")
        (parts.setdefault(part, {}) if part else fields)[field_name] = value
    fields |= {part: _PARTS[part](**inner) for part, inner in parts.items()}
    return Declaration(**fields)
