"""Statements that change rows, or read them."""

from __future__ import annotations

from collections.abc import Callable

from tests.lakes.differential.written.altering.story import Altering
from tests.lakes.differential.written.altering.values import NUMBERS, PLAIN, literal
from tests.lakes.differential.written.script import Step


def insert(at: Altering) -> None:
    name, table = at.table()
    rows = at.rows(table, at.random.randrange(1, 9), table.others)
    values = ", ".join(f"({row})" for row in rows)
    at.add(f"INSERT INTO {name} (i, {', '.join(table.others)}) VALUES {values}", methods=True)


def insert_some_columns(at: Altering) -> None:
    """The others get their defaults."""
    name, table = at.table()
    chosen = [c for c in table.others if c in table.required or at.chance(2)]
    values = ", ".join(f"({row})" for row in at.rows(table, at.random.randrange(1, 3), chosen))
    at.add(f"INSERT INTO {name} ({', '.join(['i', *chosen])}) VALUES {values}")


def copy_rows(at: Altering) -> None:
    """Rows that are read inside of the transaction."""
    (name, table), (other, source) = at.table(), at.table()
    both = [c for c in table.others if source.columns.get(c) == table.columns[c]]
    both = [c for c in both if c not in table.structs]
    if not both or not table.required <= set(both):
        return
    start = at.ids(at.next_id or 1)
    listed = ", ".join(both)
    at.add(
        f"INSERT INTO {name} (i, {listed}) SELECT i + {start}, {listed} FROM {other} "
        f"WHERE {at.where(source)}"
    )


def update(at: Altering) -> None:
    name, table = at.table()
    at.add(f"UPDATE {name} SET {at.assignment(table)} WHERE {at.where(table)}", methods=True)


def delete(at: Altering) -> None:
    name, table = at.table()
    at.add(f"DELETE FROM {name} WHERE {at.where(table)}", methods=True)


def delete_all(at: Altering) -> None:
    name, _ = at.table()
    at.add(at.one_of((f"DELETE FROM {name}", f"TRUNCATE TABLE {name}")))


def merge(at: Altering) -> None:
    name, table = at.table()
    keys = [c for c in table.others if table.columns[c] in NUMBERS]
    if not keys:
        return
    key, count = at.one_of(keys), at.random.randrange(1, 30)
    ids = at.ids(count)
    rest = [c for c in table.others if c != key]
    row = f"n + {at.number(table, key)} AS k, n + {ids} AS n"
    source = f"(SELECT {row} FROM range(0, {count}) AS r(n)) AS s"
    clauses = [f"WHEN MATCHED AND {at.where(table, 't.')} THEN DELETE"]
    clauses.append(f"WHEN MATCHED THEN UPDATE SET {at.assignment(table, 't.')}")
    clauses = clauses[at.random.randrange(2) :]
    if at.chance(2):
        listed = ", ".join(["i", key, *rest])
        values = ", ".join(["s.n", "s.k", *(at.new(table, c, 11) for c in rest)])
        clauses.append(f"WHEN NOT MATCHED THEN INSERT ({listed}) VALUES ({values})")
    if at.chance(3):
        act = at.one_of(("DELETE", f"UPDATE SET {at.assignment(table, 't.')}"))
        clauses.append(f"WHEN NOT MATCHED BY SOURCE AND {at.where(table, 't.')} THEN {act}")
    at.add(
        f"MERGE INTO {name} AS t USING {source} ON t.{key} = s.k {' '.join(clauses)}",
        methods=True,
    )


def merge_by_key(at: Altering) -> None:
    """`TransactionTable.merge`, which leaves equal rows alone: so it counts otherwise."""
    name, table = at.table()
    plain = [c for c in table.others if table.columns[c] in PLAIN or c in table.required]
    if at.inside != "methods" or any(table.columns[c] not in PLAIN for c in plain):
        return
    rows = at.rows(table, at.random.randrange(1, 4), plain)
    news = {row.partition(",")[0] for row in rows}
    for old in at.random.sample(range(at.next_id), min(4, at.next_id)):
        if str(old) not in news:
            rows.append(", ".join([str(old), *(at.new(table, column, 13) for column in plain)]))
    values = ", ".join(f"({row})" for row in rows)
    listed = ", ".join(["i", *plain])
    changes = ", ".join(f"{column} = s.{column}" for column in plain)
    matched = f"WHEN MATCHED THEN UPDATE SET {changes} " if plain else ""
    at.add(
        f"MERGE INTO {name} AS t USING (VALUES {values}) AS s({listed}) ON t.i = s.i {matched}"
        f"WHEN NOT MATCHED THEN INSERT ({listed}) "
        f"VALUES ({', '.join(f's.{column}' for column in ['i', *plain])})",
        methods=True,
    )


def replace_some(at: Altering) -> None:
    """REPLACE WHERE, `overwrite` and `replace_slice`, which DuckDB has not."""
    name, table = at.table()
    plain = [c for c in table.others if table.columns[c] in PLAIN]
    by = at.inside or "sql"
    if not plain or by == "duckdb":
        return
    if at.chance(5):
        values = ", ".join(f"({row})" for row in at.rows(table, 3, table.others))
        into = f"INSERT INTO {name} ({', '.join(['i', *table.others])})"
        text, plainly = f"{into} REPLACE WHERE true VALUES {values}", f"{into} VALUES {values}"
        at.steps.append(Step(text, by, f"DELETE FROM {name}; {plainly}"))
        return
    column = at.one_of(plain)
    rest = [c for c in table.others if c != column]
    value = literal(table.columns[column], at.number(table, column))
    rows = at.rows(table, at.random.randrange(1, 4), rest)
    values = ", ".join(f"({value}, {row})" for row in rows)
    where = f"{column} = {value}"
    into = f"INSERT INTO {name} ({', '.join([column, 'i', *rest])})"
    text = f"{into} REPLACE WHERE {where} VALUES {values}"
    at.steps.append(Step(text, by, f"DELETE FROM {name} WHERE {where}; {into} VALUES {values}"))


def ask(at: Altering) -> None:
    """Which rows there are by a condition, all of the table, or a number about them."""
    name, table = at.table()
    if at.inside == "duckdb":  # it reads wrong what it has just altered
        return
    what = (f"FROM {name}", summary(at), f"SELECT i FROM {name} WHERE {at.where(table)}")
    at.add(at.one_of(what), methods=True)


def summary(at: Altering) -> str:
    """What the catalog may know without the rows."""
    name, table = at.table()
    numbers = ["i", *(c for c in table.others if table.columns[c] in NUMBERS)]
    what = at.one_of(("count(*)", "min({})", "max({})", "count({})"))
    return f"SELECT {what.format(at.one_of(numbers))} FROM {name}"


ROWS: tuple[Callable[[Altering], None], ...] = (
    *(delete, delete, update, update, update, merge, insert, insert_some_columns, copy_rows),
    *(replace_some, replace_some, merge_by_key, merge_by_key, ask, ask, delete_all),
)
