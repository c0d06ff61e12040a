"""Random sequences of DuckDB statements, as scripts.

A sequence knows which tables and columns there are, so that most of its statements work; those that
do not (an overflow, a conflict inside a transaction) fail in DuckDB and do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.lakes.differential.script import Script, parse

# By type: literals. Keys are few, so that statements meet each other's rows.
_VALUES: Mapping[str, Sequence[str]] = {
    "TINYINT": ("0", "-128", "127", "5"),
    "INT": ("0", "1", "-2147483648", "2147483647"),
    "BIGINT": ("3", "9000000000", "-1"),
    "UINTEGER": ("0", "4294967295"),
    "FLOAT": ("0.1", "-0.0", "'inf'", "1.5"),
    "DOUBLE": ("0.1", "-0.0", "1e300", "'-inf'"),
    "VARCHAR": ("''", "'a'", "'it''s'", "'NULL'", "'é/%='", "'[1, 2]'"),
    "DECIMAL(9,2)": ("1.10", "-0.01", "9999999.99"),
    "BOOLEAN": ("true", "false"),
    "DATE": ("'2013-01-02'", "'1969-12-31'", "'0001-01-01'"),
    "TIMESTAMP": ("'2013-01-02 03:04:05.678'", "'1969-12-31 23:59:59.999999'"),
    "TIMESTAMPTZ": ("'2013-01-02 03:04:05+02'", "'1970-01-01 00:00:00+00'"),
    "UUID": ("'00112233-4455-6677-8899-aabbccddeeff'",),
    "BLOB": (r"'\x00\xFF'::BLOB", "''::BLOB"),
    "INT[]": ("[1, NULL]", "[]", "[7]"),
    "MAP(VARCHAR, INT)": ("MAP {'k': 1}", "MAP {}"),
}
_FIELDS = ("INT", "VARCHAR", "DOUBLE")
_WIDER = {"TINYINT": "INT", "INT": "BIGINT", "FLOAT": "DOUBLE", "UINTEGER": "BIGINT"}
_DEFAULTS = ("TINYINT", "INT", "BIGINT", "DOUBLE", "VARCHAR", "DECIMAL(9,2)", "BOOLEAN", "DATE")
_TRANSFORMS = {
    "VARCHAR": ("{}", "bucket(3, {})"),
    "INT": ("{}", "bucket(2, {})"),
    "DATE": ("{}", "year({})", "month({})", "day({})"),
    "TIMESTAMP": ("year({})", "month({})", "hour({})"),
}


@dataclass
class _Table:
    """``structs`` are the fields of each column that is a struct; its type is then "STRUCT"."""

    columns: dict[str, str]
    structs: dict[str, dict[str, str]] = field(default_factory=dict)


class _Sequence:
    """The statements so far, and what they lead to."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw
        self.tables: dict[str, _Table] = {}
        self.statements: list[str] = []
        self.names = 0

    def one_of(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def name(self, of: str) -> str:
        self.names += 1
        return f"{of}{self.names}"

    def table(self) -> tuple[str, _Table]:
        name = self.one_of(sorted(self.tables))
        return name, self.tables[name]

    def add(self, statement: str) -> None:
        self.statements.append(statement)

    # Values and conditions

    def value(self, kind: str, fields: Mapping[str, str] | None = None) -> str:
        if self.draw(st.integers(0, 4)) == 0:
            return "NULL"
        if fields is not None:
            parts = (f"'{name}': {self.value(kind)}" for name, kind in fields.items())
            # DuckDB 1.5.5 loses quotes inside of inlined structs.
            return "{" + ", ".join(parts).replace("'it''s'", "'its'") + "}"
        return str(self.one_of(_VALUES[kind]))

    def row(self, table: _Table) -> str:
        values = [
            str(self.draw(st.integers(0, 9)))
            if name == "k"
            else self.value(kind, table.structs.get(name))
            for name, kind in table.columns.items()
        ]
        return f"({', '.join(values)})"

    def condition(self) -> str:
        key = self.draw(st.integers(0, 9))
        pattern = self.one_of(("k = {}", "k = {}", "k < {}", "k IN (1, {})", "k % 3 = {} % 3"))
        return str(pattern).format(key)

    # Statements

    def create(self) -> None:
        table = _Table({"k": "INT"})
        for _ in range(self.draw(st.integers(1, 4))):
            kind = self.one_of((*_VALUES, "STRUCT"))
            column = self.name("c")
            table.columns[column] = kind
            if kind == "STRUCT":
                table.structs[column] = {self.name("f"): self.one_of(_FIELDS) for _ in range(2)}
        name = self.name("t")
        self.tables[name] = table
        listed = (f"{column} {_declared(table, column)}" for column in table.columns)
        self.add(f"CREATE TABLE {name}({', '.join(listed)})")

    def insert(self) -> None:
        name, table = self.table()
        rows = ", ".join(self.row(table) for _ in range(self.draw(st.integers(1, 4))))
        self.add(f"INSERT INTO {name} VALUES {rows}")

    def insert_many(self) -> None:
        name, table = self.table()
        row = self.row(table).strip("()").split(", ", 1)[1] if len(table.columns) > 1 else ""
        first, count = self.draw(st.integers(0, 5)), self.draw(st.integers(8, 14))
        values = f", {row}" if row else ""
        self.add(f"INSERT INTO {name} SELECT range{values} FROM range({first}, {first + count})")

    def update(self) -> None:
        name, table = self.table()
        column = self.one_of(sorted(table.columns))
        value = (
            f"k + {self.draw(st.integers(1, 3))}"
            if column == "k"
            else self.value(table.columns[column], table.structs.get(column))
        )
        self.add(f"UPDATE {name} SET {column} = {value} WHERE {self.condition()}")

    def delete(self) -> None:
        name, _ = self.table()
        self.add(f"DELETE FROM {name} WHERE {self.condition()}")

    def delete_all(self) -> None:
        name, _ = self.table()
        self.add(self.one_of((f"DELETE FROM {name}", f"TRUNCATE {name}")))

    def merge(self) -> None:
        name, table = self.table()
        key = self.draw(st.integers(0, 9))
        row = self.row(table)
        columns = ", ".join(table.columns)
        matched = self.one_of(("UPDATE SET k = t.k + 1", "DELETE"))
        self.add(
            f"MERGE INTO {name} t USING (SELECT {key} AS k, {key + 5} AS n) s ON t.k = s.k "
            f"WHEN MATCHED THEN {matched} "
            f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES {row}"
        )

    def add_column(self) -> None:
        name, table = self.table()
        kind = self.one_of(_DEFAULTS if self.draw(st.booleans()) else tuple(_VALUES))
        column = self.name("c")
        table.columns[column] = kind
        default = f" DEFAULT {self.one_of(_VALUES[kind])}" if kind in _DEFAULTS else ""
        self.add(f"ALTER TABLE {name} ADD COLUMN {column} {kind}{default}")

    def drop_column(self) -> None:
        name, table = self.table()
        if len(table.columns) > 2:
            column = self.one_of(sorted(set(table.columns) - {"k"}))
            del table.columns[column]
            table.structs.pop(column, None)
            self.add(f"ALTER TABLE {name} DROP COLUMN {column}")

    def rename_column(self) -> None:
        name, table = self.table()
        others = sorted(set(table.columns) - {"k"})
        if others:
            old, new = self.one_of(others), self.name("c")
            table.columns = {new if c == old else c: kind for c, kind in table.columns.items()}
            if old in table.structs:
                table.structs[new] = table.structs.pop(old)
            self.add(f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}")

    def widen(self) -> None:
        name, table = self.table()
        narrow = sorted(c for c, kind in table.columns.items() if kind in _WIDER and c != "k")
        if narrow:
            column = self.one_of(narrow)
            table.columns[column] = _WIDER[table.columns[column]]
            self.add(f"ALTER TABLE {name} ALTER {column} SET DATA TYPE {table.columns[column]}")

    def change_struct(self) -> None:
        name, table = self.table()
        if not table.structs:
            return
        column = self.one_of(sorted(table.structs))
        fields = table.structs[column]
        old = self.one_of(sorted(fields))
        new = self.name("f")
        match self.draw(st.integers(0, 2)):
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
            transform.format(column)
            for column, kind in table.columns.items()
            for transform in _TRANSFORMS.get(kind, ())
        ]
        if self.draw(st.integers(0, 3)) == 0:
            self.add(f"ALTER TABLE {name} RESET PARTITIONED BY")
        elif keys:
            self.add(f"ALTER TABLE {name} SET PARTITIONED BY ({self.one_of(keys)})")

    def rename_table(self) -> None:
        old, table = self.table()
        del self.tables[old]
        new = self.name("t")
        self.tables[new] = table
        self.add(f"ALTER TABLE {old} RENAME TO {new}")

    def recreate(self) -> None:
        name, table = self.table()
        self.add(f"DROP TABLE {name}")
        listed = (f"{column} {_declared(table, column)}" for column in table.columns)
        self.add(f"CREATE TABLE {name}({', '.join(listed)})")

    def transaction(self) -> None:
        self.add("BEGIN")
        for _ in range(self.draw(st.integers(2, 4))):
            self.one_of(_CHANGES)(self)
        self.add(self.one_of(("COMMIT", "COMMIT", "COMMIT", "COMMIT", "ROLLBACK")))

    def maintain(self) -> None:
        self.add(self.one_of(_MAINTENANCE))

    def expire(self) -> None:
        version = self.draw(st.integers(1, max(1, len(self.statements) - 2)))
        self.add(f"CALL ducklake_expire_snapshots('lk', versions => [{version}])")
        if self.draw(st.booleans()):
            self.add("CALL ducklake_cleanup_old_files('lk', cleanup_all => true)")


