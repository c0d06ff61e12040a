"""The definition of one table inside a transaction: created, altered, laid out, commented, dropped.

Everything is a change of the candidate state, which the commit writes into the catalog. Column
names that inlined tables use themselves are refused for new columns, as by DuckDB, while small
inserts are inlined by the nearest ``data_inlining_row_limit``; where the limit is 0 they are taken,
and such a table is never inlined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import sqlglot

from penstock.errors import ColumnNotFound, NameTaken, SchemaMismatch, UnsupportedFeature
from penstock.lakes.candidate.state import (
    Candidate,
    renamed_fields,
    restaged,
    same_fields,
    with_versions,
)
from penstock.lakes.candidate.table import CandidateTable
from penstock.lakes.catalog.definitions import tables
from penstock.lakes.catalog.inlined.writes import row_limit
from penstock.lakes.catalog.statistics.totals import columns_without_nulls
from penstock.lakes.format.changes import NewTable, TagChanges
from penstock.lakes.format.files import PartitionField
from penstock.lakes.format.inlined.text import SYSTEM
from penstock.lakes.format.naming import directory_name, fold, new_uuid7, quote_identifier
from penstock.lakes.format.objects import COMMENT, SortKey
from penstock.lakes.format.partitioning import partition_columns
from penstock.lakes.format.schema import (
    Column,
    TableSchema,
    assign_ids,
    assign_missing_ids,
    can_widen,
)
from penstock.lakes.reading.parquet.footers import remove_directory
from penstock.lazy import exp
from penstock.sql.identifiers import quoted
from penstock.sql.text import Unreadable, parse_expression


class DefinableTable(CandidateTable):
    """One table inside a transaction, as far as its definition goes. For one thread at a time."""

    _next_column_id = 0
    _aside: list[str] | None = None  # directories to be removed once a call has not failed
    renaming: Callable[[str, str], None] | None = None  # the transaction's: it knows all names

    def create(
        self,
        schema: TableSchema,
        *,
        partition_by: Sequence[PartitionField] = (),
        sort_by: Sequence[SortKey] = (),
        comment: str | None = None,
        column_comments: Mapping[str, str] | None = None,
    ) -> None:
        """Create the table with these columns, replacing the one that exists, if any.

        Columns are renumbered; their initial default, which older rows get, is their default.
        """
        numbered = assign_ids(TableSchema(tuple(map(_with_initial, schema.columns))))
        _check_names(numbered.columns, self._candidate.qualified_name)
        self._refuse_reserved(numbered.names)
        partition_columns(numbered, partition_by)
        _check_keys(sort_by, numbered)
        uuid = new_uuid7()
        start = self._candidate
        directory = self._context.schema_path(start.schema_name)
        comments = {
            self._id_in(numbered, name): {COMMENT: text}
            for name, text in (column_comments or {}).items()
        }
        self._remove_staged()
        self._candidate = Candidate(
            start.schema_name,
            start.name,
            start.base,
            NewTable(
                uuid,
                numbered,
                f"{directory}{directory_name(start.name, uuid)}",
                tuple(partition_by),
                tuple(sort_by),
                {} if comment is None else {COMMENT: comment},
                comments,
            ),
        )

    def drop(self) -> None:
        """Drop the table and all that was staged for it. Raises TableNotFound."""
        self.schema  # noqa: B018 - raises where there is no table
        self._remove_staged()
        base = self._candidate.base
        start = Candidate(self._candidate.schema_name, self._candidate.name, base)
        self._candidate = replace(start, dropped=base is not None)

    def alter(self, schema: TableSchema) -> None:
        """Give the table these columns: a column with an id replaces the one that has the id, a
        column without an id is new, and columns that are missing are dropped (see `lake.alter`).

        The columns that it has stage nothing: a commit that alters a table excludes those of all
        who write to it. Raises SchemaMismatch for a column that is to be NOT NULL and has NULLs,
        UnsupportedFeature for one that the table is partitioned or sorted by and that is dropped.
        """
        before, candidate = self.schema, self._candidate
        if schema == before:
            return
        after = self.numbered(schema)
        _check_names(after.columns, candidate.qualified_name)
        were = set(before.names)
        self._refuse_reserved([name for name in after.names if name not in were])
        self._refuse_dropped_keys(after)
        self._refuse_retyped_keys(before, after)
        self._check_required(before, after)
        keys = self.sort_keys()
        renamed = _renamed_keys(keys, before, after)
        staged = restaged(self._candidate, before, after)
        create = staged.create
        if create is not None:
            fields = renamed_fields(create.partition_by, before, after)
            create = replace(create, schema=after, partition_by=fields, sort_by=renamed)
            self._candidate = replace(staged, create=create)
            return
        if staged.base is not None:
            after = with_versions(after, staged.base.schema, self._context.base.id + 1)
        self._candidate = replace(
            staged,
            altered=after,
            partitioning=None
            if staged.partitioning is None
            else renamed_fields(staged.partitioning, before, after),
            sorting=renamed if renamed != keys else staged.sorting,
        )

    def numbered(self, schema: TableSchema) -> TableSchema:
        """``schema`` with new ids, which the table never used, for columns without an id."""
        base, create = self._candidate.base, self._candidate.create
        used = max((column.id or 0 for column in self.schema.walk()), default=0) + 1
        first = self._next_column_id
        if not first and base is not None and create is None:
            first = self._context.catalog.next_column_id(base)
        numbered = assign_missing_ids(schema, max(first, used))
        last = max((column.id or 0 for column in numbered.walk()), default=0)
        self._next_column_id = max(first, used, last + 1)
        return numbered

    def set_partitioning(self, fields: Sequence[PartitionField]) -> None:
        """Partition later writes by these keys; without keys they are not partitioned.

        The keys that it has stage nothing, as in `alter`.
        """
        partition_columns(self.schema, fields)
        if same_fields(fields, self._candidate.partition_by):
            return
        # Files that were staged for a partitioning which no commit ever sees have none.
        added = tuple(
            file if file.partition_id is not None else replace(file, partition_values=None)
            for file in self._candidate.added
        )
        candidate = replace(self._candidate, added=added)
        if candidate.create is not None:
            create = replace(candidate.create, partition_by=tuple(fields))
            self._candidate = replace(candidate, create=create)
        else:
            self._candidate = replace(candidate, partitioning=tuple(fields))

    def set_sorting(self, keys: Sequence[SortKey]) -> None:
        """Sort later writes and compactions by these keys; without keys they are not sorted.

        The keys that it has stage nothing, as in `alter`.
        """
        _check_keys(keys, self.schema)
        if tuple(keys) == self.sort_keys():
            return
        if self._candidate.create is not None:
            create = replace(self._candidate.create, sort_by=tuple(keys))
            self._candidate = replace(self._candidate, create=create)
        else:
            self._candidate = replace(self._candidate, sorting=tuple(keys))

    def sort_keys(self) -> tuple[SortKey, ...]:
        """Return what the table's rows are sorted by."""
        candidate = self._candidate
        if candidate.create is not None:
            return candidate.create.sort_by
        if candidate.sorting is not None or candidate.base is None:
            return candidate.sorting or ()
        with self._context.catalog.reading() as connection:
            described = tables.describe(connection, candidate.base, self._context.base.id)
        return described.sorted_by

    def comments(self) -> tuple[str | None, Mapping[str, str]]:
        """Comments on the table and, by name, on its columns: as they were before this transaction
        for a table that it has not created.
        """
        candidate = self._candidate
        if candidate.create is not None:
            create = candidate.create
            tags = {
                column.name: create.column_tags.get(column.id, {})
                for column in create.schema.columns
                if column.id is not None
            }
            return create.tags.get(COMMENT), _comments(tags)
        if candidate.base is None:
            return None, {}
        with self._context.catalog.reading() as connection:
            described = tables.describe(connection, candidate.base, self._context.base.id)
        return described.tags.get(COMMENT), _comments(described.column_tags)

    def comment(self, text: str | None, column: str | None = None) -> None:
        """Comment on the table, or on one of its columns; ``None`` removes the comment."""
        candidate, tags = self._candidate, {COMMENT: text}
        column_id = None if column is None else self._id_in(self.schema, column)
        create = candidate.create
        if create is not None:
            self._candidate = replace(candidate, create=_tagged(create, column_id, tags))
        elif column_id is None:
            self.schema  # noqa: B018 - raises where there is no table
            self._candidate = replace(candidate, tags={**candidate.tags, **tags})
        else:
            both = {**candidate.column_tags.get(column_id, {}), **tags}
            column_tags = {**candidate.column_tags, column_id: both}
            self._candidate = replace(candidate, column_tags=column_tags)

    def rename(self, name: str) -> None:
        """Rename the table within its schema; its files do not move. Raises NameTaken."""
        if self.renaming is None:
            raise ValueError("a table is renamed in a transaction")
        full_name = (self._candidate.schema_name, self._candidate.name)
        self.renaming(".".join(quote_identifier(part) for part in full_name), name)

    def take_name(self, name: str) -> None:
        """Take a name that the transaction has found to be free; the directory stays."""
        self.schema  # noqa: B018 - raises where there is no table
        self._candidate = replace(self._candidate, name=name)

    def forget_base(self) -> None:
        """Start without a table: the table that had this name was renamed."""
        self._start = Candidate(self._start.schema_name, self._start.name)
        self._candidate = self._start

    def _remove_staged(self) -> None:
        if self._aside is not None:
            self._aside += self._directories
        else:
            for directory in self._directories:
                remove_directory(directory)
        self._directories.clear()

    def _refuse_reserved(self, names: Sequence[str]) -> None:
        """Refuse new columns that have the name of a column of the catalog's own."""
        if not any(fold(name) in SYSTEM for name in names):
            return
        context, candidate = self._context, self._candidate
        limit = row_limit(context.catalog, candidate.base, schema=candidate.schema_name)
        refuse(names, candidate.qualified_name, limit)

    def _id_in(self, schema: TableSchema, name: str) -> int:
        column = schema.find(name)
        if column is None or column.id is None:
            return self._column(name).id or 0  # raises ColumnNotFound
        return column.id

    def _refuse_retyped_keys(self, before: TableSchema, after: TableSchema) -> None:
        """Refuse a new type for a key unless it is wider: then texts and hashes stay the same."""
        kinds = {column.id: column.type for column in after.columns}
        for key in self._candidate.partition_by:
            old = before.find(key.column)
            new = None if old is None else kinds.get(old.id)
            if old is None or new is None or old.type == new or can_widen(old.type, new):
                continue
            raise UnsupportedFeature(
                f"column {old.name!r} is {old.type}, and what the table is partitioned by cannot "
                f"become {new}",
                hint="reset the partitioning first",
                data={"column": old.name, "old": old.type, "new": new},
            )

    def _refuse_dropped_keys(self, after: TableSchema) -> None:
        left = {column.id for column in after.columns}
        dropped = {fold(c.name): c.name for c in self.schema.columns if c.id not in left}
        keys = {fold(field.column) for field in self._candidate.partition_by}
        sort_keys = self.sort_keys() if dropped else ()
        sorted_by = {fold(name) for key in sort_keys for name in _names(key)}
        for doing, used in (("partitioned", keys), ("sorted", sorted_by)):
            for key in dropped.keys() & used:
                raise UnsupportedFeature(
                    f"{self._candidate.qualified_name} is {doing} by column {dropped[key]!r}, "
                    "which cannot be dropped",
                    hint=f"RESET {doing.upper()} BY first, or take other keys",
                    data={"table": self._candidate.qualified_name, "column": dropped[key]},
                )

    def _check_required(self, before: TableSchema, after: TableSchema) -> None:
        """Check that columns which become NOT NULL hold no NULL."""
        were = {column.id for column in before.columns if column.nullable}
        asked = [c for c in after.columns if not c.nullable and c.id in were]
        candidate = self._candidate
        added = bool(candidate.added or candidate.inline.parts)
        if not asked or (candidate.create is not None and not added):
            return
        if candidate.reads_base and candidate.base is not None and not added:
            with self._context.catalog.reading() as connection:
                known = columns_without_nulls(connection, candidate.base.id)
            asked_still = [c for c in asked if c.id not in known]
        else:
            asked_still = asked
        names = {column.id: column.name for column in before.columns}
        for column in asked_still:
            rows = self.to_df().where(f"{quoted(names[column.id])} IS NULL")
            if rows.limit(1).collect():
                raise SchemaMismatch(
                    f"column {column.name!r} of {candidate.qualified_name} has NULLs, so it cannot "
                    "become NOT NULL",
                    hint="give these rows a value first",
                    data={"table": candidate.qualified_name, "column": column.name},
                )
        # Rows that others add meanwhile may have NULLs.
        self._candidate = replace(candidate, depends_on_rows=True)


