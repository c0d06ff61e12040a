"""The real extension in its process: it runs statements, and reads what a lake holds."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from penstock.lakes.format.naming import quote_identifier as quoted
from tests.duckdb_process import DuckDBError, DuckDBProcess
from tests.lakes.differential.places import Home
from tests.lakes.differential.written.script import Step
from tests.lakes.differential.written.shown import of_arrow

_META = "__ducklake_metadata_lk"


@dataclass(frozen=True)
class Span:
    """A table by one of its names, in force from ``begin`` until before ``end``.

    ``columns`` are its own of all times: id, name, begin and end.
    """

    table_id: int
    schema: str
    name: str
    begin: int
    end: int | None
    columns: tuple[tuple[int, str, int, int | None], ...] = field(default=(), repr=False)

    def names(self, version: int) -> dict[int, str]:
        """What the columns are called, by their ids."""
        return {
            id_: name
            for id_, name, begin, end in self.columns
            if begin <= version and (end is None or version < end)
        }

    @property
    def full(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    def holds(self, version: int) -> bool:
        return self.begin <= version and (self.end is None or version < self.end)


@dataclass(frozen=True)
class Question:
    """Rows (with row ids) at ``version``, or changes from ``first`` to it; ``held`` are the
    snapshots that there are and where the table is."""

    what: str  # "rows" or "changes"
    span: Span
    version: int
    held: tuple[int, ...]
    first: int | None = None

    @property
    def sql(self) -> str:
        if self.first is None:
            return f"SELECT rowid, * FROM lk.{self.span.full} AT (VERSION => {self.version})"
        where = ", ".join("'" + part + "'" for part in ("lk", self.span.schema, self.span.name))
        return f"SELECT * FROM ducklake_table_changes({where}, {self.first}, {self.version})"

    def __str__(self) -> str:
        at = self.version if self.first is None else f"{self.first} to {self.version}"
        return f"{self.what} of {self.span.full} at {at}"


@dataclass(frozen=True)
class Answer:
    question: Question
    table: pa.Table | None
    error: str | None = None


class Theirs:
    def __init__(self, duckdb: DuckDBProcess, home: Home, inline: int | None) -> None:
        self._duckdb, self._home, self._inline = duckdb, home, inline
        self._attached = False

    def open(self) -> None:
        if self._attached:
            return
        self._duckdb.renew()
        options = [f"DATA_PATH '{self._home.data_path}'"]
        if self._inline is not None:
            options.append(f"DATA_INLINING_ROW_LIMIT {self._inline}")
        uri = self._home.uri.replace("'", "''")
        self._duckdb.execute(f"ATTACH '{uri}' AS lk ({', '.join(options)})")
        self._duckdb.execute("USE lk")
        self._attached = True

    def close(self) -> None:
        if self._attached:
            self._attached = False
            self._duckdb.renew()

    def run(self, text: str) -> None:
        """Raises DuckDBError."""
        self.open()
        self._duckdb.execute(text.replace("{dir}", str(self._home.files)))

    def answer(self, step: Step) -> object:
        """The rows of a query of numbers, or all of a table."""
        self.open()
        if step.shows is not None:
            return of_arrow(self._duckdb.query(step.text).table)
        return sorted(number for (number,) in self._duckdb.rows(step.text))

    def latest(self) -> int:
        self.open()
        query = f"SELECT max(snapshot_id) FROM {_META}.ducklake_snapshot"
        ((latest,),) = self._duckdb.rows(query)
        return int(latest)

    def read(self, limit: int | None, seed: str) -> list[Answer]:
        """The answers to all questions, or to ``limit`` of them."""
        self.open()
        questions = list(self._questions())
        if limit is not None and len(questions) > limit:
            latest = max(each.version for each in questions)
            sure = [each for each in questions if each.version == latest][: limit // 2]
            rest = [each for each in questions if each not in sure]
            questions = sure + random.Random(seed).sample(rest, limit - len(sure))
        return [self._ask(each) for each in questions]

    def _ask(self, question: Question) -> Answer:
        try:
            return Answer(question, self._duckdb.query(question.sql).table)
        except DuckDBError as error:
            return Answer(question, None, str(error))

    def _questions(self) -> Iterator[Question]:
        rows = self._duckdb.rows(f"SELECT snapshot_id FROM {_META}.ducklake_snapshot ORDER BY 1")
        versions = [version for (version,) in rows]
        for span in self.spans():
            held = tuple(version for version in versions if span.holds(version))
            for version in held:
                yield Question("rows", span, version, held)
            for first, last in _ranges(held):
                yield Question("changes", span, last, held, first)

    def spans(self) -> list[Span]:
        query = (
            "SELECT DISTINCT t.table_id, s.schema_name, t.table_name, t.begin_snapshot, "
            f"t.end_snapshot FROM {_META}.ducklake_table t "
            f"JOIN {_META}.ducklake_schema s USING (schema_id)"
        )
        columns = defaultdict(list)
        for table_id, *column in self._duckdb.rows(
            "SELECT table_id, column_id, column_name, begin_snapshot, end_snapshot "
            f"FROM {_META}.ducklake_column WHERE parent_column IS NULL ORDER BY ALL"
        ):
            columns[table_id].append(tuple(column))
        rows = self._duckdb.rows(query)
        spans = (replace(Span(*row), columns=tuple(columns[row[0]])) for row in rows)
        return sorted(spans, key=str)


def _ranges(held: Sequence[int]) -> list[tuple[int, int]]:
    """The whole life, the two halves, and each snapshot on its own."""
    if not held:
        return []
    half = held[len(held) // 2]
    several = [(held[0], held[-1]), (held[0], half), (half, held[-1])]
    return list(dict.fromkeys([*several, *((version, version) for version in held)]))
