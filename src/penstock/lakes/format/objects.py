"""Objects of a lake besides tables (views, options), and descriptions of a table: tags, sort keys,
files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.lakes.format.files import DataFile, DeleteFile

COMMENT = "comment"  # the tag that COMMENT ON writes


@dataclass(frozen=True, slots=True)
class View:
    """A view at one snapshot. ``dialect`` is of its text: ``duckdb``, ``spark``, ...

    ``aliases`` name its first columns, in order; further ones keep their names.
    """

    id: int
    schema_name: str
    name: str
    dialect: str
    sql: str
    aliases: tuple[str, ...]
    begin_snapshot: int
    tags: Mapping[str, str] = field(default_factory=dict)
    column_tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # format 1.1

    @property
    def qualified_name(self) -> str:
        return f"{self.schema_name}.{self.name}"

    @property
    def comment(self) -> str | None:
        return self.tags.get(COMMENT)


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key that rows are sorted by in files: ``SortKey("id", direction="DESC")``."""

    expression: str
    dialect: str = "duckdb"
    direction: str = "ASC"  # or "DESC"
    nulls: str = "NULLS_LAST"  # or "NULLS_FIRST"

    @property
    def descending(self) -> bool:
        return self.direction == "DESC"

    @property
    def nulls_last(self) -> bool:
        return self.nulls == "NULLS_LAST"


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a table at one snapshot; ``column_tags`` by column."""

    tags: Mapping[str, str] = field(default_factory=dict)
    column_tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sorted_by: tuple[SortKey, ...] = ()

    @property
    def comment(self) -> str | None:
        return self.tags.get(COMMENT)

    def column_comment(self, column: str) -> str | None:
        return self.column_tags.get(column, {}).get(COMMENT)


@dataclass(frozen=True, slots=True)
class Option:
    """One option as it is stored. ``scope`` is GLOBAL, SCHEMA or TABLE, as DuckDB has it.

    ``entry`` is the schema's or table's name; ``None`` for a global one.
    """

    name: str
    value: str
    scope: str = "GLOBAL"
    entry: str | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A data file with the delete file in force, by the names of ``ducklake_list_files``."""

    data_file: str
    data_file_size_bytes: int
    data_file_footer_size: int | None
    data_file_encryption_key: bytes | None = None
    delete_file: str | None = None
    delete_file_size_bytes: int | None = None
    delete_file_footer_size: int | None = None
    delete_file_encryption_key: bytes | None = None


def listed(files: Iterable[DataFile]) -> list[ListedFile]:
    """Files as ``ducklake_list_files`` has them: one of several delete files once for each."""
    return [_listed(file, delete) for file in files for delete in file.deletes or (None,)]


def _listed(file: DataFile, delete: DeleteFile | None) -> ListedFile:
    if delete is None:
        return ListedFile(file.path, file.size_bytes, file.footer_size)
    return ListedFile(
        file.path,
        file.size_bytes,
        file.footer_size,
        delete_file=delete.path,
        delete_file_size_bytes=delete.size_bytes,
        delete_file_footer_size=delete.footer_size,
    )
