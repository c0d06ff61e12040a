"""Whether a commit may follow others that its transaction has not seen.

The rules are the format's ("Conflict Resolution", Logical Conflicts). What others did is read from
``changes_made``; a token that is not known counts as a conflict with everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from penstock.lake.changes import ChangeSet, TableChange
from penstock.lake.naming import fold

Name = tuple[str, str]  # schema and table, folded

_QUOTED = r'"((?:[^"]|"")*)"'
_TOKEN = re.compile(rf"([a-z_]+):(?:{_QUOTED}(?:\.{_QUOTED})?|(\d+))(?:,|$)")

_BY_ID: Mapping[str, str] = {
    "dropped_schema": "dropped_schemas",
    "dropped_table": "dropped_tables",
    "dropped_view": "ignored",
    "inserted_into_table": "inserted",
    "inlined_insert": "inserted",
    "deleted_from_table": "deleted",
    "inlined_delete": "deleted",
    "altered_table": "altered",
    "altered_view": "ignored",
    "compacted_table": "compacted",
    "merge_adjacent": "compacted",
    "rewrite_delete": "compacted",
    "inline_flush": "compacted",
    "flushed_inlined": "compacted",
    "dropped_scalar_macro": "ignored",
    "dropped_table_macro": "ignored",
}
_BY_NAME: Mapping[str, str] = {
    "created_schema": "created_schemas",
    "created_table": "created_tables",
    "created_view": "created_tables",  # tables and views share their names
    "created_scalar_macro": "ignored",
    "created_table_macro": "ignored",
}


@dataclass(frozen=True, slots=True)
class ParsedChanges:
    """One snapshot's ``changes_made``. Ids of tables and schemas; names folded."""

    snapshot_id: int
    created_schemas: frozenset[str] = frozenset()
    created_tables: frozenset[Name] = frozenset()
    dropped_schemas: frozenset[int] = frozenset()
    dropped_tables: frozenset[int] = frozenset()
    inserted: frozenset[int] = frozenset()
    deleted: frozenset[int] = frozenset()
    altered: frozenset[int] = frozenset()
    compacted: frozenset[int] = frozenset()
    ignored: frozenset[object] = frozenset()
    unknown: str | None = None  # from the first token that is not understood


@dataclass(frozen=True, slots=True)
class Conflict:
    """``what`` was done by ``snapshot_id`` that excludes the commit."""

    snapshot_id: int
    what: str


@dataclass(slots=True)
class _Found:
    sets: dict[str, set[object]] = field(default_factory=dict)

    def add(self, where: str, value: object) -> None:
        self.sets.setdefault(where, set()).add(value)


def parse_changes(snapshot_id: int, text: str) -> ParsedChanges:
    """Parse ``created_table:"main"."t",inserted_into_table:1``."""
    found = _Found()
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or not _note(found, match):
            return _parsed(snapshot_id, found, text[position:])
        position = match.end()
    return _parsed(snapshot_id, found, None)


def _note(found: _Found, match: re.Match[str]) -> bool:
    kind, first, second, number = match.groups()
    if number is not None:
        where = _BY_ID.get(kind)
        value: object = int(number)
    else:
        where = _BY_NAME.get(kind)
        value = _folded(first) if second is None else (_folded(first), _folded(second))
    if where is None:
        return False
    found.add(where, value)
    return True


def _folded(quoted: str) -> str:
    return fold(quoted.replace('""', '"'))


def _parsed(snapshot_id: int, found: _Found, unknown: str | None) -> ParsedChanges:
    sets: dict[str, frozenset[object]] = {k: frozenset(v) for k, v in found.sets.items()}
    return ParsedChanges(snapshot_id, unknown=unknown, **sets)  # type: ignore[arg-type] # by name


def check(mine: ChangeSet, theirs: ParsedChanges, schema_ids: Mapping[str, int]) -> Conflict | None:
    """The first rule of the format that keeps ``mine`` from following ``theirs``.

    ``schema_ids`` gives the ids of schemas by folded name, as of the snapshot of ``mine``.
    """
    if theirs.unknown is not None:
        return Conflict(theirs.snapshot_id, f"did what is not known here: {theirs.unknown}")
    for name in mine.create_schemas:
        if fold(name) in theirs.created_schemas:
            return Conflict(theirs.snapshot_id, f"created schema {name} too")
    for change in mine.tables:
        for what in _against(change, theirs, schema_ids):
            return Conflict(theirs.snapshot_id, f"{what} {change.schema_name}.{change.name}")
    return None


@dataclass(frozen=True, slots=True)
class _Mine:
    """What a table change does, as the rules name it."""

    inserts: bool
    deletes: bool
    alters: bool
    reads: bool


_Rule = tuple[Callable[[_Mine], bool], Callable[[ParsedChanges], frozenset[int]], str]

_RULES: tuple[_Rule, ...] = (
    (lambda m: m.inserts or m.deletes or m.alters, lambda t: t.dropped_tables, "dropped"),
    (lambda m: m.inserts or m.deletes or m.alters, lambda t: t.altered, "altered"),
    (lambda m: m.deletes, lambda t: t.deleted, "deleted rows of"),
    (lambda m: m.deletes, lambda t: t.compacted, "compacted"),
    (lambda m: m.reads, lambda t: t.inserted | t.deleted, "changed rows of"),
)


def _against(
    change: TableChange, theirs: ParsedChanges, schema_ids: Mapping[str, int]
) -> Iterator[str]:
    schema = fold(change.schema_name)
    if change.create is not None:
        if (schema, fold(change.name)) in theirs.created_tables:
            yield "created"
        if schema_ids.get(schema) in theirs.dropped_schemas:
            yield "dropped the schema of"
    if change.drops is not None:
        if change.drops in theirs.dropped_tables:
            yield "dropped"
        if change.depends_on_rows and change.drops in theirs.inserted | theirs.deleted:
            yield "changed rows of"
    if change.table_id is not None:
        mine = _Mine(
            inserts=bool(change.add),
            deletes=bool(change.end or change.deletes),
            alters=change.schema is not None,
            reads=change.depends_on_rows,
        )
        for applies, touched, what in _RULES:
            if applies(mine) and change.table_id in touched(theirs):
                yield what
