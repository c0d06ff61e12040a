"""What a transaction and its commit start from, each in one query.

The queries of a commit run while all other writers wait. One of them reads whether the lake
requires a message (``require_commit_message``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BindParameter, ScalarSelect, Select, bindparam, func, select, true

from penstock.errors import CommitError
from penstock.lake.catalog import reads
from penstock.lake.catalog.database import metadata as t
from penstock.lake.catalog.database.round_trips import Answer, Query
from penstock.lake.catalog.statistics import totals
from penstock.lake.catalog.work import Totals
from penstock.lake.format.changes import ChangeSet
from penstock.lake.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Start:
    """The newest snapshot, whether commits need a message, and of the table that gets rows, where
    that is one, the statistics and the inlined table for its rows.

    ``inline_tables`` has no entry where more than one query is needed to tell.
    """

    latest: Snapshot
    wants_message: bool
    totals: Mapping[int, Totals] = field(default_factory=dict)
    inline_tables: Mapping[int, str | None] = field(default_factory=dict)


def _beginning_query() -> Any:
    c = t.metadata.c
    newest = reads.latest_query().subquery()
    return select(c.key, c.value, c.scope, c.scope_id, newest).join_from(
        t.metadata, newest, true(), isouter=True
    )


BEGINNING = Query(_beginning_query())


def beginning(answer: Answer) -> tuple[Snapshot | None, Sequence[reads.OptionRow]]:
    """What `BEGINNING` gives: the newest snapshot and every option, which are of one time."""
    options = [reads.OptionRow(*row[:4]) for row in answer]
    there = bool(answer) and answer[0][4] is not None
    return reads.as_snapshot(answer[0][4:]) if there else None, options


def _since_query() -> Any:
    c = t.snapshot.c
    query = reads.snapshots_query().where(c.snapshot_id > bindparam("base"))
    return query.order_by(c.snapshot_id)


_SINCE = _since_query()


def since_snapshot(base: int) -> Query:
    """The fields of a `Snapshot` of all after ``base``, oldest first."""
    return Query(_SINCE, {"base": base})


def question(changes: ChangeSet) -> Query:
    """What to ask before ``changes`` are written; `start` reads the answer."""
    table_id = _table_id(changes)
    return Query(_QUERY) if table_id is None else Query(_QUERY_OF_TABLE, {"table": table_id})


def start(changes: ChangeSet, answer: Answer) -> Start | None:
    """``None`` in a catalog without snapshots, which is corrupt."""
    if not answer:
        return None
    first = answer[0]
    latest, wants_message = (
        reads.as_snapshot(first[:_OF_SNAPSHOT]),
        asks_for_message(first[_OF_SNAPSHOT]),
    )
    table_id = _table_id(changes)
    if table_id is None:
        return Start(latest, wants_message)
    name, version, newest = first[_OF_SNAPSHOT + 1 : _STATISTICS]
    sure = name is None or newest is None or newest <= version
    return Start(
        latest,
        wants_message,
        {table_id: totals.from_rows([row[_STATISTICS:] for row in answer])},
        {table_id: name} if sure else {},
    )


def _table_id(changes: ChangeSet) -> int | None:
    """The table that gets rows, if it is one that is there."""
    found = {
        change.table_id
        for change in changes.tables
        if change.add or (change.inline is not None and change.inline.insert is not None)
    }
    return found.pop() if len(found) == 1 else None


def message_option() -> ScalarSelect[str]:
    """The option's value, to be selected with others.

    The lake's own option counts, not those of a schema or table, as in DuckDB 1.5.5 (measured).
    """
    c = t.metadata.c
    query = select(c.value).where(c.key == "require_commit_message", c.scope.is_(None))
    return query.limit(1).scalar_subquery()


def asks_for_message(message_option: str | None) -> bool:
    return message_option == "true"


def check_message(author: str | None, message: str | None) -> None:
    """Raise CommitError unless there is a message or an author, where the lake asks for one."""
    if message is None and author is None:
        raise CommitError(
            "the lake wants a message for every commit, and this one has none",
            hint="use lake.transaction(author=..., message=...), or in SQL set_commit_message; "
            "set_option('require_commit_message', false) ends it",
        )


def _queries() -> tuple[Select[*tuple[object, ...]], Select[*tuple[object, ...]]]:
    table: BindParameter[int] = bindparam("table")
    r, v, s, c = (
        one.c
        for one in (
            *(t.inlined_data_tables, t.schema_versions),
            *(t.table_stats, t.table_column_stats),
        )
    )
    newest = select(func.max(r.schema_version)).where(r.table_id == table).scalar_subquery()
    altered = select(func.max(v.schema_version)).where(v.table_id == table).scalar_subquery()
    alone = reads.latest_query().add_columns(message_option())
    of_table = (
        alone.add_columns(r.table_name, r.schema_version, altered, *totals.COLUMNS)
        .outerjoin(t.inlined_data_tables, (r.table_id == table) & (r.schema_version == newest))
        .outerjoin(t.table_stats, s.table_id == table)
        .outerjoin(t.table_column_stats, c.table_id == s.table_id)
    )
    return alone, of_table


# Where the columns of the answer begin; built once, as in `totals`.
_OF_SNAPSHOT = 9
_STATISTICS = _OF_SNAPSHOT + 4
_QUERY, _QUERY_OF_TABLE = _queries()
