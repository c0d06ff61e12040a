"""Maintenance of one table's files as values: what a compaction commit writes.

A change set has either changes or compactions. `penstock.lake.catalog.files.compactions` writes
them as DuckDB 1.5.5 does (seen in its catalogs): history, row ids and the change feed stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.lake.files import DataFile, DeleteFile


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
    """Small files become larger ones that tell which snapshot made each row.

    The sources leave the catalog, at every snapshot, and are scheduled for deletion.
    """

    table_id: int
    table_name: str  # with the schema's, for messages
    table_path: str  # absolute, ends in "/"
    files: tuple[NewFile, ...]


@dataclass(frozen=True, slots=True)
class RewriteFiles:
    """Files with many deleted rows are written anew without those.

    The sources and their delete files end, so that older snapshots read them; the new files begin.
    """

    table_id: int
    table_name: str
    table_path: str
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
    """What the catalog itself held of a table up to ``snapshot_id`` becomes files.

    ``deletes`` are the delete files that fold in ``deleted`` inlined deletes, by data file id;
    they take the place of those in ``replaces`` (ids of delete files).
    """

    table_id: int
    table_name: str
    table_path: str
    snapshot_id: int
    flushed: tuple[Flushed, ...] = ()
    deletes: Mapping[int, DeleteFile] = field(default_factory=dict)
    deleted: int = 0
    replaces: frozenset[int] = frozenset()
