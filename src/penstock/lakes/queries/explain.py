"""Explain a query: for each of its tables the chosen files, and the conditions that chose them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.errors import QueryFailed
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.files import FileSet, Table
from penstock.lakes.format.naming import fold
from penstock.lakes.queries import running as queries
from penstock.lakes.queries import sparkless, travel
from penstock.lakes.queries.resolver import Resolver
from penstock.lakes.snapshot import Snapshot
from penstock.spark.session import session_zone
from penstock.sql.predicate import of_query
from penstock.sql.tables import Analysis, Reference
from penstock.sql.text import Predicate, Unreadable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class TableRead:
    """One reference to a table, or to another source of rows (with only its name and kind).

    ``rows`` counts those of the chosen files before deletes, and the inlined ones. ``used`` are the
    conditions of the query by which files were chosen, ``unused`` those on this table that cannot
    choose files; Spark applies all of them. ``answered`` by the catalog: no file is read.
    """

    name: str
    kind: str  # table, view, given (in views=) or, in a project, file or function
    snapshot: int | None = None
    files: int = 0
    of_files: int = 0
    bytes: int = 0
    of_bytes: int = 0
    rows: int = 0
    files_with_deletes: int = 0
    inlined_rows: int = 0
    inlined_deletes: int = 0
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    answered: bool = False

    def __str__(self) -> str:
        if self.kind != "table":
            return f"{self.name}: {self.kind}"
        lines = [f"{self.name} at snapshot {self.snapshot}"]
        if self.answered:
            lines.append("answered by the catalog, no file is read")
        lines += [
            f"files: {self.files:,} of {self.of_files:,}",
            f"bytes: {self.bytes:,} of {self.of_bytes:,}",
            f"rows at most: {self.rows:,}",
            *(f"chosen by: {part}" for part in self.used),
            *(f"not used to choose: {part}" for part in self.unused),
        ]
        if self.files_with_deletes:
            lines.append(f"files with deletes: {self.files_with_deletes:,}")
        if self.inlined_rows or self.inlined_deletes:
            lines.append(f"inlined: {self.inlined_rows:,} rows, {self.inlined_deletes:,} deletes")
        return "\n  ".join(lines)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The tables of a query in the order of its text; ``plan`` is Spark's, where asked for."""

    tables: tuple[TableRead, ...]
    plan: str | None = None

    def __str__(self) -> str:
        parts = [str(table) for table in self.tables] or ["no table is read"]
        return "\n".join([*parts, *([] if self.plan is None else ["", self.plan.rstrip()])])


@dataclass(frozen=True, slots=True)
class _Query:
    analysis: Analysis
    names: Resolver
    args: Mapping[str, Any]
    zone: str
    view_names: frozenset[str]

    def read(self, reference: Reference) -> TableRead:
        called = (
            reference.name if reference.schema is None else f"{reference.schema}.{reference.name}"
        )
        if reference.schema is None and fold(reference.name) in self.view_names:
            return TableRead(called, "given")
        at = (
            None
            if reference.travel is None
            else travel.point(reference.travel, self.args, self.zone)
        )
        snapshot = self.names.snapshot(at or self.names.at)
        table = self.names.find(reference, snapshot)
        return (
            TableRead(called, "view") if table is None else self._table(reference, table, snapshot)
        )

    def _table(self, reference: Reference, table: Table, snapshot: Snapshot) -> TableRead:
        catalog, analysis = self.names.catalog, self.analysis
        predicate = of_query(analysis.text, reference.node, zone=self.zone, args=self.args)
        read = read_of(catalog, table, snapshot.id, predicate)
        asked = sparkless.read_aggregates(analysis.tree, reference.node)
        if asked is None or not sparkless.has_exact_answer(catalog, table, snapshot.id, asked):
            return read
        return replace(read, files=0, bytes=0, answered=True)


def read_of(
    catalog: Catalog, table: Table, snapshot_id: int, predicate: Predicate | None
) -> TableRead:
    """Return what a read of the table with this predicate reads."""
    predicate = predicate or Predicate(None)
    chosen = catalog.files(table, snapshot_id, predicate)
    everything = chosen if predicate.condition is None else catalog.files(table, snapshot_id)
    rows, deletes = _inlined(chosen)
    return TableRead(
        name=table.qualified_name,
        kind="table",
        snapshot=snapshot_id,
        files=len(chosen.files),
        of_files=len(everything.files),
        bytes=_bytes(chosen),
        of_bytes=_bytes(everything),
        rows=sum(file.record_count for file in chosen.files) + rows,
        files_with_deletes=sum(bool(file.deletes) for file in chosen.files),
        inlined_rows=rows,
        inlined_deletes=deletes,
        used=predicate.used,
        unused=predicate.unused,
    )


def explain(
    names: Resolver,
    text: str,
    *,
    args: Mapping[str, Any] | None = None,
    views: Mapping[str, DataFrame] | None = None,
    plan: bool = False,
) -> Explanation:
    """Return what `queries.run` would read. With ``plan`` also what Spark would do.

    Raises what `queries.run` raises.
    """
    spark = names.spark()
    zone = session_zone(spark)
    bound = {name: travel.in_zone(value, zone) for name, value in (args or {}).items()}
    asked = queries.read_query(text, names)
    shown = None
    if plan:
        df = queries.run(spark, asked, names, args=args, views=views)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):  # PySpark only prints its plan
            df.explain("formatted")
        shown = printed.getvalue()
    analysis = asked.analysis
    if isinstance(analysis, Unreadable):
        raise QueryFailed(f"the tables of the query cannot be found in it{analysis}")
    query = _Query(analysis, names, bound, zone, frozenset(map(fold, views or {})))
    return Explanation(tuple(query.read(table) for table in analysis.tables), shown)


def _bytes(files: FileSet) -> int:
    return sum(file.size_bytes or 0 for file in files.files)


def _inlined(files: FileSet) -> tuple[int, int]:
    rows, deletes = files.inlined, files.inlined_deletes
    return (
        0 if rows is None else rows.count,
        0 if deletes is None else int(deletes.rows.num_rows),
    )
