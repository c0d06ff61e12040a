"""What tables must hold when a transaction and somebody beside it have both committed.

Each saw the tables as they were before either. So rows that the other one changed are as that one
left them, under the columns that the transaction made; all others are the transaction's. Where the
transaction changed the same rows, or used a table whose columns the other one altered, it should
not have been committed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack

import duckdb

from tests.lakes.differential.written.model import KEY, Model, Patch

Done = Sequence[str | Patch]
_ALTERS = re.compile(r"(?i)ALTER TABLE (?!.* SET NOT NULL)")


class NotTogether(Exception):
    """Why one of the two should have been refused."""


def together(base: Done, own: Done, others: Sequence[str]) -> list[str | Patch]:
    """What leads to the tables as they must be after both. Raises NotTogether."""
    alters = [
        statement for statement in own if isinstance(statement, str) and _ALTERS.match(statement)
    ]
    with ExitStack() as stack:
        try:
            before, theirs, ours, altered, both = (
                stack.enter_context(Model(done))
                for done in (
                    base,
                    [*base, *others],
                    [*base, *own],
                    [*base, *alters],
                    [*base, *others, *alters],
                )
            )
        except duckdb.Error as error:
            raise NotTogether(f"one after the other they fail: {error}") from error
        patches = []
        for table in before.tables():
            keys = _changed(table, before, theirs)
            patches += [_patch(table, keys, ours, altered, both)] if keys else []
    of_others = [statement for statement in others if _ALTERS.match(statement)]
    for statement in of_others:
        name = statement.split()[2]
        if any(re.search(rf"\b{name}\b", text) for text in own if isinstance(text, str)):
            raise NotTogether(
                f"the transaction uses {name}, which was altered beside it: {statement}"
            )
    return [*base, *of_others, *own, *patches]


def _changed(table: str, before: Model, theirs: Model) -> tuple[int, ...]:
    """The rows that the other one changed, where it is not the columns."""
    if before.read(table).schema != theirs.read(table).schema:
        return ()
    old, new = before.rows(table), theirs.rows(table)
    return tuple(key for key in {**old, **new} if old.get(key) != new.get(key))


def _patch(table: str, keys: tuple[int, ...], ours: Model, altered: Model, both: Model) -> Patch:
    """Those rows as they must be; the transaction must have left them as they were."""
    mine, untouched = ours.rows(table), altered.rows(table)
    lost = [key for key in keys if mine.get(key) != untouched.get(key)]
    if lost:
        raise NotTogether(f"both changed the rows {lost} of {table}")
    rows = both.read(table)
    mask = [key in keys for key in rows.column(KEY).to_pylist()]
    return Patch(table, keys, rows.filter(mask))