def _declared(table: _Table, column: str) -> str:
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
    "CALL ducklake_expire_snapshots('lk', older_than => now())",
)
_Step = Callable[[_Sequence], None]
_CHANGES: tuple[_Step, ...] = (
    *(_Sequence.insert, _Sequence.insert, _Sequence.insert_many),
    *(_Sequence.update, _Sequence.update, _Sequence.delete, _Sequence.delete, _Sequence.merge),
)
_STEPS: tuple[_Step, ...] = (
    *(*_CHANGES, *_CHANGES),
    *(_Sequence.transaction, _Sequence.transaction, _Sequence.delete_all),
    *(_Sequence.add_column, _Sequence.add_column, _Sequence.drop_column, _Sequence.rename_column),
    *(_Sequence.widen, _Sequence.change_struct, _Sequence.change_struct, _Sequence.partition),
    *(_Sequence.rename_table, _Sequence.recreate, _Sequence.create),
    *(_Sequence.maintain, _Sequence.maintain, _Sequence.maintain, _Sequence.expire),
)


@st.composite
def texts(draw: Callable[[st.SearchStrategy[Any]], Any]) -> str:
    """The text of a script of 8 to 18 steps that starts with a table and some rows."""
    sequence = _Sequence(draw)
    inline = sequence.one_of((0, 3, 10, 10))
    sequence.create()
    sequence.one_of((_Sequence.insert, _Sequence.insert_many))(sequence)
    for step in draw(st.lists(st.sampled_from(_STEPS), min_size=8, max_size=16)):
        step(sequence)
    return "\n".join(
        [
            "-- errors: allowed",
            f"-- inline: {inline}",
            *(f"{each};" for each in sequence.statements),
        ]
    )


def scripts(count: int, start: int | None = None) -> list[Script]:
    """``count`` different scripts: always the same, or those of a seed."""
    unique: dict[str, None] = {}

    @settings(
        max_examples=count * 2,
        derandomize=start is None,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(texts())
    def collect(text: str) -> None:
        unique[text] = None

    (collect if start is None else seed(start)(collect))()
    # The first is the simplest there is.
    chosen = list(unique)[1 : count + 1]
    label = "fixed" if start is None else f"seed {start}"
    return [parse(text, f"{label} number {at}") for at, text in enumerate(chosen)]
