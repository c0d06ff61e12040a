"""Setting the options of a lake, a schema or a table."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from penstock.errors import NameTaken
from penstock.lake.catalog import options as stored
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.format.inlined.text import SYSTEM
from penstock.lake.format.naming import TableRef, fold
from penstock.lake.format.option_values import INLINING_ROW_LIMIT, option_kind, option_text
from penstock.lake.snapshot import LATEST


def set_option(
    catalog: Catalog,
    key: str,
    value: object,
    *,
    schema: str | None = None,
    table: str | None = None,
) -> None:
    """Set an option for the lake, for a schema, or for a table (``name`` or ``schema.name``).

    ``None`` takes it away, so that the next wider scope counts again. It is written at once, in no
    snapshot. Raises ArgumentError for an unknown option or a value it does not take, SchemaNotFound
    and TableNotFound, NameTaken where rows are to be inlined whose table has a column that is
    called as inlined rows call one of their own (DuckDB refuses that, too).
    """
    write = option_writer(catalog, key, value, schema=schema, table=table)
    with catalog.writing() as connection:
        write(connection)


def option_writer(
    catalog: Catalog,
    key: str,
    value: object,
    *,
    schema: str | None = None,
    table: str | None = None,
) -> Callable[[Connection], None]:
    """What writes an option, once it is known that it can be. Raises as `set_option`."""
    name, text = (option_kind(key).name, None) if value is None else option_text(key, value)
    if table is not None and schema is None:
        ref = TableRef.parse(table)
        schema, table = ref.schema, ref.name
    if name == INLINING_ROW_LIMIT and text not in {None, "0"}:
        _refuse_reserved(catalog, schema, table)
    with catalog.reading() as connection:
        scope = stored.find_scope(connection, schema, table)
    return lambda connection: stored.write_option(connection, scope, name, text)


def _refuse_reserved(catalog: Catalog, schema: str | None, table: str | None) -> None:
    for one in catalog.tables(catalog.snapshot(LATEST).id):
        if (schema is not None and fold(one.schema_name) != fold(schema)) or (
            table is not None and fold(one.name) != fold(table)
        ):
            continue
        for column in one.schema.names:
            if fold(column) in SYSTEM:
                raise NameTaken(
                    f"rows of {one.qualified_name} cannot be inlined: its column {column!r} is "
                    "called like one that inlined rows have of their own",
                    hint="rename or drop the column before, or set the option for other tables",
                    data={"table": one.qualified_name, "column": column},
                )
