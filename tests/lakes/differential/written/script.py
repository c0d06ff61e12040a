"""Scripts of statements that Penstock writes a lake with, some of them DuckDB.

Statements are DuckDB's SQL, as in `tests.lakes.differential.script`; an in-memory DuckDB runs the
same as the model. Who runs one on the lake stands before it:

    INSERT INTO t VALUES (1, 'a');              Penstock, by its SQL (this is ``@sql``)
    @methods INSERT INTO t VALUES (2, 'b');     Penstock, by its methods and DataFrames
    @duckdb UPDATE t SET v = 'c' WHERE i = 2;   the real extension
    CALL rollback(...) @model DELETE ...;       the model runs another one; alone: nothing
    @model COPY ... TO '{dir}/one.parquet';     the model alone
    SELECT i FROM t WHERE v = 'a';              rows that are compared with the model's
    FROM t;                                     all of the table's, with its columns
    @other INSERT INTO t VALUES (3, 'c');       Penstock, beside the transaction that is open

Each table has a column ``i``, unique and never updated: by it a row is known through its life.
A transaction is run by one of them from BEGIN to COMMIT. Directives are ``catalogs``, ``inline``
and ``xfail``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.lakes.differential import script as base

BY = ("sql", "methods", "duckdb", "model", "other")
_WHO = re.compile(r"@(\w+)\s+(.*)", re.S)
# What only a lake has: it changes no rows.
_OF_LAKES = re.compile(
    r"(?is)\s*(CALL\s+(\w+\.)?(ducklake_|set_option)|CHECKPOINT|COMMENT\s+ON"
    r"|ALTER\s+TABLE\s+\S+\s+((RE)?SET\s+(PARTITIONED|SORTED)\b))"
)
_PARTITIONED = re.compile(r"(?is)\s+PARTITIONED\s+BY\s*\([^)]*\)+\s*$")
_TABLE = re.compile(
    r"(?is)\s*(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|TRUNCATE(?:\s+TABLE)?|MERGE\s+INTO"
    r"|(?:CREATE(?:\s+OR\s+REPLACE)?|ALTER|DROP)\s+TABLE(?:\s+IF\s+(?:NOT\s+)?EXISTS)?)"
    r"\s+([\w.\"]+)"
)
_DESTROYS = re.compile(r"(?i)expire_snap|\bcheckpoint\b")
_COMPACTS = re.compile(r"(?i)merge_adjacent|rewrite_data|flush_inlined|\bcheckpoint\b")
_REPLACES = re.compile(r"(?i)\bREPLACE WHERE\b")
_ROWS = re.compile(r"(?i)\s*(INSERT|UPDATE|DELETE|MERGE)\b")
_READS = re.compile(r"(?i)\s*(UPDATE|DELETE|MERGE|TRUNCATE)\b")


@dataclass(frozen=True)
class Step:
    """One statement, and by whom."""

    text: str
    by: str = "sql"
    model: str | None = None  # what the model runs instead

    @property
    def of_lakes(self) -> bool:
        return _OF_LAKES.match(self.text) is not None

    @property
    def for_model(self) -> str | None:
        """What the model runs, if anything."""
        if self.model is not None:
            return self.model or None
        if self.of_lakes:
            return None
        return _PARTITIONED.sub("", self.text)

    @property
    def of_rows(self) -> bool:
        return _ROWS.match(self.text) is not None

    @property
    def opens(self) -> bool:
        return base.Statement(self.text).opens

    @property
    def closes(self) -> bool:
        return base.Statement(self.text).closes

    @property
    def destroys(self) -> bool:
        """Whether snapshots go."""
        return self.by != "model" and _DESTROYS.search(self.text) is not None

    @property
    def counts(self) -> bool:
        """Whether it makes a snapshot exactly when it touches a row."""
        return _READS.match(self.text) is not None

    @property
    def asks(self) -> bool:
        """Whether it is a query of numbers, or of a table, with the same answer everywhere."""
        return self.text.startswith(("SELECT ", "FROM "))

    @property
    def shows(self) -> str | None:
        """The table that it asks for whole."""
        return self.text.removeprefix("FROM ") if self.text.startswith("FROM ") else None

    @property
    def for_duckdb(self) -> Step:
        """DuckDB does the same, where it can."""
        text = self.model if self.model and _REPLACES.search(self.text) else self.text
        return Step(text, "duckdb", self.model)

    @property
    def table(self) -> str | None:
        match = _TABLE.match(self.text)
        return match[1] if match else None

    def __str__(self) -> str:
        text = self.text if self.model is None else f"{self.text} @model {self.model}".rstrip()
        return text if self.by == "sql" else f"@{self.by} {text}"


@dataclass(frozen=True)
class Script:
    name: str
    steps: tuple[Step, ...]
    catalogs: tuple[str, ...] = base.CATALOGS
    inline: int | None = None
    xfail: str | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def text(self) -> str:
        head = list(self.notes)
        if self.catalogs != base.CATALOGS:
            head.append(f"-- catalogs: {', '.join(self.catalogs)}")
        if self.inline is not None:
            head.append(f"-- inline: {self.inline}")
        if self.xfail is not None:
            head.append(f"-- xfail: {self.xfail}")
        return "\n".join([*head, *(f"{step};" for step in self.steps)]) + "\n"

    @property
    def compacts(self) -> bool:
        """Whether files are made of others, or of inlined rows."""
        return any(_COMPACTS.search(step.text) for step in self.steps)

    @property
    def mixed(self) -> bool:
        return len({step.by == "duckdb" for step in self.steps}) > 1


def parse(text: str, name: str) -> Script:
    parsed = base.parse(text, name)
    steps = tuple(_step(each.text) for each in parsed.statements if each.kind == "sql")
    notes = tuple(line for line in text.splitlines() if line.startswith("-- |"))
    return Script(name, steps, parsed.catalogs, parsed.inline, parsed.xfail, notes)


def load(path: Path) -> Script:
    return parse(path.read_text(), path.stem)


def _step(text: str) -> Step:
    said = _WHO.fullmatch(text)
    by, text = (said[1], said[2]) if said else ("sql", text)
    if by not in BY:
        raise ValueError(f"@{by} is not of {', '.join(BY)}")
    text, mark, model = text.partition(" @model")
    return Step(text.rstrip(), by, model.strip() if mark else None)
