"""The state of a table if its transaction commits: a value, so that staging is arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.errors import UnsupportedFeature
from penstock.lakes.catalog.files.registration import mapping_paths
from penstock.lakes.format.changes import NewTable, Slice, TableChange, TagChanges
from penstock.lakes.format.files import (
    DataFile,
    DeleteFile,
    FileSet,
    NameMapping,
    PartitionField,
    Table,
)
from penstock.lakes.format.inlined.staged import StagedInline
from penstock.lakes.format.naming import fold
from penstock.lakes.format.objects import SortKey
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import INTEGERS


@dataclass(frozen=True, slots=True)
class Staged:
    """The result of one call. ``unchanged``: the content stays the same and nothing was staged.

    ``rows_written`` counts rows in new data files, ``slice_rows`` those of the slice (or table)
    after the call.
    """

    rows_written: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    fingerprint: str | None = None
    unchanged: bool = False
    slice_rows: int = 0


@dataclass(frozen=True, slots=True)
class Removed:
    """The rows that a change removes, ``rows`` of them in all.

    ``files`` end as a whole; ``deletes`` are new delete files by data file id; ``added`` are files
    with the rows that remain of staged files among ``files``; ``inlined`` are the ids of inlined
    rows that end; ``places`` are positions that the catalog notes as deleted, by data file id;
    ``directories`` are those that were written.
    """

    files: tuple[DataFile, ...] = ()
    deletes: Mapping[int, DeleteFile] = field(default_factory=dict)
    rows: int = 0
    directories: tuple[str, ...] = ()
    added: tuple[DataFile, ...] = ()
    inlined: tuple[int, ...] = ()
    places: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A table inside a transaction. ``schema`` is None where the table does not exist (yet).

    ``base`` is the table at the transaction's snapshot; ``create`` is a table that the transaction
    creates, replacing ``base`` if that is set too. ``ended`` and ``deletes`` use the ids of base
    files. ``altered`` are the columns that ``base`` gets, all with ids; ``partitioning`` and
    ``sorting`` are the layout of files from then on; ``name`` is the new name. ``dropped``: the
    transaction drops ``base``, and unless ``create`` is set no table remains.
    """

    schema_name: str
    name: str
    base: Table | None = None
    create: NewTable | None = None
    added: tuple[DataFile, ...] = ()
    ended: frozenset[int] = frozenset()
    deletes: Mapping[int, DeleteFile] = field(default_factory=dict)
    depends_on_rows: bool = False
    replaces: tuple[Slice, ...] = ()
    altered: TableSchema | None = None
    partitioning: tuple[PartitionField, ...] | None = None
    sorting: tuple[SortKey, ...] | None = None
    tags: TagChanges = field(default_factory=dict)
    column_tags: Mapping[int, TagChanges] = field(default_factory=dict)
    inline: StagedInline = field(default_factory=StagedInline)
    dropped: bool = False
    # The columns that staged files had before an ALTER, by their paths.
    written_by: Mapping[str, TableSchema] = field(default_factory=dict)

    @property
    def exists(self) -> bool:
        return (self.base is not None and not self.dropped) or self.create is not None

    @property
    def qualified_name(self) -> str:
        return f"{self.schema_name}.{self.name}"

    @property
    def schema(self) -> TableSchema | None:
        if self.create is not None:
            return self.create.schema
        if self.altered is not None and not self.dropped:
            return self.altered
        return None if self.base is None or self.dropped else self.base.schema

    @property
    def path(self) -> str | None:
        if self.create is not None:
            return self.create.path
        return None if self.base is None else self.base.path

    @property
    def partition_by(self) -> tuple[PartitionField, ...]:
        """The keys, by the names that their columns have now."""
        if self.create is not None:
            return self.create.partition_by
        if self.partitioning is not None:
            return self.partitioning
        if self.base is None:
            return ()
        if self.altered is None:
            return self.base.partition_by
        return renamed_fields(self.base.partition_by, self.base.schema, self.altered)

    @property
    def partition_id(self) -> int | None:
        """The id of the partitioning in force; a new table or partitioning has none yet."""
        if self.create is not None or self.base is None or self.partitioning is not None:
            return None
        return self.base.partition_id

    @property
    def reads_base(self) -> bool:
        """Return whether rows of base files are still visible."""
        return self.base is not None and self.create is None and not self.dropped

    def files(self, base_files: FileSet) -> FileSet:
        """The files of the candidate state; ``base_files`` are those of ``base``.

        Every position in a staged delete file counts, whichever snapshot it names.
        """
        staged = {key: replace(delete, partial_max=None) for key, delete in self.deletes.items()}
        of_base = [
            replace(file, delete=staged[file.id], more_deletes=()) if file.id in staged else file
            for file in (base_files.files if self.reads_base else ())
            if file.id is not None and file.id not in self.ended
        ]
        files = (*of_base, *self.added)
        own = {f.mapping.id: f.mapping for f in self.added if f.mapping and f.mapping.id}
        mappings = {**base_files.mappings, **own}
        if not self.reads_base:
            return self.inline.over(FileSet(files, mappings))
        return self.inline.over(replace(base_files, files=files, mappings=mappings))

    def with_files(self, added: Iterable[DataFile]) -> Candidate:
        return replace(self, added=(*self.added, *added))

    def without(
        self, files: Sequence[DataFile], deletes: Mapping[int, DeleteFile] | None = None
    ) -> Candidate:
        """Without these files, staged or not, and with these cumulative delete files."""
        ended = self.ended | {f.id for f in files if f.id is not None}
        staged = {f.path for f in files if f.id is None}
        merged = {**self.deletes, **(deletes or {})}
        return replace(
            self,
            added=tuple(f for f in self.added if f.path not in staged),
            ended=ended,
            deletes={key: value for key, value in merged.items() if key not in ended},
            inline=self.inline.without_files(ended),
        )

    def partition_index(self, column: str) -> int | None:
        """Return which key of the partitioning is the plain value of ``column``."""
        for at, key in enumerate(self.partition_by):
            if key.transform == "identity" and fold(key.column) == fold(column):
                return at
        return None

    def split(
        self, files: Iterable[DataFile], column: str, text: str | None
    ) -> tuple[list[DataFile], list[DataFile]]:
        """Files that hold only rows of a slice, and files that may hold some of its rows."""
        at = self.partition_index(column)
        schema_column = None if self.schema is None else self.schema.find(column)
        whole: list[DataFile] = []
        maybe: list[DataFile] = []
        for file in files:
            known = at is not None and file.partition_values is not None
            alike = schema_column is None or _same_text(schema_column, file)
            if not known or not alike or file.partition_id != self.partition_id:
                maybe.append(file)
            elif at is not None and file.partition_values and file.partition_values[at] == text:
                whole.append(file)
        return whole, maybe

    def base_name(self, column: Column) -> str | None:
        """The column's name in ``base``; ``None`` where it is missing or has another type."""
        if not self.reads_base or self.base is None:
            return None
        known = {base_column.id: base_column for base_column in self.base.schema.columns}.get(
            column.id
        )
        return known.name if known is not None and known.type == column.type else None

    def change(self) -> TableChange | None:
        """The changes for the commit; ``None`` when nothing was staged."""
        if self.create is not None:
            return TableChange(
                schema_name=self.schema_name,
                name=self.name,
                create=self.create,
                drops=None if self.base is None else self.base.id,
                add=self.added,
                depends_on_rows=self.depends_on_rows,
                inline=self.inline.change(self.create.schema),
            )
        if self.base is None:
            return None
        base = self.base
        if self.dropped:
            return TableChange(base.schema_name, base.name, drops=base.id)
        changed = TableChange(
            schema_name=base.schema_name,
            name=base.name,
            table_id=base.id,
            table=base,
            schema=self.altered,
            add=self.added,
            end=tuple(sorted(self.ended)),
            deletes=dict(self.deletes) or None,
            depends_on_rows=self.depends_on_rows,
            replaces=self.replaces,
            rename_to=self.name if self.name != base.name else None,
            partition_by=self.partitioning,
            sort_by=self.sorting,
            tags=self.tags,
            column_tags=self.column_tags,
            inline=self.inline.change(self.altered or base.schema),
        )
        nothing = TableChange(
            base.schema_name,
            base.name,
            base.id,
            table=base,
            depends_on_rows=self.depends_on_rows,
            replaces=self.replaces,
        )
        return None if changed == nothing else changed


