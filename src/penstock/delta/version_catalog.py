"""The catalog of one version of a Delta table, by which a lake's transaction changes its rows.

A database holds the definition of the table for as long as the change lasts. The statistics of the
log choose the files. Only a partitioned table has the footer of each chosen file read as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Self
from uuid import uuid4

from penstock.delta import vectors
from penstock.delta.actions import Add, DeletionVector, Metadata
from penstock.delta.place import Place, Version
from penstock.delta.pruning import matching
from penstock.delta.scan import absolute, in_utc, physical_rows
from penstock.delta.schema import table_schema
from penstock.errors import TableNotFound
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.catalog.files.registration import mapping_paths
from penstock.lake.format.changes import ChangeSet, NewTable, TableChange
from penstock.lake.format.files import DataFile, DeleteFile, FileSet, NameMapping, Table
from penstock.lake.format.partitioning import partition_fields
from penstock.lake.format.schema import TableSchema
from penstock.lake.writing.adding.files import hive_texts
from penstock.sql.identifiers import DEFAULT_SCHEMA, fold
from penstock.sql.text import Predicate


@dataclass(frozen=True, slots=True)
class Draft:
    """A version in the making, before rows change.

    Attributes:
        place: The table.
        base: The version that it follows; None for a new table.
        metadata: What the table will be.
        files: The files that it begins with. Others of the base are removed.
    """

    place: Place
    base: Version | None
    metadata: Metadata
    files: tuple[Add, ...] = ()

    @classmethod
    def of_version(cls, place: Place, base: Version | None) -> Draft:
        """Begin with a version as it is.

        Args:
            place: The table.
            base: The version; None where there is no table.

        Returns:
            The draft.

        Raises:
            TableNotFound: The table does not exist.
        """
        if base is None:
            raise TableNotFound(
                f"there is no Delta table {place.name} at {place.uri}",
                hint="make it: append rows to it, or create it",
                data={"table": place.name},
            )
        return cls(place, base, base.metadata, base.files)

    @property
    def schema(self) -> TableSchema:
        """Return the columns, with ids by their order."""
        return table_schema(self.metadata.schema_text)


@dataclass(slots=True)
class _Files:
    """The files of a draft as a lake's, each with its number from 1 on."""

    by_key: dict[tuple[str, str | None], DataFile] = field(default_factory=dict)
    adds: dict[int, Add] = field(default_factory=dict)
    mappings: dict[int, NameMapping] = field(default_factory=dict)


class VersionCatalog(Catalog):
    """The table and the files of a draft. Nothing is committed to it: see `version_commit`."""

    draft: Draft
    _visible: tuple[Add, ...]
    _folder: Path
    _listed: _Files | None = None

    @classmethod
    def of_draft(cls, draft: Draft, files: Sequence[Add], folder: str) -> Self:
        """Open the catalog of a draft.

        Args:
            draft: The version to be made.
            files: The files that are in the catalog.
            folder: A temporary directory, which lasts as long as the change.

        Returns:
            The catalog.
        """
        catalog = cls.open(
            f"ducklake:sqlite:{folder}/version.sqlite",
            data_path=draft.place.uri,
            inlining_row_limit=0,
            new_catalog=True,
        )
        catalog.draft, catalog._visible, catalog._folder = draft, tuple(files), Path(folder)
        catalog._define()
        return catalog

    def _define(self) -> None:
        schema, _, name = self.draft.place.name.partition(".")
        metadata = self.draft.metadata
        table = NewTable(
            str(uuid4()),
            self.draft.schema,
            f"{self.draft.place.uri.rstrip('/')}/",
            partition_fields(self.draft.schema, metadata.partition_by),
        )
        changes = ChangeSet(
            create_schemas=() if fold(schema) == DEFAULT_SCHEMA else (schema,),
            tables=(TableChange(schema, name, create=table),),
        )
        self.commit(self.latest(), changes)

    def files(self, table: Table, snapshot_id: int, predicate: Predicate | None = None) -> FileSet:  # noqa: ARG002 - of the shape of a lake's
        """Return the files of the table, chosen by the statistics of the log.

        Args:
            table: The table.
            snapshot_id: Its only snapshot.
            predicate: What rows satisfy; files that cannot hold some are left out.

        Returns:
            The files, with their numbers as ids.
        """
        listed = self._list(table)
        adds = matching(self._visible, self.draft.metadata, predicate)
        return FileSet(tuple(listed.by_key[file.key] for file in adds), listed.mappings)

    def pair_of(self, file_id: int) -> tuple[Add, DataFile]:
        """Return a file as the log has it, and as a lake's.

        Args:
            file_id: The number of the file.

        Returns:
            The two.
        """
        assert self._listed is not None, "a number is one of `files`"
        add = self._listed.adds[file_id]
        return add, self._listed.by_key[add.key]

    def _list(self, table: Table) -> _Files:
        if self._listed is not None:
            return self._listed
        listed, uri = _Files(), self.draft.place.uri
        numbers: dict[tuple[tuple[int, str], ...], int] = {}
        rows = [physical_rows(uri, add) for add in self._visible]
        starts = accumulate(rows, initial=0)
        for number, (add, count, start) in enumerate(
            zip(self._visible, rows, starts, strict=False), 1
        ):
            file = DataFile(
                path=absolute(uri, add.path),
                record_count=count,
                size_bytes=add.size,
                footer_size=0,
                id=number,
                begin_snapshot=table.begin_snapshot,
                row_id_start=start,
                uses_mapping=not table.partition_by,
                delete=self._deleted(number, add.vector),
            )
            if table.partition_by:
                mapping = _mapping(table, file.path, dict(add.values))
                partitions = tuple(mapping.partitions.items())
                mapping_id = numbers.setdefault(partitions, len(numbers) + 1)
                listed.mappings.setdefault(mapping_id, replace(mapping, id=mapping_id))
                file = replace(file, mapping_id=mapping_id)
            listed.by_key[add.key], listed.adds[number] = file, add
        self._listed = listed
        return listed

    def _deleted(self, number: int, vector: DeletionVector | None) -> DeleteFile | None:
        """The rows that are deleted already; those of a vector in the log itself as a file."""
        if vector is None:
            return None
        if vector.storage != "i":
            return vectors.as_delete_file(self.draft.place.uri, vector)
        content = vectors.framed(vectors.decoded(vector.path)[: vector.size])
        path = self._folder / f"{number}.bin"
        path.write_bytes(content)
        return DeleteFile(str(path), vector.cardinality, len(content), 0, format="vector")


def _mapping(table: Table, path: str, values: Mapping[str, str | None]) -> NameMapping:
    """The names of columns in a file of a partitioned table.

    Values of partitions are in its path, or else in the mapping itself.
    """
    keys = {key.column for key in table.partition_by}
    inside = hive_texts(path)
    partitions: dict[int, str] = {}
    for column in table.schema.columns:
        if column.name not in keys:
            continue
        text = values.get(column.name)
        if column.type == "timestamptz":
            text = in_utc(text)
        is_told = column.name in inside and inside[column.name] == text
        partitions[column.id or 0] = column.name if is_told else f"={text or ''}"
    held = [column for column in table.schema.columns if column.name not in keys]
    return NameMapping(None, dict(mapping_paths(held)), partitions)
