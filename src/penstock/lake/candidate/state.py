"""What a table will be if its transaction commits: a value, so that staging is plain arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.errors import UnsupportedFeature
from penstock.lake.catalog.files.registration import mapping_paths
from penstock.lake.format.changes import NewTable, Slice, TableChange, TagChanges
from penstock.lake.format.comparable import INTEGERS
from penstock.lake.format.files import (
    DataFile,
    DeleteFile,
    FileSet,
    NameMapping,
    PartitionField,
    Table,
)
from penstock.lake.format.inlined.staged import StagedInline
from penstock.lake.format.naming import fold
from penstock.lake.format.objects import SortKey
from penstock.lake.format.schema import Column, TableSchema


@dataclass(frozen=True, slots=True)
class Staged:
    """What one call staged. ``unchanged``: the content is what it was, and nothing was staged.

    ``rows_written`` are rows in new data files; ``slice_rows`` those of the slice (or table) after.
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
    """``files`` end whole; ``deletes`` are new delete files by data file id; ``rows`` go in all.

    ``added`` are files that hold what is left of staged ones among ``files``; ``inlined`` the ids
    of rows that end in the catalog; ``places`` are positions that are deleted there, by data file
    id; ``directories`` what was written.
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
    """A table inside a transaction. ``schema`` None: there is no such table (yet).

    ``base`` is the table at the transaction's snapshot; ``create`` one made here, in place of
    ``base`` when that is set too. ``ended`` and ``deletes`` go by the ids of base files.
    ``altered`` are the columns that ``base`` gets, all with ids; ``partitioning`` and ``sorting``
    what its files are laid out by from then on; ``name`` is the one it will have. ``dropped``:
    ``base`` goes, and unless ``create`` takes its place, nothing stays.
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
    # The columns that staged files of before an ALTER were written by, by their paths.
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
        """Of the partitioning in force; that of a table or partitioning made here has none yet."""
        if self.create is not None or self.base is None or self.partitioning is not None:
            return None
        return self.base.partition_id

    @property
    def reads_base(self) -> bool:
        """Whether rows of base files are still to be seen."""
        return self.base is not None and self.create is None and not self.dropped

    def files(self, base_files: FileSet) -> FileSet:
        """The files of the candidate state; ``base_files`` are those of ``base``.

        All that a staged delete file deletes counts, whichever snapshot it foresees.
        """
        staged = {key: replace(one, partial_max=None) for key, one in self.deletes.items()}
        kept = [
            replace(file, delete=staged[file.id], more_deletes=()) if file.id in staged else file
            for file in (base_files.files if self.reads_base else ())
            if file.id is not None and file.id not in self.ended
        ]
        files = (*kept, *self.added)
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
        """Which key of the partitioning is the plain value of ``column``."""
        for at, one in enumerate(self.partition_by):
            if one.transform == "identity" and fold(one.column) == fold(column):
                return at
        return None

    def split(
        self, files: Iterable[DataFile], column: str, text: str | None
    ) -> tuple[list[DataFile], list[DataFile]]:
        """Files that hold only rows of a slice, and files that may hold some of its rows."""
        at = self.partition_index(column)
        found = None if self.schema is None else self.schema.find(column)
        whole: list[DataFile] = []
        maybe: list[DataFile] = []
        for file in files:
            known = at is not None and file.partition_values is not None
            alike = found is None or _same_text(found, file)
            if not known or not alike or file.partition_id != self.partition_id:
                maybe.append(file)
            elif at is not None and file.partition_values and file.partition_values[at] == text:
                whole.append(file)
        return whole, maybe

    def base_name(self, column: Column) -> str | None:
        """What ``base`` calls the column; ``None`` where it has no such one, or of another type."""
        if not self.reads_base or self.base is None:
            return None
        known = {one.id: one for one in self.base.schema.columns}.get(column.id)
        return known.name if known is not None and known.type == column.type else None

    def change(self) -> TableChange | None:
        """What the commit is asked for; ``None`` when nothing was staged."""
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
    """Whether the catalog's text of a value in the file is that of the column's type.

    Of whole numbers it is the same in each; 1.5 may be 1.500 since the file was written.
    """
    if file.id is None and file.rewritten:  # staged before the columns changed
        return column.type != "float64"  # all others that a key gets are of whole numbers
    kinds = column.types_since(file.begin_snapshot)
    return len(kinds) < 2 or kinds <= INTEGERS


def renamed_fields(
    fields: Sequence[PartitionField], old: TableSchema, new: TableSchema
) -> tuple[PartitionField, ...]:
    """The keys of a partitioning, which go by column ids, by the names that the columns got."""
    names = {column.id: column.name for column in new.columns}
    found = ((one, old.find(one.column)) for one in fields)
    return tuple(
        one if column is None else replace(one, column=names.get(column.id, one.column))
        for one, column in found
    )


def restaged(candidate: Candidate, before: TableSchema, after: TableSchema) -> Candidate:
    """The candidate whose columns are about to change: how its staged files are read is fixed.

    Where names or types change, files get a name mapping of the columns that they were written by:
    that of one snapshot the catalog does not tell apart otherwise. The footers of the others tell.
    Ids of mappings that no commit has seen are below -1. Raises UnsupportedFeature for names or
    types of rows that were updated, whose ids DuckDB would not find.
    """
    taken = min((f.mapping_id for f in candidate.added if f.mapping_id is not None), default=0)
    now = {column.id: (column.name, column.type) for column in after.walk()}
    # Since then columns may have gone, and their names may be others' now.
    written_by = {f.path: candidate.written_by.get(f.path, before) for f in candidate.added}
    made: list[tuple[TableSchema, NameMapping]] = []

    def mapping(schema: TableSchema) -> NameMapping:
        own = next((one for known, one in made if known == schema), None)
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

    By them files of the table as it was ``before`` are read for what they are.
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