def _same_text(column: Column, file: DataFile) -> bool:
    """Return whether the catalog's text of the file's value is the one that the column's type has
    now.

    Whole numbers have the same text in every type; 1.5 may have become 1.500.
    """
    if file.id is None and file.rewritten:  # staged before the columns changed
        return column.type != "float64"  # all others that a key gets are of whole numbers
    kinds = column.types_since(file.begin_snapshot)
    return len(kinds) < 2 or kinds <= INTEGERS


def renamed_fields(
    fields: Sequence[PartitionField], old: TableSchema, new: TableSchema
) -> tuple[PartitionField, ...]:
    """The keys of a partitioning under the columns' new names: keys belong to column ids."""
    names = {column.id: column.name for column in new.columns}
    pairs = ((key, old.find(key.column)) for key in fields)
    return tuple(
        key if column is None else replace(key, column=names.get(column.id, key.column))
        for key, column in pairs
    )


def same_fields(one: Sequence[PartitionField], other: Sequence[PartitionField]) -> bool:
    """Return whether both partition alike, whatever the letter case of their columns."""
    return [(fold(key.column), key.transform) for key in one] == [
        (fold(key.column), key.transform) for key in other
    ]


def restaged(candidate: Candidate, before: TableSchema, after: TableSchema) -> Candidate:
    """The candidate before its columns change, with staged files that stay readable.

    Where names or types change, files get a name mapping with the columns that they were written
    with: the catalog cannot tell two sets of columns of one snapshot apart. Mappings without a
    commit have ids below -1. Raises UnsupportedFeature where names or types change and rows were
    updated, whose row ids DuckDB would not find.
    """
    taken = min((f.mapping_id for f in candidate.added if f.mapping_id is not None), default=0)
    now = {column.id: (column.name, column.type) for column in after.walk()}
    # Since then columns may have been dropped and their names reused.
    written_by = {f.path: candidate.written_by.get(f.path, before) for f in candidate.added}
    made: list[tuple[TableSchema, NameMapping]] = []

    def mapping(schema: TableSchema) -> NameMapping:
        own = next((name_mapping for known, name_mapping in made if known == schema), None)
        if own is None:
            number = min(taken, -1) - 1 - len(made)
            own = NameMapping(number, dict(mapping_paths(schema.columns)))
            made.append((schema, own))
        return own

    def fixed(file: DataFile) -> DataFile:
        schema = written_by[file.path]
        changes = any(
            column.id in now and now[column.id] != (column.name, column.type)
            for column in schema.walk()
        )
        if file.mapping is not None or not (file.uses_mapping or changes):
            return replace(file, rewritten=True)
        if file.has_row_ids and not file.uses_mapping:
            # Under a mapping DuckDB looks for their column by another name than the file's.
            raise UnsupportedFeature(
                f"{candidate.qualified_name} has rows that this transaction updated: their columns "
                "cannot get other names or types in it",
                hint="commit before ALTER TABLE, or alter the table first",
            )
        own = mapping(schema)
        return replace(file, uses_mapping=False, mapping=own, mapping_id=own.id, rewritten=True)

    added = tuple(fixed(file) for file in candidate.added)
    return replace(candidate, added=added, written_by=written_by)


def with_versions(after: TableSchema, before: TableSchema, snapshot_id: int) -> TableSchema:
    """``after`` with the versions that its columns get in ``snapshot_id``.

    Files of the table ``before`` are read with the types of those versions.
    """
    known = {column.id: column for column in before.walk()}

    def versioned(column: Column) -> Column:
        old = known.get(column.id)
        past = () if old is None else old.versions
        if old is None or (old.name, old.type) != (column.name, column.type):
            past = (*past, (snapshot_id, column.type))
        children = tuple(map(versioned, column.children))
        return replace(column, versions=past, children=children)

    return TableSchema(tuple(map(versioned, after.columns)))
