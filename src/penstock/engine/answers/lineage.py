"""The lineage of a project's columns, with the columns that its lakes know, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.model.definition.external import External
from penstock.model.definition.graph import table_key
from penstock.model.definition.model import Model
from penstock.model.lineage.models import Schemas, View, model_lineage
from penstock.model.lineage.values import VALUE
from penstock.model.query.query import read_query
from penstock.model.script.sources import table_read
from penstock.model.values.asset import Macros, Names, TableName
from penstock.settings.config import Settings
from penstock.sql.dialect import DUCKDB, SPARK
from penstock.sql.identifiers import LAKES

if TYPE_CHECKING:
    from penstock.lakes.catalog.catalog import Catalog, Catalogs
    from penstock.lakes.format.files import Table
    from penstock.lakes.format.objects import View as StoredView


_FEW = 20  # tables that are read one by one, and not with all others


def schemas(
    settings: Settings,
    catalogs: Catalogs,
    macros: Macros | None = None,
    externals: Sequence[External] = (),
    models: Sequence[Model] | None = None,
) -> Schemas:
    """The tables and views of all lakes at their latest snapshots; a table that is not there has
    the columns of its EXTERNAL model. With ``models`` perhaps only the tables that these name.
    """
    named = None if models is None else {table for model in models for table in _named(model)}
    tables = {
        table_key(each.table): tuple(column.name for column in each.columns)
        for each in externals
        if each.columns
    }
    views: dict[str, View] = {}
    lakes = [(lake, catalogs(lake)) for lake in settings.lakes]
    existing = [
        (lake, catalog, catalog.latest().id) for lake, catalog in lakes if catalog is not None
    ]
    for lake, catalog, latest in existing:
        views |= _read_views(lake, catalog, latest, macros)
    for lake, catalog, latest in existing:
        is_all = named is None or views  # a view may read any table
        names = None if is_all else [table for table in named or () if table.lake == lake]
        for table in _read_tables(catalog, latest, names):
            name = TableName(lake, table.schema_name, table.name)
            tables[table_key(name)] = tuple(column.name for column in table.schema.columns)
    columns = {name: lake.partition_column for name, lake in settings.lakes.items()}
    return Schemas(tables, views, columns)


def recorded(
    model: Model, columns_of: Callable[[TableName], Iterable[str]], partition_column: str
) -> dict[str, list[str]]:
    """Return what each column of a model's table derives from, as the state keeps it.

    ``columns_of`` are those of a table as the step saw it. Never fails: what cannot be read is
    left out.
    """
    tables: dict[str, tuple[str, ...]] = {}
    for table in model.query.reads:
        with suppress(PenstockError):  # its own table, before the first run
            tables[table_key(table)] = tuple(columns_of(table))
    known = Schemas(tables, {}, {model.target.lake: partition_column})
    try:
        columns = model_lineage(model, known).columns
    except (PenstockError, RecursionError):
        return {}
    return {
        column.name: [
            str(each) if each.kind == VALUE else f"{each} ({each.kind})" for each in column.inputs
        ]
        for column in columns
    }


def _named(model: Model) -> Iterator[TableName]:
    """Yield the tables whose columns the lineage of a model, and its tests, may look at."""
    yield model.target
    yield from (*model.inputs, *model.test_reads)
    for source in model.query.mentioned:
        table = table_read(source)
        if table is not None:
            yield table


def _read_tables(
    catalog: Catalog, latest: int, names: Sequence[TableName] | None
) -> Iterable[Table]:
    """Return the tables of a lake, or those with these names, if they are few."""
    if names is None or len(names) > _FEW:
        return catalog.tables(latest)
    tables = (catalog.find_table(name.schema, name.table, latest) for name in names)
    return [table for table in tables if table is not None]


def _read_views(lake: str, catalog: Catalog, latest: int, macros: Macros | None) -> dict[str, View]:
    # Late: they load SQLAlchemy, which a project without a catalog does not need.
    from penstock.lakes.catalog.definitions.stored_sql import load_views

    with catalog.reading() as connection:
        stored = load_views(connection, latest)
    views = (view_of(lake, view, macros) for view in stored)
    return {table_key(view.name): view for view in views}


def view_of(lake: str, view: StoredView, macros: Macros | None = None) -> View:
    """A stored view with its query read as a script's; what its names mean is the lake's."""
    name = TableName(lake, view.schema_name, view.name)
    if view.dialect not in {SPARK, DUCKDB}:
        return View(name, None, f"its SQL is of the dialect {view.dialect}")
    aliases: Mapping[str, str] = dict.fromkeys(LAKES, lake)
    names = Names((lake,), lake, aliases=aliases, use=(lake, view.schema_name), macros=macros)
    query, findings = read_query(
        view.sql, Path(str(name)), names=names, dialect=view.dialect, translates=False
    )
    if query is None:
        return View(name, None, findings[0].message if findings else "it cannot be read")
    return View(name, query, aliases=view.aliases)
