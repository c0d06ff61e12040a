"""The changes of one transaction in the catalog, as values. The commit assigns ids.

`check_together` says which changes and compactions go into one commit.
`penstock.lakes.catalog.files.maintenance_rows` writes compactions as DuckDB 1.5.5 does (seen in its
catalogs): history, row ids and the change feed stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Protocol

from penstock.errors import CommitError
from penstock.lakes.format.files import ColumnStats, DataFile, DeleteFile, PartitionField, Table
from penstock.lakes.format.objects import SortKey
from penstock.lakes.format.schema import TableSchema
from penstock.lazy import pa
from penstock.sql.macros import MacroForm

Tags = Mapping[str, str]
TagChanges = Mapping[str, str | None]  # None removes the tag


class Compaction(Protocol):
    """One piece of maintenance of one table; the kinds are in `penstock.lakes.format.changes`."""

    @property
    def table_id(self) -> int: ...


Slice = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table to create. Column ids are already assigned 1..n, parents first."""

    uuid: str
    schema: TableSchema
    path: str  # absolute directory, ends in "/"; stored relative to the schema's
    partition_by: tuple[PartitionField, ...] = ()
    sort_by: tuple[SortKey, ...] = ()
    tags: Tags = field(default_factory=dict)  # the comment is the tag ``comment``
    column_tags: Mapping[int, Tags] = field(default_factory=dict)  # by column id


@dataclass(frozen=True, slots=True)
class InlineChange:
    """Inlined rows of one table that a commit inserts and ends.

    ``insert`` has the table's columns, named by their field ids, with values as
    `lake.format.inlined.text` stores them; ``stats`` are their statistics. ``row_ids`` has an id
    for each inserted row (an update keeps its rows' ids), or ``None`` where the commit assigns it;
    ``None`` instead of the sequence means that the commit assigns all. ``end_rows`` are the row
    ids of inlined rows that end; ``delete`` are positions deleted from data files, by file id.
    """

    insert: pa.Table | None = None
    row_ids: tuple[int | None, ...] | None = None
    stats: tuple[ColumnStats, ...] = ()
    end_rows: tuple[int, ...] = ()
    delete: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableChange:
    """The change of one table in one commit.

    ``table_id`` None means that the commit creates the table. ``drops`` is the id of the table of
    this name that the same commit drops first (create or replace); with nothing else set, it only
    drops. ``schema`` on an existing table alters it: the full new list of columns, with ids.
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
    # The new rows depend on the rows that were read (as in a merge): then rows that others insert
    # meanwhile are a conflict, too, which the format itself would allow.
    depends_on_rows: bool = False
    # Slices that are replaced, by column, as it was called before, and the catalog's text of its
    # value: rows that others insert there meanwhile are a conflict, those elsewhere are not.
    replaces: tuple[Slice, ...] = ()
    table: Table | None = None  # as the transaction saw it: the commit need not read it again
    rename_to: str | None = None
    partition_by: tuple[PartitionField, ...] | None = None  # () resets, None leaves it
    sort_by: tuple[SortKey, ...] | None = None  # likewise
    tags: TagChanges = field(default_factory=dict)
    column_tags: Mapping[int, TagChanges] = field(default_factory=dict)
    inline: InlineChange | None = None

    @property
    def defines(self) -> bool:
        """Return whether the table is created, altered or dropped."""
        settings = (self.schema, self.partition_by, self.sort_by, self.rename_to, self.create)
        return (
            any(setting is not None for setting in settings)
            or self.drops is not None
            or bool(self.tags or self.column_tags)
        )

    @property
    def inserts_inlined(self) -> bool:
        """Return whether rows go into the catalog, of a table whose columns stay."""
        return self.inline is not None and self.inline.insert is not None and self.schema is None

    @property
    def only_adds(self) -> bool:
        """Return whether the only change is that an existing table gets rows."""
        inline = self.inline
        return (
            self.table_id is not None
            and not self.defines
            and not (self.end or self.deletes)
            and (inline is None or not (inline.end_rows or inline.delete))
        )


@dataclass(frozen=True, slots=True)
class NewView:
    """A view to create, replacing the view of id ``replaces`` when that is set.

    ``dialect`` is that of ``sql``: ``duckdb`` or ``spark``. ``aliases`` name its first columns.
    """

    schema_name: str
    name: str
    sql: str
    dialect: str = "duckdb"
    aliases: tuple[str, ...] = ()
    replaces: int | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class NewMacro:
    """A macro with its overloads, replacing the macro of id ``replaces`` when that is set."""

    schema_name: str
    name: str
    forms: tuple[MacroForm, ...]
    replaces: int | None = None


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """One commit: changes, ``compactions``, or both as far as `check_together` allows.

    ``create_schemas`` holds names; table changes, views and macros may refer to them. What is
    dropped, renamed or tagged is identified by its id. The same change set drops what dropped
    schemas contain. Those of ``create_schemas`` that are in ``needed_schemas``, by folded name, may
    exist by then.
    """

    create_schemas: tuple[str, ...] = ()
    tables: tuple[TableChange, ...] = ()
    drop_schemas: tuple[int, ...] = ()
    create_views: tuple[NewView, ...] = ()
    drop_views: tuple[int, ...] = ()
    rename_views: Mapping[int, str] = field(default_factory=dict)
    view_tags: Mapping[int, TagChanges] = field(default_factory=dict)
    create_macros: tuple[NewMacro, ...] = ()
    drop_macros: tuple[int, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    needed_schemas: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return any(getattr(self, part.name) for part in fields(self))


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file with the rows of ``sources``, data files of one table, by id, at least one.

    ``file`` is staged (id ``None``); of a rewrite it is ``None`` where no row was left. Of a merge
    it has the ``begin_snapshot`` of the first source, ``partial`` the last snapshot, and
    ``row_id_start`` unless it embeds row ids.
    """

    file: DataFile | None
    sources: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MergeFiles:
    """Small files become larger ones with a column for the snapshot that made each row.

    The sources leave the catalog, at every snapshot, and are scheduled for deletion.
    """

    table_id: int
    table_name: str  # with the schema's, for messages
    table_path: str  # absolute, ends in "/"
    files: tuple[NewFile, ...]


