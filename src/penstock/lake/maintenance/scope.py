"""What maintenance works on: a lake's catalog, and the tables that are meant."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from penstock.errors import SchemaNotFound
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.files import Table
from penstock.lake.naming import TableRef, fold
from penstock.lake.session import SparkSource


class HasCatalog(Protocol):
    """A lake, as far as maintenance needs one."""

    @property
    def catalog(self) -> Catalog: ...


@runtime_checkable
class HasSpark(Protocol):
    """A lake that may have a Spark session: the source raises EnvironmentMissing where not."""

    @property
    def spark_source(self) -> SparkSource: ...


def message_for(catalog: Catalog, what: str) -> str | None:
    """None, as DuckDB writes, but in a lake that takes no commit without a message."""
    return what if catalog.option("require_commit_message") == "true" else None


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
