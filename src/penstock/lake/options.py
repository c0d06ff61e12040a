"""Setting the options of a lake, a schema or a table."""

from __future__ import annotations

from penstock.lake.catalog import option_writes
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.naming import TableRef
from penstock.lake.option_values import option_kind, option_text


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
    and TableNotFound.
    """
    name, text = (option_kind(key).name, None) if value is None else option_text(key, value)
    if table is not None and schema is None:
        ref = TableRef.parse(table)
        schema, table = ref.schema, ref.name
    with catalog.writing() as connection:
        scope = option_writes.find_scope(connection, schema, table)
        option_writes.write_option(connection, scope, name, text)
