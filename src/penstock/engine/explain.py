"""What a query over the project's tables would read. Needs the catalogs only, no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.engine.choosing import analysed, predicates
from penstock.engine.pins import table_name
from penstock.engine.resolve import called, moment, quoted
from penstock.errors import ArgumentError, NotFound
from penstock.lake.lake import Lake
from penstock.lake.naming import TableRef, fold
from penstock.lake.queries.explain import Explanation, TableRead, read_of
from penstock.lake.snapshot import At
from penstock.model.constants import Bindings
from penstock.model.query import Query
from penstock.model.render import trial_names
from penstock.model.sources import FileSource, TableSource
from penstock.sql.conditions import Predicate

Lakes = Mapping[str, Lake]


def explain(query: Query, lakes: Lakes, args: Mapping[str, Any], zone: str) -> Explanation:
    """For each source of the query, in the order of its text, what would be read.

    ``zone`` is the time zone that the query will run in. Raises NotFound, ArgumentError.
    """
    names = trial_names(query.sources)
    rendered = query.render(quoted(names))
    found = predicates(analysed(rendered), names, {**args, **rendered.args(Bindings())}, zone)
    reads: list[TableRead] = []
    for source in query.sources:
        if not isinstance(source, TableSource):
            kind = "file" if isinstance(source, FileSource) else "function"
            reads.append(TableRead(called(source, Bindings()), kind))
            continue
        try:
            reads.append(_table(source, lakes, found.get(source)))
        except (ArgumentError, NotFound) as error:
            error.location = error.location or source.location
            raise
    return Explanation(tuple(reads))


def _table(source: TableSource, lakes: Lakes, keep: Predicate | None) -> TableRead:
    lake = lakes[source.table.lake]
    ref = TableRef.parse(table_name(source.table))
    at = lake.at if source.at is None else At(**moment(source.at, Bindings()))
    snapshot = lake.catalog.snapshot(at)
    table = lake.catalog.find_table(ref.schema, ref.name, snapshot.id)
    if table is not None:
        return replace(read_of(lake.catalog, table, snapshot.id, keep), name=str(source.table))
    views = {(fold(one.schema_name), fold(one.name)) for one in lake.views(snapshot.id)}
    if (fold(ref.schema), fold(ref.name)) in views:
        return TableRead(str(source.table), "view")
    lake.catalog.table(ref.schema, ref.name, snapshot.id)
    raise AssertionError("a table that is not there was found")
