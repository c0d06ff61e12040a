"""A header's declarations while its keywords are read."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.errors import Diagnostic, Location
from penstock.model.files.header_lines import CommentLine
from penstock.model.time.needs import NeedLine
from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import ColumnLineage, ColumnType, Materialize
from penstock.model.values.data_test import DataTest
from penstock.model.values.schedule import Retry, Trigger


@dataclass(slots=True)
class Draft:
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
