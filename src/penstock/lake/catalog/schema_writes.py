"""Writing schemas: creating and dropping them."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import CommitConflict
from penstock.lake.catalog import tables as t
from penstock.lake.catalog.state import SchemaEntry
from penstock.lake.catalog.work import Work
from penstock.lake.naming import directory_name, fold, new_uuid7


def create(work: Work, name: str) -> None:
    """Raises CommitConflict when there is one of this name."""
    if fold(name) in work.schemas:
        raise CommitConflict(f"there is a schema {name!r} already", hint="run it again")
    schema_id, uuid = work.ids.catalog(), new_uuid7()
    path = directory_name(name, uuid)
    row = {
        "schema_id": schema_id,
        "schema_uuid": uuid,
        "begin_snapshot": work.snapshot_id,
        "schema_name": name,
        "path": path,
        "path_is_relative": True,
    }
    work.insert(t.schema, [row])
    work.schemas[fold(name)] = SchemaEntry(schema_id, name, f"{work.data_path}{path}")
    work.tokens.named("created_schema", name)


def drop(work: Work, schema_id: int) -> None:
    """Drop a schema that is empty by now. Raises CommitConflict when it is not there any more."""
    key = next((key for key, one in work.schemas.items() if one.id == schema_id), None)
    if key is None or work.end(t.schema, t.schema.c.schema_id == schema_id) != 1:
        raise CommitConflict("the schema to drop is not there any more", hint="run it again")
    del work.schemas[key]
    work.tokens.of("dropped_schema", schema_id)


def find(schemas: Mapping[str, SchemaEntry], name: str) -> SchemaEntry:
    """The schema of this name. Raises CommitConflict when there is none."""
    found = schemas.get(fold(name))
    if found is None:
        raise CommitConflict(f"there is no schema {name!r} any more", hint="run it again")
    return found
