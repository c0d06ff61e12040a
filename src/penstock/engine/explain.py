"""What a query over the project's tables would read. Needs the catalogs only, no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.engine.choosing import analysed, predicates
from penstock.engine.pins import Pins
from penstock.engine.resolve import called, moment, quoted
from penstock.engine.unresolved import require_columns, require_tables
from penstock.lake.format.files import Table
from penstock.lake.queries.explain import Explanation, TableRead, read_of
from penstock.lake.snapshot import At
from penstock.model.constants import Bindings
from penstock.model.query import Query
from penstock.model.render import trial_names
from penstock.model.sources import FileSource, TableSource
from penstock.sql.conditions import Predicate


def explain(query: Query, pins: Pins, args: Mapping[str, Any], zone: str) -> Explanation:
    """For each source of the query, in the order of its text, what would be read.

    ``zone`` is the time zone that the query will run in. Raises NotFound, ArgumentError.
    """
    tables = require_tables(query, Bindings(), pins)
    require_columns(query, tables)
    names = trial_names(query.sources)
    rendered = query.render(quoted(names))
    found = predicates(analysed(rendered), names, {**args, **rendered.args(Bindings())}, zone)
    reads: list[TableRead] = []
    for source in query.sources:
        if isinstance(source, TableSource):
            reads.append(_read(source, tables.get(source), pins, found.get(source)))
        else:
            kind = "file" if isinstance(source, FileSource) else "function"
            reads.append(TableRead(called(source, Bindings()), kind))
    return Explanation(tuple(reads))


def _read(
    source: TableSource, table: Table | None, pins: Pins, keep: Predicate | None
) -> TableRead:
    name = str(source.table)
    if table is None:
        return TableRead(name, "view")
    lake = source.table.lake
    at = At(pins.versions[lake]) if source.at is None else At(**moment(source.at, Bindings()))
    catalog = pins.lakes[lake].catalog
    return replace(read_of(catalog, table, catalog.snapshot(at).id, keep), name=name)
