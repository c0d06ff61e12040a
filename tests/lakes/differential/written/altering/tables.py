"""Statements that make tables, give them other names, and lay their files out."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from tests.lakes.differential.written.altering.columns import make
from tests.lakes.differential.written.altering.story import NAMES, Altering, Numbered
from tests.lakes.differential.written.altering.values import TRANSFORMS


def create(at: Altering) -> None:
    if len(at.tables) < 3:
        _create(at, at.name("t"))


def _create(at: Altering, name: str) -> None:
    table = Numbered({"i": "BIGINT"})
    names = at.random.sample(NAMES, at.random.randrange(3, 5))
    declared = ", ".join(f"{column} {make(at, table, column)}" for column in names)
    at.tables[name] = table
    at.add(f"CREATE TABLE {name} (i BIGINT, {declared})", methods=True)


def create_as(at: Altering) -> None:
    old, table = at.table()
    name = at.name("t")
    new = deepcopy(table)
    new.keys, new.required = set(), set()
    at.tables[name] = new
    at.add(f"CREATE TABLE {name} AS SELECT * FROM {old} WHERE {at.where(table)}")


def partition(at: Altering) -> None:
    name, table = at.table()
    keys = [
        (column, transform.format(column))
        for column, kind in table.columns.items()
        for transform in TRANSFORMS.get(kind, ())
        if column != "i"
    ]
    if at.chance(5):
        at.add(f"ALTER TABLE {name} RESET PARTITIONED BY")
    elif keys:
        chosen = at.random.sample(keys, 1 if len(keys) < 2 or at.chance(2) else 2)
        listed = dict(chosen)  # each column once
        table.keys |= set(listed)
        table.partitioned = True
        at.add(f"ALTER TABLE {name} SET PARTITIONED BY ({', '.join(listed.values())})")


def sort(at: Altering) -> None:
    name, table = at.table()
    plain = [c for c in table.others if c not in table.structs]
    if at.chance(4):
        at.add(f"ALTER TABLE {name} RESET SORTED BY")
    elif plain:
        column = at.one_of(plain)
        table.keys.add(column)
        order = at.one_of(("", " DESC", " ASC NULLS FIRST"))
        at.add(f"ALTER TABLE {name} SET SORTED BY ({column}{order})")


def swap_tables(at: Altering) -> None:
    """A name becomes another table's."""
    old, _ = at.table()
    moved = at.name("t")
    _move(at, old, moved)
    if len(at.tables) > 1 and at.chance(2):
        _move(at, at.one_of(sorted(set(at.tables) - {moved})), old)
    else:
        _create(at, old)


def _move(at: Altering, old: str, new: str) -> None:
    at.tables[new] = at.tables.pop(old)
    at.add(f"ALTER TABLE {old} RENAME TO {new}")


def recreate(at: Altering) -> None:
    name, _ = at.table()
    at.add(f"DROP TABLE {name}")
    _create(at, name)


_Step = Callable[[Altering], None]
LAYOUT: tuple[_Step, ...] = (partition, partition, partition, sort)
TABLES: tuple[_Step, ...] = (swap_tables, recreate, create_as)
