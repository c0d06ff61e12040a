"""Random transactions that alter tables and then choose rows of them.

Tables have several files whose values lie apart, as do those of their columns, and few names for
the columns: so whoever looks for rows by what a name meant before the transaction misses some. The
rest is as in `generate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from tests.lakes.differential.written.altering import columns, rows, tables
from tests.lakes.differential.written.altering.story import Altering, Numbered
from tests.lakes.differential.written.script import Script, Step

_UPDATES = ("UPDATE ", "MERGE ")


def transaction(at: Altering, *, others: bool) -> None:
    """``others``: somebody else writes before it commits; then tables keep their names."""
    before = deepcopy(at.tables)
    ours = [each for each in at.by if each != "duckdb"]
    at.inside = at.one_of(ours if others or not at.chance(4) else at.by)
    at.add("BEGIN", methods=True)
    start = len(at.steps)
    count = at.random.randrange(2, 7)
    when = at.random.randrange(count) if others else None
    for turn in range(count):
        if turn == when:
            _other(at, before)
        if at.chance(3):
            at.one_of(rows.ROWS)(at)
        _define(at, at.steps[start:], others=others)
        if not at.chance(3):
            at.one_of(rows.ROWS)(at)
    for _ in range(at.random.randrange(1, 3)):
        at.one_of(rows.ROWS)(at)
    if at.inside != "duckdb":  # which reads wrong what it has just altered
        at.add(f"FROM {at.table()[0]}", methods=True)
    ends = at.one_of(("COMMIT",) * 7 + ("ROLLBACK",))
    at.add(ends, methods=True)
    if ends == "ROLLBACK":
        at.tables = before
    at.inside = None
    for by in ("sql", "duckdb", "duckdb"):  # the one chooses files, the other by its statistics
        name, table = at.table()
        at.steps.append(Step(f"SELECT i FROM {name} WHERE {at.where(table)}", by))
    at.steps.append(Step(rows.summary(at), at.one_of(("sql", "duckdb"))))


def _define(at: Altering, done: Sequence[Step], *, others: bool) -> None:
    """One definition. After one that is refused for rows which were updated in files, a
    transaction in SQL has ended: so these are seldom there."""
    updated = at.inside == "sql" and any(step.text.startswith(_UPDATES) for step in done)
    of_columns = columns.KEEPING if updated and not at.chance(5) else columns.COLUMNS
    kinds = [of_columns, of_columns, of_columns, of_columns, tables.LAYOUT]
    if not others:
        kinds.append(tables.TABLES)
    at.one_of(at.one_of(kinds))(at)


def _other(at: Altering, known: dict[str, Numbered]) -> None:
    """A statement of somebody who knows the tables as they were."""
    now, inside = at.tables, at.inside
    at.tables, at.inside = deepcopy(known), "other"
    at.one_of(_OTHERS)(at)
    at.tables, at.inside = now, inside


_OTHERS = (
    *(rows.insert, rows.insert, rows.insert_some_columns, rows.delete, rows.delete, rows.update),
    *(columns.add_column, columns.rename_column, columns.drop_column, tables.partition),
)


def script(seed: str, by: Sequence[str], most: int = 2, *, others: bool = False) -> Script:
    """A table of some files, and ``most`` transactions; the same for a seed."""
    at = Altering(seed, [each for each in by if each != "methods"])  # which take longer
    inline = at.one_of((0, 0, 3, 10))
    tables.create(at)
    if at.chance(3):
        tables.partition(at)
    for _ in range(at.random.randrange(2, 5)):
        rows.insert(at)
    if at.chance(2):
        tables.create(at)
        rows.insert(at)
    if at.chance(3):
        at.one_of(columns.COLUMNS)(at)
        rows.insert(at)
    if at.chance(2):
        rows.delete(at)
    at.by = by
    for _ in range(at.random.randrange(most)):
        transaction(at, others=False)
    transaction(at, others=others)  # nothing follows that would have to know what they did
    if at.chance(3):
        at.maintain()
    return Script(seed, tuple(at.steps), inline=inline)


def scripts(count: int, seed: int, by: Sequence[Sequence[str]], most: int = 2) -> list[Script]:
    """Somebody else writes beside each third."""
    return [
        script(f"altering {seed} number {n}", by[n % len(by)], most, others=n % 3 == 2)
        for n in range(count)
    ]
