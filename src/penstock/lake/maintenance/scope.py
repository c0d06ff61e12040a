"""What maintenance works on: a lake's catalog, and the tables that are meant."""

from __future__ import annotations

from typing import Protocol

from penstock.errors import SchemaNotFound
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.files import Table
from penstock.lake.naming import TableRef, fold


class HasCatalog(Protocol):
    """A lake, as far as maintenance needs one."""

    @property
    def catalog(self) -> Catalog: ...


def tables_meant(catalog: Catalog, table: str | None, schema: str | None) -> list[Table]:
    """The tables at the latest snapshot: one, those of a schema, or all.

    ``table`` may be ``schema.table``. Those with the option ``auto_compact`` off are left out, as
    DuckDB 1.5.5 does, also where they are named. Raises TableNotFound, SchemaNotFound.
    """
    latest = catalog.latest().id
    if table is not None:
        ref = TableRef.parse(table) if schema is None else TableRef(schema, table)
        found = [catalog.table(ref.schema, ref.name, latest)]
    else:
        found = catalog.tables(latest)
        if schema is not None:
            _check_schema(catalog, schema, latest)
            found = [one for one in found if fold(one.schema_name) == fold(schema)]
    return [one for one in found if catalog.option("auto_compact", one) != "false"]


def _check_schema(catalog: Catalog, schema: str, snapshot_id: int) -> None:
    names = catalog.schemas(snapshot_id)
    if fold(schema) not in map(fold, names):
        raise SchemaNotFound(
            f"there is no schema {schema!r} at snapshot {snapshot_id}",
            hint=f"the schemas are {', '.join(names)}",
            data={"schema": schema},
        )
