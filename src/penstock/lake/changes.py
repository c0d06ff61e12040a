"""What one transaction wants of the catalog, as values. Ids are given by the commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.lake.files import DataFile, DeleteFile, PartitionField
from penstock.lake.schema import TableSchema


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table to create. Column ids are already assigned 1..n, parents first."""

    uuid: str
    schema: TableSchema
    path: str  # absolute directory, ends in "/"; stored relative to the schema's
    partition_by: tuple[PartitionField, ...] = ()


@dataclass(frozen=True, slots=True)
class TableChange:
    """The change of one table in one commit.

    ``table_id`` None means created here. ``drops`` is the id of the table of this name that the
    same commit drops first (create or replace). ``schema`` set on an existing table means altered:
    the full new list of columns, with ids.
    """

    schema_name: str
    name: str
    table_id: int | None = None
    create: NewTable | None = None
    drops: int | None = None
    schema: TableSchema | None = None
    add: tuple[DataFile, ...] = ()
    end: tuple[int, ...] = ()  # data_file_ids that end whole
    deletes: Mapping[int, DeleteFile] | None = None  # data_file_id -> new, cumulative delete file
    # What is written follows from the rows that were seen (a merge, for instance): then rows that
    # others insert meanwhile are a conflict too, which the format by itself lets pass.
    depends_on_rows: bool = False


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """``create_schemas`` holds names; a table change may refer to them."""

    create_schemas: tuple[str, ...] = ()
    tables: tuple[TableChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create_schemas or self.tables)
