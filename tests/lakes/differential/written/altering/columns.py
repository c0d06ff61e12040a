"""Statements that alter columns, and fields of structs."""

from __future__ import annotations

from collections.abc import Callable

from tests.lakes.differential.written.altering.story import Altering, Numbered
from tests.lakes.differential.written.altering.values import FIELDS, KINDS, WIDER, default


def make(at: Altering, table: Numbered, column: str) -> str:
    """A new column of any type, and its place among the numbers; the type as it is written."""
    at.columns += 1
    table.starts[column] = 300 * (at.columns % 20)
    if at.chance(5):
        table.columns[column] = "STRUCT"
        table.structs[column] = {"x": at.one_of(FIELDS), "y": "INT"}
        if at.chance(3):
            table.lists.add(column)
    else:
        table.columns[column] = at.one_of(KINDS)
    return table.declared(column)


def add_column(at: Altering) -> None:
    name, table = at.table()
    _add(at, name, table, at.free_name(table))


def _add(at: Altering, name: str, table: Numbered, column: str) -> None:
    kind = make(at, table, column)
    clause = ""
    if column not in table.structs and at.chance(2):
        clause = f" DEFAULT {default(kind, at.number())}"
    at.add(f"ALTER TABLE {name} ADD COLUMN {column} {kind}{clause}")


def drop_column(at: Altering) -> None:
    name, table = at.table()
    if len(table.others) > 2 and table.free:
        _drop(at, name, table, at.one_of(table.free))


def _drop(at: Altering, name: str, table: Numbered, column: str) -> None:
    del table.columns[column]
    table.structs.pop(column, None)
    table.required.discard(column)
    table.lists.discard(column)
    at.add(f"ALTER TABLE {name} DROP COLUMN {column}")


def drop_and_add(at: Altering) -> None:
    name, table = at.table()
    if len(table.others) > 1 and table.free:
        column = at.one_of(table.free)
        _drop(at, name, table, column)
        _add(at, name, table, column)


def rename_column(at: Altering) -> None:
    name, table = at.table()
    rename(at, name, at.one_of(table.others), at.free_name(table))


def rename(at: Altering, name: str, old: str, new: str) -> None:
    table = at.tables[name]

    def named(column: str) -> str:
        return new if column == old else column

    table.columns = {named(c): kind for c, kind in table.columns.items()}
    table.structs = {named(c): fields for c, fields in table.structs.items()}
    table.keys = {named(c) for c in table.keys}
    table.required = {named(c) for c in table.required}
    table.lists = {named(c) for c in table.lists}
    table.starts[new] = table.starts.pop(old, 0)
    at.add(f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}")


def swap_columns(at: Altering) -> None:
    """Two names change their columns, or one gets another's and leaves its own."""
    name, table = at.table()
    if len(table.others) < 2:
        return
    first, other = at.random.sample(table.others, 2)
    between = at.free_name(table)
    rename(at, name, first, between)
    rename(at, name, other, first)
    if at.chance(2):
        rename(at, name, between, other)


def rename_and_add(at: Altering) -> None:
    name, table = at.table()
    column = at.one_of(table.others)
    rename(at, name, column, at.free_name(table))
    _add(at, name, table, column)


def widen(at: Altering) -> None:
    name, table = at.table()
    narrow = [c for c in table.others if table.columns[c] in WIDER]
    if narrow:
        column = at.one_of(narrow)
        table.columns[column] = at.one_of(WIDER[table.columns[column]])
        at.add(f"ALTER TABLE {name} ALTER COLUMN {column} SET DATA TYPE {table.columns[column]}")


def set_default(at: Altering) -> None:
    name, table = at.table()
    column = at.one_of(table.others)
    if column not in table.structs:
        value = default(table.columns[column], at.number())
        what = at.one_of((f"SET DEFAULT {value}", f"SET DEFAULT {value}", "DROP DEFAULT"))
        at.add(f"ALTER TABLE {name} ALTER COLUMN {column} {what}")


def require(at: Altering) -> None:
    """The column may have NULLs: then all refuse it."""
    name, table = at.table()
    column = at.one_of(table.others)
    if column in table.required:
        table.required.discard(column)
        at.add(f"ALTER TABLE {name} ALTER COLUMN {column} DROP NOT NULL")
    elif column not in table.structs:
        table.required.add(column)
        if at.chance(2):
            at.add(f"DELETE FROM {name} WHERE {column} IS NULL", methods=True)
        at.add(f"ALTER TABLE {name} ALTER COLUMN {column} SET NOT NULL")


def change_struct(at: Altering) -> None:
    """Add a field, drop, rename, or replace one by a new field of the same name."""
    name, table = at.table()
    if not table.structs:
        return
    column = at.one_of(sorted(table.structs))
    fields, path = table.structs[column], table.path(column)
    old = at.one_of(sorted(fields))
    free = [n for n in "vwxyz" if n not in fields]
    what = at.random.randrange(4)
    if what == 0:
        new = at.one_of(free)
        table.structs[column] = {new if f == old else f: k for f, k in fields.items()}
        at.add(f"ALTER TABLE {name} RENAME COLUMN {path}.{old} TO {new}")
        return
    if what > 1 and len(fields) > 1:
        del fields[old]
        at.add(f"ALTER TABLE {name} DROP COLUMN {path}.{old}")
    if what in (1, 3) and len(fields) < 4:
        new = old if old not in fields else at.one_of(free)
        fields[new] = at.one_of(FIELDS)
        at.add(f"ALTER TABLE {name} ADD COLUMN {path}.{new} {fields[new]}")


def widen_struct(at: Altering) -> None:
    name, table = at.table()
    for column, fields in sorted(table.structs.items()):
        narrow = [f for f, kind in fields.items() if kind in WIDER]
        if narrow and column not in table.lists:
            field_name = at.one_of(narrow)
            fields[field_name] = at.one_of(WIDER[fields[field_name]])
            kind = table.declared(column)
            at.add(f"ALTER TABLE {name} ALTER COLUMN {column} SET DATA TYPE {kind}")
            return


_Step = Callable[[Altering], None]
KEEPING: tuple[_Step, ...] = (  # what is there keeps its name and type
    *(drop_and_add, drop_and_add, add_column, drop_column, set_default, set_default, require),
)
COLUMNS: tuple[_Step, ...] = (
    *(swap_columns, swap_columns, drop_and_add, drop_and_add, rename_and_add, rename_column),
    *(add_column, drop_column, widen, widen, set_default, require, require),
    *(change_struct, change_struct, change_struct, widen_struct),
)
