"""Random sequences of statements for Penstock, or for Penstock and DuckDB in turn.

A sequence knows its tables and columns, so that most statements work. Expressions are such as mean
the same in both dialects, or translate well.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.lakes.differential.written.script import Script, Step

# By type: literals. Keys are few, so that statements meet each other's rows.
_VALUES: Mapping[str, Sequence[str]] = {
    "TINYINT": ("0", "-128", "127"),
    "INT": ("0", "1", "-2147483648", "2147483647"),
    "BIGINT": ("3", "9000000000", "-1"),
    "FLOAT": ("0.5", "CAST('-inf' AS FLOAT)", "1.25"),
    "DOUBLE": ("1e-1", "CAST('-0.0' AS DOUBLE)", "CAST('nan' AS DOUBLE)", "1e300"),
    "VARCHAR": ("''", "'a'", "'it''s'", "'NULL'", "'é/%='", "'[1, 2]'", r"'b\n'"),
    "DECIMAL(9,2)": ("1.10", "-0.01", "9999999.99"),
    "BOOLEAN": ("true", "false"),
    "DATE": ("DATE '2013-01-02'", "DATE '1969-12-31'", "DATE '0001-01-01'"),
    "TIMESTAMP": (
        "CAST('2013-01-02 03:04:05.678' AS TIMESTAMP)",
        "CAST('1969-12-31 23:59:59.999999' AS TIMESTAMP)",
    ),
    "TIMESTAMPTZ": ("CAST('2013-01-02 03:04:05+02:00' AS TIMESTAMPTZ)",),
    "BLOB": ("unhex('00FF')", "unhex('')"),
    "INT[]": ("[1, NULL]", "[7]"),
    "MAP(VARCHAR, INT)": ("MAP {'k': 1}", "MAP {'a': 2, 'b': 3}"),
    "UINTEGER": ("0", "4294967295"),
    "UUID": ("'00112233-4455-6677-8899-aabbccddeeff'",),
}
_ODD = ("UINTEGER", "UUID")  # types that no DataFrame has
_FIELDS = ("INT", "VARCHAR", "DOUBLE")
_WIDER = {"TINYINT": "INT", "INT": "BIGINT", "FLOAT": "DOUBLE", "UINTEGER": "BIGINT"}
_DEFAULTS = ("TINYINT", "INT", "BIGINT", "VARCHAR", "DECIMAL(9,2)", "BOOLEAN", "DATE")
_TRANSFORMS = {
    "VARCHAR": ("{}", "bucket(3, {})"),
    "INT": ("{}", "bucket(2, {})"),
    "DATE": ("{}", "year({})", "month({})", "day({})"),
    "TIMESTAMP": ("year({})", "month({})", "hour({})"),
}
_TYPE_OF_DEFAULT = {"DATE": "'2013-01-02'"}


@dataclass
class Table:
    """``structs`` are the fields of each column that is a struct; its type is then "STRUCT"."""

    columns: dict[str, str]
    structs: dict[str, dict[str, str]] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)  # of partitions and sorts
    partitioned: bool = False

    @property
    def odd(self) -> bool:
        return any(kind in _ODD for kind in self.columns.values())

    @property
    def others(self) -> list[str]:
        return sorted(set(self.columns) - {"i", "k"})

    @property
    def free(self) -> list[str]:
        return sorted(set(self.others) - self.keys)


class Sequenced:
    """The steps so far, and what they lead to. ``by`` are those who may run one."""

    def __init__(self, seed: str, by: Sequence[str]) -> None:
        self.random = random.Random(seed)
        self.by = by
        self.tables: dict[str, Table] = {}
        self.steps: list[Step] = []
        self.names = 0
        self.next_id = 0
        self.inside: str | None = None  # who has the open transaction

    def one_of(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def name(self, of: str) -> str:
        self.names += 1
        return f"{of}{self.names}"

    def ids(self, count: int) -> int:
        """The first of ``count`` new ids."""
        self.next_id += count
        return self.next_id - count

    def table(self) -> tuple[str, Table]:
        name = self.one_of(sorted(self.tables))
        return name, self.tables[name]

    def add(self, text: str, *, methods: bool = False, model: str | None = None) -> None:
        """``methods``: whether there is a method that does it."""
        who = [each for each in self.by if methods or each != "methods"] or ["sql"]
        self.steps.append(Step(text, self.inside or self.one_of(who), model))

    # Values and conditions

    def value(self, kind: str, fields: Mapping[str, str] | None = None) -> str:
        if self.random.randrange(5) == 0:
            return "NULL"
        if fields is not None:
            parts = (f"'{name}': {self.value(kind)}" for name, kind in fields.items())
            # DuckDB 1.5.5 loses quotes inside of inlined structs.
            return "{" + ", ".join(parts).replace("'it''s'", "'its'") + "}"
        return str(self.one_of(_VALUES[kind]))

    def values(self, table: Table) -> str:
        """Of all columns but the first two."""
        values = (self.value(table.columns[c], table.structs.get(c)) for c in _rest(table))
        return "".join(f", {value}" for value in values)

    def condition(self, prefix: str = "") -> str:
        key = self.random.randrange(10)
        pattern = self.one_of(("k = {}", "k = {}", "k < {}", "k IN (1, {})", "k % 3 = {} % 3"))
        return str(prefix + pattern.format(key))

    def source(self, name: str) -> str:
        """Rows with different keys ``k`` and new ids ``n``."""
        count = self.random.randrange(1, 5)
        first, start = self.random.randrange(6), self.ids(count)
        return (
            f"(SELECT n + {first} AS k, n + {start} AS n FROM range(0, {count}) AS r(n)) AS {name}"
        )

    def set(self, table: Table, prefix: str = "") -> str:
        column = self.one_of([*table.others, *table.others, "k"])
        if column == "k":
            return f"k = {prefix}k + {self.random.randrange(1, 4)}"
        return f"{column} = {self.value(table.columns[column], table.structs.get(column))}"

    # Rows

    def insert(self) -> None:
        name, table = self.table()
        count = self.random.randrange(1, 5)
        start = self.ids(count)
        rows = (
            f"({start + at}, {self.random.randrange(10)}{self.values(table)})"
            for at in range(count)
        )
        self.add(f"INSERT INTO {name} VALUES {', '.join(rows)}", methods=not table.odd)

    def insert_some_columns(self) -> None:
        name, table = self.table()
        start = self.ids(1)
        chosen = [c for c in table.free if self.random.randrange(2)]
        values = [self.value(table.columns[c], table.structs.get(c)) for c in chosen]
        listed = ", ".join(["k", "i", *chosen])
        row = ", ".join([str(self.random.randrange(10)), str(start), *values])
        self.add(f"INSERT INTO {name} ({listed}) VALUES ({row})")

    def insert_many(self) -> None:
        name, table = self.table()
        count = self.random.randrange(11, 15)
        start = self.ids(count)
        self.add(
            f"INSERT INTO {name} SELECT n + {start}, n % 10{self.values(table)} "
            f"FROM range(0, {count}) AS r(n)",
            methods=not table.odd,
        )

    def update(self) -> None:
        name, table = self.table()
        self.add(
            f"UPDATE {name} SET {self.set(table)} WHERE {self.condition()}", methods=not table.odd
        )

    def update_from(self) -> None:
        name, table = self.table()
        change, source = self.set(table, f"{name}."), self.source("s")
        self.add(f"UPDATE {name} SET {change} FROM {source} WHERE {name}.k = s.k")

    def delete(self) -> None:
        name, table = self.table()
        self.add(f"DELETE FROM {name} WHERE {self.condition()}", methods=not table.odd)

    def delete_using(self) -> None:
        name, _ = self.table()
        self.add(f"DELETE FROM {name} USING {self.source('s')} WHERE {name}.k = s.k")

    def delete_all(self) -> None:
        name, _ = self.table()
        self.add(self.one_of((f"DELETE FROM {name}", f"TRUNCATE TABLE {name}")))

    def merge(self) -> None:
        name, table = self.table()
        matched = [
            f"WHEN MATCHED AND {self.condition('t.')} THEN DELETE",
            f"WHEN MATCHED THEN UPDATE SET {self.set(table, 't.')}",
        ]
        rest = matched[self.random.randrange(3) :]
        clauses = rest[: self.random.randrange(1, 3)]
        columns = ", ".join(table.columns)
        if self.random.randrange(3):
            clauses.append(
                f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES (s.n, s.k{self.values(table)})"
            )
        if self.random.randrange(3) == 0:
            act = self.one_of(("DELETE", f"UPDATE SET {self.set(table, 't.')}"))
            clauses.append(f"WHEN NOT MATCHED BY SOURCE AND {self.condition('t.')} THEN {act}")
        if clauses:
            self.add(
                f"MERGE INTO {name} AS t USING {self.source('s')} ON t.k = s.k {' '.join(clauses)}",
                methods=not table.odd,
            )

    # Definitions

    def create(self) -> None:
        table = Table({"i": "BIGINT", "k": "INT"})
        for _ in range(self.random.randrange(1, 5)):
            column = self.name("c")
            table.columns[column] = self.one_of((*_VALUES, "STRUCT", "STRUCT"))
            if table.columns[column] == "STRUCT":
                table.structs[column] = {self.name("f"): self.one_of(_FIELDS) for _ in range(2)}
        name = self.name("t")
        self.tables[name] = table
        self.add(f"CREATE TABLE {name} ({_declared(table)})", methods=not table.odd)

    def create_as(self) -> None:
        old, table = self.table()
        if table.odd:  # Spark has other types for these
            return
        name = self.name("t")
        self.tables[name] = Table(
            dict(table.columns), {k: dict(v) for k, v in table.structs.items()}
        )
        self.add(f"CREATE TABLE {name} AS SELECT * FROM {old} WHERE {self.condition()}")

    def add_column(self) -> None:
        name, table = self.table()
        kind = self.one_of(_DEFAULTS if self.random.randrange(2) else tuple(_VALUES))
        column = self.name("c")
        table.columns[column] = kind
        default = ""
        if kind in _DEFAULTS:
            default = f" DEFAULT {_TYPE_OF_DEFAULT.get(kind) or self.one_of(_VALUES[kind])}"
        self.add(f"ALTER TABLE {name} ADD COLUMN {column} {kind}{default}")

    def drop_column(self) -> None:
        name, table = self.table()
        if len(table.others) > 1 and table.free:
            column = self.one_of(table.free)
            del table.columns[column]
            table.structs.pop(column, None)
            self.add(f"ALTER TABLE {name} DROP COLUMN {column}")

    def rename_column(self) -> None:
        name, table = self.table()
        if table.free:
            old, new = self.one_of(table.free), self.name("c")
            table.columns = {new if c == old else c: kind for c, kind in table.columns.items()}
            if old in table.structs:
                table.structs[new] = table.structs.pop(old)
            self.add(f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}")

    def widen(self) -> None:
        name, table = self.table()
        narrow = [c for c in table.free if table.columns[c] in _WIDER]
        if narrow:
            column = self.one_of(narrow)
            table.columns[column] = _WIDER[table.columns[column]]
            self.add(
                f"ALTER TABLE {name} ALTER COLUMN {column} SET DATA TYPE {table.columns[column]}"
            )

    def set_default(self) -> None:
        name, table = self.table()
        fitting = [c for c in table.others if table.columns[c] in _DEFAULTS]
        if fitting:
            column = self.one_of(fitting)
            kind = table.columns[column]
            value = _TYPE_OF_DEFAULT.get(kind) or self.one_of(_VALUES[kind])
            what = self.one_of((f"SET DEFAULT {value}", "DROP DEFAULT"))
            self.add(f"ALTER TABLE {name} ALTER COLUMN {column} {what}")

    def change_struct(self) -> None:
        name, table = self.table()
        if not table.structs:
            return
        column = self.one_of(sorted(table.structs))
        fields = table.structs[column]
        old, new = self.one_of(sorted(fields)), self.name("f")
        match self.random.randrange(3):
            case 0:
                fields[new] = self.one_of(_FIELDS)
                self.add(f"ALTER TABLE {name} ADD COLUMN {column}.{new} {fields[new]}")
            case 1:
                table.structs[column] = {new if f == old else f: k for f, k in fields.items()}
                self.add(f"ALTER TABLE {name} RENAME COLUMN {column}.{old} TO {new}")
            case _ if len(fields) > 1:
                del fields[old]
                self.add(f"ALTER TABLE {name} DROP COLUMN {column}.{old}")

    def partition(self) -> None:
        name, table = self.table()
        keys = [
            (column, transform.format(column))
            for column, kind in table.columns.items()
            for transform in _TRANSFORMS.get(kind, ())
        ]
        if self.random.randrange(4) == 0:
            table.partitioned = False
            self.add(f"ALTER TABLE {name} RESET PARTITIONED BY")
        elif keys:
            column, key = self.one_of(keys)
            table.keys.add(column)
            table.partitioned = True
            self.add(f"ALTER TABLE {name} SET PARTITIONED BY ({key})")

    def sort(self) -> None:
        name, table = self.table()
        if self.random.randrange(4) == 0:
            self.add(f"ALTER TABLE {name} RESET SORTED BY")
        else:
            plain = [c for c in table.columns if table.columns[c] in _DEFAULTS]
            column = self.one_of(plain)
            table.keys.add(column)
            order = self.one_of(("", " DESC", " ASC NULLS FIRST"))
            self.add(f"ALTER TABLE {name} SET SORTED BY ({column}{order})")

    def rename_table(self) -> None:
        old, table = self.table()
        del self.tables[old]
        new = self.name("t")
        self.tables[new] = table
        self.add(f"ALTER TABLE {old} RENAME TO {new}")

    def recreate(self) -> None:
        name, table = self.table()
        table.keys.clear()
        self.add(f"DROP TABLE {name}")
        self.add(f"CREATE TABLE {name} ({_declared(table)})", methods=not table.odd)

    def comment(self) -> None:
        name, _ = self.table()
        text = self.one_of(("'it is'", "NULL"))
        self.add(self.one_of((f"COMMENT ON TABLE {name} IS {text}",)))

    # Several at once, and maintenance

    def transaction(self) -> None:
        self.inside = self.one_of(self.by)
        if any(table.odd for table in self.tables.values()) and self.inside == "methods":
            self.inside = "sql"
        self.add("BEGIN", methods=True)
        for _ in range(self.random.randrange(2, 5)):
            self.one_of(_BY_METHOD if self.inside == "methods" else _CHANGES)(self)
        self.add(self.one_of(("COMMIT", "COMMIT", "COMMIT", "COMMIT", "ROLLBACK")), methods=True)
        self.inside = None

    def maintain(self) -> None:
        self.add(self.one_of(_MAINTENANCE), methods=True)

    def add_files(self) -> None:
        name, table = self.table()
        if self.inside or table.odd or table.partitioned:  # then it wants directories of partitions
            return
        count, file = self.random.randrange(1, 4), self.name("f")
        start = self.ids(count)
        self.steps.append(
            Step(
                f"COPY (SELECT * REPLACE (i + {start} - (SELECT min(i) FROM {name}) AS i) FROM "
                f"{name} WHERE i < (SELECT min(i) FROM {name}) + {count}) "
                f"TO '{{dir}}/{file}.parquet'",
                "model",
            )
        )
        self.add(
            f"CALL ducklake_add_data_files('lk', '{name}', '{{dir}}/{file}.parquet')",
            model=f"INSERT INTO {name} BY NAME SELECT * FROM '{{dir}}/{file}.parquet'",
        )

    def expire(self) -> None:
        version = self.random.randrange(1, max(2, len(self.steps) - 2))
        self.add(f"CALL ducklake_expire_snapshots('lk', versions => [{version}])", methods=True)
        if self.random.randrange(2):
            self.add("CALL ducklake_cleanup_old_files('lk', cleanup_all => true)", methods=True)


def _rest(table: Table) -> list[str]:
    return list(table.columns)[2:]


def _declared(table: Table) -> str:
    return ", ".join(f"{column} {_type(table, column)}" for column in table.columns)


def _type(table: Table, column: str) -> str:
    fields = table.structs.get(column)
    if fields is None:
        return table.columns[column]
    return f"STRUCT({', '.join(f'{name} {kind}' for name, kind in fields.items())})"


_MAINTENANCE = (
    "CALL ducklake_flush_inlined_data('lk')",
    "CALL ducklake_flush_inlined_data('lk')",
    "CALL ducklake_merge_adjacent_files('lk')",
    "CALL ducklake_merge_adjacent_files('lk')",
    "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)",
    "CALL ducklake_cleanup_old_files('lk', cleanup_all => true)",
)
_Step = Callable[[Sequenced], None]
_BY_METHOD: tuple[_Step, ...] = (
    *(Sequenced.insert, Sequenced.insert, Sequenced.insert_many),
    *(Sequenced.update, Sequenced.delete, Sequenced.delete, Sequenced.merge),
)
_CHANGES: tuple[_Step, ...] = (
    *_BY_METHOD,
    *(Sequenced.update, Sequenced.merge, Sequenced.merge, Sequenced.insert_some_columns),
    *(Sequenced.update_from, Sequenced.delete_using),
)
_STEPS: tuple[_Step, ...] = (
    *(*_CHANGES, *_CHANGES),
    *(Sequenced.transaction,) * 3,
    *(Sequenced.delete_all, Sequenced.create, Sequenced.create_as, Sequenced.recreate),
    *(Sequenced.add_column, Sequenced.add_column, Sequenced.drop_column, Sequenced.rename_column),
    *(Sequenced.widen, Sequenced.set_default, Sequenced.change_struct, Sequenced.change_struct),
    *(Sequenced.partition, Sequenced.partition, Sequenced.sort, Sequenced.rename_table),
    *(Sequenced.comment, Sequenced.add_files),
    *(Sequenced.maintain,) * 4,
    Sequenced.expire,
)


def script(seed: str, by: Sequence[str], least: int = 7, most: int = 14) -> Script:
    """A table, some rows, and some steps; the same for a seed."""
    sequence = Sequenced(seed, by)
    inline = sequence.one_of((0, 3, 10, 10))
    sequence.create()
    sequence.one_of((Sequenced.insert, Sequenced.insert_many))(sequence)
    for _ in range(sequence.random.randrange(least, most)):
        sequence.one_of(_STEPS)(sequence)
    return Script(seed, tuple(sequence.steps), inline=inline)


OURS = ("sql", "sql", "methods")
MIXED = ("sql", "methods", "duckdb", "duckdb")


def scripts(
    count: int,
    seed: int,
    by: Sequence[Sequence[str]] = (OURS, MIXED),
    steps: tuple[int, int] = (7, 14),
) -> list[Script]:
    """Each kind of sequence in turn, of so many steps after a table and some rows."""
    return [script(f"seed {seed} number {at}", by[at % len(by)], *steps) for at in range(count)]