def _comments(tags: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    return {name: own[COMMENT] for name, own in tags.items() if own.get(COMMENT) is not None}


def _tagged(new: NewTable, column_id: int | None, tags: TagChanges) -> NewTable:
    if column_id is None:
        return replace(new, tags=_applied(new.tags, tags))
    own_tags = _applied(new.column_tags.get(column_id, {}), tags)
    return replace(new, column_tags={**new.column_tags, column_id: own_tags})


def _applied(tags: Mapping[str, str], changes: TagChanges) -> dict[str, str]:
    both = {**tags, **changes}
    return {key: value for key, value in both.items() if value is not None}


def _with_initial(column: Column) -> Column:
    """Set the initial default, as the real extension does, though no row predates the column."""
    if column.default is None or column.default_kind != "literal" or column.children:
        return column
    return replace(column, initial_default=column.default)


def _check_names(columns: Sequence[Column], where: str) -> None:
    """Raise where there are no columns, two have the same name, or the format reserves a name, at
    any depth.
    """
    if not columns:
        raise SchemaMismatch(f"{where} needs at least one column", hint="name one with its type")
    seen: set[str] = set()
    for column in columns:
        if fold(column.name) in seen:
            raise NameTaken(
                f"{where} has two columns called {column.name!r}",
                hint="give one of them another name; letter case does not count",
                data={"column": column.name},
            )
        if fold(column.name) in IN_FILES:
            raise NameTaken(
                f"{where} cannot have a column {column.name!r}, which files have of their own",
                hint="give it another name",
                data={"column": column.name},
            )
        seen.add(fold(column.name))
        if column.children:
            _check_names(column.children, f"{where}.{column.name}")


IN_FILES = frozenset({"_ducklake_internal_row_id", "_ducklake_internal_snapshot_id"})


def refuse(names: Iterable[str], table: str, limit: int) -> None:
    """Raise NameTaken for a column that ``table`` cannot have where ``limit`` rows are inlined."""
    for name in names if limit else ():
        if fold(name) in SYSTEM:
            raise NameTaken(
                f"{table} cannot have a column {name!r}, which inlined rows have of their own",
                hint="give it another name, or set data_inlining_row_limit to 0 before",
                data={"column": name, "table": table},
            )


_DIALECT = "duckdb"
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_KEYWORDS = frozenset(sqlglot.Dialect.get_or_raise(_DIALECT).tokenizer_class.KEYWORDS)


def _check_keys(keys: Sequence[SortKey], schema: TableSchema) -> None:
    """Raise UnsupportedFeature where a key is not an expression, ColumnNotFound for its column."""
    known = {fold(name) for name in schema.names}
    for key in keys:
        for name in _names(key):
            if fold(name) not in known:
                raise ColumnNotFound(
                    f"column {name!r} to sort by does not exist",
                    hint=f"the columns are {', '.join(schema.names)}",
                    data={"column": name},
                )


def _renamed_keys(
    keys: Sequence[SortKey], before: TableSchema, after: TableSchema
) -> tuple[SortKey, ...]:
    """The keys under the names that the columns have ``after``; columns are matched by id."""
    names = {column.id: column.name for column in after.columns}
    new = {
        fold(column.name): names[column.id]
        for column in before.columns
        if column.id in names and names[column.id] != column.name
    }
    return tuple(_renamed(key, new) if new else key for key in keys)


def _renamed(key: SortKey, new: dict[str, str]) -> SortKey:
    tree = _tree(key)
    columns = [column for column in _columns_of(tree) if fold(column.parts[0].name) in new]
    for column in columns:
        root = column.parts[0]
        name = new[fold(root.name)]
        # In quotes only where needed, as the real extension writes it.
        plain = _PLAIN.fullmatch(name) and name.upper() not in _KEYWORDS
        root.replace(exp.to_identifier(name, quoted=not plain))
    return replace(key, expression=tree.sql(_DIALECT)) if columns else key


def _names(key: SortKey) -> list[str]:
    """The names of the columns in a key; for a field of a struct that is its column."""
    return [column.parts[0].name for column in _columns_of(_tree(key))]


def _columns_of(tree: exp.Expr) -> list[exp.Column]:
    return list(tree.find_all(exp.Column))


def _tree(key: SortKey) -> exp.Expr:
    try:
        return parse_expression(key.expression, _DIALECT)
    except Unreadable as error:
        raise UnsupportedFeature(
            f"the sort key {key.expression!r} is not an expression{error}",
            hint="sort by columns, or by an expression of DuckDB's SQL",
            data={"expression": key.expression},
        ) from None