@dataclass(frozen=True, slots=True)
class Flushed:
    """The ``rows`` of one inlined table, called ``name``, as staged files.

    A file has its ``begin_snapshot`` and ``row_id_start``, the first of its rows; ``partial`` their
    last snapshot; ``delete`` the staged delete file of the rows that ended, with the snapshots in
    which they did.
    """

    name: str
    rows: int
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class FlushInlined:
    """The inlined rows and deletes of a table up to ``snapshot_id`` become files.

    ``deletes`` are the delete files that fold in ``deleted`` inlined deletes, by data file id;
    they replace the delete files whose ids are in ``replaces``.
    """

    table_id: int
    table_name: str
    table_path: str
    snapshot_id: int
    flushed: tuple[Flushed, ...] = ()
    deletes: Mapping[int, DeleteFile] = field(default_factory=dict)
    deleted: int = 0
    replaces: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class RewriteFiles:
    """Files with many deleted rows are rewritten without those.

    The sources and their delete files end, so older snapshots still read them; the new files begin.
    ``folded`` are the inlined deletes of the sources as delete files, which end with them: DuckDB
    1.5.5 would make delete files of them when it flushes, although their data files have ended, and
    read rows of older snapshots twice.
    """

    table_id: int
    table_name: str
    table_path: str
    files: tuple[NewFile, ...]
    folded: FlushInlined | None = None


@dataclass(frozen=True, slots=True)
class Uncommitted:
    """A compaction that an open transaction commits; ``discard`` removes its files."""

    compaction: Compaction
    discard: Callable[[], None]


def check_together(changes: ChangeSet) -> None:
    """Raise CommitError where compactions and changes do not go into one commit.

    A merge or rewrite excludes changes and flushes; DuckDB 1.5.5 refuses both at the COMMIT. A
    flush excludes changes of its table other than new rows, and a table is compacted only once:
    some combinations that DuckDB allows lose or double rows (measured).
    """
    flushes = [
        compaction for compaction in changes.compactions if isinstance(compaction, FlushInlined)
    ]
    others = [
        compaction for compaction in changes.compactions if not isinstance(compaction, FlushInlined)
    ]
    if others and (flushes or replace(changes, compactions=())):
        raise CommitError(
            "one transaction cannot both compact data files (merge_adjacent_files, "
            "rewrite_data_files) and change or flush something",
            hint="COMMIT or ROLLBACK between the two",
        )
    if len({compaction.table_id for compaction in changes.compactions}) < len(changes.compactions):
        raise CommitError(
            "a table would be compacted twice in one transaction",
            hint="COMMIT between the two",
        )
    for flush in flushes:
        if not fits(flush, changes.tables):
            raise CommitError(
                f"the inlined data of {flush.table_name} cannot be flushed in one transaction "
                "after a change of the table other than new rows",
                hint="COMMIT or ROLLBACK between the two",
            )


def fits(compaction: Compaction, changes: Sequence[TableChange]) -> bool:
    """Return whether the changes do not touch the rows that a flush has written."""
    return not isinstance(compaction, FlushInlined) or all(
        change.only_adds
        for change in changes
        if compaction.table_id in {change.table_id, change.drops}
    )
