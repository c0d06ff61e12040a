"""Decide whether a commit may follow others that its transaction has not seen.

The rules are the format's ("Conflict Resolution", Logical Conflicts). What others did is read from
``changes_made``; a token that is not known counts as a conflict with everything. Where the format
says nothing (macros) the rules are those for views. The real extension allows less: in 1.5.5
inserts and deletes of one table exclude each other.

A rename leaves only ``created_table`` with the new name, also when DuckDB does it, which would
allow two of them. So renamed tables and views are looked up in the catalog
(`ParsedChanges.renamed`), and a rename excludes every other change of the table or view.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.lakes.format.changes import ChangeSet, TableChange
from penstock.lakes.format.naming import fold

Name = tuple[str, str]  # schema and table, folded

_QUOTED = r'"((?:[^"]|"")*)"'
_TOKEN = re.compile(rf"([a-z_]+):(?:{_QUOTED}(?:\.{_QUOTED})?|(\d+))(?:,|$)")

_BY_ID: Mapping[str, str] = {
    "dropped_schema": "dropped_schemas",
    "dropped_table": "dropped_tables",
    "dropped_view": "dropped_views",
    "inserted_into_table": "inserted",
    "inlined_insert": "inserted",
    "deleted_from_table": "deleted",
    "inlined_delete": "deleted",
    "altered_table": "altered",
    "altered_view": "altered_views",
    "compacted_table": "compacted",
    "merge_adjacent": "compacted",
    "rewrite_delete": "compacted",
    "inline_flush": "compacted",
    "flushed_inlined": "compacted",
    "dropped_scalar_macro": "dropped_macros",
    "dropped_table_macro": "dropped_macros",
}
_BY_NAME: Mapping[str, str] = {
    "created_schema": "created_schemas",
    "created_table": "created_tables",
    "created_view": "created_tables",  # tables and views share their names
    "created_scalar_macro": "created_scalar_macros",
    "created_table_macro": "created_table_macros",
}


@dataclass(frozen=True, slots=True)
class ParsedChanges:
    """A snapshot's ``changes_made``: ids of tables and schemas, and folded names."""

    snapshot_id: int
    created_schemas: frozenset[str] = frozenset()
    created_tables: frozenset[Name] = frozenset()
    dropped_schemas: frozenset[int] = frozenset()
    dropped_tables: frozenset[int] = frozenset()
    inserted: frozenset[int] = frozenset()
    deleted: frozenset[int] = frozenset()
    altered: frozenset[int] = frozenset()
    compacted: frozenset[int] = frozenset()
    dropped_views: frozenset[int] = frozenset()
    altered_views: frozenset[int] = frozenset()
    created_scalar_macros: frozenset[Name] = frozenset()
    created_table_macros: frozenset[Name] = frozenset()
    dropped_macros: frozenset[int] = frozenset()
    renamed: frozenset[int] = frozenset()  # tables and views; there is no token for it
    unknown: str | None = None  # from the first token that is not understood


@dataclass(frozen=True, slots=True)
class Conflict:
    """``what`` was done by ``snapshot_id`` that excludes the commit."""

    snapshot_id: int
    what: str


class Token(NamedTuple):
    """One change in ``changes_made``, at ``start``: of an id, or of a name with its schema's."""

    kind: str
    names: tuple[str, ...]
    id: int | None
    start: int


