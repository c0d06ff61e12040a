"""Names in a query that mean nothing, told from the catalogs before Spark starts."""

from __future__ import annotations

from penstock.engine.pins import Pins
from penstock.engine.resolve import moment, quoted
from penstock.errors import ArgumentError, ColumnNotFound, LakeError, PenstockError
from penstock.lake.catalog.suggest import did_you_mean
from penstock.lake.format.files import Table
from penstock.model.constants import Bindings
from penstock.model.query import Query
from penstock.model.render import trial_names
from penstock.model.sources import TableSource
from penstock.sql import quoting
from penstock.sql.identifiers import fold
from penstock.sql.missing_columns import missing_columns
from penstock.sql.tables import Unreadable, analyse


def require_tables(
    query: Query, bindings: Bindings, pins: Pins, own: TableSource | None = None
) -> dict[TableSource, Table]:
    """The tables that the query reads, without views and ``own``, which is not made yet.

    Raises NotFound and ArgumentError, at their places, for tables and snapshots that are not there.
    """
    tables: dict[TableSource, Table] = {}
    for source in query.sources:
        if not isinstance(source, TableSource) or source == own:
            continue
        try:
            at = {} if source.at is None else moment(source.at, bindings)
            table = pins.require(source.table, at)
        except (ArgumentError, LakeError) as error:
            error.location = error.location or source.location
            raise
        if table is not None:
            tables[source] = table
    return tables


def require_columns(query: Query, tables: dict[TableSource, Table]) -> None:
    """Raise ColumnNotFound, at its place, for a name that is certainly a misspelt column.

    Spark says so of many more, which may be variables, parameters or fields.
    """
    names = trial_names(query.sources)
    rendered = query.render(quoted(names))
    try:
        tree = analyse(rendered.sql).tree
    except (Unreadable, PenstockError):
        return
    by_name = {fold(names[source]): table for source, table in tables.items()}
    known = {name: table.schema.names for name, table in by_name.items()}
    missing = min(missing_columns(tree, known), key=lambda missing: missing.start, default=None)
    if missing is None:
        return
    where = " or ".join(by_name[fold(name)].qualified_name for name in missing.tables)
    before = rendered.sql[: missing.start]
    error = ColumnNotFound(
        f"there is no column {missing.name!r} in {where}",
        hint=did_you_mean(missing.name, missing.columns, "columns"),
        data={"column": missing.name},
    )
    error.hint = quoting.hint(error, rendered.source.quoted) or error.hint
    error.location = rendered.locate(
        before.count("\n") + 1, missing.start - (before.rfind("\n") + 1)
    )
    raise error
