"""The tables during a script, with fitting values and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.lakes.differential.written.altering import values
from tests.lakes.differential.written.altering.values import literal
from tests.lakes.differential.written.generate import Sequenced, Table

NAMES = "abcdefgh"
_TESTS = (
    *("{} = {}", "{} = {}", "{} < {}", "{} >= {}", "{} <> {}"),
    *("{} IN ({}, {})", "NOT ({} < {})"),
)


@dataclass
class Numbered(Table):
    """``starts`` are the lowest numbers of its columns, by name; ``required`` those NOT NULL;
    ``lists`` the columns that are lists of structs."""

    starts: dict[str, int] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    lists: set[str] = field(default_factory=set)

    def path(self, column: str) -> str:
        """Where the fields of a column are, for ALTER."""
        return f"{column}.element" if column in self.lists else column

    def declared(self, column: str) -> str:
        if column not in self.structs:
            return self.columns[column]
        return values.declared(self.structs[column]) + ("[]" if column in self.lists else "")


class Altering(Sequenced):
    """``seen`` are the numbers that values were made of."""

    tables: dict[str, Numbered]  # type: ignore[assignment] # those that it makes

    def __init__(self, seed: str, by: Sequence[str]) -> None:
        super().__init__(seed, by)
        self.columns = 0
        self.inserts = 0
        self.seen: list[int] = [0]

    def chance(self, one_of: int) -> bool:
        return self.random.randrange(one_of) == 0

    def table(self) -> tuple[str, Numbered]:
        name = self.one_of(sorted(self.tables))
        return name, self.tables[name]

    def number(self, table: Numbered | None = None, column: str = "") -> int:
        """One that has been seen; often one that the column may have."""
        start = table.starts.get(column) if table else None
        if start is None or self.inserts == 0 or self.chance(3):
            return int(self.one_of(self.seen))
        turn = self.random.randrange(1, min(self.inserts, 11) + 1)
        return start + 20 * turn + self.random.randrange(6)

    def free_name(self, table: Numbered) -> str:
        return str(self.one_of([n for n in NAMES if n not in table.columns]))

    def new(self, table: Numbered, column: str, at: int) -> str:
        """The value of a column in a new row."""
        if column not in table.required and self.chance(12):
            return "NULL"
        number = table.starts.get(column, 0) + 20 * (self.inserts % 12) + at
        self.seen.append(number)
        if column not in table.structs:
            return literal(table.columns[column], number)
        fields = enumerate(table.structs[column].items())
        parts = (f"'{name}': {literal(kind, number + 7 * n)}" for n, (name, kind) in fields)
        struct = "{" + ", ".join(parts) + "}"
        return f"[{struct}]" if column in table.lists else struct

    def rows(self, table: Numbered, count: int, columns: Sequence[str]) -> list[str]:
        """New rows, each with an id of its own before these columns."""
        self.inserts += 1
        start = self.ids(count)
        return [
            ", ".join([str(start + at), *(self.new(table, column, at) for column in columns)])
            for at in range(count)
        ]

    def where(self, table: Numbered, prefix: str = "") -> str:
        condition = self._test(table, prefix)
        match self.random.randrange(6):
            case 0:
                return f"({condition} AND {self._test(table, prefix)})"
            case 1:
                return f"({condition} OR {self._test(table, prefix)})"
        return condition

    def _test(self, table: Numbered, prefix: str) -> str:
        path, kind = self.one_of(_paths(table))
        if self.chance(5):
            return f"{prefix}{path} IS {self.one_of(('NULL', 'NOT NULL'))}"
        column = path.partition(".")[0]
        operands = [literal(kind, self.number(table, column)) for _ in range(2)]
        return str(self.one_of(_TESTS)).format(prefix + path, *operands)

    def assignment(self, table: Numbered, prefix: str = "") -> str:
        column = self.one_of(table.others)
        others = [c for c in table.others if table.columns[c] == table.columns[column] != "STRUCT"]
        if len(others) > 1 and self.chance(4):
            return f"{column} = {prefix}{self.one_of(others)}"
        return f"{column} = {self.new(table, column, 15)}"


def _paths(table: Numbered) -> list[tuple[str, str]]:
    """What conditions speak of, with its type: columns, and fields of structs."""
    paths = [(c, kind) for c, kind in table.columns.items() if c not in table.structs]
    for column, fields in table.structs.items():
        if column not in table.lists:
            paths += [(f"{column}.{name}", kind) for name, kind in fields.items()]
    return paths