def read_tokens(text: str) -> tuple[list[Token], str | None]:
    """Read ``created_table:"main"."t",inserted_into_table:1``, and what of it is not understood."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return tokens, text[position:]
        kind, *names, number = match.groups()
        said = tuple(name.replace('""', '"') for name in names if name is not None)
        tokens.append(Token(kind, said, None if number is None else int(number), position))
        position = match.end()
    return tokens, None


def parse_changes(snapshot_id: int, text: str) -> ParsedChanges:
    """Parse the ``changes_made`` of a snapshot."""
    sets: dict[str, set[Any]] = defaultdict(set)
    tokens, unknown = read_tokens(text)
    for kind, names, number, start in tokens:
        where = (_BY_ID if names == () else _BY_NAME).get(kind)
        if where is None:
            unknown = text[start:]
            break
        folded = tuple(fold(name) for name in names)
        sets[where].add(number if not folded else folded[0] if len(folded) == 1 else folded)
    return ParsedChanges(snapshot_id, unknown=unknown, **{k: frozenset(v) for k, v in sets.items()})


def check(mine: ChangeSet, theirs: ParsedChanges, schema_ids: Mapping[str, int]) -> Conflict | None:
    """The first rule of the format by which ``mine`` cannot follow ``theirs``.

    ``schema_ids`` gives the ids of schemas by folded name, as of the snapshot of ``mine``.
    """
    if theirs.unknown is not None:
        return Conflict(theirs.snapshot_id, f"made an unknown change: {theirs.unknown}")
    for rule in (_schemas, _tables, _views, _macros, _compactions):
        for what in rule(mine, theirs, schema_ids):
            return Conflict(theirs.snapshot_id, what)
    return None


def touched(mine: ChangeSet) -> frozenset[int]:
    """The ids of the tables and views that ``mine`` changes, which others may have renamed."""
    tables = (table_id for change in mine.tables for table_id in (change.table_id, change.drops))
    replaced = (view.replaces for view in mine.create_views)
    views = (*mine.drop_views, *mine.rename_views, *mine.view_tags)
    return frozenset(
        object_id for object_id in (*tables, *replaced, *views) if object_id is not None
    )


def needs_schemas(mine: ChangeSet) -> bool:
    """Return whether `check` needs ``schema_ids``: not for changes of rows and columns only."""
    rows_only = ChangeSet(tables=mine.tables, compactions=mine.compactions)
    return mine != rows_only or any(
        change.create is not None or change.rename_to is not None for change in mine.tables
    )


def _schemas(
    mine: ChangeSet, theirs: ParsedChanges, schema_ids: Mapping[str, int]
) -> Iterator[str]:
    for name in mine.create_schemas:
        if fold(name) in theirs.created_schemas - mine.needed_schemas:
            yield f"created schema {name} too"
    made = theirs.created_tables | theirs.created_scalar_macros | theirs.created_table_macros
    for name, schema_id in schema_ids.items():
        if schema_id not in mine.drop_schemas:
            continue
        if schema_id in theirs.dropped_schemas:
            yield f"dropped schema {name} too"
        for _, entry in sorted(pair for pair in made if pair[0] == name):
            yield f"created {name}.{entry} in the schema to drop"


def _tables(mine: ChangeSet, theirs: ParsedChanges, schema_ids: Mapping[str, int]) -> Iterator[str]:
    for change in mine.tables:
        for what in _against(change, theirs, schema_ids):
            yield f"{what} {change.schema_name}.{change.name}"


def _views(mine: ChangeSet, theirs: ParsedChanges, schema_ids: Mapping[str, int]) -> Iterator[str]:
    for view in mine.create_views:
        key = (fold(view.schema_name), fold(view.name))
        name = f"{view.schema_name}.{view.name}"
        if key in theirs.created_tables and view.replaces is None:
            yield f"created {name}"
        if schema_ids.get(key[0]) in theirs.dropped_schemas:
            yield f"dropped the schema of {name}"
    replaced = (view.replaces for view in mine.create_views if view.replaces is not None)
    for view_id in (*mine.drop_views, *replaced):
        yield from _against_view(view_id, theirs, alters=False)
    for view_id in (*mine.rename_views, *mine.view_tags):
        yield from _against_view(view_id, theirs, alters=True)


def _against_view(view_id: int, theirs: ParsedChanges, *, alters: bool) -> Iterator[str]:
    if view_id in theirs.dropped_views:
        yield f"dropped view {view_id}"
    if view_id in theirs.renamed:
        yield f"renamed view {view_id}"
    if alters and view_id in theirs.altered_views:
        yield f"altered view {view_id} too"


def _macros(mine: ChangeSet, theirs: ParsedChanges, schema_ids: Mapping[str, int]) -> Iterator[str]:
    for macro in mine.create_macros:
        key = (fold(macro.schema_name), fold(macro.name))
        kind = macro.forms[0].kind
        made = theirs.created_table_macros if kind == "table" else theirs.created_scalar_macros
        if key in made:
            yield f"created macro {macro.schema_name}.{macro.name} too"
        if schema_ids.get(key[0]) in theirs.dropped_schemas:
            yield f"dropped the schema of macro {macro.schema_name}.{macro.name}"
    replaced = (macro.replaces for macro in mine.create_macros if macro.replaces is not None)
    for macro_id in (*mine.drop_macros, *replaced):
        if macro_id in theirs.dropped_macros:
            yield f"dropped macro {macro_id} too"


def _compactions(
    mine: ChangeSet,
    theirs: ParsedChanges,
    schema_ids: Mapping[str, int],  # noqa: ARG001 - of the rules' shape
) -> Iterator[str]:
    for compaction in mine.compactions:
        table = getattr(compaction, "table_name", f"table {compaction.table_id}")
        if compaction.table_id in theirs.dropped_tables:
            yield f"dropped {table}"
        if compaction.table_id in theirs.deleted:
            yield f"deleted rows of {table}, which was to be compacted"
        if compaction.table_id in theirs.compacted:
            yield f"compacted {table} too"


@dataclass(frozen=True, slots=True)
class _Mine:
    """The kinds of changes of a table, as the rules name them."""

    inserts: bool
    deletes: bool
    alters: bool
    reads: bool
    renames: bool


_Rule = tuple[Callable[[_Mine], bool], Callable[[ParsedChanges], frozenset[int]], str]

_RULES: tuple[_Rule, ...] = (
    (lambda m: m.inserts or m.deletes or m.alters, lambda t: t.dropped_tables, "dropped"),
    (lambda m: m.inserts or m.deletes or m.alters, lambda t: t.altered, "altered"),
    (lambda m: m.inserts or m.deletes or m.alters, lambda t: t.renamed, "renamed"),
    (lambda m: m.deletes, lambda t: t.deleted, "deleted rows of"),
    (lambda m: m.deletes, lambda t: t.compacted, "compacted"),
    (lambda m: m.reads or m.renames, lambda t: t.inserted | t.deleted, "changed rows of"),
)


def _against(
    change: TableChange, theirs: ParsedChanges, schema_ids: Mapping[str, int]
) -> Iterator[str]:
    yield from _against_name(change, theirs, schema_ids)
    if change.drops is not None:
        if change.drops in theirs.dropped_tables:
            yield "dropped"
        if change.drops in theirs.renamed:
            yield "renamed"
        if change.depends_on_rows and change.drops in theirs.inserted | theirs.deleted:
            yield "changed rows of"
    if change.table_id is not None:
        mine = _mine(change)
        for applies, touched, what in _RULES:
            if applies(mine) and change.table_id in touched(theirs):
                yield what


def _against_name(
    change: TableChange, theirs: ParsedChanges, schema_ids: Mapping[str, int]
) -> Iterator[str]:
    schema = fold(change.schema_name)
    if change.create is not None:
        if (schema, fold(change.name)) in theirs.created_tables:
            yield "created"
        if schema_ids.get(schema) in theirs.dropped_schemas:
            yield "dropped the schema of"
    if change.rename_to is not None and (schema, fold(change.rename_to)) in theirs.created_tables:
        yield f"gave the name {change.rename_to}, which is wanted for"


def _mine(change: TableChange) -> _Mine:
    inline = change.inline
    defined = (change.schema, change.rename_to, change.partition_by, change.sort_by)
    return _Mine(
        inserts=bool(change.add) or (inline is not None and inline.insert is not None),
        deletes=bool(change.end or change.deletes)
        or (inline is not None and bool(inline.end_rows or inline.delete)),
        alters=any(definition is not None for definition in defined)
        or bool(change.tags or change.column_tags),
        reads=change.depends_on_rows,
        renames=change.rename_to is not None,
    )
